"""The trace of a schedule: its steps as stages, and as lines of Python that are parsed strictly.

Nothing in the text is run: a line must be a call of a primitive of `sch`, whose arguments are loops
and blocks looked up by name, literals and index maps.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from irviz.errors import TransformError
from irviz.model.loop_nest import BlockAddress, LoopAddress
from irviz.transforms.schedules.index_map import IndexMapText, index_map_function
from irviz.transforms.schedules.primitives import ADDRESSES, ArgumentKind, primitive
from irviz.transforms.schedules.schedule_error import ScheduleTraceError, refused
from irviz.transforms.schedules.schedule_step import ScheduleStep, schedule_step
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import path

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


def schedule_trace(stages: Sequence[Stage], stage_id: str, function: str) -> ScheduleTrace:
    """Return the schedule of a function up to a stage.

    It begins after the last stage that is not a step of this function's schedule. Failed stages
    changed nothing and are left out.
    """
    kept, (base, *done) = 0, path(stages, stage_id)
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
