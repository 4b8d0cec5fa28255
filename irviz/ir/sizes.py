"""Symbolic sizes: which there are, what an expression of them is, and what makes it so."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping

import tvm_ffi
from tvm import ir, relax, sym, tirx

from irviz.ir.identity import Names
from irviz.ir.scoped_names import variables
from irviz.ir.type_label import dim_label

_OPERATORS: tuple[tuple[type, Callable[[int, int], int]], ...] = (
    (tirx.Add, operator.add),
    (tirx.Sub, operator.sub),
    (tirx.Mul, operator.mul),
    (tirx.FloorDiv, operator.floordiv),
    (tirx.FloorMod, operator.mod),
    (tirx.Max, max),
    (tirx.Min, min),
)
_LARGEST = 1 << 62
_FEW = 256


def parameter_types(function: relax.Function | tirx.PrimFunc) -> dict[str, ir.Type]:
    """Return the types of a function's parameters by their ids; buffers are tensors."""
    names = Names()
    return {
        str(names.define(param.name)): _tensor(param.ty) if tirx.is_buffer_var(param) else param.ty
        for param in function.params
    }


def symbolic_sizes(
    function: relax.Function | tirx.PrimFunc, given: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the names of the sizes in the parameters' types that have to be asked for.

    A whole number that is a parameter counts as a size. What the values of the `given`
    parameters tell is left out, as is what follows from it, such as n where n * 2 is known.
    """
    types = parameter_types(function)
    dims = [
        (name in given, dim)
        for name, type_ in types.items()
        for dim in dims_of(name, type_)
        if not isinstance(dim, tirx.IntImm)  # as most are
    ]
    known: set[str] = set()
    while True:
        told = [names_of(dim) - known for is_given, dim in dims if is_given]
        new = {name for names in told if len(names) == 1 for name in names}
        if not new:
            break
        known |= new
    asked = {dim_label(var): None for _, dim in dims for var in variables(dim)}
    return tuple(name for name in asked if name not in known)


def dims_of(name: str, type_: ir.Type) -> Iterator[ir.Expr]:
    """Yield the sizes in a parameter's type; a whole number is itself a size."""
    if is_whole(type_):
        yield tirx.Var(name, str(type_.dtype))
    yield from sizes_in(type_)


def sizes_in(type_: ir.Type) -> Iterator[ir.Expr]:
    """Yield the sizes that stand in a type, those of a tuple's fields too."""
    if isinstance(type_, ir.TupleType):
        for field in type_.fields:
            yield from sizes_in(field)
    else:
        yield from shape_of(type_) or ()


def shape_of(type_: ir.Type) -> tuple[ir.Expr, ...] | None:
    """Return the sizes of a tensor's or a shape's type, None where it does not say them."""
    if isinstance(type_, relax.TensorType):
        return tuple(type_.shape.values) if isinstance(type_.shape, relax.ShapeExpr) else None
    if isinstance(type_, relax.ShapeType) and type_.values is not None:
        return tuple(type_.values)
    return None


def is_whole(type_: ir.Type) -> bool:
    """Return whether the values of a type are whole numbers, and no truths."""
    return isinstance(type_, ir.PrimType) and str(type_.dtype).startswith(("int", "uint"))


def names_of(dim: ir.Expr) -> set[str]:
    """Return the names of the sizes in an expression."""
    is_number = isinstance(dim, tirx.IntImm)  # as most are
    return set() if is_number else {dim_label(var) for var in variables(dim)}


def evaluated(dim: ir.Expr, dims: Mapping[str, int]) -> int | None:
    """Return what a size is when those in it are known, None when it has no value."""
    try:
        return _value(dim, dims)
    except (KeyError, ZeroDivisionError):
        return None


def solved(dim: ir.Expr, size: int, dims: Mapping[str, int]) -> tuple[str, int] | None:
    """Return the one unknown name of an expression, and the smallest size that makes it `size`.

    Returns None when not just one is unknown, or when nothing was found that makes it so.
    """
    unknown = names_of(dim) - dims.keys()
    if len(unknown) != 1:
        return None
    (name,) = unknown
    if isinstance(dim, ir.Var):
        return name, size

    def value(guess: int) -> int | None:
        return evaluated(dim, {**dims, name: guess})

    rising = _first(lambda guess: (value(guess) or 0) >= size)  # most sizes grow with what they are
    for guess in (rising, *range(_FEW)):
        if guess is not None and value(guess) == size:
            return name, guess
    return None


def _first(holds: Callable[[int], bool]) -> int | None:
    """Return the first number above 0 that something holds for, if it does for all after it."""
    high = 1
    while not holds(high):
        high *= 2
        if high > _LARGEST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _value(dim: ir.Expr, dims: Mapping[str, int]) -> int | None:
    # by Python's numbers, which do not overflow
    if isinstance(dim, tirx.IntImm):
        return int(dim.value)
    if isinstance(dim, ir.Var):
        return dims[dim_label(dim)]
    if isinstance(dim, tirx.Cast) and is_whole(dim.ty) and is_whole(dim.value.ty):
        return _value(dim.value, dims)
    compute = next((compute for kind, compute in _OPERATORS if isinstance(dim, kind)), None)
    if compute is not None:
        left, right = _value(dim.a, dims), _value(dim.b, dims)
        return None if left is None or right is None else compute(left, right)
    return _by_tvm(dim, dims)


def _tensor(buffer: ir.Type) -> relax.TensorType:
    return relax.TensorType([_wide(size) for size in buffer.shape], str(buffer.dtype))


def _wide(size: ir.Expr) -> ir.Expr:
    """Return a buffer's size as tensors have them, in 64 bits."""
    if str(size.ty.dtype) == "int64":
        return size
    if isinstance(size, tirx.IntImm):
        return tirx.IntImm("int64", size.value)
    return tirx.Var(size.name, "int64") if isinstance(size, ir.Var) else tirx.Cast("int64", size)


def _by_tvm(dim: ir.Expr, dims: Mapping[str, int]) -> int | None:
    if any(abs(dims[name]) > _LARGEST for name in names_of(dim)):
        return None

    def number(var: ir.Var) -> ir.Expr:
        return tirx.IntImm(str(var.ty.dtype), dims[dim_label(var)])

    try:
        found = sym.Analyzer().simplify(tvm_ffi.structural_map(dim, (ir.Var, number), order="post"))
    except (ValueError, RuntimeError):  # such as a size that an int32 cannot be, or over nothing
        return None
    return int(found.value) if isinstance(found, tirx.IntImm) else None
