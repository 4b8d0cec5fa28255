"""IRModule -> Graph."""

from __future__ import annotations

from collections.abc import Mapping

import tvm
from tvm import ir

from irviz.ir.attributes import attributes
from irviz.ir.identity import relax_function
from irviz.ir.reader import ConstantNames, Reader
from irviz.model.graph import OUTPUT, Graph, NodeId
from irviz.model.pause import no_collection


def extract(
    mod: ir.IRModule, function: str = "main", constant_names: ConstantNames | None = None
) -> Graph:
    """Read one Relax function of the module, with its branches and inner functions, as a Graph.

    A scalar constant is a literal of the node that uses it, a tensor or one that is returned is
    a node of its own, named by `constant_names` where its tensor is known there. What irviz has
    no reader for is a node of kind OTHER with TVM's own text. Raises ValueError when the module
    has no Relax function of this name.
    """
    return read(mod, function, constant_names)[0]


def read(
    mod: ir.IRModule, function: str = "main", constant_names: ConstantNames | None = None
) -> tuple[Graph, Mapping[NodeId, tvm.runtime.Tensor]]:
    """Return the graph, and the tensor of each constant's node; raise as `extract` does."""
    source = relax_function(mod, function)
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
