"""The line below the pictures: what was said last, or why the shown stage failed."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

import ipywidgets as widgets

from irviz.transforms.stage import Stage

Say = Callable[[str, bool], None]
"""Shows words, which may be an error's."""


class Message:
    """Say something to the reader; `widget` is what is displayed."""

    def __init__(self) -> None:
        self.widget = widgets.HTML()
        self.widget.add_class("irviz-message")

    def say(self, stage: Stage, words: str, is_error: bool = False) -> None:
        """Say this; or else why the shown stage failed, or what TVM wrote, or nothing."""
        if not words and stage.error:
            words = f"{stage.label} failed; the module is as before. {stage.error}"
            is_error = True
        elif not words and stage.said:
            words = f"TVM wrote while {stage.label} ran: {stage.said}"
        kind = "irviz-error" if is_error else "irviz-said"
        self.widget.value = f'<p role="status" class="{kind}">{escape(words)}</p>' if words else ""


def save_file(say: Say, write: Callable[[], Path], hint: str = "") -> None:
    """Write a file and say where it is, with a hint behind that; or why it could not be written."""
    try:
        path = write()
    except (OSError, ValueError) as failure:
        say(str(failure), True)
    else:
        say(f"saved {path.resolve()}{hint}", False)
