"""The drawn graph of each stage, at the positions of the union graph of all stages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from irviz.limits import MOST_NODES
from irviz.model.diff.union_graph import UnionGraph
from irviz.model.folding.expansion import Expansion, container_paths
from irviz.model.folding.group_tree import (
    STORAGE_ROTATES,
    Container,
    count_elements,
    repeat_remarks,
    steps_title,
    with_parameters,
)
from irviz.model.folding.visible_graph import VisibleGraph, visible_graph, with_contents
from irviz.model.graph.graph import (
    INPUT_KINDS,
    Edge,
    Graph,
    Node,
    NodeId,
    NodeKind,
    Region,
    RegionKind,
    grouped,
    with_group_titles,
)
from irviz.model.graph.memory_accesses import STORAGES, plans_memory


@dataclass(frozen=True, eq=False)
class SideGraph:
    """The drawn graph of one stage.

    Attributes:
        graph: Its nodes have the ids that they have in the stage; groups of nodes have the ids that
            they have in the graph of all stages, and so do regions, by their index.
        places: The node of the graph of all stages at whose place each node is drawn.
        frames: The index of the region that each of the other nodes fills.
        routes: For each edge, the index of the edge of the graph of all stages that it runs along,
            None for an edge that is not there.
        outputs: For each output, the node of the graph of all stages.
        shown: The drawn node for each node of the stage.
    """

    graph: Graph
    places: Mapping[NodeId, NodeId]
    frames: Mapping[NodeId, int]
    routes: Sequence[int | None]
    outputs: Sequence[NodeId]
    shown: Mapping[NodeId, NodeId]


@dataclass(frozen=True, eq=False)
class SideGraphs:
    """What is drawn of several stages; `union` is the graph with the places of all of them."""

    union: Graph
    sides: Sequence[SideGraph]


def side_graphs(
    union: UnionGraph, expansion: Expansion | None = None, changed: Collection[NodeId] = ()
) -> SideGraphs:
    """Return the drawn graph of each stage: at most `MOST_NODES` nodes of all stages together.

    Runs of unchanged nodes are one node until they are opened. If all `changed` nodes, which are of
    the union graph, are in collapsed groups, those around the first one are expanded.
    """
    expansion = expansion or Expansion()
    containers = {one.id: one for _, (*_, one) in container_paths(union.tree.root)}
    runs = frozenset(
        one.id
        for one in containers.values()
        if one.region is not None and union.graph.regions[one.region].kind is RegionKind.UNCHANGED
    )
    separate = _changed_parts(union)
    while True:
        closed = () if expansion.every else runs.difference(expansion.opened)
        drawn = replace(expansion, closed=expansion.closed.union(closed))
        visible = visible_graph(union.tree, drawn, MOST_NODES, separate=separate)
        hidden = _group_of_first_change(visible, containers, expansion, changed)
        if hidden is None:
            break
        expansion = replace(expansion, opened=(hidden, *expansion.opened))
    regions = tuple(
        region._replace(name=f"{region.name}, all alike")
        if region.kind is RegionKind.REPEAT
        else region
        for region in visible.graph.regions
    )
    visible = replace(visible, graph=replace(visible.graph, regions=regions))
    sides = [_Side(union, visible, containers, at).read() for at in range(len(union.stages))]
    return SideGraphs(visible.graph, sides)


def _group_of_first_change(
    visible: VisibleGraph,
    containers: Mapping[str, Container],
    expansion: Expansion,
    changed: Collection[NodeId],
) -> str | None:
    """Return the collapsed group to expand, None if a change is drawn, or all as was asked for.

    A call that became several is drawn also where these are a group.
    """
    groups: set[str] = set()
    for one in changed:
        place = visible.where(one)
        container = containers.get(place or "")
        if place == one or (container and container.kind is RegionKind.FUSED):
            return None
        groups.add(place or "")
    groups -= {*expansion.opened, *expansion.closed}
    drawn = (one for one in visible.graph.nodes if one.kind is NodeKind.GROUP and one.id in groups)
    return None if expansion.every is not None else next((one.id for one in drawn), None)


_PARTS = (*INPUT_KINDS, NodeKind.TUPLE_GET_ITEM)
"""Nodes that may be drawn as part of a call."""


def _changed_parts(union: UnionGraph) -> frozenset[str]:
    """Return the inputs and elements of results that not all stages have, of one kind and type."""
    looks = grouped(
        (places[node.id], (node.kind, node.type_label))
        for stage, places in zip(union.stages, union.nodes, strict=True)
        for node in stage.nodes
        if node.kind in _PARTS and node.id in places
    )
    count = len(union.stages)
    return frozenset(
        leaf for leaf, each in looks.items() if len(set(each)) > 1 or len(each) < count
    )


def unfolded_sides(union: UnionGraph) -> SideGraphs:
    """Return each stage in full, with only its own regions, as if there were no other stages."""
    numbers = {
        (edge.source, edge.target, edge.position): number
        for number, edge in enumerate(union.graph.edges)
    }
    return SideGraphs(
        union.graph, [_unfolded_side(union, at, numbers) for at in range(len(union.stages))]
    )


def _unfolded_side(
    union: UnionGraph, at: int, numbers: Mapping[tuple[NodeId, NodeId, tuple[int, ...]], int]
) -> SideGraph:
    stage, places, frames = union.stages[at], union.nodes[at], union.frames[at]
    around: dict[NodeId, int | None] = {
        **{one: union.graph[place].region for one, place in places.items()},
        **{one: union.graph.regions[region].parent for one, region in frames.items()},
    }
    used = {one for index in around.values() for one in union.graph.regions_around(index)}
    regions = [one._replace(kind=RegionKind.BINDING_BLOCK, id="") for one in union.graph.regions]
    for own, index in union.regions[at].items():
        if index in used:
            regions[index] = stage.regions[own]._replace(parent=regions[index].parent)
    return SideGraph(
        replace(
            stage,
            nodes=tuple(node._replace(region=around[node.id]) for node in stage.nodes),
            regions=tuple(regions),
        ),
        places,
        frames,
        [numbers[one.source, one.target, one.position] for one in union.edges[at]],
        union.outputs[at],
        {node.id: node.id for node in stage.nodes},
    )


class _Side:
    """Collects the drawn graph of one stage."""

    def __init__(
        self, union: UnionGraph, visible: VisibleGraph, containers: Mapping[str, Container], at: int
    ) -> None:
        self.union, self.visible, self.containers, self.at = union, visible, containers, at
        self.stage = union.stages[at]
        self.drawn = visible.graph
        self.own = {leaf: one for one, leaf in union.nodes[at].items()}
        self.opened = {
            containers[region.id].region: index
            for index, region in enumerate(self.drawn.regions)
            if region.id and containers[region.id].region is not None
        }
        self.inside: dict[int, NodeId] = {}
        for node in union.graph.nodes:
            if node.kind is not NodeKind.PARAM:
                for region in union.graph.regions_around(node.region):
                    self.inside.setdefault(region, node.id)
        self.framed: dict[int | None, NodeId] = {
            region: one for one, region in union.frames[at].items()
        }
        self.filled = {
            index: self.framed[region]
            for region, index in self.opened.items()
            if region in self.framed
        }

    def read(self) -> SideGraph:
        places_of = ((node.id, self._shown(node.id)) for node in self.stage.nodes)
        shown = {one: place for one, place in places_of if place is not None}
        held = grouped((shown[one.id], one) for one in self.stage.nodes if one.id in shown)
        self._share(held, shown)
        nodes: list[Node] = []
        places: dict[NodeId, NodeId] = {}
        frames = {one: region for region, one in self.filled.items() if one in held}
        for node in self.drawn.nodes:
            one = self.own.get(node.id)
            if node.kind is NodeKind.GROUP and node.id not in self.union.graph.index:
                if node.id in held:
                    nodes.append(self._group(node, held[node.id]))
                    places[node.id] = node.id
                else:
                    container = self.containers.get(node.id)
                    one = self.framed.get(container.region) if container else None
            if one is not None and one in held:
                nodes.append(self._own(one, held, node.region))
                places[one] = node.id
        for one, region in frames.items():
            nodes.append(self._own(one, held, self.drawn.regions[region].parent))
        order = self._order()
        nodes.sort(key=lambda node: order[places.get(node.id, node.id)])
        edges, routes = self._edges(shown, order)
        outputs: dict[NodeId, NodeId] = {}
        for one, leaf in zip(self.stage.outputs, self.union.outputs[self.at], strict=True):
            place = self.visible.where(leaf)
            if place is not None:
                outputs.setdefault(shown[one], place)
        graph = replace(
            self.stage,
            nodes=tuple(nodes),
            edges=tuple(edges),
            regions=self._regions(nodes, frames, held),
            outputs=tuple(outputs),
        )
        graph = with_group_titles(graph)
        return SideGraph(graph, places, frames, routes, list(outputs.values()), shown)

    def _share(self, held: Mapping[NodeId, list[Node]], shown: Mapping[NodeId, NodeId]) -> None:
        """Add the weights that many calls share to each of these calls."""
        for weight in (self.own[leaf] for leaf in self.visible.shared if leaf in self.own):
            for use in self.stage.leaving.get(weight, ()):
                user = shown[use.target]
                if user in self.stage.index and self.stage[weight] not in held[user]:
                    held[user].append(self.stage[weight])

    def _own(
        self, node_id: NodeId, held: Mapping[NodeId, Sequence[Node]], region: int | None
    ) -> Node:
        """Return a node of this stage in a region, with what is drawn as part of it."""
        parts = [one for one in held[node_id] if one.id != node_id]
        weights = [one for one in parts if one.is_input]
        weights.sort(key=lambda one: self.stage.index[one.id])
        items = (
            one
            for one in parts
            if one.kind is NodeKind.TUPLE_GET_ITEM
            and (one.id in self.stage.leaving or one.id in self.stage.outputs)
        )
        return self.stage[node_id]._replace(
            region=region, weights=tuple(weights), item=next(items, None)
        )

    def _group(self, group: Node, nodes: Sequence[Node]) -> Node:
        """Return the group as it is in this stage, which has these nodes of it."""
        inside = [one for one in nodes if not one.is_input]
        container = self.containers.get(group.id)
        if container and inside:
            layer = dict(group.attributes).get("layer", "")
            group = with_contents(group, container, inside, self._results(inside), layer)
            inputs = (one for one in nodes if one.is_input)
            weights = sum(count_elements(one) for one in inputs if one.layers)
            title = self._title(container, inside)
            group = with_parameters(group._replace(name=title), weights)
        return group._replace(size=len(nodes))

    def _results(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return those of some nodes that are used by others, not only by a memory plan."""
        ids = {one.id for one in nodes}
        used = {
            edge.source
            for one in nodes
            for edge in self.stage.leaving.get(one.id, ())
            if edge.target not in ids and not plans_memory(one, self.stage[edge.target])
        }
        return [one for one in nodes if one.id in used or one.id in self.stage.outputs]

    def _title(self, container: Container, nodes: Sequence[Node]) -> str:
        """Return the title of a container that has these nodes of this stage."""
        bound = self.visible.tree.bound
        of_steps = steps_title(bound.nodes[container.start : container.stop])
        if container.kind is RegionKind.FUSED or container.name == of_steps:
            return steps_title(nodes)
        if not container.remarks:
            return container.name
        leaves = self.union.nodes[self.at]
        copies = grouped(
            ((bound.at[leaves[one.id]] - container.start) // container.held, one.callee)
            for one in nodes
            if one.id in leaves
        )
        remarks = repeat_remarks(
            functions_differ=len(set(map(tuple, copies.values()))) > 1,
            storage_rotates=STORAGE_ROTATES in container.remarks
            and any(one.callee in STORAGES for one in self.stage.nodes),
        )
        return replace(container, remarks=remarks).title

    def _order(self) -> dict[NodeId, int]:
        """Return the order of the nodes; a node that fills a frame comes last in it."""
        order = [node.id for node in self.drawn.nodes]
        last: dict[int, int] = {}
        for number, node in enumerate(self.drawn.nodes):
            last.update(dict.fromkeys(self.drawn.regions_around(node.region), number))
        ends = sorted(self.filled, key=lambda region: last.get(region, -1), reverse=True)
        for region in ends:
            order.insert(last.get(region, -1) + 1, self.filled[region])
        return {one: number for number, one in enumerate(order)}

    def _shown(self, node_id: NodeId) -> NodeId | None:
        """Return the drawn node for a node of the stage, None if there is none."""
        leaf = self.union.nodes[self.at].get(node_id)
        frame = self.union.frames[self.at].get(node_id, -1)  # -1: the node is no frame
        where = self.visible.where(leaf or self.inside[frame])
        if where is None:
            return None
        depth = len(_frames(self.union.graph, None if leaf else frame))
        if where not in self.union.graph.index:  # a group
            container = self.containers.get(where)
            region = container.region if container else None
            is_same = leaf or len(_frames(self.union.graph, region)) == depth
            return self.framed.get(region, where) if is_same else where
        around = _frames(self.drawn, self.drawn[where].region)
        if not leaf:
            return self.filled.get(around[-depth], node_id)
        if where in self.own:
            return self.own[where]
        # another name of the result, drawn as what it names: here that fills a frame
        return next((self.filled[one] for one in around if one in self.filled), node_id)

    def _edges(
        self, shown: Mapping[NodeId, NodeId], order: Mapping[NodeId, int]
    ) -> tuple[list[Edge], list[int | None]]:
        """Return the drawn edges, and the edges of the graph of all stages that they run along."""
        numbers = grouped(
            ((edge.source, edge.target, edge.position), number)
            for number, edge in enumerate(self.drawn.edges)
        )
        where: dict[NodeId, NodeId | None] = {}
        found: dict[tuple[NodeId, NodeId, tuple[int, ...], int | None], Edge] = {}
        for edge, along in zip(self.stage.edges, self.union.edges[self.at], strict=True):
            source, target = shown[edge.source], shown[edge.target]
            for one in (along.source, along.target):
                if one not in where:
                    where[one] = self.visible.where(one)
            start, end = where[along.source], where[along.target]
            if start is None or end is None or along.source in self.visible.shared:
                continue
            is_group = end not in self.union.graph.index
            at = numbers.get((start, end, () if is_group else along.position), [])
            ends = self.stage[edge.source], self.stage[edge.target]
            if not at and (source == target or (is_group and plans_memory(*ends))):
                continue
            position = () if is_group else edge.position
            for along_drawn in at:
                looks = self.drawn.edges[along_drawn]
                drawn = looks._replace(source=source, target=target, position=position)
                found.setdefault((source, target, position, along_drawn), drawn)
            if not at:
                drawn = edge._replace(source=source, target=target, position=position)
                found.setdefault((source, target, position, None), drawn)
        pairs = sorted(
            ((key[3], edge) for key, edge in found.items()),
            key=lambda pair: (order.get(pair[1].target, 0), pair[1].position),
        )
        return [edge for _, edge in pairs], [number for number, _ in pairs]

    def _regions(
        self,
        nodes: Sequence[Node],
        frames: Mapping[NodeId, int],
        held: Mapping[NodeId, Sequence[Node]],
    ) -> tuple[Region, ...]:
        """Return the regions; those that this stage does not show are no clusters."""
        held_by = grouped(
            (index, own)
            for node in nodes
            for index in self.drawn.regions_around(node.region)
            for own in held[node.id]
        )
        found = list(self.drawn.regions)
        for index, region in enumerate(found):
            inside = held_by.get(index, [])
            container = self.containers.get(region.id)
            if container and container.remarks:
                title = self._title(container, [one for one in inside if not one.is_input])
                region = region._replace(name=region.name.replace(container.title, title))
            if (
                not inside
                or index in frames.values()
                or (region.kind is RegionKind.DATAFLOW_BLOCK and not self._is_dataflow(inside))
            ):
                region = region._replace(kind=RegionKind.BINDING_BLOCK)
            found[index] = region
        return tuple(found)

    def _is_dataflow(self, nodes: Sequence[Node]) -> bool:
        """Return whether some nodes of this stage are in a dataflow block."""
        return any(
            self.stage.regions[index].kind is RegionKind.DATAFLOW_BLOCK
            for one in nodes
            for index in self.stage.regions_around(one.region)
        )


def _frames(graph: Graph, region: int | None) -> list[int]:
    """Return the frames among a region and those around it."""
    around = graph.regions_around(region)
    return [one for one in around if graph.regions[one].kind is RegionKind.FUSED]
