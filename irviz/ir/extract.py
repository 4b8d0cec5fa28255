"""IRModule -> Graph."""

from __future__ import annotations

from collections.abc import Mapping

import tvm
from tvm import ir, tirx

from irviz.ir.attributes import attributes
from irviz.ir.identity import drawn_function
from irviz.ir.prim_func_graph import prim_func_graph
from irviz.ir.reader import ConstantNames, Reader
from irviz.model.graph import OUTPUT, Graph, NodeId
from irviz.model.pause import no_collection


def extract(
    mod: ir.IRModule, function: str = "main", constant_names: ConstantNames | None = None
) -> Graph:
    """Read one function of the module as a Graph: a Relax function or a PrimFunc.

    A Relax function is read with its branches and inner functions, a PrimFunc as its blocks.

    A scalar constant is a literal of the node that uses it, a tensor or one that is returned is
    a node of its own, named by `constant_names` where its tensor is known there. What irviz has
    no reader for is a node of kind OTHER with TVM's own text. Raises ValueError when the module
    has no function of this name.
    """
    return read(mod, function, constant_names)[0]


def read(
    mod: ir.IRModule, function: str = "main", constant_names: ConstantNames | None = None
) -> tuple[Graph, Mapping[NodeId, tvm.runtime.Tensor]]:
    """Return the graph, and the tensor of each constant's node; raise as `extract` does."""
    source = drawn_function(mod, function)
    if isinstance(source, tirx.PrimFunc):
        return prim_func_graph(source, function), {}
    reader = Reader(mod, constant_names or {})
    with no_collection():
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
    return graph, reader.constants
