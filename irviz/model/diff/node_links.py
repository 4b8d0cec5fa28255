"""The relation between the nodes of a function before and after, over one step or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from irviz.model.diff.canonical_names import Names, common_names, with_contents, without_names
from irviz.model.diff.diff_result import Part
from irviz.model.graph.graph import FUNCTION_NAME, Graph, Node, NodeId, NodeKind
from irviz.model.graph.inlined_ids import SEPARATOR
from irviz.model.matching.function_matching import FunctionPair
from irviz.model.matching.inlined_graph import (
    InlinedGraph,
    inline_calls,
    inlined_correspondence,
)
from irviz.model.matching.isomorphism import isomorphism
from irviz.model.matching.lowered_matching import Joined
from irviz.model.matching.node_matching import Correspondence, MatchedBy, correspondence

_MATCHED_CALLS = (NodeKind.CALL_FUNCTION, NodeKind.CALL_TIR)


@dataclass(frozen=True)
class DiffSide:
    """A function on one side of a diff, with the module's functions that it may call, by name.

    Attributes:
        names: The names of its sizes.
        ranks: What `ranks` returns for its accesses to memory.
    """

    graph: Graph
    others: Mapping[str, Graph]
    names: Names
    ranks: Mapping[NodeId, object]


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
    functions are the same operation. Parameters with the same name correspond, unless the functions
    are equal when parameters correspond by position.

    Args:
        functions: The functions that correspond.
        known: The nodes before of nodes after that have the same variable or tensor.
    """
    params = [_params(each.graph) for each in (before, after)]
    is_any_name_elsewhere = _is_any_name_elsewhere(*params) or _is_any_name_elsewhere(
        before.names.all, after.names.all
    )
    looked_into = _only_there(before, [pair.before for pair in functions])
    looked_into |= _only_there(after, [pair.after for pair in functions])
    has_order = bool(before.ranks) and len(known) < len(after.graph.nodes)
    if not looked_into and (is_any_name_elsewhere or has_order):
        sides = _canonical_sides(before, after, functions, are_exchanged=True)
        partners = isomorphism(*(each.graph for each in sides))
        if partners is not None:
            steps = {
                (one, two): MatchedBy.KNOWN if known.get(two) == one else MatchedBy.STRUCTURE
                for one, two in partners.items()
            }
            return NodeLinks(steps, {})
    before, after = _canonical_sides(before, after, functions, are_exchanged=False)
    if not looked_into:
        return _link_directly(before.graph, after.graph, known)
    one, two = (inline_calls(each.graph.function, each.others) for each in (before, after))
    found = inlined_correspondence(two, one, known)
    pairs: dict[tuple[NodeId, NodeId], MatchedBy] = {}
    parts: list[Part] = []
    for mine, theirs in (*found.items(), *found.joined):
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


def _params(graph: Graph) -> Sequence[NodeId]:
    return [n.id for n in graph.nodes if n.kind is NodeKind.PARAM and n.region is None]


def _is_any_name_elsewhere(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether any name is at another position."""
    places = {name: at for at, name in enumerate(before)}
    return len(before) == len(after) and any(
        places.get(name, at) != at for at, name in enumerate(after)
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
    for mine, theirs in found.joined:
        pairs[theirs, mine] = found.steps.get(mine, MatchedBy.OPERATION)
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


def _canonical_sides(
    before: DiffSide, after: DiffSide, functions: Sequence[FunctionPair], *, are_exchanged: bool
) -> tuple[DiffSide, DiffSide]:
    """Return two functions to be matched; `are_exchanged` is that of `common_names`."""
    there, back = common_names(before.names, after.names, are_exchanged=are_exchanged)
    mine = {pair.before: at for at, pair in enumerate(functions)}
    theirs = {pair.after: at for at, pair in enumerate(functions)}
    return _told_apart_by_rank(
        _canonical_reading(before, mine, there), _canonical_reading(after, theirs, back)
    )


def _canonical_reading(
    reading: DiffSide, matched: Mapping[str, int], sizes: Mapping[str, str]
) -> DiffSide:
    """Return a function to be matched, with the callees that are examined."""
    others = {name: other for name, other in reading.others.items() if name not in matched}
    graphs = {
        name: _canonical_graph(without_names(each, sizes, reading.names), matched)
        for name, each in {**others, reading.graph.function: reading.graph}.items()
    }
    return replace(reading, graph=graphs[reading.graph.function], others=graphs)


def _canonical_graph(graph: Graph, matched: Mapping[str, int]) -> Graph:
    if any(
        (node.kind in _MATCHED_CALLS and node.callee in matched)
        or (node.literal_types and FUNCTION_NAME in node.literal_types)
        for node in graph.nodes
    ):
        graph = graph.with_nodes([_canonical(node, matched) for node in graph.nodes])
    return with_contents(graph)


def _canonical(node: Node, matched: Mapping[str, int]) -> Node:
    """Return a call whose operation ignores the name and body of a matched callee.

    A call of a Relax function is the same as a call of the PrimFunc that it became.
    """
    if FUNCTION_NAME in node.literal_types:
        names = [(one.position, matched.get(one.text, one.text)) for one in node.literals]
        node = node._replace(structure=hash((node.callee, node.attributes, *names)))
    index = matched.get(node.callee) if node.kind in _MATCHED_CALLS else None
    if index is None:
        return node
    attributes = tuple(item for item in node.attributes if item[1] != node.callee)
    structure = hash(("function", index, attributes, node.literals))
    return node._replace(kind=NodeKind.CALL_FUNCTION, structure=structure)


def _told_apart_by_rank(before: DiffSide, after: DiffSide) -> tuple[DiffSide, DiffSide]:
    """Return two functions in which reads of one place before and after a write differ.

    An operation whose ranks differ on the two sides is left as it is: something moved.
    """
    sides = before, after
    if not any(each.ranks for each in sides):
        return sides
    counts: list[dict[object, Counter[object]]] = [{}, {}]
    for each, found in zip(sides, counts, strict=True):
        for node in each.graph.nodes:
            found.setdefault(node.operation, Counter())[each.ranks.get(node.id)] += 1
    told = {
        operation for operation in counts[0] if counts[0][operation] == counts[1].get(operation)
    }
    made = []
    for each in sides:
        graph = each.graph.with_nodes(
            [
                node._replace(structure=hash((node.structure, each.ranks[node.id])))
                if node.id in each.ranks and node.operation in told
                else node
                for node in each.graph.nodes
            ]
        )
        made.append(replace(each, graph=graph, others={**each.others, graph.function: graph}))
    return made[0], made[1]


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
