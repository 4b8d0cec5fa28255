"""The diff of two modules, which displays itself as text and as pictures.

A picture is before, an arrow with the transform, and after.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, get_args
from xml.etree import ElementTree

from irviz.errors import DrawError, NotFoundError
from irviz.model.diff.diff_result import (
    ChangeKind,
    FunctionDiff,
    ModuleDiff,
    diff_part,
    functions_with,
)
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import NodeId
from irviz.view import svg_primitives as svg
from irviz.view.diff_text import diff_text
from irviz.view.figure import Figure
from irviz.view.graph.change_marks import LEGEND, SideChanges, draw_sign, signs_of
from irviz.view.graph.graph_figure import Direction, PlacedGraph, draw_scene
from irviz.view.graph.nodes_and_edges import SceneGeometry
from irviz.view.graph.side_by_side_layout import PlacedDiff, place_diff
from irviz.view.loop_nest_figure import draw_loop_nest_diff
from irviz.view.svg_primitives import Point, Size, path
from irviz.view.theme import Theme, ThemeName, get_theme

if TYPE_CHECKING:
    from typing_extensions import Unpack  # of Python 3.11


DiffLayout = Literal["beside", "above"]
"""Where the picture before is: to the left of the one after, or above it."""

_MARGIN = 20.0
_TITLE_SIZE, _TEXT_SIZE, _LEGEND_SIZE = 15.0, 12.0, 11.0
_TITLE_HEIGHT = 30.0
_ARROW_GAP = 14.0
_MAX_SECTIONS = 6
_MIN_NOTE, _MIN_TITLE = 400.0, svg.text_width("0", _TITLE_SIZE) * svg.MAX_CHARACTERS
_MAX_CHARACTERS = 400
_REDUCTION = "(R)"
_EDGE_SIGNS = {"added": "+", "removed": "−"}


def drawn_functions(functions: Sequence[FunctionDiff], name: str = "") -> list[FunctionDiff]:
    """Return the functions that differ and can be drawn, those of Relax first.

    A function that differs only in calling changed functions is left out if these are drawn.

    Raises:
        NotFoundError: There is no function of this name.
    """
    drawable = [one for one in functions if one.loops is not None or None not in one.graphs]
    if name:
        found = [one for one in drawable if name in (one.before, one.after)]
        if not found:
            known = ", ".join(repr(one.name) for one in drawable) or "none"
            raise NotFoundError(f"no function {name!r} can be drawn; those that can are {known}")
        return found
    return [one for one in drawable if one.loops is not None or one.changed_nodes]


class _Painter:
    """Draws one part below the other."""

    def __init__(
        self,
        diff: ModuleDiff,
        theme: Theme,
        layout: DiffLayout,
        direction: Direction,
        expansion: Expansion | None,
    ) -> None:
        self.diff, self.theme, self.layout = diff, theme, layout
        self.direction, self.expansion = direction, expansion
        place = f"translate({svg.px(_MARGIN)} {svg.px(_MARGIN)})"
        self.picture = ElementTree.Element("g", transform=place)
        self.y = self.width = 0.0
        self.signs: set[str] = set()
        self.has_pale = False

    def draw(
        self, functions: Sequence[FunctionDiff], notes: Sequence[str], *, overlay: bool
    ) -> Figure:
        """Draw functions one below the other, and notes below them that say what is left out."""
        for one in functions[:_MAX_SECTIONS]:
            if len(functions) > 1:
                self.heading(one)
            if one.loops is not None:
                self.loops(one)
            else:
                self.graphs(one, overlay=overlay)
        rest = ", ".join(one.name for one in functions[_MAX_SECTIONS:])
        for note in (f"not drawn: {rest}" if rest else "", *notes):
            if note:
                self.note(note)
        width = draw_sign_legend(
            self.picture, self.signs, (0.0, self.y + 6), self.theme, has_pale=self.has_pale
        )
        self._grow(width, 24.0)
        size = Size(self.width + 2 * _MARGIN, self.y + 2 * _MARGIN)
        label = f"{self.diff.before} and {self.diff.after}"
        root = svg.svg_document(size, "diff", label, self.theme)
        root.append(self.picture)
        return Figure(svg.svg_text(root), size.width, size.height)

    def heading(self, function: FunctionDiff) -> None:
        """Write the name of a function."""
        name = function.name
        if function.before and function.before != name:
            name = f"{function.before} → {name}"
        at = (0.0, self.y + 14)
        svg.add_text(
            self.picture, name, at, _TITLE_SIZE, self.theme.quiet_text, "start", font_weight="600"
        )
        self.y += _TITLE_HEIGHT

    def note(self, text: str) -> None:
        """Write a line, at most as wide as the pictures."""
        text = _fitting(text, max(self.width, _MIN_NOTE), _TEXT_SIZE)
        at = (0.0, self.y + 12)
        svg.add_text(self.picture, text, at, _TEXT_SIZE, self.theme.quiet_text, "start")
        self._grow(svg.text_width(text, _TEXT_SIZE), 22.0)

    def loops(self, function: FunctionDiff) -> None:
        """Draw the loop nests before and after side by side."""
        assert function.loops is not None
        group = svg.add(
            self.picture, "g", transform=f"translate(0 {svg.px(self.y + _TITLE_HEIGHT)})"
        )
        size = draw_loop_nest_diff(group, function.nests, function.loops, self.theme)
        self._titles(size.after, size.width)
        self.signs |= signs_in(group)
        self.has_pale = True
        self._grow(size.width, size.height + _TITLE_HEIGHT + 16)

    def graphs(self, function: FunctionDiff, *, overlay: bool) -> None:
        """Draw the graphs before and after, or both in one picture."""
        diff = place_diff(function, self.direction, self.expansion)
        for each in diff.changes:
            marks = each.marks.values()
            self.signs.update(sign for mark in marks for sign in signs_of(mark))
            self.has_pale |= bool(each.unchanged)
        if overlay:
            self._overlay(diff)
            return
        size = Size(diff.union.layout.width, diff.union.layout.height)
        words = svg.text_width(svg.shorten(self.diff.transform), _TEXT_SIZE)
        arrow = Size(max(ARROW.width, words), ARROW.height + 20)
        starts: tuple[Point, Point]
        if self.layout == "beside":
            right = size.width + arrow.width + 2 * _ARROW_GAP
            starts = (0.0, self.y + _TITLE_HEIGHT), (right, self.y + _TITLE_HEIGHT)
            self._titles(right, right + size.width)
            middle = size.width + _ARROW_GAP + arrow.width / 2
            self._arrow((middle, self.y + _TITLE_HEIGHT + size.height / 2))
            whole = Size(right + size.width, size.height + _TITLE_HEIGHT)
        else:
            below = self.y + 2 * _TITLE_HEIGHT + size.height + arrow.height + 2 * _ARROW_GAP
            starts = (0.0, self.y + _TITLE_HEIGHT), (0.0, below)
            self._title(f"before: {self.diff.before}", (0.0, self.y + 14))
            self._title(self.diff.after, (0.0, below - _TITLE_HEIGHT + 14))
            middle_y = self.y + _TITLE_HEIGHT + size.height + _ARROW_GAP + arrow.height / 2
            self._arrow((size.width / 2, middle_y))
            whole = Size(size.width, below + size.height - self.y)
        for at, (x, y) in enumerate(starts):
            group = svg.add(
                self.picture,
                "g",
                f"side {'after' if at else 'before'}",
                transform=f"translate({svg.px(x)} {svg.px(y)})",
            )
            self._side(group, diff.placed[at], diff.changes[at])
        self._grow(whole.width, whole.height + 16)

    def _side(self, group: ElementTree.Element, placed: PlacedGraph, changes: SideChanges) -> None:
        scene = SceneGeometry(placed.graph, placed.layout, placed.direction)
        self.signs.update(_EDGE_SIGNS[kind] for kind in changes.edges.values() if kind)
        draw_scene(group, placed.graph, scene, self.theme, changes=changes)

    def _overlay(self, diff: PlacedDiff) -> None:
        """Draw both stages in one picture: removed nodes as before, all others as after."""
        union = diff.union
        self._title(f"{self.diff.before} → {self.diff.after}", (0.0, self.y + 14))
        at = svg.px(self.y + _TITLE_HEIGHT)
        group = svg.add(self.picture, "g", "side both", transform=f"translate(0 {at})")
        self._side(group, union, diff.changes_of_both())
        self._grow(union.layout.width, union.layout.height + _TITLE_HEIGHT + 16)

    def _titles(self, right: float, end: float) -> None:
        """Write both titles; the first one ends before the second begins, which ends at `end`."""
        self._title(f"before: {self.diff.before}", (0.0, self.y + 14), right - 2 * _ARROW_GAP)
        at = (right, self.y + 14)
        self._title(self.diff.after, at, max(end - right, _MIN_TITLE))

    def _title(self, text: str, at: Point, room: float = _MIN_TITLE) -> None:
        text = _fitting(" ".join(text.split()), room, _TITLE_SIZE)
        style = {"font_weight": "600"}
        svg.add_text(self.picture, text, at, _TITLE_SIZE, self.theme.text, "start", **style)
        self.width = max(self.width, at[0] + svg.text_width(text, _TITLE_SIZE))

    def _arrow(self, centre: Point) -> None:
        """Draw a fat arrow with the name of the transform."""
        x, y = centre
        group = svg.add(self.picture, "g", "transform")
        text = svg.shorten(self.diff.transform)
        if self.layout == "beside":
            draw_fat_arrow(group, centre, self.theme.line, "right")
            place, anchor = (x, y - ARROW.height / 2 - 8), "middle"
        else:
            draw_fat_arrow(group, centre, self.theme.line, "below")
            place, anchor = (x + ARROW.height / 2 + 8, y + 4), "start"
        svg.add_text(group, text, place, _TEXT_SIZE, self.theme.text, anchor, font_weight="600")

    def _grow(self, width: float, height: float) -> None:
        self.width, self.y = max(self.width, width), self.y + height


def draw_sign_legend(
    parent: ElementTree.Element,
    signs: Collection[str],
    corner: Point,
    theme: Theme,
    say: Callable[[str], str] = str,
    *,
    has_pale: bool,
) -> float:
    """Draw a legend of signs, reduction axes and pale rows in a line; return its width."""
    group = svg.add(parent, "g", "legend")
    start, y = corner
    x = start

    def write(text: str) -> None:
        nonlocal x
        svg.add_text(group, text, (x, y + 11.5), _LEGEND_SIZE, theme.text, "start")
        x += svg.text_width(text, _LEGEND_SIZE) + 20

    for sign, (_, meaning) in LEGEND.items():
        if sign in signs:
            x += draw_sign(group, sign, (x, y), theme).width + 6
            write(say(meaning))
    if _REDUCTION in signs:
        write(say("(R): reduction axis"))
    if has_pale:
        write(say("pale: unchanged"))
    return x - start


def signs_in(picture: ElementTree.Element) -> set[str]:
    """Return the signs in the picture of a loop nest, with `(R)` if it has a reduction axis."""
    words = (one.text or "" for one in picture.iter("text") if one.get("class") == "sign")
    found = {word[:1] for word in words}
    return found | {_REDUCTION} if _REDUCTION in "".join(picture.itertext()) else found


def _fitting(text: str, room: float, size: float) -> str:
    """Return as much of a text as fits a width, at most 400 characters."""
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}…"
    while svg.text_width(text, size) > room and len(text) > 1:
        text = f"{text[:-2]}…"
    return text


# --- The fat arrow between two pictures, which stands for a transform -----------------------------


ARROW = Size(56.0, 30.0)
"""The length and the width of an arrow."""


def draw_fat_arrow(
    parent: ElementTree.Element, centre: Point, colour: str, towards: Literal["right", "below"]
) -> None:
    """Draw an arrow around its centre."""
    x, y = centre
    half, high = ARROW.width / 2, ARROW.height / 2
    if towards == "right":
        outline = path(
            "M", x - half, y - high / 2, "h", half * 1.1, "v", -high / 2, "L", x + half, y,
            "L", x - half + half * 1.1, y + high, "v", -high / 2, "h", -half * 1.1, "Z",
        )  # fmt: skip
    else:
        outline = path(
            "M", x - high / 2, y - half * 0.8, "v", half * 0.8, "h", -high / 2, "L", x,
            y + half * 0.8, "L", x + high, y, "h", -high / 2, "v", -half * 0.8, "Z",
        )  # fmt: skip
    svg.add(parent, "path", d=outline, fill=colour)


# --- The diff, as text and as pictures ------------------------------------------------------------


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
        return diff_text(self, colour=colour)

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
        chosen = drawn_functions(self.functions, function)
        if around:
            end = NodeId(to) if to else None
            there = functions_with(chosen, around)
            chosen = [diff_part(one, NodeId(around), steps, end) for one in there]
        colours = get_theme(theme)
        if layout not in get_args(DiffLayout):
            raise DrawError(f"there is no layout {layout!r}; choose 'beside' or 'above'")
        if not chosen:
            raise DrawError("nothing differs that could be drawn; print the text of the diff")
        painter = _Painter(self, colours, layout, direction, expansion)
        return painter.draw(chosen, notes, overlay=overlay)

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
    for change in (ChangeKind.ADDED, ChangeKind.REMOVED):
        names = [one.name for one in functions if one.change is change]
        if names:
            found.append(f"functions {change.value}: {', '.join(names[:_MOST_NAMED])}")
    return tuple(found)
