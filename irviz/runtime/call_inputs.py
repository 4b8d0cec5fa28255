"""Turn inputs into argument lists: one for each case, synthetic values, sizes, caches to decode."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np
import tvm_ffi
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import InputError
from irviz.ir.module_functions import drawable_function, relax_function
from irviz.ir.parameter_values import Argument, Cache, CacheArgument, CacheCall, ShapeValue
from irviz.ir.symbolic_shapes import (
    dim_names,
    evaluate_dim,
    is_integer,
    parameter_dims,
    parameter_types,
    type_dims,
)
from irviz.ir.type_and_expression_labels import dim_label, type_label
from irviz.model.runs.execution_trace import Array
from irviz.runtime import argument_conversion as conversion
from irviz.runtime import kv_caches
from irviz.worker.shared_arrays import shared

RANDOM: Final = "random"
ZEROS: Final = "zeros"
WORDS: Final = (RANDOM, ZEROS)
"""The keywords that can replace an array."""

MOST_BYTES = 1 << 31
"""The limit for the synthetic values of one call."""

_MAKER = (
    ", or for a cache add to the module what returns one and takes only sizes, such as "
    "create_paged_kv_cache or _initialize_effect"
)
_MOST_INTEGER = 10
_MOST_DIMENSIONS = 64  # of an array of NumPy
_DTYPES = {
    *("bool", "bfloat16", "float16", "float32", "float64"),
    *(f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)),
}


def generator_for(name: str, seed: int) -> np.random.Generator:
    """Return the generator of a parameter's random values.

    It depends only on the name and the seed, so a parameter keeps its values when others are
    added or removed from stage to stage. Raises InputError for an invalid seed.
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"the seed is {seed!r}: give an integer of 0 or more")
    return np.random.default_rng([int(seed), zlib.crc32(name.encode())])


def random_array(
    shape: Sequence[int], dtype: str, generator: np.random.Generator
) -> NDArray[np.generic]:
    """Return random values of a dtype: standard normal for floats, 0 to 9 for integers.

    Matrices are scaled by 1 / sqrt(last size), so that products of many stay finite. Raises
    InputError for a dtype that NumPy and TVM do not share.
    """
    if dtype not in _DTYPES and not dtype.startswith("float8_"):
        raise InputError(f"no value can be created of dtype {dtype}")
    values: object
    if dtype == "bool":
        values = generator.integers(0, 2, shape)
    elif "int" in dtype:
        values = generator.integers(0, _MOST_INTEGER, shape, "int8")
    else:
        values = generator.standard_normal(shape, "float64" if dtype == "float64" else "float32")
        if len(shape) > 1:
            values /= np.float32(math.sqrt(max(shape[-1], 1)))
    return np.asarray(values).astype(dtype, copy=False)  # NumPy returns a scalar for an empty shape


def synthetic_value(
    name: str, type_: ir.Type, dims: Mapping[str, int], word: str, source: np.random.Generator
) -> Argument:
    """Return a synthetic value of a type that `synthetic_bytes` accepts.

    Shapes and integers are sizes, and come from `dims` with either word.
    """
    match type_:
        case ir.TupleType():
            return tuple(
                synthetic_value(f"{name}[{index}]", field, dims, word, source)
                for index, field in enumerate(type_.fields)
            )
        case relax.ShapeType():
            return ShapeValue(static_shape(name, type_, dims))
        case ir.PrimType() if is_integer(type_):
            return dims.get(name, 0)
        case ir.PrimType():
            number = random_array((), str(type_.dtype), source) if word == RANDOM else np.zeros(())
            return bool(number) if str(type_.dtype) == "bool" else float(number)
        case _:
            shape, dtype = static_shape(name, type_, dims), _dtype(type_)
            if word == ZEROS:
                return np.zeros(shape, dtype)
            return random_array(shape, dtype, source)


def synthetic_bytes(name: str, type_: ir.Type, dims: Mapping[str, int]) -> int:
    """Return the size of a synthetic value in bytes; raise InputError for an unsupported type."""
    if isinstance(type_, ir.TupleType):
        return sum(
            synthetic_bytes(f"{name}[{index}]", field, dims)
            for index, field in enumerate(type_.fields)
        )
    is_number = isinstance(type_, ir.PrimType)
    is_known = type_dims(type_) is not None or is_number
    dtype = str(type_.dtype) if is_number else _dtype(type_)
    if not is_known or not (dtype in _DTYPES or dtype.startswith("float8_")):
        maker = _MAKER if isinstance(type_, relax.AnyType) else ""
        raise InputError(
            f"no value can be created for {name}: {type_label(type_)}; give one in inputs{maker}"
        )
    if is_number:
        return 8
    shape = static_shape(name, type_, dims)
    if len(shape) > _MOST_DIMENSIONS and isinstance(type_, relax.TensorType):
        raise InputError(
            f"{name} has {len(shape)} dimensions, and arrays of NumPy have at most "
            f"{_MOST_DIMENSIONS}: no value can be created"
        )
    count = math.prod(shape)
    return count * np.dtype(dtype).itemsize if isinstance(type_, relax.TensorType) else 8


def check_bytes(taken: Mapping[str, int], dims: Mapping[str, int]) -> None:
    """Raise InputError if values of these sizes in bytes are too large in total."""
    total = sum(taken.values())
    if total > MOST_BYTES:
        largest = max(taken, key=lambda name: taken[name])
        sizes = ", ".join(f"{name} = {size:,}" for name, size in dims.items())
        given = f" with {sizes}" if sizes else ""
        raise InputError(
            f"the synthetic values take {total:,} bytes, {largest!r} alone "
            f"{taken[largest]:,}{given}, which is more than {MOST_BYTES:,}: give smaller "
            "sizes, or arrays"
        )


def static_shape(name: str, type_: ir.Type, dims: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of a tensor or shape type in numbers; raise InputError for one below 1.

    Zero is accepted if the type has it, or if a size in the expression is zero.
    """
    found = []
    for dim in type_dims(type_) or ():
        size, names = evaluate_dim(dim, dims), sorted(dim_names(dim))
        if size is None or size < 0 or (size == 0 and names and all(dims[n] for n in names)):
            made = ", ".join(f"{symbol} = {dims[symbol]}" for symbol in names if symbol in dims)
            what = "no size" if size is None else f"the size {size}"
            raise InputError(
                f"{name}: {type_label(type_)} has {what} where it says {dim_label(dim)}, with "
                f"{made or 'nothing known'}: give other sizes, as in sizes={{{names[0]!r}: 64}}"
                if names
                else f"{name}: {type_label(type_)} has {what}, and none is below 0"
            )
        found.append(size)
    return tuple(found)


def substitute_dims(type_: ir.Type, dims: Mapping[str, int]) -> ir.Type:
    """Return a type with the known dimensions replaced by numbers."""
    if isinstance(type_, ir.TupleType):
        return ir.TupleType([substitute_dims(field, dims) for field in type_.fields])
    shape = [
        size if (size := evaluate_dim(d, dims)) is not None else d for d in type_dims(type_) or ()
    ]
    if isinstance(type_, relax.TensorType) and type_dims(type_) is not None:
        return relax.TensorType(shape, type_.dtype)
    return relax.ShapeType(shape) if isinstance(type_, relax.ShapeType) and shape else type_


def _dtype(type_: ir.Type) -> str:
    return str(getattr(type_, "dtype", None) or "float32")


Inputs: TypeAlias = "Mapping[str, object] | Array | Literal['random', 'zeros'] | None"
"""Values by parameter name, each an array or a keyword; one array; one keyword for all; or None."""


@dataclass(frozen=True, eq=False)
class CallInputs:
    """The inputs of a session, from which the arguments of its functions are made.

    Attributes:
        inputs: Arrays by parameter name, or a single array if one parameter is left. An array with
            one more axis than its parameter, or with more rows where the parameter has one, holds
            one case per row. "random" or "zeros", in place of one array or of all of them, asks for
            synthetic values; None means "random". For a function that takes a cache, the names of
            its maker's sizes belong here too, and those of the prefill, as in "prefill.tokens".
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
        source, use = drawable_function(mod, function), kv_caches.cache_use(mod, function)
        if isinstance(source, tirx.PrimFunc):
            own = own_inputs(source, self.inputs)
            return plan_inputs(source, own, {}, seed=self.seed, sizes=self.sizes)
        named = self.inputs if isinstance(self.inputs, Mapping) else {}
        given = {one for one, value in named.items() if not isinstance(value, str)}
        if use is not None and use.parts.keys().isdisjoint(given | self.params.keys()):
            return _plan_with_cache(self, mod, function, use)
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

    columns: Sequence[conversion.Rows]

    def __len__(self) -> int:
        return max(map(len, self.columns), default=1)

    def __getitem__(self, case: int) -> list[Argument]:
        return [conversion.row(values, case if len(values) > 1 else 0) for values in self.columns]

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
        cache: How a cache is made and filled, if the function takes one.
    """

    types: Mapping[str, ir.Type]
    rows: Mapping[str, conversion.Rows]
    words: Mapping[str, str]
    dims: Mapping[str, int]
    seed: int
    inputs: tuple[str, ...]
    cache: CachePlan | None = None

    @property
    def cases(self) -> int:
        """The number of cases: how often the function will be called."""
        return max(map(len, self.rows.values()), default=1)

    def lines(self, given: str = "as given") -> tuple[str, ...]:
        """Return a line about each input: its type and its value, `given` for those given."""
        made = [] if self.cache is None else [self.cache.line]
        return (*(self._line(name, given) for name in self.inputs), *made)

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
        """Return the arguments of each case; synthetic values are the same in all cases.

        Tokens of steps that follow each other are not.
        """
        rows = dict(self.rows)
        for name, word in self.words.items():
            source = generator_for(name, self.seed)
            count = 1 if self.cache is None or name != self.cache.token else self.cache.steps
            rows[name] = [
                synthetic_value(name, self.types[name], self.dims, word, source)
                for _ in range(count)
            ]
        return self.with_values(rows)

    def with_values(self, rows: Mapping[str, conversion.Rows]) -> Cases:
        """Return the arguments of each case, of the values of all parameters."""
        cases = Cases([rows[name] for name in self.types])
        return cases if self.cache is None else self.cache.filled(cases, list(self.types))


def plan_inputs(
    function: relax.Function | tirx.PrimFunc,
    inputs: Inputs,
    params: Mapping[str, Argument],
    *,
    seed: int = 0,
    sizes: Mapping[str, int] = MappingProxyType({}),
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
    conversion.check_sizes(sizes)
    words = {n: value for n, value in given.items() if isinstance(value, str) and value in WORDS}
    values = {
        name: conversion.as_argument(name, value, wanted[name])
        for name, value in {**fixed, **given}.items()
        if name not in words
    }
    rows = {
        name: conversion.split_cases(value, wanted[name]) if name in given else [value]
        for name, value in values.items()
    }
    _check_cases({name: len(rows[name]) for name in given if name in rows})
    first = {
        name: value
        for name, found in rows.items()
        if not isinstance(value := conversion.row(found, 0), CacheArgument)
    }
    dims = conversion.resolve_sizes(wanted, first, sizes)
    check_bytes({name: synthetic_bytes(name, wanted[name], dims) for name in words}, dims)
    return Plan(wanted, rows, words, dims, int(seed), tuple(n for n in wanted if n in given))


def own_inputs(function: ir.BaseFunc | None, inputs: Inputs) -> Inputs:
    """Return the inputs that have the names of a PrimFunc's parameters, "random" for the rest.

    A single word applies to all parameters. Those of any other function are returned as they are.
    """
    if isinstance(inputs, str) or not isinstance(function, tirx.PrimFunc):
        return inputs
    named = inputs if isinstance(inputs, Mapping) else {}
    return {name: named.get(name, RANDOM) for name in parameter_types(function)}


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


# --- The cache of a language model: the calls that make and fill it ------------------------------


STEPS = 3
"""How many tokens are decoded after the prompt, unless they are given."""
_PAGE_SIZE = 16


@dataclass(frozen=True, eq=False)
class CachePlan:
    """The cache of a function, before the values of the calls that fill it are created.

    Attributes:
        function: The function that takes it, as `use` says.
        sizes: The arguments of its maker, those that are the function's own left out.
        label: What it is, in words.
        tokens: The number of sequences and the tokens of each that one call adds.
        token: The parameter with the tokens.
        steps: How many values of the tokens to create.
        prefill: The arguments of the call before, with its tokens in `prompt`.
        shared: The parameters of that call that have the function's own values.
    """

    function: str
    use: kv_caches.CacheUse
    sizes: Mapping[str, Argument]
    label: str
    tokens: tuple[int, int]
    token: str | None
    steps: int
    prefill: Plan | None
    prompt: tuple[int, int]
    shared: Sequence[str]

    @property
    def line(self) -> str:
        """How the cache is made, in words."""
        sizes = ", ".join(
            str(*one.dims) if isinstance(one, ShapeValue) and len(one.dims) == 1 else str(one)
            for one in self.sizes.values()
            if not isinstance(one, CacheArgument)
        )
        after = f", after {self.use.prefill} of {self.prompt[1]} tokens" if self.prefill else ""
        return f"{', '.join(self.use.parts)}: made by {self.use.maker}({sizes}){after}"

    def filled(self, cases: Cases, names: Sequence[str]) -> Cases:
        """Return the cases with their caches; each is filled by all calls before."""
        calls: list[CacheCall] = []
        own = dict(zip(names, cases[0], strict=True))
        sizes = tuple(own.get(name, size) for name, size in self.sizes.items())
        if self.prefill is not None and self.use.prefill is not None:
            values = dict(zip(self.prefill.types, self.prefill.argument_lists()[0], strict=True))
            values.update({name: own[name] for name in self.shared})
            calls.append(CacheCall(self.use.prefill, tuple(values.values()), self.prompt))
        caches = []
        for case in range(len(cases)):
            caches.append(Cache(self.use.maker, sizes, self.label, tuple(calls), self.tokens))
            if self.use.is_step:
                calls.append(CacheCall(self.function, tuple(cases[case]), self.tokens))
        columns = list(cases.columns)
        for name, part in self.use.parts.items():
            columns[names.index(name)] = [CacheArgument(part, one) for one in caches]
        return Cases(columns)


def _plan_with_cache(
    call: CallInputs, mod: ir.IRModule, name: str, use: kv_caches.CacheUse
) -> Plan:
    """Plan the arguments of a function that takes a cache; raise InputError.

    Inputs may also be sizes of the cache's maker by its parameters' names, and values of the
    prefill, as in "prefill.tokens".
    """
    source, maker = relax_function(mod, name), relax_function(mod, use.maker)
    inputs, mark = call.inputs, f"{use.prefill}."
    to_maker, to_prefill = dict[str, object](), dict[str, object]()
    if isinstance(inputs, Mapping):
        own = parameter_types(source)
        names = [one for one in parameter_types(maker) if one not in own]
        to_maker = {one: value for one, value in inputs.items() if one in names}
        to_prefill = {one: value for one, value in inputs.items() if one.startswith(mark)}
        others = to_maker.keys() | to_prefill.keys() | use.parts.keys()
        inputs = {one: value for one, value in inputs.items() if one not in others} or None
        unknown = [one for one in inputs or {} if one not in own]
        if unknown:
            raise InputError(
                f"{name!r} has no parameter {unknown[0]!r}; its parameters are "
                f"{_listed(own)}, those of {use.maker!r}, which makes its "
                f"cache, are {_listed(names)}"
                + (f", and {mark}… are those of {use.prefill!r}" if use.prefill else "")
            )
    made = {one: CacheArgument(part) for one, part in use.parts.items()}
    plan = plan_inputs(source, inputs, {**call.params, **made}, seed=call.seed, sizes=call.sizes)
    token, tokens = _tokens(source, plan)
    is_new = use.is_step and token in plan.words and plan.cases == 1
    steps = STEPS if is_new else plan.cases
    prompt, prefill, shared = (tokens[0], 0), None, list[str]()
    if use.prefill is not None:
        given = {one.removeprefix(mark): value for one, value in to_prefill.items()}
        prompt, prefill, shared = _plan_prefill(call, mod, use.prefill, plan, token, given)
    ends = [prompt[1] + tokens[1] * (step + 1 if use.is_step else 1) for step in range(steps)]
    plan = _with_totals(source, plan, ends)
    sequences = max(prompt[0], tokens[0])
    page, sizes = _maker_sizes(maker, sequences, ends[-1], {**call.sizes, **to_maker})
    layers = kv_caches.paged_layers(maker)
    label = "" if layers is None else f"of {layers} layers, with {page} tokens a page"
    rows = {**plan.rows, **{one: [part] * steps for one, part in made.items()}}
    cache = CachePlan(
        *(name, use, sizes, label, tokens, token, steps if is_new else 1, prefill, prompt, shared)
    )
    return replace(plan, rows=rows, cache=cache)


def _plan_prefill(
    call: CallInputs,
    mod: ir.IRModule,
    name: str,
    of: Plan,
    token: str | None,
    given: Mapping[str, object],
) -> tuple[tuple[int, int], Plan, list[str]]:
    """Plan the call before; return its tokens too, and the parameters with values of the other's.

    These have the same name and type in both, as weights have.
    """
    source, use = relax_function(mod, name), kv_caches.cache_use(mod, name)
    types, own = parameter_types(source), kv_caches.token_parameter(source)
    made = {} if use is None else {n: CacheArgument(part) for n, part in use.parts.items()}
    apart = {token, own, *made, *given, *kv_caches.total_lengths(source)}
    shared = [
        one
        for one, type_ in types.items()
        if one in of.types.keys() - apart
        and tvm_ffi.structural_equal(type_, of.types[one], map_free_vars=True)
    ]
    word = call.inputs if isinstance(call.inputs, str) else RANDOM
    known = {
        size: of.dims[size]
        for one in shared
        for dim in parameter_dims(one, types[one])
        for size in dim_names(dim)
    }
    fixed: dict[str, Argument] = {**call.params, **made, **dict.fromkeys(shared, CacheArgument())}
    inputs = {**{one: word for one in types if one not in fixed}, **given}
    plan = plan_inputs(source, inputs, fixed, seed=call.seed, sizes={**known, **call.sizes})
    tokens = _tokens(source, plan)[1]
    return tokens, _with_totals(source, plan, [tokens[1]]), shared


def _tokens(source: relax.Function, plan: Plan) -> tuple[str | None, tuple[int, int]]:
    """Return the parameter with the tokens, and the number of sequences and the tokens of each."""
    name = kv_caches.token_parameter(source)
    if name is None:
        return None, (1, 1)
    type_ = plan.types[name]
    return name, kv_caches.token_counts(type_, static_shape(name, type_, plan.dims))


def _with_totals(source: relax.Function, plan: Plan, lengths: Sequence[int]) -> Plan:
    """Return a plan whose lengths of the whole cache are these, by case, where none are given."""
    sizes = {
        name: dim_label(*(type_dims(plan.types[name]) or ()))
        for name in kv_caches.total_lengths(source)
        if name in plan.words
    }
    return replace(
        plan,
        rows={**plan.rows, **{name: [ShapeValue((one,)) for one in lengths] for name in sizes}},
        words={name: word for name, word in plan.words.items() if name not in sizes},
        dims={**plan.dims, **dict.fromkeys(sizes.values(), lengths[0])},
        inputs=tuple(name for name in plan.inputs if name not in sizes),
    )


def _maker_sizes(
    maker: relax.Function, sequences: int, length: int, given: Mapping[str, object]
) -> tuple[int, dict[str, Argument]]:
    """Return the tokens of a page and the arguments of a maker, large enough where not given.

    Its weights are left out.
    """
    page = given.get("page_size", _PAGE_SIZE)
    page = page if isinstance(page, int) and page > 0 else _PAGE_SIZE
    total = sequences * -(-length // page) * page
    values = {
        "max_batch_size": sequences,
        "max_total_seq_len": total,
        "prefill_chunk_size": total,
        "page_size": page,
        "support_sliding_window": 0,
        **given,
    }
    types = parameter_types(maker)
    shapes = {
        name: ", ".join(map(dim_label, type_dims(type_) or ()))
        for name, type_ in types.items()
        if isinstance(type_, relax.ShapeType)
    }
    sizes = [name for name, type_ in types.items() if kv_caches.is_size(type_)]
    inputs = {n: values.get(n, values.get(shapes.get(n, n), conversion.SIZE)) for n in sizes}
    inputs = {n: (v,) if n in shapes and isinstance(v, int) else v for n, v in inputs.items()}
    others = {name: CacheArgument() for name in types if name not in inputs}
    made = plan_inputs(maker, inputs, others).argument_lists()[0]
    return page, dict(zip(types, made, strict=True))
