"""Read a function of an IRModule as a Graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import tvm
from tvm import ir, tirx

from irviz.gc_pause import gc_paused
from irviz.ir.module_functions import drawable_function
from irviz.ir.relax.graph_reader import ConstantNames, GraphReader
from irviz.ir.text.expression_labels import attributes
from irviz.ir.tir.prim_func_graph import prim_func_graph
from irviz.model.graph.graph import OUTPUT, Graph, NodeId


def extract(
    mod: ir.IRModule, function: str = "main", constant_names: ConstantNames | None = None
) -> Graph:
    """Read one function as a Graph: a Relax function with its branches, or a PrimFunc's blocks.

    A scalar constant is a literal of the node that uses it. A tensor, or a constant that is
    returned, is a node of its own. An expression of an unknown class is a node of kind OTHER with
    TVM's own text.

    Args:
        mod: The module.
        function: The name of the function.
        constant_names: Names of constants, by their tensors.

    Raises:
        NoFunctionError: If the module has no Relax function or PrimFunc of this name.
    """
    return read_function(mod, function, constant_names).graph


class FunctionReading(NamedTuple):
    """The graph of a function, and what its nodes are.

    Attributes:
        constants: The tensor of each constant's node.
        variables: The node of each variable, by the variable's address; also those of constants.
    """

    graph: Graph
    constants: Mapping[NodeId, tvm.runtime.Tensor]
    variables: Mapping[int, NodeId]


def read_function(
    mod: ir.IRModule, function: str = "main", constant_names: ConstantNames | None = None
) -> FunctionReading:
    """Return what `extract` returns, and what the nodes are."""
    source = drawable_function(mod, function)
    if isinstance(source, tirx.PrimFunc):
        return FunctionReading(prim_func_graph(source, function), {}, {})
    reader = GraphReader(mod, constant_names or {})
    with gc_paused():
        reader.params(source.params, None)
        reader.blocks(source.body, None, 0)
        outputs = reader.results(source.body, OUTPUT, (), None)
    graph = Graph(
        function=function,
        nodes=tuple(reader.nodes),
        edges=tuple(reader.edges),
        regions=tuple(reader.regions),
        outputs=tuple(node_id for _, node_id in outputs),
        attributes=attributes(source.attrs),
    )
    return FunctionReading(graph, reader.constants, reader.ids)
