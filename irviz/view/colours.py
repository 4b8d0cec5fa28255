"""Colours as `#rrggbb`: their channels, and mixtures that look evenly spaced."""

from __future__ import annotations

from collections.abc import Sequence

_Triple = tuple[float, float, float]

# OKLab by Björn Ottosson (2020): linear sRGB -> cone responses -> lightness and two hues
_TO_CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_TO_LAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)
_FROM_LAB = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_FROM_CONES = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue, each from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def mix_colours(start: str, end: str, fraction: float) -> str:
    """Return the colour at a fraction of the way between two, as CSS mixes `in oklab`."""
    ends = zip(_lab(start), _lab(end), strict=True)
    one, two, three = (low + (high - low) * fraction for low, high in ends)
    cones = _multiply(_FROM_LAB, (one, two, three))
    red, green, blue = _multiply(_FROM_CONES, (cones[0] ** 3, cones[1] ** 3, cones[2] ** 3))
    return "#" + "".join(f"{round(255 * _to_srgb(channel)):02x}" for channel in (red, green, blue))


def _lab(colour: str) -> _Triple:
    red, green, blue = (_to_linear(channel / 255) for channel in rgb(colour))
    cones = _multiply(_TO_CONES, (red, green, blue))
    return _multiply(_TO_LAB, (cones[0] ** (1 / 3), cones[1] ** (1 / 3), cones[2] ** (1 / 3)))


def _multiply(matrix: Sequence[_Triple], vector: _Triple) -> _Triple:
    one, two, three = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return one, two, three


def _to_linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def _to_srgb(linear: float) -> float:
    inside = min(max(linear, 0.0), 1.0)
    return 12.92 * inside if inside <= 0.0031308 else float(1.055 * inside ** (1 / 2.4) - 0.055)
