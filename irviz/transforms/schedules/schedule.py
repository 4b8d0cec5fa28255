"""A step of a PrimFunc's schedule: one primitive of `tvm.s_tir.Schedule`, as a transform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import tvm
from tvm import ir, s_tir, tirx

from irviz.ir.statements import flat, parts, walk
from irviz.model.loops import BlockNamed, LoopOf
from irviz.transforms.python import Script, UnwritableError
from irviz.transforms.schedules.index_map import IndexMapText
from irviz.transforms.schedules.primitives import Kind, primitive
from irviz.transforms.schedules.schedule_error import IllegalStepError, illegal_step
from irviz.transforms.schedules.schedule_text import call
from irviz.transforms.stage import TransformError


@dataclass(frozen=True)
class ScheduleStep:
    """One primitive of a PrimFunc's schedule; `schedule_step` makes one and checks it.

    `arguments` are by parameter name, several loops as a list: loops as LoopOf, blocks as
    BlockNamed, index maps as IndexMapText, the rest as plain values.
    """

    function: str
    primitive: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The function, the primitive and what it is given, in a few words."""
        positional, named = self._given(self.arguments)
        loops = [one for one in positional if isinstance(one, LoopOf)]
        if len(loops) > 1 and len({one.block for one in loops}) == 1:
            depths = ", ".join(str(one.depth) for one in loops)
            words = [f"loops {depths} of {loops[0].block}"]
        else:
            words = list(map(str, positional))
        words += [f"{name}={value}" for name, value in named]
        return f"{self.function}: {self.primitive} {', '.join(words)}"

    @property
    def tried_as(self) -> Attempt:
        """Itself, to see whether a process survives it: some primitives end theirs."""
        return Attempt(self)

    @property
    def line(self) -> str:
        """The Python that does it to a schedule `sch`; raise UnwritableError when there is none."""
        return call(self.primitive, *self._given(self.arguments))

    @property
    def told(self) -> str:
        """The line, or only the primitive where there is none."""
        try:
            return self.line
        except UnwritableError:
            return f"sch.{self.primitive}"

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the module with the step done; raise IllegalStepError when it cannot be."""
        sch = begin(mod, self.function)
        try:
            resolved = {name: _resolved(sch, value) for name, value in self.arguments.items()}
            positional, named = self._given(resolved)
            getattr(sch, self.primitive)(*positional, **dict(named))
        except Exception as failure:  # TVM raises what its C++ side threw, of any class
            raise illegal_step(self.told, self.function, failure) from None
        return sch.mod

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:  # noqa: ARG002
        """Write the line, for a schedule that the steps around it share."""
        script.schedule(self.function, self.line)

    def _given(self, values: Mapping[str, object]) -> tuple[list[object], list[tuple[str, object]]]:
        """Return values as the arguments of a call: loops and blocks first, the rest by name."""
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


@dataclass(frozen=True)
class Attempt:
    """A step that may be illegal: whether it is, is told where its module stays."""

    step: ScheduleStep
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The step's."""
        return self.step.label

    @property
    def tried_as(self) -> None:
        """Nothing more."""

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Do the step, and print what it makes, as that can end a process as well."""
        try:
            made = self.step(mod)
        except TransformError:
            return mod
        made[self.step.function].script()
        return made

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write what the step is written as."""
        self.step.write(script, before, after)


def schedule_step(
    function: str, name: str, /, *positional: object, **named: object
) -> ScheduleStep:
    """Return a step with arguments as TVM takes them, loops as LoopOf and blocks as BlockNamed.

    Raises TransformError for a primitive that TVM does not have, and for arguments that are
    missing or unknown to it.
    """
    known = primitive(name)
    given = known.bound(positional, named)
    for parameter in known.parameters:
        if parameter.name in given:
            given[parameter.name] = _placed(given[parameter.name], parameter.kind)
    return ScheduleStep(function, known.name, given)


def begin(mod: ir.IRModule, function: str) -> s_tir.Schedule:
    """Return a schedule that works on a PrimFunc; raise IllegalStepError where none can."""
    prim_funcs = [g.name_hint for g, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)]
    if function not in prim_funcs:
        there = ", ".join(map(repr, sorted(prim_funcs))) or "none"
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
    """Return the names of all blocks of a PrimFunc, one as often as it is given."""
    return [
        str(stmt.block.name_hint)
        for stmt, _ in walk(function.body)
        if isinstance(stmt, s_tir.SBlockRealize)
    ]


def blocks_under(loop: tirx.For) -> list[str]:
    """Return the names of the blocks in a loop that stand in no other block there."""
    found, inside = list[str](), flat(loop.body)[::-1]
    while inside:
        stmt = inside.pop()
        if isinstance(stmt, s_tir.SBlockRealize):
            found.append(str(stmt.block.name_hint))
        else:
            inside += [each for part in parts(stmt) for each in flat(part)][::-1]
    return found


def _placed(value: object, kind: Kind) -> object:
    """Return an argument with blocks that are given by their names as such."""
    match value:
        case str() if kind in (Kind.BLOCK, Kind.BLOCKS):
            return BlockNamed(value)
        case list() if kind is Kind.BLOCKS:
            return [_placed(each, kind) for each in value]
    return value


def _resolved(sch: s_tir.Schedule, value: object) -> object:
    """Return what TVM takes for an argument, now."""
    match value:
        case BlockNamed(name):
            return _block(sch, name)
        case LoopOf(block, depth):
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
            return [_resolved(sch, each) for each in value]
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
