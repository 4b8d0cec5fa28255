"""Write a PrimFunc's expressions as Python, with scalars of NumPy."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np
import tvm_ffi
from tvm import ir, tirx

from irviz.errors import NumPyError

Names = Mapping[ir.Var, ast.expr]
"""What each variable is written as: its name, or that of the loop that drives it."""

_BINARY: Mapping[type, type[ast.operator]] = {
    tirx.Add: ast.Add,
    tirx.Sub: ast.Sub,
    tirx.Mul: ast.Mult,
    tirx.FloorDiv: ast.FloorDiv,
    tirx.FloorMod: ast.Mod,
    tirx.BitwiseAnd: ast.BitAnd,
    tirx.BitwiseOr: ast.BitOr,
    tirx.BitwiseXor: ast.BitXor,
    tirx.LShift: ast.LShift,
    tirx.RShift: ast.RShift,
}
_COMPARISONS: Mapping[type, type[ast.cmpop]] = {
    tirx.EQ: ast.Eq,
    tirx.NE: ast.NotEq,
    tirx.LT: ast.Lt,
    tirx.LE: ast.LtE,
    tirx.GT: ast.Gt,
    tirx.GE: ast.GtE,
}
_OPERATORS: Mapping[str, type[ast.operator]] = {
    "bitwise_and": ast.BitAnd,
    "bitwise_or": ast.BitOr,
    "bitwise_xor": ast.BitXor,
    "shift_left": ast.LShift,
    "shift_right": ast.RShift,
}
_SAME_NAME = (
    *("exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh"),
    *("tanh", "floor", "ceil", "trunc", "hypot", "fmod", "copysign", "nextafter", "ldexp"),
    *("isnan", "isinf", "isfinite"),
)
_NUMPY: Mapping[str, str] = {
    **{name: name for name in _SAME_NAME},
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
    "atan2": "arctan2",
    "acosh": "arccosh",
    "asinh": "arcsinh",
    "atanh": "arctanh",
    "fabs": "abs",
    "nearbyint": "rint",
    "pow": "power",
}
"""NumPy's names of intrinsic functions."""
_TEMPLATES: Mapping[str, str] = {
    "rsqrt": "1 / np.sqrt({0})",
    "sigmoid": "1 / (1 + np.exp(-{0}))",
    "exp10": "np.power(10, {0})",
    "erf": "math.erf({0})",
    "round": "np.copysign(np.floor(np.abs({0}) + 0.5), {0})",  # halves away from zero
    "abs": "abs({0})",
    "likely": "{0}",
    "if_then_else": "{1} if {0} else {2}",
    "popcount": "int({0}).bit_count()",
}
"""Templates of intrinsic functions that are more than a single NumPy call."""


def expression(expr: ir.Expr, names: Names) -> ast.expr:
    """Return an expression as Python; raise NumPyError for constructs that NumPy lacks."""
    match expr:
        case ir.Var():
            return _variable(expr, names)
        case tirx.IntImm() | tirx.FloatImm() | ir.StringImm():
            return _constant(expr)
        case ir.TensorLoad():
            return element(expr.source, expr.indices, names)
        case tirx.Cast():
            return cast(dtype_of(expr), expression(expr.value, names))
        case tirx.Select():
            parts = (expr.condition, expr.true_value, expr.false_value)
            return _filled(_TEMPLATES["if_then_else"], [expression(one, names) for one in parts])
        case tirx.Not() | tirx.BitwiseNot():
            operator = ast.Not() if isinstance(expr, tirx.Not) else ast.Invert()
            return ast.UnaryOp(operator, expression(expr.a, names))
        case tirx.Let():
            return expression(expr.body, {**names, expr.var: expression(expr.value, names)})
        case ir.Call():
            return _call(expr, names)
    if hasattr(expr, "a") and hasattr(expr, "b"):
        return _binary(expr, expression(expr.a, names), expression(expr.b, names))
    raise NumPyError(f"{type(expr).__name__} {_text(expr)}")


def element(buffer: ir.Var, indices: Sequence[ir.Expr], names: Names) -> ast.Subscript:
    """Return an element of a buffer as Python."""
    at = [expression(one, names) for one in indices]
    index = at[0] if len(at) == 1 else ast.Tuple(at)
    return ast.Subscript(_variable(buffer, names), index)


def dtype_of(expr: ir.Expr) -> str:
    """Return the data type of an expression of one element; raise NumPyError for others."""
    if not isinstance(expr.ty, ir.PrimType):
        raise NumPyError(f"{_text(expr)} of type {expr.ty}")
    name = str(expr.ty.dtype)
    if re.search(r"x\d+$", name):
        raise NumPyError(f"the vector {_text(expr)} of {name}")
    return name


def dtype_name(name: str) -> str:
    """Return a data type's name in Python; raise NumPyError for one that NumPy lacks."""
    if name == "bool":
        return name
    for module, prefix in ((np, "np"), (ml_dtypes, "ml_dtypes")):
        if isinstance(getattr(module, name, None), type):
            return f"{prefix}.{name}"
    raise NumPyError(f"the data type {name}")


def cast(dtype: str, value: ast.expr) -> ast.expr:
    """Return a value as a scalar of a data type."""
    return ast.Call(python(dtype_name(dtype)), [value], [])


def call(function: str, *arguments: ast.expr) -> ast.Call:
    """Return a call of a named function."""
    return ast.Call(python(function), list(arguments), [])


def python(text: str) -> ast.expr:
    """Return Python text as an expression."""
    return ast.parse(text, mode="eval").body


def _variable(var: ir.Var, names: Names) -> ast.expr:
    if var not in names:
        raise NumPyError(f"the variable {var.name}, which is neither a loop's nor a parameter")
    return names[var]


def _constant(expr: tirx.IntImm | tirx.FloatImm | ir.StringImm) -> ast.expr:
    if isinstance(expr, ir.StringImm):
        return ast.Constant(str(expr.value))
    if isinstance(expr, tirx.IntImm):
        return ast.Constant(bool(expr.value) if dtype_of(expr) == "bool" else int(expr.value))
    value = float(expr.value)
    if math.isnan(value) or math.isinf(value):
        name = "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
        return python(name)
    if dtype_of(expr) == "float32":  # the shortest text of the same number
        value = float(str(np.float32(value)))
    return python(repr(value))


def _binary(expr: ir.Expr, left: ast.expr, right: ast.expr) -> ast.expr:
    kind = type(expr)
    if kind in _BINARY:
        return ast.BinOp(left, _BINARY[kind](), right)
    if kind in _COMPARISONS:
        return ast.Compare(left, [_COMPARISONS[kind]()], [right])
    if kind in (tirx.And, tirx.Or):
        return ast.BoolOp(ast.And() if kind is tirx.And else ast.Or(), [left, right])
    if kind in (tirx.Min, tirx.Max):
        is_index = not _is_float(expr) and not _loads(expr)
        name = "min" if kind is tirx.Min else "max"
        return call(name if is_index else f"np.{name}imum", left, right)
    if kind is tirx.Div and _is_float(expr):
        return ast.BinOp(left, ast.Div(), right)
    if kind is tirx.Div:  # rounds towards zero
        return _filled("({0} - np.fmod({0}, {1})) // {1}", [left, right])
    if kind is tirx.Mod:
        return call("np.fmod", left, right)
    raise NumPyError(f"{kind.__name__} {_text(expr)}")


def _call(expr: ir.Call, names: Names) -> ast.expr:
    if not isinstance(expr.op, ir.Op):
        raise NumPyError(f"the call {_text(expr)}")
    name = str(expr.op.name).rpartition(".")[2]
    if name == "infinity":
        return python("np.inf")
    if name == "reinterpret":
        source = expression(expr.args[0], names)
        view = ast.Attribute(cast(dtype_of(expr.args[0]), source), "view")
        return ast.Call(view, [python(dtype_name(dtype_of(expr)))], [])
    if name not in {*_OPERATORS, *_NUMPY, *_TEMPLATES, "bitwise_not"}:
        raise NumPyError(f"the intrinsic function {name}, in {_text(expr)}")
    arguments = [expression(one, names) for one in expr.args]
    if name in _OPERATORS:
        return ast.BinOp(arguments[0], _OPERATORS[name](), arguments[1])
    if name == "bitwise_not":
        return ast.UnaryOp(ast.Invert(), arguments[0])
    if name in _NUMPY:
        return call(f"np.{_NUMPY[name]}", *arguments)
    return _filled(_TEMPLATES[name], arguments)


class _Fill(ast.NodeTransformer):
    """Replaces the names _0, _1, … by expressions."""

    def __init__(self, arguments: Sequence[ast.expr]) -> None:
        self._arguments = arguments

    def visit_Name(self, node: ast.Name) -> ast.expr:  # ast calls it so
        return self._arguments[int(node.id[1:])] if node.id[1:].isdecimal() else node


def _filled(template: str, arguments: Sequence[ast.expr]) -> ast.expr:
    """Return a template with {0}, {1}, … replaced by expressions."""
    places = template.format(*(f"_{number}" for number in range(len(arguments))))
    filled: ast.expr = _Fill(arguments).visit(python(places))
    return filled


def _is_float(expr: ir.Expr) -> bool:
    return "float" in dtype_of(expr)


def _loads(expr: ir.Expr) -> bool:
    """Tell whether an expression reads a buffer, so that its value is a NumPy scalar."""
    found: list[object] = []
    tvm_ffi.structural_walk(expr, (ir.TensorLoad, found.append))
    return bool(found)


def _text(expr: ir.Expr) -> str:
    lines = [line for line in str(expr).splitlines() if line and not line.startswith("#")]
    return f"`{lines[-1]}`" if lines else type(expr).__name__
