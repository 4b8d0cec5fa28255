"""The log of passes, written while they run, and the tree of pass runs that is read from it."""

from __future__ import annotations

import functools
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any

import tvm_ffi
from tvm import ir
from tvm.ir.instrument import pass_instrument
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm_ffi import structural_equal

from irviz.units import beginning, format_duration


@dataclass(frozen=True, eq=False)
class PassRun:
    """A pass that ran: the modules before and after, its time, and the passes inside it.

    `after` is None if it did not finish; `error` is the reason, empty if a pass inside it failed.
    Times are in seconds, `start` since the recording began.
    """

    name: str
    before: ir.IRModule
    after: ir.IRModule | None
    start: float
    seconds: float
    children: tuple[PassRun, ...] = ()
    error: str = ""
    depth: int = 0

    @property
    def end(self) -> float:
        """The end time, in seconds since the recording began."""
        return self.start + self.seconds

    @cached_property
    def changed(self) -> bool:
        """Whether it changed the module; compared on first use."""
        if self.after is None or self.after.same_as(self.before):
            return False
        return not structural_equal(self.before, self.after)

    def walk(self) -> Iterator[PassRun]:
        """Yield this pass and the passes inside it, in the order in which they began."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __repr__(self) -> str:
        inside = sum(1 for _ in self.walk()) - 1
        words = [f"{inside} pass{'es' * (inside != 1)} inside"] if inside else []
        outcome = "changed" if self.changed else "unchanged"
        if self.error:
            outcome = f"failed with {short_line(self.error)}"
        elif self.after is None:
            outcome = "not finished"
        words += [format_duration(self.seconds), outcome]
        return f"<PassRun {short_line(self.name)}: {', '.join(words)}>"


_Event = tuple[float, PassInfo | None, ir.IRModule | None, int, str]
"""Time, the pass that begins, the module, the passes that an exception left open, its text.

A plain tuple, because it is created while passes run.
"""


@dataclass
class PassLog:
    """The events of a recording; times are seconds of a clock that stops during logging.

    Attributes:
        cost: The seconds that logging took.
        end: When the recording ended, in seconds since its start.
        error: The exception that ended the recording.
        depth: How many passes were running at the start, which are not in the log.
        start: The time of the start.
        noted: Called with the name of each pass that begins, to show progress.
    """

    events: list[_Event] = field(default_factory=list)
    cost: float = 0.0
    end: float | None = None
    error: str = ""
    depth: int = 0
    start: float = 0.0
    noted: Callable[[str], object] = str

    def note(self, info: PassInfo | None, mod: ir.IRModule, at: float) -> None:
        """Store that a pass begins; without `info`, that the innermost one has ended."""
        # a copy (functions are shared), because some passes modify the module that they are given
        self.events.append((at, info, mod.clone(), 0, ""))
        if info is not None:
            self.noted(short_line(str(info.name)))

    def raised(self, depth: int, failure: BaseException, at: float) -> None:
        """Store that an exception has left all passes but the outermost `depth`."""
        self.events.append((at, None, None, max(depth - self.depth, 0), error_text(failure)))

    @property
    def seconds(self) -> float:
        """The duration of the recording, up to its last event while it runs."""
        if self.end is not None:
            return self.end
        return self.events[-1][0] - self.start if self.events else 0.0

    def read(self) -> tuple[PassRun, ...]:
        """Return the outermost passes; `after` is None for those that have not ended.

        Modules with identical content become one object.
        """
        levels: list[list[PassRun]] = [[]]  # those that have ended, at each depth
        begun: list[tuple[str, ir.IRModule, float]] = []
        seen: dict[tuple[int, ...], ir.IRModule] = {}

        def close(at: float, after: ir.IRModule | None, error: str = "") -> None:
            name, before, start = begun.pop()
            inner = tuple(levels.pop())
            run = PassRun(name, before, after, start, at - start, inner, error, len(begun))
            levels[-1].append(run)

        def fail(at: float, left: int, error: str) -> None:
            while len(begun) > left:
                close(at, None, "" if _is_propagated(error, levels[-1]) else error)

        for time, info, module, left, error in self.events:
            at = time - self.start
            if module is None:
                fail(at, left, error)
                continue
            parts = module.functions, module.attrs, module.global_infos
            mod = seen.setdefault(tuple(part.__chandle__() for part in parts), module)
            if info is not None:
                begun.append((str(info.name), mod, at))
                levels.append([])
            elif begun:  # else it began before the recording
                close(at, mod)
        fail(self.seconds, 0, self.error)
        return tuple(levels[0])


def _is_propagated(error: str, children: Sequence[PassRun]) -> bool:
    """Tell whether an exception came from the last pass inside, not from the pass itself."""
    while children and children[-1].after is None:
        inner = children[-1]
        if inner.error:
            return _bare_message(inner.error) == _bare_message(error)
        children = inner.children
    return False


def _bare_message(error: str) -> str:
    """Return the message without class and quotes, both of which TVM changes on the way up."""
    return re.sub(r"[\\'\"]", "", error.partition(": ")[2])


def error_text(failure: BaseException) -> str:
    """Return the class and the message of an exception."""
    name, text = type(failure).__name__, str(failure)
    return f"{name}: {text}" if text else name


def short_line(text: str) -> str:
    """Return a name or a message in one printable line of at most 80 characters."""
    line = " ".join(text.split())
    line = line if line.isprintable() else ascii(line)[1:-1]
    return beginning(line, 80) or "(no name)"


# --- Log every pass that a thread runs, in any PassContext ---------------------------------------
#
# Contexts do not inherit instruments from each other. So while there is a log, entering a context
# adds our instruments to it, and leaving it removes them again.


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
        if context in self.entered:
            self.entered.remove(context)
            _remove(context)

    def follow(self) -> None:
        """Instrument the current context if it was entered before the hooks were installed."""
        current = PassContext.current()
        if current not in self.entered:
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
    _add_hooks()
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
        _remove_hooks()


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
    """The own instruments of a context that has ours, and how often it has been entered."""

    before: tvm_ffi.Array[Any]
    count: int = 1


_still_read: deque[tvm_ffi.Array[Any]] = deque(maxlen=1024)
"""Replaced lists, kept alive because another thread may still iterate over one."""
_lock = threading.Lock()
_instrumented: dict[PassContext, _Instrumented] = {}


def _install(context: PassContext) -> None:
    """Add our instruments around those of a context."""
    with _lock:
        if context in _instrumented:  # entered once more, perhaps by another thread
            _instrumented[context].count += 1
            return
        before = context.instruments
        _instrumented[context] = _Instrumented(before)
        _set_instruments(context, tvm_ffi.convert(_with_ours(before)))


def _remove(context: PassContext) -> None:
    """Remove our instruments; those that others have added since stay."""
    with _lock:
        held = _instrumented[context]
        held.count -= 1
        if held.count:
            return
        del _instrumented[context]
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
        is_ours = context in _instrumented
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


_HOOKS = (
    (PassContext, "__enter__", _enter),
    (PassContext, "__exit__", _exit),
    (PassContext, "override_instruments", _override),
    (Pass, "__call__", _call),
)
"""The methods of TVM's classes that are wrapped while any thread has a log."""
_hooked: list[tuple[type, str, Method, Method]] = []
_logs = 0


def _add_hooks() -> None:
    global _logs
    with _lock:
        _logs += 1
        if _logs == 1:
            for owner, name, wrapper in _HOOKS:
                theirs = getattr(owner, name)
                ours = _around(theirs, wrapper)
                _hooked.append((owner, name, theirs, ours))
                setattr(owner, name, ours)


def _remove_hooks() -> None:
    global _logs
    with _lock:
        _logs -= 1
        while not _logs and _hooked:
            owner, name, theirs, ours = _hooked.pop()
            if getattr(owner, name) is ours:  # else somebody has wrapped it since
                setattr(owner, name, theirs)


def _around(theirs: Method, wrapper: Method) -> Method:
    @functools.wraps(theirs)
    def ours(self: object, *arguments: Any, **named: Any) -> Any:
        return wrapper(theirs, self, *arguments, **named)

    return ours
