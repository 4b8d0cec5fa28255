"""What a notebook shows of an explorer where no kernel runs: the last picture, with the stages."""

from __future__ import annotations

import base64

from irviz.explorer.shown_figure import shown_figure
from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.state import State
from irviz.explorer.viewer_traits import title
from irviz.view.templating import render

_MOST_STAGES = 60


def still_bundle(state: State, model_id: str) -> dict[str, str]:
    """Return the picture as SVG, and in HTML with the stages.

    Args:
        model_id: The id of the widget, which hides the picture while it is there.
    """
    rows = stage_rows(state)
    try:
        svg = shown_figure(state).svg
        picture = base64.b64encode(svg.encode()).decode()
    except Exception as failure:  # the page says the same in the place of the picture
        return {"text/html": render("still", **_words(state, model_id), picture="", why=failure)}
    html = render("still", **_words(state, model_id), picture=picture, why="")
    words = ", ".join(f"{row['id']} {row['label']}" for row in rows[:_MOST_STAGES])
    return {"text/html": html, "image/svg+xml": svg, "text/plain": f"irviz: stages {words}"}


def _words(state: State, model_id: str) -> dict[str, object]:
    rows = stage_rows(state)
    return {
        "model": model_id,
        "title": title(state.session),
        "function": state.function,
        "rows": rows[:_MOST_STAGES],
        "more": max(len(rows) - _MOST_STAGES, 0),
        "reference": state.reference,
    }
