"""The controls that all panels are made of."""

from __future__ import annotations

from html import escape

import ipywidgets as widgets


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


def said(text: str, kind: str = "") -> str:
    """Return words as a paragraph of HTML; `kind` is its class, "" for none."""
    words = f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"
    return words if text else ""


def show_if(widget: widgets.Widget, is_shown: bool) -> None:
    """Show a widget, or hide it with the room that it takes."""
    widget.layout.display = "" if is_shown else "none"
