"""A recording: the passes that were run in a block, as a tree, and as stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import tvm
from tvm import ir

from irviz.transforms.recordings.recorded_pass import stages_of
from irviz.transforms.recordings.tape import Step, Tape, shown
from irviz.transforms.stage import Stage

_NO_NAMES: Mapping[tvm.runtime.Tensor, str] = MappingProxyType({})


class Recording:
    """The passes that a block has run, with the modules before and after each.

    It stays as it is from the end of the block on; within the block it is what there is so far.
    Modules are compared when somebody asks what changed, not while passes run.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._read: tuple[object, tuple[Step, ...]] = (None, ())

    @property
    def steps(self) -> tuple[Step, ...]:
        """The outermost passes, those inside of them as their `children`."""
        state = len(self._tape.events), self._tape.end
        if self._read[0] != state:
            self._read = state, self._tape.read()
        return self._read[1]

    def walk(self) -> Iterator[Step]:
        """Yield all passes in the order in which they began."""
        for step in self.steps:
            yield from step.walk()

    @property
    def flat(self) -> tuple[Step, ...]:
        """The passes that have none inside, in their order."""
        return tuple(step for step in self.walk() if not step.children)

    @property
    def given(self) -> ir.IRModule | None:
        """The module that the first pass was given; None when none was run."""
        return self.steps[0].before if self.steps else None

    @property
    def failed(self) -> tuple[Step, ...]:
        """The passes that raised, the first to do so first, whether or not somebody caught it."""
        raised = (step for step in self.walk() if step.error)
        return tuple(sorted(raised, key=lambda step: (step.end, -step.depth)))

    @property
    def error(self) -> str:
        """What ended the block, or "" when nothing did."""
        return self._tape.error

    @property
    def seconds(self) -> float:
        """How long the block took, without the recording; until its last pass while it runs."""
        return self._tape.seconds

    @property
    def cost(self) -> float:
        """How many seconds the recording itself took."""
        return self._tape.cost

    def stages(
        self, constant_names: Mapping[tvm.runtime.Tensor, str] = _NO_NAMES
    ) -> tuple[Stage, ...]:
        """Return the stages of the modules, ids from "0", parents before what was made of them.

        Modules that come from none before are "given", as the first is. `constant_names` are
        those that constants had when the recording began.
        """
        return stages_of(self.steps, constant_names)

    def __repr__(self) -> str:
        return f"<Recording: {self._summary()}>"

    def __str__(self) -> str:
        """Return an outline: a line a pass with its time, a dot where it changed nothing."""
        return "\n".join([self._summary(), *map(_line, self.walk())])

    def _summary(self) -> str:
        steps = tuple(self.walk())
        changed = sum(step.changed for step in steps)
        parts = [
            f"{len(steps)} pass{'es' * (len(steps) != 1)}",
            f"{1e3 * self.seconds:.1f} ms",
            f"{changed} changed something",
        ]
        failed = self.failed
        if failed:
            more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            parts.append(f"{shown(failed[0].name)} failed{more}")
        elif self.error:
            parts.append(f"ended by {shown(self.error)}")
        return ", ".join(parts)


def _line(step: Step) -> str:
    if step.error:
        mark, words = "✗", f"{shown(step.name)}: {shown(step.error)}"
    else:
        mark, words = " " if step.changed else "·", shown(step.name)
    if step.after is None and not step.error:
        mark, words = "…", f"{words}: not finished"
    return f"{1e3 * step.seconds:9.2f} ms  {'  ' * step.depth}{mark} {words}"
