"""The relation between the nodes of a function before and after, over one step or several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from irviz.model.diff.canonical_names import Names, common_names, with_contents, without_names
from irviz.model.diff.diff_result import Part
from irviz.model.graph.graph import Graph, Node, NodeId, NodeKind
from irviz.model.graph.inlined_ids import SEPARATOR
from irviz.model.matching.function_matching import FunctionPair
from irviz.model.matching.inlined_graph import (
    InlinedGraph,
    inline_calls,
    inlined_correspondence,
)
from irviz.model.matching.lowered_matching import Joined
from irviz.model.matching.node_matching import Correspondence, MatchedBy, correspondence

_MATCHED_CALLS = (NodeKind.CALL_FUNCTION, NodeKind.CALL_TIR)


@dataclass(frozen=True)
class DiffSide:
    """A function on one side of a diff, with the module's functions that it may call, by name.

    Attributes:
        names: The names of its sizes.
    """

    graph: Graph
    others: Mapping[str, Graph]
    names: Names


@dataclass(frozen=True)
class NodeLinks:
    """Which nodes of a function became which, many to many.

    Attributes:
        pairs: How each pair of a node before and a node after was matched.
        values: The nodes before with the same value as a node after, known from examining a called
            function.
        parts: The individual nodes inside of the examined functions.
        calls_before: The calls before whose callee was examined.
        calls_after: The calls after whose callee was examined.
    """

    pairs: Mapping[tuple[NodeId, NodeId], MatchedBy]
    values: Mapping[NodeId, frozenset[NodeId]]
    parts: tuple[Part, ...] = ()
    calls_before: frozenset[NodeId] = frozenset()
    calls_after: frozenset[NodeId] = frozenset()


def link_nodes(
    before: DiffSide,
    after: DiffSide,
    functions: Sequence[FunctionPair],
    known: Mapping[NodeId, NodeId],
) -> NodeLinks:
    """Match the nodes of a function before and after one step.

    If only one of the two modules has a callee, its nodes are examined. Calls of corresponding
    functions are the same operation.

    Args:
        functions: The functions that correspond.
        known: The nodes before of nodes after that have the same variable or tensor.
    """
    looked_into = _only_there(before, [pair.before for pair in functions])
    looked_into |= _only_there(after, [pair.after for pair in functions])
    there, back = common_names(before.names, after.names)
    before = _canonical_reading(
        before, {pair.before: at for at, pair in enumerate(functions)}, there
    )
    after = _canonical_reading(after, {pair.after: at for at, pair in enumerate(functions)}, back)
    if not looked_into:
        return _link_directly(before.graph, after.graph, known)
    one, two = (inline_calls(each.graph.function, each.others) for each in (before, after))
    found = inlined_correspondence(two, one, known)
    pairs: dict[tuple[NodeId, NodeId], MatchedBy] = {}
    parts: list[Part] = []
    further = [(mine, theirs) for mine, theirs in found.joined]
    for mine, theirs in (*found.items(), *further):
        left, right = outermost(theirs), outermost(mine)
        is_inside = left != theirs or right != mine
        if is_inside and NodeKind.PARAM in (one.graph[theirs].kind, two.graph[mine].kind):
            continue
        by = found.steps[mine] if found.get(mine) == theirs else MatchedBy.OPERATION
        if is_inside:
            if by is not MatchedBy.CONTENTS:  # but the node that computes its value
                parts.append(Part(theirs, mine, by))
            pairs.setdefault((left, right), MatchedBy.CONTENTS)
        elif by is not MatchedBy.CONTENTS:
            pairs[left, right] = by
        else:
            pairs.setdefault((left, right), MatchedBy.CONTENTS)
    values = _values(one, two, found)
    for mine, others in _joined_values(found).items():
        values[mine] = values.get(mine, frozenset()) | others
    return NodeLinks(
        pairs, values, tuple(parts), _looked_into(one), _looked_into(two) | _fused_calls(found)
    )


def unchanged_links(graph: Graph) -> NodeLinks:
    """Return the relation of a function with itself."""
    return NodeLinks({(node.id, node.id): MatchedBy.KNOWN for node in graph.nodes}, {})


def _only_there(reading: DiffSide, matched: Iterable[str]) -> set[str]:
    """Return the functions without a counterpart that a function calls."""
    others = reading.others.keys() - set(matched)
    return (
        {node.callee for node in reading.graph.nodes if node.callee in others} if others else set()
    )


def _link_directly(before: Graph, after: Graph, known: Mapping[NodeId, NodeId]) -> NodeLinks:
    """Match two functions without callees to examine."""
    found = correspondence(after, before, known)
    pairs = {(theirs, mine): found.steps[mine] for mine, theirs in found.items()}
    pairs.update(
        {
            (theirs, mine): found.steps.get(mine, MatchedBy.OPERATION)
            for mine, theirs in found.joined
        }
    )
    return NodeLinks(pairs, _joined_values(found), calls_after=_fused_calls(found))


def _joined_values(found: Correspondence) -> dict[NodeId, frozenset[NodeId]]:
    """Return the nodes before with the value of a node after, where several make up one."""
    partners = {theirs: mine for mine, theirs in found.items()}
    values: dict[NodeId, frozenset[NodeId]] = {}
    for (mine, theirs), how in found.joined.items():
        pairs = [(mine, theirs)] if how is Joined.VALUE else []
        pairs += [(mine, found[mine])] if mine in found else []
        pairs += [(partners[theirs], theirs)] if theirs in partners else []
        for one, other in pairs:
            values[outermost(one)] = values.get(outermost(one), frozenset()) | {outermost(other)}
    return values


def _fused_calls(found: Correspondence) -> frozenset[NodeId]:
    """Return the calls after that correspond to several nodes by the name of their function."""
    parts = [mine for (mine, _), how in found.joined.items() if how is Joined.PART]
    return frozenset(outermost(mine) for mine in parts if mine in found)


def _canonical_reading(
    reading: DiffSide, matched: Mapping[str, int], sizes: Mapping[str, str]
) -> DiffSide:
    """Return a function to be matched, with the callees that are examined."""
    others = {name: other for name, other in reading.others.items() if name not in matched}
    graphs = {
        name: _canonical_graph(without_names(each, sizes, reading.names), matched)
        for name, each in {**others, reading.graph.function: reading.graph}.items()
    }
    return DiffSide(graphs[reading.graph.function], graphs, reading.names)


def _canonical_graph(graph: Graph, matched: Mapping[str, int]) -> Graph:
    if any(node.kind in _MATCHED_CALLS and node.callee in matched for node in graph.nodes):
        graph = graph.with_nodes([_canonical(node, matched) for node in graph.nodes])
    return with_contents(graph)


def _canonical(node: Node, matched: Mapping[str, int]) -> Node:
    """Return a call whose operation ignores the name and body of a matched callee.

    A call of a Relax function is the same as a call of the PrimFunc that it became.
    """
    index = matched.get(node.callee) if node.kind in _MATCHED_CALLS else None
    if index is None:
        return node
    attributes = tuple(item for item in node.attributes if item[1] != node.callee)
    structure = hash(("function", index, attributes, node.literals))
    return node._replace(kind=NodeKind.CALL_FUNCTION, structure=structure)


def outermost(node_id: NodeId) -> NodeId:
    """Return the outermost of the calls that a node is inside of, or the node itself."""
    return NodeId(node_id.partition(SEPARATOR)[0])


def _looked_into(inlined: InlinedGraph) -> frozenset[NodeId]:
    nodes = inlined.graph.nodes
    return frozenset(outermost(node.id) for node in nodes if SEPARATOR in node.id)


def _values(
    before: InlinedGraph, after: InlinedGraph, found: Mapping[NodeId, NodeId]
) -> dict[NodeId, frozenset[NodeId]]:
    """Return the nodes before with the same value, where a callee was examined."""
    forwarding: dict[NodeId, set[NodeId]] = {}
    for node_id in before.same:
        is_call = before.graph[node_id].kind is NodeKind.CALL_FUNCTION  # of an inner function
        if SEPARATOR not in node_id and (is_call or _leads_inside(before, node_id)):
            forwarding.setdefault(before.origin(node_id), set()).add(node_id)
    values: dict[NodeId, frozenset[NodeId]] = {}
    for node in after.graph.nodes:
        if SEPARATOR in node.id:
            continue
        origin = found.get(after.origin(node.id))
        if origin is None:
            continue
        others = set(forwarding.get(origin, ()))
        if SEPARATOR not in origin and _leads_inside(after, node.id):
            others.add(origin)
        if others:
            values[node.id] = frozenset(others)
    return values


def _leads_inside(inlined: InlinedGraph, node_id: NodeId) -> bool:
    """Return whether a node forwards a value from inside of a called function."""
    while node_id in inlined.same:
        node_id = inlined.same[node_id]
        if SEPARATOR in node_id:
            return True
    return False
