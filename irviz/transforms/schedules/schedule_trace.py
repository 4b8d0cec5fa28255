"""The trace of a schedule: its steps as stages, and as lines of Python that are parsed strictly.

Nothing in the text is run: a line must be a call of a primitive of `sch`, whose arguments are loops
and blocks looked up by name, literals and index maps.
"""

from __future__ import annotations

import ast
import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import ir, s_tir, tirx
from tvm_ffi import structural_equal

from irviz.errors import TransformError
from irviz.model.loop_nest import BlockAddress, LoopAddress, ScheduleAddress
from irviz.transforms.apply_transform import try_transform
from irviz.transforms.schedules.primitives import ADDRESSES, QUERIES, ArgumentKind, primitive
from irviz.transforms.schedules.schedule_step import (
    IllegalStepError,
    IndexMapText,
    ScheduleStep,
    ScheduleTraceError,
    block_names,
    blocks_under,
    illegal_step,
    index_map_function,
    index_map_text,
    refused,
    schedule_step,
    start_schedule,
)
from irviz.transforms.stage import Stage

_ADDRESS = 'sch.get_sblock("Y") or sch.get_loops("Y")[0]'


def parse_trace(text: str, function: str) -> tuple[ScheduleStep, ...]:
    """Parse the steps of a schedule, one a line; raise ScheduleTraceError with line and column."""
    try:
        tree = ast.parse(text)
    except SyntaxError as failure:
        raise ScheduleTraceError(
            f"this is not Python: {failure.msg}", failure.lineno or 1, max(failure.offset or 1, 1)
        ) from None
    except (ValueError, RecursionError, MemoryError) as failure:
        raise ScheduleTraceError(f"this is not Python: {failure}") from None
    return tuple(_step(statement, function) for statement in tree.body)


def parse_value(text: str) -> object:
    """Parse one argument: a literal or an index map; raise ScheduleTraceError."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ScheduleTraceError(
            f"{text!r} is not a value: write a literal, or lambda i: …"
        ) from None
    return _value(tree)


@dataclass(frozen=True)
class ScheduleTrace:
    """The stages made by consecutive steps of one function's schedule, and the stage before."""

    base: Stage
    stages: tuple[Stage, ...]

    @property
    def steps(self) -> tuple[ScheduleStep, ...]:
        """The steps that made the stages."""
        made = (stage.transform for stage in self.stages)
        return tuple(step for step in made if isinstance(step, ScheduleStep))


def schedule_trace(lineage: Sequence[Stage], function: str) -> ScheduleTrace:
    """Return the schedule of a function up to the last stage of a lineage.

    It begins after the last stage that is not a step of this function's schedule. Failed stages
    changed nothing and are left out.
    """
    kept, (base, *done) = 0, lineage
    for index, stage in enumerate(done):
        step = stage.transform
        if not isinstance(step, ScheduleStep) or step.function != function:
            base, kept = stage, index + 1
    return ScheduleTrace(base, tuple(stage for stage in done[kept:] if not stage.error))


def _step(statement: ast.stmt, function: str) -> ScheduleStep:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        raise refused(statement, 'a line is one step, such as sch.parallel(sch.get_loops("Y")[0])')
    call = statement.value
    match call.func:
        case ast.Attribute(value=ast.Name(id="sch"), attr=name):
            pass
        case other:
            raise refused(other, f"{ast.unparse(other)!r} is called: call what sch has")
    try:
        known = primitive(name)
    except TransformError as failure:
        raise refused(call.func, str(failure)) from None
    where: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in where:
            raise refused(keyword.value, "each argument is given once, by its name: name=value")
        where[keyword.arg] = keyword.value
    positional = [_value(each) for each in call.args]
    named = {name: _value(each) for name, each in where.items()}
    try:
        step = schedule_step(function, name, *positional, **named)
    except TransformError as failure:
        raise refused(call, str(failure)) from None
    for parameter in known.parameters:
        if parameter.name in step.arguments:
            value, node = step.arguments[parameter.name], where.get(parameter.name, call)
            if not _fits(value, parameter.kind):
                raise refused(
                    node, f"{parameter.name} of {name} is {parameter.kind.value}, not {value!s}"
                )
    return step


def _value(tree: ast.expr) -> object:
    match tree:
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=depth)):
            name = _name_argument(call, "get_loops")
            if type(depth) is not int:
                raise refused(
                    tree, f'{depth!r} is not the number of a loop: write sch.get_loops("Y")[0]'
                )
            return LoopAddress(name, depth)
        case ast.Call():
            return BlockAddress(_name_argument(tree, "get_sblock"))
        case ast.Lambda():
            index_map_function(tree)
            return IndexMapText(ast.unparse(tree))
        case ast.List(elts=items):
            return [_value(each) for each in items]
        case ast.Tuple(elts=items):
            return tuple(_value(each) for each in items)
        case ast.Dict(keys=keys, values=values):
            return {_key(key, tree): _value(item) for key, item in zip(keys, values, strict=True)}
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        value = ast.literal_eval(tree)
        if type(value) in (int, float, bool, str, type(None)):
            return value
    raise refused(tree, f"{ast.unparse(tree)!r} is not a literal: write {_ADDRESS}, or a literal")


def _name_argument(call: ast.Call, method: str) -> str:
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="sch"), attr=attr),
            args=[ast.Constant(value=str() as name)],
            keywords=[],
        ) if attr == method:
            return name
    raise refused(call, f"{ast.unparse(call)!r} is neither a block nor a loop: write {_ADDRESS}")


def _key(tree: ast.expr | None, whole: ast.expr) -> str:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        return tree.value
    raise refused(tree or whole, "the keys of a dict must be texts")


def _fits(value: object, kind: ArgumentKind) -> bool:
    """Tell whether a value has the kind of a parameter; TVM checks the rest."""
    if kind is ArgumentKind.INDEX_MAP:
        return isinstance(value, IndexMapText)
    if kind not in ADDRESSES:
        return not isinstance(value, BlockAddress | LoopAddress | IndexMapText)
    return any(
        isinstance(value, list) and all(isinstance(one, address) for one in value)
        if is_list
        else isinstance(value, address)
        for address, is_list in ADDRESSES[kind]
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
