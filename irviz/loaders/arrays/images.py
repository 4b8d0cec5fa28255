"""Convert images to arrays of the shape that a model takes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from irviz.loaders.file_errors import FileError, file_errors

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 1 << 26
"""The largest image that is read, in pixels: a small file can declare any size."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
# No decoder of these starts a program.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
_CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}
_ROW, _PLANE, _CHANNELS_FIRST, _CHANNELS_LAST = "row", "HW", "CHW", "HWC"


_Axes = tuple["int | None", int, str, "int | None", "int | None"]
"""Batch, channels, order of the axes, height and width."""


@dataclass(frozen=True)
class ImageLayout:
    """How an image is laid out as an array: order and size of the axes, and dtype.

    `batch` is the size of the batch axis, None if there is none. `height` and `width` are None if
    the image's own size is used.
    """

    batch: int | None
    channels: int
    order: str
    height: int | None
    width: int | None
    dtype: np.dtype[Any]


def image_layout(name: str, shape: tuple[int | None, ...] | None, dtype: str | None) -> ImageLayout:
    """Return the layout of images for an input; a None in its shape stands for any size.

    The shape is (1, channels, h, w) or (1, h, w, channels), the same without the 1, (h, w) for grey
    images, or a row of n * n numbers, three times as many for colour images. Raises FileError for
    another shape or dtype.
    """
    takes = "any shape" if shape is None else str(shape).replace("None", "?")
    axes = _axes(shape or ())
    if axes is None or any(size is not None and size < 1 for size in (axes[0], *axes[3:])):
        raise FileError(
            f"is an image, and {name!r} takes {takes}, which is not the shape of an image: give "
            "arrays as .npy or .npz"
        )
    height, width = axes[3:]
    if (height or 1) * (width or 1) > MAX_PIXELS:
        raise FileError(
            f"is an image, and {name!r} takes {takes}, which are more than {MAX_PIXELS:,} "
            "pixels: give smaller sizes"
        )
    return ImageLayout(*axes, _dtype(name, dtype))


def open_image(content: bytes) -> Image:
    """Return the image in a file, upright; raise FileError if it is damaged or too large."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    damaged = "is an image that is damaged or cut short"
    with file_errors(damaged, "save it again, as .png"), warnings.catch_warnings():
        # about sizes, which are checked here, and about odd metadata
        warnings.simplefilter("ignore")
        try:
            image: Image.Image = Image.open(BytesIO(content), formats=_FORMATS)
            if image.width * image.height > MAX_PIXELS:
                raise FileError(_too_large(f"{image.width} by {image.height}"))
            image.load()
            return ImageOps.exif_transpose(image)
        except UnidentifiedImageError as failure:
            raise FileError(
                f"begins with {content[:8]!r} and is neither an array nor a whole image: give an "
                ".npy, an .npz, or an image as .png, .jpg or .bmp"
            ) from failure
        except Image.DecompressionBombError as failure:
            raise FileError(_too_large("far too many")) from failure


def image_array(image: Image, layout: ImageLayout) -> NDArray[Any]:
    """Return the array of one image, converted to the layout's channels, size and dtype.

    Floats are from 0, black, to 1; integers from 0 to 255. Transparent parts become white.
    """
    from PIL import Image

    levels = _byte_image(image, layout.channels)
    size = (layout.width or levels.width, layout.height or levels.height)
    if size != levels.size:
        levels = levels.resize(size, Image.Resampling.BILINEAR)
    array: NDArray[Any] = np.asarray(levels)
    if layout.dtype.kind not in "iu":
        array = array.astype(np.float32) / np.float32(255)
    array = array.reshape(size[1], size[0], layout.channels).astype(layout.dtype)
    if layout.order == _PLANE:
        return array[:, :, 0]
    if layout.order == _CHANNELS_LAST:
        return array
    planes = np.ascontiguousarray(array.transpose(2, 0, 1))
    return planes.reshape(-1) if layout.order == _ROW else planes


def _axes(shape: Sequence[int | None]) -> _Axes | None:
    """Return the axes of images in an array, or None if there cannot be images in it."""
    match shape:
        case (int(channels), height, width) if channels in _CHANNELS:
            return None, channels, _CHANNELS_FIRST, height, width
        case (height, width, int(channels)) if channels in _CHANNELS:
            return None, channels, _CHANNELS_LAST, height, width
        case (count, height, width):
            return 1 if count is None else count, 1, _PLANE, height, width
        case (count, _, _, _):
            found = _axes(shape[1:])
            has_channels = found is not None and found[0] is None
            return (1 if count is None else count, *found[1:]) if found and has_channels else None
        case (1 | None, pixels):
            return _row_axes(1, pixels)
        case (height, width):
            return None, 1, _PLANE, height, width
        case (pixels,):
            return _row_axes(None, pixels)
    return None


def _row_axes(batch: int | None, pixels: int | None) -> _Axes | None:
    """Return the axes of a square image in a row of numbers, or None for another number."""
    if pixels is None:
        return batch, 1, _ROW, None, None
    for channels in (1, 3):
        side = math.isqrt(max(pixels, 0) // channels)
        if side > 1 and channels * side**2 == pixels:
            return batch, channels, _ROW, side, side
    return None


def _dtype(name: str, dtype: str | None) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype or "float32")
    except TypeError:
        found = np.dtype(object)
    is_float = str(found).startswith(("float", "bfloat"))
    if not is_float and not (found.kind in "iu" and np.iinfo(found).max >= 255):
        raise FileError(
            f"is an image, and {name!r} takes {dtype}, which cannot hold 0 to 255: give arrays "
            "as .npy or .npz"
        )
    return found


def _byte_image(image: Image, channels: int) -> Image:
    """Return the image with 8 bits per channel."""
    from PIL import Image

    if image.mode == "F":
        raise FileError("is an image of floats with an unknown range: give the array, as .npy")
    if image.mode.startswith("I"):  # 16-bit grey, which Pillow would clip instead of scale
        deep = np.clip(np.asarray(image, np.float64) / 257, 0, 255)
        image = Image.fromarray(np.rint(deep).astype(np.uint8))
    if channels < 4 and image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return image.convert(_CHANNELS[channels])


def _too_large(pixels: str) -> str:
    return f"has {pixels} pixels, and at most {MAX_PIXELS:,} are read: give a smaller image"
