"""Record the passes that a block of code runs, as a tree, as times and as stages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from tvm import ir
from tvm_ffi import structural_equal

from irviz.errors import StageError, TransformError
from irviz.ir.function_graph import ConstantNames
from irviz.loaders.models.imported_layers import known_layers
from irviz.progress import Progress
from irviz.transforms.export_python import PythonScript
from irviz.transforms.pass_log import PassLog, PassRun, logging_passes, short_line
from irviz.transforms.passes import pass_transform
from irviz.transforms.stage import SavedAs, Stage, Transform
from irviz.units import format_duration
from irviz.view.pass_times import PassTimes, TimedPass


class Recording:
    """The passes that a block of code ran, with the module before and after each.

    Inside the block it holds the passes that have run so far. Modules are compared on demand, not
    while passes run.
    """

    def __init__(self, log: PassLog) -> None:
        self._log = log
        self._read: tuple[object, tuple[PassRun, ...]] = (None, ())

    @property
    def steps(self) -> tuple[PassRun, ...]:
        """The outermost passes, with nested ones as their `children`."""
        state = len(self._log.events), self._log.end
        if self._read[0] != state:
            self._read = state, self._log.read()
        return self._read[1]

    def walk(self) -> Iterator[PassRun]:
        """Yield all passes in the order in which they started."""
        for step in self.steps:
            yield from step.walk()

    @property
    def flat(self) -> tuple[PassRun, ...]:
        """The passes that contain no other, in order."""
        return tuple(step for step in self.walk() if not step.children)

    @property
    def given(self) -> ir.IRModule | None:
        """The module before the first pass, None if no pass ran."""
        return self.steps[0].before if self.steps else None

    @property
    def failed(self) -> tuple[PassRun, ...]:
        """The passes that raised, in chronological order, even if the exception was caught."""
        raised = (step for step in self.walk() if step.error)
        return tuple(sorted(raised, key=lambda step: (step.end, -step.depth)))

    @property
    def error(self) -> str:
        """The exception that ended the block, as text; "" if none did."""
        return self._log.error

    @property
    def seconds(self) -> float:
        """The duration of the block in seconds, without the cost of recording."""
        return self._log.seconds

    @property
    def cost(self) -> float:
        """The cost of recording, in seconds."""
        return self._log.cost

    def pass_times(self) -> PassTimes:
        """Return where the time went: own and total time per pass, and the time outside of passes.

        None of these include the cost of recording.
        """
        passes = tuple(map(_timed, self.steps))
        return PassTimes(TimedPass("recording", 0.0, self.seconds, passes))

    def stages(self, constant_names: ConstantNames = MappingProxyType({})) -> tuple[Stage, ...]:
        """Return the recorded modules as stages, with ids from "0", parents first.

        A module that does not derive from an earlier one is labelled like the first.
        `constant_names` maps constants to their names at the start of the recording.
        """
        builder = _StageBuilder(constant_names)
        for step in self.steps:
            builder.begin(step)
        return tuple(builder.stages)

    def __repr__(self) -> str:
        return f"<Recording: {self._summary()}>"

    def __str__(self) -> str:
        """Return an outline: a line per pass with its time, and a dot if it changed nothing."""
        return "\n".join([self._summary(), *map(_line, self.walk())])

    def _summary(self) -> str:
        steps = tuple(self.walk())
        changed = sum(step.changed for step in steps)
        parts = [
            f"{len(steps)} pass{'es' * (len(steps) != 1)}",
            format_duration(self.seconds),
            f"{changed} changed something",
        ]
        failed = self.failed
        if failed:
            more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            parts.append(f"{short_line(failed[0].name)} failed{more}")
        elif self.error:
            parts.append(f"ended by {short_line(self.error)}")
        return ", ".join(parts)


RecordingType = TypeVar("RecordingType", bound=Recording)


@contextmanager
def record_passes(kind: type[RecordingType] = Recording) -> Iterator[RecordingType]:  # type: ignore[assignment]
    """Record every pass that this thread runs inside the block.

    Passes are recorded in every PassContext that the block enters, next to its own instruments, and
    every context is restored afterwards. Exceptions propagate; the recording keeps the passes up to
    then, including the one that raised. Passes of other threads are not recorded.
    """
    with closing(Progress("recording", "passes")) as shown:
        log = PassLog(noted=shown.step)
        with logging_passes(log):
            yield kind(log)


def _timed(step: PassRun) -> TimedPass:
    inner = tuple(map(_timed, step.children))
    return TimedPass(step.name, step.start, step.seconds, inner, step.changed, step.error)


def _line(step: PassRun) -> str:
    if step.error:
        mark, words = "✗", f"{short_line(step.name)}: {short_line(step.error)}"
    else:
        mark, words = " " if step.changed else "·", short_line(step.name)
    if step.after is None and not step.error:
        mark, words = "…", f"{words}: not finished"
    return f"{format_duration(step.seconds):>8}  {'  ' * step.depth}{mark} {words}"


# --- The times of stages that were recorded, also in a saved session -----------------------------


_DEEPEST = 50
"""How many enclosing passes are distinguished; a file may name any number."""


@dataclass
class _Passes:
    """A pass with its nested passes, while stages are read."""

    name: str
    seconds: float = 0.0
    children: list[_Passes] = field(default_factory=list)
    is_changed: bool = False
    error: str = ""
    stage: str = ""

    def timed(self, start: float) -> TimedPass:
        at, inner = start, []
        for child in self.children:
            inner.append(child.timed(at))
            at += inner[-1].seconds
        end = at + self.seconds
        what = self.is_changed, self.error, self.stage
        return TimedPass(self.name, start, end - start, tuple(inner), *what)


def stage_times(stages: Sequence[Stage]) -> PassTimes:
    """Return the times of recorded passes, one after the other.

    A stage records its pass's own time. The time of enclosing passes after their last stage, and
    the time outside of passes, are unknown.

    Raises:
        StageError: No stage was recorded.
    """
    root = _Passes("stages")
    enclosing: dict[tuple[str, ...], _Passes] = {(): root}
    for stage in stages:
        if stage.seconds is None:
            continue
        around, names = root, stage.enclosing_passes[:_DEEPEST]
        is_changed = not stage.is_unchanged and not stage.error
        for depth in range(1, len(names) + 1):
            path = names[:depth]
            if path not in enclosing:  # each has a number where names are repeated
                enclosing[path] = _Passes(path[-1].partition("#")[0])
                around.children.append(enclosing[path])
            around = enclosing[path]
            around.is_changed |= is_changed
            around.stage = stage.id  # the last one inside it is what it made
        last = around.children[-1] if around.children else None
        if last is not None and last.children and last.name == stage.label:
            made = last  # what it did itself after the passes inside it
        else:
            made = _Passes(stage.label)
            around.children.append(made)
        made.seconds += stage.seconds
        made.is_changed |= is_changed
        made.stage = stage.id
        made.error = short_line(stage.error) if stage.error else ""
    if not root.children:
        raise StageError(
            "no stage has a time: record the passes, as in `with irviz.record() as recording`"
        )
    return PassTimes(root.timed(0.0))


# --- Stages of what was recorded -----------------------------------------------------------------


OUTSIDE = "outside of passes"
"""The label of a stage whose module was derived from another one, but not by a pass."""


@dataclass(frozen=True)
class RecordedPass(Transform):
    """A pass that was recorded; only its name is known, not its arguments."""

    saved_as = SavedAs("recorded", {"name": str})

    name: str

    @property
    def label(self) -> str:
        """The pass's name in one short line."""
        return short_line(self.name)

    @property
    def tried_as(self) -> pass_transform.PassCall | None:
        """The catalog's pass of this name."""
        return pass_transform.default_pass_call(self.name)

    @property
    def evaluates_code(self) -> bool:
        """Whether the catalog's pass does."""
        return self.tried_as is not None and self.tried_as.evaluates_code

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Run the catalog's pass of this name; raise TransformError if there is none."""
        try:
            call = pass_transform.named_pass(self.name)
        except TransformError as refusal:
            raise TransformError(
                f"{self.label!r} was recorded by its name alone, and cannot be run again: {refusal}"
            ) from None
        return call(mod)

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if it gives the same module."""
        pass_transform.write_by_name(self.name, script, before, after, f"{self.label} was recorded")


class _StageBuilder:
    """Builds a tree of stages; `_at` is the stage where the next pass begins.

    Changes that a pass makes itself, before, between or after the passes inside it, are stages too.
    A module that it builds on the side, as FoldConstant does, is not, because no part of it is
    used.
    """

    def __init__(self, constant_names: ConstantNames) -> None:
        self.stages: list[Stage] = []
        self._names = constant_names
        self._at: Stage | None = None
        self._first: dict[ir.IRModule, Stage] = {}
        self._passes: set[str] = set()

    def begin(self, step: PassRun) -> None:
        """Add an outermost pass."""
        if not self._move_to(step.before):
            parent = _nearest(step.before, self._at)
            if parent is None:
                number, layers = str(len(self.stages)), known_layers(step.before)
                self._put(Stage(number, step.before, constant_names=self._names, layers=layers))
            else:
                self._add_stage(OUTSIDE, step.before, parent, None, ())
        self._add(step, ())

    def _add(self, step: PassRun, within: tuple[str, ...]) -> None:
        """Add a pass at the stage that has the module before it."""
        origin, count, clock = self._at, len(self.stages), step.start
        assert origin is not None
        inner = (*within, self._numbered(short_line(step.name))) if step.children else within
        for child in step.children:
            if not self._move_to(child.before):
                parent = _nearest(child.before, self._at, origin)
                if parent is None:
                    continue
                self._add_stage(step.name, child.before, parent, child.start - clock, within)
            self._add(child, inner)
            clock = child.end
        seconds = step.end - clock
        if step.error:
            at = self._at or origin
            self._add_stage(
                step.name, at.module, at, seconds, within, is_same=False, error=step.error
            )
        elif step.after is not None and (
            len(self.stages) == count or not self._move_to(step.after)
        ):
            parent = _nearest(step.after, self._at, origin) or origin
            is_all = parent is origin and len(self.stages) == count
            is_same = not step.changed if is_all else None
            self._add_stage(step.name, step.after, parent, seconds, within, is_same)

    def _move_to(self, mod: ir.IRModule) -> bool:
        """Move to the stage with this module itself; return whether there is one."""
        if self._at is not None and self._at.module.same_as(mod):
            return True
        there = self._first.get(mod)
        self._at = there or self._at
        return there is not None

    def _put(self, stage: Stage) -> None:
        self.stages.append(stage)
        if not stage.error:
            self._first.setdefault(stage.module, stage)
            self._at = stage

    def _add_stage(
        self,
        name: str,
        mod: ir.IRModule,
        parent: Stage,
        seconds: float | None,
        within: tuple[str, ...],
        is_same: bool | None = None,
        error: str = "",
    ) -> None:
        transform = RecordedPass(name)
        if is_same is None:
            is_same = mod.same_as(parent.module) or structural_equal(parent.module, mod)
        self._put(
            Stage(
                str(len(self.stages)),
                mod,
                transform.label,
                parent.id,
                transform,
                error,
                self._names,
                seconds=seconds,
                enclosing_passes=within,
                is_unchanged=is_same,
                made_from=parent,
            )
        )

    def _numbered(self, name: str) -> str:
        """Return a name that is unique among enclosing passes, such as "sequential#2"."""
        names = itertools.chain([name], (f"{name}#{count}" for count in itertools.count(2)))
        unique = next(each for each in names if each not in self._passes)
        self._passes.add(unique)
        return unique


def _nearest(mod: ir.IRModule, *stages: Stage | None) -> Stage | None:
    """Return the first of the stages that share most functions with a module, None for none."""
    functions, names = set(mod.functions.values()), set(mod.functions)

    def shared(stage: Stage) -> tuple[int, int]:
        theirs = stage.module.functions
        return len(functions.intersection(theirs.values())), len(names.intersection(theirs))

    near = [stage for stage in stages if stage is not None and shared(stage)[1]]
    return max(near, key=shared, default=None)
