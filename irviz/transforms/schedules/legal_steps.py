"""The steps that loops and blocks of a PrimFunc allow: each is tried before it is offered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tvm import ir

from irviz.errors import TransformError
from irviz.limits import CANDIDATES_SECONDS
from irviz.model.loop_nest import (
    Block,
    BlockAddress,
    Loop,
    LoopAddress,
    LoopNest,
    ScheduleAddress,
    blocks_in_loops,
    schedule_addresses,
    walk,
)
from irviz.runtime.module_serialization import pack_module, unpack_module
from irviz.transforms.schedules.primitives import (
    FOR_CODE,
    ArgumentKind,
    Primitive,
    PrimitiveParameter,
    primitive,
    primitives,
)
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.worker.supervisor import TRIES, WorkerError

TRIED: tuple[str, ...] = (
    *("split", "reorder", "fuse", "parallel", "vectorize", "unroll", "bind"),
    *("compute_at", "reverse_compute_at", "compute_inline", "reverse_compute_inline"),
    *("decompose_reduction", "rfactor", "blockize", "cache_read", "cache_write"),
)
"""The primitives that are tried, in the order in which they are offered; others need a text."""
_MOST_TARGETS = 24
"""How many loops, blocks or buffers a primitive is tried with."""
_MOST_CHARACTERS = 300
_FACTORS = (4, 3, 2)
_VALUES: Mapping[str, object] = {
    "thread_axis": "threadIdx.x",
    "storage_scope": "global",
    "factor_axis": 0,
}
"""The values that are tried, by parameter; factors depend on the loop."""


@dataclass(frozen=True)
class StepOffer:
    """A step that takes what is chosen.

    Attributes:
        step: The step, with values that can be changed.
        target: What it is done with, beside what was chosen, such as "before k"; "" for nothing.
        reason: Why TVM rejects it, "" if it is legal or was not tried.
    """

    step: ScheduleStep
    target: str = ""
    reason: str = ""

    @property
    def is_tried(self) -> bool:
        """Whether it is tried before it is offered: the values of others are not known."""
        return self.step.primitive in TRIED

    @property
    def fields(self) -> tuple[PrimitiveParameter, ...]:
        """The parameters whose values can be changed."""
        values = primitive(self.step.primitive).values
        return tuple(one for one in values if one.kind not in _BUFFERS)


def possible_steps(nest: LoopNest, chosen: Sequence[ScheduleAddress]) -> tuple[StepOffer, ...]:
    """Return the steps that take what is chosen, if one loop or block, with any other target."""
    addresses = schedule_addresses(nest)
    loops = [
        (node, address)
        for node in walk(nest)
        if isinstance(node, Loop) and isinstance(address := addresses.get(node.id), LoopAddress)
    ]
    factors = _factors(loops, chosen)
    known = {name: primitive(name) for name in (*TRIED, *primitives()) if name not in FOR_CODE}
    return tuple(
        StepOffer(ScheduleStep(nest.name, name, {**placed, **_values(one, factors)}), target)
        for name, one in known.items()
        for target, placed in islice(_targets(one, nest, loops, chosen), _MOST_TARGETS)
    )


def tried_steps(
    mod: ir.IRModule, offers: Sequence[StepOffer], check: Callable[[], object] = lambda: None
) -> tuple[StepOffer, ...]:
    """Try steps of one PrimFunc in the worker; return them with the reasons against them.

    `check` is called between trials; it raises an exception if nobody waits for them any more.
    """
    tried = [one for one in offers if one.is_tried]
    if not tried:
        return tuple(offers)
    name = tried[0].step.function
    packed = pack_module(ir.IRModule({name: mod[name]}), whole=True)
    reasons = iter(_reasons(packed, [one.step for one in tried], check))
    return tuple(replace(one, reason=next(reasons)) if one.is_tried else one for one in offers)


def _reasons(
    packed: bytes, steps: Sequence[ScheduleStep], check: Callable[[], object]
) -> tuple[str, ...]:
    """Return why each step is not legal; if one ends the process, each is tried by itself."""
    check()
    try:
        return TRIES.call(_reasons_in_worker, packed, steps, seconds=CANDIDATES_SECONDS)
    except WorkerError as failure:
        if len(steps) == 1:
            return (str(failure),)
        return tuple(_reasons(packed, [step], check)[0] for step in steps)


def _reasons_in_worker(packed: bytes, steps: Sequence[ScheduleStep]) -> tuple[str, ...]:
    """Try each step on the module as it is. Runs in the worker."""
    mod = unpack_module(packed)
    return tuple(_reason(mod, step) for step in steps)


def _reason(mod: ir.IRModule, step: ScheduleStep) -> str:
    try:
        step(mod)
    except TransformError as failure:
        words = str(failure)
        return (words.partition(" is not legal here: ")[2] or words)[:_MOST_CHARACTERS]
    return ""


# --- what is tried -----------------------------------------------------------------------------


_BUFFERS = (ArgumentKind.READ, ArgumentKind.WRITTEN, ArgumentKind.BUFFER)
Arguments = dict[str, object]


_Loops = Sequence[tuple[Loop, LoopAddress]]


def _values(known: Primitive, factors: list[int | None]) -> Arguments:
    """Return the values to try, by parameter."""
    values = {**_VALUES, "factors": factors}
    return {one.name: values[one.name] for one in known.values if one.name in values}


def _factors(loops: _Loops, chosen: Sequence[ScheduleAddress]) -> list[int | None]:
    """Return two factors of the chosen loop's extent, or one for any extent."""
    for loop, address in loops:
        if address in chosen and loop.extent.isdecimal():
            extent = int(loop.extent)
            for factor in _FACTORS:
                if factor < extent and extent % factor == 0:
                    return [extent // factor, factor]
    return [None, _FACTORS[0]]


def _targets(
    known: Primitive, nest: LoopNest, loops: _Loops, chosen: Sequence[ScheduleAddress]
) -> Iterator[tuple[str, Arguments]]:
    """Yield what a step is done with, in words, and the arguments for that and for the choice."""
    placed = known.placed(chosen)
    about = next((one for one in known.values if one.kind in _BUFFERS), None)
    if placed is None and len(chosen) == 1:
        if isinstance(chosen[0], LoopAddress) and known.name in ("fuse", "reorder"):
            yield from _beside(known, nest, chosen[0])
        takes_both = known.placed([BlockAddress(""), LoopAddress("", 0)]) is not None
        pairs = _pairs(known, nest, loops, chosen[0]) if takes_both and about is None else ()
        for words, pair in pairs:
            yield words, known.placed(pair) or {}
    elif placed is not None and about is None:
        yield "", placed
    elif placed is not None and about is not None:
        for block, _ in blocks_in_loops(nest.body):
            if BlockAddress(block.name) in chosen:
                for words, buffer in _buffers(block, about.kind).items():
                    yield words, {**placed, about.name: buffer}


def _buffers(block: Block, kind: ArgumentKind) -> dict[str, object]:
    """Return the buffers that a block accesses, as a parameter takes them, by what they are."""
    sides = {"read": block.reads, "write": block.writes}
    found: dict[str, object] = {}
    for side, accesses in sides.items():
        for number, access in enumerate(accesses):
            if kind is ArgumentKind.BUFFER:
                found.setdefault(f"{side}s {access.buffer}", (side, number))
            elif side == ("read" if kind is ArgumentKind.READ else "write"):
                found.setdefault(access.buffer, number)
    return found


def _beside(known: Primitive, nest: LoopNest, loop: LoopAddress) -> Iterator[tuple[str, Arguments]]:
    """Yield where a loop can be moved to, or the loop around or inside it to fuse it with."""
    (parameter,) = known.addresses
    around = next(
        (all_ for block, all_ in blocks_in_loops(nest.body) if block.name == loop.block), ()
    )
    for depth, other in enumerate(around):
        ends = sorted((loop.depth, depth))
        between = [LoopAddress(loop.block, one) for one in range(ends[0], ends[1] + 1)]
        if known.name == "fuse":
            if len(between) == 2:
                yield f"with {other.variable}", {parameter.name: between}
        elif depth < loop.depth:
            yield f"before {other.variable}", {parameter.name: [between[-1], *between[:-1]]}
        elif depth > loop.depth:
            yield f"after {other.variable}", {parameter.name: [*between[1:], between[0]]}


def _pairs(
    known: Primitive, nest: LoopNest, loops: _Loops, chosen: ScheduleAddress
) -> Iterator[tuple[str, tuple[BlockAddress, LoopAddress]]]:
    """Yield a block and a loop, of which one is chosen; a loop around the block for a reduction."""
    is_around = known.name.startswith("decompose_")
    own = [pair for pair in loops if pair[1] == chosen]
    for block, outer in blocks_in_loops(nest.body):
        around, address = {loop.id for loop in outer}, BlockAddress(block.name)
        for loop, at in loops if address == chosen else own:
            if (loop.id in around) == is_around:
                of = "" if is_around else f" of {at.block}"
                words = f"block {address}" if own else f"at {loop.variable}{of}"
                yield words, (address, at)
