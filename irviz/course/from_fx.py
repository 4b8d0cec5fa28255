"""The integration chapter's importer: converts a torch.fx graph node by node, by rules.

A rule converts calls of one function or module of torch: to the chapter's own tensor expressions,
to TOPI's, or to Relax's operators. PyTorch is imported only where the rules are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from tvm import IRModule, ir, relax, topi

from irviz.course.te_functions import te_matmul, te_relu

if TYPE_CHECKING:
    import torch

Rule: TypeAlias = Callable[[relax.BlockBuilder, Sequence[relax.Expr], Any], relax.Var]
"""Emits the value of a node, given the builder, the operands, and the module that is called."""


def from_fx(
    graph_module: torch.fx.GraphModule,
    shapes: Sequence[Sequence[int]],
    functions: Mapping[Any, Rule],
    modules: Mapping[type, Rule],
) -> IRModule:
    """Return the graph as a `main` of float32 tensors, weights as constants.

    `shapes` are those of the inputs, in order; the rules are by the function that is called, or
    by the module's class. Raises ValueError for a node that no rule is for.
    """
    builder, inputs = relax.BlockBuilder(), []
    values: dict[Any, relax.Expr] = {}
    left = iter(shapes)
    with builder.function("main"):
        with builder.dataflow():
            for node in graph_module.graph.nodes:  # each comes after its operands
                operands = [values[one] for one in node.args if one in values]
                if node.op == "placeholder":
                    type_ = relax.TensorType(tuple(next(left)), "float32")
                    inputs.append(relax.Var(node.name, type_))
                    values[node] = inputs[-1]
                elif node.op == "get_attr":
                    values[node] = constant(attrgetter(node.target)(graph_module))
                elif node.op == "call_function" and node.target in functions:
                    values[node] = functions[node.target](builder, operands, None)
                elif node.op == "call_module" and (
                    rule := modules.get(type(called := attrgetter(node.target)(graph_module)))
                ):
                    values[node] = rule(builder, operands, called)
                elif node.op == "output":
                    result = builder.emit_output(operands[0])
                else:
                    raise ValueError(
                        f"no rule for {node.format_node()}: give one for what it calls"
                    )
        builder.emit_func_output(result, params=inputs)
    return builder.get()


def constant(weight: torch.Tensor) -> ir.GenericConst:
    """Return a weight as a constant of Relax."""
    return relax.const(weight.detach().cpu().numpy(), "float32")


def te_functions() -> dict[Any, Rule]:
    """Return rules for torch.matmul and torch.relu: the chapter's own tensor expressions."""
    import torch

    return {
        torch.matmul: lambda builder, operands, _: builder.emit_te(te_matmul, *operands),
        torch.relu: lambda builder, operands, _: builder.emit_te(te_relu, *operands),
    }


def topi_modules() -> dict[type, Rule]:
    """Return rules for nn.Linear and nn.ReLU: TOPI's operators, each a PrimFunc of its own."""
    return _module_rules(
        lambda builder, x, weight: builder.emit_te(topi.nn.dense, x, weight),
        lambda builder, x, bias: builder.emit_te(topi.add, x, bias),
        lambda builder, x: builder.emit_te(topi.nn.relu, x),
    )


def operator_modules() -> dict[type, Rule]:
    """Return rules for nn.Linear and nn.ReLU: Relax's own operators, not lowered yet."""
    op = relax.op
    return _module_rules(
        lambda builder, x, weight: builder.emit(
            op.matmul(x, builder.emit(op.permute_dims(weight)))
        ),
        lambda builder, x, bias: builder.emit(op.add(x, bias)),
        lambda builder, x: builder.emit(op.nn.relu(x)),
    )


def _module_rules(
    dense: Callable[..., relax.Var], add: Callable[..., relax.Var], relu: Callable[..., relax.Var]
) -> dict[type, Rule]:
    import torch

    def linear(
        builder: relax.BlockBuilder, operands: Sequence[relax.Expr], layer: Any
    ) -> relax.Var:
        product = dense(builder, operands[0], constant(layer.weight))
        return product if layer.bias is None else add(builder, product, constant(layer.bias))

    return {
        torch.nn.Linear: linear,
        torch.nn.ReLU: lambda builder, operands, _: relu(builder, operands[0]),
    }
