"""Record a schedule written in Python: each primitive that it calls becomes a step."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tvm import ir, s_tir, tirx
from tvm_ffi import structural_equal

from irviz.errors import TransformError
from irviz.model.loop_nest import BlockAddress, LoopAddress, ScheduleAddress
from irviz.transforms.apply_transform import try_transform
from irviz.transforms.schedules.index_map import IndexMapText, index_map_text
from irviz.transforms.schedules.primitives import QUERIES, ArgumentKind, primitive
from irviz.transforms.schedules.schedule_error import IllegalStepError, illegal_step
from irviz.transforms.schedules.schedule_step import (
    ScheduleStep,
    block_names,
    blocks_under,
    start_schedule,
)

ScheduleFunction = Callable[[Any], object]
"""A schedule as the user writes it: a function of an object with TVM's Schedule methods."""

_SAMPLED = (ArgumentKind.FACTORS, ArgumentKind.NUMBER, ArgumentKind.NUMBERS)
"""The kinds whose values TVM may sample."""

_REFUSED = ("copy", "remove_rv", "enter_postproc")


def record_schedule(
    mod: ir.IRModule, function: str, steps: ScheduleFunction, *, isolate: bool = True
) -> tuple[ScheduleStep, ...]:
    """Run a schedule on a PrimFunc of the module, and return its steps.

    With `isolate` each step is first tried in the worker, because some crash the process. Raises
    IllegalStepError when TVM rejects a step or it crashes, and whatever `steps` raises.
    """
    recorder = ScheduleRecorder(mod, function, isolate=isolate)
    steps(recorder)
    return tuple(recorder.steps)


class ScheduleRecorder:
    """Offers the methods of TVM's Schedule, and records the primitives that are called."""

    def __init__(self, mod: ir.IRModule, function: str, *, isolate: bool = True) -> None:
        self.steps: list[ScheduleStep] = []
        self._function, self._isolate = function, isolate
        self._sch = start_schedule(mod, function)

    def __getattr__(self, name: str) -> Any:  # it stands in for TVM's Schedule
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
        """Accept the scheduled function; raise TransformError for any other."""
        if func_name != self._function:
            raise TransformError(
                f"the schedule of {self._function!r} is recorded: record that of {func_name!r} "
                "by itself"
            )

    def _do(self, name: str, *positional: object, **named: object) -> object:
        known = primitive(name)
        kinds = {one.name: one.kind for one in known.parameters}
        given = known.bound(positional, named)
        plain = {key: self._plain(value, kinds[key]) for key, value in given.items()}
        step = ScheduleStep(self._function, name, plain)
        if self._isolate:
            outcome = try_transform(self._sch.mod, step.tried_as)
            if outcome.error:
                raise IllegalStepError(f"{step.label} is not done: {outcome.error}")
        before = self._sch.mod
        try:
            made = getattr(self._sch, name)(*positional, **named)
        except Exception as failure:  # TVM raises what its C++ side threw, of any class
            raise illegal_step(step.source, self._function, failure) from None
        self.steps.append(self._with_text(step, before))
        return made

    def _plain(self, value: object, kind: ArgumentKind) -> object:
        """Return an argument as the plain value that a step stores."""
        match value:
            case s_tir.schedule.LoopRV() | s_tir.schedule.SBlockRV():
                return self._address(value)
            case str() if kind in (ArgumentKind.BLOCK, ArgumentKind.BLOCKS):
                return BlockAddress(value)
            case list() | tuple() if kind is not ArgumentKind.BUFFER:
                return [self._plain(each, kind) for each in value]
            case dict():
                return {str(key): self._plain(each, kind) for key, each in value.items()}
            case tirx.IntImm() | tirx.FloatImm():
                return value.value
            case ir.Expr() if kind in _SAMPLED:
                with contextlib.suppress(Exception):  # it may be no variable of the schedule
                    found = self._sch.get(value)
                    return found if isinstance(found, int) else value
        return value

    def _address(self, var: s_tir.schedule.LoopRV | s_tir.schedule.SBlockRV) -> ScheduleAddress:
        names = block_names(self._sch.mod[self._function])
        sref, is_block = self._sch.get_sref(var), isinstance(var, s_tir.schedule.SBlockRV)
        inside = [str(sref.stmt.name_hint)] if is_block else blocks_under(sref.stmt)
        unique = next((name for name in inside if names.count(name) == 1), None)
        if unique is None:
            raise TransformError(
                f"{names.count(inside[0])} blocks are called {inside[0]!r}, and steps find blocks "
                "by name: give each a name of its own"
            )
        depth, above = 0, sref.parent
        while not is_block and isinstance(above.stmt, tirx.For):
            depth, above = depth + 1, above.parent
        return BlockAddress(unique) if is_block else LoopAddress(unique, depth)

    def _with_text(self, step: ScheduleStep, before: ir.IRModule) -> ScheduleStep:
        """Return the last step with its index map as text, if that has the same effect."""
        if isinstance(step.arguments.get("index_map"), IndexMapText | None):
            return step
        done = self._sch.trace.insts[-1]
        made = [one for one in (*done.inputs, *done.attrs) if isinstance(one, tirx.IndexMap)]
        text = index_map_text(made[0]) if made else None
        written = replace(step, arguments={**step.arguments, "index_map": text})
        try:
            is_same = text is not None and structural_equal(written(before), self._sch.mod)
        except TransformError:  # as text the map may have other integer types
            is_same = False
        return written if is_same else step
