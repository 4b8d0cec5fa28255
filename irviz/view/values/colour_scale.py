"""The colours of numbers, of NaN and of infinities, and the legend that explains them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irviz.view.colours import rgb
from irviz.view.number_format import format_number
from irviz.view.theme import THEMES, get_theme
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


@dataclass(frozen=True)
class ColourScale:
    """The colours of the numbers from `low` to `high`.

    `stops` are colours at equal distances. A scale around zero has zero in the middle, and the end
    of its colours at the number that is furthest from zero.
    """

    low: float
    high: float
    stops: tuple[str, ...]
    infinity: str
    is_around_zero: bool = False

    def pixels(self, values: Numbers) -> Pixels:
        """Return an array with one more axis: red, green, blue and opacity, from 0 to 255."""
        is_finite = np.isfinite(values)
        positions = self._positions(np.where(is_finite, values, self.low))
        at = np.linspace(0, 1, len(self.stops))
        channels = np.array([rgb(stop) for stop in self.stops], dtype=np.float64).T
        pixels = np.full((*values.shape, 4), 255, dtype=np.uint8)
        for index, channel in enumerate(channels):
            pixels[..., index] = np.rint(np.interp(positions, at, channel))
        pixels[np.isnan(values), :3] = rgb(NAN)
        pixels[np.isinf(values), :3] = rgb(self.infinity)
        return pixels

    @property
    def bar(self) -> Pixels:
        """One row of pixels with the colours from `low` to `high`."""
        share = np.linspace(0, 1, 128)
        return self.pixels((self.low * (1 - share) + self.high * share)[None, :])

    @property
    def zero(self) -> float | None:
        """The position of zero between `low` and `high`, from 0 to 1; None if it is outside."""
        if not self.is_around_zero:
            return None
        return float(shares(np.zeros(()), self.low, self.high))

    def _positions(self, values: Numbers) -> Numbers:
        """Return the positions of numbers on the colours, from 0 to 1."""
        if self.low == self.high:
            return np.full(values.shape, 0.5)
        if self.is_around_zero:
            largest = max(-self.low, self.high)
            return shares(values, -largest, largest)
        return shares(values, self.low, self.high)


def shares(values: Numbers, low: float, high: float) -> Numbers:
    """Return the positions of numbers between two different ones, from 0 to 1."""
    largest = max(abs(low), abs(high))  # the difference of two large numbers may overflow
    start, end = low / largest, high / largest
    return np.asarray((values / largest - start) / (end - start))


def colour_scale(values: Numbers, theme: str, *, is_grey: bool = False) -> ColourScale | None:
    """Return the scale for the finite ones of these numbers, None if there are none.

    With `is_grey`, numbers of one sign are in shades of grey.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    low, high = float(finite.min()), float(finite.max())
    if low < 0 < high:
        return ColourScale(low, high, _AROUND_ZERO[theme], infinity_colour(theme), True)
    stops = GREY if is_grey else (*get_theme(theme).tints, _FURTHEST[theme])
    return ColourScale(low, high, stops, infinity_colour(theme, is_grey))


def non_finite_pixels(values: Numbers, infinity: str) -> Pixels:
    """Return the pixels of an array without a finite number."""
    return ColourScale(0, 0, GREY, infinity).pixels(values)


def infinity_colour(theme: str, is_image: bool = False) -> str:
    """Return the colour of infinities in a theme; in an image every grey is a number."""
    return _INFINITY_IN_IMAGES if is_image else _INFINITY[theme]


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


def colour_legend_height(scale: ColourScale | None, non_finite: NonFinite) -> float:
    """Return the height of a legend in px."""
    return _ROW * ((scale is not None) + bool(non_finite))


def draw_colour_legend(
    canvas: MplCanvas,
    x: float,
    y: float,
    scale: ColourScale | None,
    non_finite: NonFinite,
    infinity: str,
) -> None:
    """Draw the scale, and the counts of NaN and infinities beside a square of their colour.

    `infinity` is the colour of infinities.
    """
    if scale is not None:
        _draw_bar(canvas, x, y, scale)
        y += _ROW
    for text, is_nan in non_finite:
        canvas.square(x, y + 1, _SQUARE, NAN if is_nan else infinity)
        canvas.write(x + _SQUARE + 6, y + _FONT_SIZE, text, fontsize=_FONT_SIZE)
        x += _SQUARE + 6 + _CHARACTER_WIDTH * (len(text) + 3)


def _draw_bar(canvas: MplCanvas, x: float, y: float, scale: ColourScale) -> None:
    low, high = format_number(scale.low), format_number(scale.high)
    baseline = y + _FONT_SIZE
    if scale.low == scale.high:
        canvas.write(x, baseline, f"{low} everywhere", fontsize=_FONT_SIZE)
        return
    canvas.write(x, baseline, low, fontsize=_FONT_SIZE)
    start = x + _CHARACTER_WIDTH * len(low) + 6
    axes = canvas.axes(start, y + 1, _BAR, _BAR_HEIGHT)
    axes.imshow(scale.bar, aspect="auto", interpolation="none", extent=(0, 1, 0, 1))
    axes.set(xticks=[], yticks=[])
    if scale.zero is not None:
        axes.axvline(scale.zero, color=canvas.theme.text, linewidth=1)
        canvas.write(start + _BAR * scale.zero, y + 21, "0", fontsize=9, ha="center")
    canvas.write(start + _BAR + 6, baseline, high, fontsize=_FONT_SIZE)
