"""The stages of a recording, and the transform that runs a recorded pass again."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tvm
from tvm import ir
from tvm_ffi import structural_equal

from irviz.errors import TransformError
from irviz.loaders.models.imported_layers import known_layers
from irviz.transforms.passes.as_transform import default_pass_call, write_by_name
from irviz.transforms.passes.pass_call import PassCall, named_pass
from irviz.transforms.python_script import PythonScript
from irviz.transforms.recordings.pass_log import PassRun, short_line
from irviz.transforms.stage import Stage
from irviz.transforms.transform import SavedAs, Transform

ConstantNames = Mapping[tvm.runtime.Tensor, str]

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
    def tried_as(self) -> PassCall | None:
        """The catalog's pass of this name."""
        return default_pass_call(self.name)

    @property
    def evaluates_code(self) -> bool:
        """Whether the catalog's pass does."""
        return self.tried_as is not None and self.tried_as.evaluates_code

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Run the catalog's pass of this name; raise TransformError if there is none."""
        try:
            call = named_pass(self.name)
        except TransformError as refusal:
            raise TransformError(
                f"{self.label!r} was recorded by its name alone, and cannot be run again: {refusal}"
            ) from None
        return call(mod)

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if it gives the same module."""
        write_by_name(self.name, script, before, after, f"{self.label} was recorded")


def stages_of(steps: Sequence[PassRun], constant_names: ConstantNames) -> tuple[Stage, ...]:
    """Return a stage for each module that the passes made."""
    builder = _StageBuilder(constant_names)
    for step in steps:
        builder.begin(step)
    return tuple(builder.stages)


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
        self._first: dict[int, Stage] = {}  # by the module's address
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
        there = self._first.get(mod.__chandle__())
        self._at = there or self._at
        return there is not None

    def _put(self, stage: Stage) -> None:
        self.stages.append(stage)
        if not stage.error:
            self._first.setdefault(stage.module.__chandle__(), stage)
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
    functions, names = _contents(mod)

    def shared(stage: Stage) -> tuple[int, int]:
        theirs, their_names = _contents(stage.module)
        return len(functions & theirs), len(names & their_names)

    near = [stage for stage in stages if stage is not None and shared(stage)[1]]
    return max(near, key=shared, default=None)


def _contents(mod: ir.IRModule) -> tuple[set[int], set[int]]:
    """Return the addresses of a module's functions, and of their GlobalVars."""
    items = mod.functions.items()
    return {one.__chandle__() for _, one in items}, {one.__chandle__() for one, _ in items}
