"""The memory of a simulated function: storages and buffers, with their references counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from irviz.model.graph.graph import NodeId
from irviz.model.runs.memory_use import Allocation, MemoryStep, Storage


@dataclass(eq=False)
class Block:
    """A storage, or a buffer in a storage; it is held from step `start` to before `stop`."""

    name: str
    nbytes: int
    start: int
    stop: int = 0
    storage: Block | None = None
    node: NodeId | None = None


@dataclass(frozen=True)
class TensorInfo:
    """A tensor: its buffer (None if its memory is not counted) and its shape."""

    buffer: Block | None
    shape: tuple[int, ...] | None


Held = TensorInfo | Block | tuple["Held", ...] | None
"""What a variable holds: a tensor, a storage, a tuple of these, or nothing counted."""


class MemoryState(NamedTuple):
    """The reference counts at one moment, the bytes held, and the sum of the buffers so far."""

    counts: dict[Block, int]
    held: int
    unplanned: int


class SimulatedMemory:
    """Counts references as the virtual machine does: a buffer holds its storage.

    A storage is freed with the last variable or buffer that refers to it.
    """

    def __init__(self) -> None:
        self._steps: list[MemoryStep] = []
        self._live: list[int] = []
        self._storages: list[Block] = []
        self._buffers: list[Block] = []
        self._counts: dict[Block, int] = {}
        self._held = self._unplanned = 0
        self._newest = ""

    @property
    def count(self) -> int:
        """The number of steps so far."""
        return len(self._steps)

    @property
    def state(self) -> MemoryState:
        """The current state."""
        return MemoryState(dict(self._counts), self._held, self._unplanned)

    def step(self, name: str, node: NodeId | None = None) -> None:
        """Add a step in which something runs."""
        self._steps.append(MemoryStep(name, node))
        self._live.append(self._held)
        self._newest = ""

    def storage(self, nbytes: int) -> Block:
        """Allocate a storage; the caller must hold it next."""
        self._newest = f"storage {len(self._storages) + 1}"
        block = Block(self._newest, nbytes, self.count)
        self._storages.append(block)
        self._counts[block] = 0
        self._held += nbytes
        return block

    def buffer(self, name: str, node: NodeId | None, nbytes: int, storage: Block) -> Block:
        """Put a buffer into a storage; the caller must hold it next."""
        block = Block(name, nbytes, self.count, storage=storage, node=node)
        self._buffers.append(block)
        self._counts[block] = 0
        self._counts[storage] += 1
        self._unplanned += nbytes
        self._newest = self._newest and name
        return block

    def hold(self, value: Held) -> None:
        """Add a reference to everything in a value."""
        for block in _blocks(value):
            self._counts[block] += 1

    def release(self, value: Held) -> None:
        """Remove a reference from everything in a value; what has none left is freed."""
        for block in _blocks(value):
            self._counts[block] -= 1
            if self._counts[block]:
                continue
            if block.storage is not None:
                self.release(block.storage)
            else:
                self._flush()  # it existed together with what was allocated since the last step
                self._held -= block.nbytes
            del self._counts[block]
            block.stop = self.count

    def restore(self, state: MemoryState) -> None:
        """Restore a state, and keep the steps made since."""
        self._flush()
        counts, self._held, self._unplanned = state
        self._counts = dict(counts)

    def continue_from(self, state: MemoryState, left: MemoryState) -> None:
        """Continue from the end of one branch instead of the other."""
        self.restore(state._replace(unplanned=max(state.unplanned, left.unplanned)))
        self._end(left.counts.keys() - state.counts)

    def finish(
        self,
    ) -> tuple[
        tuple[MemoryStep, ...], tuple[int, ...], tuple[Storage, ...], tuple[Allocation, ...], int
    ]:
        """Return steps, bytes, storages, allocations, and the sum of all buffers.

        What is still held lasts to the end. Buffers that share a name, as those of one call do,
        get numbers.
        """
        self._flush()
        self._end(self._counts)
        storages = [Storage(one.name, one.nbytes, one.start, one.stop) for one in self._storages]
        indices = {one: index for index, one in enumerate(self._storages)}
        shared, counted = Counter(one.name for one in self._buffers), Counter[str]()
        made = []
        for one in self._buffers:
            name = f"{one.name}[{counted[one.name]}]" if shared[one.name] > 1 else one.name
            counted[one.name] += 1
            assert one.storage is not None
            at = indices[one.storage]
            made.append(Allocation(name, one.node, one.nbytes, one.start, one.stop, at))
        return tuple(self._steps), tuple(self._live), tuple(storages), tuple(made), self._unplanned

    def _flush(self) -> None:
        """Add a step for what was allocated since the last one."""
        if self._newest:
            self.step(self._newest)

    def _end(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            block.stop = self.count


def _blocks(value: Held) -> Iterator[Block]:
    """Yield the storages and buffers in a value."""
    match value:
        case tuple():
            for each in value:
                yield from _blocks(each)
        case TensorInfo(buffer=Block() as block) | (Block() as block):
            yield block
