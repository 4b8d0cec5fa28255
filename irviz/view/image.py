"""Arrays that look like images -> pictures and PNG."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import numpy as np

_LEAST_SIDE = 8
_MOST_UNEQUAL = 4
"""What is longer than so many times its other side is no image."""
_CHANNELS = (1, 3, 4)


def as_image(array: np.ndarray) -> np.ndarray | None:
    """Return a row of n² numbers (n ≥ 8) as an n by n picture, or None when it is no such row."""
    side = math.isqrt(array.size)
    is_row = array.ndim >= 1 and array.shape[-1] == array.size
    return (
        array.reshape(side, side)
        if is_row and side >= _LEAST_SIDE and side**2 == array.size
        else None
    )


def images_shape(shape: Sequence[int]) -> tuple[int, int, int, int] | None:
    """Return how many images an array of this shape holds, their height, width and channels.

    Images are (n, h, w), (n, channels, h, w), (n, h, w, channels) with 1, 3 or 4 channels, or rows
    of side² numbers. None for what looks like none of these.
    """
    if not shape or not math.prod(shape):
        return None
    match tuple(shape):
        case (n, h, w) if _is_picture(h, w):
            return n, h, w, 1
        case (n, c, h, w) if c in _CHANNELS and _is_picture(h, w):
            return n, h, w, c
        case (n, h, w, c) if c in _CHANNELS and _is_picture(h, w):
            return n, h, w, c
    side = math.isqrt(shape[-1])
    if side >= _LEAST_SIDE and side**2 == shape[-1] and len(shape) <= 2:
        return math.prod(shape) // shape[-1], side, side, 1
    return None


def as_images(array: np.ndarray) -> np.ndarray | None:
    """Return an array's images as (n, h, w, channels), or None when it holds none."""
    found = images_shape(array.shape)
    if found is None:
        return None
    is_last = array.ndim == 4 and array.shape[1:] == found[1:]
    if array.ndim == 4 and not is_last:
        return array.transpose(0, 2, 3, 1)
    return array.reshape(found)


def png(image: np.ndarray) -> bytes:
    """Return a picture in shades of grey as PNG, its smallest number black, its largest white."""
    from matplotlib import image as mpl_image

    buffer = io.BytesIO()
    mpl_image.imsave(buffer, image.astype(np.float32), cmap="gray", format="png")
    return buffer.getvalue()


def _is_picture(height: int, width: int) -> bool:
    short, long = sorted((height, width))
    return short >= _LEAST_SIDE and long <= _MOST_UNEQUAL * short
