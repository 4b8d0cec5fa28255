"""The colours of numbers, of NaN and of infinities, and the legend that explains them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irviz.units import format_number
from irviz.view.theme import THEMES, get_theme, rgb
from irviz.view.values.mpl_svg import MplCanvas

Numbers = NDArray[np.float64]
Pixels = NDArray[np.uint8]

NAN = "#e0218a"
GREY = ("#000000", "#ffffff")
_FURTHEST = {"course": "#6e2a00", "dark": "#ffe0b8"}
"""The colour after a theme's tints: cells without text can be darker, which gives more shades."""

_INFINITY = {"course": "#000000", "dark": "#ffffff"}
_INFINITY_IN_IMAGES = "#00b8d9"  # black and white are numbers there
_BAR, _BAR_HEIGHT = 130.0, 10.0
_ROW = 24.0
_CHARACTER_WIDTH = 6.6  # an upper bound, in px
_FONT_SIZE = 10
_SQUARE = 10.0
_AROUND_ZERO = {
    "course": ("#123c74", "#3f7fbf", "#a9cce8", "#f6f6f4", "#f3c39a", "#d97a2b", "#8a3a00"),
    "dark": ("#a8d8ff", "#4f9fdc", "#23527d", "#20262c", "#7a4517", "#d98736", "#ffd3a1"),
}
assert _FURTHEST.keys() == _INFINITY.keys() == _AROUND_ZERO.keys() == set(THEMES)


@dataclass(frozen=True, kw_only=True)
class ColourScale:
    """The colours of the numbers from `low` to `high`, which are None where no number is finite.

    `stops` are colours at equal distances. A scale around zero has zero in the middle, and the end
    of its colours at the number that is furthest from zero.
    """

    low: float | None = None
    high: float | None = None
    stops: tuple[str, ...] = GREY
    infinity: str
    is_around_zero: bool = False

    def pixels(self, values: Numbers) -> Pixels:
        """Return an array with one more axis: red, green, blue and opacity, from 0 to 255."""
        pixels = np.full((*values.shape, 4), 255, dtype=np.uint8)
        if self.low is not None and self.high is not None:
            low, high = self.low, self.high
            if self.is_around_zero:
                low, high = min(low, -high), max(-low, high)
            finite = np.where(np.isfinite(values), values, low)
            positions = shares(finite, low, high) if low < high else np.full(values.shape, 0.5)
            at = np.linspace(0, 1, len(self.stops))
            channels = np.array([rgb(stop) for stop in self.stops], dtype=np.float64).T
            for index, channel in enumerate(channels):
                pixels[..., index] = np.rint(np.interp(positions, at, channel))
        pixels[np.isnan(values), :3] = rgb(NAN)
        pixels[np.isinf(values), :3] = rgb(self.infinity)
        return pixels


def shares(values: Numbers, low: float, high: float) -> Numbers:
    """Return the positions of numbers between two different ones, from 0 to 1."""
    largest = max(abs(low), abs(high))  # the difference of two large numbers may overflow
    start, end = low / largest, high / largest
    return np.asarray((values / largest - start) / (end - start))


def colour_scale(values: Numbers, theme: str, *, is_image: bool = False) -> ColourScale:
    """Return the scale for the finite ones of these numbers.

    In an image, numbers of one sign are in shades of grey. Pixels cannot follow the colours of a
    page: there they are those for white paper.
    """
    theme = "course" if theme == "page" else theme
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (None, None)
    infinity = _INFINITY[theme]
    if low is not None and high is not None and low < 0 < high:
        colours = _AROUND_ZERO[theme]
        return ColourScale(
            low=low, high=high, stops=colours, infinity=infinity, is_around_zero=True
        )
    if is_image:
        return ColourScale(low=low, high=high, infinity=_INFINITY_IN_IMAGES)
    stops = (*get_theme(theme).tints, _FURTHEST[theme])
    return ColourScale(low=low, high=high, stops=stops, infinity=infinity)


def is_dark(pixel: Pixels) -> bool:
    """Return whether white text is easier to read on this colour than black text."""
    red, green, blue = (float(channel) for channel in pixel[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue < 140


NonFinite = tuple[tuple[str, bool], ...]
"""Counts of NaN and of infinities as text, each with whether it is the count of NaN."""


def count_non_finite(values: Numbers) -> NonFinite:
    """Count the NaN and the infinities of an array, as text."""
    nans, is_infinite = int(np.isnan(values).sum()), np.isinf(values)
    infs, negative = int(is_infinite.sum()), int((is_infinite & (values < 0)).sum())
    counts = []
    if nans:
        counts.append((f"{nans:,} NaN", True))
    if infs:
        counts.append((f"{infs:,} Inf" + (f" ({negative:,} negative)" if negative else ""), False))
    return tuple(counts)


def colour_legend_height(scale: ColourScale, non_finite: NonFinite) -> float:
    """Return the height of a legend in px."""
    return _ROW * ((scale.low is not None) + bool(non_finite))


def draw_colour_legend(
    canvas: MplCanvas, x: float, y: float, scale: ColourScale, non_finite: NonFinite
) -> None:
    """Draw the scale, and the counts of NaN and infinities beside a square of their colour."""
    if scale.low is not None and scale.high is not None:
        _draw_bar(canvas, x, y, scale, (scale.low, scale.high))
        y += _ROW
    for text, is_nan in non_finite:
        canvas.square(x, y + 1, _SQUARE, NAN if is_nan else scale.infinity)
        canvas.write(x + _SQUARE + 6, y + _FONT_SIZE, text, fontsize=_FONT_SIZE)
        x += _SQUARE + 6 + _CHARACTER_WIDTH * (len(text) + 3)


def _draw_bar(
    canvas: MplCanvas, x: float, y: float, scale: ColourScale, ends: tuple[float, float]
) -> None:
    low, high = map(format_number, ends)
    baseline = y + _FONT_SIZE
    if ends[0] == ends[1]:
        canvas.write(x, baseline, f"{low} everywhere", fontsize=_FONT_SIZE)
        return
    canvas.write(x, baseline, low, fontsize=_FONT_SIZE)
    start = x + _CHARACTER_WIDTH * len(low) + 6
    share = np.linspace(0, 1, 128)
    row = scale.pixels((ends[0] * (1 - share) + ends[1] * share)[None, :])
    axes = canvas.axes(start, y + 1, _BAR, _BAR_HEIGHT)
    axes.imshow(row, aspect="auto", interpolation="none", extent=(0, 1, 0, 1))
    axes.set(xticks=[], yticks=[])
    if scale.is_around_zero:
        zero = float(shares(np.zeros(()), *ends))
        axes.axvline(zero, color=canvas.theme.text, linewidth=1)
        canvas.write(start + _BAR * zero, y + 21, "0", fontsize=9, ha="center")
    canvas.write(start + _BAR + 6, baseline, high, fontsize=_FONT_SIZE)
