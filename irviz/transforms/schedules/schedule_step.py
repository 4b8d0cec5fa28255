"""A step of a PrimFunc's schedule: one primitive of `tvm.s_tir.Schedule`, as a transform."""

from __future__ import annotations

import ast
import inspect
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tvm import ir, s_tir, tirx

from irviz.errors import TransformError
from irviz.ir.module_functions import prim_funcs
from irviz.ir.tir_statements import ScopedNames, flatten, nested_statements, walk_statements
from irviz.loaders.file_limits import brief
from irviz.model.loop_nest import BlockAddress, LoopAddress
from irviz.transforms.export_python import PythonScript, UnwritableError
from irviz.transforms.schedules.primitives import ArgumentKind, primitive
from irviz.transforms.stage import Apply, SavedAs, Transform

_MESSAGE = re.compile(r"^Error message: ", re.MULTILINE)
_PATH = re.compile(r"^Access path: <root>(\S.*)$", re.MULTILINE)
_FUNCTION = re.compile(r"\.functions\[I\.GlobalVar\((\"(?:[^\"\\]|\\.)*\")\)\]")
_STEPS = re.compile(r"(?:\.(?:body|block|seq|init|then_case|else_case)|\[\d+\])*")
_MARK = re.compile(r"^\s*# ((?:tirx\.For|s_tir\.SBlock)#\d+)\n\s*(.*)$", re.MULTILINE)
_NAME = re.compile(r"for (\w+) in|with T\.sblock\((\"(?:[^\"\\]|\\.)*\")\)")


class IllegalStepError(TransformError):
    """A schedule step that TVM rejects; nothing was changed.

    `words` is TVM's explanation in one line, `details` its whole message, and `paths` are the
    access paths of the loops and blocks it is about, written like the ids of a loop nest.
    """

    def __init__(self, words: str, details: str = "", paths: tuple[str, ...] = ()) -> None:
        super().__init__(words)
        self.words, self.details, self.paths = words, details, paths


class ScheduleTraceError(TransformError):
    """A text that is not a schedule trace, or a part of one; `line` and `column` count from 1."""

    def __init__(self, words: str, line: int = 1, column: int = 1) -> None:
        super().__init__(words, line, column)
        self.words, self.line, self.column = words, line, column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.words}"


def refused(tree: ast.expr | ast.stmt, words: str) -> ScheduleTraceError:
    """Return an error that points to a part of a syntax tree."""
    return ScheduleTraceError(words, tree.lineno, tree.col_offset + 1)


def illegal_step(step: str, function: str, failure: Exception) -> IllegalStepError:
    """Return the error for a step (as Python) that failed in a PrimFunc."""
    message = str(failure).strip()
    words = explanation(message) or type(failure).__name__
    return IllegalStepError(
        f"{step} is not legal here: {words}", message, access_paths(message, function)
    )


def explanation(message: str) -> str:
    """Return the explanation in a schedule error, with its loops and blocks by name."""
    words = " ".join(_MESSAGE.split(message)[-1].split()).removeprefix("ScheduleError: ")
    for mark, line in _MARK.findall(message):  # such as tirx.For#0, and the line it stands for
        found = _NAME.match(line)
        if found is not None:
            name = repr(found[1] or ast.literal_eval(found[2]))
            words = name.join(re.split(rf"{re.escape(mark)}(?!\d)", words))
    return words


def access_paths(message: str, function: str) -> tuple[str, ...]:
    """Return the access paths in a schedule error that lie in this PrimFunc, each once."""
    found: dict[str, None] = {}
    for written in _PATH.findall(message.partition("\n@I.ir_module")[0]):
        head = _FUNCTION.match(written)
        if head is None or ast.literal_eval(head[1]) != function:
            continue
        way = written[head.end() :]
        steps = _STEPS.match(way)
        if steps is not None and steps[0]:
            found[steps[0].removeprefix(".")] = None
    return tuple(found)


# --- index maps ---------------------------------------------------------------------------------

_OPERATORS: dict[type[ast.operator], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_Expression: TypeAlias = Callable[[Mapping[str, object]], Any]
_TYPED_NUMBER = re.compile(r"T\.int\d+\((-?\d+)\)")


@dataclass(frozen=True)
class IndexMapText:
    """An index map as the text of a lambda over integers with + - * // and %."""

    text: str

    def __str__(self) -> str:
        return self.text

    def function(self) -> Callable[..., list[object]]:
        """Return the function of indices that TVM takes; raise ScheduleTraceError."""
        try:
            tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
            raise ScheduleTraceError(
                f"{self.text!r} is not a Python expression: {failure}"
            ) from None
        return index_map_function(tree)


def index_map_function(tree: ast.expr) -> Callable[..., list[object]]:
    """Return the function of a lambda; raise ScheduleTraceError unless it is an index map."""
    if not isinstance(tree, ast.Lambda):
        raise refused(tree, "this is not an index map: write one such as lambda i, j: (j, i)")
    given = tree.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults or given.posonlyargs:
        raise refused(tree, "an index map takes plain names: write lambda i, j: …")
    names = [argument.arg for argument in given.args]
    is_several = isinstance(tree.body, ast.Tuple | ast.List)
    body: list[ast.expr] = tree.body.elts if is_several else [tree.body]  # type: ignore[attr-defined]
    evaluate = [_compiled(each, names) for each in body]

    def indices(*values: object) -> list[object]:
        known = dict(zip(names, values, strict=True))
        return [each(known) for each in evaluate]

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    indices.__signature__ = signature  # type: ignore[attr-defined] # TVM counts the parameters
    return indices


def index_map_text(index_map: tirx.IndexMap) -> IndexMapText | None:
    """Return TVM's index map as text, None where it has other operators."""
    names = ScopedNames()
    given = [names.define(var) for var in index_map.initial_indices]
    made = [_TYPED_NUMBER.sub(r"\1", names.text(value)) for value in index_map.final_indices]
    inside = ", ".join(made) + ("," if len(made) == 1 else "")
    text = f"lambda {', '.join(given)}: ({inside})"
    try:
        IndexMapText(text).function()
    except ScheduleTraceError:
        return None
    return IndexMapText(ast.unparse(ast.parse(text)))


def _compiled(tree: ast.expr, names: list[str]) -> _Expression:
    """Return the function of an expression, from the values of its indices by name."""
    match tree:
        case ast.Name(id=name):
            if name not in names:
                raise refused(tree, f"{name!r} is not one of its indices, which are {names}")
            return lambda known: known[name]
        case ast.Constant(value=value):
            if type(value) is not int:
                raise refused(tree, f"{value!r} is not a whole number")
            return lambda _: value
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) not in _OPERATORS:
                raise refused(tree, "an index map has no operators but + - * // and %")
            compute = _OPERATORS[type(op)]
            one, other = _compiled(left, names), _compiled(right, names)
            return lambda known: compute(one(known), other(known))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _compiled(operand, names)
            return lambda known: 0 - negated(known)
    raise refused(
        tree,
        f"{ast.unparse(tree)!r} is not allowed in an index map: use its indices, whole "
        "numbers, + - * // and %",
    )


# --- steps --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScheduleStep(Transform):
    """One primitive of a PrimFunc's schedule; `schedule_step` creates and checks one.

    `arguments` are by parameter name: loops as LoopAddress (several as a list), blocks as
    BlockAddress, index maps as IndexMapText, everything else as plain values.
    """

    saved_as = SavedAs("schedule", {"function": str, "primitive": str, "arguments": dict})

    function: str
    primitive: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The function, the primitive and its arguments, in a few words."""
        positional, named = self._split(self.arguments)
        loops = [one for one in positional if isinstance(one, LoopAddress)]
        if len(loops) > 1 and len({one.block for one in loops}) == 1:
            depths = ", ".join(str(one.depth) for one in loops)
            words = [f"loops {depths} of {loops[0].block}"]
        else:
            words = list(map(str, positional))
        words += [f"{name}={value}" for name, value in named]
        return f"{self.function}: {self.primitive} {', '.join(words)}"

    @property
    def tried_as(self) -> Apply:
        """A trial of itself, because some primitives crash the process."""
        return self._try

    @property
    def line(self) -> str:
        """The step as Python on a schedule `sch`; raise UnwritableError if there is none."""
        positional, named = self._split(self.arguments)
        given = [*map(_source, positional), *(f"{name}={_source(one)}" for name, one in named)]
        return f"sch.{self.primitive}({', '.join(given)})"

    @property
    def source(self) -> str:
        """The line of Python, or only the primitive if there is none."""
        try:
            return self.line
        except UnwritableError:
            return f"sch.{self.primitive}"

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the module after the step; raise IllegalStepError if TVM rejects it."""
        sch = start_schedule(mod, self.function)
        try:
            resolved = {name: _resolve(sch, value) for name, value in self.arguments.items()}
            positional, named = self._split(resolved)
            getattr(sch, self.primitive)(*positional, **dict(named))
        except Exception as failure:  # TVM raises what its C++ side threw, of any class
            raise illegal_step(self.source, self.function, failure) from None
        return sch.mod

    def _try(self, mod: ir.IRModule) -> ir.IRModule:
        """Apply the step if it is legal, and print the result, because printing may crash too."""
        try:
            made = self(mod)
        except TransformError:
            return mod
        made[self.function].script()
        return made

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:  # noqa: ARG002
        """Write the line, on a schedule that is shared with adjacent steps."""
        script.schedule(self.function, self.line)

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> ScheduleStep:
        """Return the step; raise TransformError for arguments that its primitive does not take."""
        known = primitive(values["primitive"])
        arguments = {name: _restored(one) for name, one in values["arguments"].items()}
        names = {one.name for one in known.parameters}
        needed = {one.name for one in known.parameters if one.is_required}
        if not needed <= arguments.keys() <= names:
            raise TransformError(
                f"{known.name} takes other arguments than {brief(list(arguments))}"
            )
        step = cls(values["function"], known.name, arguments)
        try:
            step.label  # noqa: B018 - it reads the arguments
        except Exception as failure:  # one is of a kind that the primitive does not take
            raise TransformError(f"{known.name} does not take {brief(arguments)}") from failure
        return step

    def _split(self, values: Mapping[str, object]) -> tuple[list[object], list[tuple[str, object]]]:
        """Split arguments of a call: loops and blocks by position, the rest by keyword."""
        known = primitive(self.primitive)
        positional: list[object] = []
        for parameter in known.addresses:
            value = values.get(parameter.name)
            if parameter.is_variadic and isinstance(value, list):
                positional += value
            elif parameter.is_required:
                positional.append(value)
        by_name = [one for one in known.parameters if one.is_named and one.name in values]
        return positional, [(one.name, values[one.name]) for one in by_name]


def schedule_step(
    function: str, name: str, /, *positional: object, **named: object
) -> ScheduleStep:
    """Return a step with arguments as TVM takes them, except loops and blocks as addresses.

    Raises TransformError for a primitive that TVM does not have, for missing or unknown
    arguments, and for an empty list of factors, which TVM reports as a wrong loop.
    """
    known = primitive(name)
    given = known.bound(positional, named)
    for parameter in known.parameters:
        if parameter.kind is ArgumentKind.FACTORS and given.get(parameter.name) == []:
            raise TransformError(
                f"{known.name}: {parameter.name} is empty; it takes {parameter.kind.value}"
            )
        if parameter.name in given:
            given[parameter.name] = _as_address(given[parameter.name], parameter.kind)
    return ScheduleStep(function, known.name, given)


def _restored(value: object) -> object:
    """Return an argument with an index map in place of its text; raise TransformError."""
    match value:
        case {"index map": str() as text, **rest} if not rest:
            index_map = IndexMapText(text)
            index_map.function()
            # the text becomes a part of scripts, where a # would cut the line off
            if not text.isprintable() or "#" in text:
                raise TransformError(f"{brief(text)} is not an index map on one line")
            return index_map
    return value


def start_schedule(mod: ir.IRModule, function: str) -> s_tir.Schedule:
    """Return a schedule of a PrimFunc; raise IllegalStepError if it cannot be scheduled."""
    if function not in prim_funcs(mod):
        there = ", ".join(map(repr, prim_funcs(mod))) or "none"
        raise IllegalStepError(f"there is no PrimFunc {function!r} to schedule; there are {there}")
    if not isinstance(mod[function].body, s_tir.SBlockRealize):
        raise IllegalStepError(
            f"{function!r} cannot be scheduled: it has no blocks. Schedule it in a stage before "
            "it was lowered, or write it with T.sblock and s_tir=True"
        )
    try:
        sch = s_tir.Schedule(mod)
        sch.work_on(function)
    except Exception as failure:
        raise illegal_step("a schedule", function, failure) from None
    return sch


def block_names(function: tirx.PrimFunc) -> list[str]:
    """Return the names of all blocks of a PrimFunc, with repetitions."""
    return [
        str(stmt.block.name_hint)
        for stmt, _ in walk_statements(function.body)
        if isinstance(stmt, s_tir.SBlockRealize)
    ]


def blocks_under(loop: tirx.For) -> list[str]:
    """Return the names of the outermost blocks in a loop."""
    found, inside = list[str](), flatten(loop.body)[::-1]
    while inside:
        stmt = inside.pop()
        if isinstance(stmt, s_tir.SBlockRealize):
            found.append(str(stmt.block.name_hint))
        else:
            inside += [each for part in nested_statements(stmt) for each in flatten(part)][::-1]
    return found


def _as_address(value: object, kind: ArgumentKind) -> object:
    match value:
        case str() if kind in (ArgumentKind.BLOCK, ArgumentKind.BLOCKS):
            return BlockAddress(value)
        case list() if kind is ArgumentKind.BLOCKS:
            return [_as_address(each, kind) for each in value]
    return value


def _resolve(sch: s_tir.Schedule, value: object) -> object:
    """Return an argument as TVM takes it, looked up in the schedule."""
    match value:
        case BlockAddress(name):
            return _block(sch, name)
        case LoopAddress(block, depth):
            loops = sch.get_loops(_block(sch, block))
            if not 0 <= depth < len(loops):
                there = f"give 0 to {len(loops) - 1}" if loops else "choose another block"
                raise IllegalStepError(
                    f"block {block!r} has {len(loops)} loops around it and no loop {depth}: {there}"
                )
            return loops[depth]
        case IndexMapText():
            return value.function()
        case list():
            return [_resolve(sch, each) for each in value]
    return value


def _block(sch: s_tir.Schedule, name: str) -> s_tir.schedule.SBlockRV:
    names = block_names(sch.mod[sch.func_working_on])
    if names.count(name) == 1:
        return sch.get_sblock(name)
    listed = ", ".join(map(repr, dict.fromkeys(names)))
    if name not in names:
        raise IllegalStepError(f"there is no block {name!r}; there are {listed}: name one of these")
    raise IllegalStepError(
        f"{names.count(name)} blocks are called {name!r}, and TVM finds blocks by name: give each "
        "a name of its own"
    )


def _source(value: object) -> str:
    """Return the Python for an argument of a step; raise UnwritableError if there is none."""
    match value:
        case BlockAddress(name):
            return f"sch.get_sblock({_quoted(name)})"
        case LoopAddress(block, depth):
            return f"sch.get_loops({_quoted(block)})[{depth}]"
        case IndexMapText(text):
            return text
        case str():
            return _quoted(value)
        case None | bool() | int():
            return repr(value)
        case float() if math.isfinite(value):
            return repr(value)
        case list():
            return f"[{', '.join(map(_source, value))}]"
        case tuple():
            return f"({', '.join(map(_source, value))}{',' * (len(value) == 1)})"
        case dict():
            items = (f"{_source(key)}: {_source(item)}" for key, item in value.items())
            return f"{{{', '.join(items)}}}"
    raise UnwritableError(f"{value!r} cannot be written as a Python literal")


def _quoted(text: str) -> str:
    """Return the Python literal of a text, in double quotes where possible."""
    inside = repr(text)
    return f'"{inside[1:-1]}"' if inside[0] == "'" and '"' not in inside else inside
