"""Read a PrimFunc as the graph of its blocks; buffers are the edges between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tvm import tirx

from irviz.ir.node_ids import unique_id
from irviz.ir.text.expression_labels import attributes
from irviz.ir.tir.loop_nest_reader import loop_nest
from irviz.model.graph.graph import OUTPUT, Edge, Graph, Node, NodeId, NodeKind
from irviz.model.loop_nest import Axis, AxisKind, Block, Buffer, LoopNode, Scalar

_LETTERS = {AxisKind.SPATIAL: "S", AxisKind.REDUCTION: "R"}


def prim_func_graph(function: tirx.PrimFunc, name: str) -> Graph:
    """Read a PrimFunc as the graph of its innermost blocks, in the order of the text.

    An edge is a buffer that one block writes and a later one reads. A buffer that is read before
    it is written is a parameter. A PrimFunc without blocks has only parameters as nodes.
    """
    nest = loop_nest(function, name)
    buffers = {one.name: one for one in (*nest.parameters, *nest.temporaries)}
    seen: dict[str, int] = {OUTPUT: 1}
    writers: dict[str, NodeId] = {}
    blocks = list(_innermost(nest.body))
    read_first = _read_first(blocks)
    params = [one for one in nest.parameters if one.name in read_first or not blocks]
    nodes = []
    for param in params:
        node_id = writers[param.name] = unique_id(param.name, seen)
        nodes.append(Node(node_id, NodeKind.PARAM, param.name, _type_label(param)))
    param_ids = {node.id for node in nodes}
    edges: list[Edge] = []
    for block in blocks:
        node_id = unique_id(block.name or "block", seen)
        sources = dict.fromkeys(access.buffer for access in block.reads if access.buffer in writers)
        edges += [Edge(writers[buffer], node_id, (index,)) for index, buffer in enumerate(sources)]
        names = list(dict.fromkeys(access.buffer for access in block.writes))
        types = ", ".join(_type_label(buffers[one]) for one in names if one in buffers)
        axes = (("axes", ", ".join(map(_axis, block.axes))),) if block.axes else ()
        nodes.append(Node(node_id, NodeKind.BLOCK, ", ".join(names), types, attributes=axes))
        writers |= dict.fromkeys(names, node_id)
    results = dict.fromkeys(writers[one.name] for one in nest.parameters if one.name in writers)
    outputs = tuple(one for one in results if one not in param_ids)
    attrs = attributes(function.attrs)
    return Graph(name, tuple(nodes), tuple(edges), (), outputs, attributes=attrs)


def _innermost(nodes: Sequence[LoopNode]) -> Iterator[Block]:
    """Yield the blocks without inner blocks."""
    for node in nodes:
        inside = list(_innermost(node.children))
        yield from inside
        if isinstance(node, Block) and not inside:
            yield node


def _read_first(blocks: Sequence[Block]) -> set[str]:
    """Return the buffers that a block reads before any block has written them."""
    found: set[str] = set()
    written: set[str] = set()
    for block in blocks:
        own = {access.buffer for access in block.writes} if block.init else set()
        found |= {access.buffer for access in block.reads} - written - own
        written |= {access.buffer for access in block.writes}
    return found


def _type_label(buffer: Buffer | Scalar) -> str:
    if isinstance(buffer, Scalar):
        return buffer.dtype
    dtype = "" if buffer.dtype == "float32" else f" {buffer.dtype}"
    return f"Buffer[{buffer.shape}]{dtype}"


def _axis(axis: Axis) -> str:
    letter = _LETTERS.get(axis.kind, axis.kind.value)
    return f"{axis.name} {letter} {axis.extent}"
