"""The arguments that a check calls a function with: several sizes, and values where bugs are."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from tvm import ir, relax

from irviz.errors import InputError
from irviz.ir.argument_ranges import ANY, ValueRange, argument_ranges
from irviz.ir.module_functions import drawable_function
from irviz.ir.parameter_values import Argument
from irviz.ir.symbolic_shapes import parameter_types, symbolic_sizes
from irviz.runtime.argument_conversion import Array
from irviz.runtime.call_inputs import RANDOM, CallInputs, Cases, generator_for, synthetic_value
from irviz.runtime.kv_caches import total_lengths
from irviz.worker.shared_arrays import shared

_SIZES = (32, 3)
"""The sizes of all symbolic dimensions; one is above, and one below those of unrolled loops."""
_PRIMES = (5, 7, 11, 13, 17, 19, 23, 29)
"""Sizes that differ from dimension to dimension."""
_LARGEST, _LARGEST_NARROW = 1e4, 30.0
"""The largest floats; products of those in few bits would overflow, in any order of a sum."""
_LARGEST_WHOLE = 1000
_MOST_ALONE = 3
"""With more inputs than this, special values are in the first of them only."""
_LANDMARKS = (0.0, 0.5, 1.0, 3.0, 8.0, 25.0, 100.0, 1000.0, 10_000.0)
_NARROW_BYTES = 2
_SCALES = (1.0, 5.0)
_SHARE = 8
"""One of so many numbers is special."""
_DTYPES = re.compile(r"^b?float(16|32|64)$")
"""The dtypes that have all special numbers."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Arguments of a function.

    Attributes:
        cases: The arguments of each case.
        sizes: The sizes that were chosen for symbolic dimensions.
        values: What is in them that usual arguments do not have, such as "values to 1e4".
        is_special: Whether these are values that ordinary arguments do not have, such as NaN.
        is_large: Whether values may be so large that results are infinite.
    """

    cases: Cases
    sizes: Mapping[str, int] = field(default_factory=dict)
    values: str = ""
    is_special: bool = False
    is_large: bool = False

    @property
    def words(self) -> str:
        """The sizes and the values in words."""
        sizes = [f"{name} = {size}" for name, size in self.sizes.items()]
        return ", ".join(filter(None, [*sizes, self.values]))


class _Special(NamedTuple):
    """Numbers to put into an input: for a dtype, which has finite limits and a smallest number."""

    words: str
    numbers: Callable[[np.dtype[np.generic]], Sequence[float | np.generic]]


def _denormals(dtype: np.dtype[np.generic]) -> Sequence[np.generic]:
    zero, one = np.array([0, 1]).astype(dtype)
    least = np.nextafter(zero, one)
    return [np.negative(zero), least, np.negative(least), zero]


_SPECIALS = (
    _Special("NaN", lambda _: [math.nan]),
    _Special("±inf", lambda _: [math.inf, -math.inf]),
    _Special("-0.0 and denormals", _denormals),
)


def usual_samples(
    mod: ir.IRModule, function: str, call: CallInputs, more: Sequence[Mapping[str, int]] = ()
) -> list[Sample]:
    """Return the arguments of a session for each choice of sizes, and for `more` of them by name.

    Random ones suit their use. Raises InputError if no choice fits, and TypeMismatchError if values
    do not.
    """
    made: list[Sample] = []
    problem = InputError("")
    for sizes in _choices(mod, function, call, more):
        try:
            made.append(Sample(_Drawing(mod, function, call, sizes).cases(_usual), sizes))
        except InputError as failure:  # noqa: PERF203 - sizes that are too large, for instance
            problem = failure
    if not made:
        raise problem
    return made


def further_samples(
    mod: ir.IRModule, function: str, call: CallInputs, usual: Sample, *, is_narrow: bool = False
) -> Iterator[Sample]:
    """Yield samples with large values and with special ones, of the sizes of a usual one.

    Given arrays stay as they are, and values that lead to an index are never special.

    Args:
        is_narrow: Whether some numbers are computed in few bits, so that large ones overflow.
    """
    drawing = _Drawing(mod, function, call, usual.sizes)
    if not drawing.words:
        return
    largest = _LARGEST_NARROW if is_narrow else _LARGEST
    large = drawing.cases(partial(_wide, largest=largest))
    yield Sample(large, usual.sizes, f"values to {_short(largest)}", is_large=True)
    for special in _SPECIALS:
        for name in drawing.special_inputs():
            cases = drawing.with_special(usual.cases, name, special)
            yield Sample(cases, usual.sizes, f"{special.words} in {name}", is_special=True)


def _choices(
    mod: ir.IRModule, function: str, call: CallInputs, more: Sequence[Mapping[str, int]]
) -> list[dict[str, int]]:
    """Return the choices of sizes for the dimensions that nothing determines."""
    given = call.inputs if isinstance(call.inputs, Mapping) else {}
    known = [name for name, value in given.items() if not isinstance(value, str)]
    called = drawable_function(mod, function)
    if isinstance(call.inputs, np.ndarray):
        known = [name for name in parameter_types(called) if name not in call.params]
    if isinstance(called, relax.Function):
        known += total_lengths(called)  # which follow from the calls before
    names = [
        name for name in symbolic_sizes(called, [*known, *call.params]) if name not in call.sizes
    ]
    if not names:
        return [{}]
    made = [dict.fromkeys(names, size) for size in _SIZES]
    if len(names) > 1:
        made.append({name: _PRIMES[at % len(_PRIMES)] for at, name in enumerate(names)})
    made += [{**made[0], **{n: size for n, size in one.items() if n in names}} for one in more]
    return list({tuple(one.items()): one for one in made}.values())


class _Drawing:
    """Draws the values of the parameters that are random, and keeps the others."""

    def __init__(
        self, mod: ir.IRModule, function: str, call: CallInputs, sizes: Mapping[str, int]
    ) -> None:
        self._plan = replace(call, sizes={**call.sizes, **sizes}).plan(mod, function)
        self._ranges = argument_ranges(mod, function, self._plan.dims)
        self.words = [name for name, word in self._plan.words.items() if word == RANDOM]

    def cases(self, draw: Callable[..., Array]) -> Cases:
        """Return the arguments, with drawn numbers in place of the random ones."""
        plan, rows = self._plan, dict(self._plan.rows)
        for name, word in plan.words.items():
            source, limits = generator_for(name, plan.seed), self._ranges.get(name, ANY)
            value = synthetic_value(name, plan.types[name], plan.dims, word, source)
            if word == RANDOM:
                value = map_arrays(value, partial(draw, limits=limits, source=source))
            rows[name] = [shared({name: value})[name]]
        return plan.with_values(rows)

    def special_inputs(self) -> list[str]:
        """Return the inputs to put special values in: all of a few, or else the first."""
        names = [
            name
            for name in self.words
            if self._ranges.get(name, ANY) == ANY
            and _DTYPES.search(str(getattr(self._plan.types[name], "dtype", "")))
        ]
        return names if len(names) <= _MOST_ALONE else names[:1]

    def with_special(self, usual: Cases, name: str, special: _Special) -> Cases:
        """Return the usual arguments with special numbers in one of them."""
        columns, at = list(usual.columns), list(self._plan.types).index(name)
        source = generator_for(f"{name} {special.words}", self._plan.seed)

        def put(array: Array) -> Array:
            made = array.copy()
            numbers = np.array(special.numbers(array.dtype), array.dtype)
            count = min(made.size, max(len(numbers), made.size // _SHARE))
            made.reshape(-1)[source.permutation(made.size)[:count]] = np.resize(numbers, count)
            return made

        columns[at] = [map_arrays(columns[at][0], put)]
        return Cases(columns)


def map_arrays(value: Argument, change: Callable[[Array], Array]) -> Argument:
    """Return a value with its arrays changed."""
    if isinstance(value, tuple):
        return tuple(map_arrays(one, change) for one in value)
    return change(value) if isinstance(value, np.ndarray) else value


def _usual(array: Array, limits: ValueRange, source: np.random.Generator) -> Array:
    """Return random numbers as they are where any are allowed, or else numbers in their range."""
    if array.dtype.kind == "b" or limits == ANY:
        return array
    low, high = _within(array.dtype, limits)
    if array.dtype.kind in "iu":
        if (low, high) != _within(array.dtype, ANY):
            array = source.integers(low, high + 1, array.shape).astype(array.dtype)
    elif high < _LARGEST_WHOLE:
        array = source.uniform(low, high, array.shape).astype(array.dtype)
    return _without_zeros(array, limits)


def _wide(
    array: Array, limits: ValueRange, source: np.random.Generator, *, largest: float
) -> Array:
    """Return numbers of either sign and many magnitudes, with those at which functions bend."""
    if array.dtype.kind == "b" or limits.high < _LARGEST_WHOLE:
        return _usual(array, limits, source)
    if array.dtype.kind in "iu":
        low, high = _within(array.dtype, limits)
        made = source.integers(low, high + 1, array.shape).astype(array.dtype)
        landmarks = np.array([one for one in (0, 1, -1, 7, -7, low, high) if low <= one <= high])
        return _without_zeros(_scattered(made, landmarks, source), limits)
    if array.dtype.itemsize <= _NARROW_BYTES:
        largest = min(largest, _LARGEST_NARROW)
    if limits.high < math.inf:
        largest = min(largest, limits.high)
    made = source.standard_normal(array.shape) * source.choice(_SCALES, array.shape)
    numbers = [one for one in _LANDMARKS if one < largest]
    landmarks = np.array([*numbers, largest, *(-one for one in numbers), -largest])
    return _scattered(np.clip(made, -largest, largest).astype(array.dtype), landmarks, source)


def _scattered(array: Array, numbers: Array, source: np.random.Generator) -> Array:
    """Return an array with some numbers put anywhere into it; of a small one they are half."""
    made = np.asarray(array).copy()
    count = min(len(numbers), -(-made.size // 2))
    chosen = source.permutation(numbers)[:count].astype(made.dtype)
    made.reshape(-1)[source.permutation(made.size)[:count]] = chosen
    return made


def _within(dtype: np.dtype[np.generic], limits: ValueRange) -> tuple[int, int]:
    """Return the limits of the whole numbers to draw."""
    low, high = max(limits.low, -_LARGEST_WHOLE), min(limits.high, _LARGEST_WHOLE)
    if dtype.kind in "iu":
        whole = np.iinfo(dtype.name)
        low, high = max(low, whole.min + 1), min(high, whole.max)
        low = 0 if dtype.kind == "u" else low
    return int(low), int(high)


def _without_zeros(array: Array, limits: ValueRange) -> Array:
    return np.where(array == 0, np.ones_like(array), array) if limits.is_divisor else array


def _short(number: float) -> str:
    return f"{number:.0e}".replace("e+0", "e") if number >= _LARGEST_WHOLE else f"{number:g}"
