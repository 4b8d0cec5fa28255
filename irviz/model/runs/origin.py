"""The program that a module was imported from: what the module should compute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irviz.model.graph.graph import NodeId
from irviz.model.runs.array_summary import summarise
from irviz.model.runs.trace import Array, NodeValue, NodeVisit, Trace

_SHARE = 8


@dataclass(frozen=True, eq=False)
class OriginRun:
    """What the origin computes in one case.

    Attributes:
        outputs: The arrays that it returns.
        trace: The values of its nodes, by the nodes of the module that were imported from them.
        labels: What those nodes are in the origin, in words.
    """

    outputs: tuple[Array, ...]
    trace: Trace
    labels: Mapping[NodeId, str] = field(default_factory=dict)


class Origin(ABC):
    """A program that can be run beside the module that was imported from it.

    Attributes:
        name: What runs it, such as "torch".
        is_isolated: Whether it can be sent to the worker, and is run nowhere else.
    """

    name: str
    is_isolated: bool

    @abstractmethod
    def run(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Run it with the arguments of the module's parameters; `budget` is in bytes."""


class ValueRecorder:
    """Collects the values of nodes, whole as far as the budget reaches."""

    def __init__(self, budget: int) -> None:
        self.visits: dict[NodeId, NodeVisit] = {}
        self._most, self._room = budget // _SHARE, budget

    def add(self, node: NodeId, arrays: Sequence[Array]) -> None:
        """Record the tensors of a node's value."""
        kept: list[Array | None] = []
        for array in arrays:
            fits = array.nbytes <= min(self._most, self._room)
            self._room -= array.nbytes * fits
            kept.append(array if fits else None)
        self.visits[node] = NodeVisit(NodeValue(tuple(map(summarise, arrays)), tuple(kept)))

    def trace(self, function: str) -> Trace:
        """Return what was recorded, without times."""
        return Trace(function, self.visits, 0.0, 0.0, 0.0)
