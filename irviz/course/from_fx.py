"""The integration chapter's importer: a graph of torch.fx, node by node, by rules.

A rule says what one function or one module of torch becomes. Three sets of them are here, of the
chapter's own tensor expressions, of TOPI's, and of Relax's operators. PyTorch itself is needed
for the graphs, and is not imported before one comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tvm import IRModule, ir, relax, topi

from irviz.course.te_functions import te_matmul, te_relu

if TYPE_CHECKING:
    import torch

Rule: TypeAlias = Callable[[relax.BlockBuilder, Sequence[relax.Expr], Any], relax.Var]
"""Emits what stands for a node: given the builder, the operands, and the module that is called."""


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
            # the nodes stand in an order in which each comes after its operands
            for node in graph_module.graph.nodes:
                operands = [values[one] for one in node.args if one in values]
                if node.op == "placeholder":
                    type_ = relax.TensorType(tuple(next(left)), "float32")
                    inputs.append(relax.Var(node.name, type_))
                    values[node] = inputs[-1]
                elif node.op == "get_attr":
                    values[node] = constant(_attribute(graph_module, node.target))
                elif node.op == "call_function" and node.target in functions:
                    values[node] = functions[node.target](builder, operands, None)
                elif (
                    node.op == "call_module"
                    and type(called := _attribute(graph_module, node.target)) in modules
                ):
                    values[node] = modules[type(called)](builder, operands, called)
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


def _attribute(module: Any, path: str) -> Any:
    """Return what a dotted path of attributes leads to."""
    for name in path.split("."):
        module = getattr(module, name)
    return module


def te_functions() -> dict[Any, Rule]:
    """Return rules for torch.matmul and torch.relu: the chapter's own tensor expressions."""
    import torch

    return {
        torch.matmul: lambda builder, operands, _: builder.emit_te(te_matmul, *operands),
        torch.relu: lambda builder, operands, _: builder.emit_te(te_relu, *operands),
    }


def topi_modules() -> dict[type, Rule]:
    """Return rules for nn.Linear and nn.ReLU: TOPI's operators, each a PrimFunc of its own."""
    import torch

    def linear(
        builder: relax.BlockBuilder, operands: Sequence[relax.Expr], layer: Any
    ) -> relax.Var:
        product = builder.emit_te(topi.nn.dense, operands[0], constant(layer.weight))
        if layer.bias is None:
            return product
        return builder.emit_te(topi.add, product, constant(layer.bias))

    def relu(builder: relax.BlockBuilder, operands: Sequence[relax.Expr], _: Any) -> relax.Var:
        return builder.emit_te(topi.nn.relu, operands[0])

    return {torch.nn.Linear: linear, torch.nn.ReLU: relu}


def operator_modules() -> dict[type, Rule]:
    """Return rules for nn.Linear and nn.ReLU: Relax's own operators, still to be lowered."""
    import torch

    def linear(
        builder: relax.BlockBuilder, operands: Sequence[relax.Expr], layer: Any
    ) -> relax.Var:
        weight = builder.emit(relax.op.permute_dims(constant(layer.weight)))
        product = builder.emit(relax.op.matmul(operands[0], weight))
        if layer.bias is None:
            return product
        return builder.emit(relax.op.add(product, constant(layer.bias)))

    def relu(builder: relax.BlockBuilder, operands: Sequence[relax.Expr], _: Any) -> relax.Var:
        return builder.emit(relax.op.nn.relu(operands[0]))

    return {torch.nn.Linear: linear, torch.nn.ReLU: relu}
