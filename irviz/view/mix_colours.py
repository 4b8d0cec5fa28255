"""Colours as `#rrggbb`: channels, and perceptually uniform mixtures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# OKLab by Björn Ottosson (2020): linear sRGB -> cone responses -> lightness and two hues
_TO_CONES = np.array(
    (
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    )
)
_TO_LAB = np.array(
    (
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    )
)


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue, each from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def mix_colours(start: str, end: str, fraction: float) -> str:
    """Return the colour at a fraction of the way between two, as CSS mixes `in oklab`.

    Two custom properties of a page are mixed by the page.
    """
    if start.startswith("var("):
        return f"color-mix(in oklab, {start}, {end} {100 * fraction:.1f}%)"
    low, high = oklab(start), oklab(end)
    cones = np.linalg.solve(_TO_LAB, low + (high - low) * fraction) ** 3
    linear = np.clip(np.linalg.solve(_TO_CONES, cones), 0, 1)
    curved = 1.055 * linear ** (1 / 2.4) - 0.055
    channels = 255 * np.where(linear <= 0.0031308, 12.92 * linear, curved)
    return "#" + "".join(f"{round(channel):02x}" for channel in channels.tolist())


_ROUNDING = 0.004
"""How far rounding to `#rrggbb` moves a colour in Oklab."""


def mixed_share(start: str, end: str, colour: str) -> float | None:
    """Return the fraction with which `mix_colours` gives a colour, None if it gives others only."""
    low, way = oklab(start), oklab(end) - oklab(start)
    share = float((oklab(colour) - low) @ way / (way @ way))
    distance = float(np.linalg.norm(oklab(colour) - low - share * way))
    return share if 0 <= share <= 1 and distance < _ROUNDING else None


def oklab(colour: str) -> NDArray[np.float64]:
    """Return the Oklab coordinates: black and white are 1 apart."""
    channels = np.array(rgb(colour)) / 255
    curved = ((channels + 0.055) / 1.055) ** 2.4
    linear = np.where(channels <= 0.04045, channels / 12.92, curved)
    return np.asarray(_TO_LAB @ np.cbrt(_TO_CONES @ linear), np.float64)
