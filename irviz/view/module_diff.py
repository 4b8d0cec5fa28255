"""The diff of two modules, which displays itself as text and as pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from irviz.model.diff.diff_result import (
    FunctionChange,
    FunctionDiff,
    FunctionText,
    ModuleDiff,
    diff_part,
    functions_with,
)
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import NodeId
from irviz.view.diff_figure import DiffLayout, DiffTitles, draw_diff, drawn_functions
from irviz.view.figure import Figure
from irviz.view.graph.graph_figure import Direction
from irviz.view.text.diff_text import diff_text
from irviz.view.theme import ThemeName

if TYPE_CHECKING:
    from typing_extensions import Unpack  # of Python 3.11


_MOST_NAMED = 40
_NOTEBOOK_WIDTH = 1100
"""The widest picture that an output of a notebook shows without scrolling, in px."""


class FigureOptions(TypedDict, total=False):
    """The options of `Diff.figure`."""

    around: str
    steps: int
    to: str
    theme: ThemeName
    direction: Direction
    layout: DiffLayout
    overlay: bool
    expansion: Expansion | None


@dataclass(frozen=True)
class Diff(ModuleDiff):
    """The differences between two modules, as text and as pictures; true if there are any."""

    @classmethod
    def of(cls, diff: ModuleDiff) -> Diff:
        """Return the same differences, to be shown."""
        return cls(**{one.name: getattr(diff, one.name) for one in fields(diff)})

    def __str__(self) -> str:
        """Return the diff as text, without colours."""
        return self.text()

    def text(self, *, colour: bool = False) -> str:
        """Return both modules as one TVMScript text, with signs in front of lines that differ.

        Lines are matched by the nodes that they bind, so a renamed variable does not count as a
        difference.

        Args:
            colour: Whether to colour the text for a terminal.
        """
        none: Mapping[str, FunctionText] = {}
        one, two = self.texts or (None, None)
        texts = one.functions if one else none, two.functions if two else none
        titles = self.before, self.after
        return diff_text(titles, self.functions, self.differences, texts, colour=colour)

    def figure(
        self,
        function: str = "",
        *,
        around: str = "",
        steps: int = 1,
        to: str = "",
        theme: ThemeName = "course",
        direction: Direction = "up",
        layout: DiffLayout = "beside",
        overlay: bool = False,
        expansion: Expansion | None = None,
    ) -> Figure:
        """Draw both modules, with unchanged nodes in the same place on both sides.

        A long run of unchanged nodes is drawn as one node, and large functions are folded the same
        way on both sides.

        Args:
            function: Draw only this function; by default all that differ, one below the other.
            around: A variable, to draw only the nodes at most `steps` uses away from it.
            steps: How many uses.
            to: Another variable, to draw only the paths between the two.
            theme: The colours.
            direction: Where data flows to.
            layout: Whether the module before is beside the one after, or above it.
            overlay: Whether to draw both in one picture.
            expansion: What is expanded on both sides.

        Raises:
            DrawError: No difference can be drawn, or there is no such theme, direction or layout.
            NotFoundError: There is no such function or variable, or no path, or the function
                cannot be drawn.

        Example:
            ```python
            session.diff("3", "4").figure(theme="dark")
            ```
        """
        notes = () if function or around else _one_sided(self.functions)
        titles = DiffTitles(self.before, self.after, self.transform, notes)
        chosen = drawn_functions(self.functions, function)
        if around:
            end = NodeId(to) if to else None
            there = functions_with(chosen, around)
            chosen = [diff_part(one, NodeId(around), steps, end) for one in there]
        return draw_diff(
            titles, chosen, theme, direction, layout, overlay=overlay, expansion=expansion
        )

    def save(
        self, path: str | os.PathLike[str], function: str = "", **options: Unpack[FigureOptions]
    ) -> Path:
        """Write the figure to an SVG file; the options are those of `figure`.

        Raises:
            DrawError: As in `figure`.
            NotFoundError: As in `figure`.
            SaveError: The file's name does not end in .svg, or it cannot be written.

        Example:
            ```python
            irviz.diff(before, after).save("fusion.svg", layout="above")
            ```
        """
        return self.figure(function, **options).save(path)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Show the text and the figure in a notebook, above each other if it is wide."""
        shown = {"text/plain": self.text()}
        if drawn_functions(self.functions):
            figure = self.figure()
            if figure.width > _NOTEBOOK_WIDTH:
                figure = self.figure(layout="above")
            shown["image/svg+xml"] = figure.svg
        return shown


def _one_sided(functions: Sequence[FunctionDiff]) -> tuple[str, ...]:
    """Return a line listing the functions that only one module has."""
    found = []
    for change in (FunctionChange.ADDED, FunctionChange.REMOVED):
        names = [one.name for one in functions if one.change is change]
        if names:
            found.append(f"functions {change.value}: {', '.join(names[:_MOST_NAMED])}")
    return tuple(found)
