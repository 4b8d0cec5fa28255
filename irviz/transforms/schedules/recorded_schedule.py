"""A schedule written in Python, recorded: each primitive it calls becomes a step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tvm import ir, s_tir, tirx
from tvm_ffi import structural_equal

from irviz.model.loops import Address, BlockNamed, LoopOf
from irviz.transforms.schedules.index_map import IndexMapText, index_map_text
from irviz.transforms.schedules.primitives import QUERIES, Kind, primitive
from irviz.transforms.schedules.schedule import (
    Attempt,
    ScheduleStep,
    begin,
    block_names,
    blocks_under,
)
from irviz.transforms.schedules.schedule_error import IllegalStepError, illegal_step
from irviz.transforms.stage import TransformError
from irviz.transforms.trial import attempt

Steps = Callable[[Any], object]
"""A schedule as the user writes it: a function of what has the methods of TVM's Schedule."""

_REFUSED = ("copy", "remove_rv", "enter_postproc")


def record_schedule(
    mod: ir.IRModule, function: str, steps: Steps, *, isolate: bool = True
) -> tuple[ScheduleStep, ...]:
    """Run a schedule on a PrimFunc of the module, and return what it does, step by step.

    `steps` gets what has the methods of a `tvm.s_tir.Schedule` that works on the function.
    Unless `isolate` is false, each step is first tried in the worker. Raises IllegalStepError
    for the first step that TVM refuses or that would end the process, and whatever else `steps`
    raises.
    """
    recorder = RecordedSchedule(mod, function, isolate=isolate)
    steps(recorder)
    return tuple(recorder.steps)


class RecordedSchedule:
    """What has the methods of TVM's Schedule, and keeps the steps that were called."""

    def __init__(self, mod: ir.IRModule, function: str, *, isolate: bool = True) -> None:
        self.steps: list[ScheduleStep] = []
        self._function, self._isolate = function, isolate
        self._sch = begin(mod, function)

    def __getattr__(self, name: str) -> Any:  # it is a stand-in
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _REFUSED:
            raise TransformError(f"sch.{name} cannot be recorded: {QUERIES[name]}")
        if name in QUERIES:
            return getattr(self._sch, name)
        try:
            primitive(name)
        except TransformError as failure:
            raise AttributeError(str(failure)) from None
        return functools.partial(self._do, name)

    def work_on(self, func_name: str) -> None:
        """Work on the function that is recorded; raise TransformError for another."""
        if func_name != self._function:
            raise TransformError(
                f"the schedule of {self._function!r} is recorded: record that of {func_name!r} "
                "by itself"
            )

    def _do(self, name: str, *positional: object, **named: object) -> object:
        step = self._step(name, positional, named)
        if self._isolate:
            outcome = attempt(self._sch.mod, Attempt(step))
            if outcome.error:
                raise IllegalStepError(f"{step.label} is not done: {outcome.error}")
        given = self._sch.mod
        try:
            made = getattr(self._sch, name)(*positional, **named)
        except Exception as failure:  # TVM raises what its C++ side threw, of any class
            raise illegal_step(step.told, self._function, failure) from None
        self.steps.append(self._with_text(step, given))
        return made

    def _step(
        self, name: str, positional: tuple[object, ...], named: dict[str, object]
    ) -> ScheduleStep:
        known = primitive(name)
        given = known.bound(positional, named)
        kinds = {one.name: one.kind for one in known.parameters}
        return ScheduleStep(
            self._function,
            name,
            {key: self._plain(value, kinds[key]) for key, value in given.items()},
        )

    def _plain(self, value: object, kind: Kind) -> object:
        """Return what a step keeps of an argument."""
        match value:
            case s_tir.schedule.LoopRV() | s_tir.schedule.SBlockRV():
                return self._address(value)
            case str() if kind in (Kind.BLOCK, Kind.BLOCKS):
                return BlockNamed(value)
            case list() | tuple() if kind is not Kind.BUFFER:
                return [self._plain(each, kind) for each in value]
            case dict():
                return {str(key): self._plain(each, kind) for key, each in value.items()}
            case tirx.IntImm() | tirx.FloatImm():
                return value.value
            case ir.Expr() if kind in (Kind.FACTORS, Kind.NUMBER, Kind.NUMBERS):
                drawn = self._drawn(value)
                return value if drawn is None else drawn
        return value

    def _drawn(self, value: ir.Expr) -> int | None:
        """Return the number that stands behind a random variable, None for another expression."""
        try:
            found = self._sch.get(value)
        except Exception:  # TVM knows it not: a symbolic size, say
            return None
        return found if isinstance(found, int) else None

    def _address(self, var: s_tir.schedule.LoopRV | s_tir.schedule.SBlockRV) -> Address:
        names = block_names(self._sch.mod[self._function])
        sref = self._sch.get_sref(var)
        if isinstance(var, s_tir.schedule.SBlockRV):
            name = str(sref.stmt.name_hint)
            if names.count(name) == 1:
                return BlockNamed(name)
            raise TransformError(_alike(name, names))
        depth, above = 0, sref.parent
        while isinstance(above.stmt, tirx.For):
            depth, above = depth + 1, above.parent
        under = blocks_under(sref.stmt)
        for name in under:
            if names.count(name) == 1:
                return LoopOf(name, depth)
        raise TransformError(_alike(under[0], names))

    def _with_text(self, step: ScheduleStep, given: ir.IRModule) -> ScheduleStep:
        """Return the step just done with its index map as text, where that does the same."""
        if isinstance(step.arguments.get("index_map"), IndexMapText | None):
            return step
        done = self._sch.trace.insts[-1]
        made = [one for one in (*done.inputs, *done.attrs) if isinstance(one, tirx.IndexMap)]
        text = index_map_text(made[0]) if made else None
        written = replace(step, arguments={**step.arguments, "index_map": text})
        try:
            is_same = text is not None and structural_equal(written(given), self._sch.mod)
        except TransformError:  # as text it may be one of other numbers
            is_same = False
        return written if is_same else step


def _alike(name: str, names: list[str]) -> str:
    return (
        f"{names.count(name)} blocks are called {name!r}, and steps find blocks by name: give "
        "each a name of its own"
    )
