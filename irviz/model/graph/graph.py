"""The graph of a function, as plain data: nodes, edges and regions, and parts of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, NewType, TypeAlias, TypeVar, cast

from irviz.errors import NotFoundError
from irviz.units import first_names

if TYPE_CHECKING:
    import networkx as nx


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


NodeId = NewType("NodeId", str)
"""The id of a node: the name of its variable, so it is stable across most passes."""


class UnknownNodeError(NotFoundError, KeyError):
    """A node does not exist or has no value; the message lists those that do."""


OUTPUT = NodeId("return")
"""The target of the edges to the function's result; no node has this id."""

FUNCTION_NAME = "function"
"""The type of a literal that is the name of a function of the module."""

Position = tuple[int, ...]
"""The position of an argument, with one more number for each level of nested tuples."""

CALLEE: Position = ()
"""The position of the edge from a closure to the node that calls it."""


class NodeKind(Enum):
    """The kind of a node; the value is its CSS class in pictures."""

    PARAM = "param"
    CONSTANT = "constant"
    CALL_TIR = "call_tir"
    CALL_DPS_PACKED = "call_dps_packed"
    CALL_PACKED = "call_packed"
    CALL_FUNCTION = "call_function"
    OPERATOR = "operator"
    TUPLE = "tuple"
    TUPLE_GET_ITEM = "tuple_get_item"
    MATCH_CAST = "match_cast"
    IF = "if"
    FUNCTION = "inner_function"
    VALUE = "plain_value"
    OTHER = "other"
    BLOCK = "block"
    ALLOC = "alloc"
    GROUP = "group"


INPUT_KINDS = (NodeKind.PARAM, NodeKind.CONSTANT)
"""The kinds of nodes without a binding and without operands."""
CALL_KINDS = (
    NodeKind.CALL_TIR,
    NodeKind.CALL_DPS_PACKED,
    NodeKind.CALL_PACKED,
    NodeKind.CALL_FUNCTION,
)
"""Calls of functions, which operators are not."""
CALL_AND_OPERATOR_KINDS = (*CALL_KINDS, NodeKind.OPERATOR)

_FEW_CONSTANTS = 16
"""The most constants of a function that are drawn as nodes."""


class Resolution(Enum):
    """The kind of function that the name of a callee refers to when the module runs."""

    PRIM_FUNC = "prim_func"
    FUNCTION = "function"
    PYTHON = "python"
    LIBRARY = "library"
    UNKNOWN = "unknown"


class Literal(NamedTuple):
    """An argument that is not a variable: a number, a shape, a string."""

    position: Position
    text: str


class Node(NamedTuple):
    """A binding, a parameter or a constant of a function, or a group of them.

    Attributes:
        type_text: An object whose text is the label of the type: a large graph creates only the
            labels that are shown.
        callee: The name of the function or operator that is called, "" for other nodes.
        attributes: Further facts, by name.
        region: The index of the innermost region of the graph, None for the function itself.
        operator: The Op of the call: "relax.call_tir", or the callee itself if that is an Op; ""
            for a direct call of a function.
        is_pure: Whether TVM says that the node has no effect.
        structure: A number that is equal for nodes with the same operation, whatever their names.
        literal_types: What the texts of literals do not tell, if anything: the dtype of each number
            and `FUNCTION_NAME` for each name of a function.
        access: What it does with the memory of its operands; None if it reads them and has a new
            value, and for calls of Relax functions, which the callee's graph tells.
        size: The number of nodes that a group stands for.
        layers: The model's layers that it belongs to; see `model.graph.layers`.
        work: Its floating-point operations, None if unknown, or a function that counts them: a
            large graph counts only those that are asked for.
        weights: The parameters that are drawn as lines in it.
        item: The node for the only used element of its value, if that is drawn as part of it.
        group: The title of an expanded layer that has no frame, as this node is all that it holds.
    """

    id: NodeId
    kind: NodeKind
    name: str
    type_text: object
    callee: str = ""
    resolution: Resolution | None = None
    literals: tuple[Literal, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    region: int | None = None
    operator: str = ""
    is_pure: bool = True
    structure: int = 0
    literal_types: tuple[str, ...] = ()
    access: Access | None = None
    size: int = 1
    layers: tuple[Layer, ...] = ()
    work: object = 0.0
    weights: tuple[Node, ...] = ()
    item: Node | None = None
    group: str = ""

    @property
    def type_label(self) -> str:
        """The label of the type of the node's value."""
        return str(self.type_text)

    @property
    def flops(self) -> float | None:
        """Its floating-point operations, None if unknown."""
        return cast("float | None", self.work() if callable(self.work) else self.work)

    @property
    def is_input(self) -> bool:
        """Whether it is a parameter or a constant, which have no binding and no operands."""
        return self.kind in INPUT_KINDS

    @property
    def is_call_or_operator(self) -> bool:
        """Whether it calls a function or an operator."""
        return self.kind in CALL_AND_OPERATOR_KINDS

    @property
    def operation(self) -> tuple[NodeKind, int]:
        """A key that is equal for nodes with the same operation."""
        return self.kind, self.structure


class Edge(NamedTuple):
    """A use of a node's value.

    Attributes:
        position: The index of the argument, with one more number for each level of nested tuples;
            empty for `CALLEE`. An IF has its condition at 0 and the values of its branches at 1
            and 2, a FUNCTION its result at 0.
        uses: The number of uses that an edge of a group stands for.
        is_carried: Whether the value goes from one copy of a repeat to the next.
        is_other: Whether it comes from, or is used by, a copy that is not drawn.
        is_write: Whether the target is a buffer and the source a call that writes to it.
    """

    source: NodeId
    target: NodeId
    position: Position
    uses: int = 1
    is_carried: bool = False
    is_other: bool = False
    is_write: bool = False


class RegionKind(Enum):
    """The kind of a region; the value is its CSS class in pictures."""

    BINDING_BLOCK = "binding_block"
    DATAFLOW_BLOCK = "dataflow"
    BRANCH = "branch"
    FUNCTION = "function"
    REPEAT = "repeat"
    PART = "part"
    FUSED = "fused"
    UNCHANGED = "unchanged"
    LAYER = "layer"
    CALL = "call"
    OUTER_BLOCK = "outer_block"


DIFF_REGIONS = (RegionKind.FUSED, RegionKind.UNCHANGED)
"""The kinds of regions that belong to a diff and not to the function."""


class Region(NamedTuple):
    """A part of a function that contains nodes and regions: a block, a branch, an inner function.

    In the union graph of several stages, a region may also contain nodes that were fused, or a run
    of unchanged nodes.

    Attributes:
        parent: The index of the region around it, None for the function itself.
        owner: The node whose value it computes: the IF of a branch, the FUNCTION of a body.
        id: The id of the container that the region shows, "" if it cannot be collapsed.
    """

    kind: RegionKind
    name: str = ""
    parent: int | None = None
    owner: NodeId | None = None
    id: str = ""


@dataclass(frozen=True)
class Graph:
    """A function as nodes and edges, in the order of its source.

    The nodes of a region come before the node that owns it, so every edge leads forwards, except
    those of recursive calls.
    """

    function: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    regions: tuple[Region, ...]
    outputs: tuple[NodeId, ...]
    attributes: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)

    def __getitem__(self, node_id: str) -> Node:
        """Return the node with this id; raise UnknownNodeError if there is none."""
        try:
            return self.nodes[self.index[node_id]]  # type: ignore[index]
        except KeyError:
            pass
        known = first_names([repr(str(node.id)) for node in self.nodes], 20)
        raise UnknownNodeError(
            f"{node_id!r} is not a node of {self.function!r}; its nodes are {known}"
        )

    def __getstate__(self) -> dict[str, object]:
        """Return the fields alone: pickling a node may count its FLOPs, which caches the edges."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def with_nodes(self, nodes: Sequence[Node]) -> Graph:
        """Return the graph with its nodes replaced by others of the same ids, in the same order."""
        made = replace(self, nodes=tuple(nodes))
        for name in ("index", "entering", "leaving", "_has_recursion"):
            vars(made)[name] = getattr(self, name)  # which need not be made again
        return made

    @cached_property
    def index(self) -> Mapping[NodeId, int]:
        """The index of each node id in `nodes`."""
        return {node.id: index for index, node in enumerate(self.nodes)}

    @cached_property
    def entering(self) -> Mapping[NodeId, Sequence[Edge]]:
        """The incoming edges of each node, in order; nodes without any are absent."""
        return grouped((edge.target, edge) for edge in self.edges)

    @cached_property
    def leaving(self) -> Mapping[NodeId, Sequence[Edge]]:
        """The outgoing edges of each node, in order; nodes without any are absent."""
        return grouped((edge.source, edge) for edge in self.edges)

    @cached_property
    def has_weights(self) -> bool:
        """Whether weights are known, and so drawn in the calls that use them.

        A model that was imported says which layer they are of, or has most as constants; a few
        constants are worth a node each.
        """
        kinds = [node.kind for node in self.nodes]
        most = kinds.count(NodeKind.CONSTANT) > max(_FEW_CONSTANTS, kinds.count(NodeKind.PARAM))
        return most or any(node.layers or node.weights for node in self.nodes)

    @cached_property
    def _has_recursion(self) -> bool:
        index = self.index
        return any(index[edge.source] >= index[edge.target] for edge in self.edges)

    @cached_property
    def _scopes(self) -> Sequence[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        for region in self.regions:
            around = () if region.parent is None else found[region.parent]
            if region.kind in (RegionKind.BRANCH, RegionKind.FUNCTION):
                is_branch = region.kind is RegionKind.BRANCH
                around = (*around, region.name if is_branch else region.kind)
            found.append(around)
        return found

    def scope(self, node: Node) -> tuple[object, ...]:
        """Return the kinds of branches and inner functions around a node, the outermost first."""
        return () if node.region is None else self._scopes[node.region]

    @cached_property
    def _params(self) -> Mapping[int | None, Sequence[Node]]:
        return grouped((one.region, one) for one in self.nodes if one.kind is NodeKind.PARAM)

    def params(self, region: int | None = None) -> Sequence[Node]:
        """Return the parameters of the function, or of the inner function of a region."""
        return self._params.get(region, ())

    def regions_around(self, index: int | None) -> Iterator[int]:
        """Yield the index of a region and of those around it, the innermost first."""
        while index is not None:
            yield index
            index = self.regions[index].parent

    def operands(self, node_id: NodeId) -> Sequence[Edge]:
        """Return the incoming edges from earlier nodes, which leaves out those of recursion."""
        edges = self.entering.get(node_id, ())
        if not self._has_recursion:
            return edges
        at = self.index[node_id]
        return [edge for edge in edges if self.index[edge.source] < at]

    def to_networkx(self) -> nx.MultiDiGraph[NodeId]:
        """Return the graph as a `networkx.MultiDiGraph` with one edge for each use.

        Nodes carry `kind`, `name`, `type_label`, `callee`, `operator`, `resolution`, `is_pure` and
        `region`; an edge's key and `position` are the position of the argument. The graph's own
        attributes are `function` and `outputs`.
        """
        import networkx as nx  # which takes a tenth of a second

        graph: nx.MultiDiGraph[NodeId] = nx.MultiDiGraph(
            function=self.function, outputs=self.outputs
        )
        for node in self.nodes:
            graph.add_node(
                node.id,
                kind=node.kind.value,
                name=node.name,
                type_label=node.type_label,
                callee=node.callee,
                operator=node.operator,
                resolution=node.resolution.value if node.resolution else "",
                is_pure=node.is_pure,
                region=node.region,
            )
        for edge in self.edges:
            graph.add_edge(edge.source, edge.target, key=edge.position, position=edge.position)
        return graph


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the second of each pair by the first, in order."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def lone_calls(graph: Graph) -> dict[int, NodeId]:
    """Return the call that is all that a layer's region holds, by the index of the region.

    Such a layer has no frame: it is drawn as its call.
    """
    held: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for index in graph.regions_around(node.region):
            held.setdefault(index, []).append(node)
    return {
        index: nodes[0].id
        for index, nodes in held.items()
        if len(nodes) == 1
        and nodes[0].region == index
        and graph.regions[index].kind is RegionKind.LAYER
        and nodes[0].is_call_or_operator
        and nodes[0].resolution is not Resolution.FUNCTION  # it can be expanded itself
    }


def with_group_titles(graph: Graph) -> Graph:
    """Return the graph with the titles of layers that are drawn as their calls."""
    titles = {call: graph.regions[index].name for index, call in lone_calls(graph).items()}
    if not titles:
        return graph
    nodes = (node._replace(group=titles.get(node.id, "")) for node in graph.nodes)
    return graph.with_nodes([*nodes])


# --- What a node does with the memory of its arguments -------------------------------------------


Positions: TypeAlias = "tuple[int, ...] | None"
"""Positions of arguments, where fields of a tuple of arguments are arguments; None for all."""


class Access(NamedTuple):
    """What a node reads, writes and frees, and what memory its value is in.

    Attributes:
        reads: The arguments whose contents it reads; it only uses the others as objects.
        writes: The arguments whose contents it writes.
        frees: The arguments that nothing may use afterwards.
        shares: The arguments whose memory its value, or a part of it, may be in.
        fields: Where the value is a tuple, the field that each argument of `shares` is, if known.
        has_effect: Whether it reads and writes anything that is not an argument.
        span: The bytes of its argument that its value is, from the first one up to the last.
    """

    reads: Positions = None
    writes: Positions = ()
    frees: Positions = ()
    shares: Positions = ()
    fields: tuple[int, ...] = ()
    has_effect: bool = False
    span: tuple[float, float] | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether other nodes can tell when it is run."""
        return self.writes != () or self.frees != () or self.has_effect


VIEW = Access(reads=(), shares=(0,))
"""The value is the first argument, or another view of its memory."""
UNKNOWN = Access(writes=None, shares=None, has_effect=True)
"""Anything may happen, as in a call of an impure function that is not in the module."""
PURE_UNKNOWN = Access(shares=None)
"""Nothing is written, and the value may be an argument."""


# --- The parts of a node's type, for comparison --------------------------------------------------


class TypeParts(NamedTuple):
    """A type as text without abbreviations; only tensors have the parts.

    Attributes:
        symbols: The names of the symbolic sizes in it.
    """

    text: str
    shape: str = ""
    dtype: str = ""
    device: str = ""
    symbols: frozenset[str] = frozenset()


# --- inlined ids -------------------------------------------------------------------------------
#
# Ids of nodes of called functions that are inlined: the call's id, a separator, the node's id.


SEPARATOR = "\ue000/"
"""Only in ids: a name cannot contain its first character (`ir/node_ids.py`)."""


def inlined_id(call: str, node_id: str) -> NodeId:
    """Return the id of a node of a called function where it replaces the call, "" for no call."""
    return NodeId(f"{call}{SEPARATOR}{node_id}" if call else node_id)


def inlined_parts(
    graph: Graph, call: str, region: int | None, first: int
) -> tuple[list[Node], list[Region]]:
    """Return the nodes and regions of a called function as those of the caller.

    Args:
        region: The index of the caller's region around them.
        first: The index of the first of the regions in the caller.
    """

    def index(inner: int | None) -> int | None:
        return region if inner is None else first + inner

    nodes = [
        node._replace(
            id=inlined_id(call, node.id),
            region=index(node.region),
            weights=tuple(one._replace(id=inlined_id(call, one.id)) for one in node.weights),
        )
        for node in graph.nodes
    ]
    regions = [
        inner._replace(
            parent=index(inner.parent),
            owner=inlined_id(call, inner.owner) if inner.owner else None,
            id=inlined_id(call, inner.id) if inner.id else "",
        )
        for inner in graph.regions
    ]
    return nodes, regions


def id_in_callee(call: str, node_id: str) -> str | None:
    """Return the id that a node has in the function that a call calls, None if it is not inside."""
    prefix = inlined_id(call, "")
    return node_id[len(prefix) :] if node_id.startswith(prefix) else None


def call_path(node_id: str) -> list[str]:
    """Return the calls that a node is inside of, the outermost first, and the node itself last."""
    parts = node_id.split(SEPARATOR)
    return [SEPARATOR.join(parts[:count]) for count in range(1, len(parts) + 1)]


# --- The contents of a module, as plain data -----------------------------------------------------


class FunctionInfo(NamedTuple):
    """A function of a module; a private one is not visible outside the module."""

    name: str
    kind: str
    is_private: bool
    attributes: tuple[tuple[str, str], ...]


class ModuleContents(NamedTuple):
    """The functions and the attributes of a module."""

    functions: tuple[FunctionInfo, ...]
    attributes: tuple[tuple[str, str], ...]


class LayerPart(NamedTuple):
    """A layer inside of another: its name there, such as `h.3`, and its class, "" if unknown."""

    name: str
    kind: str = ""


Layer = tuple[LayerPart, ...]
"""A layer, from the model's outermost one to itself; () is the model."""


# --- Parts of a graph: the nodes near a node, between two nodes, or found by words ---------------


BEFORE, AFTER = NodeId("more:before"), NodeId("more:after")
"""The groups that stand for the operands and users left out of a subgraph."""


def neighbourhood(graph: Graph, node_id: NodeId, steps: int) -> frozenset[NodeId]:
    """Return the nodes that are at most this many edges away, in either direction."""
    return frozenset(_reached(node_id, (graph.entering, graph.leaving), steps))


def nodes_between(graph: Graph, start: NodeId, end: NodeId) -> frozenset[NodeId]:
    """Return the nodes on all paths between two nodes, in either direction.

    Empty if there is no path.
    """
    for first, last in ((start, end), (end, start)):
        after = _reached(first, (graph.leaving,))
        if last in after:
            return frozenset(after & _reached(last, (graph.entering,)))
    return frozenset()


def subgraph(graph: Graph, kept: Collection[NodeId]) -> Graph:
    """Return the graph of some nodes, with one group for their operands and one for their users."""
    edges: list[Edge] = []
    before: set[NodeId] = set()
    after: set[NodeId] = set()
    incoming: Counter[NodeId] = Counter()
    outgoing: Counter[NodeId] = Counter()
    for edge in graph.edges:
        if edge.target in kept:
            if edge.source in kept:
                edges.append(edge)
            else:
                before.add(edge.source)
                incoming[edge.target] += 1
        elif edge.source in kept:
            after.add(edge.target)
            outgoing[edge.source] += 1
    edges = [
        *(Edge(BEFORE, node, (-1,), uses) for node, uses in incoming.items()),
        *edges,
        *(Edge(node, AFTER, (), uses) for node, uses in outgoing.items()),
    ]
    nodes = [node for node in graph.nodes if node.id in kept]
    if before:
        nodes.insert(0, _group(BEFORE, len(before), "are used by these"))
    if after:
        nodes.append(_group(AFTER, len(after), "use these"))
    return replace(
        graph,
        nodes=tuple(nodes),
        edges=tuple(edges),
        outputs=tuple(output for output in graph.outputs if output in kept),
    )


def _group(node_id: NodeId, count: int, role: str) -> Node:
    return Node(
        node_id, NodeKind.GROUP, f"{count} more", "", attributes=(("they", role),), size=count
    )


def _reached(
    start: NodeId, ways: Sequence[Mapping[NodeId, Sequence[Edge]]], most: float = math.inf
) -> set[NodeId]:
    reached = {start}
    frontier = {start}
    while frontier and most > 0:
        edges = [edge for way in ways for node in frontier for edge in way.get(node, ())]
        frontier = {end for edge in edges for end in (edge.source, edge.target)} - reached
        reached |= frontier
        most -= 1
    return reached
