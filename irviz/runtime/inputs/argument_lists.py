"""Turn inputs into argument lists, one for each case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import InputError
from irviz.ir.module_functions import relax_function
from irviz.ir.shapes.check_arguments import Argument
from irviz.ir.shapes.symbolic_shapes import is_integer, parameter_types
from irviz.ir.text.type_labels import type_label
from irviz.runtime.inputs.argument_conversion import Array as Array
from irviz.runtime.inputs.argument_conversion import Rows, as_argument, row, split_cases
from irviz.runtime.inputs.symbolic_dims import check_sizes, resolve_sizes
from irviz.runtime.inputs.synthetic_inputs import (
    RANDOM,
    WORDS,
    check_bytes,
    generator_for,
    substitute_dims,
    synthetic_bytes,
    synthetic_value,
)
from irviz.worker.shared_arrays import shared

Inputs: TypeAlias = "Mapping[str, object] | Array | Literal['random', 'zeros'] | None"
"""Values by parameter name, each an array or a keyword; one array; one keyword for all; or None."""

_NO_SIZES: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class CallInputs:
    """The inputs of a session, from which the arguments of its functions are made.

    Attributes:
        inputs: Arrays by parameter name, or a single array if one parameter is left. An array with
            one more axis than its parameter, or with more rows where the parameter has one, holds
            one case per row. "random" or "zeros", in place of one array or of all of them, asks for
            synthetic values; None means "random".
        params: Arrays by parameter name, the same in every case. Large ones are copied once, into
            memory that the workers map.
        labels: The correct class of each case.
        seed: Seed of the random values, which also depend on the parameter's name: floats are
            standard normal, integers are from 0 to 9.
        sizes: Values of symbolic dimensions, by name, where no array determines them; 8 by default.
    """

    inputs: Inputs = None
    params: Mapping[str, Array] = field(default_factory=dict)
    labels: NDArray[np.int64] | None = None
    seed: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Share the arrays with the workers."""
        object.__setattr__(self, "params", shared(self.params))
        if isinstance(self.inputs, Mapping):
            object.__setattr__(self, "inputs", shared(self.inputs))
        elif isinstance(self.inputs, np.ndarray):
            object.__setattr__(self, "inputs", shared({"": self.inputs})[""])

    def plan(self, mod: ir.IRModule, function: str) -> Plan:
        """Plan the arguments for a function of a module; raise InputError."""
        source = relax_function(mod, function)
        return plan_inputs(source, self.inputs, self.params, seed=self.seed, sizes=self.sizes)

    def cases(self, mod: ir.IRModule, function: str) -> Cases:
        """Return the arguments of each case for a function of a module; raise InputError."""
        cases = self.plan(mod, function).argument_lists()
        if self.labels is not None and len(self.labels) != len(cases):
            raise InputError(
                f"there are {len(self.labels)} labels and {len(cases)} cases: give one label for "
                "each case"
            )
        return cases


@dataclass(frozen=True, eq=False)
class Cases:
    """The arguments of each case.

    Attributes:
        columns: The values of each parameter: one per case, possibly the rows of an array, or one
            for all cases.
    """

    columns: Sequence[Rows]

    def __len__(self) -> int:
        return max(map(len, self.columns), default=1)

    def __getitem__(self, case: int) -> list[Argument]:
        return [row(values, case if len(values) > 1 else 0) for values in self.columns]

    def __iter__(self) -> Iterator[list[Argument]]:
        return map(self.__getitem__, range(len(self)))


@dataclass(frozen=True, eq=False)
class Plan:
    """The arguments of a function before synthetic values are created.

    Attributes:
        types: The types of the parameters, in order.
        rows: The cases of each given value, or one value for all cases.
        words: "random" or "zeros", for the parameters whose values are synthetic.
        dims: The sizes of symbolic dimensions.
        inputs: The parameters that are not filled by the session's params.
    """

    types: Mapping[str, ir.Type]
    rows: Mapping[str, Rows]
    words: Mapping[str, str]
    dims: Mapping[str, int]
    seed: int
    inputs: tuple[str, ...]

    @property
    def cases(self) -> int:
        """The number of cases: how often the function will be called."""
        return max(map(len, self.rows.values()), default=1)

    def lines(self, given: str = "as given") -> tuple[str, ...]:
        """Return a line about each input: its type and its value, `given` for those given."""
        return tuple(self._line(name, given) for name in self.inputs)

    def _line(self, name: str, given: str) -> str:
        type_ = self.types[name]
        label = f"{name}: {type_label(substitute_dims(type_, self.dims))}"
        if name not in self.words:
            count = len(self.rows[name])
            return f"{label} {given}, {count} cases" if count > 1 else f"{label} {given}"
        if is_integer(type_):
            return f"{label} {self.dims[name]}"
        if isinstance(type_, relax.ShapeType):
            return label
        word = self.words[name]
        return f"{label} {word}, seed {self.seed}" if word == RANDOM else f"{label} {word}"

    def argument_lists(self) -> Cases:
        """Return the arguments of each case; synthetic values are the same in all cases."""
        rows = dict(self.rows)
        for name, word in self.words.items():
            source = generator_for(name, self.seed)
            rows[name] = [synthetic_value(name, self.types[name], self.dims, word, source)]
        return Cases([rows[name] for name in self.types])


def plan_inputs(
    function: relax.Function | tirx.PrimFunc,
    inputs: Inputs,
    params: Mapping[str, Array],
    *,
    seed: int = 0,
    sizes: Mapping[str, int] = _NO_SIZES,
) -> Plan:
    """Check the inputs of a function; the arguments are those of `CallInputs`.

    Raises:
        InputError: An input is missing or unknown, or sizes are impossible or too large.
        TypeMismatchError: A value has the wrong shape or dtype.
    """
    wanted = parameter_types(function)
    fixed = {name: params[name] for name in wanted if name in params}
    given = _given(inputs, [name for name in wanted if name not in fixed])
    _check_names(wanted, fixed, given)
    generator_for("", seed)
    check_sizes(sizes)
    words = {n: value for n, value in given.items() if isinstance(value, str) and value in WORDS}
    values = {
        name: as_argument(name, value, wanted[name])
        for name, value in {**fixed, **given}.items()
        if name not in words
    }
    rows = {
        name: split_cases(value, wanted[name]) if name in given else [value]
        for name, value in values.items()
    }
    _check_cases({name: len(rows[name]) for name in given if name in rows})
    first = {name: row(found, 0) for name, found in rows.items()}
    dims = resolve_sizes(wanted, first, sizes)
    check_bytes({name: synthetic_bytes(name, wanted[name], dims) for name in words}, dims)
    return Plan(wanted, rows, words, dims, int(seed), tuple(n for n in wanted if n in given))


def _given(inputs: Inputs, open_names: Sequence[str]) -> dict[str, object]:
    """Return values and words by parameter name."""
    if inputs is None:
        inputs = WORDS[0]
    if isinstance(inputs, Mapping):
        return dict(inputs)
    if isinstance(inputs, str):
        if inputs not in WORDS:
            raise InputError(
                f"{inputs!r} is neither an array nor a keyword: give {_listed(WORDS)}, or arrays"
            )
        return dict.fromkeys(open_names, inputs)
    if len(open_names) != 1:
        raise InputError(
            f"one array was given, but the parameters without a value are "
            f"{_listed(open_names)}: give a dict with an array for each"
        )
    return {open_names[0]: inputs}


def _check_names(
    wanted: Mapping[str, ir.Type], fixed: Mapping[str, object], given: Mapping[str, object]
) -> None:
    missing = [name for name in wanted if name not in given and name not in fixed]
    if missing:
        types = ", ".join(f"{name}: {type_label(wanted[name])}" for name in missing)
        raise InputError(
            f"no value for {types}: give {_listed(missing)} in params or inputs, "
            "where 'random' stands for random values"
        )
    unknown = [name for name in given if name not in wanted]
    if unknown:
        raise InputError(
            f"the function has no parameter {unknown[0]!r}; its parameters are {_listed(wanted)}"
        )
    for name, value in given.items():
        if isinstance(value, str) and value not in WORDS:
            raise InputError(
                f"{name!r} is {value!r}, which is neither an array nor a keyword: give "
                f"{_listed(WORDS)}, or an array"
            )


def _check_cases(counts: Mapping[str, int]) -> None:
    empty = [name for name, count in counts.items() if count == 0]
    if empty:
        raise InputError(
            f"there is no case in {_listed(empty)}: give an array with at least one row"
        )
    if len(set(counts.values()) - {1}) > 1:
        raise InputError(f"the inputs have different numbers of cases: {dict(counts)}")


def _listed(names: Iterable[object]) -> str:
    return ", ".join(repr(str(name)) for name in names) or "none"
