"""Where everything stands: stages at the left, pictures in the middle, tabs at the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ipywidgets as widgets

from irviz.explorer.viewer import STATIC

_STYLES = ("explorer.css", "loops.css")


def page(
    stages: widgets.Widget,
    above: Sequence[widgets.Widget],
    found: widgets.Widget,
    pictures: Sequence[widgets.Widget],
    below: Sequence[widgets.Widget],
    tabs: Mapping[str, Sequence[widgets.Widget]],
) -> list[widgets.Widget]:
    """Return what the explorer consists of; `tabs` are the widgets of each, by its title."""
    css = "\n".join((STATIC / name).read_text(encoding="utf-8") for name in _STYLES)
    style = widgets.HTML(f"<style>{css}</style>")
    style.layout.display = "none"
    middle = widgets.VBox(
        [
            _classed(widgets.HBox(list(above)), "irviz-choices"),
            found,
            _classed(widgets.HBox(list(pictures)), "irviz-panes"),
            *below,
        ]
    )
    boxes = [one[0] if len(one) == 1 else widgets.VBox(list(one)) for one in tabs.values()]
    right = widgets.Tab(boxes, titles=tuple(tabs))
    body = widgets.Box([stages, _classed(middle, "irviz-middle"), _classed(right, "irviz-tabs")])
    return [style, _classed(body, "irviz-body")]


def _classed(widget: widgets.Widget, name: str) -> widgets.Widget:
    widget.add_class(name)
    return widget
