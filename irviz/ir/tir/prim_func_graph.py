"""Read a PrimFunc as the graph of its blocks; buffers are the edges between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tvm import tirx

from irviz.ir.labels import attributes
from irviz.ir.node_ids import unique_id
from irviz.ir.tir.loop_nest_reader import loop_nest
from irviz.model.graph.graph import (
    OUTPUT,
    Edge,
    Graph,
    Node,
    NodeId,
    NodeKind,
    Region,
    RegionKind,
)
from irviz.model.loop_nest import (
    Axis,
    AxisKind,
    Block,
    Buffer,
    Loop,
    LoopNode,
    Scalar,
    contains_block,
)

_LETTERS = {AxisKind.SPATIAL: "S", AxisKind.REDUCTION: "R"}


def prim_func_graph(function: tirx.PrimFunc, name: str) -> Graph:
    """Read a PrimFunc as the graph of its innermost blocks, in the order of the text.

    An edge is a buffer that one block writes and a later one reads. A buffer that is read before
    it is written is a parameter. Blocks around others are regions. A PrimFunc without blocks has
    only parameters as nodes.
    """
    nest = loop_nest(function, name)
    buffers = {one.name: one for one in (*nest.parameters, *nest.temporaries)}
    seen: dict[str, int] = {OUTPUT: 1}
    writers: dict[str, NodeId] = {}
    regions: list[Region] = []
    placed = list(_innermost(nest.body, (), None, regions))
    blocks = [each.block for each in placed]
    read_first = _read_first(blocks)
    params = [one for one in nest.parameters if one.name in read_first or not blocks]
    nodes = []
    for param in params:
        node_id = writers[param.name] = unique_id(param.name, seen)
        nodes.append(Node(node_id, NodeKind.PARAM, param.name, _type_label(param)))
    param_ids = {node.id for node in nodes}
    edges: list[Edge] = []
    for block, region, loops in placed:
        node_id = unique_id(block.name or "block", seen)
        sources = dict.fromkeys(access.buffer for access in block.reads if access.buffer in writers)
        edges += [Edge(writers[buffer], node_id, (index,)) for index, buffer in enumerate(sources)]
        names = list(dict.fromkeys(access.buffer for access in block.writes))
        types = ", ".join(_type_label(buffers[one]) for one in names if one in buffers)
        facts = {
            "axes": ", ".join(map(_axis, block.axes)),
            "threads": ", ".join(f"{one.thread} {one.extent}" for one in loops if one.thread),
        }
        nodes.append(
            Node(
                node_id,
                NodeKind.BLOCK,
                ", ".join(names),
                types,
                attributes=tuple((name, text) for name, text in facts.items() if text),
                region=region,
            )
        )
        writers |= dict.fromkeys(names, node_id)
    results = dict.fromkeys(writers[one.name] for one in nest.parameters if one.name in writers)
    outputs = tuple(one for one in results if one not in param_ids)
    attrs = attributes(function.attrs)
    return Graph(name, tuple(nodes), tuple(edges), tuple(regions), outputs, attributes=attrs)


class _Placed(NamedTuple):
    """An innermost block, the region of the block around it, and the loops around both."""

    block: Block
    region: int | None
    loops: tuple[Loop, ...]


def _innermost(
    nodes: Sequence[LoopNode], loops: tuple[Loop, ...], region: int | None, regions: list[Region]
) -> Iterator[_Placed]:
    """Yield the blocks without inner blocks, and add a region for each block around others."""
    for node in nodes:
        match node:
            case Loop():
                yield from _innermost(node.children, (*loops, node), region, regions)
            case Block() if not any(map(contains_block, (*node.init, *node.children))):
                yield _Placed(node, region, loops)
            case Block():
                inner = len(regions)
                regions.append(Region(RegionKind.OUTER_BLOCK, node.name or "block", region))
                yield from _innermost((*node.init, *node.children), loops, inner, regions)
            case _:
                yield from _innermost(node.children, loops, region, regions)


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
    scope = "" if buffer.scope == "global" else f" {buffer.scope}"
    return f"Buffer[{buffer.shape}]{dtype}{scope}"


def _axis(axis: Axis) -> str:
    letter = _LETTERS.get(axis.kind, axis.kind.value)
    return f"{axis.name} {letter} {axis.extent}"
