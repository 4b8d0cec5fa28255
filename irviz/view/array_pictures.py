"""Pictures of arrays: heat maps of numbers as coloured cells, and the images that arrays hold.

The colours are those of numbers, of NaN and of infinities, and the legend explains them.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from irviz.errors import DrawError
from irviz.units import format_number
from irviz.view.figure import Figure
from irviz.view.mix_colours import rgb
from irviz.view.mpl_svg import MARGIN, WIDTH, MplCanvas, array_heading, draw_with_matplotlib
from irviz.view.theme import THEMES, get_theme

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
_LEGEND_CHARACTER = 6.6  # an upper bound of the width in the legend, in px
_FONT_SIZE = 10
_SQUARE = 10.0
_AROUND_ZERO = {
    "course": ("#123c74", "#3f7fbf", "#a9cce8", "#f6f6f4", "#f3c39a", "#d97a2b", "#8a3a00"),
    "dark": ("#a8d8ff", "#4f9fdc", "#23527d", "#20262c", "#7a4517", "#d98736", "#ffd3a1"),
}
assert _FURTHEST.keys() == _INFINITY.keys() == _AROUND_ZERO.keys() == set(THEMES)


@dataclass(frozen=True)
class ColourScale:
    """The colours of the numbers from `low` to `high`, which are None where no number is finite.

    `stops` are colours at equal distances. A scale around zero has zero in the middle, and the end
    of its colours at the number that is furthest from zero.
    """

    low: float | None
    high: float | None
    stops: tuple[str, ...]
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
    if low is not None and high is not None and low < 0 < high:
        return ColourScale(low, high, _AROUND_ZERO[theme], _INFINITY[theme], is_around_zero=True)
    if is_image:
        return ColourScale(low, high, GREY, _INFINITY_IN_IMAGES)
    stops = (*get_theme(theme).tints, _FURTHEST[theme])
    return ColourScale(low, high, stops, _INFINITY[theme])


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
        x += _SQUARE + 6 + _LEGEND_CHARACTER * (len(text) + 3)


def _draw_bar(
    canvas: MplCanvas, x: float, y: float, scale: ColourScale, ends: tuple[float, float]
) -> None:
    low, high = map(format_number, ends)
    baseline = y + _FONT_SIZE
    if ends[0] == ends[1]:
        canvas.write(x, baseline, f"{low} everywhere", fontsize=_FONT_SIZE)
        return
    canvas.write(x, baseline, low, fontsize=_FONT_SIZE)
    start = x + _LEGEND_CHARACTER * len(low) + 6
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


# --- Heat maps ------------------------------------------------------------------------------------


_LEFT = 44.0
_MAX_WIDTH = WIDTH - _LEFT - MARGIN
_MAX_HEIGHT, _MIN_HEIGHT = 300.0, 72.0
_MAX_CELL, _MAX_CELL_HEIGHT = 40.0, 24.0
_MIN_CELL_WITH_TEXT, _MAX_TEXTS = 29.0, 100
_CHARACTER_WIDTH = 5.1  # in a cell, in px
_TICKS = 24.0
_MAX_ASPECT = 3
"""Cells are squares in a matrix with at most this ratio of rows to columns."""


def heat_map(
    array: Array, theme: str = "course", *, index: Sequence[int] = (), title: str = ""
) -> Figure:
    """Draw an array as coloured cells, a scalar as a number.

    A long vector is folded into rows. A cell of a large matrix is the number of largest magnitude
    in a block. `index` is the slice of an array with more than two dimensions, of which the last
    two that are longer than 1 are drawn; the first slice if it is empty.

    Raises:
        DrawError: For an empty array, an index that does not fit, or an unknown theme.
    """
    if array.size == 0:
        raise DrawError(f"an array of shape {array.shape} is empty: there is nothing to draw")
    if array.ndim == 0:
        return _scalar(array, theme, title)
    cells = select_cells(array, index)
    get_theme(theme)
    scale = colour_scale(cells.values, theme)
    heading = array_heading(array.shape, str(array.dtype), title, cells.notes)
    width, height = _size(cells)
    below = colour_legend_height(scale, cells.non_finite)

    def paint(canvas: MplCanvas, top: float) -> None:
        colours = scale.pixels(cells.values)
        colours.reshape(-1, 4)[cells.filled :] = 0  # clear after the end of a folded vector
        _plot(canvas, cells, colours, (_LEFT, top, width, height))
        draw_colour_legend(canvas, _LEFT, top + height + _TICKS, scale, cells.non_finite)

    label = f"heat map of {heading.text}"
    return draw_with_matplotlib(heading, height + _TICKS + below, theme, label, paint)


def _scalar(array: Array, theme: str, title: str) -> Figure:
    heading = array_heading((), str(array.dtype), title)
    value = float(as_float64(array))
    text = str(bool(value)) if array.dtype.kind == "b" else format_number(value, 8)

    def paint(canvas: MplCanvas, top: float) -> None:
        canvas.write(MARGIN, top + 28, text, fontsize=26)

    label = f"{heading.title or heading.remarks[0]}: {text}"
    return draw_with_matplotlib(heading, 36, theme, label, paint)


def _size(cells: HeatMapCells) -> tuple[float, float]:
    """Return the width and height of all cells together, in px."""
    rows, columns = cells.values.shape
    side = min(_MAX_CELL, _MAX_WIDTH / columns)
    if rows <= _MAX_ASPECT * columns:
        side = min(side, _MAX_HEIGHT / rows)
    minimum = min(rows * _MAX_CELL_HEIGHT, _MIN_HEIGHT)
    return columns * side, min(max(rows * side, minimum), _MAX_HEIGHT)


def _plot(
    canvas: MplCanvas, cells: HeatMapCells, colours: Pixels, box: tuple[float, float, float, float]
) -> None:
    """Draw the cells; the ticks count numbers of the array, not cells."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes = canvas.axes(*box)
    rows, columns = cells.values.shape
    right, bottom = columns * cells.columns - 0.5, rows * cells.rows - 0.5
    axes.imshow(colours, aspect="auto", interpolation="none", extent=(-0.5, right, bottom, -0.5))
    axes.set_xlim(-0.5, cells.width - 0.5)
    axes.set_ylim(cells.height - 0.5, -0.5)
    axes.tick_params(top=False, right=False)
    positions = FuncFormatter(lambda value, _: f"{value:.0f}")
    starts = FuncFormatter(lambda value, _: f"{value * cells.width:.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(
        MaxNLocator(max(1, min(6, int(box[3] / 22))), integer=True, min_n_ticks=1)
    )
    axes.xaxis.set_major_formatter(positions)
    axes.yaxis.set_major_formatter(starts if cells.is_folded else positions)
    width = box[2] / columns
    if width >= _MIN_CELL_WITH_TEXT and cells.values.size <= _MAX_TEXTS:
        for position, value in enumerate(cells.values.reshape(-1)[: cells.filled]):
            row, column = divmod(position, columns)
            colour = "#ffffff" if is_dark(colours[row, column]) else "#000000"
            text = format_number(value, 2)
            if len(text) * _CHARACTER_WIDTH > width:
                text = format_number(value, 1)
            axes.text(column, row, text, color=colour, fontsize=8, ha="center", va="center")


# --- The cells of a heat map: a slice of an array, folded or reduced to the largest numbers -------


Array = NDArray[np.generic]

_MAX_SIDE = 256
_MOST_LOOKED_AT = 2_000_000
"""Larger arrays are sampled by rows, because a picture must not take a second."""
_MAX_ROW = 32
"""A longer vector is folded."""


@dataclass(frozen=True, eq=False)
class HeatMapCells:
    """A matrix with one number for each cell.

    Attributes:
        rows: The rows of the array that one cell stands for.
        columns: The columns of the array that one cell stands for.
        height: The rows of the array that the matrix stands for.
        width: The columns of the array that the matrix stands for.
        filled: The number of cells, row by row, before the end of a folded vector.
        notes: Descriptions of the slice, the reduction and the folding.
        is_folded: Whether the matrix is a vector in several rows.
    """

    values: Numbers
    rows: int
    columns: int
    height: int
    width: int
    filled: int
    notes: tuple[str, ...]
    is_folded: bool = False
    non_finite: NonFinite = ()


def select_cells(array: Array, index: Sequence[int] = ()) -> HeatMapCells:
    """Return the cells of a slice of an array that has one dimension or more.

    `index` is the position in the other dimensions, as in `check_index`.
    """
    position = iter(check_index(array.shape, index))
    sliced = sliced_sides(array.shape)
    key = tuple(next(position) if axis in sliced else slice(None) for axis in range(array.ndim))
    notes = []
    if math.prod(sliced.values()) > 1:
        slots = ", ".join(":" if isinstance(one, slice) else str(one) for one in key)
        notes.append(f"the slice [{slots}]")
    part = array[key]
    cells = _reduced(part, tuple(notes))
    if np.isfinite(cells.values).all():
        return cells
    return replace(cells, non_finite=count_non_finite(as_float64(part)))


def _reduced(array: Array, notes: tuple[str, ...]) -> HeatMapCells:
    if 1 in array.shape or array.ndim == 1:
        return _row(array.reshape(-1), notes)
    height, width = array.shape
    rows, columns = math.ceil(height / _MAX_SIDE), math.ceil(width / _MAX_SIDE)
    step = min(rows, math.ceil(array.size / _MOST_LOOKED_AT))
    rows = math.ceil(rows / step) * step
    if rows > 1 or columns > 1:
        notes += (f"a cell is the largest |number| of {rows} × {columns}, with its sign",)
    if step > 1:
        notes += (f"one row of {step} was looked at",)
    values = _largest(_largest(_real(array[::step]), rows // step, 0), columns, 1)
    return HeatMapCells(as_float64(values), rows, columns, height, width, values.size, notes)


def sliced_sides(shape: Sequence[int]) -> dict[int, int]:
    """Return the axes, and their lengths, that are not drawn: all but the last two above 1."""
    long = [axis for axis, side in enumerate(shape) if side > 1]
    shown = long[-2:] if len(long) > 1 else range(len(shape))[-2:]
    return {axis: side for axis, side in enumerate(shape) if axis not in shown}


def check_index(shape: Sequence[int], index: Sequence[int]) -> tuple[int, ...]:
    """Return an index into all dimensions but the two that are drawn, zeros for an empty one.

    Raises DrawError if it is too short or too long, or outside the shape.
    """
    leading = tuple(sliced_sides(shape).values())
    position = tuple(int(one) for one in index) or (0,) * len(leading)
    is_inside = len(position) == len(leading) and all(
        0 <= one < size for one, size in zip(position, leading, strict=False)
    )
    if not is_inside:
        limits = ", ".join(f"0 to {size - 1}" for size in leading) or "nothing"
        raise DrawError(
            f"there is no slice {tuple(index)!r} of {tuple(shape)}: the last two dimensions longer "
            f"than 1 are shown, so give {limits}"
        )
    return position


def _row(vector: Array, notes: tuple[str, ...]) -> HeatMapCells:
    """Return a vector as one row, folded if it is long."""
    step = math.ceil(vector.size / _MAX_SIDE**2)
    numbers = as_float64(_largest(_real(vector), step, 0))
    if step > 1:
        notes += (f"a cell is the largest |number| of {step} in a row, with its sign",)
    columns = numbers.size if numbers.size <= _MAX_ROW else _folded_width(numbers.size)
    height = math.ceil(numbers.size / columns)
    is_folded = height > 1
    if is_folded:
        notes += (f"folded: {columns * step:,} numbers a row",)
    values = np.zeros(height * columns)
    values[: numbers.size] = numbers
    matrix = values.reshape(height, columns)
    return HeatMapCells(matrix, 1, step, height, columns * step, numbers.size, notes, is_folded)


def _folded_width(size: int) -> int:
    """Return the length of rows that make a square, or a little more if all are full then."""
    side = math.isqrt(size - 1) + 1
    divisors = (columns for columns in range(side, 4 * side) if size % columns == 0)
    return next(divisors, side)


def _real(array: Array) -> Array:
    """Return the numbers in a dtype that NumPy can compare."""
    if array.dtype.kind in "fiu" and array.dtype.isbuiltin == 1:
        return array
    return as_float64(array)


def as_float64(array: Array) -> Numbers:
    """Return an array's numbers in float64, NaN and infinities as they are."""
    with np.errstate(all="ignore"):  # a signalling NaN raises a flag
        return array.astype(np.float64)


def _largest(array: Array, step: int, axis: int) -> Array:
    """Return the number of largest magnitude of each `step` along an axis; NaN wins."""
    if step == 1:
        return array
    starts = np.arange(0, array.shape[axis], step)
    with np.errstate(invalid="ignore"):
        high = as_float64(np.maximum.reduceat(array, starts, axis=axis))
        low = as_float64(np.minimum.reduceat(array, starts, axis=axis))
    return np.where(high >= -low, high, low)


# --- Arrays whose shape is that of images, and PNG files of them ---------------------------------


_MIN_SIDE = 8
_MIN_KERNEL = 2
"""The side of the kernels of a convolution, which are images of their own kind."""
_MOST_ASPECT = 4
"""An array with a higher ratio of its sides does not count as an image."""
_CHANNELS = (1, 3, 4)


def as_image(array: np.ndarray) -> np.ndarray | None:
    """Return a row of n² numbers (n ≥ 8) as an n by n image, None for any other array."""
    is_row = array.shape[-1:] == (array.size,)
    images = as_images(array.reshape(1, -1)) if is_row else None
    return None if images is None else images[0, :, :, 0]


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
    return short >= least and long <= _MOST_ASPECT * short


# --- Image strips: the images of a tensor side by side --------------------------------------------


MAX_IMAGES, _MAX_KERNELS = 16, 64
_KERNEL_SIDE = 16
"""Smaller images, as the kernels of a convolution, are drawn closely, in rows of eight."""
_STRIP_WIDTH = WIDTH - 2 * MARGIN
_SMALL_SIDE, _GAP, _NUMBER_HEIGHT = 36, 8.0, 16.0
_STRIP_HEIGHT = 280.0


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
    across = (_STRIP_WIDTH - (columns - 1) * gap) / columns
    across = min(across, _STRIP_HEIGHT * width / height)
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
    axes = canvas.axes(MARGIN, top, _STRIP_WIDTH, height)
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
    axes.set(xlim=(0, _STRIP_WIDTH), ylim=(height, 0))
