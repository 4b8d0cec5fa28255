"""Hear every pass that a thread runs, in whatever PassContext it runs it.

Contexts do not inherit instruments from each other. So, while somebody listens, entering one puts
instruments of ours into it, and leaving it takes them out again.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import tvm_ffi
from tvm import ir
from tvm.ir.instrument import pass_instrument
from tvm.ir.transform import Pass, PassContext, PassInfo


class Listener(Protocol):
    """What is told of passes. Times are seconds of a clock that stands still meanwhile."""

    def start(self, depth: int, at: float) -> None:
        """Hear that passes are heard from now on; `depth` of them run already."""

    def began(self, info: PassInfo, mod: ir.IRModule, at: float) -> None:
        """Hear that a pass begins."""

    def ended(self, mod: ir.IRModule, at: float) -> None:
        """Hear that the innermost pass has returned a module."""

    def raised(self, depth: int, failure: BaseException, at: float) -> None:
        """Hear that an exception has left all passes but the outermost `depth`."""

    def stop(self, at: float, cost: float) -> None:
        """Hear no more; listening took `cost` seconds."""


@dataclass
class _Ear:
    """What one thread hears: who listens, how many passes run, what hearing has cost."""

    listeners: tuple[Listener, ...] = ()
    entered: list[PassContext] = field(default_factory=list)
    open: int = 0
    cost: float = 0.0

    def now(self) -> float:
        return perf_counter() - self.cost

    def enter(self, context: PassContext) -> None:
        _install(context)
        self.entered.append(context)

    def leave(self, context: PassContext) -> None:
        for index in reversed(range(len(self.entered))):
            if self.entered[index].same_as(context):
                _remove(self.entered.pop(index))
                return

    def follow(self) -> None:
        """Hear the current context, if that is one whose entering was not seen.

        A `with` that stands around the recording leaves its context by TVM's own method.
        """
        current = PassContext.current()
        if not any(current.same_as(one) for one in reversed(self.entered)):
            self.enter(current)

    def raised(self, depth: int, failure: BaseException) -> None:
        if self.open > depth:
            at, self.open = self.now(), depth
            for listener in self.listeners:
                listener.raised(depth, failure, at)


_local = threading.local()


def _ear() -> _Ear:
    try:
        ear: _Ear = _local.ear
    except AttributeError:
        ear = _local.ear = _Ear()
    return ear


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell the listener of the passes that this thread runs until the block is over."""
    ear = _ear()
    cost = ear.cost
    _hooks.hang()
    try:
        ear.follow()
        listener.start(ear.open, ear.now())
        ear.listeners = (*ear.listeners, listener)
        yield
    finally:
        listener.stop(ear.now(), ear.cost - cost)
        ear.listeners = tuple(other for other in ear.listeners if other is not listener)
        if not ear.listeners:
            while ear.entered:
                _remove(ear.entered.pop())
            ear.open = 0
        _hooks.take_down()


@pass_instrument
class Opening:
    """Stands last in a context, so that what other instruments do is in no pass's time."""

    def run_before_pass(self, mod: ir.IRModule, info: PassInfo) -> None:
        """Tell that a pass begins."""
        now = perf_counter()
        ear = _ear()
        if ear.listeners:
            at = now - ear.cost
            ear.open += 1
            for listener in ear.listeners:
                listener.began(info, mod, at)
            ear.cost += perf_counter() - now


@pass_instrument
class Closing:
    """Stands first in a context, for the same reason."""

    def run_after_pass(self, mod: ir.IRModule, info: PassInfo) -> None:  # noqa: ARG002 - TVM's
        """Tell that a pass has ended."""
        now = perf_counter()
        ear = _ear()
        if ear.listeners:
            at = now - ear.cost
            ear.open = max(ear.open - 1, 0)
            for listener in ear.listeners:
                listener.ended(mod, at)
            ear.cost += perf_counter() - now


_CLOSING, _OPENING = Closing(), Opening()
_FIELDS = {one.name: one for one in PassContext.__tvm_ffi_type_info__.fields}


@dataclass
class _Held:
    """A context that has our instruments, what it had before, and how often it is entered."""

    context: PassContext
    before: tvm_ffi.Array[Any]
    count: int = 1


_still_read: deque[tvm_ffi.Array[Any]] = deque(maxlen=1024)
"""Lists that were replaced: another thread may be going through one that nothing else holds."""
_lock = threading.Lock()
_held: dict[int, _Held] = {}


def _install(context: PassContext) -> None:
    """Put our instruments around those of a context."""
    key = context.__chandle__()
    with _lock:
        if key in _held:  # entered once more, perhaps by another thread
            _held[key].count += 1
            return
        before = context.instruments
        _held[key] = _Held(context, before)
        _set_instruments(context, tvm_ffi.convert(_with_ours(before)))


def _remove(context: PassContext) -> None:
    """Take our instruments out again; those that others have put in meanwhile stay."""
    key = context.__chandle__()
    with _lock:
        held = _held[key]
        held.count -= 1
        if held.count:
            return
        del _held[key]
        left = _without_ours(context.instruments)
        is_as_before = len(left) == len(held.before) and all(
            one.same_as(other) for one, other in zip(left, held.before, strict=True)
        )
        _set_instruments(context, held.before if is_as_before else tvm_ffi.convert(left))


def _set_instruments(context: PassContext, instruments: tvm_ffi.Array[Any]) -> None:
    _still_read.append(context.instruments)
    # past `override_instruments`, which tells those that stay that the context is left and entered:
    # TVM's own timing instrument forgets what it has measured then
    _FIELDS["instruments"].setter(context, instruments)


def _with_ours(instruments: Iterable[Any]) -> list[Any]:
    return [_CLOSING, *_without_ours(instruments), _OPENING]


def _without_ours(instruments: Iterable[Any]) -> list[Any]:
    return [one for one in instruments if not (one.same_as(_CLOSING) or one.same_as(_OPENING))]


Method = Callable[..., Any]


class _Hooks:
    """The methods of TVM's classes that are ours while somebody listens, in whichever thread."""

    def __init__(self, wrappers: dict[tuple[type, str], Callable[[Method], Method]]) -> None:
        self._wrappers = wrappers
        self._lock = threading.Lock()
        self._count = 0
        self._hung: dict[tuple[type, str], tuple[Method, Method]] = {}

    def hang(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == 1:
                for (owner, name), wrap in self._wrappers.items():
                    theirs = getattr(owner, name)
                    ours = functools.wraps(theirs)(wrap(theirs))
                    self._hung[owner, name] = theirs, ours
                    setattr(owner, name, ours)

    def take_down(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                for (owner, name), (theirs, ours) in self._hung.items():
                    if getattr(owner, name) is ours:  # else somebody has hung theirs over it
                        setattr(owner, name, theirs)
                self._hung.clear()


def _entering(enter: Method) -> Method:
    def entered(self: PassContext) -> Any:
        result = enter(self)
        ear = _ear()
        if ear.listeners:
            ear.enter(self)
        return result

    return entered


def _leaving(leave: Method) -> Method:
    def left(self: PassContext, *failure: Any) -> Any:
        _ear().leave(self)
        return leave(self, *failure)

    return left


def _overriding(override: Method) -> Method:
    def overridden(self: PassContext, instruments: Iterable[Any]) -> Any:
        with _lock:
            is_held = self.__chandle__() in _held
        return override(self, _with_ours(instruments) if is_held else instruments)

    return overridden


def _calling(call: Method) -> Method:
    def called(self: Pass, *arguments: Any, **named: Any) -> Any:
        ear = _ear()
        depth = ear.open
        if ear.listeners:
            ear.follow()
        try:
            return call(self, *arguments, **named)
        except BaseException as failure:  # TVM tells its instruments nothing of it
            ear.raised(depth, failure)
            raise

    return called


_hooks = _Hooks(
    {
        (PassContext, "__enter__"): _entering,
        (PassContext, "__exit__"): _leaving,
        (PassContext, "override_instruments"): _overriding,
        (Pass, "__call__"): _calling,
    }
)
