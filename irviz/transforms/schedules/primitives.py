"""The primitives of `tvm.s_tir.Schedule`, with parameters read from TVM's signatures."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tvm import s_tir

from irviz.errors import TransformError
from irviz.model.loop_nest import BlockAddress, LoopAddress, ScheduleAddress


class ArgumentKind(Enum):
    """What a parameter of a primitive takes; the value is its description."""

    BLOCK = "a block"
    BLOCKS = "a list of blocks"
    LOOP = "a loop"
    LOOPS = "several loops"
    LOOP_OR_BLOCK = "a loop or a block"
    LOOP_OR_BLOCKS = "a loop, or a list of blocks"
    FACTORS = "a list of numbers, one of them may be None"
    NUMBERS = "a list of whole numbers"
    NUMBER = "a whole number"
    VALUE = "a number"
    FLAG = "True or False"
    TEXT = "a text"
    CHOICE = "one of a few texts"
    READ = "the number of a buffer that the block reads, or its name"
    WRITTEN = "the number of a buffer that the block writes, or its name"
    BUFFER = "a buffer: ('read', 0), ('write', 0), or its name"
    ANNOTATION = "a number, a text, a list or a dict"
    INDEX_MAP = "an index map, such as lambda i, j: (j, i)"
    FUNCTION = "a function"


ADDRESSES: Mapping[ArgumentKind, tuple[tuple[type[ScheduleAddress], bool], ...]] = {
    ArgumentKind.BLOCK: ((BlockAddress, False),),
    ArgumentKind.BLOCKS: ((BlockAddress, True),),
    ArgumentKind.LOOP: ((LoopAddress, False),),
    ArgumentKind.LOOPS: ((LoopAddress, True),),
    ArgumentKind.LOOP_OR_BLOCK: ((LoopAddress, False), (BlockAddress, False)),
    ArgumentKind.LOOP_OR_BLOCKS: ((LoopAddress, False), (BlockAddress, True)),
}
"""The kinds that are selected in the loop nest: types of their values, and whether in a list."""

_NAMES: Mapping[ArgumentKind, str] = {
    ArgumentKind.BLOCK: "block reduction_block epilogue_block",
    ArgumentKind.BLOCKS: "consumer_blocks",
    ArgumentKind.LOOP: "loop",
    ArgumentKind.LOOPS: "loops ordered_loops",
    ArgumentKind.LOOP_OR_BLOCK: "block_or_loop",
    ArgumentKind.LOOP_OR_BLOCKS: "target",
    ArgumentKind.FACTORS: "factors",
    ArgumentKind.NUMBERS: "padding new_order buf_index_array",
    ArgumentKind.NUMBER: "index factor_axis axis factor offset cse_thresh",
    ArgumentKind.VALUE: "pad_value",
    ArgumentKind.FLAG: "preserve_unit_iters preserve_unit_loops disable_predication "
    "assume_injective_transform",
    ArgumentKind.TEXT: "ann_key tensor_intrin",
    ArgumentKind.CHOICE: "thread_axis storage_scope buf_type dtype",
    ArgumentKind.READ: "read_buffer_index",
    ArgumentKind.WRITTEN: "write_buffer_index buffer_index",
    ArgumentKind.BUFFER: "buffer",
    ArgumentKind.ANNOTATION: "ann_val",
    ArgumentKind.INDEX_MAP: "index_map",
    ArgumentKind.FUNCTION: "gen_new_ranges",
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()}

CHOICES: Mapping[str, tuple[str, ...]] = {
    "thread_axis": tuple(
        f"{word}.{axis}" for word in ("blockIdx", "threadIdx", "vthread") for axis in "xyz"
    ),
    "storage_scope": ("global", "shared", "shared.dyn", "local", "warp"),
    "buf_type": ("read", "write"),
    "dtype": ("float32", "float16", "bfloat16", "int32", "int8", "uint8", "bool"),
}
"""The options of a CHOICE, by parameter name; other scopes and dtypes are accepted too."""

FOR_CODE: Mapping[str, str] = {
    "annotate_buffer_access": "it takes a function that makes ranges of a block's axes"
}
"""The primitives that only code can call, and why; `record_schedule` records them."""

_QUERIES: Mapping[str, str] = {
    "it is a query and changes nothing": "get get_sblock get_loops get_child_blocks get_producers "
    "get_consumers get_output_blocks get_sref can_decompose_padding mod state trace "
    "func_working_on show",
    "it samples a value for a later step, which is recorded with that value": "sample_categorical "
    "sample_perfect_tile sample_partitioned_tile sample_compute_location",
    "it is about random sampling": "seed fork_seed",
    "it removes a variable of the schedule object": "remove_rv",
    "each step names its function": "work_on",
    "stages keep what a schedule can go back to": "copy",
    "it is a marker for the tuner": "enter_postproc",
}
QUERIES = {name: reason for reason, names in _QUERIES.items() for name in names.split()}
"""The methods of a schedule that are not steps, and why."""

_SUMMARIES: Mapping[str, str] = {
    "read_at": "Copy what a block reads of a buffer into another memory, inside a loop.",
    "write_at": "Let a block write into another memory, and copy it back, inside a loop.",
}
"""Summaries of primitives that have no docstring."""


@dataclass(frozen=True)
class PrimitiveParameter:
    """A parameter of a primitive; `default` is None if it is required."""

    name: str
    kind: ArgumentKind
    is_required: bool
    default: object = None
    is_variadic: bool = False

    @property
    def is_named(self) -> bool:
        """Whether it is passed by keyword, as everything but required loops and blocks is."""
        return self.kind not in ADDRESSES or not (self.is_required or self.is_variadic)


@dataclass(frozen=True)
class Primitive:
    """A primitive of TVM's schedules: its parameters, and the first line of its docstring."""

    name: str
    parameters: tuple[PrimitiveParameter, ...]
    summary: str

    @property
    def addresses(self) -> tuple[PrimitiveParameter, ...]:
        """The parameters that are selected in the loop nest."""
        return tuple(one for one in self.parameters if one.kind in ADDRESSES and not one.is_named)

    @property
    def values(self) -> tuple[PrimitiveParameter, ...]:
        """The parameters that are entered as values."""
        return tuple(one for one in self.parameters if one.is_named)

    def placed(self, chosen: Sequence[ScheduleAddress]) -> dict[str, object] | None:
        """Return selected loops and blocks as arguments, None when they do not fit.

        Loops and blocks are each taken in order of selection, and all must be used.
        """
        pools: dict[type[ScheduleAddress], list[ScheduleAddress]] = {
            kind: [one for one in chosen if isinstance(one, kind)]
            for kind in (LoopAddress, BlockAddress)
        }
        given: dict[str, object] = {}
        for parameter in self.addresses:
            fitting = [form for form in ADDRESSES[parameter.kind] if pools[form[0]]]
            if len(fitting) != 1:
                return None
            ((address, is_list),) = fitting
            if not is_list:
                given[parameter.name] = pools[address].pop(0)
            elif parameter.kind is ArgumentKind.LOOPS and len(pools[address]) == 1:
                return None
            else:
                given[parameter.name], pools[address] = pools[address], []
        return None if any(pools.values()) else given

    def bound(self, positional: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
        """Return arguments by name, without defaults; raise TransformError if they do not fit."""
        signature = inspect.signature(getattr(s_tir.Schedule, self.name))
        try:
            given = signature.bind(None, *positional, **named).arguments
        except TypeError as failure:
            takes = ", ".join(f"{one.name} ({one.kind.value})" for one in self.parameters)
            raise TransformError(f"{self.name}: {failure}; it takes {takes}") from None
        values: dict[str, object] = {}
        for parameter in self.parameters:
            value, default = given.get(parameter.name, parameter.default), parameter.default
            if parameter.is_variadic:
                values[parameter.name] = list(given.get(parameter.name, ()))
            elif parameter.is_required or type(value) is not type(default) or value != default:
                values[parameter.name] = value
        return values


@functools.cache
def primitives() -> dict[str, Primitive]:
    """Return every primitive that can be a step, by name, in TVM's order."""
    methods = {name: member for name, member in vars(s_tir.Schedule).items() if name[0] != "_"}
    return {
        name: _primitive(name, member)
        for name, member in methods.items()
        if inspect.isfunction(member) and name not in QUERIES
    }


def primitive(name: str) -> Primitive:
    """Return the primitive of this name; raise TransformError if there is none."""
    if name in primitives():
        return primitives()[name]
    if name in QUERIES:
        raise TransformError(f"{name!r} is not a step of a schedule: {QUERIES[name]}")
    close = difflib.get_close_matches(name, [*primitives(), *QUERIES], 3, 0.5)
    there = ", ".join(map(repr, close or primitives()))
    raise TransformError(f"TVM's schedule has no primitive {name!r}: it has {there}")


def _primitive(name: str, member: Callable[..., object]) -> Primitive:
    parameters = list(inspect.signature(member).parameters.values())[1:]
    summary = " ".join((inspect.getdoc(member) or "").partition("\n\n")[0].split())
    summary = _SUMMARIES.get(name) or re.sub(r"\s*It requires( nothing)?:?$", "", summary)
    return Primitive(name, tuple(map(_parameter, parameters)), summary)


def _parameter(parameter: inspect.Parameter) -> PrimitiveParameter:
    is_required = parameter.default is parameter.empty
    default = None if is_required else parameter.default
    is_variadic = parameter.kind is parameter.VAR_POSITIONAL
    return PrimitiveParameter(
        parameter.name, _KINDS[parameter.name], is_required, default, is_variadic
    )
