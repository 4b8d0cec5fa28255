"""A step of a PrimFunc's schedule: one primitive of `tvm.s_tir.Schedule`, as a transform."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm import ir, s_tir, tirx

from irviz.errors import TransformError
from irviz.ir.module_functions import prim_funcs
from irviz.ir.statements import flatten, nested_statements, walk_statements
from irviz.loaders.file_errors import brief
from irviz.model.loop_nest import BlockAddress, LoopAddress
from irviz.transforms.python_script import PythonScript, UnwritableError
from irviz.transforms.schedules.index_map import IndexMapText
from irviz.transforms.schedules.primitives import ArgumentKind, primitive
from irviz.transforms.schedules.schedule_error import IllegalStepError, illegal_step
from irviz.transforms.transform import Apply, SavedAs, Transform


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
