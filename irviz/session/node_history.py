"""Where a node comes from, and what became of it: its line through all stages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from irviz.errors import NotFoundError
from irviz.ir.module_functions import function_named, relax_functions
from irviz.model.diff.diff_result import Difference, FunctionDiff, NodeChange
from irviz.model.graph.graph import NodeId
from irviz.model.graph.layers import layer_name
from irviz.session.session_state import SessionState
from irviz.session.stage_cache import graph_of
from irviz.session.stage_chain import chain
from irviz.session.stage_diff import diff_modules
from irviz.session.stage_layers import layered_graph
from irviz.transforms.stage import Stage


@dataclass(frozen=True)
class HistoryStep:
    """What a node is in one stage, and what the pass that made the stage did to get there.

    Attributes:
        stage: The stage.
        function: The function that the nodes are in.
        nodes: The nodes that became the node, or that it became; none where it is gone.
        changes: What the pass did: none in the first stage, SAME where it left them alone.
        differences: What differs from the stage before.
    """

    stage: Stage
    function: str
    nodes: tuple[NodeId, ...]
    changes: tuple[NodeChange, ...] = ()
    differences: tuple[Difference, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether the pass did anything to the nodes; the first stage counts."""
        return any(change is not NodeChange.SAME for change in self.changes) or not self.changes

    def __str__(self) -> str:
        """Return it in a line, such as `3 FuseOps: lv; fused`."""
        names = ", ".join(self.nodes) or "gone"
        what = ", ".join(one.value for one in self.changes)
        words = [names, *filter(None, [what]), *map(str, self.differences)]
        return f"{self.stage.id} {self.stage.label}: {'; '.join(words)}"


@dataclass(frozen=True, repr=False)
class NodeHistory:
    """The line of a node through the stages, from the first that has it to the last.

    Attributes:
        node: The node that was asked for.
        stage: The id of its stage.
        layers: The names of the model's layers that it serves.
        steps: The stages in their order.
    """

    node: NodeId
    stage: str
    layers: tuple[str, ...]
    steps: tuple[HistoryStep, ...]

    @property
    def changes(self) -> tuple[HistoryStep, ...]:
        """The first stage, and those whose pass changed the node."""
        return tuple(step for step in self.steps if step.is_changed)

    def __repr__(self) -> str:
        """Return a line for each stage that changed it."""
        layers = f", in {', '.join(self.layers)}" if self.layers else ""
        return "\n".join([f"{self.node} of stage {self.stage}{layers}", *map(str, self.changes)])


def node_history(state: SessionState, node: str, stage_id: str | None = None) -> NodeHistory:
    """Return the line of a node; see Session.history."""
    tree = state.tree if stage_id is None else state.tree.checkout(stage_id)
    stages, at = chain(tree), len(tree.lineage()) - 1
    graph = graph_of(stages[at], state.function)
    if node not in graph.index:
        raise NotFoundError(
            f"stage {stages[at].id} has no node {node!r} in {state.function!r}: give the name of "
            "one of its variables, as session.graph() lists them"
        )
    layers = layered_graph(stages[at], state.function)[NodeId(node)].layers
    own = _Place(state.function, (NodeId(node),))
    steps = [*_before(own, stages[: at + 1]), *_after(own, stages[at:])]
    return NodeHistory(NodeId(node), stages[at].id, tuple(map(layer_name, layers)), tuple(steps))


class _Place(NamedTuple):
    """Nodes of a function."""

    function: str
    nodes: tuple[NodeId, ...]


class _Found(NamedTuple):
    """Where nodes are in the stage beside, and what the pass between did to them."""

    place: _Place
    changes: tuple[NodeChange, ...]
    differences: tuple[Difference, ...]


def _before(place: _Place, stages: Sequence[Stage]) -> list[HistoryStep]:
    """Return the steps from the first stage that has the nodes to the last of the stages."""
    steps = []
    for before, after in reversed(list(pairwise(stages))):
        found = _beside(before, after, place, is_before=True)
        steps.append(HistoryStep(after, *place, found.changes, found.differences))
        place = found.place
        if not place.nodes:
            return steps[::-1]
    return [HistoryStep(stages[0], *place), *steps[::-1]]


def _after(place: _Place, stages: Sequence[Stage]) -> Iterator[HistoryStep]:
    """Yield the steps after the first of the stages, up to the one that has the nodes no more."""
    for before, after in pairwise(stages):
        if not relax_functions(after.module):  # what is left of a compilation has PrimFuncs alone
            return
        place, changes, differences = _beside(before, after, place, is_before=False)
        yield HistoryStep(after, *place, changes, differences)
        if not place.nodes:
            return


def _beside(before: Stage, after: Stage, place: _Place, *, is_before: bool) -> _Found:
    """Return where nodes are in the stage before, or those of the stage before in the one after."""
    name = place.function
    if is_same_function(before, after, name):
        return _Found(place, (NodeChange.SAME,), ())
    diff = diff_beside(before, after, name, is_before=is_before)
    wanted = set(place.nodes)
    diffs = [
        one
        for one in (diff.nodes if diff else ())
        if not wanted.isdisjoint(one.after if is_before else one.before)
    ]
    nodes = (one.before if is_before else one.after for one in diffs)
    function = (diff.before if is_before else diff.after) if diff else name
    changes = dict.fromkeys(one.change for one in diffs) or {NodeChange.REMOVED: None}
    if len(changes) > 1:
        changes.pop(NodeChange.SAME, None)
    return _Found(
        _Place(function, tuple(dict.fromkeys(itertools.chain.from_iterable(nodes)))),
        tuple(changes),
        tuple(dict.fromkeys(each for one in diffs for each in one.differences)),
    )


def is_same_function(before: Stage, after: Stage, name: str) -> bool:
    """Return whether the pass between left a function as it was."""
    mine, theirs = (function_named(each.module, name) for each in (before, after))
    return mine is not None and bool(mine.same_as(theirs))


@lru_cache(maxsize=128)
def diff_beside(before: Stage, after: Stage, name: str, *, is_before: bool) -> FunctionDiff | None:
    """Return what became of a function that has this name in the stage after, or before.

    It is None where the other stage has no such function.
    """
    for one in diff_modules(before, after, ("", ""), name).functions:
        if (one.after if is_before else one.before) == name and one.before and one.after:
            return one
    return None
