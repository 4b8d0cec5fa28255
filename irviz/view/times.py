"""How long stages take beside each other, as a table and in words."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from irviz.model.measurement import HERE, Measurement, Spread, Timing
from irviz.view.badge import duration

_HEADS = ("stage", "made by", "median of a call", "95 % interval", "as fast as the first")


@dataclass(frozen=True)
class Times:
    """A measurement that shows itself as text and, in a notebook, as HTML."""

    measurement: Measurement

    def ratio(self, stage: str) -> Spread:
        """Return how many times as fast as the first a stage is: above 1 is faster."""
        return self.measurement.ratio(stage)

    def is_clear(self, stage: str) -> bool:
        """Tell whether a stage differs from the first by more than the noise of the machine."""
        return self.measurement.is_clear(stage)

    def __str__(self) -> str:
        """Return the table as lines of text."""
        rows = [_HEADS, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        ]
        return "\n".join([*(line.rstrip() for line in lines), *self._remarks()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(text)}</th>" for text in _HEADS)
        body = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
            for row in self._rows()
        )
        kind = 'class="irviz-times"'
        remarks = "".join(f"<p>{escape(words)}</p>" for words in self._remarks())
        table = f"<table {kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return table + remarks

    def _remarks(self) -> list[str]:
        clock = self.measurement.clock
        return [] if clock == HERE else [f"measured by the clock of {clock}"]

    def _rows(self) -> list[tuple[str, ...]]:
        timings = self.measurement.timings
        return [
            (
                timing.stage,
                timing.label,
                duration(timing.spread.median),
                f"{duration(timing.spread.low)} to {duration(timing.spread.high)}",
                "" if timing is timings[0] else self._ratio_words(timing),
            )
            for timing in timings
        ]

    def _ratio_words(self, timing: Timing) -> str:
        """Say how many times as fast as the first it is, or that noise hides the difference."""
        ratio = self.ratio(timing.stage)
        words = f"{ratio.median:.2f}× ({ratio.low:.2f} to {ratio.high:.2f})"
        return words if self.is_clear(timing.stage) else f"{words}, within the noise"
