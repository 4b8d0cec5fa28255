"""The static picture that a notebook shows of an explorer without a kernel."""

from __future__ import annotations

import base64

from IPython.display import DisplayHandle, display

from irviz.explorer.runner import Runner
from irviz.explorer.shown_figure import shown_figure
from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.state import State
from irviz.explorer.viewer_traits import title
from irviz.view.templating import render

_MOST_STAGES = 60
_SECONDS = 0.3
"""The picture is drawn after this much idle time."""


class StillPicture:
    """An output of a cell that the notebook saves; the widget hides it while it is live.

    Attributes:
        name: The CSS class by which the widget finds it.
    """

    def __init__(self, model_id: str, runner: Runner) -> None:
        self.name = f"irviz-still-{model_id}"
        self._output: DisplayHandle | None = None
        self._runner = runner

    def show(self, state: State) -> None:
        """Add it to the output of the cell that is run."""
        content = still_bundle(state, self.name)
        self._output = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def update(self, state: State, before: State) -> None:
        """Draw the current picture soon, unless the user continues."""
        parts = (state.session, state.function, state.reference, state.view)
        is_same = parts == (before.session, before.function, before.reference, before.view)
        if self._output is not None and not is_same:
            self._runner.replace(
                self, lambda _: still_bundle(state, self.name), self._replace, delay=_SECONDS
            )

    def _replace(self, content: dict[str, str]) -> None:
        assert self._output is not None, "it was shown"
        self._output.update(content, raw=True)  # type: ignore[no-untyped-call]


def still_bundle(state: State, name: str) -> dict[str, str]:
    """Return the picture as SVG, and in HTML with the stages.

    Args:
        name: The CSS class of the picture.
    """
    words = _words(state, name)
    try:
        svg = shown_figure(state).svg
        picture = base64.b64encode(svg.encode()).decode()
    except Exception as failure:  # the page says the same in the place of the picture
        return {"text/html": render("still", **words, picture="", why=failure)}
    html = render("still", **words, picture=picture, why="")
    rows = stage_rows(state)[:_MOST_STAGES]
    plain = ", ".join(f"{row['id']} {row['label']}" for row in rows)
    return {"text/html": html, "image/svg+xml": svg, "text/plain": f"irviz: stages {plain}"}


def _words(state: State, name: str) -> dict[str, object]:
    rows = stage_rows(state)
    return {
        "name": name,
        "title": title(state.session),
        "function": state.function,
        "rows": rows[:_MOST_STAGES],
        "more": max(len(rows) - _MOST_STAGES, 0),
        "reference": state.reference,
    }
