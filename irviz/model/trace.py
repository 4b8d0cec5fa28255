"""What a run did at each node: values and times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irviz.model.graph import NodeId
from irviz.model.splice import inside
from irviz.model.summary import Summary

Array = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class Value:
    """The value of a node: a tensor, a tuple of them, or something else that is only text.

    `summaries` has one entry for each tensor in it, in order; `arrays` the tensor itself, or None
    where it was too large to keep. `text` stands for what is no tensor: a shape, a number.
    """

    summaries: tuple[Summary, ...] = ()
    arrays: tuple[Array | None, ...] = ()
    text: str = ""

    @property
    def nbytes(self) -> int:
        """The size of its tensors, in bytes."""
        return sum(summary.nbytes for summary in self.summaries)

    @property
    def largest(self) -> float | None:
        """The largest |value| of its finite numbers."""
        found = [one.largest for one in self.summaries if one.largest is not None]
        return max(found, default=None)

    @property
    def is_finite(self) -> bool:
        """Whether there is neither a NaN nor an infinity in it."""
        return all(summary.is_finite for summary in self.summaries)

    def is_same(self, other: Value) -> bool:
        """Tell whether two values are equal bit by bit."""
        digests = [one.digest for one in self.summaries]
        return digests == [one.digest for one in other.summaries] and self.text == other.text


@dataclass(frozen=True, eq=False)
class Visit:
    """What happened at a node: its last value, the seconds of all `count` visits together.

    `seconds` are its own, without those of nodes in a function that it calls; None for what takes
    none: a parameter, a constant.
    """

    value: Value
    seconds: float | None = None
    count: int = 1


@dataclass(frozen=True, eq=False)
class Trace:
    """What one call of a function did, node by node, in the order in which values were made.

    A node of a called function has the id it has where the function is shown in place of the
    call (`model/splice.py`). `visits` lacks what was not reached: the branch not taken.
    `seconds` is the time of the call by the sum of its nodes, `untraced` that of one without a
    trace, `cost` what recording the values took; `case` is the number of the input.
    """

    function: str
    visits: Mapping[NodeId, Visit]
    seconds: float
    untraced: float
    cost: float
    case: int = 0

    def __repr__(self) -> str:
        """Return how much was recorded; the values are in `visits`."""
        return f"<Trace of {self.function!r}, input {self.case}: {len(self.visits)} values>"

    def __getitem__(self, node_id: str) -> Visit:
        """Return what happened at a node; raise KeyError for one that was not reached."""
        visit = self.visits.get(NodeId(node_id))
        if visit is None:
            raise KeyError(
                f"no value of {node_id!r} was recorded: it is no node of {self.function!r}, or "
                "stands in a branch that was not taken"
            )
        return visit

    def taken(self, node_id: str) -> float | None:
        """Return the seconds at a node, with those of the nodes in a function that it calls."""
        own = self[node_id].seconds
        if own is None:
            return None
        inner = (v.seconds for one, v in self.visits.items() if inside(node_id, one) is not None)
        return own + sum(seconds for seconds in inner if seconds is not None)

    def share(self, node_id: str) -> float | None:
        """Return which part of the call's time was taken at a node, between 0 and 1."""
        seconds = self.taken(node_id)
        return None if seconds is None or not self.seconds else seconds / self.seconds

    @property
    def first_not_finite(self) -> NodeId | None:
        """The node whose value was the first with a NaN or an infinity in it, if any was."""
        return next((one for one, visit in self.visits.items() if not visit.value.is_finite), None)
