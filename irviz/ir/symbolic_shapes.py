"""Symbolic sizes: list them, evaluate expressions of them, and solve for them."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from math import prod

import tvm
import tvm_ffi
from tvm import ir, relax, sym, tirx

from irviz.errors import IrvizError
from irviz.ir.node_ids import NodeIds
from irviz.ir.tir_statements import used_vars
from irviz.ir.type_and_expression_labels import dim_label

_OPERATORS: Mapping[type, Callable[[int, int], int]] = {
    tirx.Add: operator.add,
    tirx.Sub: operator.sub,
    tirx.Mul: operator.mul,
    tirx.FloorDiv: operator.floordiv,
    tirx.FloorMod: operator.mod,
    tirx.Max: max,
    tirx.Min: min,
}
_MAX_BITS = 62
_MAX_GUESSES = 256


def parameter_types(function: relax.Function | tirx.PrimFunc) -> dict[str, ir.Type]:
    """Return the types of a function's parameters by id; a buffer's type is a TensorType."""
    names = NodeIds()
    return {
        str(names.define(param.name)): _tensor(param.ty) if tirx.is_buffer_var(param) else param.ty
        for param in function.params
    }


def symbolic_sizes(
    function: relax.Function | tirx.PrimFunc, known_params: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of the unknown sizes in the types of a function's parameters.

    A parameter that is an integer counts as a size. The values of `known_params` determine their
    sizes, and the sizes that follow from these, such as n from n * 2.
    """
    types = parameter_types(function)
    dims = [
        (name in known_params, dim)
        for name, type_ in types.items()
        for dim in parameter_dims(name, type_)
    ]
    known: set[str] = set()
    while new := {
        name
        for is_known, dim in dims
        if is_known and len(unknown := dim_names(dim) - known) == 1
        for name in unknown
    }:
        known |= new
    asked = {dim_label(var): None for _, dim in dims for var in used_vars(dim)}
    return tuple(name for name in asked if name not in known)


def parameter_dims(name: str, type_: ir.Type) -> Iterator[ir.Expr]:
    """Yield the sizes in a parameter's type; a parameter that is an integer is itself a size."""
    if is_integer(type_):
        yield tirx.Var(name, str(type_.dtype))
    yield from _nested_dims(type_)


def _nested_dims(type_: ir.Type) -> Iterator[ir.Expr]:
    for part in type_.fields if isinstance(type_, ir.TupleType) else ():
        yield from _nested_dims(part)
    yield from type_dims(type_) or ()


def type_dims(type_: ir.Type | None) -> tuple[ir.Expr, ...] | None:
    """Return the sizes in a TensorType or ShapeType, or None if it has none."""
    if isinstance(type_, relax.TensorType):
        return tuple(type_.shape.values) if isinstance(type_.shape, relax.ShapeExpr) else None
    if isinstance(type_, relax.ShapeType) and type_.values is not None:
        return tuple(type_.values)
    return None


def is_integer(type_: ir.Type) -> bool:
    """Tell whether the values of a type are integers; bool is not one."""
    return isinstance(type_, ir.PrimType) and str(type_.dtype).startswith(("int", "uint"))


def dim_names(dim: ir.Expr) -> set[str]:
    """Return the names of the symbolic sizes in an expression."""
    return {dim_label(var) for var in used_vars(dim)}


def evaluate_dim(dim: ir.Expr, dims: Mapping[str, int]) -> int | None:
    """Return the value of an expression of sizes, or None if it has none."""
    try:
        return _value(dim, dims)
    except (KeyError, ZeroDivisionError):
        return None


def solve_dim(dim: ir.Expr, size: int, dims: Mapping[str, int]) -> tuple[str, int] | None:
    """Return the one unknown name in an expression, and a value of it that gives `size`.

    None if not exactly one name is unknown, or if no value was found. The search is a bisection,
    as most sizes grow with what they depend on, and then the numbers below 256.
    """
    unknown = dim_names(dim) - dims.keys()
    if len(unknown) != 1:
        return None
    (name,) = unknown
    if isinstance(dim, ir.Var):
        return name, size

    def value(guess: int) -> int | None:
        return evaluate_dim(dim, {**dims, name: guess})

    def is_enough(guess: int) -> bool:
        return (value(guess) or 0) >= size

    high = next((1 << power for power in range(_MAX_BITS + 1) if is_enough(1 << power)), 0)
    bisected = bisect_left(range(high), True, lo=high // 2 + 1, key=is_enough) if high else 0
    guesses = (bisected, *range(_MAX_GUESSES))
    return next(((name, guess) for guess in guesses if value(guess) == size), None)


def _value(dim: ir.Expr, dims: Mapping[str, int]) -> int | None:
    # Python's integers do not overflow
    if isinstance(dim, tirx.IntImm):
        return int(dim.value)
    if isinstance(dim, ir.Var):
        return dims[dim_label(dim)]
    if isinstance(dim, tirx.Cast) and is_integer(dim.ty) and is_integer(dim.value.ty):
        return _value(dim.value, dims)
    compute = _OPERATORS.get(type(dim))
    if compute is not None:
        left, right = _value(dim.a, dims), _value(dim.b, dims)
        return None if left is None or right is None else compute(left, right)
    return _by_tvm(dim, dims)


def _tensor(buffer: ir.Type) -> relax.TensorType:
    return relax.TensorType([_wide(size) for size in buffer.shape], str(buffer.dtype))


def _wide(size: ir.Expr) -> ir.Expr:
    """Return a buffer's size as a 64-bit integer, as tensor types have it."""
    if str(size.ty.dtype) == "int64":
        return size
    if isinstance(size, tirx.IntImm):
        return tirx.IntImm("int64", size.value)
    return tirx.Var(size.name, "int64") if isinstance(size, ir.Var) else tirx.Cast("int64", size)


def _by_tvm(dim: ir.Expr, dims: Mapping[str, int]) -> int | None:
    if any(abs(dims[name]) > 1 << _MAX_BITS for name in dim_names(dim)):
        return None

    def number(var: ir.Var) -> ir.Expr:
        return tirx.IntImm(str(var.ty.dtype), dims[dim_label(var)])

    try:
        found = sym.Analyzer().simplify(tvm_ffi.structural_map(dim, (ir.Var, number), order="post"))
    except (ValueError, RuntimeError):  # a size too large for int32, or a division by zero
        return None
    return int(found.value) if isinstance(found, tirx.IntImm) else None


# --- Evaluate shapes and sizes in bytes for known values of the symbolic sizes -------------------


Shape = tuple[int, ...]


class UnknownSizeError(IrvizError, ValueError):
    """A size depends on an unknown symbolic size, `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the size {name!r} is not known")
        self.name = name


class ShapeEvaluator:
    """Evaluates the sizes in one function, and learns symbolic sizes from known shapes.

    `asked` collects the names that evaluated sizes contained.
    """

    def __init__(self, sizes: Mapping[str, int], asked: dict[str, None] | None = None) -> None:
        self.asked: dict[str, None] = {} if asked is None else asked
        self._sizes = dict(sizes)

    def inside(self) -> ShapeEvaluator:
        """Return an evaluator for a called function, which learns by itself."""
        return ShapeEvaluator(self._sizes, self.asked)

    def of(self, size: ir.Expr) -> int:
        """Return a size's value; raise UnknownSizeError if it depends on an unknown one."""
        names = sorted(dim_names(size))
        self.asked.update(dict.fromkeys(names))
        found = evaluate_dim(size, self._sizes)
        if found is None:
            raise UnknownSizeError(next((n for n in names if n not in self._sizes), str(size)))
        return found

    def shape(self, dims: Iterable[ir.Expr]) -> Shape:
        """Return a shape's value; raise UnknownSizeError if it depends on an unknown size."""
        return tuple(map(self.of, dims))

    def known(self, type_: ir.Type | None) -> Shape | None:
        """Return the shape in a type, or None if it is unknown."""
        dims = type_dims(type_)
        try:
            return None if dims is None else self.shape(dims)
        except UnknownSizeError:
            return None

    def learn(self, type_: ir.Type | None, shape: Shape | None) -> None:
        """Learn symbolic sizes in a type from the shape of a value of this type."""
        for dim, size in zip(type_dims(type_) or (), shape or (), strict=False):
            own = {name: value for name, value in self._sizes.items() if name not in dim_names(dim)}
            found = solve_dim(dim, size, own)
            if found is not None:
                self._sizes[found[0]] = found[1]


def nbytes(shape: Shape, dtype: object) -> int:
    """Return a tensor's size in bytes."""
    type_ = tvm.DataType(str(dtype))
    return prod(shape) * ((int(type_.bits) * int(type_.lanes) + 7) // 8)


def tensor_types(type_: ir.Type | None) -> list[relax.TensorType]:
    """Return the tensor types in a type: its own, or those of a tuple's fields in order."""
    if isinstance(type_, ir.TupleType):
        return [found for field in type_.fields for found in tensor_types(field)]
    return [type_] if isinstance(type_, relax.TensorType) else []
