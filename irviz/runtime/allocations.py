"""A lowered function -> what it allocates and lets go, in the order in which it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import tvm
from tvm import ir, relax, tirx

from irviz.ir.callee import callee_name
from irviz.ir.extent import Extents, Shape, UnknownSizeError, nbytes, tensors
from irviz.ir.identity import function_named
from irviz.ir.lowering import Lowered
from irviz.ir.sizes import symbolic_sizes
from irviz.model.graph import NodeId
from irviz.model.memory import MemoryUse
from irviz.model.splice import within
from irviz.runtime.inputs import InputError
from irviz.runtime.ledger import Ledger, Tensor, Thing
from irviz.runtime.machine import RunError

_STORAGES = ("relax.memory.alloc_storage", "relax.vm.alloc_storage")
_TENSORS = ("relax.memory.alloc_tensor", "relax.vm.alloc_tensor")
_KILLS = ("relax.memory.kill_tensor", "relax.memory.kill_storage", "relax.vm.kill_object")
_VIEWS = ("relax.reshape", "relax.memory.view", "relax.memory.ensure_zero_offset")
"""What looks at a tensor's memory in another way, and takes none."""
_QUIET = ("relax.shape_of", "relax.null_value", "relax.tensor_to_shape", "relax.make_closure")
_NAMING = ("relax.call_pure_packed", "relax.call_builtin_with_ctx", "relax.call_py_func")
"""The Ops that call what their first argument names."""
_MOST_STEPS = 200_000


@dataclass
class _Frame:
    """One call of a function: its variables, and the names of the calls that it is inside of."""

    function: str
    extents: Extents
    things: dict[ir.Var, Thing] = field(default_factory=dict)
    call: NodeId | None = None
    path: str = ""


class Allocations:
    """Reads what runs and what it holds; `sizes` are the symbolic ones by name."""

    def __init__(self, lowered: Lowered, sizes: Mapping[str, int]) -> None:
        self._module, self._traces = lowered.module, lowered.traces
        self._sizes = sizes
        self._ledger = Ledger()
        self._constants: dict[int, int] = {}
        self._unseen: dict[str, None] = {}
        self._warnings: dict[str, None] = {}
        self._running: list[str] = []
        self._returned: Thing = None

    def read(self, name: str) -> MemoryUse:
        """Return what a function holds; raise InputError for a size that is missing or unknown.

        Raises RunError for a function that calls itself: nobody knows how often.
        """
        function = self._module[name]
        frame = _Frame(name, Extents(self._sizes))
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
        steps, live, storages, allocations = self._ledger.closed()
        return MemoryUse(
            name,
            steps,
            live,
            storages,
            allocations,
            self._ledger.unplanned,
            given + sum(self._constants.values()),
            unseen=tuple(self._unseen),
            warnings=tuple(self._warnings),
        )

    def _called(self, function: relax.Function, frame: _Frame) -> Thing:
        """Run a function whose parameters are known; what it returns stays held."""
        if frame.function in self._running:
            raise RunError(
                f"the memory of {self._running[0]!r} cannot be counted: {frame.function!r} calls "
                "itself, and how often is known only as it runs"
            )
        self._running.append(frame.function)
        result = self._body(function.body, frame)
        self._ledger.hold(result)
        if len(self._running) > 1:  # the virtual machine keeps what was returned last
            self._ledger.hold(result)
            self._ledger.let_go(self._returned)
            self._returned = result
        for thing in frame.things.values():
            self._ledger.let_go(thing)
        self._running.pop()
        return result

    def _body(self, body: ir.Expr, frame: _Frame) -> Thing:
        if not isinstance(body, relax.SeqExpr):
            return self._value(body, None, frame)
        for block in body.blocks:
            for binding in block.bindings:
                var = binding.var
                thing = self._value(binding.value, var, frame)
                if isinstance(binding, relax.MatchCast) and isinstance(thing, Tensor):
                    frame.extents.learn(binding.ty, thing.shape)
                if not _is_result(binding.value):  # which holds it already
                    self._ledger.hold(thing)
                frame.things[var] = thing
        return self._value(body.body, None, frame)

    def _value(self, value: ir.Expr, var: ir.Var | None, frame: _Frame) -> Thing:
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
                return Tensor(None, shape)
            case relax.If():
                return self._either(value, frame)
            case relax.SeqExpr():
                return self._body(value, frame)
            case ir.Call():
                return self._call(value, var, frame)
            case _:
                return None

    def _call(self, call: ir.Call, var: ir.Var | None, frame: _Frame) -> Thing:
        name = str(call.op.name) if isinstance(call.op, ir.Op) else callee_name(call.op)
        if name in _STORAGES:
            return self._ledger.storage(nbytes(frame.extents.shape(_dims(call.args[0])), "uint8"))
        if name in _TENSORS:
            return self._tensor(call, var, frame)
        if name in _KILLS:
            self._ledger.let_go(frame.things.pop(call.args[0], None))
            return None
        if name in _QUIET:
            return None
        arguments = [self._value(argument, None, frame) for argument in call.args]
        if name in _VIEWS:
            first = arguments[0]
            known = first if isinstance(first, Tensor) else Tensor(None, None)
            return replace(known, shape=frame.extents.known(call.ty))
        called = function_named(self._module, name) if isinstance(call.op, ir.GlobalVar) else None
        if isinstance(called, relax.Function):
            return self._enter(name, called, call, arguments, var, frame)
        if name in _NAMING:
            name = callee_name(call.args[0]) or name
        self._ledger.step(name or str(call.op), self._node(var, frame))
        if self._ledger.count > _MOST_STEPS:
            raise RunError(f"{self._running[0]!r} has more than {_MOST_STEPS:,} calls")
        result = _outside(call.ty, frame.extents)
        if not isinstance(called, tirx.PrimFunc) and _has_tensor(result):
            self._unseen[name] = None
        return result

    def _enter(
        self,
        name: str,
        function: relax.Function,
        call: ir.Call,
        arguments: Sequence[Thing],
        var: ir.Var | None,
        outer: _Frame,
    ) -> Thing:
        """Run a called function in place of its call."""
        inner = _Frame(name, outer.extents.inside())
        inner.call, inner.path = self._node(var, outer), self._path(var, outer) + "/"
        for param, given, thing in zip(function.params, call.args, arguments, strict=False):
            inner.extents.learn(param.ty, _shape(given, thing, outer.extents))
            self._ledger.hold(thing)
            inner.things[param] = thing
        return self._called(function, inner)

    def _tensor(self, call: ir.Call, var: ir.Var | None, frame: _Frame) -> Thing:
        place, _, dims, dtype = call.args[:4]
        shape = frame.extents.shape(_dims(dims))
        storage = frame.things.get(place)
        size = nbytes(shape, dtype.value)
        if not isinstance(storage, int):  # TVM shares one between the branches of an if
            self._warnings[
                f"{self._path(var, frame)!r} stands in memory that only the other branch "
                "allocates: TVM plans it so, and a run that comes here ends its process"
            ] = None
            storage = self._ledger.storage(size)
        node = self._node(var, frame)
        label = self._path(var, frame) if node is None else frame.path + str(self._own(var, frame))
        return Tensor(self._ledger.allocation(label, node, size, storage), shape)

    def _either(self, value: relax.If, frame: _Frame) -> Thing:
        """Run both branches from the same beginning, and go on from the one that holds more."""
        before, things = self._ledger.state(), dict(frame.things)
        ends = []
        for branch in (value.true_branch, value.false_branch):
            self._ledger.go_back(before)
            frame.things = dict(things)
            result = self._body(branch, frame)
            self._ledger.hold(result)
            ends.append((self._ledger.state(), frame.things, result))
        one, other = ends
        chosen, left = (one, other) if one[0].held >= other[0].held else (other, one)
        frame.things = chosen[1]
        self._ledger.go_on(chosen[0], left[0])
        return chosen[2]

    def _own(self, var: ir.Var | None, frame: _Frame) -> NodeId | None:
        return self._traces[frame.function].origins.get(var)

    def _node(self, var: ir.Var | None, frame: _Frame) -> NodeId | None:
        """Return the id of the node whose value a variable has, as where calls are opened."""
        own = self._own(var, frame)
        if own is None or not frame.path:
            return own
        return None if frame.call is None else within(frame.call, own)

    def _path(self, var: ir.Var | None, frame: _Frame) -> str:
        return frame.path + ("" if var is None else str(self._own(var, frame) or var.name))


def _is_result(value: ir.Expr) -> bool:
    """Tell whether what the value gives is held already: the result of a branch or a function."""
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


def _outside(type_: ir.Type | None, extents: Extents) -> Thing:
    """Return a value of a type whose memory is not counted."""
    match type_:
        case relax.TensorType():
            return Tensor(None, extents.known(type_))
        case ir.TupleType():
            return tuple(_outside(each, extents) for each in type_.fields)
        case _:
            return None


def _has_tensor(thing: Thing) -> bool:
    if isinstance(thing, tuple):
        return any(map(_has_tensor, thing))
    return isinstance(thing, Tensor)


def _given(type_: ir.Type, extents: Extents) -> int:
    """Return the size of a parameter's tensors in bytes, as far as they are known."""
    found = [(extents.known(one), one.dtype) for one in tensors(type_)]
    return sum(nbytes(shape, dtype) for shape, dtype in found if shape is not None and dtype)


def _shape(argument: ir.Expr, thing: Thing, extents: Extents) -> Shape | None:
    """Return the shape of an argument, or that which it is."""
    if isinstance(argument, relax.ShapeExpr):
        return extents.known(argument.ty)
    return thing.shape if isinstance(thing, Tensor) else None
