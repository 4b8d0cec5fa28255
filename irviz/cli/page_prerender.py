"""Prerender the explorer for the document of the page, until its script has run."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from irviz.view.theme import system_css

if TYPE_CHECKING:
    from irviz.explorer.explorer import Explorer


def initial_picture(explorer: Explorer) -> dict[str, object]:
    """Return the values for the page's template."""
    sides = [explorer.scene.get(side) for side in ("reference", "current")]
    return {
        "model": explorer.model_id,
        "title": explorer.title,
        "rows": explorer.rows,
        "pictures": [_picture(side) for side in sides if side and side["svg"]],
    }


def _picture(side: dict[str, Any]) -> dict[str, str]:
    """Return a picture's label and data URL; an image runs no scripts, whatever it contains."""
    start, closed, rest = side["svg"].partition(">")
    svg = f"{start}{closed}<style>{system_css()}</style>{rest}"
    data = base64.b64encode(svg.encode()).decode()
    return {"label": side["label"], "address": f"data:image/svg+xml;base64,{data}"}
