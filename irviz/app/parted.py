"""Which nodes of two stages correspond, and where their runs part."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

from irviz.app.history import History
from irviz.app.read import constants_of, graph_of
from irviz.ir.identity import drawn_function, relax_functions
from irviz.ir.shared_vars import shared_constants, shared_vars
from irviz.model.correspondence import composed
from irviz.model.graph import NodeId
from irviz.model.parting import Difference, Fetch, Parting, differences, parting
from irviz.model.trace import Trace
from irviz.model.unfolded import Unfolded, unfolded, unfolded_correspondence
from irviz.transforms.stage import Stage


@lru_cache(maxsize=32)
def unfolded_of(stage: Stage, function: str) -> Unfolded:
    """Return a stage's function with all that it calls in place."""
    drawn_function(stage.module, function)
    names = {function, *relax_functions(stage.module)}
    return unfolded(function, {name: graph_of(stage, name) for name in names})


def pairs(history: History, stage_id: str, reference: str) -> Mapping[NodeId, NodeId]:
    """Return the node of the reference for each node of a stage that has one.

    Stages that are several steps apart are matched step by step, by way of the stage that both
    were made from: each step leaves most as it was.
    """
    ours, theirs = history.lineage(stage_id), history.lineage(reference)
    shared = [one for one in ours if one in theirs]
    if not shared:  # a recording has several beginnings
        stages = history.stage(stage_id), history.stage(reference)
        return _step(*stages, history.function)
    meeting = shared[-1]
    up = ours[ours.index(meeting) :][::-1]
    down = theirs[theirs.index(meeting) :]
    steps = [_between(history, child, parent) for child, parent in pairwise(up)]
    for parent, child in pairwise(down):
        step = _between(history, child, parent)
        steps.append({other: one for one, other in reversed(list(step.items()))})
    if not steps:
        return {node.id: node.id for node in _unfolded(history, stage_id).graph.nodes}
    return composed(*steps)


def parted(
    history: History, trace: Trace, reference: Trace, stages: tuple[str, str], fetch: Fetch
) -> tuple[Parting | None, Mapping[NodeId, Difference]]:
    """Return where the traces of two stages part, and how each node's value differs.

    Raises what `fetch` raises, which is asked for values that were too large to keep.
    """
    found = differences(trace, reference, pairs(history, *stages), fetch=fetch)
    return parting(trace, _unfolded(history, stages[0]).graph, found), found


def _unfolded(history: History, stage_id: str) -> Unfolded:
    return unfolded_of(history.stage(stage_id), history.function)


def _between(history: History, child: str, parent: str) -> Mapping[NodeId, NodeId]:
    return _step(history.stage(child), history.stage(parent), history.function)


@lru_cache(maxsize=64)
def _step(stage: Stage, reference: Stage, function: str) -> Mapping[NodeId, NodeId]:
    constants = constants_of(stage, function), constants_of(reference, function)
    known = {
        **shared_constants(*constants),
        **shared_vars(stage.module, reference.module, function),
    }
    return unfolded_correspondence(
        unfolded_of(stage, function), unfolded_of(reference, function), known
    )
