"""A whole function with all called functions inlined, for comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from irviz.model.graph.graph import (
    CALLEE,
    SEPARATOR,
    Edge,
    Graph,
    Node,
    NodeId,
    NodeKind,
    Position,
    Region,
    RegionKind,
    grouped,
    inlined_id,
    inlined_parts,
)
from irviz.model.matching.alignment import MatchedBy
from irviz.model.matching.node_matching import Correspondence, correspondence

MAX_CALL_DEPTH = 8
"""The depth up to which calls are inlined."""


@dataclass(frozen=True)
class InlinedGraph:
    """A function and all functions that it calls as one graph.

    Attributes:
        graph: The graph; nodes of called functions have the ids of `inlined_id`.
        same: The source of each node that only forwards a value: for a call, the callee's result;
            for a parameter, the argument; for an item of a tuple, the element.
    """

    graph: Graph
    same: Mapping[NodeId, NodeId]

    def origin(self, node_id: NodeId) -> NodeId:
        """Return the node that computes the value of a node: itself, unless it forwards one."""
        while node_id in self.same:
            node_id = self.same[node_id]
        return node_id


def inline_calls(function: str, graphs: Mapping[str, Graph]) -> InlinedGraph:
    """Inline every call of a function with a graph, except recursive calls.

    `graphs` are those of functions by name. Raises KeyError if the function has none.
    """
    builder = _InlinedGraphBuilder(graphs)
    builder.add(graphs[function], "", None, {}, (function,))
    graph = replace(
        graphs[function],
        nodes=tuple(builder.nodes),
        edges=tuple(builder.edges),
        regions=tuple(builder.regions),
    )
    return InlinedGraph(graph, builder.same)


def inlined_correspondence(
    inlined: InlinedGraph, reference: InlinedGraph, identical: Mapping[NodeId, NodeId] | None = None
) -> Correspondence:
    """Match the nodes of two functions and of all functions that they call, as `correspondence`.

    So a node inside a fused function is matched with the node that it was before. Nodes that
    forward a value are matched with each other. A call without such a partner is matched with the
    node that computes its value; only then do two nodes share a partner.
    """
    known = dict(identical or {})
    origins = {inlined.origin(one): reference.origin(other) for one, other in known.items()}
    made = {one: other for one, other in known.items() if one not in inlined.same}
    found = correspondence(
        _without_forwarding(inlined), _without_forwarding(reference), {**origins, **made}
    )
    steps = dict(found.steps)
    forwarding = grouped((reference.origin(other), other) for other in reference.same)
    for node in reversed(inlined.graph.nodes):  # a call before its contents
        origin = found.get(inlined.origin(node.id)) if node.id in inlined.same else None
        if origin is None:
            continue
        left = forwarding.get(origin, [])
        partners = _expected_partners(node, known, found, map(reference.graph.__getitem__, left))
        chosen = next((one for one in partners if one in left), None)
        if chosen is not None:
            left.remove(chosen)
            found[node.id] = chosen
            is_known = known.get(node.id) == chosen
            steps[node.id] = MatchedBy.KNOWN if is_known else steps[inlined.origin(node.id)]
        elif node.kind is NodeKind.CALL_FUNCTION:
            found[node.id] = origin
            steps[node.id] = MatchedBy.CONTENTS
    in_order = {node.id: found[node.id] for node in inlined.graph.nodes if node.id in found}
    return Correspondence(in_order, steps, found.joined)


def _expected_partners(
    node: Node,
    known: Mapping[NodeId, NodeId],
    found: Mapping[NodeId, NodeId],
    others: Iterable[Node],
) -> Iterator[NodeId]:
    """Yield the partners expected of a forwarding node: known, or in its call's partner.

    Those of a call are also the `others` that call the same function: variables may be renamed.
    """
    if node.id in known:
        yield known[node.id]
    call, _, own = node.id.rpartition(SEPARATOR)
    if not call:
        yield node.id
    elif NodeId(call) in found:
        yield inlined_id(found[NodeId(call)], own)
    if node.kind is NodeKind.CALL_FUNCTION:
        yield from (one.id for one in others if (one.kind, one.callee) == (node.kind, node.callee))


def _without_forwarding(inlined: InlinedGraph) -> Graph:
    """Return the graph without the nodes that only forward values."""
    graph, same = inlined.graph, inlined.same
    return replace(
        graph,
        nodes=tuple(node for node in graph.nodes if node.id not in same),
        edges=tuple(
            edge._replace(source=inlined.origin(edge.source)) if edge.source in same else edge
            for edge in graph.edges
            if edge.target not in same
        ),
        outputs=tuple(map(inlined.origin, graph.outputs)),
    )


@dataclass
class _InlinedGraphBuilder:
    """Builds an inlined graph; `fields` has the sources of a tuple's elements by position."""

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
        """Add the nodes of a function; those of a called function come before the call."""
        count = 0
        nodes, regions = inlined_parts(graph, call, region, len(self.regions))
        forwarded, opened = _called_inner_functions(graph)
        self.regions += [
            one._replace(kind=RegionKind.PART, owner=None) if at in opened else one
            for at, one in enumerate(regions)
        ]
        for node, placed in zip(graph.nodes, nodes, strict=True):
            entering = graph.entering.get(node.id, ())
            sources = {edge.position: inlined_id(call, edge.source) for edge in entering}
            if node.kind is NodeKind.PARAM and node.region is None:
                self.add_forwarding(placed, arguments.get(count, {}))
                count += 1
            elif node.id in forwarded:
                parts = forwarded[node.id].items()
                given = {at: self.known[inlined_id(call, one)] for at, one in parts}
                self.add_forwarding(placed, given)
            elif self.is_inlined(node, around):
                self.inline(placed, sources, around)
            else:
                self.nodes.append(placed)
                self.edges += [Edge(one, placed.id, at) for at, one in sources.items()]
                self.take_item(placed, sources)
            self.known[placed.id] = placed

    def is_inlined(self, node: Node, around: tuple[str, ...]) -> bool:
        is_call = node.kind is NodeKind.CALL_FUNCTION and node.callee in self.graphs
        return is_call and node.callee not in around and len(around) <= MAX_CALL_DEPTH

    def inline(
        self, call: Node, sources: Mapping[Position, NodeId], around: tuple[str, ...]
    ) -> None:
        inner = self.graphs[call.callee]
        arguments: dict[int, dict[Position, Node]] = {}
        for position, source in sources.items():
            if position and source in self.known:
                arguments.setdefault(position[0], {})[position[1:]] = self.known[source]
        self.add(inner, call.id, call.region, arguments, (*around, call.callee))
        given = [self.known[inlined_id(call.id, output)] for output in inner.outputs]
        is_one = len(given) == 1
        self.add_forwarding(call, {() if is_one else (at,): one for at, one in enumerate(given)})

    def add_forwarding(self, node: Node, parts: dict[Position, Node]) -> None:
        """Add a node that forwards the value of another node, or a tuple of others."""
        self.nodes.append(node)
        self.edges += [Edge(one.id, node.id, position) for position, one in parts.items()]
        if () in parts:
            self.same[node.id] = parts[()].id
            if parts[()].id in self.fields:
                self.fields[node.id] = self.fields[parts[()].id]
        elif parts:
            self.fields[node.id] = parts

    def take_item(self, node: Node, sources: Mapping[Position, NodeId]) -> None:
        """Record the source of an item of a tuple whose elements are known."""
        if node.kind is NodeKind.TUPLE_GET_ITEM and len(sources) == 1:
            (source,) = sources.values()
            index = int(dict(node.attributes).get("index", -1))
            part = self.fields.get(source, {}).get((index,))
            # equal types show that no nested tuple has shifted the positions
            if part is not None and part.type_label == node.type_label:
                self.same[node.id] = part.id


def _called_inner_functions(
    graph: Graph,
) -> tuple[dict[NodeId, dict[Position, NodeId]], frozenset[int]]:
    """Return the forwarding nodes at the only call of inner functions, and their regions.

    Functions for a library keep their computation in inner functions. The parameters forward the
    arguments, which must come before the function, and the call forwards the result.
    """
    forwarded: dict[NodeId, dict[Position, NodeId]] = {}
    opened: set[int] = set()
    for index, region in enumerate(graph.regions):
        if region.kind is not RegionKind.FUNCTION or region.owner is None:
            continue
        uses = graph.leaving.get(region.owner, ())
        if len(uses) != 1 or uses[0].position != CALLEE or region.owner in graph.outputs:
            continue
        call = uses[0].target
        params = [node.id for node in graph.params(index)]
        sources = {edge.position: edge.source for edge in graph.entering[call]}
        found = [sources.get((at,)) for at in range(len(params))]
        is_known = len(sources) == len(params) + 1 and all(
            one is not None and graph.index[one] < graph.index[param]
            for one, param in zip(found, params, strict=True)
        )
        if is_known:
            opened.add(index)
            results = graph.entering.get(region.owner, ())
            forwarded[call] = {edge.position[1:]: edge.source for edge in results}
            for param, one in zip(params, found, strict=True):
                assert one is not None, "all of them are known"
                forwarded[param] = {(): one}
    return forwarded, frozenset(opened)
