"""Whether two functions are equal up to names and order, and which of their nodes correspond.

Names of buffers tell nothing where buffers are allocated first and written later: what is written
tells which is which. So classes of nodes are refined by the classes of their operands and users,
as in the algorithm of Weisfeiler and Leman.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from irviz.model.graph.graph import Graph, NodeId, NodeKind, RegionKind

_MOST_CHOICES = 100  # of pairs among nodes that nothing tells apart


def isomorphism(one: Graph, two: Graph) -> Mapping[NodeId, NodeId] | None:
    """Return the node of the second function for each node of the first, None if they differ.

    Parameters correspond by position. `Node.structure` and all edges have to be equal.
    """
    if len(one.nodes) != len(two.nodes) or len(one.edges) != len(two.edges):
        return None
    sides = _Side(one), _Side(two)
    for choice in range(_MOST_CHOICES):
        if not _refine(*sides):
            return None
        counts = Counter(sides[0].classes)
        if len(counts) == len(one.nodes):
            break
        first = next(each for each in sides[0].classes if counts[each] > 1)
        for side in sides:
            side.classes[side.classes.index(first)] = hash(("chosen", choice))
    else:
        return None
    places = {each: node.id for each, node in zip(sides[1].classes, two.nodes, strict=True)}
    found = {node.id: places[each] for each, node in zip(sides[0].classes, one.nodes, strict=True)}
    return found if _is_isomorphism(one, two, found) else None


class _Side:
    """A function, and the class of each of its nodes."""

    def __init__(self, graph: Graph) -> None:
        index = graph.index
        self.entering: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in graph.nodes]
        self.leaving: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in graph.nodes]
        for source, target, position, *_ in graph.edges:
            self.entering[index[target]].append((position, index[source]))
            self.leaving[index[source]].append((position, index[target]))
        results: dict[NodeId, list[int]] = {}
        for place, output in enumerate(graph.outputs):
            results.setdefault(output, []).append(place)
        params = [n.id for n in graph.nodes if n.kind is NodeKind.PARAM and n.region is None]
        positions = {param: place for place, param in enumerate(params)}
        self.classes = [
            hash(
                (
                    node.kind.value,
                    node.structure,
                    _scope(graph, node.region),
                    tuple(results.get(node.id, ())),
                    positions.get(node.id),
                )
            )
            for node in graph.nodes
        ]

    def refined(self, at: int) -> int:
        """Return the class of a node with those of its operands and users."""
        classes = self.classes
        operands = tuple([(position, classes[other]) for position, other in self.entering[at]])
        users = tuple(sorted([(position, classes[other]) for position, other in self.leaving[at]]))
        return hash((classes[at], operands, users))


def _refine(one: _Side, two: _Side) -> bool:
    """Refine the classes until none is divided further; return whether they are still the same."""
    known = 0
    while True:
        counts = Counter(one.classes)
        if counts != Counter(two.classes):
            return False
        if len(counts) in (known, len(one.classes)):
            return True
        known = len(counts)
        for side in (one, two):
            places = [at for at, each in enumerate(side.classes) if counts[each] > 1]
            refined = [side.refined(at) for at in places]
            for at, new in zip(places, refined, strict=True):
                side.classes[at] = new


def _scope(graph: Graph, region: int | None) -> Sequence[object]:
    found: list[object] = []
    while region is not None:
        one = graph.regions[region]
        if one.kind in (RegionKind.BRANCH, RegionKind.FUNCTION):
            found.append(one.name if one.kind is RegionKind.BRANCH else one.kind.value)
        region = one.parent
    return tuple(found)


def _is_isomorphism(one: Graph, two: Graph, found: Mapping[NodeId, NodeId]) -> bool:
    if tuple(map(found.__getitem__, one.outputs)) != two.outputs:
        return False
    edges = {(edge.source, edge.target, edge.position) for edge in two.edges}
    return all(
        (found[edge.source], found[edge.target], edge.position) in edges for edge in one.edges
    )
