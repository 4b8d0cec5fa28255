"""Translate TVM functions to a NumPy program, as source that can be run."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, relax, s_tir, tirx

from irviz.errors import NotFoundError, NumPyError
from irviz.ir.module_functions import function_named, prim_funcs
from irviz.ir.node_ids import definitions, identify
from irviz.ir.prim_func_to_numpy import (
    ARRAY,
    Origins,
    Writer,
    empty,
    function_definition,
    function_name,
    python,
    write_prim_func,
)
from irviz.ir.relax_calls import is_destination_passing
from irviz.ir.tir_statements import flatten, statement_numbers, walk_statements
from irviz.ir.tvmscript import Script, function_texts

_GAP = "\n" * 3
_ALLOCATION = re.compile(r"\s*\w+ = T\.sblock_alloc_buffer\(")


@dataclass(frozen=True, eq=False)
class NumPyFunction:
    """One function as Python, with the origins of its lines and the functions that it calls."""

    name: str
    source: str
    lines: Mapping[int, object]
    callees: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class NumPyProgram:
    """A Python program on NumPy arrays, written from TVM functions.

    Attributes:
        source: The source code, with its imports.
        name: The name of the requested function.
        constants: The arrays that the source refers to as `constants`.
        lines: By line number, from 1: the name of the function in the module, and the binding or
            statement that the line was written from; for a `def` line, the function itself.
    """

    source: str
    name: str
    constants: tuple[NDArray[np.generic], ...] = ()
    lines: Mapping[int, tuple[str, object]] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the text."""
        return self.source

    def compile(self) -> Callable[..., Any]:
        """Compile the source; a function made from a PrimFunc writes to its last arguments."""
        known: dict[str, Any] = {
            "np": np,
            "math": math,
            "ml_dtypes": ml_dtypes,
            CONSTANTS: self.constants,
        }
        exec(compile(self.source, f"<{self.name}>", "exec"), known)  # noqa: S102 # our own text
        found: Callable[..., Any] = known[self.name]
        return found


def to_numpy(what: ir.IRModule | tirx.PrimFunc, function: str = "") -> NumPyProgram:
    """Translate a function to readable Python that loops over NumPy arrays.

    A PrimFunc becomes a function `lnumpy_NAME` that takes its buffers as arrays and writes to those
    of its outputs. A Relax function becomes one that allocates the outputs of each call_tir; the
    PrimFuncs that it calls are translated with it.

    Args:
        what: A PrimFunc, or a module.
        function: The function of the module; by default "main", or the only one.

    Raises:
        NotFoundError: The module has no such function.
        NumPyError: The function uses a construct that NumPy lacks; the message gives its line.
    """
    if isinstance(what, tirx.PrimFunc):
        name = function or str((what.attrs or {}).get("global_symbol", "main"))
        what = ir.IRModule({name: what})
    names = [gvar.name_hint for gvar in what.functions]
    name = function or ("main" if "main" in names or len(names) != 1 else names[0])
    constants: list[tvm.runtime.Tensor] = []
    written: dict[str, NumPyFunction] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        written[current] = write_function(what, current, constants)
        waiting += [callee for callee in written[current].callees if callee not in written]
    return _program(list(reversed(written.values())), name, constants)


def write_function(
    mod: ir.IRModule, name: str, constants: list[tvm.runtime.Tensor]
) -> NumPyFunction:
    """Write one function of a module without its imports, and add its constants to others.

    Raises NotFoundError and NumPyError as `to_numpy` does.
    """
    function = function_named(mod, name)
    origins: Origins = {}
    callees: tuple[str, ...] = ()
    if isinstance(function, tirx.PrimFunc):
        tree = write_prim_func(function, name, origins)
    elif isinstance(function, relax.Function):
        writer = RelaxWriter(mod, constants, origins)
        tree = writer.function(function, name)
        callees = tuple(writer.callees)
    else:
        names = [gvar.name_hint for gvar in mod.functions]
        raise NotFoundError(f"the module has no function {name!r}: it has {names}")
    origins[tree] = function
    source = ast.unparse(ast.fix_missing_locations(tree))
    try:
        written = ast.parse(source).body
    except SyntaxError as failure:  # Python indents 100 times at most
        message = f"{name} cannot be written as NumPy, as Python cannot read it: {failure.msg}"
        raise NumPyError(message, "more nesting than Python can read") from None
    pairs = zip(_statements([tree]), _statements(written), strict=True)
    lines = {parsed.lineno: origins[one] for one, parsed in pairs if one in origins}
    return NumPyFunction(name, source, lines, callees)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for one in body:
        yield one
        yield from _statements([*getattr(one, "body", ()), *getattr(one, "orelse", ())])


def heading(texts: Sequence[str]) -> str:
    """Return the imports that functions need."""
    used = [module for module in ("math", "ml_dtypes") if any(f"{module}." in one for one in texts)]
    return "\n".join([*(f"import {module}" for module in used), "import numpy as np"])


def _program(
    functions: list[NumPyFunction], name: str, constants: list[tvm.runtime.Tensor]
) -> NumPyProgram:
    source = heading([one.source for one in functions])
    lines: dict[int, tuple[str, object]] = {}
    for one in functions:
        source += _GAP
        start = source.count("\n")
        lines |= {start + line: (one.name, origin) for line, origin in one.lines.items()}
        source += one.source
    arrays = tuple(tensor.numpy() for tensor in constants)
    return NumPyProgram(source + "\n", function_name(name), arrays, lines)


# --- Map the lines of a function as NumPy to the lines of TVMScript that they come from ----------


def part_offsets(function: ir.BaseFunc, name: str, script: Script) -> Mapping[object, int]:
    """Return how many lines below its `def` each part of a function begins, 0 for all of it."""
    if isinstance(function, tirx.PrimFunc):
        offsets = statement_numbers(function, name)
        lines = function_texts(script)[name].lines
        return {None: 0, function: 0, **offsets, **_block_offsets(function, offsets, lines)}
    start, ids = script.functions[name], identify(function)
    found: dict[object, int] = {None: 0, function: 0}
    for var, binding in definitions((), function.body):
        if binding is not None and (name, ids[var]) in script.lines:
            found[binding] = script.lines[name, ids[var]] - start
    return found


def _block_offsets(
    function: tirx.PrimFunc, offsets: Mapping[tirx.Stmt, int], lines: Sequence[str]
) -> Mapping[object, int]:
    """Return the offsets of the buffers that blocks allocate, and of their `T.init()` by block."""
    found: dict[object, int] = {}
    start = next(at for at, line in enumerate(lines) if line.startswith("def "))
    allocations = [at - start for at, line in enumerate(lines) if _ALLOCATION.match(line)]
    buffers: list[object] = []
    for stmt, _ in walk_statements(function.body):
        if isinstance(stmt, s_tir.SBlockRealize):
            buffers += stmt.block.alloc_buffers
            first = None if stmt.block.init is None else flatten(stmt.block.init)[0]
            if first in offsets:
                found[stmt.block] = offsets[first] - 1
    return found | dict(zip(buffers, allocations, strict=False))  # both in the order of the text


def line_offsets(written: NumPyFunction, offsets: Mapping[object, int]) -> list[int]:
    """Return for each line how many lines below its `def` that of TVMScript is, -1 for none.

    `offsets` are what `part_offsets` returns.
    """
    lines: list[int] = []
    enclosing = 0
    for number in range(1, written.source.count("\n") + 2):
        origin = written.lines.get(number)
        if origin is not None:
            enclosing = offsets.get(origin, enclosing)  # the loops of a T.grid share its line
        lines.append(-1 if origin is None else enclosing)
    return lines


# --- Write a Relax function of calls of PrimFuncs as calls of Python functions -------------------


CONSTANTS = "constants"


class RelaxWriter(Writer):
    """Writes a Relax function, and collects its callees and constants."""

    def __init__(
        self, mod: ir.IRModule, constants: list[tvm.runtime.Tensor], origins: Origins
    ) -> None:
        super().__init__(origins, CONSTANTS)
        self.callees: dict[str, None] = {}
        self._constants = constants
        self._by_symbol = {
            str(one.attrs["global_symbol"]): name
            for name, one in prim_funcs(mod).items()
            if one.attrs and "global_symbol" in one.attrs
        }

    def function(self, function: relax.Function, name: str) -> ast.FunctionDef:
        """Return the function as Python on arrays; raise NumPyError if it cannot be written."""
        arguments = [ast.arg(self._define(param).id, python(ARRAY)) for param in function.params]
        at = "its parameters"
        current: relax.Binding | None = None
        try:
            body = self._sizes(_shapes(function.params))
            for block in function.body.blocks:
                for current in block.bindings:
                    at = f"the binding {current.var.name!r}"
                    written = self._binding(current)
                    self._origins.update(dict.fromkeys(written, current))
                    body += written
            at = "the value that it returns"
            body.append(ast.Return(self._value(function.body.body)))
        except NumPyError as failure:
            message = f"{name!r} cannot be written as NumPy: {at} has {failure}"
            raise NumPyError(message, str(failure), current) from None
        return function_definition(name, arguments, body)

    def _binding(self, binding: relax.Binding) -> list[ast.stmt]:
        value = binding.value
        if is_destination_passing(value):
            return self._call(binding.var, value)
        written = self._value(value)
        found: list[ast.stmt] = [ast.Assign([self._define(binding.var)], written)]
        if isinstance(binding, relax.MatchCast):
            found += self._sizes(_shapes([binding.var]))
        return found

    def _call(self, var: ir.Var, value: ir.Call) -> list[ast.stmt]:
        """Write a call, with the allocation of its outputs."""
        callee = self._callee(value.args[0])
        given = value.args[1]
        inputs = list(map(self._value, given.fields if isinstance(given, ir.Tuple) else [given]))
        output = value.ty_args[0]
        if isinstance(output, relax.TupleType):
            fields = [
                (ast.Name(self._scope.define(relax.Var(f"{var.name}_{number}", one))), one)
                for number, one in enumerate(output.fields)
            ]
        else:
            fields = [(self._define(var), output)]
        found: list[ast.stmt] = [
            ast.Assign([name], empty(self._shape(one), str(one.dtype))) for name, one in fields
        ]
        outputs: list[ast.expr] = [name for name, _ in fields]
        found.append(ast.Expr(ast.Call(callee, [*inputs, *outputs], [])))
        if isinstance(output, relax.TupleType):
            found.append(ast.Assign([self._define(var)], ast.Tuple(outputs)))
        return found

    def _callee(self, callee: ir.Expr) -> ast.expr:
        if isinstance(callee, ir.GlobalVar):
            name = str(callee.name_hint)
        else:
            symbol = str(callee.global_symbol)
            if symbol not in self._by_symbol:
                raise NumPyError(
                    f"the library function {symbol!r}, whose code is not in the module"
                )
            name = self._by_symbol[symbol]
        self.callees[name] = None
        return python(function_name(name))

    def _value(self, value: ir.Expr) -> ast.expr:
        match value:
            case ir.Var():
                if value in self._names:
                    return self._names[value]
            case ir.GenericConst() if isinstance(value.value, tvm.runtime.Tensor):
                self._constants.append(value.value)
                return ast.Subscript(ast.Name(CONSTANTS), ast.Constant(len(self._constants) - 1))
            case ir.Tuple():
                return ast.Tuple([self._value(one) for one in value.fields])
            case relax.TupleGetItem():
                return ast.Subscript(self._value(value.tuple_value), ast.Constant(value.index))
            case relax.ShapeExpr():
                return ast.Tuple(list(map(self._expression, value.values)))
            case ir.Call() if isinstance(value.op, ir.GlobalVar):
                return ast.Call(self._callee(value.op), list(map(self._value, value.args)), [])
            case ir.Call() if isinstance(value.op, ir.Op):
                raise NumPyError(
                    f"the operator {value.op.name}, which is not a call of a PrimFunc: apply "
                    "LegalizeOps first"
                )
        if isinstance(value.ty, ir.PrimType):
            return self._expression(value)
        raise NumPyError(f"{type(value).__name__} {value}")

    def _shape(self, type_: relax.TensorType) -> list[ast.expr]:
        if not isinstance(type_.shape, relax.ShapeExpr):
            raise NumPyError(f"an output of unknown shape, {type_}")
        return list(map(self._expression, type_.shape.values))


def _shapes(variables: Sequence[ir.Var]) -> Mapping[ir.Var, Sequence[ir.Expr]]:
    """Return the sizes of those that are tensors of known shape."""
    return {
        var: var.ty.shape.values
        for var in variables
        if isinstance(getattr(var.ty, "shape", None), relax.ShapeExpr)
    }
