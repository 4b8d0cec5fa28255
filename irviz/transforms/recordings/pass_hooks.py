"""Log every pass that a thread runs, in any PassContext.

Contexts do not inherit instruments from each other. So while there is a log, entering a context
adds our instruments to it, and leaving it removes them again.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import tvm_ffi
from tvm import ir
from tvm.ir.instrument import pass_instrument
from tvm.ir.transform import Pass, PassContext, PassInfo

from irviz.transforms.recordings.pass_log import PassLog, error_text


@dataclass
class _Thread(threading.local):
    """The logs of one thread, the number of running passes, the cost of logging."""

    logs: tuple[PassLog, ...] = ()
    entered: list[PassContext] = field(default_factory=list)
    open: int = 0
    cost: float = 0.0

    def now(self) -> float:
        """Return the seconds of a clock that stops during logging."""
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
        """Instrument the current context if it was entered before the hooks were installed."""
        current = PassContext.current()
        if not any(current.same_as(one) for one in reversed(self.entered)):
            self.enter(current)

    def note(self, info: PassInfo | None, mod: ir.IRModule) -> None:
        """Log that a pass begins; without `info`, that the innermost one has ended."""
        now = perf_counter()
        if self.logs:
            at = now - self.cost
            self.open = max(self.open - 1, 0) if info is None else self.open + 1
            for log in self.logs:
                log.note(info, mod, at)
            self.cost += perf_counter() - now

    def raised(self, depth: int, failure: BaseException) -> None:
        """Log that an exception has left all passes but the outermost `depth`."""
        if self.open > depth:
            at, self.open = self.now(), depth
            for log in self.logs:
                log.raised(depth, failure, at)


_thread = _Thread()


@contextmanager
def logging_passes(log: PassLog) -> Iterator[None]:
    """Log the passes that this thread runs inside the block."""
    cost = _thread.cost
    _hooks.install()
    try:
        _thread.follow()
        log.depth, log.start = _thread.open, _thread.now()
        _thread.logs = (*_thread.logs, log)
        yield
    except BaseException as failure:
        log.error = error_text(failure)
        raise
    finally:
        log.end, log.cost = _thread.now() - log.start, _thread.cost - cost
        _thread.logs = tuple(other for other in _thread.logs if other is not log)
        if not _thread.logs:
            while _thread.entered:
                _remove(_thread.entered.pop())
            _thread.open = 0
        _hooks.remove()


@pass_instrument
class _BeginInstrument:
    """The last instrument of a context, so that no pass's time includes other instruments."""

    def run_before_pass(self, mod: ir.IRModule, info: PassInfo) -> None:
        """Note that a pass begins."""
        _thread.note(info, mod)


@pass_instrument
class _EndInstrument:
    """The first instrument of a context, for the same reason."""

    def run_after_pass(self, mod: ir.IRModule, info: PassInfo) -> None:  # noqa: ARG002 - TVM's
        """Note that a pass has ended."""
        _thread.note(None, mod)


_END, _BEGIN = _EndInstrument(), _BeginInstrument()
_FIELDS = {one.name: one for one in PassContext.__tvm_ffi_type_info__.fields}


@dataclass
class _Instrumented:
    """A context that has our instruments, with its own ones and how often it has been entered."""

    context: PassContext
    before: tvm_ffi.Array[Any]
    count: int = 1


_still_read: deque[tvm_ffi.Array[Any]] = deque(maxlen=1024)
"""Replaced lists, kept alive because another thread may still iterate over one."""
_lock = threading.Lock()
_instrumented: dict[int, _Instrumented] = {}


def _install(context: PassContext) -> None:
    """Add our instruments around those of a context."""
    key = context.__chandle__()
    with _lock:
        if key in _instrumented:  # entered once more, perhaps by another thread
            _instrumented[key].count += 1
            return
        before = context.instruments
        _instrumented[key] = _Instrumented(context, before)
        _set_instruments(context, tvm_ffi.convert(_with_ours(before)))


def _remove(context: PassContext) -> None:
    """Remove our instruments; those that others have added since stay."""
    key = context.__chandle__()
    with _lock:
        held = _instrumented[key]
        held.count -= 1
        if held.count:
            return
        del _instrumented[key]
        left = _without_ours(context.instruments)
        is_as_before = len(left) == len(held.before) and all(
            one.same_as(other) for one, other in zip(left, held.before, strict=True)
        )
        _set_instruments(context, held.before if is_as_before else tvm_ffi.convert(left))


def _set_instruments(context: PassContext, instruments: tvm_ffi.Array[Any]) -> None:
    _still_read.append(context.instruments)
    # not by `override_instruments`, which exits and enters those that stay: TVM's own timing
    # instrument then forgets what it has measured
    _FIELDS["instruments"].setter(context, instruments)


def _with_ours(instruments: Iterable[Any]) -> list[Any]:
    return [_END, *_without_ours(instruments), _BEGIN]


def _without_ours(instruments: Iterable[Any]) -> list[Any]:
    return [one for one in instruments if not (one.same_as(_END) or one.same_as(_BEGIN))]


Method = Callable[..., Any]


class _Hooks:
    """Wraps methods of TVM's classes while any thread has a log."""

    def __init__(self, wrappers: dict[tuple[type, str], Method]) -> None:
        self._wrappers = wrappers
        self._lock = threading.Lock()
        self._count = 0
        self._wrapped: dict[tuple[type, str], tuple[Method, Method]] = {}

    def install(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == 1:
                for (owner, name), wrapper in self._wrappers.items():
                    theirs = getattr(owner, name)
                    ours = functools.wraps(theirs)(_around(theirs, wrapper))
                    self._wrapped[owner, name] = theirs, ours
                    setattr(owner, name, ours)

    def remove(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                for (owner, name), (theirs, ours) in self._wrapped.items():
                    if getattr(owner, name) is ours:  # else somebody has wrapped it since
                        setattr(owner, name, theirs)
                self._wrapped.clear()


def _around(theirs: Method, wrapper: Method) -> Method:
    def ours(self: object, *arguments: Any, **named: Any) -> Any:
        return wrapper(theirs, self, *arguments, **named)

    return ours


def _enter(theirs: Method, context: PassContext) -> Any:
    result = theirs(context)
    if _thread.logs:
        _thread.enter(context)
    return result


def _exit(theirs: Method, context: PassContext, *failure: Any) -> Any:
    _thread.leave(context)
    return theirs(context, *failure)


def _override(theirs: Method, context: PassContext, instruments: Iterable[Any]) -> Any:
    with _lock:
        is_ours = context.__chandle__() in _instrumented
    return theirs(context, _with_ours(instruments) if is_ours else instruments)


def _call(theirs: Method, called: Pass, *arguments: Any, **named: Any) -> Any:
    depth = _thread.open
    if _thread.logs:
        now = perf_counter()
        _thread.follow()
        _thread.cost += perf_counter() - now
    try:
        return theirs(called, *arguments, **named)
    except BaseException as failure:  # TVM does not notify its instruments of it
        _thread.raised(depth, failure)
        raise


_hooks = _Hooks(
    {
        (PassContext, "__enter__"): _enter,
        (PassContext, "__exit__"): _exit,
        (PassContext, "override_instruments"): _override,
        (Pass, "__call__"): _call,
    }
)
