"""The text of types, attributes and literals, made once for all that are alike."""

from __future__ import annotations

import re

import tvm
import tvm_ffi
from tvm import ir, relax

from irviz.ir.attributes import attributes
from irviz.ir.type_label import dim_label, shape_label, type_label

_ADDRESS = re.compile(r"\(0x[0-9a-f]+\)")
"""What TVM prints of an expression that it has no words for; another one in every run."""


class Texts:
    """Remembers texts by TVM's structural hash: a large module has few that differ.

    Symbolic sizes are hashed by identity, so that one Texts serves one module.
    """

    def __init__(self) -> None:
        self._types: dict[int, str] = {}
        self._attributes: dict[int, tuple[tuple[str, str], ...]] = {}

    def type_label(self, type_: ir.Type | None) -> str:
        """Return a type as short text."""
        if type_ is None:
            return type_label(None)
        key = tvm_ffi.structural_hash(type_)
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = type_label(type_)
        return found

    def attributes(self, attrs: ir.Attrs | None) -> tuple[tuple[str, str], ...]:
        """Return the attributes of a call."""
        if attrs is None:
            return ()
        key = tvm_ffi.structural_hash(attrs)
        found = self._attributes.get(key)
        if found is None:
            found = self._attributes[key] = attributes(attrs)
        return found


class TypeText:
    """The label of a value's type, made when it is read."""

    __slots__ = ("_texts", "_value")

    def __init__(self, value: ir.Expr, texts: Texts) -> None:
        self._value = value
        self._texts = texts

    def __str__(self) -> str:
        return self._texts.type_label(getattr(self._value, "ty", None))

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def expression(value: object) -> str:
    """Return TVM's own text of an expression, or its type's name where TVM has none."""
    try:
        if ir.is_prim_expr(value):
            return _ADDRESS.sub("", dim_label(value))
        lines = [line for line in str(value).splitlines() if not line.startswith("# from ")]
    except Exception:  # TVM's printer refuses some values; a picture is due all the same
        return f"<{type(value).__name__}>"
    return _ADDRESS.sub("", "\n".join(lines).strip())


def literal(value: ir.Expr) -> str:
    """Return an argument that is written at its use as text."""
    match value:
        case ir.GenericConst(value=tvm.runtime.Tensor() as tensor):
            return _scalar(tensor)
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
            return expression(value)


def _scalar(tensor: tvm.runtime.Tensor) -> str:
    try:
        return str(tensor.numpy())
    except Exception:  # NumPy has no such dtype
        return f"<{tensor.dtype}>"
