"""Image strips: the images of a tensor side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from irviz.errors import DrawError
from irviz.view.colour_math import rgb
from irviz.view.figure import Figure
from irviz.view.number_format import format_number
from irviz.view.theme import get_theme
from irviz.view.values.colour_scale import (
    NAN,
    ColourScale,
    Numbers,
    Pixels,
    colour_legend_height,
    colour_scale,
    count_non_finite,
    draw_colour_legend,
    shares,
)
from irviz.view.values.heat_map_cells import Array, as_float64
from irviz.view.values.image import as_images
from irviz.view.values.mpl_svg import (
    MARGIN,
    WIDTH,
    MplCanvas,
    array_heading,
    draw_with_matplotlib,
)

MAX_IMAGES, _MAX_KERNELS = 16, 64
_KERNEL_SIDE = 16
"""Smaller images, as the kernels of a convolution, are drawn closely, in rows of eight."""
_MAX_WIDTH = WIDTH - 2 * MARGIN
_SMALL_SIDE, _GAP, _NUMBER_HEIGHT = 36, 8.0, 16.0
_MAX_HEIGHT = 280.0


def most_images(height: int, width: int) -> int:
    """Return how many images of a size are drawn at once."""
    return MAX_IMAGES if max(height, width) >= _KERNEL_SIDE else _MAX_KERNELS


def image_strip(array: Array, theme: str = "course", *, first: int = 0, title: str = "") -> Figure:
    """Draw up to 16 of an array's images, each with its number, or 64 small ones without.

    Images of one channel are in shades of grey, or in the colours of a scale around zero if there
    are negative numbers. Three channels are red, green and blue, a fourth is opacity. `first` is
    the number of the first image.

    Raises:
        DrawError: For an array without images, a number without an image, or an unknown theme.
    """
    images = as_images(array)
    if images is None or not images.size:
        raise DrawError(
            f"an array of shape {array.shape} holds no images: these are (n, h, w), "
            "(n, h, w, 1|3|4), or rows of side² numbers, of 8 pixels at least, or (n, c, h, w)"
        )
    count = len(images)
    if not 0 <= first < count:
        raise DrawError(f"there is no image {first!r}: give 0 to {count - 1}")
    get_theme(theme)
    taken = images[first : first + most_images(*images.shape[1:3])]
    grid = _grid(*taken.shape[:3])
    reduced = _sampled(taken, math.ceil(max(grid.width, grid.height)))
    whole = as_float64(taken)
    scale, tiles, notes = _coloured(as_float64(reduced), whole, array.dtype, theme)
    if reduced.shape != taken.shape:
        sizes = (f"{one.shape[1]} × {one.shape[2]}" for one in (reduced, taken))
        notes = (*notes, "sampled: {} of {} pixels".format(*sizes))
    if len(taken) < count:
        notes = (f"images {first:,} to {first + len(taken) - 1:,} of {count:,}", *notes)
    non_finite = count_non_finite(whole)
    heading = array_heading(array.shape, str(array.dtype), title, notes)
    height = grid.total_height(len(tiles))

    def paint(canvas: MplCanvas, top: float) -> None:
        _tiles(canvas, tiles, grid, first, top)
        draw_colour_legend(canvas, MARGIN, top + height, scale, non_finite)

    below = colour_legend_height(scale, non_finite)
    label = f"images of {heading.text}"
    return draw_with_matplotlib(heading, height + below, theme, label, paint)


@dataclass(frozen=True)
class _Grid:
    """Images of one size in rows of `columns`, with their numbers below; lengths in px."""

    columns: int
    width: float
    height: float
    gap: float = _GAP
    number_height: float = _NUMBER_HEIGHT

    def corner(self, index: int) -> tuple[float, float]:
        """Return the upper left corner of an image."""
        row, column = divmod(index, self.columns)
        down = row * (self.height + self.number_height + self.gap)
        return column * (self.width + self.gap), down

    def total_height(self, count: int) -> float:
        """Return the height of this many images."""
        return math.ceil(count / self.columns) * (self.height + self.number_height + self.gap)


def _grid(count: int, height: int, width: int) -> _Grid:
    is_small = max(height, width) <= _SMALL_SIDE
    columns = min(count, 8 if is_small and count > 4 else 4)
    is_close = count > MAX_IMAGES
    gap = _GAP / 4 if is_close else _GAP
    across = (_MAX_WIDTH - (columns - 1) * gap) / columns
    across = min(across, _MAX_HEIGHT * width / height)
    sizes = columns, across, across * height / width, gap
    return _Grid(*sizes, 0.0 if is_close else _NUMBER_HEIGHT)


def _sampled(images: Array, max_side: int) -> Array:
    """Take every n-th row and column, so that no side is longer than `max_side`."""
    rows, columns = (
        np.linspace(0, side - 1, min(side, math.ceil(max_side * side / max(images.shape[1:3]))))
        for side in images.shape[1:3]
    )
    return images[:, np.rint(rows).astype(int)][:, :, np.rint(columns).astype(int)]


def _coloured(
    images: Numbers, whole: Numbers, dtype: np.dtype[np.generic], theme: str
) -> tuple[ColourScale, Pixels, tuple[str, ...]]:
    """Return the scale, the pixels, and notes.

    `whole` are the images before `_sampled`, which the range of colours is taken from.
    """
    if images.shape[3] == 1:
        scale = colour_scale(whole, theme, is_image=True)
        return scale, scale.pixels(images[..., 0]), ()
    scale = colour_scale(np.zeros(0), theme, is_image=True)
    finite = whole[np.isfinite(whole)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    note: tuple[str, ...] = ()
    if dtype == np.uint8:
        low, high = 0.0, 255.0
    elif low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    else:
        note = (f"black is {format_number(low)}, full colour {format_number(high)}",)
    pixels = np.full((*images.shape[:3], 4), 255, dtype=np.uint8)
    if low < high:
        scaled = shares(np.where(np.isfinite(images), images, low), low, high)
        pixels[..., : images.shape[3]] = np.rint(255 * scaled)
    else:
        pixels[..., : images.shape[3]] = 0
    has_nan, has_inf = np.isnan(images).any(axis=3), np.isinf(images).any(axis=3)
    pixels[has_inf] = (*rgb(scale.infinity), 255)
    pixels[has_nan] = (*rgb(NAN), 255)
    return scale, pixels, note


def _tiles(canvas: MplCanvas, tiles: Pixels, grid: _Grid, first: int, top: float) -> None:
    """Draw the images on one plot in px: a plot for each image takes five times as long."""
    from matplotlib.patches import Rectangle

    height = grid.total_height(len(tiles))
    axes = canvas.axes(MARGIN, top, _MAX_WIDTH, height)
    axes.set_axis_off()
    for index, pixels in enumerate(tiles):
        x, y = grid.corner(index)
        right, bottom = x + grid.width, y + grid.height
        axes.imshow(pixels, aspect="auto", interpolation="none", extent=(x, right, bottom, y))
        quiet = canvas.theme.quiet_text
        if not grid.number_height:
            continue
        axes.add_patch(Rectangle((x, y), grid.width, grid.height, fill=False, lw=0.8, ec=quiet))
        middle, baseline = MARGIN + x + grid.width / 2, top + bottom + 12
        number = f"{first + index:,}"
        canvas.write(middle, baseline, number, fontsize=10, ha="center", color=quiet)
    axes.set(xlim=(0, _MAX_WIDTH), ylim=(height, 0))
