"""A function as it writes into memory: buffers, and calls that read and write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import cloudpickle
from tvm import ir, relax

from irviz.ir.callee import registered
from irviz.ir.extent import nbytes
from irviz.ir.extract import extract
from irviz.ir.identity import definitions, distinct, identify, relax_function
from irviz.ir.lowering import PLANS, WRITES, Lowered, Traces, lowered
from irviz.ir.sizes import evaluated
from irviz.ir.type_label import dim_label
from irviz.model.graph import CALLEE, Edge, Graph, Node, NodeId, NodeKind, Resolution
from irviz.model.memory import bytes_text
from irviz.worker.pool import TRIES, WorkerError

SECONDS = 120.0
"""How long the passes of the build may take."""

_CALLS = (NodeKind.CALL_FUNCTION, NodeKind.CALL_PACKED)
_KILLS = ("relax.memory.kill_tensor", "relax.memory.kill_storage", "relax.vm.kill_object")
_STORAGES = ("relax.memory.alloc_storage", "relax.vm.alloc_storage")
_PLANNED = ("relax.memory.alloc_tensor", "relax.vm.alloc_tensor")
_BUFFERS = ("relax.builtin.alloc_tensor", *_PLANNED)


class LoweringError(RuntimeError):
    """A module that TVM cannot lower; the message says what TVM said."""


def destination_passing(
    mod: ir.IRModule, function: str = "main", *, planned: bool = False
) -> Graph:
    """Return a function as the build makes it: calls that write into buffers made before them.

    A buffer is a node of kind ALLOC with its size in bytes, behind the call that writes it first;
    an edge with `is_write` leads to it from each call that writes it, and others from it to those
    that read it. A call has the id of the binding whose value it makes, where that is known. With
    `planned` buffers say which storage they stand in, once memory is planned. Raises
    NoFunctionError for no such function, LoweringError when TVM cannot lower the module.
    """
    relax_function(mod, function)
    try:
        sent = cloudpickle.dumps((mod, function, PLANS if planned else WRITES))
        found: Graph | str = TRIES.call(_read, sent, seconds=SECONDS)
    except WorkerError as failure:
        found = str(failure)
    except Exception as failure:  # what cannot be sent is refused by errors of any class
        found = f"it cannot be sent to the worker: {type(failure).__name__}: {failure}"
    if isinstance(found, str):
        raise LoweringError(f"{function!r} could not be lowered: {found}")
    return replace(found, nodes=tuple(map(_resolved, found.nodes)))


def _resolved(node: Node) -> Node:
    """Look a library function up here: the worker knows none that was registered in Python."""
    if node.resolution not in (Resolution.LIBRARY, Resolution.UNKNOWN):
        return node
    return node._replace(resolution=registered(node.callee))


def _read(sent: bytes) -> Graph | str:
    """Lower the module and read the function, or say why not; the worker calls this."""
    mod, function, until = cloudpickle.loads(sent)
    try:
        found = lowered(mod, until)
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        lines = [line for line in str(failure).splitlines() if line.strip()]
        return f"{type(failure).__name__}: {lines[-1].strip() if lines else ''}"
    return written(found, function)


def written(found: Lowered, function: str) -> Graph:
    """Return a lowered function as a graph of its buffers and calls."""
    source = relax_function(found.module, function)
    graph = extract(found.module, function)
    return _Rewriting(graph, source, found.traces.get(function, Traces())).graph()


@dataclass
class _Buffer:
    """A buffer's node, and whether it is drawn yet: it is, behind the first call that writes it."""

    node: Node
    is_drawn: bool = False


@dataclass
class _Rewriting:
    """Makes the graph of a lowered function one of its buffers."""

    source: Graph
    function: relax.Function
    traces: Traces
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._vars = {node_id: var for var, node_id in identify(self.function).items()}
        defined = definitions(self.function.params, self.function.body)
        self._values = {var: b.value for var, b in defined if b is not None}
        self._seen: dict[str, int] = {str(one): 1 for one in self.traces.origins.values()}
        self._given: set[NodeId] = set()
        self._named: Counter[NodeId] = Counter()
        self._sharing = Counter(
            self.traces.origins.get(var) for var, value in self._values.items() if _is_buffer(value)
        )
        self._buffers: dict[NodeId, _Buffer] = {}
        self._storages: dict[NodeId, str] = {}
        self._same: dict[NodeId, NodeId] = {}
        self._fields: dict[NodeId, tuple[NodeId, ...]] = {}
        self._writes: set[tuple[NodeId, NodeId]] = set()

    def graph(self) -> Graph:
        """Read each node once, in the order of the text."""
        last: Node | None = None
        for node in self.source.nodes:
            entering = self.source.entering.get(node.id, ())
            if node.operator in _STORAGES:
                self._storages[node.id] = f"storage {len(self._storages) + 1}"
            elif node.operator in _BUFFERS:
                self._allocate(node, entering)
            elif node.operator in _KILLS:
                continue
            elif not self._is_other_name(node, entering, last):
                self._keep(node, entering)
            last = node
        self._draw(self._buffers)
        outputs = [self._where(one) for one in self.source.outputs]
        return Graph(
            self.source.function,
            tuple(self.nodes),
            tuple(self.edges),
            self.source.regions,
            tuple(outputs),
            attributes=self.source.attributes,
        )

    def _where(self, node_id: NodeId) -> NodeId:
        """Return the node that stands for a node of the lowered function."""
        return self._same.get(node_id, node_id)

    def _allocate(self, node: Node, entering: Sequence[Edge]) -> None:
        """Note a buffer; in a plan its storage is its first argument."""
        var = self._vars.get(node.id)
        value = None if var is None else self._values.get(var)
        origin = None if var is None else self.traces.origins.get(var)
        size = () if not isinstance(value, ir.Call) else (("bytes", _size(value)),)
        stored = [self._storages[e.source] for e in entering if e.source in self._storages]
        place = [("storage", stored[0])] if stored else []
        new_id = self._same[node.id] = distinct(node.name, self._seen)
        made = node._replace(
            id=new_id,
            kind=NodeKind.ALLOC,
            name=self._buffer_name(origin) if origin else node.name,
            literals=(),
            attributes=(*size, *place),
            callee="",
            operator="",
        )
        self._buffers[new_id] = _Buffer(made)

    def _buffer_name(self, origin: NodeId) -> str:
        """Return a buffer's name, numbered where a call writes several."""
        number = self._named[origin]
        self._named[origin] += 1
        return str(origin) if self._sharing[origin] == 1 else f"{origin}[{number}]"

    def _is_other_name(self, node: Node, entering: Sequence[Edge], last: Node | None) -> bool:
        """Tell whether a node only names what the call before it wrote; note what it names."""
        sources = tuple(self._where(edge.source) for edge in entering)
        if node.kind is NodeKind.TUPLE_GET_ITEM and entering[0].source in self._fields:
            fields = self._fields[entering[0].source]
            self._same[node.id] = fields[int(dict(node.attributes)["index"])]
            return True
        of_last = {s for call, s in self._writes if last is not None and call == self._id(last)}
        is_result = bool(sources) and not node.literals and set(sources) <= of_last
        if node.kind is NodeKind.VALUE and is_result:
            self._same[node.id] = sources[0]
            return True
        users = self.source.leaving.get(node.id, ())
        taken = [self.source[edge.target].kind is NodeKind.TUPLE_GET_ITEM for edge in users]
        is_plain = all(len(edge.position) == 1 for edge in entering) and all(taken)
        is_taken_apart = node.kind is NodeKind.TUPLE and is_plain
        if is_taken_apart and is_result and node.id not in self.source.outputs:
            self._fields[node.id] = sources
            return True
        return False

    def _keep(self, node: Node, entering: Sequence[Edge]) -> None:
        """Draw a node with its edges: those to what a call writes lead away from it."""
        new_id = self._id(node)
        if new_id in self._given:
            new_id = distinct(str(new_id), self._seen)
        self._given.add(new_id)
        self._same[node.id] = new_id
        targets = self._targets(node, entering)
        fresh = {e.source for e in targets if self._is_fresh(self._where(e.source))}
        for edge in entering:
            if edge.source not in fresh and edge.source not in self._storages:
                source = self._where(edge.source)
                self.edges.append(edge._replace(source=source, target=new_id))
        made = node._replace(id=new_id)
        if targets:
            made = made._replace(name="", type_text="writes", is_pure=False)
        self.nodes.append(made)
        for edge in targets:
            if edge.source not in fresh:
                self._again(self._where(edge.source))
            target = self._where(edge.source)
            self._draw([target])
            self.edges.append(Edge(new_id, target, (0,), is_write=True))
            self._writes.add((new_id, target))

    def _again(self, node_id: NodeId) -> None:
        """Let another node stand for a buffer that is written in place: what it is from now on."""
        old = next(node for node in self.nodes if node.id == node_id)
        kept = old.attributes if old.kind is NodeKind.ALLOC else ()
        attributes = (*(item for item in kept if item[0] != "place"), ("place", "in place"))
        new_id = distinct(node_id, self._seen)
        made = old._replace(id=new_id, kind=NodeKind.ALLOC, attributes=attributes)
        self._buffers[new_id] = _Buffer(made)
        for name, where in [(node_id, node_id), *self._same.items()]:
            if where == node_id:
                self._same[name] = new_id

    def _targets(self, node: Node, entering: Sequence[Edge]) -> list[Edge]:
        """Return the edges of a call's arguments that it writes into.

        Where nobody says which these are, it is those that nothing was written into before.
        """
        if node.kind not in _CALLS:
            return []
        var = self._vars.get(node.id)
        places = None if var is None else self.traces.written.get(var)
        if places is not None:
            return [e for e in entering if e.position != CALLEE and e.position[0] in places]
        return [e for e in entering if self._is_fresh(self._where(e.source))]

    def _is_fresh(self, node_id: NodeId) -> bool:
        return node_id in self._buffers and not self._buffers[node_id].is_drawn

    def _draw(self, node_ids: Mapping[NodeId, object] | Sequence[NodeId]) -> None:
        for node_id in node_ids:
            if self._is_fresh(node_id):
                self._buffers[node_id].is_drawn = True
                self.nodes.append(self._buffers[node_id].node)

    def _id(self, node: Node) -> NodeId:
        """Return the id in the module before, or that which the node has now."""
        var = self._vars.get(node.id)
        origin = None if var is None else self.traces.origins.get(var)
        return self._same.get(node.id) or origin or node.id


def _is_buffer(value: ir.Expr) -> bool:
    is_operator = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
    return is_operator and value.op.name in _BUFFERS


def _size(call: ir.Call) -> str:
    """Return how many bytes a buffer takes; symbolic sizes stay factors."""
    dims, dtype = next(
        (shape, dtype.value)
        for shape, dtype in zip(call.args, call.args[1:], strict=False)
        if isinstance(shape, relax.ShapeExpr)
    )
    known = [evaluated(dim, {}) for dim in dims.values]
    size = nbytes(tuple(one for one in known if one is not None), dtype)
    names = [dim_label(d) for d, one in zip(dims.values, known, strict=True) if one is None]
    return " × ".join([bytes_text(size), *names])
