"""The times of passes, which display themselves as a table and as a flame graph."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from irviz.atomic_write import atomic_write, target_path
from irviz.model.runs.timed_pass import TimedPass
from irviz.units import format_duration
from irviz.view.bidi_escapes import visible
from irviz.view.figure import Figure
from irviz.view.flame_graph import flame_graph
from irviz.view.text.tables import Table
from irviz.view.theme import ThemeName

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
        count: dict[str, int] = defaultdict(int)
        own: dict[str, float] = defaultdict(float)
        total: dict[str, float] = defaultdict(float)
        around: list[str] = []
        for depth, one in self.root.walk():
            del around[depth:]
            name = one.name if depth else _OUTSIDE
            count[name] += 1
            own[name] += one.own
            if name not in around:
                total[name] += one.seconds if depth else one.own
            around.append(name)
        rows = [TimeOfPasses(name, count[name], own[name], total[name]) for name in count]
        return tuple(sorted(rows, key=lambda row: -row.own))

    def __str__(self) -> str:
        """Return a table of the passes with the longest own time."""
        return self._table().text()

    __repr__ = __str__

    def _table(self) -> Table:
        rows, all_of_it = self.by_name, self.root.seconds
        shown = [
            (
                visible(" ".join(row.name.split())),
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
        """Draw a flame graph: a bar for each pass, below that of the pass that ran it.

        Raises:
            DrawError: There is no such theme.
        """
        return flame_graph(self.root, theme)

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
