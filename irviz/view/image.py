"""Arrays that look like images -> PNG."""

from __future__ import annotations

import io
import math

import numpy as np

_LEAST_SIDE = 8


def as_image(array: np.ndarray) -> np.ndarray | None:
    """Return a row of n² numbers (n ≥ 8) as an n by n picture, or None when it is no such row."""
    side = math.isqrt(array.size)
    is_row = array.ndim >= 1 and array.shape[-1] == array.size
    return (
        array.reshape(side, side)
        if is_row and side >= _LEAST_SIDE and side**2 == array.size
        else None
    )


def png(image: np.ndarray) -> bytes:
    """Return a picture in shades of grey as PNG, its smallest number black, its largest white."""
    from matplotlib import image as mpl_image

    buffer = io.BytesIO()
    mpl_image.imsave(buffer, image.astype(np.float32), cmap="gray", format="png")
    return buffer.getvalue()
