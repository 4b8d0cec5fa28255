"""The memory that a function holds as it runs, read from the lowered module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import cloudpickle
import tvm
from tvm import ir, relax, tirx

from irviz.errors import InputError, RunError, run_errors
from irviz.ir.destination_passing import KILL_AFTER_LAST_USE, LoweredModule, lower
from irviz.ir.module_functions import function_named, relax_function
from irviz.ir.relax_calls import callee_name
from irviz.ir.symbolic_shapes import (
    Shape,
    ShapeEvaluator,
    UnknownSizeError,
    nbytes,
    symbolic_sizes,
    tensor_types,
)
from irviz.limits import passes_time
from irviz.model.graph.graph import NodeId, inlined_id
from irviz.model.graph.memory_accesses import KILLS, PLANNED_TENSORS, STORAGES
from irviz.model.runs.memory_timeline import Allocation, MemoryStep, MemoryUse, Storage
from irviz.runtime.argument_conversion import check_sizes
from irviz.worker.supervisor import TRIES, WorkerError


def memory_use(
    mod: ir.IRModule, function: str = "main", sizes: Mapping[str, int] | None = None
) -> MemoryUse:
    """Return what is allocated while a function runs, without running it.

    The passes of `tvm.compile(mod, target="llvm")` are run in the worker, up to the one that
    plans memory. Allocations of a called function belong to its call.

    Raises:
        InputError: A size is missing or invalid.
        NoFunctionError: The module has no such function.
        RunError: TVM cannot plan the memory.
    """
    relax_function(mod, function)
    known = dict(sizes or {})
    check_sizes(known, least=0)
    with run_errors("the module cannot be sent to the worker"):
        sent = cloudpickle.dumps((mod, function, known))
    try:
        with passes_time() as seconds:
            return TRIES.call(_read, sent, seconds=seconds)
    except WorkerError as failure:
        raise RunError(f"the memory of {function!r} could not be planned: {failure}") from None


def _read(sent: bytes) -> MemoryUse:
    """Lower the module and read its allocations; this runs in the worker."""
    mod, function, sizes = cloudpickle.loads(sent)
    with run_errors(f"the memory of {function!r} could not be planned"):
        planned = lower(mod, KILL_AFTER_LAST_USE)
    return Allocations(planned, sizes).read(function)


# --- Simulate a lowered function to find what it allocates and frees, in order of execution ------


_VIEWS = ("relax.reshape", "relax.memory.view", "relax.memory.ensure_zero_offset")
"""Operators that return a view of a tensor and allocate nothing."""
_QUIET = ("relax.shape_of", "relax.null_value", "relax.tensor_to_shape", "relax.make_closure")
_NAMING = ("relax.call_pure_packed", "relax.call_builtin_with_ctx", "relax.call_py_func")
"""The operators that call what their first argument names."""
_MOST_CALLS = 50_000


@dataclass
class _Frame:
    """One call of a function: what its variables hold, and the path of enclosing calls."""

    function: str
    extents: ShapeEvaluator
    things: dict[ir.Var, Held] = field(default_factory=dict)
    call: NodeId | None = None
    path: str = ""


class Allocations:
    """Simulates a lowered module; `sizes` are the symbolic dimensions by name."""

    def __init__(self, lowered: LoweredModule, sizes: Mapping[str, int]) -> None:
        self._module, self._traces = lowered.module, lowered.origins
        self._sizes = sizes
        self._memory = SimulatedMemory()
        self._constants: dict[int, int] = {}
        self._uncounted: dict[str, None] = {}
        self._warnings: dict[str, None] = {}
        self._running: list[str] = []
        self._returned: Held = None
        self._calls = 0

    def read(self, name: str) -> MemoryUse:
        """Return the memory use of a function.

        Raises InputError for a size that is missing or unknown, and RunError for a recursive
        function, because the depth is unknown.
        """
        function = self._module[name]
        frame = _Frame(name, ShapeEvaluator(self._sizes))
        given = 0
        try:
            for param in function.params:
                frame.things[param] = _outside(param.ty, frame.extents)
                given += _given(param.ty, frame.extents)
            self._called(function, frame)
        except UnknownSizeError as missing:
            lacking = [size for size in symbolic_sizes(function) if size not in self._sizes]
            names = lacking or [missing.name]
            raise InputError(
                f"the size of {', '.join(map(repr, names))} in {name!r} is not known: give it, as "
                f"in sizes={dict.fromkeys(names, 128)}"
            ) from None
        known = dict.fromkeys([*symbolic_sizes(function), *frame.extents.asked])
        unknown = [size for size in self._sizes if size not in known]
        if unknown:
            there = ", ".join(map(repr, known)) or "none"
            raise InputError(f"{name!r} has no symbolic size {unknown[0]!r}; it has {there}")
        found = self._memory.finish(name, given + sum(self._constants.values()))
        return replace(found, unseen=tuple(self._uncounted), warnings=tuple(self._warnings))

    def _called(self, function: relax.Function, frame: _Frame) -> Held:
        """Simulate a function whose parameters are set; its result stays held."""
        if frame.function in self._running:
            raise RunError(
                f"the memory of {self._running[0]!r} cannot be counted: {frame.function!r} calls "
                "itself, and how often is known only as it runs"
            )
        self._running.append(frame.function)
        result = self._body(function.body, frame)
        self._memory.hold(result)
        if len(self._running) > 1:  # the virtual machine keeps the last return value
            self._memory.hold(result)
            self._memory.release(self._returned)
            self._returned = result
        for thing in frame.things.values():
            self._memory.release(thing)
        self._running.pop()
        return result

    def _body(self, body: relax.SeqExpr, frame: _Frame) -> Held:
        for block in body.blocks:
            for binding in block.bindings:
                var = binding.var
                thing = self._value(binding.value, var, frame)
                if isinstance(binding, relax.MatchCast) and isinstance(thing, TensorInfo):
                    frame.extents.learn(binding.ty, thing.shape)
                if not _is_result(binding.value):  # which holds it already
                    self._memory.hold(thing)
                frame.things[var] = thing
        return self._value(body.body, None, frame)

    def _value(self, value: ir.Expr, var: ir.Var | None, frame: _Frame) -> Held:
        match value:
            case ir.Var():
                return frame.things.get(value)
            case ir.Tuple():
                return tuple(self._value(each, None, frame) for each in value.fields)
            case ir.TupleGetItem():
                whole = self._value(value.tuple_value, None, frame)
                index = int(value.index)
                if isinstance(whole, tuple) and index < len(whole):
                    return whole[index]
                return _outside(value.ty, frame.extents)
            case ir.GenericConst(value=tvm.runtime.Tensor() as tensor):
                shape = tuple(map(int, tensor.shape))
                self._constants[tensor.__chandle__()] = nbytes(shape, tensor.dtype)
                return TensorInfo(None, shape)
            case relax.If():
                return self._either(value, frame)
            case relax.SeqExpr():
                return self._body(value, frame)
            case ir.Call():
                return self._call(value, var, frame)
            case _:
                return None

    def _call(self, call: ir.Call, var: ir.Var | None, frame: _Frame) -> Held:
        name = str(call.op.name) if isinstance(call.op, ir.Op) else callee_name(call.op)
        if name in STORAGES:
            return self._memory.storage(nbytes(frame.extents.shape(_dims(call.args[0])), "uint8"))
        if name in PLANNED_TENSORS:
            return self._tensor(call, var, frame)
        if name in KILLS:
            self._memory.release(frame.things.pop(call.args[0], None))
            return None
        if name in _QUIET:
            return None
        arguments = [self._value(argument, None, frame) for argument in call.args]
        if name in _VIEWS:
            first = arguments[0]
            known = first if isinstance(first, TensorInfo) else TensorInfo(None, None)
            return replace(known, shape=frame.extents.known(call.ty))
        called = function_named(self._module, name) if isinstance(call.op, ir.GlobalVar) else None
        if isinstance(called, relax.Function):
            return self._enter(name, called, call, arguments, var, frame)
        if name in _NAMING:
            name = callee_name(call.args[0]) or name
        self._count()
        self._memory.step(name or str(call.op), self._node(var, frame))
        if not isinstance(called, tirx.PrimFunc) and tensor_types(call.ty):
            self._uncounted[name] = None
        return _outside(call.ty, frame.extents)

    def _enter(
        self,
        name: str,
        function: relax.Function,
        call: ir.Call,
        arguments: Sequence[Held],
        var: ir.Var | None,
        outer: _Frame,
    ) -> Held:
        """Simulate a called function."""
        self._count()
        inner = _Frame(name, outer.extents.inside())
        inner.call, inner.path = self._node(var, outer), self._path(var, outer) + "/"
        for param, given, thing in zip(function.params, call.args, arguments, strict=False):
            inner.extents.learn(param.ty, _shape(given, thing, outer.extents))
            self._memory.hold(thing)
            inner.things[param] = thing
        return self._called(function, inner)

    def _count(self) -> None:
        """Count a call; raise RunError if there are too many."""
        self._calls += 1
        if self._calls > _MOST_CALLS:
            raise RunError(f"{self._running[0]!r} has more than {_MOST_CALLS:,} calls")

    def _tensor(self, call: ir.Call, var: ir.Var | None, frame: _Frame) -> Held:
        place, _, dims, dtype = call.args[:4]
        shape = frame.extents.shape(_dims(dims))
        storage = frame.things.get(place)
        size = nbytes(shape, dtype.value)
        if not isinstance(storage, Block):  # TVM shares one storage between the branches of an if
            self._warnings[
                f"{self._path(var, frame)!r} is in memory that only the other branch "
                "allocates: TVM plans it so, and a run that reaches it crashes"
            ] = None
            storage = self._memory.storage(size)
        label, node = self._path(var, frame), self._node(var, frame)
        return TensorInfo(self._memory.buffer(label, node, size, storage), shape)

    def _either(self, value: relax.If, frame: _Frame) -> Held:
        """Simulate both branches from the same state, and continue from the one that holds more."""
        before, things = self._memory.state, dict(frame.things)
        ends = []
        for branch in (value.true_branch, value.false_branch):
            self._memory.restore(before)
            frame.things = dict(things)
            result = self._body(branch, frame)
            self._memory.hold(result)
            ends.append((self._memory.state, frame.things, result))
        one, other = ends
        chosen, left = (one, other) if one[0].held >= other[0].held else (other, one)
        frame.things = chosen[1]
        self._memory.continue_from(chosen[0], left[0])
        return chosen[2]

    def _own(self, var: ir.Var | None, frame: _Frame) -> NodeId | None:
        return self._traces[frame.function].origins.get(var)

    def _node(self, var: ir.Var | None, frame: _Frame) -> NodeId | None:
        """Return the id of the node of a variable, with the path of inlined calls."""
        own = self._own(var, frame)
        if own is None or not frame.path:
            return own
        return None if frame.call is None else inlined_id(frame.call, own)

    def _path(self, var: ir.Var | None, frame: _Frame) -> str:
        return frame.path + ("" if var is None else str(self._own(var, frame) or var.name))


def _is_result(value: ir.Expr) -> bool:
    """Tell whether the result is held already, as that of a branch or a function is."""
    if isinstance(value, relax.If):
        return True
    is_called = isinstance(value, ir.Call) and isinstance(value.op, ir.GlobalVar)
    return is_called and isinstance(value.op.ty, relax.FuncType)


def _dims(shape: ir.Expr) -> Sequence[ir.Expr]:
    if isinstance(shape, relax.ShapeExpr):
        return tuple(shape.values)
    raise RunError(
        f"the size of a buffer is computed as the function runs ({shape}): look at a stage before "
        "VMShapeLower"
    )


def _outside(type_: ir.Type | None, extents: ShapeEvaluator) -> Held:
    """Return the value of a type whose memory is not counted."""
    match type_:
        case relax.TensorType():
            return TensorInfo(None, extents.known(type_))
        case ir.TupleType():
            return tuple(_outside(each, extents) for each in type_.fields)
        case _:
            return None


def _given(type_: ir.Type, extents: ShapeEvaluator) -> int:
    """Return the size of a parameter's tensors in bytes, as far as it is known."""
    found = [(extents.known(one), one.dtype) for one in tensor_types(type_)]
    return sum(nbytes(shape, dtype) for shape, dtype in found if shape is not None and dtype)


def _shape(argument: ir.Expr, thing: Held, extents: ShapeEvaluator) -> Shape | None:
    """Return the shape of a tensor argument, or the shape that the argument is."""
    if isinstance(argument, relax.ShapeExpr):
        return extents.known(argument.ty)
    return thing.shape if isinstance(thing, TensorInfo) else None


# --- The memory of a simulated function: storages and buffers, with their references counted -----


@dataclass(eq=False)
class Block:
    """A storage, or a buffer in a storage; it is held from step `start` to before `stop`."""

    name: str
    nbytes: int
    start: int
    stop: int = 0
    storage: Block | None = None
    node: NodeId | None = None


@dataclass(frozen=True)
class TensorInfo:
    """A tensor: its buffer (None if its memory is not counted) and its shape."""

    buffer: Block | None
    shape: tuple[int, ...] | None


Held = TensorInfo | Block | tuple["Held", ...] | None
"""What a variable holds: a tensor, a storage, a tuple of these, or nothing counted."""


class MemoryState(NamedTuple):
    """The reference counts at one moment, the bytes held, and the sum of the buffers so far."""

    counts: dict[Block, int]
    held: int
    unplanned: int


class SimulatedMemory:
    """Counts references as the virtual machine does: a buffer holds its storage.

    A storage is freed with the last variable or buffer that refers to it.
    """

    def __init__(self) -> None:
        self._steps: list[MemoryStep] = []
        self._live: list[int] = []
        self._storages: list[Block] = []
        self._buffers: list[Block] = []
        self._counts: dict[Block, int] = {}
        self._held = self._unplanned = 0
        self._newest = ""

    @property
    def state(self) -> MemoryState:
        """The current state."""
        return MemoryState(dict(self._counts), self._held, self._unplanned)

    def step(self, name: str, node: NodeId | None = None) -> None:
        """Add a step in which something runs."""
        self._steps.append(MemoryStep(name, node))
        self._live.append(self._held)
        self._newest = ""

    def storage(self, nbytes: int) -> Block:
        """Allocate a storage; the caller must hold it next."""
        self._newest = f"storage {len(self._storages) + 1}"
        block = Block(self._newest, nbytes, len(self._steps))
        self._storages.append(block)
        self._counts[block] = 0
        self._held += nbytes
        return block

    def buffer(self, name: str, node: NodeId | None, nbytes: int, storage: Block) -> Block:
        """Put a buffer into a storage; the caller must hold it next."""
        block = Block(name, nbytes, len(self._steps), storage=storage, node=node)
        self._buffers.append(block)
        self._counts[block] = 0
        self._counts[storage] += 1
        self._unplanned += nbytes
        self._newest = self._newest and name
        return block

    def hold(self, value: Held) -> None:
        """Add a reference to everything in a value."""
        for block in _blocks(value):
            self._counts[block] += 1

    def release(self, value: Held) -> None:
        """Remove a reference from everything in a value; what has none left is freed."""
        for block in _blocks(value):
            self._counts[block] -= 1
            if self._counts[block]:
                continue
            if block.storage is not None:
                self.release(block.storage)
            else:
                self._flush()  # it existed together with what was allocated since the last step
                self._held -= block.nbytes
            del self._counts[block]
            block.stop = len(self._steps)

    def restore(self, state: MemoryState) -> None:
        """Restore a state, and keep the steps made since."""
        self._flush()
        counts, self._held, self._unplanned = state
        self._counts = dict(counts)

    def continue_from(self, state: MemoryState, left: MemoryState) -> None:
        """Continue from the end of one branch instead of the other."""
        self.restore(state._replace(unplanned=max(state.unplanned, left.unplanned)))
        self._end(left.counts.keys() - state.counts)

    def finish(self, function: str = "", given: int = 0) -> MemoryUse:
        """Return the memory use of a function with so many bytes of parameters and constants.

        What is still held lasts to the end. Buffers that share a name, as those of one call do,
        get numbers.
        """
        self._flush()
        self._end(self._counts)
        storages = tuple(Storage(s.name, s.nbytes, s.start, s.stop) for s in self._storages)
        indices = {one: index for index, one in enumerate(self._storages)}
        shared, counted = Counter(one.name for one in self._buffers), Counter[str]()
        made = []
        for one in self._buffers:
            name = f"{one.name}[{counted[one.name]}]" if shared[one.name] > 1 else one.name
            counted[one.name] += 1
            assert one.storage is not None
            at = indices[one.storage]
            made.append(Allocation(name, one.node, one.nbytes, one.start, one.stop, at))
        found = tuple(self._steps), tuple(self._live), storages, tuple(made)
        return MemoryUse(function, *found, self._unplanned, given)

    def _flush(self) -> None:
        """Add a step for what was allocated since the last one."""
        if self._newest:
            self.step(self._newest)

    def _end(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            block.stop = len(self._steps)


def _blocks(value: Held) -> Iterator[Block]:
    """Yield the storages and buffers in a value."""
    match value:
        case tuple():
            for each in value:
                yield from _blocks(each)
        case TensorInfo(buffer=Block() as block) | (Block() as block):
            yield block
