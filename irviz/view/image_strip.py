"""Tensors that hold images, as images side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irviz.view.cells import Array, as_numbers
from irviz.view.colour_scale import (
    NAN,
    ColourScale,
    Numbers,
    Pixels,
    colour_scale,
    infinity_colour,
    rgb,
    uncoloured,
)
from irviz.view.drawing import Drawing
from irviz.view.image import as_images
from irviz.view.legend import legend, legend_height
from irviz.view.paper import MARGIN, WIDTH, Paper, drawn, heading, paper_top
from irviz.view.style import theme_of
from irviz.view.words import not_finite, number

MOST_IMAGES = 16
_ROOM = WIDTH - 2 * MARGIN
_SMALL, _GAP, _NUMBER = 36, 8.0, 16.0
_TALLEST = 280.0


def image_strip(array: Array, theme: str = "course", *, first: int = 0, title: str = "") -> Drawing:
    """Draw up to 16 of an array's images, beginning with number `first`, each with its number.

    One channel is in shades of grey, or in two colours where numbers have both signs; three are
    red, green and blue, a fourth is opacity. Raises ValueError for an array without images, for
    no such number, or an unknown theme.
    """
    images = as_images(array)
    if images is None or not images.size:
        raise ValueError(
            f"an array of shape {array.shape} holds no images: these are (n, h, w), "
            "(n, 1|3|4, h, w), (n, h, w, 1|3|4), or rows of side² numbers, of 8 pixels at least"
        )
    count = len(images)
    if not 0 <= first < count:
        raise ValueError(f"there is no image {first!r}: give 0 to {count - 1}")
    theme_of(theme)
    taken = images[first : first + MOST_IMAGES]
    grid = _grid(*taken.shape[:3])
    reduced = _sampled(taken, math.ceil(max(grid.width, grid.height)))
    whole = as_numbers(taken)
    scale, tiles, notes = _coloured(as_numbers(reduced), whole, array.dtype, theme)
    if reduced.shape != taken.shape:
        sizes = (f"{one.shape[1]} × {one.shape[2]}" for one in (reduced, taken))
        notes = (*notes, "sampled: {} of {} pixels".format(*sizes))
    if len(taken) < count:
        notes = (f"images {first:,} to {first + len(taken) - 1:,} of {count:,}", *notes)
    missing = not_finite(whole)
    lines = heading(array.shape, str(array.dtype), title, notes)
    bottom = paper_top(lines) + grid.room(len(tiles))
    total = bottom + legend_height(scale, missing) + MARGIN

    def paint(paper: Paper) -> None:
        _tiles(paper, tiles, grid, first, paper.lines(lines))
        infinity = scale.infinity if scale is not None else infinity_colour(theme, True)
        legend(paper, MARGIN, bottom, scale, missing, infinity)

    return drawn(WIDTH, total, theme, f"images of {' '.join(t for t, _ in lines)}", paint)


@dataclass(frozen=True)
class _Grid:
    """Images of one size in rows of `columns`, each with room for its number below; in px."""

    columns: int
    width: float
    height: float

    def place(self, index: int) -> tuple[float, float]:
        """Return the upper left corner of an image."""
        row, column = divmod(index, self.columns)
        return column * (self.width + _GAP), row * (self.height + _NUMBER + _GAP)

    def room(self, count: int) -> float:
        """Return how high so many images are together."""
        return math.ceil(count / self.columns) * (self.height + _NUMBER + _GAP)


def _grid(count: int, height: int, width: int) -> _Grid:
    is_small = max(height, width) <= _SMALL
    columns = min(count, 8 if is_small and count > 4 else 4)
    across = (_ROOM - (columns - 1) * _GAP) / columns
    across = min(across, _TALLEST * width / height)
    return _Grid(columns, across, across * height / width)


def _sampled(images: Array, most: int) -> Array:
    """Leave rows and columns of images out, so that there are at most so many."""
    rows, columns = (
        np.linspace(0, side - 1, min(side, math.ceil(most * side / max(images.shape[1:3]))))
        for side in images.shape[1:3]
    )
    return images[:, np.rint(rows).astype(int)][:, :, np.rint(columns).astype(int)]


def _coloured(
    images: Numbers, whole: Numbers, dtype: np.dtype[np.generic], theme: str
) -> tuple[ColourScale | None, Pixels, tuple[str, ...]]:
    """Return the scale of colours where there is one, the pixels of images, and notes.

    `whole` are the images before some of their rows and columns were left out.
    """
    if images.shape[3] == 1:
        grey = images[..., 0]
        scale = colour_scale(whole, theme, is_grey=True)
        pixels = (
            uncoloured(grey, infinity_colour(theme, True)) if scale is None else scale.pixels(grey)
        )
        return scale, pixels, ()
    finite = whole[np.isfinite(whole)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    note: tuple[str, ...] = ()
    if dtype == np.uint8:
        low, high = 0.0, 255.0
    elif low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    else:
        note = (f"black is {number(low)}, full colour {number(high)}",)
    pixels = np.full((*images.shape[:3], 4), 255, dtype=np.uint8)
    pixels[..., : images.shape[3]] = _bytes(images, low, high)
    has_nan, has_inf = np.isnan(images).any(axis=3), np.isinf(images).any(axis=3)
    pixels[has_inf] = (*rgb(infinity_colour(theme, True)), 255)
    pixels[has_nan] = (*rgb(NAN), 255)
    return None, pixels, note


def _bytes(values: Numbers, low: float, high: float) -> NDArray[np.uint8]:
    """Return numbers from `low` to `high` as 0 to 255."""
    largest = max(abs(low), abs(high)) or 1.0
    start, width = low / largest, high / largest - low / largest
    shares = np.where(np.isfinite(values), values, low) / largest
    scaled = (shares - start) / width if width else np.zeros(values.shape)
    return np.asarray(np.rint(scaled * 255), dtype=np.uint8)


def _tiles(paper: Paper, tiles: Pixels, grid: _Grid, first: int, top: float) -> None:
    """Draw the images on one plot, measured in px: a plot for each takes five times as long."""
    from matplotlib.patches import Rectangle

    height = grid.room(len(tiles))
    axes = paper.axes(MARGIN, top, _ROOM, height)
    axes.set_axis_off()
    for index, pixels in enumerate(tiles):
        x, y = grid.place(index)
        right, bottom = x + grid.width, y + grid.height
        axes.imshow(pixels, aspect="auto", interpolation="none", extent=(x, right, bottom, y))
        axes.add_patch(
            Rectangle(
                (x, y), grid.width, grid.height, fill=False, lw=0.8, ec=paper.theme.quiet_text
            )
        )
        paper.write(
            MARGIN + x + grid.width / 2,
            top + bottom + 12,
            f"{first + index:,}",
            fontsize=10,
            ha="center",
            color=paper.theme.quiet_text,
        )
    axes.set(xlim=(0, _ROOM), ylim=(height, 0))
