"""Messages of the page to a widget."""

from collections.abc import Mapping, Sequence
from typing import Any


def send_message(widget: Any, content: Mapping[str, object], buffers: Sequence[bytes] = ()) -> None:
    """Let the page send a widget a message, by the widget's comm."""
    data = {"method": "custom", "content": content}
    parts = [memoryview(one) for one in buffers]
    widget.comm.handle_msg({"content": {"data": data}, "buffers": parts})
