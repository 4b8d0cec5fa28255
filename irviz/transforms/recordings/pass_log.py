"""The log of passes, written while they run, and the tree of pass runs that is read from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tvm import ir
from tvm.ir.transform import PassInfo
from tvm_ffi import structural_equal

from irviz.units import format_duration


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
    """

    events: list[_Event] = field(default_factory=list)
    cost: float = 0.0
    end: float | None = None
    error: str = ""
    depth: int = 0
    start: float = 0.0

    def note(self, info: PassInfo | None, mod: ir.IRModule, at: float) -> None:
        """Store that a pass begins; without `info`, that the innermost one has ended."""
        # a copy (functions are shared), because some passes modify the module that they are given
        self.events.append((at, info, mod.clone(), 0, ""))

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
    return (line if len(line) <= 80 else f"{line[:79]}…") or "(no name)"
