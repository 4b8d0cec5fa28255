"""An image, as arrays of the shape that a model takes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PIXELS = 1 << 26
"""Images with more pixels are not read: a small file can claim any size."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")  # none that starts a program
_CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}
_ROW, _PLANE, _CHANNELS_FIRST, _CHANNELS_LAST = "row", "HW", "CHW", "HWC"


class PictureError(ValueError):
    """An image that cannot be an input; the message goes on after the name of the file."""


@dataclass(frozen=True)
class Layout:
    """How an image becomes an array; no height and width for those of the image itself.

    `batch` is the size of the axis that counts images, None where there is none.
    """

    batch: int | None
    channels: int
    order: str
    height: int | None
    width: int | None
    dtype: np.dtype[Any]

    @property
    def at_once(self) -> int:
        """How many images one case takes."""
        return self.batch or 1

    def joined(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of a case, where `shape` is that of one image."""
        return tuple(shape) if self.batch is None else (self.batch, *shape)


def layout_of(name: str, shape: tuple[int | None, ...] | None, dtype: str | None) -> Layout:
    """Return how images fit the input of this name; a None in its shape may be any size.

    An image is (1, channels, h, w) or (1, h, w, channels), the same without the 1, (h, w) in
    grey, or a row of n * n numbers, with three times as many in colours. Raises PictureError for
    another shape or dtype.
    """
    wanted = "any shape" if shape is None else str(shape).replace("None", "?")
    refused = PictureError(
        f"is an image, and {name!r} takes {wanted}, which is none: give arrays as .npy or .npz"
    )
    batch, order, channels, height, width = _axes(shape or (), refused)
    if any(size is not None and size < 1 for size in (batch, height, width)):
        raise refused
    if (height or 1) * (width or 1) > MOST_PIXELS:
        raise PictureError(
            f"is an image, and {name!r} takes {wanted}, which are more than {MOST_PIXELS:,} "
            "pixels: give smaller sizes"
        )
    return Layout(batch, channels, order, height, width, _dtype(name, dtype))


def opened(content: bytes) -> Image:
    """Return the image in a file, upright; raise PictureError for what is none, or too large."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes, which are checked here, and of odd notes
            image: Image.Image = Image.open(BytesIO(content), formats=_FORMATS)
            if image.width * image.height > MOST_PIXELS:
                raise PictureError(_too_large(f"{image.width} by {image.height}"))
            image.load()
            return ImageOps.exif_transpose(image)
    except PictureError:
        raise
    except UnidentifiedImageError as failure:
        raise PictureError(
            f"begins with {content[:8]!r} and is neither arrays nor a whole image: give an .npy, "
            "an .npz, or an image as .png, .jpg or .bmp"
        ) from failure
    except Image.DecompressionBombError as failure:
        raise PictureError(_too_large("far too many")) from failure
    except Exception as failure:  # what damaged images raise, each format's reader leaves open
        words = " ".join(str(failure).split()) or type(failure).__name__
        raise PictureError(
            f"is a damaged image, or one cut short ({words}): save it again, as .png"
        ) from failure


def as_input(image: Image, layout: Layout) -> NDArray[Any]:
    """Return an image as an array of one image: grey or in colours, resized, scaled.

    Floats go from 0, black, to 1; integers from 0 to 255. What is seen through is put on white.
    """
    from PIL import Image

    levels = _levels(image, layout.channels)
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


def _axes(
    shape: tuple[int | None, ...], refused: PictureError
) -> tuple[int | None, str, int, int | None, int | None]:
    """Return the batch, the order of the axes, the channels, the height and the width."""
    match shape:
        case (count, first, middle, last):
            return _of_three(1 if count is None else count, (first, middle, last), refused)
        case (first, middle, last) if first in _CHANNELS or last in _CHANNELS:
            return _of_three(None, (first, middle, last), refused)
        case (count, height, width):
            return 1 if count is None else count, _PLANE, 1, height, width
        case (1 | None, pixels):
            return 1, _ROW, *_sides(pixels, refused)
        case (height, width):
            return None, _PLANE, 1, height, width
        case (pixels,):
            return None, _ROW, *_sides(pixels, refused)
    raise refused


def _of_three(
    batch: int | None, sizes: tuple[int | None, int | None, int | None], refused: PictureError
) -> tuple[int | None, str, int, int | None, int | None]:
    first, middle, last = sizes
    if first in _CHANNELS:
        return batch, _CHANNELS_FIRST, first or 1, middle, last
    if last in _CHANNELS:
        return batch, _CHANNELS_LAST, last or 1, first, middle
    raise refused


def _sides(pixels: int | None, refused: PictureError) -> tuple[int, int | None, int | None]:
    """Return the channels, the height and the width of a square in a row."""
    if pixels is None:
        return 1, None, None
    for channels in (1, 3):
        side = math.isqrt(max(pixels, 0) // channels)
        if side > 1 and channels * side**2 == pixels:
            return channels, side, side
    raise refused


def _dtype(name: str, dtype: str | None) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype or "float32")
    except TypeError:
        found = np.dtype(object)
    is_float = str(found).startswith(("float", "bfloat"))
    if not is_float and not (found.kind in "iu" and np.iinfo(found).max >= 255):
        raise PictureError(
            f"is an image, and {name!r} takes {dtype}, which cannot hold 0 to 255: give arrays "
            "as .npy or .npz"
        )
    return found


def _levels(image: Image, channels: int) -> Image:
    """Return the image with a byte for each channel of each pixel."""
    from PIL import Image

    if image.mode == "F":
        raise PictureError("is an image of floats without a range: give the array, as .npy")
    if image.mode.startswith("I"):  # 16 bits of grey, which Pillow would cut off and not scale
        deep = np.clip(np.asarray(image, np.float64) / 257, 0, 255)
        image = Image.fromarray(np.rint(deep).astype(np.uint8))
    if channels < 4 and image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return image.convert(_CHANNELS[channels])


def _too_large(pixels: str) -> str:
    return f"has {pixels} pixels, and at most {MOST_PIXELS:,} are read: give a smaller image"
