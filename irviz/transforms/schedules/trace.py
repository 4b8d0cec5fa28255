"""The trace of a schedule: steps as lines of Python, and such lines read back, strictly.

Nothing of a text is run: a line is a call of a primitive of `sch`, on loops and blocks that are
looked up by name, with literals and index maps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irviz.model.loops import BlockNamed, LoopOf
from irviz.transforms.schedules.index_map import IndexMapError, IndexMapText, as_function
from irviz.transforms.schedules.primitives import Kind, primitive
from irviz.transforms.schedules.schedule import ScheduleStep, schedule_step
from irviz.transforms.stage import Stage, TransformError

_ADDRESS = 'sch.get_sblock("Y") or sch.get_loops("Y")[0]'


class TraceError(TransformError):
    """A text that is no trace; `line` and `column` count from 1 and say where."""

    def __init__(self, words: str, line: int, column: int) -> None:
        super().__init__(words, line, column)
        self.words, self.line, self.column = words, line, column

    def __str__(self) -> str:
        """Say where and why."""
        return f"line {self.line}, column {self.column}: {self.words}"


def trace_text(steps: Iterable[ScheduleStep]) -> str:
    """Return steps as text, a line each; raise UnwritableError for one that has none."""
    return "".join(f"{step.line}\n" for step in steps)


def read_trace(text: str, function: str) -> tuple[ScheduleStep, ...]:
    """Read the steps of a PrimFunc's schedule, one a line; raise TraceError with line and column.

    Comments and empty lines may stand between them.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as failure:
        raise TraceError(
            f"this is no Python: {failure.msg}", failure.lineno or 1, max(failure.offset or 1, 1)
        ) from None
    except (ValueError, RecursionError, MemoryError) as failure:
        raise TraceError(f"this is no Python: {failure}", 1, 1) from None
    return tuple(_step(statement, function) for statement in tree.body)


def read_value(text: str) -> object:
    """Read one value as it stands in a trace: a literal or an index map; raise TraceError."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise TraceError(f"{text!r} is no value: write a literal, or lambda i: …", 1, 1) from None
    return _value(tree)


@dataclass(frozen=True)
class Trace:
    """The stages that steps of one function's schedule made, and the stage before them."""

    base: Stage
    stages: tuple[Stage, ...]
    steps: tuple[ScheduleStep, ...]


def trace_of(stages: Sequence[Stage], stage_id: str, function: str) -> Trace:
    """Return the trace of a function's schedule that ends at a stage.

    It goes up to what was no step of this function's schedule. Stages that failed changed
    nothing and are left out.
    """
    by_id = {stage.id: stage for stage in stages}
    stage, found, steps = by_id[stage_id], list[Stage](), list[ScheduleStep]()
    while isinstance(stage.transform, ScheduleStep) and stage.transform.function == function:
        if not stage.error:
            found.append(stage)
            steps.append(stage.transform)
        stage = by_id[str(stage.parent)]
    return Trace(stage, tuple(reversed(found)), tuple(reversed(steps)))


def _step(statement: ast.stmt, function: str) -> ScheduleStep:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        raise _refused(statement, 'a line is one step, such as sch.parallel(sch.get_loops("Y")[0])')
    call = statement.value
    name = _method(call)
    try:
        known = primitive(name)
    except TransformError as failure:
        raise _refused(call.func, str(failure)) from None
    positional = [_value(each) for each in call.args]
    named: dict[str, object] = {}
    for keyword in call.keywords:
        if keyword.arg is None or keyword.arg in named:
            raise _refused(keyword.value, "each argument is given once, by its name: name=value")
        named[keyword.arg] = _value(keyword.value)
    try:
        step = schedule_step(function, name, *positional, **named)
    except TransformError as failure:
        raise _refused(call, str(failure)) from None
    where = {keyword.arg: keyword.value for keyword in call.keywords}
    for parameter in known.parameters:
        if parameter.name in step.arguments:
            value, node = step.arguments[parameter.name], where.get(parameter.name, call)
            if not _fits(value, parameter.kind):
                raise _refused(
                    node, f"{parameter.name} of {name} is {parameter.kind.value}, not {value!s}"
                )
    return step


def _method(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(value=ast.Name(id="sch"), attr=name):
            return name
    raise _refused(call.func, f"{ast.unparse(call.func)!r} is called: call what sch has")


def _value(tree: ast.expr) -> object:
    match tree:
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=depth)):
            return LoopOf(_looked_up(call, "get_loops"), _depth(tree, depth))
        case ast.Call():
            return BlockNamed(_looked_up(tree, "get_sblock"))
        case ast.Lambda():
            try:
                as_function(tree)
            except IndexMapError as failure:
                raise TraceError(str(failure), failure.line, failure.column) from None
            return IndexMapText(ast.unparse(tree))
        case ast.List(elts=items):
            return [_value(each) for each in items]
        case ast.Tuple(elts=items):
            return tuple(_value(each) for each in items)
        case ast.Dict(keys=keys, values=values):
            return {_key(key, tree): _value(item) for key, item in zip(keys, values, strict=True)}
    return _scalar(tree)


def _scalar(tree: ast.expr) -> object:
    match tree:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=number)) if _is_number(number):
            return -number  # type: ignore[operator]
        case ast.Constant(value=value) if isinstance(value, bool | str | None):
            return value
        case ast.Constant(value=value) if _is_number(value):
            return value
    raise _refused(tree, f"{ast.unparse(tree)!r} is no literal: write {_ADDRESS}, or a literal")


def _looked_up(call: ast.Call, method: str) -> str:
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="sch"), attr=attr),
            args=[ast.Constant(value=str() as name)],
            keywords=[],
        ) if attr == method:
            return name
    raise _refused(call, f"{ast.unparse(call)!r} is no block and no loop: write {_ADDRESS}")


def _depth(tree: ast.expr, depth: object) -> int:
    if type(depth) is int:
        return depth
    raise _refused(tree, f'{depth!r} is no number of a loop: write sch.get_loops("Y")[0]')


def _key(tree: ast.expr | None, whole: ast.expr) -> str:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        return tree.value
    raise _refused(tree or whole, "the keys of a dict are texts")


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _fits(value: object, kind: Kind) -> bool:
    """Tell whether a value may be meant for a parameter; the rest is TVM's to say."""
    is_block, is_loop = isinstance(value, BlockNamed | str), isinstance(value, LoopOf)
    items = value if isinstance(value, list) else []
    match kind:
        case Kind.BLOCK:
            return is_block
        case Kind.LOOP:
            return is_loop
        case Kind.LOOPS:
            return all(isinstance(each, LoopOf) for each in items)
        case Kind.BLOCKS:
            return bool(items) and all(isinstance(each, BlockNamed | str) for each in items)
        case Kind.LOOP_OR_BLOCK:
            return is_loop or isinstance(value, BlockNamed)
        case Kind.LOOP_OR_BLOCKS:
            return is_loop or all(isinstance(each, BlockNamed) for each in items)
        case Kind.INDEX_MAP:
            return isinstance(value, IndexMapText)
    return not isinstance(value, BlockNamed | LoopOf | IndexMapText)


def _refused(tree: ast.AST, words: str) -> TraceError:
    return TraceError(words, getattr(tree, "lineno", 1), getattr(tree, "col_offset", 0) + 1)
