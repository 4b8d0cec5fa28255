"""How often which numbers occur in an array."""

from __future__ import annotations

import math
from statistics import median

from irviz.model.summary import Summary, summarise
from irviz.view.cells import Array
from irviz.view.drawing import Drawing
from irviz.view.paper import MARGIN, WIDTH, Paper, drawn, heading, paper_top
from irviz.view.words import number, numbers

_LEFT, _HEIGHT, _TICKS = 58.0, 140.0, 24.0
_MOST_UNEQUAL = 100
"""Where the highest bar is so many times the middle one, the others could not be seen."""
_LONG = 9
"""Where the words of a tick have more characters, only both ends have some."""
_ORDINARY = (1e-200, 1e200)
"""Between these matplotlib can be asked for round numbers."""


def histogram(array: Array | Summary, theme: str = "course", *, title: str = "") -> Drawing:
    """Draw the histogram of an array, or of one of which only the summary was kept.

    NaN and infinities are counted in words. Raises ValueError for an array without a finite
    number, for what is no real number, or for an unknown theme.
    """
    summary = array if isinstance(array, Summary) else summarise(array)
    if not summary.counts:
        raise ValueError(
            f"none of the numbers of an array of shape {summary.shape} is finite: there is no "
            "histogram"
        )
    lines = heading(summary.shape, summary.dtype, title, _notes(summary))
    total = paper_top(lines) + _HEIGHT + _TICKS + MARGIN

    def paint(paper: Paper) -> None:
        box = (_LEFT, paper.lines(lines), WIDTH - _LEFT - 2 * MARGIN, _HEIGHT)
        _plot(paper, summary, box)

    label = f"histogram of {' '.join(text for text, _ in lines)}"
    return drawn(WIDTH, total, theme, label, paint)


def _notes(summary: Summary) -> list[str]:
    notes = []
    if summary.mean is not None and summary.std is not None:
        notes.append(f"mean {number(summary.mean)}, standard deviation {number(summary.std)}")
    counted = [(summary.nans, "NaN"), (summary.infs, "Inf")]
    missing = [f"{count:,} {name}" for count, name in counted if count]
    if missing:
        notes.append(f"{' and '.join(missing)} not counted")
    if _is_logarithmic(summary):
        notes.append("the counts are on a logarithmic scale")
    return notes


def _is_logarithmic(summary: Summary) -> bool:
    counted = [count for count in summary.counts if count]
    return max(counted) > _MOST_UNEQUAL * median(counted)


def _plot(paper: Paper, summary: Summary, box: tuple[float, float, float, float]) -> None:
    """Draw the bars, one unit wide each: the numbers themselves may be too large to be placed."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    axes = paper.axes(*box)
    _, colour = paper.theme.colours["operator"]
    bins, most = len(summary.counts), max(summary.counts)
    is_logarithmic = _is_logarithmic(summary)
    floor = 0.5 if is_logarithmic else 0.0
    heights = [max(count, floor) for count in summary.counts]
    if is_logarithmic:
        axes.set_yscale("log")
        powers = range(math.ceil(math.log10(most)) + 1)
        axes.yaxis.set_major_locator(FixedLocator([10.0**power for power in powers]))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    axes.stairs(heights, range(bins + 1), baseline=floor, fill=True, color=colour)
    axes.set(xlim=(0, bins), ylim=(floor, most * (1.5 if is_logarithmic else 1.06)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.spines[["top", "right"]].set_visible(False)
    ticks = _ticks(summary.edges[0], summary.edges[-1])
    axes.set_xticks([share * bins for share, _ in ticks], [words for _, words in ticks])
    if max(len(words) for _, words in ticks) > _LONG:  # these would run out of the picture
        first, *_, last = axes.get_xticklabels()
        first.set_horizontalalignment("left")
        last.set_horizontalalignment("right")


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers between two, each with its place from 0 to 1."""
    from matplotlib.ticker import MaxNLocator

    least, most = _ORDINARY
    found = [low, high]
    if least < high - low and max(abs(low), abs(high)) < most:
        ticks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
        found = [float(tick) for tick in ticks if low <= tick <= high]
    words = numbers(found)
    if max(map(len, words)) > _LONG:
        found = [low, high]
        words = numbers(found)
    width = high / 2 - low / 2  # the whole may be too large to be a number
    return [((t / 2 - low / 2) / width, word) for t, word in zip(found, words, strict=True)]
