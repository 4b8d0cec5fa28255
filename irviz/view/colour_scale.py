"""Which colour a number has, and what stands for that which is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irviz.view.style import THEMES, theme_of

Numbers = NDArray[np.float64]
Pixels = NDArray[np.uint8]

NAN = "#e0218a"
GREY = ("#000000", "#ffffff")
_FURTHEST = {"course": "#6e2a00", "dark": "#ffe0b8"}
"""Where a theme's ramp goes on to: no text stands on a cell, and more shades can be told apart."""

_INFINITY = {"course": "#000000", "dark": "#ffffff"}
_INFINITY_IN_IMAGES = "#00b8d9"  # where black and white are numbers
_AROUND_ZERO = {
    "course": ("#123c74", "#3f7fbf", "#a9cce8", "#f6f6f4", "#f3c39a", "#d97a2b", "#8a3a00"),
    "dark": ("#a8d8ff", "#4f9fdc", "#23527d", "#20262c", "#7a4517", "#d98736", "#ffd3a1"),
}
assert _FURTHEST.keys() == _INFINITY.keys() == _AROUND_ZERO.keys() == set(THEMES)


@dataclass(frozen=True)
class ColourScale:
    """The colours of the numbers from `low` to `high`; `stops` are at equal distances.

    Where there are both signs the middle of the colours is zero, and the larger side reaches
    its end.
    """

    low: float
    high: float
    stops: tuple[str, ...]
    infinity: str
    is_around_zero: bool = False

    def pixels(self, values: Numbers) -> Pixels:
        """Return the colour of each number as red, green, blue and opacity, 0 to 255."""
        found = np.isfinite(values)
        places = self._places(np.where(found, values, self.low))
        at = np.linspace(0, 1, len(self.stops))
        channels = np.array([rgb(stop) for stop in self.stops], dtype=np.float64).T
        pixels = np.full((*values.shape, 4), 255, dtype=np.uint8)
        for index, channel in enumerate(channels):
            pixels[..., index] = np.rint(np.interp(places, at, channel))
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
        """Where zero is between `low` and `high`, from 0 to 1; None where it is outside."""
        if not self.is_around_zero:
            return None
        largest = max(-self.low, self.high)
        return -self.low / largest / (self.high / largest - self.low / largest)

    def _places(self, values: Numbers) -> Numbers:
        """Return where numbers are on the colours, from 0 to 1."""
        largest = max(abs(self.low), abs(self.high))
        if not largest or self.low == self.high:
            return np.full(values.shape, 0.5)
        shares = values / largest  # the difference of two large numbers may be no number
        if self.is_around_zero:
            return (shares + 1) / 2
        low, high = self.low / largest, self.high / largest
        return (shares - low) / (high - low)


def colour_scale(values: Numbers, theme: str, *, is_grey: bool = False) -> ColourScale | None:
    """Return the colours for these numbers in a theme, None where none of them is finite.

    With `is_grey` what has one sign is in shades of grey.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return None
    low, high = float(finite.min()), float(finite.max())
    if low < 0 < high:
        return ColourScale(low, high, _AROUND_ZERO[theme], infinity_colour(theme), True)
    stops = GREY if is_grey else (*theme_of(theme).ramp, _FURTHEST[theme])
    return ColourScale(low, high, stops, infinity_colour(theme, is_grey))


def uncoloured(values: Numbers, infinity: str) -> Pixels:
    """Return the pixels of an array in which no number is finite."""
    return ColourScale(0, 0, GREY, infinity).pixels(values)


def infinity_colour(theme: str, is_image: bool = False) -> str:
    """Return the colour of an infinity in a theme, and in an image, where any grey is a number."""
    return _INFINITY_IN_IMAGES if is_image else _INFINITY[theme]


def is_dark(pixel: Pixels) -> bool:
    """Tell whether white text is read better on this colour than black."""
    red, green, blue = (float(channel) for channel in pixel[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue < 140


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue, 0 to 255, of `#rrggbb`."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
