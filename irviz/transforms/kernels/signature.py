"""Signatures of destination-passing functions, what fits one, and sample calls of one."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import IrvizError
from irviz.ir.symbolic_shapes import evaluate_dim
from irviz.ir.tir_statements import flatten, nested_statements, used_vars
from irviz.ir.type_and_expression_labels import dim_label

_DIM = r"(?:[^\W\d]\w*|\d+|\.\.\.)"
_ONE_ELLIPSIS = r"(?![^()]*\.\.\.[^()]*\.\.\.)"
_TENSOR = rf"\({_ONE_ELLIPSIS}(?:{_DIM}(?:,{_DIM})*)?\)"
_TENSORS = rf"({_TENSOR}(?:,{_TENSOR})*)"
_NAME = re.compile(r"[^\W\d]\w*")
_TEXT = re.compile(f"{_TENSORS}->{_TENSORS}")


# The notation is NumPy's for generalized ufuncs. A name stands for one size; symbolic sizes are
# compared as text.


@dataclass(frozen=True)
class TensorSignature:
    """A tensor's dimensions (names, numbers, or `...` for any number of them) and its dtype."""

    dims: tuple[str, ...]
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions as numbers; all have to be static."""
        return tuple(map(int, self.dims))

    def __str__(self) -> str:
        return f"({','.join(self.dims)})"


@dataclass(frozen=True)
class Signature:
    """The tensors that a function reads and writes, in the order of its arguments."""

    inputs: tuple[TensorSignature, ...]
    outputs: tuple[TensorSignature, ...]

    @property
    def tensors(self) -> tuple[TensorSignature, ...]:
        """The inputs, then the outputs."""
        return (*self.inputs, *self.outputs)

    def __str__(self) -> str:
        return f"{','.join(map(str, self.inputs))}->{','.join(map(str, self.outputs))}"


def parse_signature(text: str, dtype: str = "float32") -> Signature:
    """Parse NumPy's notation for generalized ufuncs: `(b,m),(n,m),(n)->(b,n)`.

    Equal names are equal sizes; `...` is any number of dimensions, the same ones everywhere.
    Raises ValueError when the text is not a signature.
    """
    found = _TEXT.fullmatch(re.sub(r"\s*([(),]|->)\s*", r"\1", text))
    if not found:
        raise ValueError(
            f"{text!r} is not a signature; write one as in NumPy's ufuncs: '(b,m),(n,m),(n)->(b,n)'"
        )
    inputs, outputs = (
        tuple(
            TensorSignature(tuple(filter(None, dims.split(","))), dtype)
            for dims in re.findall(r"\(([^()]*)\)", side)
        )
        for side in found.groups()
    )
    return Signature(inputs, outputs)


def signature_of_prim_func(function: tirx.PrimFunc, outputs: int) -> Signature | None:
    """Return a PrimFunc's signature; its last `outputs` parameters are what it writes.

    Returns None when it has parameters that are not buffers.
    """
    if not all(isinstance(param.ty, tirx.BufferType) for param in function.params):
        return None
    tensors = tuple(tensor_signature(p.ty.shape, p.ty.dtype) for p in function.params)
    inputs = len(tensors) - outputs
    return Signature(tensors[:inputs], tensors[inputs:])


def call_types(call: ir.Call) -> tuple[list[ir.Type], list[ir.Type]]:
    """Return the types of the inputs and of the outputs of a `call_tir` or `call_dps_packed`."""
    packed, out = call.args[1], call.ty_args[0]
    inputs = packed.fields if isinstance(packed, ir.Tuple) else [packed]
    outputs = out.fields if isinstance(out, ir.TupleType) else [out]
    return [each.ty for each in inputs], list(outputs)


def signature_of_call(call: ir.Call) -> Signature | None:
    """Return a call's signature, None when an argument is not a tensor of known shape."""
    sides = []
    for types in call_types(call):
        if not all(
            isinstance(each, relax.TensorType)
            and each.dtype is not None
            and isinstance(each.shape, relax.ShapeExpr)
            for each in types
        ):
            return None
        sides.append(tuple(tensor_signature(t.shape.values, t.dtype) for t in types))
    return Signature(*sides)


def tensor_signature(dims: Iterable[ir.Expr], dtype: object) -> TensorSignature:
    """Return the signature of a tensor with these dimensions."""
    return TensorSignature(tuple(map(dim_label, dims)), str(dtype))


def fits(pattern: Signature, call: Signature) -> bool:
    """Tell whether a call matches a signature, with one size for each name.

    >>> linear = parse_signature("(b,m),(n,m),(n)->(b,n)")
    >>> fits(linear, parse_signature("(1,784),(128,784),(128)->(1,128)"))
    True
    >>> fits(linear, parse_signature("(1,784),(128,784),(10)->(1,128)"))
    False
    """
    sizes: dict[str, tuple[str, ...]] = {}
    return all(
        len(wanted) == len(given)
        and all(_unify(w, g, sizes) for w, g in zip(wanted, given, strict=True))
        for wanted, given in ((pattern.inputs, call.inputs), (pattern.outputs, call.outputs))
    )


def _unify(
    pattern: TensorSignature, given: TensorSignature, sizes: dict[str, tuple[str, ...]]
) -> bool:
    names, dims = pattern.dims, given.dims
    if "..." in names:
        start = names.index("...")
        end = len(dims) - (len(names) - start - 1)
        if end < start or sizes.setdefault("...", dims[start:end]) != dims[start:end]:
            return False
        names, dims = names[:start] + names[start + 1 :], dims[:start] + dims[end:]
    return (
        pattern.dtype == given.dtype
        and len(dims) == len(names)
        and all(_unify_dim(name, dim, sizes) for name, dim in zip(names, dims, strict=True))
    )


def _unify_dim(pattern: str, given: str, sizes: dict[str, tuple[str, ...]]) -> bool:
    if pattern.isidentifier():
        return sizes.setdefault(pattern, (given,)) == (given,)
    # a number matches itself; an expression such as `n * 2` is compared as text, n substituted
    return given == _NAME.sub(lambda name: sizes.get(name[0], (name[0],))[0], pattern)


# --- Sample calls: small sizes, and numbers by which functions can be told apart -----------------


Array = NDArray[np.generic]
Dim = TypeVar("Dim")

_SMALL_SIZES = (19, 23, 17, 29, 13, 31, 11, 37, *range(41, 1000, 2))
_SIZE_SCALES = (1, 4, 16)
"""Factors for the small sizes, tried in turn until every size computed from them is positive."""

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
    return sum(math.prod(tensor.shape) for tensor in signature.tensors)


def with_small_sizes(signature: Signature, kept: Collection[str] = ()) -> Signature:
    """Return the signature with small sizes; equal sizes stay equal, different ones different.

    Sizes in `kept`, and 0 and 1, are unchanged.
    """
    sizes = {size: size for size in ("0", "1", *kept)}
    small = (str(size) for size in _SMALL_SIZES if str(size) not in sizes)

    def tensor(given: TensorSignature) -> TensorSignature:
        for dim in given.dims:
            if dim not in sizes:
                sizes[dim] = next(small)
        return TensorSignature(tuple(sizes[dim] for dim in given.dims), given.dtype)

    return Signature(tuple(map(tensor, signature.inputs)), tuple(map(tensor, signature.outputs)))


def sample_signature(call: ir.Call, callee: tirx.PrimFunc | None) -> Signature | None:
    """Return a call's signature with static sizes: small ones stand in for symbolic sizes.

    Sizes that are static in the callee are used as they are. Returns None when no sizes fit.
    """
    inputs, outputs = call_types(call)
    types = [*inputs, *outputs]
    given = {
        str(dim.name): int(own.value)
        for own, dim in _paired_dims(callee, [type_.shape.values for type_ in types])
        if isinstance(dim, ir.Var) and isinstance(own, tirx.IntImm)
    }
    dims = [dim for type_ in types for dim in type_.shape.values]
    symbols = dict.fromkeys(str(var.name) for dim in dims for var in used_vars(dim))
    free = [name for name in symbols if name not in given]
    taken = {dim.value for dim in dims if isinstance(dim, tirx.IntImm)}
    for scale in _SIZE_SCALES:
        small = (size * scale for size in _SMALL_SIZES if size * scale not in taken)
        sizes = given | dict(zip(free, small, strict=False))
        tensors = [
            TensorSignature(
                tuple(str(evaluate_dim(d, sizes)) for d in t.shape.values), str(t.dtype)
            )
            for t in types
        ]
        if all(dim.isdigit() for tensor in tensors for dim in tensor.dims):
            return Signature(tuple(tensors[: len(inputs)]), tuple(tensors[len(inputs) :]))
    return None


def statement_count(function: tirx.PrimFunc, signature: Signature) -> int:
    """Estimate how many statements a PrimFunc executes at these sizes."""
    shapes = [tensor.dims for tensor in signature.tensors]
    sizes = {
        str(own.name): int(dim)
        for own, dim in _paired_dims(function, shapes)
        if isinstance(own, ir.Var)
    }
    total = 0
    stack = [(stmt, 1) for stmt in flatten(function.body)]
    while stack:
        stmt, times = stack.pop()
        if isinstance(stmt, tirx.For):
            extent = evaluate_dim(stmt.extent, sizes)
            times *= 1 if extent is None else extent
        inner = nested_statements(stmt)
        total += 0 if inner else times
        stack += [(each, times) for part in inner for each in flatten(part)]
    return total


def _paired_dims(
    callee: tirx.PrimFunc | None, shapes: Iterable[Iterable[Dim]]
) -> Iterator[tuple[ir.Expr, Dim]]:
    """Yield the dimensions of the callee's buffers, each with that of the tensor given for it."""
    for param, shape in zip(callee.params if callee is not None else (), shapes, strict=False):
        if tirx.is_buffer_var(param):
            yield from zip(param.ty.shape, shape, strict=False)


@dataclass(frozen=True)
class SampleSpec:
    """The samples of a comparison: their static signature, and whether only a few are used."""

    signature: Signature
    few: bool = False

    def draw(self) -> Iterator[tuple[list[Array], list[Array]]]:
        """Yield the arrays of several sample calls, the same ones each time: inputs, outputs.

        Each round draws numbers of either sign and several magnitudes, zeros included; then
        standard normal ones (unless `few`); then only positive ones, for functions that are NaN
        elsewhere. Calls with few elements get more rounds. Outputs are prefilled, so that
        elements which a function does not write are noticed.

        Raises:
            UnknownDtypeError: NumPy does not have a dtype of the signature.
        """
        rng = np.random.default_rng(_SEED)
        rounds = max(1, min(_MOST_ROUNDS, _ENOUGH // max(1, element_count(self.signature))))
        kinds = (_mixed, _positive) if self.few else (_mixed, _normal, _positive)
        indices = _index_bound(self.signature)
        for number, kind in itertools.product(range(rounds), kinds):
            inputs = []
            for tensor in self.signature.inputs:
                dtype, dims = _dtype(tensor), tensor.shape
                size = math.prod(dims)
                if dtype.kind == "f":
                    spread = 0.25 if dtype == np.float16 else 1.0  # so that sums do not overflow
                    values = (kind(rng, min(size, _PERIOD), number) * spread).astype(dtype)
                else:
                    low, high = _range(dtype, indices)
                    values = rng.integers(low, high, min(size, _PERIOD)).astype(dtype)
                inputs.append(np.resize(values, dims))
            outputs = [
                np.full(tensor.shape, 17 + number, _dtype(tensor))
                for tensor in self.signature.outputs
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
    return min((size for t in signature.inputs for size in t.shape if size > 0), default=1)


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
