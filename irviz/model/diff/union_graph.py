"""One graph of several stages of a function, in which an unchanged node occurs once.

Pictures that take their positions from one layout of it show each unchanged node in the same place;
Archambault, Purchase and Pinaud, "Difference Map Readability for Dynamic Graphs" (2010) call such a
graph a difference map, and Diehl and Görg, "Graphs, They Are Changing" (2002) a supergraph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from irviz.gc_pause import gc_paused
from irviz.model.diff.diff_result import NodeDiff
from irviz.model.diff.union_elements import Element, Scope, UnionElements, union_elements
from irviz.model.graph.graph import Edge, Graph, Node, NodeId, Region, RegionKind

_MAX_UNFOLDED = 24
"""In functions with more bindings than this, long runs of unchanged ones are drawn as one node."""
_MIN_RUN = 4


@dataclass(frozen=True, eq=False)
class UnionGraph:
    """The graph of several stages.

    A node that became several, or that several became, is a region around these instead of a node.

    Attributes:
        stages: The graphs of the stages.
        nodes: For each stage, the node of `graph` for each node of the stage.
        frames: For each stage, the index of the region for each of the other nodes.
        edges: For each stage, the edge of `graph` along which each edge of the stage runs.
        outputs: For each stage, the node of `graph` for each of its outputs.
        regions: For each stage, the index of the region of `graph` for each of its regions.
    """

    graph: Graph
    stages: Sequence[Graph]
    nodes: Sequence[Mapping[NodeId, NodeId]]
    frames: Sequence[Mapping[NodeId, int]]
    edges: Sequence[Sequence[Edge]]
    outputs: Sequence[Sequence[NodeId]]
    regions: Sequence[Mapping[int, int]]


@gc_paused()
def union_graph(
    stages: Sequence[Graph], steps: Sequence[Sequence[NodeDiff]], *, folds: bool = True
) -> UnionGraph:
    """Return the graph of several stages of a function, in linear time.

    Args:
        stages: The graphs, at least one.
        steps: What became of each node between a stage and the next one.
        folds: Whether long runs of unchanged nodes of a large function are regions.
    """
    elements = union_elements(stages, steps)
    writer = _Writer(elements, folds=folds)
    writer.write()
    ids, places = writer.ids, {node.id: number for number, node in enumerate(writer.nodes)}
    edges = _Edges(elements, ids)
    drawn = [edges.along(at) for at in range(len(stages))]
    outputs = [
        [ids[elements.of[at][one].last_leaf] for one in stage.outputs]
        for at, stage in enumerate(stages)
    ]
    graph = Graph(
        stages[-1].function,
        tuple(writer.nodes),
        tuple(sorted(edges.found.values(), key=lambda edge: (places[edge.target], edge.position))),
        tuple(writer.regions),
        tuple(dict.fromkeys(one for each in outputs for one in each)),
        attributes=stages[-1].attributes,
    )
    nodes = [{one: ids[two] for one, two in of.items() if two in ids} for of in elements.of]
    frames = [
        {one: writer.region_of[two] for one, two in of.items() if two in writer.region_of}
        for of in elements.of
    ]
    written = {scope: index for index, scope in writer.owners}
    regions = [
        {
            index: written[scope]
            for index, scope in enumerate(each)
            if scope in written and stage.regions[index].kind is not RegionKind.BINDING_BLOCK
        }
        for stage, each in zip(stages, elements.scopes, strict=True)
    ]
    return UnionGraph(graph, stages, nodes, frames, drawn, outputs, regions)


class _Writer:
    """Writes nodes and regions, outermost first.

    Attributes:
        ids: The node of each element that is no frame.
        region_of: The region of each element that is a frame.
        owners: The region of each scope.
    """

    def __init__(self, elements: UnionElements, *, folds: bool) -> None:
        self.elements = elements
        self.nodes: list[Node] = []
        self.regions: list[Region] = []
        self.ids: dict[Element, NodeId] = {}
        self.region_of: dict[Element, int] = {}
        self._taken: set[NodeId] = set()
        self.owners: list[tuple[int, Scope]] = []
        self._tops: dict[Scope | None, list[Element]] = {}
        for one in elements:
            if one.frame is None:
                self._tops.setdefault(one.scope, []).append(one)
        self._inner = _inner_scopes(self._tops)
        self._ends: dict[Scope, int] = {}
        bound = [one for one in elements if not one.inside and not one.is_input]
        self._folds = (
            folds and len(bound) > _MAX_UNFOLDED and not elements.unchanged.issuperset(bound)
        )
        self._near = _near_changes(elements) if self._folds else set()

    def write(self) -> None:
        """Write everything."""
        self._write_scope(None, None)
        for index, scope in self.owners:
            at = max(scope.regions)
            owner = scope.regions[at].owner
            node = self.ids.get(self.elements.of[at][owner]) if owner is not None else None
            self.regions[index] = self.regions[index]._replace(owner=node)

    def _write_scope(self, scope: Scope | None, region: int | None) -> None:
        """Write what is in a scope in the order of the text; an owner follows its regions."""
        items: list[tuple[int, int, Element | Scope]] = [
            *((one.order, 1, one) for one in self._tops.get(scope, ())),
            *((self._end(one), 0, one) for one in self._inner.get(scope, ())),
        ]
        items.sort(key=lambda item: item[:2])
        run: list[Element] = []
        for _, _, item in items:
            if isinstance(item, Element) and self._may_fold(item):
                run.append(item)
                continue
            self._write_run(run, region)
            run = []
            if isinstance(item, Element):
                self._write_element(item, region)
            else:
                last = item.regions[max(item.regions)]
                index = self._add_region(last._replace(parent=region, owner=None))
                self.owners.append((index, item))
                self._write_scope(item, self.owners[-1][0])
        self._write_run(run, region)

    def _may_fold(self, one: Element) -> bool:
        is_plain = one in self.elements.unchanged and one not in self._near
        return self._folds and (is_plain or one.is_input)

    def _write_run(self, run: Sequence[Element], region: int | None) -> None:
        """Write consecutive unchanged elements, as one region if there are many."""
        count, inner = sum(not one.is_input for one in run), region
        if count >= _MIN_RUN:
            inner = self._add_region(Region(RegionKind.UNCHANGED, f"{count} unchanged", region))
        for one in run:
            self._write_element(one, region if one.is_input else inner)

    def _write_element(self, one: Element, region: int | None) -> None:
        if one.inside:
            self.region_of[one] = self._add_region(Region(RegionKind.FUSED, one.title, region))
            for each in sorted(one.inside, key=lambda each: each.order):
                self._write_element(each, self.region_of[one])
            return
        name = one.node.id
        while name in self._taken:
            name = NodeId(f"{name}'")
        self._taken.add(name)
        self.ids[one] = name
        looks = tuple((at, each.kind, each.structure) for at, each in one.at.items())
        structure = hash((looks, one.is_changed))
        self.nodes.append(one.node._replace(id=name, region=region, structure=structure))

    def _add_region(self, region: Region) -> int:
        self.regions.append(region)
        return len(self.regions) - 1

    def _end(self, scope: Scope) -> int:
        """Return the place of the last element in a scope."""
        if scope not in self._ends:
            inner = [self._end(one) for one in self._inner.get(scope, ())]
            own = [one.order for one in self._tops.get(scope, ())]
            self._ends[scope] = max(*inner, *own, -1, -1)
        return self._ends[scope]


def _inner_scopes(tops: Mapping[Scope | None, object]) -> dict[Scope | None, list[Scope]]:
    """Return the scopes that are directly in each scope, of those with an element."""
    used: dict[Scope, None] = {}
    for scope in tops:
        while scope is not None and scope not in used:
            used[scope] = None
            scope = scope.parent
    found: dict[Scope | None, list[Scope]] = {}
    for scope in used:
        found.setdefault(scope.parent, []).append(scope)
    return found


def _near_changes(elements: UnionElements) -> set[Element]:
    """Return the elements that use a value of a changed one, or make one that it uses."""
    near: set[Element] = set()
    for of, graph in zip(elements.of, elements.stages, strict=True):
        for edge in graph.edges:
            source, target = of[edge.source], of[edge.target]
            if source not in elements.unchanged:
                near.add(target)
            if target not in elements.unchanged:
                near.add(source)
    return near


class _Edges:
    """Finds the edges of all stages."""

    def __init__(self, elements: UnionElements, ids: Mapping[Element, NodeId]) -> None:
        self.found: dict[tuple[NodeId, NodeId, tuple[int, ...]], Edge] = {}
        self._elements, self._ids = elements, ids
        self._between: dict[tuple[Element, Element], list[Edge]] = {}
        for at, graph in enumerate(elements.stages):
            for edge in graph.edges:
                source, target = self._ends(at, edge)
                if not source.inside and not target.inside:
                    self._add(source, target, edge)

    def along(self, at: int) -> list[Edge]:
        """Return the edge along which each edge of a stage runs.

        An edge of a frame runs along one of a node inside, if there is one, as what was fused used
        the same value.
        """
        drawn = []
        served: Counter[tuple[Element, Element]] = Counter()
        for edge in self._elements.stages[at].edges:
            source, target = self._ends(at, edge)
            there = self._between.get((source, target))
            if not (source.inside or target.inside):
                drawn.append(self.found[self._ids[source], self._ids[target], edge.position])
            elif there:
                drawn.append(there[min(served[source, target], len(there) - 1)])
                served[source, target] += 1
            else:
                drawn.append(self._add(source.last_leaf, target.last_leaf, edge))
        return drawn

    def _ends(self, at: int, edge: Edge) -> tuple[Element, Element]:
        of = self._elements.of[at]
        return of[edge.source], of[edge.target]

    def _add(self, source: Element, target: Element, edge: Edge) -> Edge:
        key = (self._ids[source], self._ids[target], edge.position)
        if key not in self.found:
            self.found[key] = edge._replace(source=key[0], target=key[1])
            if source.frame or target.frame:
                for ends in product(_around(source), _around(target)):
                    self._between.setdefault(ends, []).append(self.found[key])
        return self.found[key]


def _around(one: Element) -> list[Element]:
    """Return an element and the frames around it."""
    found = [one]
    while found[-1].frame is not None:
        found.append(found[-1].frame)
    return found
