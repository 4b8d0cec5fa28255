"""Record what an instrumented module reports: values within a budget, and times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import tvm
import tvm_ffi
from tvm import ir, relax

from irviz.ir.module_functions import relax_functions, with_functions
from irviz.ir.node_ids import identify
from irviz.model.graph.graph import NodeId, inlined_id
from irviz.model.runs.array_diff import summarise
from irviz.model.runs.execution_trace import Array, NodeValue, NodeVisit, Trace
from irviz.runtime.kv_caches import caches_of, described
from irviz.worker.responses import report_progress

# --- Instrument a module so that it reports each value as it is computed -------------------------
#
# After each binding a call passes on the binding's number and its variable, so each value belongs
# to a known binding, also inside branches and called functions. The order of the VM's calls alone
# does not tell this, and passes may change it.


BEGIN, CALLING, PARAM, VALUE = (
    f"irviz.trace.{word}" for word in ("begin", "calling", "param", "value")
)
"""The functions that are called: first, before a call, for a parameter, after a binding."""
TICKS = 5
"""How often the first is called, to measure the cost of such a call."""


@dataclass(frozen=True)
class Instrumented:
    """An instrumented module, and the node and callee of each number."""

    module: ir.IRModule
    nodes: Sequence[NodeId]
    callees: Mapping[int, str]


def instrument(mod: ir.IRModule, function: str) -> Instrumented:
    """Return a module whose Relax functions report their values; `function` is the entry.

    Values are computed as before, but dataflow blocks become plain ones, so that nothing is
    fused across a report.
    """
    plain = relax.transform.ToNonDataflow()(mod)
    plain = relax.transform.RemovePurityChecking()(plain)
    functions = relax_functions(plain)
    writer = _Writer(set(functions))
    changed = {name: writer.function(one, identify(one)) for name, one in functions.items()}
    changed[function] = _beginning_with([_report(BEGIN) for _ in range(TICKS)], changed[function])
    return Instrumented(with_functions(plain, changed), tuple(writer.nodes), writer.callees)


class _Writer:
    """Rewrites functions, and numbers their parameters and bindings."""

    def __init__(self, functions: set[str]) -> None:
        self.nodes: list[NodeId] = []
        self.callees: dict[int, str] = {}
        self._functions = functions

    def function(self, source: relax.Function, ids: Mapping[ir.Var, NodeId]) -> relax.Function:
        """Return a function that reports its parameters and bindings, and those inside it."""

        def reported(block: relax.BindingBlock) -> relax.BindingBlock:
            parts = [self._binding(one, self._number(ids[one.var])) for one in block.bindings]
            return relax.BindingBlock([each for part in parts for each in part])

        def begun(function: relax.Function) -> relax.Function:
            reports = [_report(PARAM, self._number(ids[one]), one) for one in function.params]
            return _beginning_with(reports, function)

        changes = ((relax.BindingBlock, reported), (relax.Function, begun))
        return tvm_ffi.structural_map(source, changes)

    def _binding(self, binding: relax.Binding, number: int) -> list[relax.Binding]:
        """Return a binding with its reports."""
        reported = [binding]
        if not isinstance(binding.var.ty, ir.FuncType):
            reported.append(_report(VALUE, number, binding.var))
        call = binding.value if isinstance(binding, relax.VarBinding) else None
        if isinstance(call, ir.Call) and isinstance(call.op, ir.GlobalVar):
            name = str(call.op.name_hint)
            if name in self._functions:
                self.callees[number] = name
                return [_report(CALLING, number), *reported]
        return reported

    def _number(self, node: NodeId) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1


def _beginning_with(bindings: Sequence[relax.Binding], function: relax.Function) -> relax.Function:
    """Return a function that makes these bindings first."""
    body = relax.SeqExpr([relax.BindingBlock(bindings), *function.body.blocks], function.body.body)
    return relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)


def _report(name: str, number: int | None = None, var: ir.Var | None = None) -> relax.VarBinding:
    nothing = ir.TupleType([])
    arguments = [] if number is None else [relax.prim_value(number)]
    if var is not None:
        arguments.append(var)
    call = ir.Call(relax.ExternFunc(name), arguments, ty_args=[nothing])
    return relax.VarBinding(relax.Var("_", nothing), call)


# --- Receive the reports, as values within a budget and as times ---------------------------------


VALUE_BYTES = 64 * 2**20
"""The default limit for the values that a trace keeps whole."""
_SHARE = 8
_MOST_VISITS = 100_000
_SECONDS, _MOST_ROUNDS = 0.3, 20


@dataclass(frozen=True)
class TraceRequest:
    """What to record.

    Attributes:
        case: The case to trace.
        budget: How many bytes of values to keep in full; other values are summarised.
        kept: If given, only the values of these nodes are kept in full, whatever their size.
    """

    case: int = 0
    budget: int = VALUE_BYTES
    kept: Collection[NodeId] = ()


@dataclass
class _Recorder:
    """Receives the reports of a run, each with the seconds since the one before.

    `request` is None when only times are taken; `calls` are the active calls: path and function.
    """

    of: Instrumented
    function: str
    request: TraceRequest | None = None
    values: dict[NodeId, NodeValue] = field(default_factory=dict)
    seconds: dict[NodeId, float] = field(default_factory=dict)
    counts: dict[NodeId, int] = field(default_factory=dict)
    ticks: list[float] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    overhead: float = 0.0
    kept: int = 0
    last: float = 0.0

    def begin(self, since: float) -> None:
        self.ticks.append(since)

    def calling(self, _: float, number: int) -> None:
        name, path = self.of.callees[number], self._path(self.of.nodes[number])
        path = next((one for one, active in reversed(self.calls) if active == name), path)
        if name == self.function:  # recursion: its nodes count as those of the first call
            path = ""
        self.calls.append((path, name))

    def param(self, _: float, number: int, value: object) -> None:
        self._record(NodeId(self._path(self.of.nodes[number])), value, None)

    def value(self, since: float, number: int, value: object) -> None:
        if number in self.of.callees and self.calls:
            self.calls.pop()  # its inner nodes are recorded: the rest is its own time
        self._record(NodeId(self._path(self.of.nodes[number])), value, since)

    def _path(self, node: NodeId) -> str:
        path = self.calls[-1][0] if self.calls else ""
        return inlined_id(path, node) if path else str(node)

    def _record(self, node: NodeId, value: object, seconds: float | None) -> None:
        if node not in self.counts and len(self.counts) >= _MOST_VISITS:
            return
        self.counts[node] = self.counts.get(node, 0) + 1
        if seconds is not None:
            self.seconds[node] = self.seconds.get(node, 0.0) + seconds
        if self.request is not None:
            report_progress(f"after {node}")
            before = self.values.get(node)
            if before is not None:
                self.kept -= sum(one.nbytes for one in before.arrays if one is not None)
            self.values[node] = self._valued(node, value, self.request)

    def _valued(self, node: NodeId, value: object, request: TraceRequest) -> NodeValue:
        tensors, others = list[Array](), list[str]()
        _leaves(value, tensors, others)
        summaries = tuple(map(summarise, tensors))
        arrays: list[Array | None] = []
        for tensor in tensors:
            room = request.budget - self.kept
            fits = tensor.nbytes <= min(room, request.budget // _SHARE)
            is_kept = node in request.kept if request.kept else fits
            arrays.append(tensor if is_kept else None)
            self.kept += tensor.nbytes * is_kept
        return NodeValue(summaries, tuple(arrays), ", ".join(others))


_recorder: _Recorder | None = None


def record_trace(
    of: Instrumented,
    function: str,
    prepare: Callable[[], Callable[[], object]],
    untraced: float,
    request: TraceRequest,
) -> Trace:
    """Call a built, instrumented function and return its trace.

    It is called once for the values, and then repeatedly for the times, whose medians are kept.
    `prepare` returns the call, and is not recorded itself. `untraced` is the time of the function
    without instrumentation, in seconds.
    """

    def recorded(what: TraceRequest | None) -> _Recorder:
        global _recorder
        call = prepare()
        recorder = _recorder = _Recorder(of, function, what)
        recorder.last = time.perf_counter()
        try:
            call()
        finally:
            _recorder = None
        return recorder

    first = recorded(request)
    rounds: list[_Recorder] = []
    start = time.perf_counter()
    while not rounds or (
        len(rounds) < _MOST_ROUNDS and time.perf_counter() - start < _SECONDS and not request.kept
    ):
        rounds.append(recorded(None))
    visits = {
        node: NodeVisit(value, _median(node, rounds), first.counts[node])
        for node, value in first.values.items()
    }
    total = sum(visit.seconds or 0.0 for visit in visits.values())
    return Trace(function, visits, total, untraced, first.overhead, request.case)


def _median(node: NodeId, rounds: Sequence[_Recorder]) -> float | None:
    """Return the median seconds at a node, without the cost of the reports."""
    found = [
        max(one.seconds[node] - statistics.median(one.ticks[1:]) * one.counts[node], 0.0)
        for one in rounds
        if node in one.seconds
    ]
    return statistics.median(found) if found else None


def _leaves(value: object, tensors: list[Array], others: list[str]) -> None:
    """Collect copies of the tensors in a value, and text for everything else in it."""
    if isinstance(value, tvm.runtime.Tensor):
        try:
            copied = np.array(value.numpy())
        except Exception:  # NumPy does not have this dtype
            others.append(f"{value.dtype} {tuple(value.shape)}")
        else:
            tensors.append(copied)
    elif isinstance(value, tuple | list | tvm.ir.Array):
        for item in value:
            _leaves(item, tensors, others)
    else:
        others.append(", ".join(described(caches_of(value))) or str(value)[:200])


def _reported(name: str, *arguments: object) -> None:
    if _recorder is not None:
        now = time.perf_counter()
        getattr(_recorder, name)(now - _recorder.last, *arguments)
        _recorder.last = time.perf_counter()  # recording is not the function's own time
        _recorder.overhead += _recorder.last - now


for _name in (BEGIN, CALLING, PARAM, VALUE):
    tvm.register_global_func(_name, partial(_reported, _name.rpartition(".")[2]), override=True)
