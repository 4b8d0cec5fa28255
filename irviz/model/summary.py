"""What an array holds, in a few numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_BINS = 24


@dataclass(frozen=True)
class Summary:
    """An array in a few numbers; `nbytes` in bytes.

    `minimum`, `maximum`, `mean` and `std` are those of its finite numbers, None where there are
    none; `counts` is the histogram of these between `edges`, which has one more. `digest` is
    equal for equal bytes, shape and dtype.
    """

    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    nans: int
    infs: int
    counts: tuple[int, ...]
    edges: tuple[float, ...]
    digest: bytes

    @property
    def is_finite(self) -> bool:
        """Whether there is neither a NaN nor an infinity in it."""
        return not (self.nans or self.infs)

    @property
    def largest(self) -> float | None:
        """The largest |value| of its finite numbers."""
        if self.minimum is None or self.maximum is None:
            return None
        return max(abs(self.minimum), abs(self.maximum))


def summarise(array: NDArray[np.generic]) -> Summary:
    """Describe an array; what is computed of it is computed in float64."""
    contiguous = np.ascontiguousarray(array)
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{array.shape} {array.dtype}".encode())
    digest.update(contiguous.reshape(-1).view(np.uint8).data if array.size else b"")
    values = contiguous.reshape(-1).astype(np.float64)
    finite = values[np.isfinite(values)]
    nans = int(np.isnan(values).sum())
    low = high = mean = std = None
    counts: tuple[int, ...] = ()
    edges: tuple[float, ...] = ()
    if finite.size:
        low, high = float(finite.min()), float(finite.max())
        with np.errstate(over="ignore", invalid="ignore"):
            mean, std = float(finite.mean()), float(finite.std())
        if np.isfinite(high - low):
            counted, bounds = np.histogram(finite, _BINS, _range(low, high))
            counts, edges = tuple(map(int, counted)), tuple(map(float, bounds))
    return Summary(
        shape=tuple(array.shape),
        dtype=str(array.dtype),
        nbytes=int(array.nbytes),
        minimum=low,
        maximum=high,
        mean=mean,
        std=std,
        nans=nans,
        infs=int(values.size - finite.size - nans),
        counts=counts,
        edges=edges,
        digest=digest.digest(),
    )


def _range(low: float, high: float) -> tuple[float, float]:
    """Widen a range that is too narrow to be cut into bins."""
    least = max(abs(low), abs(high), 1e-300) * 1e-12
    return (
        (low, high)
        if high - low > least
        else (low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1))
    )
