"""Arrays whose shape is that of images, and PNG files of them."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np

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
