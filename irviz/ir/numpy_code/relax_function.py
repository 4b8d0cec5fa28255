"""Write a Relax function of calls of PrimFuncs as calls of Python functions."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import tvm
from tvm import ir, relax, tirx

from irviz.errors import NumPyError
from irviz.ir.numpy_code.expressions import call, expression, python
from irviz.ir.numpy_code.prim_func import (
    ARRAY,
    CALL_TIR,
    RESERVED,
    Origins,
    empty,
    function_definition,
    function_name,
    shape_assignments,
)
from irviz.ir.tir.scoped_names import ScopedNames

CONSTANTS = "constants"
CALL_TIR_SOURCE = f"""
def {CALL_TIR}(prim_func, inputs, shape, dtype):
    out = np.empty(shape, dtype=dtype)
    prim_func(*inputs, out)
    return out
"""
_CALLS = ("relax.call_tir", "relax.call_dps_packed")


class RelaxWriter:
    """Writes a Relax function, and collects its callees and constants."""

    def __init__(
        self, mod: ir.IRModule, constants: list[tvm.runtime.Tensor], origins: Origins
    ) -> None:
        self.callees: dict[str, None] = {}
        self._constants, self._origins = constants, origins
        self._by_symbol = {
            str(one.attrs["global_symbol"]): gvar.name_hint
            for gvar, one in mod.functions.items()
            if isinstance(one, tirx.PrimFunc) and one.attrs and "global_symbol" in one.attrs
        }
        self._scope = ScopedNames((*RESERVED, CONSTANTS))
        self._names: dict[ir.Var, ast.expr] = {}

    def function(self, function: relax.Function, name: str) -> ast.FunctionDef:
        """Return the function as Python on arrays; raise NumPyError if it cannot be written."""
        arguments = [ast.arg(self._define(param).id, python(ARRAY)) for param in function.params]
        at = "its parameters"
        current: relax.Binding | None = None
        try:
            body = shape_assignments(_shapes(function.params), self._define, self._names)
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
        return function_definition(function_name(name), arguments, body)

    def _binding(self, binding: relax.Binding) -> list[ast.stmt]:
        value = binding.value
        if isinstance(value, ir.Call) and getattr(value.op, "name", "") in _CALLS:
            return self._call(binding.var, value)
        written = self._value(value)
        found: list[ast.stmt] = [ast.Assign([self._define(binding.var)], written)]
        if isinstance(binding, relax.MatchCast):
            found += shape_assignments(_shapes([binding.var]), self._define, self._names)
        return found

    def _call(self, var: ir.Var, value: ir.Call) -> list[ast.stmt]:
        """Write a call, with the allocation of its outputs."""
        callee = self._callee(value.args[0])
        inputs = [self._value(one) for one in _fields(value.args[1])]
        output = value.ty_args[0]
        if not isinstance(output, relax.TupleType):
            allocated = empty(self._sizes(output), str(output.dtype))
            made = call(CALL_TIR, callee, ast.Tuple(inputs), *allocated.args)
            made.keywords = allocated.keywords
            return [ast.Assign([self._define(var)], made)]
        found: list[ast.stmt] = []
        outputs: list[ast.expr] = []
        for number, one in enumerate(output.fields):
            name = ast.Name(self._scope.define(relax.Var(f"{var.name}_{number}", one)))
            found.append(ast.Assign([name], empty(self._sizes(one), str(one.dtype))))
            outputs.append(name)
        found.append(ast.Expr(ast.Call(callee, [*inputs, *outputs], [])))
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
                return self._constant(value.value)
            case ir.Tuple():
                return ast.Tuple([self._value(one) for one in value.fields])
            case relax.TupleGetItem():
                return ast.Subscript(self._value(value.tuple_value), ast.Constant(value.index))
            case relax.ShapeExpr():
                return ast.Tuple([expression(one, self._names) for one in value.values])
            case ir.Call() if isinstance(value.op, ir.GlobalVar):
                return ast.Call(
                    self._callee(value.op), [self._value(one) for one in value.args], []
                )
            case ir.Call() if isinstance(value.op, ir.Op):
                raise NumPyError(
                    f"the operator {value.op.name}, which is not a call of a PrimFunc: apply "
                    "LegalizeOps first"
                )
        if isinstance(value.ty, ir.PrimType):
            return expression(value, self._names)
        raise NumPyError(f"{type(value).__name__} {value}")

    def _constant(self, tensor: tvm.runtime.Tensor) -> ast.expr:
        self._constants.append(tensor)
        return ast.Subscript(ast.Name(CONSTANTS), ast.Constant(len(self._constants) - 1))

    def _sizes(self, type_: relax.TensorType) -> list[ast.expr]:
        if not isinstance(type_.shape, relax.ShapeExpr):
            raise NumPyError(f"an output of unknown shape, {type_}")
        return [expression(size, self._names) for size in type_.shape.values]

    def _define(self, var: ir.Var) -> ast.Name:
        name = ast.Name(self._scope.define(var))
        self._names[var] = name
        return name


def _shapes(variables: Sequence[ir.Var]) -> Mapping[ir.Var, Sequence[ir.Expr]]:
    """Return the sizes of those that are tensors of known shape."""
    return {
        var: var.ty.shape.values
        for var in variables
        if isinstance(getattr(var.ty, "shape", None), relax.ShapeExpr)
    }


def _fields(value: ir.Expr) -> list[ir.Expr]:
    return list(value.fields) if isinstance(value, ir.Tuple) else [value]
