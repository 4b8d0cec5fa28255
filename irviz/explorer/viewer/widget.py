"""The widget that displays the explorer's data in the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import anywidget
import ipywidgets
import traitlets

from irviz.explorer.actions import Action
from irviz.explorer.viewer import STATIC
from irviz.explorer.viewer.schema import ViewerTraits, action_of


def synced_traits(declared: type) -> dict[str, Any]:
    """Return the traits that a class declares by annotations and defaults, shared with the page."""
    return {
        name: _trait(hint, getattr(declared, name, traitlets.Undefined)).tag(sync=True)
        for name, hint in get_type_hints(declared).items()
    }


def _trait(hint: Any, default: Any = traitlets.Undefined) -> Any:
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin is list:
        # a list whose elements are checked is copied, which takes time for many records
        element = None if is_typeddict(arguments[0]) else _trait(arguments[0])
        return traitlets.List(element, default_value=default)
    if origin is Literal:
        return traitlets.Enum(arguments, default_value=default)
    return _KINDS.get(origin, traitlets.Dict)(default_value=default)


_KINDS: Mapping[object, Callable[..., Any]] = {
    str: traitlets.Unicode,
    bool: traitlets.Bool,
    int: partial(traitlets.Int, min=0),
}
_TRAITS = synced_traits(ViewerTraits)
_TRAITS["forms"].tag(**ipywidgets.widget_serialization)


class Viewer(anywidget.AnyWidget, ViewerTraits):
    """Displays its data, and reports the actions that the user requests."""

    _esm: Path | str = STATIC / "viewer.js"
    _css = STATIC / "viewer.css"

    locals().update(_TRAITS)

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
            if (action := action_of(content, file)) is not None:
                act(action)

        self.on_msg(receive)
