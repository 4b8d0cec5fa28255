"""What is drawn of two compared stages, positioned by one shared layout."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from irviz.errors import NotFoundError
from irviz.model.diff.diff_neighbourhood import diff_part
from irviz.model.diff.diff_result import FunctionDiff
from irviz.model.diff.side_graphs import SideGraph
from irviz.model.folding.visible_graph import VisibleGraph
from irviz.model.graph.graph import NodeId, NodeKind
from irviz.session.stage_cache import tree_of
from irviz.session.stage_diff import diff_stages
from irviz.session.visible_function import StageView, ViewState
from irviz.transforms.stage_tree import StageTree
from irviz.view.graph.change_marks import SideChanges
from irviz.view.graph.graph_figure import Direction, GraphFigure, PlacedGraph, draw_placed
from irviz.view.graph.overlay import Overlay
from irviz.view.graph.placed_diff import place_diff
from irviz.view.theme import PageTheme, ThemeName


@dataclass(frozen=True, eq=False, kw_only=True)
class SideView(StageView):
    """What is drawn of one of two compared stages.

    Attributes:
        side: The drawn graph, whose groups and regions are shared by both stages.
        placed: Its layout.
        changes: What became of its nodes.
    """

    side: SideGraph
    placed: PlacedGraph
    changes: SideChanges

    @property
    def openable(self) -> frozenset[str]:
        """The ids of groups, which can be expanded."""
        return frozenset(str(one.id) for one in self.graph.nodes if one.kind is NodeKind.GROUP)

    def where(self, node_id: NodeId) -> NodeId | None:
        """Return the drawn node that shows a node of the function, None outside of the part."""
        return self.side.shown.get(node_id)

    def figure(
        self,
        theme: ThemeName | PageTheme = "course",
        direction: Direction = "up",  # noqa: ARG002 - that of the layout
        *,
        overlay: Overlay | None = None,
        dimmed: Collection[str] = (),
    ) -> GraphFigure:
        """Draw the view as `StageView.figure` does, marking what became of nodes."""
        return draw_placed(
            self.placed,
            theme,
            openable=self.openable,
            overlay=overlay,
            dimmed=dimmed,
            changes=self.changes,
        )


@dataclass(frozen=True, eq=False)
class ComparedViews:
    """The views of both stages, and what became of the function."""

    before: SideView
    after: SideView
    diff: FunctionDiff


def function_diff(tree: StageTree, before: str, after: str, function: str) -> FunctionDiff:
    """Return the diff of the function with this name in the later stage.

    Raises:
        NotFoundError: A stage lacks it.
    """
    found = diff_stages(tree, before, after, function).functions
    diff = next((one for one in found if one.after == function and one.before), None)
    if diff is None:
        raise NotFoundError(f"stage {before} has no function that became {function!r}")
    return diff


def compared_views(
    tree: StageTree, before: str, after: str, function: str, state: ViewState | None = None
) -> ComparedViews:
    """Return what is drawn of a function in two stages.

    Args:
        function: Its name in the later stage.
        state: What is expanded, and which part is drawn, on both sides.

    Raises:
        NotFoundError: A stage lacks the function or the node, or there is no path between two.
    """
    chosen = state or ViewState()
    whole = diff = function_diff(tree, before, after, function)
    if None in diff.graphs or not diff.nodes:
        raise NotFoundError(
            f"{function!r} is not compared node by node: only Relax functions with nodes are"
        )
    if chosen.around is not None:
        diff = diff_part(diff, chosen.around, chosen.steps, chosen.to)
    drawn = place_diff(diff, expansion=chosen.choices)
    views = [
        _side_view(tree, stage, name, drawn.sides.sides[at], drawn.placed[at], drawn.changes[at])
        for at, (stage, name) in enumerate(((before, whole.before), (after, whole.after)))
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
