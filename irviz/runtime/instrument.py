"""A module that does the same and reports each value as it is made.

After each binding stands a call that gets the binding's number and its variable. So which value
belongs to which binding is known for certain, inside of branches and called functions as well;
the order of the VM's calls alone does not tell, and passes may change it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm import ir, relax

from irviz.ir.identity import identify, relax_functions
from irviz.model.graph import NodeId

BEGIN, CALLING, PARAM, VALUE = (
    f"irviz.trace.{word}" for word in ("begin", "calling", "param", "value")
)
"""The functions that are called: before all, before a call of a function, after a binding."""
TICKS = 5
"""How often the first is called, to learn what such a call takes."""


@dataclass(frozen=True)
class Instrumented:
    """A module that reports, and the node and function that each number stands for."""

    module: ir.IRModule
    nodes: Sequence[NodeId]
    callees: Mapping[int, str]


def instrument(mod: ir.IRModule, function: str) -> Instrumented:
    """Return a module whose Relax functions report their values; `function` is called first.

    What a value is made of is unchanged: dataflow blocks become plain ones, so that what is
    reported stays apart and nothing is fused across it.
    """
    plain = relax.transform.ToNonDataflow()(mod)
    plain = relax.transform.RemovePurityChecking()(plain)
    functions = relax_functions(plain)
    writer = _Writer(set(functions))
    rewritten = dict(plain.functions.items())
    for gvar, source in plain.functions.items():
        if isinstance(source, relax.Function):
            is_first = gvar.name_hint == function
            rewritten[gvar] = writer.function(source, identify(source), is_first=is_first)
    return Instrumented(
        ir.IRModule(rewritten, attrs=plain.attrs), tuple(writer.nodes), writer.callees
    )


class _Writer:
    """Writes functions anew, and numbers what it meets."""

    def __init__(self, functions: set[str]) -> None:
        self.nodes: list[NodeId] = []
        self.callees: dict[int, str] = {}
        self._functions = functions

    def function(
        self, source: relax.Function, ids: Mapping[ir.Var, NodeId], *, is_first: bool = False
    ) -> relax.Function:
        """Return a function that reports its parameters and bindings."""
        begun = [_report(BEGIN) for _ in range(TICKS if is_first else 0)]
        begun += [_report(PARAM, self._number(ids[one]), one) for one in source.params]
        body = self._body(source.body, ids)
        blocks = [relax.BindingBlock(begun), *body.blocks] if begun else body.blocks
        return relax.Function(
            source.params,
            relax.SeqExpr(blocks, body.body),
            source.ret_ty,
            source.is_pure,
            source.attrs,
        )

    def _body(self, body: ir.Expr, ids: Mapping[ir.Var, NodeId]) -> relax.SeqExpr:
        if not isinstance(body, relax.SeqExpr):
            return relax.SeqExpr([], body)
        blocks = []
        for block in body.blocks:
            bindings: list[relax.Binding] = []
            for binding in block.bindings:
                bindings += self._binding(binding, ids)
            blocks.append(relax.BindingBlock(bindings))
        return relax.SeqExpr(blocks, body.body)

    def _binding(self, binding: relax.Binding, ids: Mapping[ir.Var, NodeId]) -> list[relax.Binding]:
        number = self._number(ids[binding.var])
        before = []
        if isinstance(binding, relax.VarBinding):
            value = binding.value
            if isinstance(value, relax.If):
                then, other = (self._body(b, ids) for b in (value.true_branch, value.false_branch))
                binding = relax.VarBinding(binding.var, relax.If(value.cond, then, other))
            elif isinstance(value, relax.Function):  # its own variables have ids in this function
                return [relax.VarBinding(binding.var, self.function(value, ids))]
            elif isinstance(value, relax.SeqExpr):
                binding = relax.VarBinding(binding.var, self._body(value, ids))
            elif isinstance(value, ir.Call) and isinstance(value.op, ir.GlobalVar):
                name = str(value.op.name_hint)
                if name in self._functions:
                    self.callees[number] = name
                    before = [_report(CALLING, number)]
        if isinstance(binding.var.ty, ir.FuncType):
            return [*before, binding]
        return [*before, binding, _report(VALUE, number, binding.var)]

    def _number(self, node: NodeId) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1


def _report(name: str, number: int | None = None, var: ir.Var | None = None) -> relax.VarBinding:
    nothing = ir.TupleType([])
    arguments = [] if number is None else [relax.prim_value(number)]
    if var is not None:
        arguments.append(var)
    call = ir.Call(relax.ExternFunc(name), arguments, ty_args=[nothing])
    return relax.VarBinding(relax.Var("_", nothing), call)
