"""Sample inputs: arrays on which functions that compute something else show it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from irviz.transforms.kernels.signature import Signature, Tensor

Array = NDArray[np.generic]

_SEED = 20240527
_PERIOD = 262_139
"""How many numbers are drawn at most; a prime, so that the rows of larger arrays differ."""
_SCALES = (1.0, 5.0)
_LANDMARKS = (8.0, -8.0, 0.0, 0.5, -0.5, 25.0, -25.0, 1.0, -1.0, 3.0, -3.0)
"""Numbers that are always there: beyond bounds such as the 6 of ReLU6, and where functions bend."""
_ENOUGH = 400
"""How many numbers all draws of a kind should have, where a few draws are enough for that."""
_MOST_ROUNDS = 12


class UnknownDtypeError(ValueError):
    """A dtype that NumPy does not have."""


def count(signature: Signature) -> int:
    """Return how many numbers a call of this signature reads and writes; its sizes are numbers."""
    return sum(math.prod(shape(tensor)) for tensor in (*signature.inputs, *signature.outputs))


def shape(tensor: Tensor) -> tuple[int, ...]:
    """Return a shape whose dimensions are numbers."""
    return tuple(map(int, tensor.dims))


def smaller(signature: Signature, kept: Collection[str] = ()) -> Signature:
    """Return the signature with small sizes: equal ones stay equal, and others distinct.

    Sizes that are `kept`, or are 0 or 1, stay as they are.
    """
    sizes = {size: size for size in ("0", "1", *kept)}
    small = (str(size) for size in small_sizes() if str(size) not in sizes)

    def tensor(given: Tensor) -> Tensor:
        for dim in given.dims:
            if dim not in sizes:
                sizes[dim] = next(small)
        return Tensor(tuple(sizes[dim] for dim in given.dims), given.dtype)

    return Signature(tuple(map(tensor, signature.inputs)), tuple(map(tensor, signature.outputs)))


def small_sizes() -> Iterator[int]:
    """Yield small sizes for symbolic dimensions, each another."""
    yield from (19, 23, 17, 29, 13, 31, 11, 37)
    yield from range(41, 1000, 2)


def draws(signature: Signature, *, few: bool) -> Iterator[tuple[list[Array], list[Array]]]:
    """Yield the inputs of some calls, each with outputs to write into, always the same ones.

    Numbers are of either sign and of several sizes, with zeros among them; then small ones; then
    positive ones alone, for functions that give no number for others; where a call has few
    numbers, more often. A `few` draws are without the second. What is in the outputs shows where
    a function writes nothing. Raises UnknownDtypeError for what NumPy cannot hold.
    """
    rng = np.random.default_rng(_SEED)
    rounds = max(1, min(_MOST_ROUNDS, _ENOUGH // max(1, count(signature))))
    kinds = (_mixed, _positive) if few else (_mixed, _normal, _positive)
    indices = _is_indexed(signature)
    for number, kind in itertools.product(range(rounds), kinds):
        inputs = []
        for tensor in signature.inputs:
            dtype, dims = _dtype(tensor), shape(tensor)
            size = math.prod(dims)
            if dtype.kind == "f":
                spread = 0.25 if dtype == np.float16 else 1.0  # sums must not pass its largest
                values = (kind(rng, min(size, _PERIOD), number) * spread).astype(dtype)
            else:
                low, high = _range(dtype, indices)
                values = rng.integers(low, high, min(size, _PERIOD)).astype(dtype)
            inputs.append(np.resize(values, dims))
        outputs = [
            np.full(shape(tensor), 17 + number, _dtype(tensor)) for tensor in signature.outputs
        ]
        yield inputs, outputs


def _mixed(rng: np.random.Generator, size: int, number: int) -> NDArray[np.float64]:
    values: NDArray[np.float64] = rng.standard_normal(size) * rng.choice(_SCALES, size)
    chosen = np.roll(_LANDMARKS, -number * size)[:size]  # all of them, over some small draws
    values[rng.permutation(size)[: len(chosen)]] = chosen
    return values


def _normal(rng: np.random.Generator, size: int, _: int) -> NDArray[np.float64]:
    return rng.standard_normal(size)


def _positive(rng: np.random.Generator, size: int, _: int) -> NDArray[np.float64]:
    return rng.uniform(0.05, 2, size)


def _is_indexed(signature: Signature) -> int:
    """Return below what integers have to be, where they may be indices; 0 where they are not.

    Integers beside numbers of another kind often say what to read, and outside of a tensor there
    may be nothing to read.
    """
    kinds = {_dtype(tensor).kind for tensor in signature.inputs}
    if not (kinds & {"i", "u"} and "f" in kinds):
        return 0
    return min((size for t in signature.inputs for size in shape(t) if size > 0), default=1)


def _range(dtype: np.dtype[np.generic], indices: int) -> tuple[int, int]:
    if dtype.kind == "b":
        return 0, 2
    if indices:
        return 0, indices
    return (0, 20) if dtype.kind == "u" else (-10, 11)


def _dtype(tensor: Tensor) -> np.dtype[np.generic]:
    try:
        dtype = np.dtype(tensor.dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "fiub":
        raise UnknownDtypeError(f"NumPy has no dtype {tensor.dtype} to draw sample inputs of")
    return dtype
