"""The times of passes, which display themselves as a table and as a flame graph."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from irviz.safe_files import atomic_write, target_path
from irviz.units import format_duration
from irviz.view import svg_primitives as svg
from irviz.view.figure import Figure
from irviz.view.run_result_html import Table
from irviz.view.svg_primitives import Rect, Size
from irviz.view.theme import ThemeName, get_theme

SUFFIXES = (".json", ".svg", ".pdf", ".png")
_MOST_ROWS = 15
_OUTSIDE = "(outside of passes)"
_NANOSECONDS = 1_000_000_000


class TimeOfPasses(NamedTuple):
    """For the passes of one name, the number of runs, and own and total time in seconds."""

    name: str
    runs: int
    own: float
    total: float


@dataclass(frozen=True)
class TimedPass:
    """A pass, or a block that ran passes.

    Attributes:
        start: When it began, in seconds since the first one did.
        seconds: How long it took, with the passes inside it.
        children: The passes inside it, in the order in which they ran.
        error: Why it failed, "" where it did not.
        stage: The stage of a session that it made, "" where that is not known.
    """

    name: str
    start: float
    seconds: float
    children: tuple[TimedPass, ...] = ()
    is_changed: bool = False
    error: str = ""
    stage: str = ""

    @property
    def own(self) -> float:
        """The seconds that it took itself, without the passes inside it."""
        return max(self.seconds - sum(one.seconds for one in self.children), 0.0)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, TimedPass]]:
        """Yield it and all inside it in the order in which they began, with how deep they are."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


@dataclass(frozen=True, repr=False)
class PassTimes:
    """The times of nested passes.

    Attributes:
        root: The block that ran them; its own time is the time spent outside of passes.
    """

    root: TimedPass

    @property
    def by_name(self) -> tuple[TimeOfPasses, ...]:
        """The times of passes by name, longest own time first.

        Own times add up to the time of the block. In totals, a pass that runs itself is counted
        once.
        """
        rows: dict[str, TimeOfPasses] = {}
        around: list[str] = []
        for depth, one in self.root.walk():
            del around[depth:]
            name, seconds = (one.name, one.seconds) if depth else (_OUTSIDE, one.own)
            _, runs, own, total = rows.get(name, (name, 0, 0.0, 0.0))
            if name not in around:
                total += seconds
            rows[name] = TimeOfPasses(name, runs + 1, own + one.own, total)
            around.append(name)
        return tuple(sorted(rows.values(), key=lambda row: -row.own))

    def __str__(self) -> str:
        """Return a table of the passes with the longest own time."""
        return self._table().text()

    __repr__ = __str__

    def _table(self) -> Table:
        rows, all_of_it = self.by_name, self.root.seconds
        shown = [
            (
                svg.visible(" ".join(row.name.split())),
                str(row.runs) if row.name != _OUTSIDE else "",
                format_duration(row.own),
                f"{row.own / all_of_it:.1%}" if all_of_it else "",
                format_duration(row.total),
            )
            for row in rows[:_MOST_ROWS]
        ]
        rest = rows[_MOST_ROWS:]
        if rest:
            own = sum(row.own for row in rest)
            share = f"{own / all_of_it:.1%}" if all_of_it else ""
            names = f"{len(rest)} more", str(sum(row.runs for row in rest))
            shown.append((*names, format_duration(own), share, ""))
        sum_of_all = f"all together: {format_duration(all_of_it)}"
        return Table(("pass", "runs", "own time", "share", "total"), shown, remarks=[sum_of_all])

    def figure(self, theme: ThemeName = "course") -> Figure:
        """Draw a flame graph: a bar for each pass, from left to right in the order they ran in.

        The part of a bar without others below it is the pass's own time. Time outside of passes is
        given in the title and takes no width, because it is often most of the time. Passes that
        changed the module are coloured, passes that failed have a thick outline.

        Raises:
            DrawError: There is no such theme.
        """
        return _FlameGraph(self.root, theme).draw()

    def to_trace_events(self) -> dict[str, object]:
        """Return the times in the trace-event format, which Perfetto and speedscope read.

        Each pass is a complete event whose start and duration are in microseconds, to the
        nanosecond. Events are sorted by start; a nested pass comes after the one around it and ends
        no later. The category tells whether the pass changed the module. Only a failed pass has
        arguments, because speedscope appends them to the name by which it sums up runs of the same
        pass.
        """
        events: list[Mapping[str, object]] = [
            _event("M", "process_name", args={"name": "irviz"}),
            _event("M", "thread_name", args={"name": "passes"}),
        ]
        for depth, one in self.root.walk():
            begin, end = (round(at * _NANOSECONDS) for at in (one.start, one.start + one.seconds))
            category = "changed the module" if one.is_changed else "changed nothing"
            args = {"args": {"error": one.error}} if one.error else {}
            times = {"ts": begin / 1000, "dur": (end - begin) / 1000}
            events.append(
                _event("X", one.name, cat=category if depth else "block", **times, **args)
            )
        return {"traceEvents": events, "displayTimeUnit": "ns"}

    def save(self, path: str | os.PathLike[str], theme: ThemeName = "course") -> Path:
        """Write trace events to a .json file, or the flame graph to a .svg, .pdf or .png file.

        Raises:
            SaveError: The file name has another suffix, or the file cannot be written.
            DrawError: There is no such theme.

        Example:
            ```python
            recording.pass_times().save("passes.json")  # open it at ui.perfetto.dev
            ```
        """
        target = target_path(path, SUFFIXES)
        if target.suffix.lower() != ".json":
            return self.figure(theme).save(target)
        text = json.dumps(self.to_trace_events(), indent=1)
        with atomic_write(target) as partial:
            partial.write_text(text + "\n", encoding="utf-8")
        return target

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Show the flame graph in a notebook, or the table where pictures are not supported."""
        return {"text/plain": str(self), "image/svg+xml": self.figure().svg}


def _event(phase: str, name: str, **fields: object) -> Mapping[str, object]:
    return {"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": 0, **fields}


# --- The flame graph of passes: a bar for each, as wide as its time, below that of its caller -----


_WIDTH, _MARGIN, _TOP, _ROW, _GAP = 1180.0, 12.0, 44.0, 24.0, 2.0
_FONT_SIZE = 11.0
_PADDING = 5.0
_LEAST_WIDTH = 0.25
"""The width below which a bar is left out; what is inside it is narrower still."""
_LEAST_NAME = 4


class _FlameGraph:
    """The parts of the picture; x is time without gaps, y the depth of nesting."""

    def __init__(self, root: TimedPass, theme: str) -> None:
        self._theme = get_theme(theme)
        self._seconds = sum(one.seconds for one in root.children)
        self._scale = (_WIDTH - 2 * _MARGIN) / self._seconds if self._seconds else 0.0
        self._bars: list[tuple[Rect, TimedPass]] = []
        self._place(root.children, _MARGIN, _TOP)
        bottom = max((rect.bottom for rect, _ in self._bars), default=_TOP)
        count = sum(1 for _ in root.walk()) - 1
        passes = f"{count} pass{'es' * (count != 1)}, {format_duration(self._seconds)}"
        rest = (
            f" of {format_duration(root.seconds)}" if self._seconds < 0.999 * root.seconds else ""
        )
        left_out = count - len(self._bars)
        narrow = f"; {left_out} too short to draw" if left_out else ""
        self._title = f"{passes}{rest}{narrow}"
        self._size = Size(_WIDTH, bottom + _MARGIN)
        self._root = svg.svg_document(self._size, "flame-graph", self._title, self._theme)

    def _place(self, passes: Sequence[TimedPass], left: float, top: float) -> None:
        """Place passes side by side, with nested ones below."""
        for one in passes:
            width = one.seconds * self._scale
            if width >= _LEAST_WIDTH:
                self._bars.append((Rect(left, top, left + width, top + _ROW - _GAP), one))
                self._place(one.children, left, top + _ROW)
            left += width

    def draw(self) -> Figure:
        self._draw_legend()
        for rect, one in self._bars:
            self._draw_bar(rect, one)
        return Figure(svg.svg_text(self._root), self._size.width, self._size.height)

    def _draw_legend(self) -> None:
        svg.add_text(self._root, self._title, (_MARGIN, 26), 12, self._theme.text, "start")
        x = _WIDTH - _MARGIN
        for words, is_changed in (("changed nothing", False), ("changed the module", True)):
            x -= svg.text_width(words, _FONT_SIZE)
            svg.add_text(self._root, words, (x, 26), _FONT_SIZE, self._theme.quiet_text, "start")
            x -= 18
            fill, stroke = self._colours(is_changed=is_changed)
            svg.add_rect(self._root, Rect(x, 17, x + 12, 29), fill=fill, stroke=stroke)
            x -= 16

    def _colours(self, *, is_changed: bool) -> tuple[str, str]:
        return self._theme.colours["operator" if is_changed else "group"]

    def _draw_bar(self, rect: Rect, one: TimedPass) -> None:
        fill, stroke = self._colours(is_changed=one.is_changed)
        if one.error:
            stroke = self._theme.flag
        group = svg.add(self._root, "g", "pass")
        group.set("data-pass", svg.printable(one.name))
        svg.add_tooltip(group, self._tooltip(one))
        thickness = 2.0 if one.error else min(1.0, rect.width / 4)
        svg.add_rect(group, rect, fill=fill, stroke=stroke, stroke_width=thickness)
        self._draw_name(group, one, rect)

    def _draw_name(self, group: ElementTree.Element, one: TimedPass, rect: Rect) -> None:
        """Write the name and time, or the name, or the start of it: as much as fits."""
        name, space = " ".join(one.name.split()), rect.width - 2 * _PADDING
        longest = int(space / svg.text_width("m", _FONT_SIZE))
        texts = [f"{name} {format_duration(one.seconds)}", name]
        if longest > _LEAST_NAME:
            texts.append(f"{name[: longest - 1]}…")
        text = next((each for each in texts if svg.text_width(each, _FONT_SIZE) <= space), "")
        if text:
            place = rect.left + _PADDING, rect.top + 15
            svg.add_text(group, text, place, _FONT_SIZE, self._theme.text, "start")

    def _tooltip(self, one: TimedPass) -> str:
        share = one.seconds / self._seconds
        lines = [one.name, f"{format_duration(one.seconds)}, {share:.1%} of all passes"]
        if one.children:
            lines.append(f"{format_duration(one.own)} of it outside of the passes inside it")
        return "\n".join([*lines, *filter(None, [one.error])])
