"""Reference counts of storages and buffers while a function is simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from irviz.model.graph.graph import NodeId
from irviz.model.runs.memory_use import Allocation, MemoryStep, Storage


@dataclass(frozen=True)
class TensorInfo:
    """A tensor: the number of its buffer (None if its memory is not counted) and its shape."""

    buffer: int | None
    shape: tuple[int, ...] | None


Held = TensorInfo | int | tuple["Held", ...] | None
"""What a variable holds: a tensor, a storage number, a tuple of these, or nothing counted."""


@dataclass(frozen=True)
class MemoryState:
    """The reference counts at one moment, and the bytes held in all."""

    storages: dict[int, int]
    buffers: dict[int, int]
    held: int
    unplanned: int


class RefCounts:
    """Counts references as the virtual machine does: a buffer holds its storage.

    A storage is freed with the last variable or buffer that refers to it.
    """

    def __init__(self) -> None:
        self.unplanned = 0
        self._steps: list[MemoryStep] = []
        self._live: list[int] = []
        self._storages: list[Storage] = []
        self._buffers: list[Allocation] = []
        self._in_storage: dict[int, int] = {}
        self._in_buffer: dict[int, int] = {}
        self._held = 0
        self._newest = ""

    @property
    def count(self) -> int:
        """The number of steps so far."""
        return len(self._steps)

    def step(self, name: str, node: NodeId | None = None) -> None:
        """Add a step in which something runs."""
        self._steps.append(MemoryStep(name, node))
        self._live.append(self._held)
        self._newest = ""

    def storage(self, nbytes: int) -> int:
        """Allocate a storage and return its number; the caller must hold it next."""
        number = len(self._storages)
        name = f"storage {number + 1}"
        self._storages.append(Storage(name, nbytes, self.count, self.count))
        self._in_storage[number] = 0
        self._held += nbytes
        self._newest = name
        return number

    def allocation(self, name: str, node: NodeId | None, nbytes: int, storage: int) -> int:
        """Put a buffer into a storage and return its number; the caller must hold it next."""
        self._buffers.append(Allocation(name, node, nbytes, self.count, self.count, storage))
        number = len(self._buffers) - 1
        self._in_buffer[number] = 0
        self._in_storage[storage] += 1
        self.unplanned += nbytes
        self._newest = self._newest and name
        return number

    def hold(self, value: Held) -> None:
        """Add a reference to everything in a value."""
        match value:
            case tuple():
                for each in value:
                    self.hold(each)
            case TensorInfo(buffer=int(number)):
                self._in_buffer[number] += 1
            case int():
                self._in_storage[value] += 1

    def release(self, value: Held) -> None:
        """Remove a reference from everything in a value; what has none left is freed."""
        match value:
            case tuple():
                for each in value:
                    self.release(each)
            case TensorInfo(buffer=int(number)):
                self._in_buffer[number] -= 1
                if not self._in_buffer[number]:
                    del self._in_buffer[number]
                    storage = self._buffers[number].storage
                    self._release_storage(storage)
                    self._buffers[number] = replace(self._buffers[number], stop=self.count)
            case int():
                self._release_storage(value)

    def _release_storage(self, number: int) -> None:
        self._in_storage[number] -= 1
        if self._in_storage[number]:
            return
        if self._newest:  # it existed together with what was allocated since the last step
            self.step(self._newest)
        del self._in_storage[number]
        self._held -= self._storages[number].nbytes
        self._storages[number] = replace(self._storages[number], stop=self.count)

    def state(self) -> MemoryState:
        """Return the current state."""
        return MemoryState(
            dict(self._in_storage), dict(self._in_buffer), self._held, self.unplanned
        )

    def restore(self, state: MemoryState) -> None:
        """Restore a state, and keep the steps made since."""
        if self._newest:
            self.step(self._newest)
        self._in_storage, self._in_buffer = dict(state.storages), dict(state.buffers)
        self._held, self.unplanned = state.held, state.unplanned

    def continue_from(self, state: MemoryState, left: MemoryState) -> None:
        """Continue from the end of one branch instead of the other."""
        self.restore(state)
        self.unplanned = max(state.unplanned, left.unplanned)
        self._end(left.storages.keys() - state.storages, left.buffers.keys() - state.buffers)

    def finish(
        self,
    ) -> tuple[
        tuple[MemoryStep, ...], tuple[int, ...], tuple[Storage, ...], tuple[Allocation, ...]
    ]:
        """Return steps, bytes, storages and allocations; what is still held lasts to the end."""
        if self._newest:
            self.step(self._newest)
        self._end(self._in_storage.keys(), self._in_buffer.keys())
        return tuple(self._steps), tuple(self._live), tuple(self._storages), self._named()

    def _end(self, storages: Iterable[int], buffers: Iterable[int]) -> None:
        for number in storages:
            self._storages[number] = replace(self._storages[number], stop=self.count)
        for number in buffers:
            self._buffers[number] = replace(self._buffers[number], stop=self.count)

    def _named(self) -> tuple[Allocation, ...]:
        """Add numbers to the buffers that share a name, as those of one call do."""
        counts = Counter(one.name for one in self._buffers)
        counted: dict[str, int] = {}
        found = []
        for one in self._buffers:
            number = counted[one.name] = counted.get(one.name, -1) + 1
            found.append(
                one if counts[one.name] == 1 else replace(one, name=f"{one.name}[{number}]")
            )
        return tuple(found)
