"""Instrument a module so that it reports each value as it is computed.

After each binding a call passes on the binding's number and its variable, so each value belongs
to a known binding, also inside branches and called functions. The order of the VM's calls alone
does not tell this, and passes may change it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm import ir, relax

from irviz.ir.module_functions import relax_functions
from irviz.ir.node_ids import identify
from irviz.model.graph.graph import NodeId

BEGIN, CALLING, PARAM, VALUE = (
    f"irviz.trace.{word}" for word in ("begin", "calling", "param", "value")
)
"""The functions that are called: first, before a call, for a parameter, after a binding."""
TICKS = 5
"""How often the first is called, to measure the cost of such a call."""


@dataclass(frozen=True)
class Instrumented:
    """An instrumented module, and the node and callee of each number."""

    module: ir.IRModule
    nodes: Sequence[NodeId]
    callees: Mapping[int, str]


def instrument(mod: ir.IRModule, function: str) -> Instrumented:
    """Return a module whose Relax functions report their values; `function` is the entry.

    Values are computed as before, but dataflow blocks become plain ones, so that nothing is
    fused across a report.
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
    """Rewrites functions, and numbers their parameters and bindings."""

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
            elif isinstance(value, relax.Function):  # its variables have ids in this function
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
