"""Destination-passing style: how a module is lowered to it, and a function drawn in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import tvm
from tvm import ir, relax

from irviz.errors import RunError, error_summary
from irviz.ir.function_graph import extract
from irviz.ir.module_functions import relax_function, relax_functions
from irviz.ir.node_ids import definitions, identify, unique_id
from irviz.ir.relax_calls import resolve_registered
from irviz.ir.symbolic_shapes import evaluate_dim, nbytes, tensor_types
from irviz.ir.type_and_expression_labels import dim_label
from irviz.limits import passes_time
from irviz.model.graph.graph import CALLEE, Edge, Graph, Node, NodeId, NodeKind, Resolution
from irviz.model.graph.memory_accesses import BUFFERS, KILLS, STORAGES
from irviz.units import format_bytes
from irviz.worker.supervisor import TRIES, WorkerError

_CALLS = (NodeKind.CALL_FUNCTION, NodeKind.CALL_PACKED)


class LoweringError(RunError):
    """TVM cannot lower a module; the message gives TVM's reason."""


def destination_passing(
    mod: ir.IRModule, function: str = "main", *, planned: bool = False
) -> Graph:
    """Return the graph of a lowered function, whose calls write to preallocated buffers.

    A buffer is a node of kind ALLOC with its size in bytes, after the call that writes it first.
    Edges with `is_write` lead to it from the calls that write it, and plain edges from it to the
    calls that read it. A call has the NodeId of the binding that it computes, if known. With
    `planned`, memory planning is run too, and each buffer's storage is named.

    Raises NoFunctionError if the module has no such Relax function, and LoweringError if TVM cannot
    lower it, which other processes do.
    """
    relax_function(mod, function)
    try:
        until = KILL_AFTER_LAST_USE if planned else CALL_TIR_REWRITE
        with passes_time() as seconds:
            found: Graph | str = TRIES.call(_lower_and_read, mod, function, until, seconds=seconds)
    except WorkerError as failure:
        found = str(failure)
    except Exception as failure:  # pickling raises errors of any class
        found = f"it cannot be sent to the worker: {type(failure).__name__}: {failure}"
    if isinstance(found, str):
        raise LoweringError(f"{function!r} could not be lowered: {found}")
    return replace(found, nodes=tuple(map(_resolve_library, found.nodes)))


def _resolve_library(node: Node) -> Node:
    """Look a library function up in this process, where Python may have registered it."""
    if node.resolution not in (Resolution.LIBRARY, Resolution.UNKNOWN):
        return node
    return node._replace(resolution=resolve_registered(node.callee))


def _lower_and_read(mod: ir.IRModule, function: str, until: str) -> Graph | str:
    """Return a lowered function's graph, or the reason why there is none; runs in the worker."""
    try:
        lowered = lower(mod, until)
    except Exception as failure:  # TVM raises errors of any class from C++
        return error_summary(failure)
    return _BufferGraph(lowered, function).build()


class _BufferGraph:
    """Turns the graph of a lowered function into the graph of its buffers.

    Ids of the lowered function are those of `source`. `_new_ids` maps them to ids of this graph;
    the other dictionaries have the facts about the variable with an id.
    """

    def __init__(self, lowered: LoweredModule, name: str) -> None:
        function = relax_function(lowered.module, name)
        known = lowered.origins.get(name, VarOrigins())
        self.source = extract(lowered.module, name)
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        ids = identify(function)
        self._origins = {ids[var]: known.origins[var] for var in ids if var in known.origins}
        self._written = {ids[var]: known.written[var] for var in ids if var in known.written}
        self._values = {
            ids[var]: binding.value
            for var, binding in definitions(function.params, function.body)
            if binding is not None
        }
        self._seen: dict[str, int] = {str(one): 1 for one in known.origins.values()}
        self._used_ids: set[NodeId] = set()
        self._field_counts: Counter[NodeId] = Counter()
        self._buffer_counts = Counter(
            self._origins.get(node.id) for node in self.source.nodes if node.operator in BUFFERS
        )
        self._unwritten: dict[NodeId, Node] = {}  # not in the graph: a buffer follows its writer
        self._storages: dict[NodeId, str] = {}
        self._new_ids: dict[NodeId, NodeId] = {}
        self._fields: dict[NodeId, tuple[NodeId, ...]] = {}
        self._last_writes: set[NodeId] = set()

    def build(self) -> Graph:
        """Read each node once, in the order of the text."""
        for node in self.source.nodes:
            entering = self.source.entering.get(node.id, ())
            if node.operator in KILLS:
                continue
            written = self._last_writes
            self._last_writes = set()
            if node.operator in STORAGES:
                self._storages[node.id] = f"storage {len(self._storages) + 1}"
            elif node.operator in BUFFERS:
                self._add_allocation(node, entering)
            elif not self._is_alias(node, entering, written):
                self._add_node(node, entering)
        self._add_buffers(*self._unwritten)
        outputs = tuple(map(self._resolve, self.source.outputs))
        return replace(
            self.source, nodes=tuple(self.nodes), edges=tuple(self.edges), outputs=outputs
        )

    def _resolve(self, node_id: NodeId) -> NodeId:
        return self._new_ids.get(node_id, node_id)

    def _add_allocation(self, node: Node, entering: Sequence[Edge]) -> None:
        """Record a buffer; after memory planning its storage is its first argument."""
        value, origin = self._values.get(node.id), self._origins.get(node.id)
        attributes = [("bytes", _size(value))] if isinstance(value, ir.Call) else []
        storages = [self._storages[e.source] for e in entering if e.source in self._storages]
        attributes += [("storage", storage) for storage in storages[:1]]
        new_id = self._new_ids[node.id] = unique_id(node.name, self._seen)
        self._unwritten[new_id] = node._replace(
            id=new_id,
            kind=NodeKind.ALLOC,
            name=self._buffer_name(origin) if origin else node.name,
            literals=(),
            attributes=tuple(attributes),
            callee="",
            operator="",
        )

    def _buffer_name(self, origin: NodeId) -> str:
        """Return a buffer's name, numbered where a call writes several."""
        number = self._field_counts[origin]
        self._field_counts[origin] += 1
        return str(origin) if self._buffer_counts[origin] == 1 else f"{origin}[{number}]"

    def _is_alias(self, node: Node, entering: Sequence[Edge], written: set[NodeId]) -> bool:
        """Tell whether a node only names the buffers that the last call wrote; record them."""
        sources = tuple(self._resolve(edge.source) for edge in entering)
        if node.kind is NodeKind.TUPLE_GET_ITEM and entering[0].source in self._fields:
            fields = self._fields[entering[0].source]
            self._new_ids[node.id] = fields[int(dict(node.attributes)["index"])]
            return True
        if not sources or node.literals or not written.issuperset(sources):
            return False
        if node.kind is NodeKind.VALUE:
            self._new_ids[node.id] = sources[0]
            return True
        users = self.source.leaving.get(node.id, ())
        is_unpacked = node.id not in self.source.outputs and all(
            self.source[edge.target].kind is NodeKind.TUPLE_GET_ITEM for edge in users
        )
        is_flat = all(len(edge.position) == 1 for edge in entering)
        if node.kind is NodeKind.TUPLE and is_unpacked and is_flat:
            self._fields[node.id] = sources
            self._last_writes = written
            return True
        return False

    def _add_node(self, node: Node, entering: Sequence[Edge]) -> None:
        """Add a node and its edges; the edges of the buffers that it writes leave it."""
        new_id = self._new_ids.get(node.id) or self._origins.get(node.id) or node.id
        if new_id in self._used_ids:
            new_id = unique_id(str(new_id), self._seen)
        self._used_ids.add(new_id)
        self._new_ids[node.id] = new_id
        targets = self._write_edges(node, entering)
        fresh = {e.source for e in targets if self._resolve(e.source) in self._unwritten}
        for edge in entering:
            if edge.source not in fresh and edge.source not in self._storages:
                source = self._resolve(edge.source)
                self.edges.append(edge._replace(source=source, target=new_id))
        new = node._replace(id=new_id)
        if targets:
            new = new._replace(name="", type_text="writes", is_pure=False)
        self.nodes.append(new)
        for edge in targets:
            if edge.source not in fresh:
                self._add_version(self._resolve(edge.source))
            target = self._resolve(edge.source)
            self._add_buffers(target)
            self.edges.append(Edge(new_id, target, (0,), is_write=True))
            self._last_writes.add(target)

    def _add_version(self, node_id: NodeId) -> None:
        """Record a node for the new content of a buffer that is written in place."""
        old = next(node for node in self.nodes if node.id == node_id)
        kept = old.attributes if old.kind is NodeKind.ALLOC else ()
        attributes = (*(item for item in kept if item[0] != "place"), ("place", "in place"))
        new_id = unique_id(node_id, self._seen)
        new = old._replace(id=new_id, kind=NodeKind.ALLOC, attributes=attributes)
        self._unwritten[new_id] = new
        names = [name for name, target in self._new_ids.items() if target == node_id]
        self._new_ids.update(dict.fromkeys((node_id, *names), new_id))

    def _write_edges(self, node: Node, entering: Sequence[Edge]) -> list[Edge]:
        """Return the edges of the arguments that a call writes.

        Where that is not known, these are the buffers that nothing has written before.
        """
        if node.kind not in _CALLS:
            return []
        positions = self._written.get(node.id)
        if positions is not None:
            return [e for e in entering if e.position != CALLEE and e.position[0] in positions]
        return [e for e in entering if self._resolve(e.source) in self._unwritten]

    def _add_buffers(self, *node_ids: NodeId) -> None:
        self.nodes += [self._unwritten.pop(one) for one in node_ids if one in self._unwritten]


def _size(call: ir.Call) -> str:
    """Return a buffer's size in bytes; symbolic sizes stay as factors."""
    dims, dtype = next(
        (shape, dtype.value)
        for shape, dtype in zip(call.args, call.args[1:], strict=False)
        if isinstance(shape, relax.ShapeExpr)
    )
    known = [evaluate_dim(dim, {}) for dim in dims.values]
    size = nbytes(tuple(one for one in known if one is not None), dtype)
    names = [dim_label(d) for d, one in zip(dims.values, known, strict=True) if one is None]
    return " × ".join([format_bytes(size), *names])


CALL_TIR_REWRITE = "CallTIRRewrite"
"""After this pass each call writes into a buffer that is allocated before it."""
KILL_AFTER_LAST_USE = "KillAfterLastUse"
"""After this pass buffers share storages, and each is freed after its last use."""


@dataclass(frozen=True, eq=False)
class VarOrigins:
    """The relation of a lowered function's variables to the original function.

    `origins` maps a variable to the original node with its value, or that its call computes;
    `written` gives the argument positions of the buffers that a variable's call writes.
    """

    origins: Mapping[ir.Var, NodeId] = field(default_factory=dict)
    written: Mapping[ir.Var, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LoweredModule:
    """A module after a pass of the build, and the origins of each function's variables."""

    module: ir.IRModule
    origins: Mapping[str, VarOrigins]


def lower(mod: ir.IRModule, until: str) -> LoweredModule:
    """Return the module after the pass `until` of the build for `llvm`.

    This runs the Relax passes of `tvm.compile`, and raises what they raise. An error of a pass
    after `CALL_TIR_REWRITE` is ignored if the module is wanted as that pass leaves it. Raises
    ValueError if the build has no pass of this name.
    """
    watch = _VarTracker(mod, until)
    try:
        with tvm.transform.PassContext(instruments=[watch]), tvm.target.Target("llvm"):
            relax.get_pipeline("default")(mod)
    except Exception:  # TVM raises errors of any class from C++
        if watch.result is None or until != CALL_TIR_REWRITE:
            raise
    if watch.result is None:
        raise ValueError(f"the build of this TVM has no pass {until!r}")
    return watch.result


@tvm.instrument.pass_instrument
class _VarTracker:
    """Follows the variables from pass to pass, and keeps the module after one of them."""

    def __init__(self, mod: ir.IRModule, until: str) -> None:
        self.result: LoweredModule | None = None
        self._until, self._last = until, mod
        self._origins = {
            name: VarOrigins(identify(function)) for name, function in relax_functions(mod).items()
        }

    def run_after_pass(self, mod: ir.IRModule, info: tvm.ir.transform.PassInfo) -> None:
        if self.result is not None:
            return
        before, after = relax_functions(self._last), relax_functions(mod)
        self._origins = {
            name: _follow(self._origins.get(name, VarOrigins()), before.get(name), function)
            for name, function in after.items()
        }
        self._last = mod
        if info.name == CALL_TIR_REWRITE:
            self._origins = {
                name: _with_calls(self._origins[name], function) for name, function in after.items()
            }
        if info.name == self._until:
            self.result = LoweredModule(mod, self._origins)


def _follow(known: VarOrigins, before: relax.Function | None, after: relax.Function) -> VarOrigins:
    """Return the origins of the variables after a pass.

    A pass keeps variables, or makes others of the same names in the same order.
    """
    if before is None or before.same_as(after):
        return known
    old = [var for var, _ in definitions(before.params, before.body)]
    new = [var for var, _ in definitions(after.params, after.body)]
    is_renewed = [var.name for var in old] == [var.name for var in new]
    pairs = list(zip(old if is_renewed else new, new, strict=True))
    return VarOrigins(
        {new: known.origins[old] for old, new in pairs if old in known.origins},
        {new: known.written[old] for old, new in pairs if old in known.written},
    )


def _with_calls(known: VarOrigins, function: relax.Function) -> VarOrigins:
    """Add the buffers that each call writes, and the origin of the call and of the buffers.

    The pass turns `y = call_tir(f, x)` into `alloc = alloc_tensor(…); _ = f(x, alloc); y = alloc`.
    """
    origins, written = dict(known.origins), dict(known.written)
    call: ir.Var | None = None
    arguments: list[ir.Expr] = []
    for var, binding in definitions(function.params, function.body):
        value = None if binding is None else binding.value
        results = list(value.fields) if isinstance(value, ir.Tuple) else [value]
        positions = _positions(results, arguments)
        if call is not None and positions:
            written[call] = positions
            if call not in origins and var in origins:
                for one in (call, *results):
                    origins.setdefault(one, origins[var])
        call = None
        if not isinstance(value, ir.Call) or isinstance(value.op, ir.Op):
            continue
        if not tensor_types(value.ty):
            call, arguments = var, list(value.args)
    return VarOrigins(origins, written)


def _positions(values: Sequence[ir.Expr | None], arguments: Sequence[ir.Expr]) -> tuple[int, ...]:
    """Return the positions of the values among the arguments, or () if one is missing."""
    known = [(one, at) for at, one in enumerate(arguments) if isinstance(one, ir.Var)]
    places = dict(reversed(known))  # the first one of each
    found = [places[one] for one in values if one in places]
    return tuple(found) if len(found) == len(values) else ()
