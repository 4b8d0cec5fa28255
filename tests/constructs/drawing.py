"""Random well-formed modules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st
from tvm import IRModule, ir, relax, te, tirx, topi
from tvm.relax.expr import _update_type

from .making import normalized

MATRIX = relax.TensorType([2, 2], "float32")
NUMBER = ir.PrimType("int64")
CONDITION = relax.TensorType([], "bool")
INNER = relax.FuncType([MATRIX], MATRIX)

_NAMES = st.sampled_from(["x", "y", "lv", "lv1", "x#2", "lv[0]", "return", "", "f", "c"])
_DEEPEST = 2


@st.composite
def random_modules(draw: st.DrawFn) -> IRModule:
    """Draw a module of functions that call each other, PrimFuncs, libraries and themselves.

    Their blocks hold operators, constants, nested tuples, casts, sizes, branches and functions,
    the last two with blocks of their own. `main` may print.
    """
    kernel = _kernel()
    double = ir.GlobalVar("double")
    _update_type(double, kernel.ty)
    made: dict[ir.GlobalVar, ir.BaseFunc] = {double: kernel}
    gvars = [ir.GlobalVar(name) for name in ("main", "second", "third")[: draw(st.integers(1, 3))]]
    is_pure = dict.fromkeys(gvars, True) | {gvars[0]: draw(st.booleans())}
    for gvar in gvars:
        _update_type(gvar, relax.FuncType([MATRIX, NUMBER, CONDITION], MATRIX, is_pure[gvar]))
    pure = [gvar for gvar in gvars if is_pure[gvar]]
    for gvar in gvars:
        params = [
            relax.Var(draw(_NAMES), MATRIX),
            tirx.Var(draw(st.sampled_from(["n", "x", "m"])), "int64"),
            relax.Var(draw(_NAMES), CONDITION),
        ]
        writer = Writer(draw, double, pure, params[2], not is_pure[gvar], [params[0]], [params[1]])
        function = relax.Function(params, writer.body(), MATRIX, is_pure=is_pure[gvar])
        made[gvar] = function.with_attr("global_symbol", gvar.name_hint)
    return normalized(IRModule(made))


def _kernel() -> tirx.PrimFunc:
    source = te.placeholder((2, 2), "float32", "source")
    return te.create_prim_func([source, topi.add(source, source)])


@dataclasses.dataclass
class Writer:
    """Writes a body: bindings that use what is in scope, and come into scope."""

    draw: st.DrawFn
    kernel: ir.GlobalVar
    callees: Sequence[ir.GlobalVar]
    condition: ir.Var
    may_print: bool
    matrices: list[ir.Expr]
    numbers: list[ir.Expr]
    closures: list[ir.Var] = dataclasses.field(default_factory=list)
    depth: int = 0
    bindings: list[relax.Binding] = dataclasses.field(default_factory=list)
    is_dataflow: bool = False

    def body(self) -> relax.SeqExpr:
        """Write some blocks, and return one of the values in scope or a constant."""
        blocks = []
        for is_dataflow in self.draw(st.lists(st.booleans(), max_size=3 - self.depth)):
            write = self.dataflow_block if is_dataflow else self.block
            blocks.append(write())
        return relax.SeqExpr(blocks, self.operand())

    def block(self) -> relax.BindingBlock:
        """Write a block that may hold anything."""
        self.bindings, self.is_dataflow = [], False
        self.steps(_QUIET + _LOUD)
        return relax.BindingBlock(self.bindings)

    def dataflow_block(self) -> relax.DataflowBlock:
        """Write a dataflow block that gives out one value."""
        matrices, numbers = list(self.matrices), list(self.numbers)
        self.bindings, self.is_dataflow = [], True
        self.steps(_QUIET)
        self.is_dataflow = False
        given = self.bind(relax.op.add(self.matrix(), self.matrix()), MATRIX)
        self.matrices, self.numbers = [*matrices, given], numbers
        return relax.DataflowBlock(self.bindings)

    def steps(self, known: Sequence[Callable[[Writer], None]]) -> None:
        for step in self.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4)):
            step(self)

    def inner(self, *params: ir.Var) -> Writer:
        """Return a writer of an inner body: it sees what is in scope here, not the reverse."""
        return dataclasses.replace(
            self,
            may_print=self.may_print and not params,
            matrices=[*self.matrices, *params],
            numbers=list(self.numbers),
            closures=list(self.closures),
            depth=self.depth + 1,
            bindings=[],
        )

    def matrix(self) -> ir.Expr:
        return self.draw(st.sampled_from(self.matrices))

    def operand(self) -> ir.Expr:
        """Return a matrix, which may be a constant: one of two that are shared, or a new one."""
        new = relax.const(np.zeros((2, 2), "float32"))
        return self.draw(st.sampled_from([*self.matrices, *_CONSTANTS, new]))

    def number(self) -> ir.Expr:
        """Return a number in scope, or an expression of some."""
        one, other = (self.draw(st.sampled_from(self.numbers)) for _ in range(2))
        written = tirx.IntImm("int64", 3)
        return self.draw(st.sampled_from([one, one + other, one * 2 + other * one, written]))

    def bind(self, value: ir.Expr, type_: ir.Type) -> ir.Var:
        is_inner = self.is_dataflow and not isinstance(type_, ir.PrimType)
        made = (relax.DataflowVar if is_inner else relax.Var)(self.draw(_NAMES), type_)
        self.bindings.append(relax.VarBinding(made, value))
        return made

    def keep(self, value: ir.Expr) -> None:
        self.matrices.append(self.bind(value, MATRIX))


_CONSTANTS = [relax.const(np.full((2, 2), number, "float32")) for number in (1, 2)]


def _operator(to: Writer) -> None:
    make = to.draw(st.sampled_from([relax.op.add, relax.op.multiply, relax.op.matmul]))
    right = to.operand() if to.draw(st.booleans()) else relax.const(3.0, "float32")
    if make is relax.op.matmul:
        right = to.matrix()
    to.keep(make(to.matrix(), right))


def _concatenation(to: Writer) -> None:
    parts = [to.operand() for _ in range(to.draw(st.integers(1, 4)))]
    wide = to.bind(relax.op.concat(parts), relax.TensorType([2 * len(parts), 2], "float32"))
    to.keep(relax.op.strided_slice(wide, [0], [0], [2]))


def _kernel_call(to: Writer) -> None:
    to.keep(relax.op.call_tir(to.kernel, (to.operand(),), MATRIX))


def _library_call(to: Writer) -> None:
    packed = relax.Tuple([to.operand(), relax.Tuple([to.operand(), to.matrix()])])
    name = to.draw(st.sampled_from(["env.relu", "env.nowhere", "double"]))
    to.keep(relax.op.call_dps_packed(name, packed, MATRIX))


def _pure_library_call(to: Writer) -> None:
    shape = relax.ShapeExpr([to.number(), 2, to.number()])
    arguments = to.operand(), shape, to.number(), ir.StringImm("text")
    to.keep(relax.op.call_pure_packed("env.f", *arguments, ty_args=MATRIX))


def _tuple(to: Writer) -> None:
    value = relax.Tuple([to.matrix(), relax.Tuple([to.operand(), to.matrix()])])
    pair = ir.TupleType([MATRIX, MATRIX])
    packed = to.bind(value, ir.TupleType([MATRIX, pair]))
    inner = to.bind(relax.TupleGetItem(packed, 1), pair)
    to.keep(relax.TupleGetItem(inner, to.draw(st.integers(0, 1))))


def _match_cast(to: Writer) -> None:
    made = (relax.DataflowVar if to.is_dataflow else relax.Var)(to.draw(_NAMES), MATRIX)
    to.bindings.append(relax.MatchCast(made, to.operand(), MATRIX))
    to.matrices.append(made)


def _alias(to: Writer) -> None:
    to.keep(to.operand())


def _sizes(to: Writer) -> None:
    sizes = [to.number(), to.number()]
    to.bind(relax.op.zeros(relax.ShapeExpr(sizes), "float32"), relax.TensorType(sizes, "float32"))
    to.bind(relax.ShapeExpr(sizes), relax.ShapeType(sizes))


def _number(to: Writer) -> None:
    to.numbers.append(to.bind(to.number(), NUMBER))


def _function_call(to: Writer) -> None:
    if to.callees:
        callee = to.draw(st.sampled_from(to.callees))
        to.keep(ir.Call(callee, [to.operand(), to.number(), to.condition]))


def _print(to: Writer) -> None:
    if to.may_print:
        to.bind(relax.op.print(to.matrix(), format="{}"), ir.TupleType([]))


def _branches(to: Writer) -> None:
    if to.depth < _DEEPEST:
        branches = [to.inner().body() for _ in range(2)]
        to.keep(relax.If(to.condition, *branches))


def _closure(to: Writer) -> None:
    if to.depth < _DEEPEST:
        name, param = relax.Var(to.draw(_NAMES), INNER), relax.Var(to.draw(_NAMES), MATRIX)
        writer = to.inner(param)
        if to.draw(st.booleans()):
            writer.closures.append(name)  # it may call itself
        to.bindings.append(relax.VarBinding(name, relax.Function([param], writer.body(), MATRIX)))
        to.closures.append(name)
        _closure_call(to)


def _closure_call(to: Writer) -> None:
    if to.closures:
        to.keep(ir.Call(to.draw(st.sampled_from(to.closures)), [to.operand()]))


_QUIET = [
    _operator,
    _concatenation,
    _kernel_call,
    _library_call,
    _pure_library_call,
    _tuple,
    _match_cast,
    _alias,
    _sizes,
    _function_call,
    _closure_call,
]
_LOUD = [_number, _print, _branches, _closure]
