"""The controls that all panels are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

from irviz.view.templating import escape


def field(
    kind: type[widgets.Widget],
    name: str,
    words: str = "",
    *,
    width: str | None = "auto",
    is_aligned: bool = False,
    **options: Any,
) -> Any:
    """Return a control with a CSS class and description, by default as wide as possible.

    The description is as wide as its text, or, if it `is_aligned`, as those of its neighbours.
    """
    style = {} if is_aligned else {"style": {"description_width": "initial"}}
    # a layout of its own: to hide one widget is not to hide another
    layout = widgets.Layout(width=width)
    return classed(kind(description=words, layout=layout, **style, **options), name)


def button(
    text: str, tooltip: str, act: Callable[[], object], icon: str = "", name: str = ""
) -> widgets.Button:
    """Return a button as wide as its label that calls `act`; `name` is its CSS class."""
    layout = widgets.Layout(width="auto")
    made = widgets.Button(description=text, tooltip=tooltip, icon=icon, layout=layout)
    made.on_click(lambda _: act())
    return classed(made, name)


def html(name: str) -> widgets.HTML:
    """Return an empty HTML widget with a CSS class."""
    return classed(widgets.HTML(), name)


def heading(text: str) -> widgets.HTML:
    """Return the heading of a part of a tab."""
    return widgets.HTML(f"<h3>{escape(text)}</h3>")


def classed(widget: widgets.Widget, name: str) -> Any:
    """Give a widget a CSS class, unless that is "", and return it."""
    return widget.add_class(name) if name else widget


def paragraph(text: str, kind: str = "", role: str = "") -> str:
    """Return text as an HTML paragraph with a class and a role; "" for no text."""
    marks = "".join(
        f' {name}="{value}"' for name, value in (("role", role), ("class", kind)) if value
    )
    return f"<p{marks}>{escape(text)}</p>" if text else ""


def show_if(widget: widgets.Widget, is_shown: bool) -> None:
    """Show a widget, or hide it and free its space."""
    widget.layout.display = "" if is_shown else "none"


def offer(
    dropdown: widgets.Dropdown | widgets.Select, options: Sequence[object], value: object
) -> None:
    """Set the options of a control and its value, if they differ."""
    wanted = tuple(options)
    # in one message: a reader who chose between two of them would lose the choice
    with dropdown.hold_sync():
        if tuple(dropdown.options) != wanted:
            dropdown.index = None
            dropdown.options = wanted
        if dropdown.value != value or (dropdown.index is None and value is not None):
            dropdown.value = value
