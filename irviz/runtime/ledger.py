"""Who holds which memory, and since which step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from irviz.model.graph import NodeId
from irviz.model.memory import Allocation, Step, Storage


@dataclass(frozen=True)
class Tensor:
    """A tensor by its buffer's number, None where the memory is not counted, and its shape."""

    buffer: int | None
    shape: tuple[int, ...] | None


Thing = Tensor | int | tuple["Thing", ...] | None
"""What a variable holds: a tensor, a storage's number, several of them, or nothing that counts."""


@dataclass(frozen=True)
class State:
    """What is held at one moment: how often each storage and each buffer, and bytes in all."""

    storages: dict[int, int]
    buffers: dict[int, int]
    held: int
    unplanned: int


class Ledger:
    """Counts references as the virtual machine does: a buffer holds its storage.

    A storage is let go with the last variable or buffer that holds it.
    """

    def __init__(self) -> None:
        self.unplanned = 0
        self._steps: list[Step] = []
        self._live: list[int] = []
        self._storages: list[Storage] = []
        self._buffers: list[Allocation] = []
        self._in_storage: dict[int, int] = {}
        self._in_buffer: dict[int, int] = {}
        self._held = 0
        self._newest = ""

    @property
    def count(self) -> int:
        """How many steps there are so far."""
        return len(self._steps)

    def step(self, name: str, node: NodeId | None = None) -> None:
        """Note that something runs now."""
        self._steps.append(Step(name, node))
        self._live.append(self._held)
        self._newest = ""

    def storage(self, nbytes: int) -> int:
        """Allocate a storage and return its number; it is to be held next."""
        number = len(self._storages)
        name = f"storage {number + 1}"
        self._storages.append(Storage(name, nbytes, self.count, self.count))
        self._in_storage[number] = 0
        self._held += nbytes
        self._newest = name
        return number

    def allocation(self, name: str, node: NodeId | None, nbytes: int, storage: int) -> int:
        """Put a buffer into a storage and return its number; it is to be held next."""
        self._buffers.append(Allocation(name, node, nbytes, self.count, self.count, storage))
        number = len(self._buffers) - 1
        self._in_buffer[number] = 0
        self._in_storage[storage] += 1
        self.unplanned += nbytes
        self._newest = self._newest and name
        return number

    def hold(self, thing: Thing) -> None:
        """Count one more reference to whatever is in a thing."""
        match thing:
            case tuple():
                for each in thing:
                    self.hold(each)
            case Tensor(buffer=int(number)):
                self._in_buffer[number] += 1
            case int():
                self._in_storage[thing] += 1

    def let_go(self, thing: Thing) -> None:
        """Count one reference less; what nothing refers to is free."""
        match thing:
            case tuple():
                for each in thing:
                    self.let_go(each)
            case Tensor(buffer=int(number)):
                self._in_buffer[number] -= 1
                if not self._in_buffer[number]:
                    del self._in_buffer[number]
                    storage = self._buffers[number].storage
                    self._let_storage_go(storage)
                    self._buffers[number] = replace(self._buffers[number], stop=self.count)
            case int():
                self._let_storage_go(thing)

    def _let_storage_go(self, number: int) -> None:
        self._in_storage[number] -= 1
        if self._in_storage[number]:
            return
        if self._newest:  # it was there together with what has been allocated since the last step
            self.step(self._newest)
        del self._in_storage[number]
        self._held -= self._storages[number].nbytes
        self._storages[number] = replace(self._storages[number], stop=self.count)

    def state(self) -> State:
        """Return what is held now."""
        return State(dict(self._in_storage), dict(self._in_buffer), self._held, self.unplanned)

    def go_back(self, state: State) -> None:
        """Hold what was held before, with the steps that have been since then."""
        if self._newest:
            self.step(self._newest)
        self._in_storage, self._in_buffer = dict(state.storages), dict(state.buffers)
        self._held, self.unplanned = state.held, state.unplanned

    def go_on(self, state: State, left: State) -> None:
        """Go on from the end of a branch, and not from that of another."""
        self.go_back(state)
        self.unplanned = max(state.unplanned, left.unplanned)
        self._end(left.storages.keys() - state.storages, left.buffers.keys() - state.buffers)

    def closed(
        self,
    ) -> tuple[tuple[Step, ...], tuple[int, ...], tuple[Storage, ...], tuple[Allocation, ...]]:
        """Return all that was noted; what is still held, as the result, is held to the end."""
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
        """Tell buffers of one name apart: a call that writes several has one node."""
        counts = Counter(one.name for one in self._buffers)
        counted: dict[str, int] = {}
        found = []
        for one in self._buffers:
            number = counted[one.name] = counted.get(one.name, -1) + 1
            found.append(
                one if counts[one.name] == 1 else replace(one, name=f"{one.name}[{number}]")
            )
        return tuple(found)
