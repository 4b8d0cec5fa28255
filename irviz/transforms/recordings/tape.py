"""A tape takes down what passes do while they run; the tree of them is read from it afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tvm import ir
from tvm.ir.transform import PassInfo
from tvm_ffi import structural_equal


@dataclass(frozen=True, eq=False)
class Step:
    """A pass that was run: the module before and after it, its time, the passes inside of it.

    `after` is None when it did not come to its end; `error` says why, and is empty when it was a
    pass inside of it that failed. Times are in seconds: `start` since the recording began.
    """

    name: str
    before: ir.IRModule
    after: ir.IRModule | None
    start: float
    seconds: float
    children: tuple[Step, ...] = ()
    error: str = ""
    depth: int = 0

    @property
    def end(self) -> float:
        """When it was over, in seconds since the recording began."""
        return self.start + self.seconds

    @property
    def own_seconds(self) -> float:
        """Its time without that of the passes inside of it."""
        return self.seconds - sum(child.seconds for child in self.children)

    @cached_property
    def changed(self) -> bool:
        """Whether the module is another one afterwards; compared when first asked for."""
        if self.after is None or self.after.same_as(self.before):
            return False
        return not structural_equal(self.before, self.after)

    def walk(self) -> Iterator[Step]:
        """Yield it and the passes inside of it, in the order in which they began."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __repr__(self) -> str:
        inside = sum(1 for _ in self.walk()) - 1
        words = [f"{inside} pass{'es' * (inside != 1)} inside"] if inside else []
        words += [f"{1e3 * self.seconds:.2f} ms", self.outcome]
        return f"<Step {shown(self.name)}: {', '.join(words)}>"

    @property
    def outcome(self) -> str:
        """What came of it, in a word or with its error."""
        if self.error:
            return f"failed with {shown(self.error)}"
        if self.after is None:
            return "not finished"
        return "changed" if self.changed else "unchanged"


_Event = tuple[float, PassInfo | None, ir.IRModule | None, int, str]
"""When, the pass that begins, the module, how many passes an exception has left open, and it.

A plain tuple, as it is made while passes run.
"""


@dataclass
class Tape:
    """A listener that takes down what it hears. `cost` is what listening took, in seconds."""

    events: list[_Event] = field(default_factory=list)
    cost: float = 0.0
    end: float | None = None
    error: str = ""
    _depth: int = 0
    _start: float = 0.0

    def start(self, depth: int, at: float) -> None:
        """Begin at this depth of passes, which are not on the tape."""
        self._depth, self._start = depth, at

    def began(self, info: PassInfo, mod: ir.IRModule, at: float) -> None:
        """Take down that a pass begins."""
        # a copy of the module shares its functions; some passes write into the very module
        self.events.append((at, info, mod.clone(), 0, ""))

    def ended(self, mod: ir.IRModule, at: float) -> None:
        """Take down that a pass has ended."""
        self.events.append((at, None, mod.clone(), 0, ""))

    def raised(self, depth: int, failure: BaseException, at: float) -> None:
        """Take down that an exception has left passes."""
        self.events.append((at, None, None, max(depth - self._depth, 0), said(failure)))

    def stop(self, at: float, cost: float) -> None:
        """Take down when it was over."""
        self.end, self.cost = at - self._start, cost

    def failed(self, failure: BaseException) -> None:
        """Take down what ended the recording."""
        self.error = said(failure)

    @property
    def seconds(self) -> float:
        """How long it ran, until its last event while it does."""
        if self.end is not None:
            return self.end
        return self.events[-1][0] - self._start if self.events else 0.0

    def read(self) -> tuple[Step, ...]:
        """Return the outermost passes; those that have not ended are without a module after.

        Modules of the very same functions are one object in all of them.
        """
        reader = _Reader([[]], [])
        seen: dict[tuple[int, ...], ir.IRModule] = {}
        for time, info, module, left, error in self.events:
            at = time - self._start
            if module is None:
                reader.fail(at, left, error)
                continue
            mod = seen.setdefault(_content(module), module)
            if info is not None:
                reader.open(str(info.name), mod, at)
            else:
                reader.close(at, mod)
        reader.fail(self.seconds, 0, self.error)
        return tuple(reader.levels[0])


def _content(mod: ir.IRModule) -> tuple[int, ...]:
    """Return the addresses of all that a module holds, which is never written to."""
    return tuple(part.__chandle__() for part in (mod.functions, mod.attrs, mod.global_infos))


@dataclass
class _Reader:
    """Puts steps into each other: `levels` are the finished ones at each depth."""

    levels: list[list[Step]]
    begun: list[tuple[str, ir.IRModule, float]]

    def open(self, name: str, before: ir.IRModule, at: float) -> None:
        self.begun.append((name, before, at))
        self.levels.append([])

    def close(self, at: float, after: ir.IRModule | None, error: str = "") -> None:
        if not self.begun:  # it began before the recording
            return
        name, before, start = self.begun.pop()
        children, depth = tuple(self.levels.pop()), len(self.begun)
        step = Step(name, before, after, start, at - start, children, error, depth)
        self.levels[-1].append(step)

    def fail(self, at: float, left: int, error: str) -> None:
        while len(self.begun) > left:
            is_theirs = _is_handed_on(error, self.levels[-1])
            self.close(at, None, "" if is_theirs else error)


def _is_handed_on(error: str, children: Sequence[Step]) -> bool:
    """Tell whether an exception came from the last pass inside, and is not one of its own."""
    while children and children[-1].after is None:
        inner = children[-1]
        if inner.error:
            return _bare(inner.error) == _bare(error)
        children = inner.children
    return False


def _bare(error: str) -> str:
    """Return what is said, without the class and the quotes: TVM changes both on the way up."""
    return re.sub(r"[\\'\"]", "", error.partition(": ")[2])


def said(failure: BaseException) -> str:
    """Return the class of an exception, and what it says."""
    name, text = type(failure).__name__, str(failure)
    return f"{name}: {text}" if text else name


def shown(text: str, most: int = 80) -> str:
    """Return a name or an error as part of a line: short, and without what breaks it."""
    line = " ".join(text.split())
    line = line if line.isprintable() else ascii(line)[1:-1]
    return (line if len(line) <= most else f"{line[: most - 1]}…") or "(no name)"
