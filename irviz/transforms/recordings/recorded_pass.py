"""The stages of a recording, and what makes the module of such a stage once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import tvm
from tvm import ir
from tvm_ffi import structural_equal

from irviz.transforms.passes.catalog import PassCall, named_pass
from irviz.transforms.passes.tvm_pass import by_name, makes
from irviz.transforms.python import Script, UnwritableError
from irviz.transforms.recordings.tape import Step, shown
from irviz.transforms.stage import Stage, TransformError

ConstantNames = Mapping[tvm.runtime.Tensor, str]

OUTSIDE = "outside of passes"
"""The label of a stage whose module was made of another one by no pass."""


@dataclass(frozen=True)
class Recorded:
    """A pass that was run by others; of what it was made with only its name is known."""

    name: str
    constant_names: ConstantNames = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The pass's own name, as part of a line."""
        return shown(self.name)

    @property
    def tried_as(self) -> PassCall | None:
        """The catalog's pass of this name."""
        return by_name(self.name)

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Run the catalog's pass of this name; raise TransformError when there is none."""
        try:
            call = named_pass(self.name)
        except TransformError as refusal:
            raise TransformError(
                f"{self.label!r} was recorded by its name alone, and cannot be run again: {refusal}"
            ) from None
        return call(mod)

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if that makes the same of the module."""
        call = self.tried_as
        if call is None:
            raise UnwritableError(f"{self.label} was recorded, and its name alone does not make it")
        if not makes(call, before, after):
            raise UnwritableError(f"{self.label} was recorded, with arguments of its own")
        call.write(script, before, after)


def stages_of(steps: Sequence[Step], constant_names: ConstantNames) -> tuple[Stage, ...]:
    """Return a stage for each module that the passes made, each with the one it was made from."""
    tree = _Tree(constant_names)
    for step in steps:
        tree.begin(step)
    return tuple(tree.stages)


class _Tree:
    """Grows a tree of stages, `at` one of which the next pass begins.

    What a pass does itself, before, between or after those inside of it, is a stage as well. What
    it builds on the side, as FoldConstant does, makes none: nothing of it is in the module.
    """

    def __init__(self, constant_names: ConstantNames) -> None:
        self.stages: list[Stage] = []
        self._names = constant_names
        self._at: Stage | None = None
        self._first: dict[int, Stage] = {}  # by the address of the module, which the steps keep
        self._passes: dict[str, int] = {}

    def begin(self, step: Step) -> None:
        """Add one of the outermost passes."""
        if not self._is_at(step.before):
            parent = _nearest(step.before, self._at)
            if parent is None:
                self._put(Stage(self._new_id, step.before, constant_names=self._names))
            else:
                self._made(OUTSIDE, step.before, parent, None, ())
        self._add(step, ())

    def _add(self, step: Step, within: tuple[str, ...]) -> None:
        """Add a pass, at the stage of the module before it."""
        origin, count, clock = self._at, len(self.stages), step.start
        assert origin is not None
        inner = (*within, self._numbered(step.name)) if step.children else within
        for child in step.children:
            if not self._is_at(child.before):
                parent = _nearest(child.before, self._at, origin)
                if parent is None:
                    continue
                self._made(step.name, child.before, parent, child.start - clock, within)
            self._add(child, inner)
            clock = child.end
        seconds = step.end - clock
        if step.error:
            self._failed(step, seconds, within)
        elif step.after is not None and (len(self.stages) == count or not self._is_at(step.after)):
            parent = _nearest(step.after, self._at, origin) or origin
            is_all = parent is origin and len(self.stages) == count
            is_same = not step.changed if is_all else None
            self._made(step.name, step.after, parent, seconds, within, is_same)

    def _is_at(self, mod: ir.IRModule) -> bool:
        """Go to the stage that has this very module, if there is one."""
        if self._at is not None and self._at.module.same_as(mod):
            return True
        there = self._first.get(mod.__chandle__())
        self._at = there or self._at
        return there is not None

    @property
    def _new_id(self) -> str:
        return str(len(self.stages))

    def _put(self, stage: Stage) -> None:
        self.stages.append(stage)
        self._first.setdefault(stage.module.__chandle__(), stage)
        self._at = stage

    def _made(
        self,
        name: str,
        mod: ir.IRModule,
        parent: Stage,
        seconds: float | None,
        within: tuple[str, ...],
        is_same: bool | None = None,
    ) -> None:
        transform = Recorded(name)
        if is_same is None:
            is_same = mod.same_as(parent.module) or structural_equal(parent.module, mod)
        self._put(
            Stage(
                self._new_id,
                mod,
                transform.label,
                parent.id,
                transform,
                constant_names=self._names,
                seconds=seconds,
                within=within,
                is_same=is_same,
            )
        )

    def _failed(self, step: Step, seconds: float, within: tuple[str, ...]) -> None:
        assert self._at is not None
        transform = Recorded(step.name)
        self.stages.append(
            Stage(
                self._new_id,
                self._at.module,
                transform.label,
                self._at.id,
                transform,
                step.error,
                self._names,
                seconds=seconds,
                within=within,
            )
        )

    def _numbered(self, name: str) -> str:
        """Return a name that no other pass around has, as "sequential#2"."""
        name = shown(name)
        while True:
            count = self._passes[name] = self._passes.get(name, 0) + 1
            if count == 1:
                return name
            if f"{name}#{count}" not in self._passes:
                name = f"{name}#{count}"


def _nearest(mod: ir.IRModule, *stages: Stage | None) -> Stage | None:
    """Return the stage that shares most with a module, the first of equals; None without any."""
    functions, names = _parts(mod)
    nearest, most = None, (0, 0)
    for stage in stages:
        if stage is not None:
            theirs, their_names = _parts(stage.module)
            shared = len(functions & theirs), len(names & their_names)
            if names & their_names and shared > most:
                nearest, most = stage, shared
    return nearest


def _parts(mod: ir.IRModule) -> tuple[set[int], set[int]]:
    """Return the addresses of a module's functions, and of the variables they are known by."""
    items = mod.functions.items()
    return {one.__chandle__() for _, one in items}, {one.__chandle__() for one, _ in items}
