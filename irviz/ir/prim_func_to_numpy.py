"""Write a PrimFunc as loops over NumPy arrays, statement by statement."""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np
from tvm import ir, s_tir, sym, tirx

from irviz.errors import NumPyError
from irviz.ir.tir_statements import (
    ScopedNames,
    flatten,
    is_number,
    parts_of,
    statement_numbers,
    used_vars,
)
from irviz.ir.type_and_expression_labels import dim_label

Origins = dict[ast.stmt, object]
"""The TVM binding or statement that a Python statement was written from."""
RESERVED = (
    *("np", "math", "ml_dtypes", "range", "min", "max", "abs", "int", "bool"),
    *keyword.kwlist,
)
"""Names that the text uses itself."""
ARRAY = "np.ndarray"


def function_name(name: str) -> str:
    """Return the name of the Python function for a function of a module."""
    return "lnumpy_" + re.sub(r"\W", "_", name)


def write_prim_func(prim_func: tirx.PrimFunc, name: str, origins: Origins) -> ast.FunctionDef:
    """Return a PrimFunc as a Python function that takes its buffers as arrays.

    Loops of all kinds become sequential loops. The origin of each statement is added to `origins`.
    Raises NumPyError for constructs that NumPy lacks.
    """
    writer = _PrimFuncWriter(origins)
    try:
        return writer.function(prim_func, name)
    except (NumPyError, RecursionError) as failure:
        at = statement_numbers(prim_func).get(writer.current) if writer.current else None
        where = f"line {at} of its TVMScript has" if at else "its parameters have"
        is_known = isinstance(failure, NumPyError)
        what = str(failure) if is_known else "an expression that nests too deeply"
        message = f"{name!r} cannot be written as NumPy: {where} {what}"
        raise NumPyError(message, what, writer.current) from None


class Writer:
    """What the writers of functions have: the origins of statements, and the names of variables."""

    def __init__(self, origins: Origins, *reserved: str) -> None:
        self._origins = origins
        self._scope = ScopedNames((*RESERVED, *reserved))
        self._names: dict[ir.Var, ast.expr] = {}

    def _define(self, var: ir.Var) -> ast.Name:
        name = ast.Name(self._scope.define(var))
        self._names[var] = name
        return name

    def _expression(self, expr: ir.Expr) -> ast.expr:
        return expression(expr, self._names)

    def _sizes(self, shapes: Mapping[ir.Var, Sequence[ir.Expr]]) -> list[ast.stmt]:
        """Return assignments of symbolic sizes, from the shapes of arrays.

        Raises NumPyError for a size that no shape determines.
        """
        found: list[ast.stmt] = []
        for array, sizes in shapes.items():
            shape = ast.Attribute(self._names[array], "shape")
            for axis, size in enumerate(sizes):
                if isinstance(size, ir.Var) and size not in self._names:
                    value = ast.Subscript(shape, ast.Constant(axis))
                    found.append(ast.Assign([self._define(size)], value))
        for array, sizes in shapes.items():
            for size in sizes:
                if any(var not in self._names for var in used_vars(size)):
                    raise NumPyError(f"the size {size} of {array.name}, which no shape tells")
        return found


class _PrimFuncWriter(Writer):
    """Writes statements outermost first, because names depend on the enclosing scope."""

    current: tirx.Stmt | None = None

    def function(self, prim_func: tirx.PrimFunc, name: str) -> ast.FunctionDef:
        arguments = [self._parameter(param) for param in prim_func.params]
        shapes = {one: one.ty.shape for one in prim_func.params if tirx.is_buffer_var(one)}
        body = [*self._sizes(shapes), *self._statements(prim_func.body)]
        return function_definition(name, arguments, body)

    def _parameter(self, param: ir.Var) -> ast.arg:
        is_buffer = tirx.is_buffer_var(param)
        annotation = ARRAY if is_buffer else _scalar_type(param)
        return ast.arg(self._define(param).id, python(annotation))

    def _statements(self, stmt: tirx.Stmt) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for each in flatten(stmt):
            written = self._write(each)
            for one in written:
                self._origins.setdefault(one, each)
            found += written
        return found

    def _write(self, stmt: tirx.Stmt) -> list[ast.stmt]:
        self.current = stmt
        match stmt:
            case tirx.For():
                return self._loop(stmt)
            case s_tir.SBlockRealize():
                return self._block(stmt)
            case tirx.IfThenElse():
                test = self._expression(stmt.condition)
                other = [] if stmt.else_case is None else self._inner(stmt.else_case)
                return [ast.If(test, self._inner(stmt.then_case), other)]
            case tirx.While():
                return [ast.While(self._expression(stmt.condition), self._inner(stmt.body), [])]
            case tirx.AttrStmt() if str(stmt.attr_key).startswith("pragma_"):
                return self._statements(stmt.body)
            case tirx.Evaluate() if isinstance(stmt.value, tirx.IntImm):
                return []
        return [self._simple(stmt)]

    def _simple(self, stmt: tirx.Stmt) -> ast.stmt:
        """Write a statement without nested ones."""
        match stmt:
            case tirx.BufferStore():
                target = element(stmt.buffer, stmt.indices, self._names)
                return ast.Assign([target], self._expression(stmt.value))
            case tirx.Bind():
                value = self._expression(stmt.value)
                return ast.Assign([self._define(stmt.var)], value)
            case tirx.DeclBuffer() if (viewed := _viewed(stmt)) is not None:
                whole = expression(viewed, self._names)
                sizes = [self._expression(size) for size in stmt.buffer.ty.shape]
                shaped = ast.Call(ast.Attribute(whole, "reshape"), sizes, [])
                return ast.Assign([self._define(stmt.buffer)], shaped)
            case tirx.AllocBuffer():
                return self._allocation(stmt.buffer)
            case tirx.AssertStmt():
                return ast.Assert(self._expression(stmt.condition))
            case tirx.Break():
                return ast.Break()
            case tirx.Continue():
                return ast.Continue()
        what = str(stmt.value) if isinstance(stmt, tirx.Evaluate) else type(stmt).__name__
        raise NumPyError(" ".join(what.split()))

    def _inner(self, stmt: tirx.Stmt) -> list[ast.stmt]:
        with self._scope.scope():
            return self._statements(stmt) or [ast.Pass()]

    def _loop(self, loop: tirx.For) -> list[ast.stmt]:
        begin, extent = self._expression(loop.min), self._expression(loop.extent)
        step = [] if loop.step is None else [self._expression(loop.step)]
        is_from_zero = is_number(loop.min, 0)
        end = extent if is_from_zero else ast.BinOp(begin, ast.Add(), extent)
        limits = [end] if is_from_zero and not step else [begin, end, *step]
        with self._scope.scope():
            variable = self._define(loop.loop_var)
            return [ast.For(variable, call("range", *limits), self._inner(loop.body), [])]

    def _block(self, realize: s_tir.SBlockRealize) -> list[ast.stmt]:
        """Write a block: its axes, temporaries, initial values and body."""
        block, predicate = realize.block, realize.predicate
        if block.match_buffers:
            raise NumPyError(f"a match_buffer in the block {block.name_hint}")
        test = None
        if predicate is not None and not is_number(predicate, 1):
            test = self._expression(predicate)
        with self._scope.scope():
            axes = self._axes(block.iter_vars, realize.iter_values)
            temporaries = [self._allocation(buffer) for buffer in block.alloc_buffers]
            init = [] if block.init is None else self._init(block)
            body = [*axes, *temporaries, *init, *self._statements(block.body)]
        return body if test is None else [ast.If(test, body or [ast.Pass()], [])]

    def _axes(self, axes: Sequence[tirx.IterVar], values: Sequence[ir.Expr]) -> list[ast.stmt]:
        """Use a loop's variable or a number in place of the axis it drives; assign other axes."""
        if len(axes) != len(values):
            raise NumPyError("a block whose axes have no values")
        found: list[ast.stmt] = []
        for axis, value in zip(axes, values, strict=True):
            written = self._expression(value)
            if isinstance(written, ast.Name | ast.Constant):
                self._names[axis.var] = written
            else:
                found.append(ast.Assign([self._define(axis.var)], written))
        return found

    def _init(self, block: s_tir.SBlock) -> list[ast.stmt]:
        """Write a block's init, under the condition that all reduction axes are at their start."""
        tests: list[ast.expr] = [
            ast.Compare(self._names[axis.var], [ast.Eq()], [self._expression(axis.dom.min)])
            for axis in block.iter_vars
            if int(axis.iter_type) == tirx.IterVar.CommReduce
        ]
        init = self._inner(block.init)
        if not tests:
            return init
        made = ast.If(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests), init, [])
        self._origins[made] = block  # which has the line of its T.init(), unlike its realization
        return [made]

    def _allocation(self, buffer: ir.Var) -> ast.stmt:
        sizes = [self._expression(size) for size in buffer.ty.shape]
        made = ast.Assign([self._define(buffer)], empty(sizes, str(buffer.ty.dtype)))
        self._origins[made] = buffer
        return made


def _viewed(stmt: tirx.DeclBuffer) -> ir.Var | None:
    """Return the buffer that another one is a reshaped view of, None if it is none."""
    data, own = stmt.data, stmt.buffer.ty
    if not isinstance(data, ir.Call) or getattr(data.op, "name", "") != "tirx.buffer_data":
        return None
    (whole,) = data.args
    excess = sym.Analyzer().simplify(math.prod(whole.ty.shape) - math.prod(own.shape))
    is_plain = is_number(own.elem_offset, 0) and not own.strides and own.dtype == whole.ty.dtype
    return whole if is_number(excess, 0) and is_plain else None


def function_definition(
    name: str, arguments: list[ast.arg], body: list[ast.stmt]
) -> ast.FunctionDef:
    """Return the Python function for a function of a module, with positional parameters."""
    function = ast.parse(f"def {function_name(name)}(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.args.args = arguments
    function.body = body or [ast.Pass()]
    return function


def empty(sizes: list[ast.expr], dtype: str) -> ast.Call:
    """Return the allocation of an array."""
    name = dtype_name(dtype)
    kind = ast.Constant(dtype) if hasattr(np, dtype) else python(name)
    return ast.Call(python("np.empty"), [ast.Tuple(sizes)], [ast.keyword("dtype", kind)])


def _scalar_type(param: ir.Var) -> str:
    if isinstance(param.ty, ir.PrimType):
        dtype = dtype_of(param)
        return "bool" if dtype == "bool" else "float" if "float" in dtype else "int"
    raise NumPyError(f"{param.name} of type {param.ty}, which is not a buffer")


# --- Write a PrimFunc's expressions as Python, with scalars of NumPy -----------------------------


Names = Mapping[ir.Var, ast.expr]
"""What each variable is written as: its name, or that of the loop that drives it."""

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
_TEMPLATES: Mapping[type | str, str] = {
    tirx.Add: "{0} + {1}",
    tirx.Sub: "{0} - {1}",
    tirx.Mul: "{0} * {1}",
    tirx.FloorDiv: "{0} // {1}",
    tirx.FloorMod: "{0} % {1}",
    tirx.Mod: "np.fmod({0}, {1})",
    tirx.BitwiseAnd: "{0} & {1}",
    tirx.BitwiseOr: "{0} | {1}",
    tirx.BitwiseXor: "{0} ^ {1}",
    tirx.LShift: "{0} << {1}",
    tirx.RShift: "{0} >> {1}",
    tirx.EQ: "{0} == {1}",
    tirx.NE: "{0} != {1}",
    tirx.LT: "{0} < {1}",
    tirx.LE: "{0} <= {1}",
    tirx.GT: "{0} > {1}",
    tirx.GE: "{0} >= {1}",
    tirx.And: "{0} and {1}",
    tirx.Or: "{0} or {1}",
    tirx.Not: "not {0}",
    tirx.BitwiseNot: "~{0}",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
    "bitwise_not": "~{0}",
    "shift_left": "{0} << {1}",
    "shift_right": "{0} >> {1}",
    "rsqrt": "1 / np.sqrt({0})",
    "sigmoid": "1 / (1 + np.exp(-{0}))",
    "exp10": "np.power(10, {0})",
    "erf": "math.erf({0})",
    "round": "np.copysign(np.floor(np.abs({0}) + 0.5), {0})",  # halves away from zero
    "abs": "abs({0})",
    "likely": "{0}",
    "if_then_else": "{1} if {0} else {2}",
    "infinity": "np.inf",
    "popcount": "int({0}).bit_count()",
}
"""Templates of expressions, by their class, and of intrinsic functions that are not NumPy's."""


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
            return call(dtype_name(dtype_of(expr)), expression(expr.value, names))
        case tirx.Select():
            parts = (expr.condition, expr.true_value, expr.false_value)
            return _filled(_TEMPLATES["if_then_else"], [expression(one, names) for one in parts])
        case tirx.Let():
            return expression(expr.body, {**names, expr.var: expression(expr.value, names)})
        case ir.Call():
            return _call(expr, names)
    operands = [expression(getattr(expr, one), names) for one in ("a", "b") if hasattr(expr, one)]
    if operands and (template := _template(expr)):
        return _filled(template, operands)
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


def _template(expr: ir.Expr) -> str:
    """Return the template of an operation, "" for one that NumPy lacks."""
    kind = type(expr)
    if kind in (tirx.Min, tirx.Max):
        is_index = not _is_float(expr) and not parts_of(expr, ir.TensorLoad)
        name = "min" if kind is tirx.Min else "max"
        return f"{name}({{0}}, {{1}})" if is_index else f"np.{name}imum({{0}}, {{1}})"
    if kind is tirx.Div:  # of integers it rounds towards zero
        return "{0} / {1}" if _is_float(expr) else "({0} - np.fmod({0}, {1})) // {1}"
    return _TEMPLATES.get(kind, "")


def _call(expr: ir.Call, names: Names) -> ast.expr:
    if not isinstance(expr.op, ir.Op):
        raise NumPyError(f"the call {_text(expr)}")
    name = str(expr.op.name).rpartition(".")[2]
    if name == "reinterpret":
        source = expression(expr.args[0], names)
        view = ast.Attribute(call(dtype_name(dtype_of(expr.args[0])), source), "view")
        return ast.Call(view, [python(dtype_name(dtype_of(expr)))], [])
    if name not in {*_NUMPY, *_TEMPLATES}:
        raise NumPyError(f"the intrinsic function {name}, in {_text(expr)}")
    arguments = [expression(one, names) for one in expr.args]
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


def _text(expr: ir.Expr) -> str:
    return f"`{dim_label(expr)}`"
