"""The widget that displays the explorer's data in the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import get_args

import anywidget
import ipywidgets
import traitlets

from irviz.explorer.actions import Action
from irviz.explorer.viewer import STATIC
from irviz.explorer.viewer.schema import MESSAGES, PaneName, action_of

PANES: tuple[PaneName, ...] = get_args(PaneName)
HEIGHT = 560
"""The height of a viewer in a notebook, in px."""


class Viewer(anywidget.AnyWidget):
    """Displays its data, and reports the actions that the user requests.

    The traits are those of `ViewerTraits` in `src/schema.ts`. The page writes `selection`,
    `search`, `tab`, `hasScript`, `hasNumPy`, `hasBlame` and `isDark`, and sends MESSAGES.

    Attributes:
        height: The height in px, 0 to fill the window.
        panes: The parts that are shown.
    """

    _esm = STATIC / "viewer.js"
    _css = STATIC / "viewer.css"

    title = traitlets.Unicode("").tag(sync=True)
    still = traitlets.Unicode("").tag(sync=True)
    panes = traitlets.List(traitlets.Enum(PANES), list(PANES)).tag(sync=True)
    height = traitlets.Int(HEIGHT, min=0).tag(sync=True)
    rows: traitlets.List[object] = traitlets.List().tag(sync=True)
    canUndo = traitlets.Bool(False).tag(sync=True)  # noqa: N815 - as in the page
    canRedo = traitlets.Bool(False).tag(sync=True)  # noqa: N815
    functions: traitlets.List[object] = traitlets.List().tag(sync=True)
    scene = traitlets.Dict().tag(sync=True)
    scripts = traitlets.Dict().tag(sync=True)
    blockLines = traitlets.Dict().tag(sync=True)  # noqa: N815
    selection = traitlets.Dict({"node": "", "side": "current"}).tag(sync=True)
    marked: traitlets.List[str] = traitlets.List(traitlets.Unicode()).tag(sync=True)
    details = traitlets.Dict().tag(sync=True)
    search = traitlets.Unicode("").tag(sync=True)
    found = traitlets.Dict().tag(sync=True)
    status = traitlets.Dict().tag(sync=True)
    times: traitlets.List[object] = traitlets.List().tag(sync=True)
    colours: traitlets.List[object] = traitlets.List().tag(sync=True)
    colour = traitlets.Unicode("").tag(sync=True)
    tabs = traitlets.List(traitlets.Unicode()).tag(sync=True)
    tab = traitlets.Unicode("Node").tag(sync=True)
    forms = traitlets.Dict().tag(sync=True, **ipywidgets.widget_serialization)
    hasScript = traitlets.Bool(False).tag(sync=True)  # noqa: N815
    hasNumPy = traitlets.Bool(False).tag(sync=True)  # noqa: N815
    hasBlame = traitlets.Bool(False).tag(sync=True)  # noqa: N815
    isDark = traitlets.Bool(False).tag(sync=True)  # noqa: N815
    clipboard = traitlets.Dict().tag(sync=True)

    def show(self, data: Mapping[str, object]) -> None:
        """Set the traits that differ."""
        with self.hold_sync():
            for name, value in data.items():
                if getattr(self, name) is not value:
                    self.set_trait(name, value)

    def on_action(self, act: Callable[[Action], None]) -> None:
        """Call a function with each action that the page requests; ignore other messages."""

        def receive(_: object, content: object, buffers: Sequence[memoryview]) -> None:
            file = bytes(buffers[0]) if len(buffers) == 1 else None
            action = action_of(content, MESSAGES, content=file)
            if action is not None:
                act(action)

        self.on_msg(receive)
