"""Record what an instrumented module reports: values within a budget, and times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import tvm

from irviz.model.graph import NodeId
from irviz.model.splice import within
from irviz.model.summary import summarise
from irviz.model.trace import Array, Trace, Value, Visit
from irviz.runtime.instrument import BEGIN, CALLING, PARAM, VALUE, Instrumented
from irviz.worker.progress import tell

BUDGET = 64 * 2**20
"""How many bytes of values a trace keeps whole, when nothing else is said."""
_SHARE = 8
_MOST_VISITS = 100_000
_SECONDS, _MOST_ROUNDS = 0.3, 20


@dataclass(frozen=True)
class Wish:
    """What to record: of which case, and how many bytes of values to keep whole.

    `kept` are nodes whose values are kept whole however large; all others are then only
    summarised.
    """

    case: int = 0
    budget: int = BUDGET
    kept: Collection[NodeId] = ()


class _Call(NamedTuple):
    """A call of a function that is under way."""

    path: str
    function: str


@dataclass
class _Recorder:
    """Hears the reports of one call after another; `wish` is None while only times are taken."""

    of: Instrumented
    function: str
    wish: Wish | None = None
    values: dict[NodeId, Value] = field(default_factory=dict)
    seconds: dict[NodeId, float] = field(default_factory=dict)
    counts: dict[NodeId, int] = field(default_factory=dict)
    ticks: list[float] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    aside: float = 0.0
    kept: int = 0
    last: float = 0.0

    def begin(self) -> None:
        now = time.perf_counter()
        self.ticks.append(now - self.last)
        self.last = time.perf_counter()

    def calling(self, number: int) -> None:
        now = time.perf_counter()
        name = self.of.callees[number]
        node = self.of.nodes[number]
        inside = [one for one in self.calls if one.function == name]
        path = inside[-1].path if inside else self._path(node)
        if name == self.function:  # it calls itself: what it does there is told as of the first
            path = ""
        self.calls.append(_Call(path, name))
        self._rest(now)

    def param(self, number: int, value: object) -> None:
        now = time.perf_counter()
        self._record(NodeId(self._path(self.of.nodes[number])), value, None)
        self._rest(now)

    def value(self, number: int, value: object) -> None:
        now = time.perf_counter()
        seconds = now - self.last
        if number in self.of.callees and self.calls:
            self.calls.pop()  # what was done inside has been told: the rest is its own
        self._record(NodeId(self._path(self.of.nodes[number])), value, seconds)
        self._rest(now)

    def _path(self, node: NodeId) -> str:
        path = self.calls[-1].path if self.calls else ""
        return within(path, node) if path else str(node)

    def _record(self, node: NodeId, value: object, seconds: float | None) -> None:
        if node not in self.counts and len(self.counts) >= _MOST_VISITS:
            return
        self.counts[node] = self.counts.get(node, 0) + 1
        if seconds is not None:
            self.seconds[node] = self.seconds.get(node, 0.0) + seconds
        if self.wish is not None:
            tell(f"after {node}")
            before = self.values.get(node)
            if before is not None:
                self.kept -= sum(one.nbytes for one in before.arrays if one is not None)
            self.values[node] = self._valued(node, value, self.wish)

    def _valued(self, node: NodeId, value: object, wish: Wish) -> Value:
        tensors, others = list[Array](), list[str]()
        _leaves(value, tensors, others)
        summaries = tuple(map(summarise, tensors))
        arrays: list[Array | None] = []
        for tensor in tensors:
            room = wish.budget - self.kept
            fits = tensor.nbytes <= min(room, wish.budget // _SHARE)
            is_kept = node in wish.kept if wish.kept else fits
            arrays.append(tensor if is_kept else None)
            self.kept += tensor.nbytes * is_kept
        return Value(summaries, tuple(arrays), ", ".join(others))

    def _rest(self, since: float) -> None:
        """Begin to count again: what was done here is no time of the function's."""
        self.last = time.perf_counter()
        self.aside += self.last - since


_recorder: _Recorder | None = None


def record(
    of: Instrumented,
    function: str,
    call: Callable[[], object],
    untraced: float,
    wish: Wish,
) -> Trace:
    """Call a built, instrumented function and return what it did.

    It is called once for the values, and again for some time for the times, of which the medians
    are kept. `untraced` are the seconds that the function itself takes.
    """
    first = _heard(of, function, call, wish)
    rounds: list[_Recorder] = []
    start = time.perf_counter()
    while not rounds or (
        len(rounds) < _MOST_ROUNDS and time.perf_counter() - start < _SECONDS and not wish.kept
    ):
        rounds.append(_heard(of, function, call, None))
    visits = {
        node: Visit(value, _median(node, rounds), first.counts[node])
        for node, value in first.values.items()
    }
    total = sum(visit.seconds or 0.0 for visit in visits.values())
    return Trace(function, visits, total, untraced, first.aside, wish.case)


def _heard(
    of: Instrumented, function: str, call: Callable[[], object], wish: Wish | None
) -> _Recorder:
    global _recorder
    recorder = _recorder = _Recorder(of, function, wish)
    recorder.last = time.perf_counter()
    try:
        call()
    finally:
        _recorder = None
    return recorder


def _median(node: NodeId, rounds: Sequence[_Recorder]) -> float | None:
    """Return the seconds at a node, without those that telling them takes."""
    found = [
        max(one.seconds[node] - statistics.median(one.ticks[1:]) * one.counts[node], 0.0)
        for one in rounds
        if node in one.seconds
    ]
    return statistics.median(found) if found else None


def _leaves(value: object, tensors: list[Array], others: list[str]) -> None:
    """Copy the tensors in a value; say what else there is in it."""
    if isinstance(value, tvm.runtime.Tensor):
        try:
            copied = np.array(value.numpy())
        except Exception:  # a dtype that NumPy has not
            others.append(f"{value.dtype} {tuple(value.shape)}")
        else:
            tensors.append(copied)
    elif isinstance(value, tuple | list | tvm.ir.Array):
        for item in value:
            _leaves(item, tensors, others)
    else:
        others.append(str(value)[:200])


def _tell(name: str) -> Callable[..., None]:
    def told(*arguments: object) -> None:
        if _recorder is not None:
            getattr(_recorder, name)(*arguments)

    return told


for _name in (BEGIN, CALLING, PARAM, VALUE):
    tvm.register_global_func(_name, _tell(_name.rpartition(".")[2]), override=True)
