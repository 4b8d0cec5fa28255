"""Short text for shapes, sizes and other expressions, and for attributes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import tvm
import tvm_ffi
from tvm import ir, relax, tirx
from tvm.relax.distributed.type import DTensorType

from irviz.model.graph.graph import FUNCTION_NAME, Node, TypeParts
from irviz.worker import responses

_SIZED_INT = re.compile(r"\bT\.u?int\d+\((-?\d+)\)")
_ADDRESS = re.compile(r"\(0x[0-9a-f]+\)")
"""TVM prints it for an expression without a text form; it differs in every run."""
_UNPRINTABLE = 'metadata["relax.expr.DataflowVar"]'
"""TVM prints it for a number of a dataflow block where it is part of an expression."""


def shape_label(dims: object) -> str:
    """Return the dimensions of a shape as a Python tuple, symbolic ones by name."""
    labels = [dim_label(dim) for dim in dims]  # type: ignore[attr-defined]
    return f"({labels[0]},)" if len(labels) == 1 else f"({', '.join(labels)})"


def dim_label(value: object) -> str:
    """Return one dimension as text: `128`, `n`, `n * 2`."""
    if isinstance(value, tirx.IntImm):
        return str(value.value)
    if isinstance(value, ir.Var):
        return str(value.name)
    text = str(value)
    if _UNPRINTABLE in text:
        text = str(_with_plain_vars(value))
    # TVM prints declarations of variables above, and a comment on metadata below
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return _SIZED_INT.sub(r"\1", lines[-1]) if lines else ""


def _with_plain_vars(value: object) -> object:
    """Return an expression whose variables of dataflow blocks are others of the same names."""
    made: dict[int, ir.Var] = {}

    def plain(var: relax.DataflowVar) -> ir.Var:
        return made.setdefault(var.__chandle__(), relax.Var(var.name, var.ty))

    return tvm_ffi.structural_map(value, (relax.DataflowVar, plain))


def attributes(attrs: ir.Attrs | None) -> tuple[tuple[str, str], ...]:
    """Return the names and values of the attributes that are not None, in TVM's order."""
    if attrs is None:
        return ()
    if isinstance(attrs, ir.DictAttrs):
        items = [(str(key), attrs[key]) for key in attrs.keys()]  # noqa: SIM118 - no iterator
    else:
        names = [field.name for field in type(attrs).__tvm_ffi_type_info__.fields]
        items = [(name, getattr(attrs, name)) for name in names]
    return tuple(
        (name, dim_label(value) if isinstance(value, ir.Expr) else str(value))
        for name, value in items
        if value is not None
    )


def literal_label(value: ir.Expr) -> str:
    """Return the text of an argument that is shown inside its call, not as a node."""
    match value:
        case ir.GenericConst(value=tvm.runtime.Tensor() as tensor):
            try:
                return str(tensor.numpy())
            except Exception:  # NumPy has no such dtype
                return f"<{tensor.dtype}>"
        case ir.GenericConst():
            return str(value.value)
        case relax.ShapeExpr():
            return shape_label(value.values)
        case ir.StringImm():
            return repr(str(value.value))
        case ir.GlobalVar():
            return str(value.name_hint)
        case ir.Tuple(fields=fields) if not len(fields):
            return "()"
        case _:
            return expression_label(value)


def literal_type(value: ir.Expr) -> str:
    """Return the dtype of a number, `FUNCTION_NAME` for a GlobalVar, "" for any other argument."""
    if isinstance(value, ir.GlobalVar):
        return FUNCTION_NAME
    if isinstance(value, ir.GenericConst):
        return str(value.value.dtype) if isinstance(value.value, tvm.runtime.Tensor) else ""
    return str(value.ty.dtype) if isinstance(value.ty, ir.PrimType) else ""


def expression_label(value: object) -> str:
    """Return TVM's own text of an expression, or its class in angle brackets if TVM has none."""
    try:
        if ir.is_prim_expr(value):
            return _ADDRESS.sub("", dim_label(value))
        lines = [line for line in str(value).splitlines() if not line.startswith("# from ")]
    except Exception:  # TVM's printer raises on some values, and the graph is drawn all the same
        return f"<{type(value).__name__}>"
    return _ADDRESS.sub("", "\n".join(lines).strip())


# --- Short text for types, and the parts of types ------------------------------------------------


_MAX_FIELDS = 4
_MAX_NESTING = 20
_PLAIN_TYPES = {
    ir.StringType: "String",
    relax.FuncType: "Function",
    relax.AnyType: "Any",
    ir.Type: "?",
    type(None): "?",
}


def type_label(type_: ir.Type | None, depth: int = 0) -> str:
    """Return a type as short text, without the dtype if that is float32.

    >>> type_label(relax.TensorType([1, 128], "float32"))
    'Tensor[(1, 128)]'
    >>> type_label(relax.TensorType([4], "int64"))
    'Tensor[(4,), int64]'

    The label includes a tensor's device (`Tensor[(2,), cuda:0]`) or how it is sharded.
    """
    match type_:
        case relax.TensorType():
            return _tensor_label(type_)
        case relax.ShapeType():
            if type_.values is None:
                return f"Shape[ndim={type_.ndim}]" if type_.ndim >= 0 else "Shape"
            return f"Shape[{shape_label(type_.values)}]"
        case ir.TupleType():
            return _tuple_label(type_, depth)
        case DTensorType():
            placement = str(type_.placement).strip('"')
            mesh = shape_label(type_.device_mesh.shape)
            return f"D{_tensor_label(type_.tensor_ty)[:-1]}, {placement} on mesh {mesh}]"
        case ir.PrimType():
            return str(type_.dtype)
        case _ if type(type_) in _PLAIN_TYPES:
            return _PLAIN_TYPES[type(type_)]
        case _:
            return str(type_)


def _tensor_label(type_: relax.TensorType) -> str:
    dtype = "" if type_.dtype is None else str(type_.dtype)
    shape = type_.shape
    if isinstance(shape, relax.ShapeExpr):
        dims = shape_label(shape.values)
    elif isinstance(shape, ir.Var):
        dims = str(shape.name)
    else:
        dims = f"ndim={type_.ndim}" if type_.ndim >= 0 else ""
    vdevice = type_.vdevice
    device = "" if vdevice is None else f"{vdevice.target.kind.name}:{vdevice.vdevice_id}"
    parts = [part for part in (dims, "" if dtype == "float32" else dtype, device) if part]
    return f"Tensor[{', '.join(parts)}]" if parts else "Tensor"


def _tuple_label(type_: ir.TupleType, depth: int) -> str:
    if depth == _MAX_NESTING:
        return "Tuple[…]"
    fields = [type_label(field, depth + 1) for field in type_.fields]
    rest = len(fields) - _MAX_FIELDS
    if rest > 0:
        fields[_MAX_FIELDS:] = [f"… +{rest}"]
    return f"Tuple[{', '.join(fields)}]"


def type_parts(type_: ir.Type | None) -> TypeParts:
    """Return a type as text without abbreviations, and the parts of a tensor's type.

    >>> type_parts(relax.TensorType([1, 128], "float32")).shape
    '(1, 128)'
    """
    symbols: set[str] = set()
    tvm_ffi.structural_walk(type_, (ir.Var, lambda var: symbols.add(str(var.name))))
    text = " ".join(expression_label(type_).split())
    if not isinstance(type_, relax.TensorType):
        return TypeParts(text, symbols=frozenset(symbols))
    if isinstance(type_.shape, relax.ShapeExpr):
        shape = shape_label(type_.shape.values)
    else:
        shape = f"ndim={type_.ndim}" if type_.shape is None else str(type_.shape.name)
    dtype = "" if type_.dtype is None else str(type_.dtype)
    vdevice = type_.vdevice
    place = () if vdevice is None else (vdevice.target, vdevice.vdevice_id, vdevice.memory_scope)
    return TypeParts(text, shape, dtype, ":".join(map(str, place)), frozenset(symbols))


# --- The text of types and attributes, created once for all equal ones ---------------------------


_Text = TypeVar("_Text")


class TypeTexts:
    """The texts of equal types, created on first use."""

    def __init__(self, type_: ir.Type | None) -> None:
        self._type = type_

    @cached_property
    def label(self) -> str:
        """The type as short text."""
        return type_label(self._type)

    @cached_property
    def parts(self) -> TypeParts:
        """The parts of the type."""
        return type_parts(self._type)


# Without this cache, turning every shape into text takes longer than `mod.script()`.
def once_for_equal(make: Callable[[Any], _Text]) -> Callable[[object], _Text]:
    """Return a function that makes a text once for all values with the same structural hash.

    Symbolic sizes are hashed by identity, so it serves one module, which has few different texts.
    """
    made: dict[int, _Text] = {}

    def cached(value: object) -> _Text:
        key = tvm_ffi.structural_hash(value)
        if key not in made:
            made[key] = make(value)
        return made[key]

    return cached


class TypeText:
    """The label of a value's type, made on first use, and its hash computed once."""

    __slots__ = ("_of_type", "_texts", "_value")

    def __init__(self, value: ir.Expr, texts: Callable[[object], TypeTexts]) -> None:
        self._value = value
        self._texts = texts
        self._of_type: TypeTexts | None = None

    def __str__(self) -> str:
        return (self._of_type or self._found()).label

    @property
    def parts(self) -> TypeParts:
        """The parts of the type."""
        return (self._of_type or self._found()).parts

    def _found(self) -> TypeTexts:
        self._of_type = self._texts(getattr(self._value, "ty", None))
        return self._of_type

    def is_of(self, other: TypeText) -> bool:
        """Return whether it is the type of the same value as another one."""
        return bool(self._value.same_as(other._value))

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


responses.register(TypeText, str, str)


def is_same_type(one: Node, two: Node) -> bool:
    """Return whether two nodes have types with the same text, at once for the same variable."""
    mine, theirs = one.type_text, two.type_text
    is_one = isinstance(mine, TypeText) and isinstance(theirs, TypeText) and mine.is_of(theirs)
    return is_one or type_parts_of(one).text == type_parts_of(two).text


def type_parts_of(node: Node) -> TypeParts:
    """Return the type of a node's value taken apart."""
    text = node.type_text
    return text.parts if isinstance(text, TypeText) else TypeParts(str(text))
