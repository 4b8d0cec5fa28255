"""What is true of two pictures that take their places from one layout, told a second time."""

import math

from irviz.model.diff.aligned_stage_graphs import side_graphs
from irviz.model.diff.diff_result import Aspect, ChangeKind
from irviz.model.diff.union_graph import union_graph
from irviz.model.graph.graph import OUTPUT
from irviz.view.graph.nodes_and_edges import SceneGeometry
from irviz.view.graph.side_by_side_layout import place_sides

IN_PLACE = (ChangeKind.SAME, ChangeKind.CHANGED, ChangeKind.MOVED)


def problems_of(diff, expansion=None):
    """Return what is wrong in the pictures of a function's diff."""
    sides = side_graphs(union_graph(diff.graphs, (diff.nodes,)), expansion)
    marks = [dict.fromkeys(side.graph.index, 30.0) for side in sides.sides]
    both, placed = place_sides(sides, widths=marks)
    scenes = [SceneGeometry(one.graph, one.layout, one.direction) for one in placed]
    overlay = SceneGeometry(both.graph, both.layout, both.direction)
    found = scene_problems(overlay)
    for stage, side, scene in zip(diff.graphs, sides.sides, scenes, strict=True):
        found += _missing(stage, side)
        found += scene_problems(scene)
    return [*found, *_misplaced(diff, sides, scenes)]


def scene_problems(scene):
    """Return the nodes that overlap, and the edges that do not lead to their targets."""
    return [*_overlapping(scene), *_loose_edges(scene)]


def _missing(stage, side):
    """Yield nodes and uses of the stage that its picture lacks, and uses that it adds."""
    shown = side.shown
    for node in stage.nodes:
        if shown[node.id] not in side.graph.index:
            yield "not drawn", node.id
    uses = {(shown[one.source], shown[one.target]) for one in stage.edges}
    drawn = {(one.source, one.target) for one in side.graph.edges}
    yield from (("no edge", *use) for use in uses - drawn if use[0] != use[1])
    yield from (("no use", *use) for use in drawn - uses)
    if set(side.graph.outputs) != {shown[one] for one in stage.outputs}:
        yield "outputs", side.graph.outputs


def _overlapping(scene):
    rects = list(scene.shapes.items())
    for index, (one, rect) in enumerate(rects):
        yield from (
            ("overlap", one, two) for two, other in rects[index + 1 :] if rect.overlaps(other)
        )


def _loose_edges(scene):
    """Yield edges that do not lead from their source to the border of their target."""
    for edge, route in scene.edges:
        target = scene.output if edge.target == OUTPUT else scene.shapes[edge.target]
        source = scene.shapes[edge.source]
        is_inside = _is_near(route.tip, target, -3, -3)
        is_tip = _is_near(route.tip, target, 3, 3) and not is_inside
        if not is_tip or not _is_near(route.points[0], source, 12, 28):
            yield "loose", edge.source, edge.target
        if math.dist(route.points[-1], route.tip) > 10:
            yield "long arrow", edge.source, edge.target


def _is_near(point, rect, beside, above):
    x, y = point
    across = rect.left - beside <= x <= rect.right + beside
    return across and rect.top - above <= y <= rect.bottom + above


def _misplaced(diff, sides, scenes):
    """Yield pairs that stand in two places, and members outside of the frame of their node."""
    before, after = sides.sides
    for one in diff.nodes:
        moved = any(each.aspect is Aspect.BLOCK for each in one.differences)
        mine = [scenes[0].shapes.get(before.shown[each]) for each in one.before]
        theirs = [scenes[1].shapes.get(after.shown[each]) for each in one.after]
        is_drawn = one.change in IN_PLACE and not moved and mine[0] and theirs[0]
        if is_drawn and math.dist(mine[0].centre, theirs[0].centre) > 0.01:
            yield "places", one.before[0], one.after[0]
        for node, around, members in ((one.after, theirs, mine), (one.before, mine, theirs)):
            frames = after.frames if node is one.after else before.frames
            if len(node) == 1 and node[0] in frames:
                inside = [each for each in members if each and around[0].contains(each)]
                if not inside:
                    yield "frame", node[0]
