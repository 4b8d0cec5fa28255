"""The charts of an array: which of them fit its shape, and drawing one by its name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Literal, get_args

import numpy as np

from irviz.errors import DrawError
from irviz.model.runs.array_diff import ArraySummary, summarise
from irviz.units import format_number, format_numbers
from irviz.view.array_pictures import Array, heat_map, image_strip, images_shape, shares
from irviz.view.figure import Figure
from irviz.view.mpl_svg import MARGIN, WIDTH, MplCanvas, array_heading, draw_with_matplotlib

ValuePicture = Literal["heat map", "histogram", "images"]
HEAT_MAP, HISTOGRAM, IMAGES = "heat map", "histogram", "images"


def fitting_charts(shape: Sequence[int]) -> tuple[str, ...]:
    """Return the charts that fit an array of a shape, the most useful one first."""
    size = math.prod(shape)
    if not size:
        return ()
    images = images_shape(shape)
    fitting = [HEAT_MAP]
    if size > 1:
        fitting.append(HISTOGRAM)
    if images is not None:
        is_first = images[3] > 1 or len(shape) == 4  # of which a heat map shows one slice
        fitting.insert(0 if is_first else len(fitting), IMAGES)
    return tuple(fitting)


def draw_chart(
    kind: str,
    array: Array | None,
    summary: ArraySummary,
    theme: str = "course",
    *,
    index: Sequence[int] = (),
    title: str = "",
) -> Figure:
    """Draw a chart of an array, of which only the summary may have been kept.

    Args:
        kind: One of `fitting_charts`.
        index: The slice of a heat map, or the number of the first image.

    Raises:
        DrawError: For another kind, an array that is needed and was not kept, an index that does
            not fit, or an unknown theme.
    """
    if kind == HISTOGRAM:
        return histogram(summary, theme, title=title)
    if kind not in (kinds := get_args(ValuePicture)):
        raise DrawError(f"there is no picture {kind!r}: choose one of {', '.join(kinds)}")
    if array is None:
        raise DrawError(f"the value was too large to keep: fetch it for a picture of kind {kind!r}")
    if kind == IMAGES:
        return image_strip(array, theme, first=index[0] if index else 0, title=title)
    return heat_map(array, theme, index=index, title=title)


# --- Histograms of the numbers of an array --------------------------------------------------------


_LEFT, _HEIGHT, _TICKS = 58.0, 140.0, 24.0
_MAX_LINEAR_RATIO = 100
"""With a higher ratio of the highest count to the median count, low bars would be invisible."""
_MAX_TICK_LABEL = 9
"""With more characters, only the ends of the axis are labelled."""
_TICKABLE = (1e-200, 1e200)
"""The widths of ranges in which matplotlib finds round numbers."""


def histogram(array: Array | ArraySummary, theme: str = "course", *, title: str = "") -> Figure:
    """Draw the histogram of an array, or of the summary of one; NaN and infinities are notes.

    Raises:
        DrawError: For an array without a finite number, a dtype that does not hold real numbers,
            or an unknown theme.
    """
    summary = array if isinstance(array, ArraySummary) else summarise(array)
    if not summary.counts:
        raise DrawError(
            f"none of the numbers of an array of shape {summary.shape} is finite: there is no "
            "histogram"
        )
    heading = array_heading(summary.shape, summary.dtype, title, _notes(summary))

    def paint(canvas: MplCanvas, top: float) -> None:
        _plot(canvas, summary, (_LEFT, top, WIDTH - _LEFT - 2 * MARGIN, _HEIGHT))

    label = f"histogram of {heading.text}"
    return draw_with_matplotlib(heading, _HEIGHT + _TICKS, theme, label, paint)


def _notes(summary: ArraySummary) -> list[str]:
    notes = []
    if summary.mean is not None and summary.std is not None:
        notes.append(
            f"mean {format_number(summary.mean)}, standard deviation {format_number(summary.std)}"
        )
    counts = [(summary.nans, "NaN"), (summary.infs, "Inf")]
    missing = [f"{count:,} {name}" for count, name in counts if count]
    if missing:
        notes.append(f"{' and '.join(missing)} not counted")
    if _is_logarithmic(summary):
        notes.append("the counts are on a logarithmic scale")
    return notes


def _is_logarithmic(summary: ArraySummary) -> bool:
    counted = [count for count in summary.counts if count]
    return max(counted) > _MAX_LINEAR_RATIO * median(counted)


def _plot(canvas: MplCanvas, summary: ArraySummary, box: tuple[float, float, float, float]) -> None:
    """Draw bars one unit wide: the numbers themselves may be too large for matplotlib."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    axes = canvas.axes(*box)
    _, colour = canvas.theme.colours["operator"]
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
    axes.set_xticks([share * bins for share, _ in ticks], [text for _, text in ticks])
    if max(len(text) for _, text in ticks) > _MAX_TICK_LABEL:  # they would leave the picture
        first, *_, last = axes.get_xticklabels()
        first.set_horizontalalignment("left")
        last.set_horizontalalignment("right")


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers between two as text, each with its position from 0 to 1."""
    from matplotlib.ticker import MaxNLocator

    smallest, largest = _TICKABLE
    numbers = [low, high]
    if smallest < high - low and max(abs(low), abs(high)) < largest:
        ticks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
        numbers = [float(tick) for tick in ticks if low <= tick <= high]
    texts = format_numbers(numbers)
    if max(map(len, texts)) > _MAX_TICK_LABEL:
        numbers = [low, high]
        texts = format_numbers(numbers)
    return list(zip(shares(np.array(numbers), low, high).tolist(), texts, strict=True))
