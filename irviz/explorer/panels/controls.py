"""The controls that all panels are made of."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets as widgets
from markupsafe import escape


def wide() -> widgets.Layout:
    """Return a layout as wide as there is room; each widget wants one of its own."""
    return widgets.Layout(width="auto")


def wide_field() -> dict[str, object]:
    """Return the layout and style of a field as wide as there is room, beside its whole words."""
    return {"layout": wide(), "style": {"description_width": "initial"}}


def button(text: str, tooltip: str, icon: str = "", name: str = "") -> widgets.Button:
    """Return a button as wide as its words; `name` is its class on the page."""
    made = widgets.Button(description=text, tooltip=tooltip, icon=icon, layout=wide())
    if name:
        made.add_class(name)
    return made


def heading(text: str) -> widgets.HTML:
    """Return the heading of a part of a tab."""
    return widgets.HTML(f"<h4>{escape(text)}</h4>")


def paragraph(text: str, kind: str = "", role: str = "") -> str:
    """Return words as a paragraph of HTML with a class and a role; "" for no words."""
    marks = "".join(
        f' {name}="{value}"' for name, value in (("role", role), ("class", kind)) if value
    )
    return f"<p{marks}>{escape(text)}</p>" if text else ""


def show_if(widget: widgets.Widget, is_shown: bool) -> None:
    """Show a widget, or hide it with the room that it takes."""
    widget.layout.display = "" if is_shown else "none"


def offer(
    dropdown: widgets.Dropdown | widgets.Select, options: Sequence[object], value: object
) -> None:
    """Change what is offered, and what of it is chosen, where these differ."""
    wanted = tuple(options)
    if tuple(dropdown.options) != wanted:
        dropdown.index = None
        dropdown.options = wanted
    if dropdown.value != value or (dropdown.index is None and value is not None):
        dropdown.value = value
