"""Where everything stands: stages at the left, pictures in the middle, tabs at the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import ipywidgets as widgets

_STATIC = Path(__file__).parent / "static"
_STYLES = ("explorer.css", "loops.css")


def framed(
    stages: widgets.Widget,
    above: Sequence[widgets.Widget],
    found: widgets.Widget,
    panes: Sequence[widgets.Widget],
    below: Sequence[widgets.Widget],
    tabs: Mapping[str, Sequence[widgets.Widget]],
) -> widgets.VBox:
    """Compose the explorer; `tabs` are the widgets of each, by its title."""
    css = "\n".join((_STATIC / name).read_text(encoding="utf-8") for name in _STYLES)
    style = widgets.HTML(f"<style>{css}</style>")
    style.layout.display = "none"
    middle = widgets.VBox(
        [
            _classed(widgets.HBox(list(above)), "irviz-choices"),
            found,
            _classed(widgets.HBox(list(panes)), "irviz-panes"),
            *below,
        ]
    )
    boxes = [one[0] if len(one) == 1 else widgets.VBox(list(one)) for one in tabs.values()]
    right = widgets.Tab(boxes, titles=tuple(tabs))
    body = widgets.Box([stages, _classed(middle, "irviz-middle"), _classed(right, "irviz-tabs")])
    return _classed(widgets.VBox([style, _classed(body, "irviz-body")]), "irviz-explorer")


def _classed(widget: widgets.Widget, name: str) -> widgets.Widget:
    widget.add_class(name)
    return widget
