"""The steps that loops and blocks of a PrimFunc allow: each is tried before it is offered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import cloudpickle
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
from irviz.runtime.module_bytes import pack_module, unpack_module
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
    names = dict.fromkeys([*TRIED, *primitives()])
    return tuple(
        StepOffer(ScheduleStep(nest.name, name, {**placed, **values}), target)
        for name in names
        if name not in FOR_CODE
        for values in [_values(primitive(name), nest, chosen)]
        for target, placed in islice(_targets(primitive(name), nest, chosen), _MOST_TARGETS)
    )


def tried_steps(mod: ir.IRModule, offers: Sequence[StepOffer]) -> tuple[StepOffer, ...]:
    """Try steps of one PrimFunc in the worker; return them with the reasons against them."""
    tried = [one for one in offers if one.is_tried]
    if not tried:
        return tuple(offers)
    name = tried[0].step.function
    packed = pack_module(ir.IRModule({name: mod[name]}), whole=True)
    reasons = iter(_reasons(packed, [one.step for one in tried]))
    return tuple(replace(one, reason=next(reasons)) if one.is_tried else one for one in offers)


def _reasons(packed: bytes, steps: Sequence[ScheduleStep]) -> tuple[str, ...]:
    """Return why each step is not legal; if one ends the process, each is tried by itself."""
    try:
        return TRIES.call(
            _reasons_in_worker, cloudpickle.dumps((packed, steps)), seconds=CANDIDATES_SECONDS
        )
    except WorkerError as failure:
        if len(steps) == 1:
            return (str(failure),)
        return tuple(_reasons(packed, [step])[0] for step in steps)


def _reasons_in_worker(sent: bytes) -> tuple[str, ...]:
    """Try each step on the module as it is. Runs in the worker."""
    packed, steps = cloudpickle.loads(sent)
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


def _values(known: Primitive, nest: LoopNest, chosen: Sequence[ScheduleAddress]) -> Arguments:
    """Return the values to try, by parameter."""
    names = [one.name for one in known.values]
    factors = {"factors": _factors(nest, chosen)} if "factors" in names else {}
    return {**{name: value for name, value in _VALUES.items() if name in names}, **factors}


def _factors(nest: LoopNest, chosen: Sequence[ScheduleAddress]) -> list[int | None]:
    """Return two factors of the chosen loop's extent, or one for any extent."""
    for loop, address in _loops(nest):
        if address in chosen and loop.extent.isdecimal():
            extent = int(loop.extent)
            for factor in _FACTORS:
                if factor < extent and extent % factor == 0:
                    return [extent // factor, factor]
    return [None, _FACTORS[0]]


def _targets(
    known: Primitive, nest: LoopNest, chosen: Sequence[ScheduleAddress]
) -> Iterator[tuple[str, Arguments]]:
    """Yield what a step is done with, in words, and the arguments for that and for the choice."""
    placed = known.placed(chosen)
    about = next((one for one in known.values if one.kind in _BUFFERS), None)
    if placed is None and len(chosen) == 1:
        if isinstance(chosen[0], LoopAddress) and known.name in ("fuse", "reorder"):
            yield from _beside(known, nest, chosen[0])
        for words, pair in _pairs(known, nest, chosen[0]) if about is None else ():
            both = known.placed(pair)
            if both is not None:
                yield words, both
    elif placed is not None and about is None:
        yield "", placed
    elif placed is not None and about is not None:
        for block, _ in blocks_in_loops(nest):
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
    around = next((all_ for block, all_ in blocks_in_loops(nest) if block.name == loop.block), ())
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
    known: Primitive, nest: LoopNest, chosen: ScheduleAddress
) -> Iterator[tuple[str, tuple[BlockAddress, LoopAddress]]]:
    """Yield a block and a loop, of which one is chosen; a loop around the block for a reduction."""
    is_around = known.name == "decompose_reduction"
    for block, loops in blocks_in_loops(nest):
        around, own = {loop.id for loop in loops}, BlockAddress(block.name)
        for loop, address in _loops(nest):
            if chosen in (own, address) and (loop.id in around) == is_around:
                of = "" if is_around else f" of {address.block}"
                words = f"block {own}" if chosen == address else f"at {loop.variable}{of}"
                yield words, (own, address)


def _loops(nest: LoopNest) -> Iterator[tuple[Loop, LoopAddress]]:
    addresses = schedule_addresses(nest)
    for node in walk(nest):
        address = addresses.get(node.id)
        if isinstance(node, Loop) and isinstance(address, LoopAddress):
            yield node, address
