"""The nodes of a function in groups: those that became each other."""

from __future__ import annotations

from dataclasses import dataclass

from irviz.model.diff.node_links import NodeLinks
from irviz.model.graph.graph import Graph, NodeId
from irviz.model.matching.correspondence import MatchedBy


@dataclass(frozen=True)
class NodeGroup:
    """Nodes before that became nodes after, and what shows it.

    Attributes:
        value: A node before and a node after with the same value, where this is known.
    """

    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]
    by: MatchedBy
    value: tuple[NodeId, NodeId] | None = None

    @property
    def partners(self) -> tuple[NodeId, NodeId] | None:
        """The two nodes that stand for each other among operands, None for none."""
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
        by = hows.pop() if len(hows) == 1 else MatchedBy.CONTENTS
        groups.append(
            NodeGroup(
                tuple(sorted(mine, key=before.index.__getitem__)),
                tuple(sorted(theirs, key=after.index.__getitem__)),
                by,
            )
        )
    return groups
