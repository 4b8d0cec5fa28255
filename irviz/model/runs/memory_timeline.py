"""The memory that a run of a function holds, step by step."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from irviz.model.graph.graph import NodeId
from irviz.units import format_bytes


class MemoryStep(NamedTuple):
    """One call: the name of the callee, and the node whose value it makes, None if unknown."""

    name: str
    node: NodeId | None = None


@dataclass(frozen=True)
class Storage:
    """A block of memory for buffers that do not live at the same time; `nbytes` in bytes.

    It is held from step `start` to the step before `stop`, counted from 0.
    """

    name: str
    nbytes: int
    start: int
    stop: int


@dataclass(frozen=True)
class Allocation:
    """A buffer of `nbytes` bytes, which is held from step `start` to the step before `stop`.

    `storage` is the index of its storage, `node` the node whose value it holds, None if unknown.
    """

    name: str
    node: NodeId | None
    nbytes: int
    start: int
    stop: int
    storage: int


@dataclass(frozen=True)
class MemoryUse:
    """The memory that a function allocates as it runs, in bytes.

    Both branches of an `if` have steps, one branch after the other. Each starts with the memory
    held before the `if`; the code after it continues from the branch that holds more.

    Attributes:
        live: The bytes held during each step.
        unplanned: The total size of all buffers, as if none were reused or freed.
        given: The bytes of parameters and constants, which `live` and `unplanned` leave out.
        unseen: Calls that allocate their own results, so that their size is unknown.
        warnings: Problems of the memory plan.
    """

    function: str
    steps: tuple[MemoryStep, ...]
    live: tuple[int, ...]
    storages: tuple[Storage, ...]
    allocations: tuple[Allocation, ...]
    unplanned: int
    given: int = 0
    unseen: tuple[str, ...] = field(default=(), kw_only=True)
    warnings: tuple[str, ...] = field(default=(), kw_only=True)

    def __repr__(self) -> str:
        return (
            f"<MemoryUse of {self.function!r}: peak {format_bytes(self.peak)} in {len(self.steps)} "
            f"steps, {len(self.allocations)} buffers in {len(self.storages)} storages>"
        )

    @property
    def peak(self) -> int:
        """The largest number of bytes held at once."""
        return max(self.live, default=0)

    @property
    def peak_step(self) -> int | None:
        """The first step at the peak, None if there are no steps."""
        return self.live.index(self.peak) if self.live else None

    def at(self, step: int) -> tuple[Allocation, ...]:
        """Return the buffers held during a step; raise IndexError if there is no such step."""
        if not 0 <= step < len(self.steps):
            raise IndexError(f"there is no step {step}: {len(self.steps)} are counted from 0")
        return tuple(one for one in self.allocations if one.start <= step < one.stop)


def storage_offsets(storages: Sequence[Storage]) -> tuple[int, ...]:
    """Return an offset in bytes for each storage, so that none overlap at the same time.

    Each storage gets the first gap that it fits in (first fit), so the highest end may be above
    the peak. The offsets are for drawing: the operating system chooses the real addresses.
    """
    offsets = [0] * len(storages)
    held: list[tuple[int, int, int]] = []
    for index in sorted(range(len(storages)), key=lambda one: storages[one].start):
        one = storages[index]
        held = [entry for entry in held if entry[2] > one.start]
        offset = 0
        for begin, end, _ in held:
            if begin - offset >= one.nbytes:
                break
            offset = max(offset, end)
        offsets[index] = offset
        if one.nbytes:
            bisect.insort(held, (offset, offset + one.nbytes, max(one.stop, one.start + 1)))
    return tuple(offsets)
