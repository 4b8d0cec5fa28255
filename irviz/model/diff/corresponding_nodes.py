"""The relation between the nodes of a function before and after, over one step or several.

It holds the pairs that `model.matching` finds, with nodes that were fused, split or inlined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import NamedTuple

from irviz.model.diff.canonical_names import Names, common_names, with_contents, without_names
from irviz.model.diff.diff_result import Part
from irviz.model.graph.graph import (
    FUNCTION_NAME,
    SEPARATOR,
    Graph,
    Node,
    NodeId,
    NodeKind,
    grouped,
    inlined_id,
)
from irviz.model.matching.alignment import Alignment, MatchedBy
from irviz.model.matching.inlined_graph import InlinedGraph, inline_calls, inlined_correspondence
from irviz.model.matching.lowered_matching import Joined
from irviz.model.matching.node_matching import Correspondence, correspondence, isomorphism

_MATCHED_CALLS = (NodeKind.CALL_FUNCTION, NodeKind.CALL_TIR)


@dataclass(frozen=True)
class DiffSide:
    """A function on one side of a diff, with the module's functions that it may call, by name.

    `names` are those of its sizes, `ranks` what `ranks` returns for its accesses to memory.
    """

    graph: Graph
    others: Mapping[str, Graph]
    names: Names
    ranks: Mapping[NodeId, object]


@dataclass(frozen=True)
class NodeLinks(Alignment[NodeId, MatchedBy]):
    """Which nodes of a function became which.

    Attributes:
        values: The nodes before with the same value as a node after, known from examining a called
            function.
        parts: The individual nodes inside of the examined functions.
        calls_before: The calls before whose callee was examined; `calls_after` are those after.
    """

    values: Mapping[NodeId, frozenset[NodeId]] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    calls_before: frozenset[NodeId] = frozenset()
    calls_after: frozenset[NodeId] = frozenset()


def link_nodes(
    before: DiffSide,
    after: DiffSide,
    functions: Alignment[str, MatchedBy],
    known: Mapping[NodeId, NodeId],
) -> NodeLinks:
    """Match the nodes of a function before and after one step.

    If only one of the two modules has a callee, its nodes are examined. Calls of corresponding
    functions are the same operation. Parameters with the same name correspond, unless the functions
    are equal when parameters correspond by position.

    Args:
        known: The nodes before of nodes after that have the same variable or tensor.
    """
    params = [[one.id for one in each.graph.params()] for each in (before, after)]
    named = params, (before.names.all, after.names.all)
    is_any_name_elsewhere = any(_is_any_name_elsewhere(*both) for both in named)
    looked_into = _only_there(before, functions.there)
    looked_into |= _only_there(after, functions.back)
    has_order = bool(before.ranks) and len(known) < len(after.graph.nodes)
    if not looked_into and (is_any_name_elsewhere or has_order):
        sides = _canonical_sides(before, after, functions, are_exchanged=True)
        partners = isomorphism(*(each.graph for each in sides))
        if partners is not None:
            steps = {
                (one, two): MatchedBy.KNOWN if known.get(two) == one else MatchedBy.STRUCTURE
                for one, two in partners.items()
            }
            return NodeLinks(steps)
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
        if is_inside and by is not MatchedBy.CONTENTS:  # but the node that computes its value
            parts.append(Part(theirs, mine, by))
        if is_inside or by is MatchedBy.CONTENTS:
            pairs.setdefault((left, right), MatchedBy.CONTENTS)
        else:
            pairs[left, right] = by
    values = _values(one, two, found)
    for mine, others in _joined_values(found).items():
        values[mine] = values.get(mine, frozenset()) | others
    return NodeLinks(
        pairs, values, tuple(parts), _looked_into(one), _looked_into(two) | _fused_calls(found)
    )


def _is_any_name_elsewhere(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether any name is at another position."""
    places = {name: at for at, name in enumerate(before)}
    return len(before) == len(after) and any(
        places.get(name, at) != at for at, name in enumerate(after)
    )


def unchanged_links(graph: Graph) -> NodeLinks:
    """Return the relation of a function with itself."""
    return NodeLinks({(node.id, node.id): MatchedBy.KNOWN for node in graph.nodes})


def _only_there(reading: DiffSide, matched: Iterable[str]) -> set[str]:
    """Return the functions without a counterpart that a function calls."""
    others = reading.others.keys() - set(matched)
    return {node.callee for node in reading.graph.nodes if node.callee in others}


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
    before: DiffSide, after: DiffSide, functions: Alignment[str, MatchedBy], *, are_exchanged: bool
) -> tuple[DiffSide, DiffSide]:
    """Return two functions to be matched; `are_exchanged` is that of `common_names`."""
    there, back = common_names(before.names, after.names, are_exchanged=are_exchanged)
    mine = {before: at for at, (before, _) in enumerate(functions.pairs)}
    theirs = {after: at for at, (_, after) in enumerate(functions.pairs)}
    return _told_apart_by_rank(
        _canonical_reading(before, mine, there), _canonical_reading(after, theirs, back)
    )


def _canonical_reading(
    reading: DiffSide, matched: Mapping[str, int], sizes: Mapping[str, str]
) -> DiffSide:
    """Return a function to be matched, with the callees that are examined."""
    others = {name: other for name, other in reading.others.items() if name not in matched}
    graphs = {}
    for name, graph in {**others, reading.graph.function: reading.graph}.items():
        plain = without_names(graph, sizes, reading.names)
        plain = plain.with_nodes([_canonical(node, matched) for node in plain.nodes])
        graphs[name] = with_contents(plain)
    return replace(reading, graph=graphs[reading.graph.function], others=graphs)


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

    An operation whose ranks differ on the two sides is left alone: something moved.
    """
    sides = before, after
    if not any(each.ranks for each in sides):
        return sides
    mine, theirs = (
        grouped((node.operation, each.ranks.get(node.id)) for node in each.graph.nodes)
        for each in sides
    )
    told = {one for one in mine if one in theirs and Counter(mine[one]) == Counter(theirs[one])}
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


# --- Compose the relations between the nodes of a function over two consecutive steps ------------


@dataclass(frozen=True, eq=False)
class Step:
    """The relation over one step, including nodes inside of called functions.

    Attributes:
        inside: Returns the step between the callees of two corresponding calls, None if unknown.
    """

    links: NodeLinks
    inside: Callable[[NodeId, NodeId], Step | None] = lambda _, __: None

    @cached_property
    def whole(self) -> Alignment[NodeId, MatchedBy]:
        """The nodes that correspond as a whole, rather than by their contents."""
        if not self.links.parts:
            return self.links
        explained = {(outermost(one.before), outermost(one.after)) for one in self.links.parts}
        pairs = self.links.pairs.items()
        return Alignment({pair: by for pair, by in pairs if pair not in explained})

    @cached_property
    def exact(self) -> Alignment[NodeId, MatchedBy]:
        """The nodes that correspond, with nodes inside of calls in place of the calls."""
        inner = {(one.before, one.after): one.by for one in self.links.parts}
        return Alignment({**self.whole.pairs, **inner}) if inner else self.whole

    def follow(self, node_id: NodeId, *, back: bool = False) -> Iterator[tuple[NodeId, bool]]:
        """Yield what a node became, or with `back` what it was, and whether that is exact.

        For a node inside of a call, it may be the whole call.
        """
        exact = (self.exact.back if back else self.exact.there).get(node_id)
        if exact:
            yield from ((each, True) for each in exact)
            return
        call, separator, rest = node_id.partition(SEPARATOR)
        whole = self.whole.back if back else self.whole.there
        for other in whole.get(NodeId(call), ()) if separator else ():
            pair = (other, NodeId(call)) if back else (NodeId(call), other)
            inner = self.inside(*pair)
            within = list(inner.follow(NodeId(rest), back=back)) if inner else []
            for each, is_exact in within:
                yield inlined_id(other, each), is_exact
            if not within:
                yield other, False


def compose_steps(first: Step, second: Step) -> Step:
    """Return the relation over two steps, one after the other."""
    composed = cache(compose_steps)  # many calls are of one function

    @cache
    def inside(before: NodeId, after: NodeId) -> Step | None:
        for middle in first.whole.there.get(before, ()):
            if (middle, after) in second.whole.pairs:
                mine, theirs = first.inside(before, middle), second.inside(middle, after)
                if mine is not None and theirs is not None:
                    return composed(mine, theirs)
        return None

    return Step(_composed_links(first, second), inside)


def _composed_links(first: Step, second: Step) -> NodeLinks:
    pairs: dict[tuple[NodeId, NodeId], MatchedBy] = {}
    parts: dict[tuple[NodeId, NodeId], None] = {}
    known = (first.links.pairs, second.links.pairs)
    for before, middle, after, is_exact in _joined(first, second):
        is_part = not is_exact or SEPARATOR in before or SEPARATOR in after
        if is_part:
            parts[before, after] = None
        hows = known[0].get((before, middle)), known[1].get((middle, after))
        is_known = not is_part and set(hows) == {MatchedBy.KNOWN}
        pair = outermost(before), outermost(after)
        pairs[pair] = MatchedBy.KNOWN if is_known else MatchedBy.STAGES
    opened = first.links.calls_after, second.links.calls_before
    return NodeLinks(
        pairs,
        _composed_values(first, second),
        tuple(Part(*pair, MatchedBy.STAGES) for pair in parts),
        first.links.calls_before
        | {one for one, two in first.links.pairs if two in opened[1] - opened[0]},
        second.links.calls_after
        | {two for one, two in second.links.pairs if one in opened[0] - opened[1]},
    )


def _joined(first: Step, second: Step) -> Iterator[tuple[NodeId, NodeId, NodeId, bool]]:
    """Yield what each node became through an intermediate node, and whether that is exact."""
    for before, middle in first.exact.pairs:
        for after, is_exact in second.follow(middle):
            yield before, middle, after, is_exact
    for middle, after in second.exact.pairs:
        if SEPARATOR in middle and middle not in first.exact.back:
            for before, is_exact in first.follow(middle, back=True):
                yield before, middle, after, is_exact


def _composed_values(first: Step, second: Step) -> dict[NodeId, frozenset[NodeId]]:
    """Return the nodes before with the same value, other than partners."""
    mine, theirs = first.links.values, second.links.values
    middles = grouped((after, middle) for middle, after in second.whole.pairs if middle in mine)
    for after, same in theirs.items():
        middles.setdefault(after, []).extend(same)
    sources = first.whole.back
    values: dict[NodeId, frozenset[NodeId]] = {}
    for after, others in middles.items():
        found = {each for middle in others for each in mine.get(middle, ())}
        found.update(each for one in theirs.get(after, ()) for each in sources.get(one, ()))
        if found:
            values[after] = frozenset(found)
    return values


def block_links(
    calls: Iterable[tuple[NodeId, Iterable[NodeId]]], blocks: Iterable[NodeId]
) -> list[tuple[NodeId, NodeId]]:
    """Pair the calls in a Relax function with the blocks of the PrimFunc that it became.

    The blocks are in the order of the calls, each of which is given with the blocks of its callee.
    If the names contradict that, nothing is returned.
    """
    expected = [(call, block) for call, own in calls for block in own]
    found = list(blocks)
    # without the numbers that make them unique
    names = [one.partition("#")[0].rstrip("0123456789").removesuffix("_") for _, one in expected]
    if len(names) != len(found) or not all(map(str.startswith, found, names)):
        return []
    return [(call, block) for (call, _), block in zip(expected, found, strict=True)]


# --- Group the nodes of a function that became each other, by link or by position ----------------


IsOtherOperation = Callable[[NodeId, NodeId], bool]


class NodeGroup(NamedTuple):
    """Nodes before that became nodes after, and how they were matched.

    Attributes:
        value: A node before and a node after with the same value, where this is known.
    """

    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]
    by: MatchedBy
    value: tuple[NodeId, NodeId] | None = None

    @property
    def partners(self) -> tuple[NodeId, NodeId] | None:
        """The two nodes that count as equal operands, None if there are none."""
        is_pair = len(self.before) == len(self.after) == 1
        return (self.before[0], self.after[0]) if is_pair else self.value


def node_groups(links: NodeLinks, before: Graph, after: Graph) -> list[NodeGroup]:
    """Return the connected parts of a relation, each in the order of the text."""
    groups: list[NodeGroup] = []
    for mine, theirs in links.components([node.id for node in after.nodes]):
        hows = {links.pairs[one, two] for one in mine for two in links.there[one]}
        if len(hows) > 1 and MatchedBy.CONTENTS not in hows:
            hows = {MatchedBy.OPERATION}
        by = hows.pop() if len(hows) == 1 else MatchedBy.CONTENTS
        groups.append(
            NodeGroup(
                tuple(sorted(mine, key=before.index.__getitem__)),
                tuple(sorted(theirs, key=after.index.__getitem__)),
                by,
            )
        )
    return groups


def group_by_place(
    groups: Sequence[NodeGroup], before: Graph, after: Graph, is_other_operation: IsOtherOperation
) -> list[NodeGroup]:
    """Extend pairs of different operations by unmatched nodes that belong to them.

    Unmatched nodes that only the pair uses are grouped with it: the operation was decomposed,
    fused, or folded into a constant.
    """
    sides = (
        _Side(before, {node for group in groups for node in group.before}),
        _Side(after, {node for group in groups for node in group.after}),
    )
    return [_extended(group, *sides, is_other_operation) for group in groups]


def _extended(
    group: NodeGroup, before: _Side, after: _Side, is_other_operation: IsOtherOperation
) -> NodeGroup:
    if len(group.before) != 1 or len(group.after) != 1:
        return group
    (one,), (two,) = group.before, group.after
    if before.graph[one].is_input or not is_other_operation(one, two):
        return group
    mine, theirs = before.alone(one), after.alone(two)
    if not mine and not theirs:
        return group
    return NodeGroup((*mine, one), (*theirs, two), MatchedBy.PLACE, (one, two))


@dataclass
class _Side:
    """One of the two graphs, and its nodes that have a partner."""

    graph: Graph
    taken: set[NodeId]

    def alone(self, node_id: NodeId) -> list[NodeId]:
        """Return the unmatched nodes that only a given node uses.

        A call that writes to a buffer counts as used by the nodes that use the buffer.
        """
        found: dict[NodeId, None] = {}
        waiting = [node_id]
        while waiting:
            for each in self._serving(waiting.pop(), node_id):
                if each not in found and self._serves_only(each, {node_id, *found}, node_id):
                    found[each] = None
                    waiting.append(each)
        self.taken.update(found)
        return sorted(found, key=self.graph.index.__getitem__)

    def _is_free(self, node: Node) -> bool:
        return node.id not in self.taken and node.kind is not NodeKind.PARAM

    def _serving(self, node_id: NodeId, last: NodeId) -> Iterable[NodeId]:
        """Yield a node's unmatched operands, and unmatched calls before `last` that write to it."""
        for edge in self.graph.entering.get(node_id, ()):
            if self._is_free(self.graph[edge.source]):
                yield edge.source
        for edge in self.graph.leaving.get(node_id, ()):
            if self._is_effect(self.graph[edge.target], last):
                yield edge.target

    def _is_effect(self, node: Node, last: NodeId) -> bool:
        """Return whether an unmatched node is unused and is not the last node."""
        is_used = self.graph.leaving.get(node.id) or node.id in self.graph.outputs
        is_before = self.graph.index[node.id] < self.graph.index[last]
        return not is_used and is_before and self._is_free(node)

    def _serves_only(self, node_id: NodeId, served: set[NodeId], last: NodeId) -> bool:
        if node_id in self.graph.outputs:
            return False
        users = {edge.target for edge in self.graph.leaving.get(node_id, ())}
        return all(user in served or self._is_effect(self.graph[user], last) for user in users)
