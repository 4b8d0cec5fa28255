"""How the traces of two stages compare, node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from irviz.app.overlays import difference_overlay, dimmed_places
from irviz.app.parted import parted, unfolded_of
from irviz.app.picture import Picture
from irviz.app.read import array_of
from irviz.app.runnable import Runnable
from irviz.model.graph import NodeId
from irviz.model.parting import Difference, Parting
from irviz.model.trace import Array, Trace
from irviz.runtime.run import Wish
from irviz.view.overlay import Overlay
from irviz.view.parting import difference_line, parting_line
from irviz.worker.pool import Heard


@dataclass(frozen=True, eq=False)
class Findings:
    """A stage's trace beside that of a reference; `stages` and `traces` are of both.

    `differences` are by the nodes of the stage, `parting` is where the two part.
    """

    session: Runnable
    stages: tuple[str, str]
    traces: tuple[Trace, Trace]
    parting: Parting | None
    differences: Mapping[NodeId, Difference]

    def __repr__(self) -> str:
        """Return where the stages part, in words; the rest is in `parting` and `differences`."""
        return f"<Findings: {self.line}>"

    @property
    def line(self) -> str:
        """Where the stages part, in words."""
        stage, reference = self.stages
        graph = unfolded_of(self.session.stage(stage), self.session.function).graph
        return parting_line(self.parting, stage, reference, graph)

    def line_of(self, node_id: str) -> str:
        """Say how a node's value is in the reference, "" where that is unknown."""
        found = self.differences.get(NodeId(node_id))
        return "" if found is None else difference_line(found, self.stages[1])

    def overlay(self, picture: Picture, stage_id: str) -> Overlay:
        """Return the differences as an overlay for the picture of one of the two stages."""
        is_first = stage_id == self.stages[0]
        deltas = {
            (one if is_first else found.reference): found.max_abs
            for one, found in self.differences.items()
            if found.verdict is not None
        }
        parting = self.parting
        flagged = [parting.node if is_first else parting.reference] if parting else []
        return difference_overlay(deltas, picture, flagged)

    def dimmed(self, picture: Picture, stage_id: str) -> list[str]:
        """Return what is equal before the stages part, in the picture of one of the two."""
        if self.parting is None:
            return []
        if stage_id == self.stages[0]:
            return dimmed_places(self.parting.upstream, self.differences, picture)
        other = {one: found.reference for one, found in self.differences.items()}
        return dimmed_places([other[one] for one in self.parting.upstream], other.values(), picture)


def findings(
    session: Runnable,
    stages: tuple[str, str],
    traces: tuple[Trace, Trace],
    heard: Heard | None = None,
) -> Findings:
    """Compare two traces of the same input; raise what `run` raises.

    Values that were too large to keep are fetched where they are not equal; `heard` is told so.
    """
    by_trace: dict[int, str] = {id(trace): one for one, trace in zip(stages, traces, strict=True)}

    def fetch(trace: Trace, node: NodeId) -> Sequence[Array | None]:
        return fetched(session, by_trace[id(trace)], node, trace.case, heard)

    return Findings(session, stages, traces, *parted(session, *traces, stages, fetch))


def fetched(
    session: Runnable, stage_id: str, node: NodeId, case: int, heard: Heard | None = None
) -> tuple[Array, ...]:
    """Run a stage again for the whole value of one node; raise what `run` raises.

    Raises KeyError for a node that was not reached.
    """
    constant = array_of(session.stage(stage_id), session.function, node)
    if constant is not None:  # of large ones a trace has none
        return (constant,)
    trace = session.run(stage=stage_id, trace=Wish(case, kept=(node,)), heard=heard).trace
    assert trace is not None, "it was asked for"
    return tuple(np.asarray(one) for one in trace[node].value.arrays)
