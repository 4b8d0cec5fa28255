"""Arrays whose shape is that of images, and PNG files of them."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irviz.errors import DrawError
from irviz.units import format_number
from irviz.view.figure import Figure
from irviz.view.theme import get_theme, rgb
from irviz.view.values.heat_map import (
    NAN,
    Array,
    ColourScale,
    Numbers,
    Pixels,
    as_float64,
    colour_legend_height,
    colour_scale,
    count_non_finite,
    draw_colour_legend,
    shares,
)
from irviz.view.values.mpl_svg import MARGIN, WIDTH, MplCanvas, array_heading, draw_with_matplotlib

_MIN_SIDE = 8
_MIN_KERNEL = 2
"""The side of the kernels of a convolution, which are images of their own kind."""
_MAX_ASPECT = 4
"""An array with a higher ratio of its sides does not count as an image."""
_CHANNELS = (1, 3, 4)


def as_image(array: np.ndarray) -> np.ndarray | None:
    """Return a row of n² numbers (n ≥ 8) as an n by n image, None for any other array."""
    side = math.isqrt(array.size)
    is_row = array.ndim >= 1 and array.shape[-1] == array.size
    return (
        array.reshape(side, side)
        if is_row and side >= _MIN_SIDE and side**2 == array.size
        else None
    )


def images_shape(shape: Sequence[int]) -> tuple[int, int, int, int] | None:
    """Return the number, height, width and channels of the images in an array of this shape.

    Images are (n, h, w), (n, channels, h, w), (n, h, w, channels) with 1, 3 or 4 channels, or rows
    of side² numbers; None for other shapes. With other channels, each one is an image by itself, as
    in feature maps and in the kernels of a convolution, which may be small.
    """
    if not shape or not math.prod(shape):
        return None
    match tuple(shape):
        case (n, h, w) if _is_image(h, w):
            return n, h, w, 1
        case (n, h, w, c) if c in _CHANNELS and _is_image(h, w):
            return n, h, w, c
        case (n, c, h, w) if _is_image(h, w, _MIN_KERNEL):
            return (n, h, w, c) if c in _CHANNELS else (n * c, h, w, 1)
    side = math.isqrt(shape[-1])
    if side >= _MIN_SIDE and side**2 == shape[-1] and len(shape) <= 2:
        return math.prod(shape) // shape[-1], side, side, 1
    return None


def as_images(array: np.ndarray) -> np.ndarray | None:
    """Return the images of an array as (n, h, w, channels), None if it has none."""
    shape = images_shape(array.shape)
    if shape is None:
        return None
    is_first = array.ndim == 4 and array.shape[2:] == shape[1:3] and len(array) == shape[0]
    return array.transpose(0, 2, 3, 1) if is_first else array.reshape(shape)


def grey_png(image: np.ndarray) -> bytes:
    """Return a PNG in shades of grey: the smallest number is black, the largest white."""
    from matplotlib import image as mpl_image

    buffer = io.BytesIO()
    mpl_image.imsave(buffer, image.astype(np.float32), cmap="gray", format="png")
    return buffer.getvalue()


def _is_image(height: int, width: int, least: int = _MIN_SIDE) -> bool:
    short, long = sorted((height, width))
    return short >= least and long <= _MAX_ASPECT * short


# --- image strip -------------------------------------------------------------------------------
#
# Image strips: the images of a tensor side by side.


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
