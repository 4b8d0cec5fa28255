"""One layout for consecutive stages, so that nothing moves when a reader steps through them.

Stages share a layout where it suits each of them about as well as one of its own; see the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby, pairwise
from typing import Any

from irviz.errors import NotFoundError
from irviz.ir.module_functions import relax_functions
from irviz.limits import MOST_NODES
from irviz.model.diff.aligned_stage_graphs import SideGraph, unfolded_sides
from irviz.model.diff.diff_result import ChangeKind, FunctionDiff, NodeDiff, diff_part
from irviz.model.diff.union_graph import UnionGraph, union_graph
from irviz.model.folding.visible_graph import VisibleGraph
from irviz.model.graph.graph import Graph, NodeId, NodeKind, RegionKind
from irviz.model.matching.alignment import Alignment
from irviz.session.shown_function import StageView, ViewState, stage_view
from irviz.session.stage_cache import graph_of, tree_of
from irviz.session.stage_diff import diff_modules, diff_stages
from irviz.transforms.simpler_modules import count_bindings
from irviz.transforms.stage import Stage, StageTree
from irviz.view.graph.change_marks import SideChanges
from irviz.view.graph.graph_figure import PlacedGraph
from irviz.view.graph.layout import Layout
from irviz.view.graph.side_by_side_layout import place_diff, place_sides
from irviz.view.svg_primitives import Rect, Size

# With larger numbers one would wait for the layout, or get a picture that is worse than before.
MOST_STAGES = 8
"""How many stages of a long chain are laid out at once; each is compared with the one before."""
MOST_FUNCTIONS = 64
"""The most Relax functions of a stage: all of them are compared to find what became of one."""
MOST_BINDINGS = MOST_NODES
"""The most bindings of a function, as many nodes as are drawn of one."""
MOST_PLACES = 100
"""The most nodes of all stages together: the time of a layout grows faster than they do."""
_MOST_EMPTY = 0.3
"""The most of the places of all stages that may be empty in a picture."""
_MOST_EMPTY_SIDE = 0.2
"""The most of a picture's width, or height, that may be empty at one side: it is shown smaller."""
LAYOUT_SECONDS = 1.0
"""The time limit of a layout: each stage would have to be laid out by itself after it."""


def chain(tree: StageTree) -> tuple[Stage, ...]:
    """Return the stages that led to the current one, it, and those that were made of it last."""
    newest = {stage.parent: stage for stage in tree.stages}
    found = list(tree.lineage())
    while (child := newest.get(found[-1].id)) is not None:
        found.append(child)
    return tuple(found)


def chain_part(tree: StageTree, function: str) -> tuple[Stage, ...]:
    """Return the stages around the current one in the chain that may share a layout with it.

    They have the function, and it is not too large. Which stages these are is the same whichever of
    them is the current one. There are none where it stands alone.
    """
    stages = chain(tree)
    at = next(index for index, one in enumerate(stages) if one.id == tree.current_id)
    first = at - at % MOST_STAGES
    part = stages[first : first + MOST_STAGES]
    for is_comparable, run in groupby(part, lambda one: _is_comparable(one, function)):
        alike = tuple(run)
        if stages[at] in alike:
            return alike if is_comparable and len(alike) > 1 else ()
    return ()


def _is_comparable(stage: Stage, function: str) -> bool:
    """Return whether a stage has the function, and it is compared in no time."""
    functions = relax_functions(stage.module)
    if function not in functions or len(functions) > MOST_FUNCTIONS:
        return False
    return count_bindings(stage.module, function) <= MOST_BINDINGS


@dataclass(eq=False)
class SharedLayout:
    """The layout of stages that suit each other, made when one of them is asked for.

    A stage that leaves too much of the picture empty at a side is laid out by itself.
    """

    stages: Sequence[Stage]
    union: UnionGraph
    seconds: float = LAYOUT_SECONDS

    @cached_property
    def placed(self) -> Mapping[Stage, PlacedGraph]:
        """The layout of each stage that has one of these; empty where it is too difficult."""
        whole, placed = place_sides(unfolded_sides(self.union), seconds=self.seconds)
        sides = zip(self.stages, () if whole.note else placed, strict=False)
        return {stage: one for stage, one in sides if _is_filled(one.layout)}


def shared_layouts(
    stages: Sequence[Stage], function: str, state: ViewState
) -> Mapping[Stage, SharedLayout]:
    """Return the layout of each stage that can share one with others.

    Each stage was made of the one before, as `chain_part` returns them.
    """
    found: dict[Stage, SharedLayout] = {}
    if state.around is not None:
        return found
    run = [(stage, stage_view(stage, function, state)) for stage in stages]
    while len(run) > 1:
        count, union = _fitting(run, function)
        if union is not None:
            shared = SharedLayout([stage for stage, _ in run[:count]], union)
            found.update(dict.fromkeys(shared.stages, shared))
        run = run[count:]
    return found


def _fitting(
    run: Sequence[tuple[Stage, StageView]], function: str
) -> tuple[int, UnionGraph | None]:
    """Return how many of the first stages suit each other, and their graph; 1 for none."""
    low, found = 1, None
    high = count = len(run)
    while low < count:
        union = _union(run[:count], function)
        if union is not None and _is_suitable(union):
            low, found = count, union
        else:
            high = count - 1
        count = low + (high - low + 1) // 2
    return low, found


def _union(run: Sequence[tuple[Stage, StageView]], function: str) -> UnionGraph | None:
    """Return the graph of what is drawn of stages, None where they do not correspond."""
    if len({_folds(view) for _, view in run}) > 1 or any(view.inner for _, view in run):
        return None
    steps = []
    for (before, mine), (after, theirs) in pairwise(run):
        nodes = _node_diffs(before, after, function)
        if not nodes:
            return None
        drawn, where = (mine.graph, theirs.graph), (mine.where, theirs.where)
        steps.append(visible_step(nodes, drawn, where))
    return union_graph([view.graph for _, view in run], steps, folds=False)


def _folds(view: StageView) -> tuple[int, int]:
    """Return how many groups and repeats are drawn: what is folded otherwise looks otherwise."""
    graph = view.graph
    groups = sum(node.kind is NodeKind.GROUP for node in graph.nodes)
    return groups, sum(region.kind is RegionKind.REPEAT for region in graph.regions)


@lru_cache(maxsize=64)
def _node_diffs(before: Stage, after: Stage, function: str) -> Sequence[NodeDiff]:
    """Return what became of the nodes of a function, none where it became another one."""
    if before.module[function].same_as(after.module[function]):
        nodes = graph_of(before, function).nodes
        return [NodeDiff(ChangeKind.SAME, (node.id,), (node.id,)) for node in nodes]
    found = diff_modules(before, after, function=function).functions
    pair = (function, function)
    return next((one.nodes for one in found if (one.before, one.after) == pair), ())


def _is_suitable(union: UnionGraph) -> bool:
    """Return whether each stage may be drawn at the places of all.

    A node that becomes several, or that several become, would be as large as those together, and
    nothing in the picture of its own stage would tell why.
    """
    count = len(union.graph.nodes)
    most_empty = _MOST_EMPTY * count
    is_full = all(count - len(set(one.values())) <= most_empty for one in union.nodes)
    return count <= MOST_PLACES and is_full and not any(union.frames)


def _is_filled(layout: Layout) -> bool:
    """Return whether what is drawn reaches from side to side of the picture."""
    rects = [*layout.shapes.values(), *(frame.rect for frame in layout.frames.values())]
    rects += [Rect.around(centre, Size(0, 0)) for centre in layout.nodes.values()]
    across, down = _MOST_EMPTY_SIDE * layout.width, _MOST_EMPTY_SIDE * layout.height
    middle = Rect(across, down, layout.width - across, layout.height - down)
    left, top, right, bottom = zip(*rects, strict=True)
    return Rect(min(left), min(top), max(right), max(bottom)).contains(middle)


# --- What became of each drawn node, where groups of nodes are drawn as one ----------------------


Where = Callable[[NodeId], NodeId | None]
"""Returns the drawn node that shows a node of a function, None where none does."""


def visible_step(
    step: Sequence[NodeDiff], drawn: tuple[Graph, Graph], where: tuple[Where, Where]
) -> list[NodeDiff]:
    """Return what became of each drawn node, in the order of the drawn graph after.

    Drawn nodes that show nodes of one difference belong together. `where` tells for both graphs
    where each node of the function is.
    """
    every = [(side, node.id) for side, graph in enumerate(drawn) for node in graph.nodes]
    order = {place: at for at, place in enumerate(every)}
    shown = [
        (number, (side, place))
        for number, diff in enumerate(step)
        for side, nodes in enumerate((diff.before, diff.after))
        for place in map(where[side], nodes)
        if place is not None and (side, place) in order
    ]
    known = {place for _, place in shown}
    alone = [(place, place) for place in every if place not in known]
    links = Alignment[Any, None](dict.fromkeys([*shown, *alone]))
    found = []
    for numbers, places in links.components(every[::-1]):  # by the last node after, as in the text
        diffs = [step[one] for one in numbers if isinstance(one, int)]
        before, after = (
            [node for one, node in sorted(places, key=order.__getitem__) if one == side]
            for side in (0, 1)
        )
        found.append(_merged(diffs, before, after))
    return found[::-1]


def _merged(
    diffs: Sequence[NodeDiff], before: Sequence[NodeId], after: Sequence[NodeId]
) -> NodeDiff:
    """Return what became of drawn nodes that show the nodes of these differences."""
    if not before or not after:
        change = ChangeKind.ADDED if after else ChangeKind.REMOVED
    elif len(before) == len(after) == 1:
        is_same = all(diff.change is ChangeKind.SAME for diff in diffs)
        change = ChangeKind.SAME if is_same else ChangeKind.CHANGED
    else:
        change = ChangeKind.FUSED
    differences = diffs[0].differences if len(diffs) == 1 else ()
    return NodeDiff(change, tuple(before), tuple(after), differences=differences)


# --- Two compared stages, positioned by one shared layout ----------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class SideView(StageView):
    """What is drawn of one of two compared stages, which share groups and regions."""

    side: SideGraph

    @property
    def openable(self) -> frozenset[str]:
        """The ids of groups, which can be expanded."""
        return frozenset(str(one.id) for one in self.graph.nodes if one.kind is NodeKind.GROUP)

    def where(self, node_id: NodeId) -> NodeId | None:
        """Return the drawn node that shows a node of the function, None outside of the part."""
        return self.side.shown.get(node_id)


@dataclass(frozen=True, eq=False)
class ComparedViews:
    """The views of both stages, and what became of the function."""

    before: SideView
    after: SideView
    diff: FunctionDiff


def compared_views(
    tree: StageTree, before: str, after: str, function: str, state: ViewState
) -> ComparedViews:
    """Return what is drawn of a function, named as in the later stage, in two stages.

    Raises NotFoundError if a stage lacks the function or a node, or there is no path between two.
    """
    found = diff_stages(tree, before, after, function).functions
    diff = next((one for one in found if one.after == function and one.before), None)
    if diff is None:
        raise NotFoundError(f"stage {before} has no function that became {function!r}")
    if None in diff.graphs or not diff.nodes:
        raise NotFoundError(
            f"{function!r} is not compared node by node: only Relax functions with nodes are"
        )
    if state.around is not None:
        diff = diff_part(diff, state.around, state.steps, state.to)
    drawn = place_diff(diff, expansion=state.choices)
    views = [
        _side_view(tree, stage, name, drawn.sides.sides[at], drawn.placed[at], drawn.changes[at])
        for at, (stage, name) in enumerate(((before, diff.before), (after, diff.after)))
    ]
    return ComparedViews(views[0], views[1], diff)


def _side_view(
    tree: StageTree,
    stage: str,
    function: str,
    side: SideGraph,
    placed: PlacedGraph,
    changes: SideChanges,
) -> SideView:
    containers = tree_of(tree.stage(stage), function)
    steps = containers.bound.at
    places = {steps.get(node, node): place for node, place in side.shown.items()}
    visible = VisibleGraph(side.graph, containers, range(len(steps)), places, ())
    whole = containers.graph
    part, size = frozenset(side.shown), len(whole.nodes)
    unused = {node.id for node in whole.nodes if node.layers} - whole.leaving.keys() - part
    return SideView(
        graph=side.graph,
        visible=visible,
        inner={},
        size=size,
        part=None if len(part) + len(unused - {*whole.outputs}) >= size else part,
        side=side,
        placed=placed,
        changes=changes,
    )
