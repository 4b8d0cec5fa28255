"""A function with all that it calls in place of the calls, and no picture of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from irviz.model.correspondence import correspondence
from irviz.model.graph import Edge, Graph, Node, NodeId, NodeKind, Region
from irviz.model.splice import within

MOST_CALLED = 8
"""How deep calls of functions are followed."""

Position = tuple[int, ...]


@dataclass(frozen=True)
class Unfolded:
    """A function and all that it calls as one graph; ids are those of `model/splice.py`.

    `same` leads from each node that only hands a value on to the node that has it: a call to what
    the called function returns, a parameter in it to the argument, an item of a tuple of these to
    what was put there.
    """

    graph: Graph
    same: Mapping[NodeId, NodeId]

    def origin(self, node_id: NodeId) -> NodeId:
        """Return the node that made a node's value: itself, if it does not only hand it on."""
        while node_id in self.same:
            node_id = self.same[node_id]
        return node_id


def unfolded(function: str, graphs: Mapping[str, Graph]) -> Unfolded:
    """Put every called function whose graph is given in place of its calls.

    A function that calls itself is not followed there. Raises KeyError for no such graph.
    """
    making = _Making(graphs)
    outer = graphs[function]
    making.add(outer, "", None, {}, (function,))
    graph = replace(
        outer, nodes=tuple(making.nodes), edges=tuple(making.edges), regions=tuple(making.regions)
    )
    return Unfolded(graph, making.same)


def unfolded_correspondence(
    unfolded: Unfolded, reference: Unfolded, identical: Mapping[NodeId, NodeId] | None = None
) -> Mapping[NodeId, NodeId]:
    """Match what two functions and all that they call do, wherever it stands.

    So a node within a fused function has the node that it was before. What only hands a value on
    is matched with what does so there; a call without such a one has the very node whose value it
    hands on: the one case in which two nodes have the same partner.
    """
    known = dict(identical or {})
    origins = {unfolded.origin(one): reference.origin(other) for one, other in known.items()}
    made = {one: other for one, other in known.items() if one not in unfolded.same}
    found = dict(correspondence(_made(unfolded), _made(reference), {**origins, **made}))
    handing: dict[NodeId, list[NodeId]] = {}
    for other in reference.same:
        handing.setdefault(reference.origin(other), []).append(other)
    taken: set[NodeId] = set()
    for node in reversed(unfolded.graph.nodes):  # a call comes before what is in it
        if node.id not in unfolded.same:
            continue
        origin = found.get(unfolded.origin(node.id))
        if origin is None:
            continue
        left = [one for one in handing.get(origin, ()) if one not in taken]
        wanted = [*_places(node, known, found), *_calls_alike(node, left, reference.graph)]
        chosen = next((one for one in wanted if one in left), None)
        if chosen is not None:
            taken.add(chosen)
            found[node.id] = chosen
        elif node.kind is NodeKind.CALL_FUNCTION:
            found[node.id] = origin
    return {node.id: found[node.id] for node in unfolded.graph.nodes if node.id in found}


def _places(
    node: Node, known: Mapping[NodeId, NodeId], found: Mapping[NodeId, NodeId]
) -> Iterator[NodeId]:
    """Yield where the reference would hand the value on: as is known, in the call's partner."""
    if node.id in known:
        yield known[node.id]
    call, _, own = node.id.rpartition(within("", ""))
    if not call:
        yield node.id
    elif NodeId(call) in found:
        yield within(found[NodeId(call)], own)


def _calls_alike(node: Node, others: Sequence[NodeId], reference: Graph) -> list[NodeId]:
    """Return the calls that call what a call does: its name may be another by now."""
    if node.kind is not NodeKind.CALL_FUNCTION:
        return []
    nodes = (reference.nodes[reference.index[one]] for one in others)
    return [one.id for one in nodes if one.kind is node.kind and one.callee == node.callee]


def _made(unfolded: Unfolded) -> Graph:
    """Return the graph without what only hands values on."""
    graph, same = unfolded.graph, unfolded.same
    return replace(
        graph,
        nodes=tuple(node for node in graph.nodes if node.id not in same),
        edges=tuple(
            edge._replace(source=unfolded.origin(edge.source)) if edge.source in same else edge
            for edge in graph.edges
            if edge.target not in same
        ),
        outputs=tuple(map(unfolded.origin, graph.outputs)),
    )


@dataclass
class _Making:
    """The graph as far as it is made; `fields` has where the parts of a tuple come from."""

    graphs: Mapping[str, Graph]
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    same: dict[NodeId, NodeId] = field(default_factory=dict)
    fields: dict[NodeId, dict[Position, Node]] = field(default_factory=dict)
    known: dict[NodeId, Node] = field(default_factory=dict)

    def add(
        self,
        graph: Graph,
        call: str,
        region: int | None,
        arguments: Mapping[int, dict[Position, Node]],
        around: tuple[str, ...],
    ) -> None:
        """Add a function's nodes: those of a called one stand where the call stands."""
        first, count = len(self.regions), 0
        for one in graph.regions:
            parent = region if one.parent is None else first + one.parent
            owner = None if one.owner is None else _placed(call, one.owner)
            self.regions.append(one._replace(parent=parent, owner=owner))
        for node in graph.nodes:
            at = region if node.region is None else first + node.region
            placed = node._replace(id=_placed(call, node.id), region=at)
            entering = graph.entering.get(node.id, ())
            sources = {edge.position: _placed(call, edge.source) for edge in entering}
            if node.kind is NodeKind.PARAM and node.region is None:
                self.handed_on(placed, arguments.get(count, {}))
                count += 1
            elif self.is_followed(node, around):
                self.follow(placed, sources, around)
            else:
                self.nodes.append(placed)
                self.edges += [Edge(one, placed.id, at) for at, one in sources.items()]
                self.take_item(placed, sources)
            self.known[placed.id] = placed

    def is_followed(self, node: Node, around: tuple[str, ...]) -> bool:
        is_call = node.kind is NodeKind.CALL_FUNCTION and node.callee in self.graphs
        return is_call and node.callee not in around and len(around) <= MOST_CALLED

    def follow(
        self, call: Node, sources: Mapping[Position, NodeId], around: tuple[str, ...]
    ) -> None:
        inner = self.graphs[call.callee]
        arguments: dict[int, dict[Position, Node]] = {}
        for position, source in sources.items():
            if position and source in self.known:
                arguments.setdefault(position[0], {})[position[1:]] = self.known[source]
        self.add(inner, call.id, call.region, arguments, (*around, call.callee))
        given = [self.known[_placed(call.id, output)] for output in inner.outputs]
        is_one = len(given) == 1
        self.handed_on(call, {() if is_one else (at,): one for at, one in enumerate(given)})

    def handed_on(self, node: Node, parts: dict[Position, Node]) -> None:
        """Add a node that has the value of another, or a tuple of others."""
        self.nodes.append(node)
        self.edges += [Edge(one.id, node.id, position) for position, one in parts.items()]
        if () in parts:
            self.same[node.id] = parts[()].id
            if parts[()].id in self.fields:
                self.fields[node.id] = self.fields[parts[()].id]
        elif parts:
            self.fields[node.id] = parts

    def take_item(self, node: Node, sources: Mapping[Position, NodeId]) -> None:
        """See through an item of a tuple whose parts are known."""
        if node.kind is NodeKind.TUPLE_GET_ITEM and len(sources) == 1:
            (source,) = sources.values()
            index = int(dict(node.attributes).get("index", -1))
            part = self.fields.get(source, {}).get((index,))
            # the types tell that no tuple in the tuple has moved the places
            if part is not None and part.type_label == node.type_label:
                self.same[node.id] = part.id


def _placed(call: str, node_id: str) -> NodeId:
    return within(call, node_id) if call else NodeId(node_id)
