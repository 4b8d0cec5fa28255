"""The value and the time of each node in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irviz.model.graph.graph import NodeId, UnknownNodeError, id_in_callee
from irviz.model.runs.array_diff import ArraySummary

Array = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class NodeValue:
    """The value of a node.

    Attributes:
        summaries: The statistics of each tensor in the value: one for a tensor, any number for a
            tuple, none for a shape or a number.
        arrays: The same tensors themselves, None for one that was too large to keep.
        text: A value that is not a tensor, as text.
    """

    summaries: tuple[ArraySummary, ...] = ()
    arrays: tuple[Array | None, ...] = ()
    text: str = ""

    @property
    def nbytes(self) -> int:
        """The size of the tensors in bytes."""
        return sum(summary.nbytes for summary in self.summaries)

    @property
    def largest(self) -> float | None:
        """The largest magnitude of the finite numbers, None if there are none."""
        magnitudes = [one.largest for one in self.summaries if one.largest is not None]
        return max(magnitudes, default=None)

    @property
    def is_finite(self) -> bool:
        """Whether the value has neither a NaN nor an infinity."""
        return all(summary.is_finite for summary in self.summaries)

    def is_same(self, other: NodeValue) -> bool:
        """Return whether two values are equal bit by bit."""
        digests = [(one.digest, one.step) for one in self.summaries]
        known = [(one.digest, 1) for one in other.summaries]
        return digests == known and self.text == other.text


@dataclass(frozen=True, eq=False)
class NodeVisit:
    """The visits of one node in a run.

    `seconds` is the time of all visits, without that of nodes in a function that the node calls;
    None for a parameter or a constant.
    """

    value: NodeValue
    seconds: float | None = None
    count: int = 1


@dataclass(frozen=True, eq=False)
class Trace:
    """The values and times of one call of a function.

    Attributes:
        visits: The visits of nodes, in execution order. A node of a called function has its id in
            the inlined graph (`inlined_id`). Nodes of a branch not taken are absent.
        seconds: The time of the call in seconds: the sum over its nodes.
        untraced: The time of a call without tracing, in seconds.
        cost: The cost of recording the values, in seconds.
    """

    function: str
    visits: Mapping[NodeId, NodeVisit]
    seconds: float
    untraced: float
    cost: float
    case: int = 0

    def __repr__(self) -> str:
        return f"<Trace of {self.function!r}, input {self.case}: {len(self.visits)} values>"

    def __getitem__(self, node_id: str) -> NodeVisit:
        """Return the visits of a node; raise UnknownNodeError for one that was not reached."""
        visit = self.visits.get(NodeId(node_id))
        if visit is None:
            raise UnknownNodeError(
                f"no value of {node_id!r} was recorded: it is not a node of {self.function!r}, or "
                "stands in a branch that was not taken"
            )
        return visit

    def taken(self, node_id: str) -> float | None:
        """Return the time of a node in seconds, including the function that it calls."""
        own = self[node_id].seconds
        if own is None:
            return None
        inside = [v for one, v in self.visits.items() if id_in_callee(node_id, one) is not None]
        return own + sum(visit.seconds or 0.0 for visit in inside)

    def share(self, node_id: str) -> float | None:
        """Return a node's fraction of the call's time, from 0 to 1."""
        seconds = self.taken(node_id)
        return None if seconds is None or not self.seconds else seconds / self.seconds

    @property
    def first_not_finite(self) -> NodeId | None:
        """The first node whose value contains a NaN or infinity, None if there is none."""
        return next((one for one, visit in self.visits.items() if not visit.value.is_finite), None)

    @property
    def first_nan(self) -> NodeId | None:
        """The first node whose value contains a NaN, None if there is none."""
        values = ((node, visit.value) for node, visit in self.visits.items())
        return next((node for node, one in values if any(s.nans for s in one.summaries)), None)
