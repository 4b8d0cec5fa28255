"""What memory a run of a function holds, as plain data."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from irviz.model.graph import NodeId

_UNITS = ("KiB", "MiB", "GiB", "TiB")


class Step(NamedTuple):
    """One call that runs: what is called, and the node whose value it makes, where known."""

    name: str
    node: NodeId | None = None


@dataclass(frozen=True)
class Storage:
    """A stretch of memory that buffers stand in, one after another; `nbytes` in bytes.

    It is held from the step `start` to the one before `stop`, counted from 0.
    """

    name: str
    nbytes: int
    start: int
    stop: int


@dataclass(frozen=True)
class Allocation:
    """A buffer: `nbytes` in bytes, in the storage of this index, from `start` to before `stop`.

    `node` is the node whose value it holds, where known.
    """

    name: str
    node: NodeId | None
    nbytes: int
    start: int
    stop: int
    storage: int


@dataclass(frozen=True)
class MemoryUse:
    """What is allocated while a function runs, step by step; all sizes in bytes.

    `live` is what is held while each step runs. `unplanned` is the sum of all buffers: what it
    would be if each had memory of its own until the end. `given` is what parameters and constants
    take, which is part of neither. Of an `if` both branches have steps, one behind the other, and
    each begins with what was held before; what follows goes on from the one that gives more.

    `unseen` are calls that make values by themselves, in memory that nobody but they know of;
    `warnings` what is wrong with the plan.
    """

    function: str
    steps: tuple[Step, ...]
    live: tuple[int, ...]
    storages: tuple[Storage, ...]
    allocations: tuple[Allocation, ...]
    unplanned: int
    given: int = 0
    unseen: tuple[str, ...] = field(default=(), kw_only=True)
    warnings: tuple[str, ...] = field(default=(), kw_only=True)

    def __repr__(self) -> str:
        """Return the peak; what is held when is in `storages` and `allocations`."""
        return (
            f"<MemoryUse of {self.function!r}: peak {bytes_text(self.peak)} in {len(self.steps)} "
            f"steps, {len(self.allocations)} buffers in {len(self.storages)} storages>"
        )

    @property
    def peak(self) -> int:
        """The most that is held at once, in bytes."""
        return max(self.live, default=0)

    @property
    def peak_step(self) -> int | None:
        """The first step at which the most is held, None where nothing runs."""
        return self.live.index(self.peak) if self.live else None

    def at(self, step: int) -> tuple[Allocation, ...]:
        """Return the buffers that are held while a step runs; raise IndexError for no such step."""
        if not 0 <= step < len(self.steps):
            raise IndexError(f"there is no step {step}: {len(self.steps)} are counted from 0")
        return tuple(one for one in self.allocations if one.start <= step < one.stop)


def places(storages: Sequence[Storage]) -> tuple[int, ...]:
    """Return where each storage could stand, in bytes from the lowest: the first gap it fits in.

    No two that are held at the same time overlap. It is a place to draw it at: where it really
    stands, the operating system says. A gap that is too small stays free, so that the highest
    place may end above the peak.
    """
    found: list[int] = [0] * len(storages)
    held: list[tuple[int, int, int]] = []
    for index in sorted(range(len(storages)), key=lambda one: storages[one].start):
        one = storages[index]
        held = [entry for entry in held if entry[2] > one.start]
        place = 0
        for begin, end, _ in held:
            if begin - place >= one.nbytes:
                break
            place = max(place, end)
        found[index] = place
        if one.nbytes:
            bisect.insort(held, (place, place + one.nbytes, max(one.stop, one.start + 1)))
    return tuple(found)


def bytes_text(count: float) -> str:
    """Return a number of bytes with three digits and the unit that suits it.

    >>> bytes_text(512), bytes_text(401408)
    ('512 B', '392 KiB')
    """
    if count < 1024:
        return f"{count:g} B"
    power = min(max(int(math.log(count, 1024)), 1), len(_UNITS))
    count /= 1024**power
    if count >= 1023.5 and power < len(_UNITS):  # which three digits would make 1024 of
        count, power = count / 1024, power + 1
    unit = _UNITS[power - 1]
    return f"{count:.0f} {unit}" if count >= 99.95 else f"{count:.3g} {unit}"
