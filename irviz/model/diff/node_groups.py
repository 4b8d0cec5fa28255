"""Group the nodes of a function that became each other, by link or by position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from irviz.model.diff.node_links import NodeLinks
from irviz.model.graph.graph import INPUT_KINDS, Graph, Node, NodeId, NodeKind
from irviz.model.matching.node_matching import MatchedBy

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
    there: dict[NodeId, list[NodeId]] = {}
    back: dict[NodeId, list[NodeId]] = {}
    for one, two in links.pairs:
        there.setdefault(one, []).append(two)
        back.setdefault(two, []).append(one)
    groups: list[NodeGroup] = []
    seen: set[NodeId] = set()
    for node in after.nodes:
        if node.id in seen or node.id not in back:
            continue
        one, *more = back[node.id]
        if not more and len(there[one]) == 1:
            groups.append(NodeGroup((one,), (node.id,), links.pairs[one, node.id]))
            continue
        mine: dict[NodeId, None] = {}
        theirs: dict[NodeId, None] = {node.id: None}
        waiting = [node.id]
        while waiting:
            for one in back[waiting.pop()]:
                if one not in mine:
                    mine[one] = None
                    new = [two for two in there[one] if two not in theirs]
                    theirs.update(dict.fromkeys(new))
                    waiting += new
        seen.update(theirs)
        hows = {links.pairs[one, two] for one in mine for two in there[one]}
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
    groups: Sequence[NodeGroup],
    before: Graph,
    after: Graph,
    is_other_operation: IsOtherOperation,
) -> list[NodeGroup]:
    """Extend pairs of different operations by unmatched nodes that belong to them.

    Unmatched nodes that only the pair uses are grouped with it: the operation was decomposed,
    fused, or folded into a constant.

    Args:
        is_other_operation: Whether the operations of a node before and one after differ.
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
    kind = before.graph[one].kind
    if kind in INPUT_KINDS or not is_other_operation(one, two):
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

    def _free_sources(self, node_id: NodeId) -> list[NodeId]:
        edges = self.graph.entering.get(node_id, ())
        sources = dict.fromkeys(edge.source for edge in edges)
        return [one for one in sources if self._is_free(self.graph[one])]

    def _is_free(self, node: Node) -> bool:
        return node.id not in self.taken and node.kind is not NodeKind.PARAM

    def _serving(self, node_id: NodeId, last: NodeId) -> Iterable[NodeId]:
        """Yield a node's unmatched operands, and unmatched calls before `last` that write to it."""
        yield from self._free_sources(node_id)
        for edge in self.graph.leaving.get(node_id, ()):
            user = self.graph[edge.target] if edge.target in self.graph.index else None
            if user is not None and self._is_effect(user, last):
                yield user.id

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
