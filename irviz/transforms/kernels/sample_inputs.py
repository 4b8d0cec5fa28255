"""Sample inputs: arrays on which functions that compute different things differ."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from irviz.errors import IrvizError
from irviz.transforms.kernels.signature import Signature, TensorSignature

Array = NDArray[np.generic]

_SEED = 20240527
_PERIOD = 262_139
"""At most this many numbers are drawn and then repeated; a prime, so that rows differ."""
_SCALES = (1.0, 5.0)
_LANDMARKS = (8.0, -8.0, 0.0, 0.5, -0.5, 25.0, -25.0, 1.0, -1.0, 3.0, -3.0)
"""Numbers always included: outside bounds such as the 6 of ReLU6, and where functions bend."""
_ENOUGH = 400
"""Small calls are sampled more often, until about this many numbers are drawn per kind."""
_MOST_ROUNDS = 12


class UnknownDtypeError(IrvizError, ValueError):
    """A dtype that NumPy does not support."""


def element_count(signature: Signature) -> int:
    """Return how many elements a call of this static signature reads and writes."""
    return sum(
        math.prod(static_shape_of(tensor)) for tensor in (*signature.inputs, *signature.outputs)
    )


def static_shape_of(tensor: TensorSignature) -> tuple[int, ...]:
    """Return the shape of a tensor with static dimensions."""
    return tuple(map(int, tensor.dims))


def with_small_sizes(signature: Signature, kept: Collection[str] = ()) -> Signature:
    """Return the signature with small sizes; equal sizes stay equal, different ones different.

    Sizes in `kept`, and 0 and 1, are unchanged.
    """
    sizes = {size: size for size in ("0", "1", *kept)}
    small = (str(size) for size in small_sizes() if str(size) not in sizes)

    def tensor(given: TensorSignature) -> TensorSignature:
        for dim in given.dims:
            if dim not in sizes:
                sizes[dim] = next(small)
        return TensorSignature(tuple(sizes[dim] for dim in given.dims), given.dtype)

    return Signature(tuple(map(tensor, signature.inputs)), tuple(map(tensor, signature.outputs)))


def small_sizes() -> Iterator[int]:
    """Yield distinct small sizes for symbolic dimensions."""
    yield from (19, 23, 17, 29, 13, 31, 11, 37)
    yield from range(41, 1000, 2)


def sample_calls(signature: Signature, *, few: bool) -> Iterator[tuple[list[Array], list[Array]]]:
    """Yield the arrays of several sample calls, the same ones each time: inputs, outputs.

    Each round draws numbers of either sign and several magnitudes, zeros included; then standard
    normal ones (not with `few`); then only positive ones, for functions that are NaN elsewhere.
    Calls with few elements get more rounds. Outputs are prefilled, so that elements which a
    function does not write are noticed.

    Raises:
        UnknownDtypeError: NumPy does not have a dtype of the signature.
    """
    rng = np.random.default_rng(_SEED)
    rounds = max(1, min(_MOST_ROUNDS, _ENOUGH // max(1, element_count(signature))))
    kinds = (_mixed, _positive) if few else (_mixed, _normal, _positive)
    indices = _index_bound(signature)
    for number, kind in itertools.product(range(rounds), kinds):
        inputs = []
        for tensor in signature.inputs:
            dtype, dims = _dtype(tensor), static_shape_of(tensor)
            size = math.prod(dims)
            if dtype.kind == "f":
                spread = 0.25 if dtype == np.float16 else 1.0  # so that sums do not overflow
                values = (kind(rng, min(size, _PERIOD), number) * spread).astype(dtype)
            else:
                low, high = _range(dtype, indices)
                values = rng.integers(low, high, min(size, _PERIOD)).astype(dtype)
            inputs.append(np.resize(values, dims))
        outputs = [
            np.full(static_shape_of(tensor), 17 + number, _dtype(tensor))
            for tensor in signature.outputs
        ]
        yield inputs, outputs


def _mixed(rng: np.random.Generator, size: int, number: int) -> NDArray[np.float64]:
    values: NDArray[np.float64] = rng.standard_normal(size) * rng.choice(_SCALES, size)
    chosen = np.roll(_LANDMARKS, -number * size)[:size]  # small draws take them in turn
    values[rng.permutation(size)[: len(chosen)]] = chosen
    return values


def _normal(rng: np.random.Generator, size: int, _: int) -> NDArray[np.float64]:
    return rng.standard_normal(size)


def _positive(rng: np.random.Generator, size: int, _: int) -> NDArray[np.float64]:
    return rng.uniform(0.05, 2, size)


def _index_bound(signature: Signature) -> int:
    """Return the exclusive upper bound for integers that may be indices, 0 if there are none.

    Integers next to floats are often indices, and an index out of bounds may crash the process.
    """
    kinds = {_dtype(tensor).kind for tensor in signature.inputs}
    if not (kinds & {"i", "u"} and "f" in kinds):
        return 0
    return min(
        (size for t in signature.inputs for size in static_shape_of(t) if size > 0), default=1
    )


def _range(dtype: np.dtype[np.generic], indices: int) -> tuple[int, int]:
    if dtype.kind == "b":
        return 0, 2
    if indices:
        return 0, indices
    return (0, 20) if dtype.kind == "u" else (-10, 11)


def _dtype(tensor: TensorSignature) -> np.dtype[np.generic]:
    try:
        dtype = np.dtype(tensor.dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "fiub":
        raise UnknownDtypeError(f"NumPy has no dtype {tensor.dtype} to draw sample inputs of")
    return dtype
