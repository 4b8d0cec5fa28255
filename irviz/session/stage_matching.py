"""Which nodes of two stages correspond."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from irviz.ir.module_functions import drawable_function, relax_functions
from irviz.ir.relax.match_by_identity import shared_constants, shared_vars
from irviz.model.graph.graph import NodeId, Resolution
from irviz.model.matching.inlined_graph import InlinedGraph, inline_calls, inlined_correspondence
from irviz.model.matching.node_matching import compose
from irviz.session.kept_by_stage import kept_by_stage
from irviz.session.stage_readings import reading_of
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree


@kept_by_stage
def inlined_graph(stage: Stage, function: str) -> InlinedGraph:
    """Return the graph of a stage's function with every called function inlined."""
    drawable_function(stage.module, function)
    names = {function, *relax_functions(stage.module)}
    return inline_calls(function, {name: reading_of(stage, name).graph for name in names})


def node_correspondence(
    tree: StageTree, function: str, stage_id: str, reference: str
) -> Mapping[NodeId, NodeId]:
    """Return the reference's node for each node of a stage that has one.

    Stages several steps apart are matched step by step, through their common ancestor, because each
    step keeps most nodes.
    """
    ours, theirs = tree.lineage(stage_id), tree.lineage(reference)
    common = [stage for stage in ours if stage in theirs]
    if not common:  # a recording has several roots
        return match_stages(ours[-1], theirs[-1], function)
    up = ours[ours.index(common[-1]) :][::-1]
    down = theirs[theirs.index(common[-1]) :]
    steps = [match_stages(child, parent, function) for child, parent in pairwise(up)]
    for parent, child in pairwise(down):
        step = match_stages(child, parent, function)
        steps.append({other: one for one, other in reversed(list(step.items()))})
    if not steps:
        return {node.id: node.id for node in inlined_graph(ours[-1], function).graph.nodes}
    return compose(*steps)


@kept_by_stage
def match_stages(stage: Stage, reference: Stage, function: str) -> Mapping[NodeId, NodeId]:
    """Return another stage's node for each node of a stage that has one."""
    known = known_pairs(stage, reference, function, function)
    return inlined_correspondence(
        inlined_graph(stage, function), inlined_graph(reference, function), known
    )


def known_pairs(
    stage: Stage, reference: Stage, function: str, other: str
) -> Mapping[NodeId, NodeId]:
    """Match nodes of two functions of two stages by variable, tensor, or position in a layer."""
    readings = mine, theirs = reading_of(stage, function), reading_of(reference, other)
    constants = shared_constants(mine.constants, theirs.constants)
    if any(one.resolution is Resolution.FUNCTION for each in readings for one in each.graph.nodes):
        # variables move in and out of functions
        return {**constants, **shared_vars(stage.module, reference.module, function, other)}
    places = theirs.variables
    found = {one: places[var] for var, one in mine.variables.items() if var in places}
    at = {
        position: node
        for node, position in reference.positions.items()
        if node in theirs.graph.index
    }
    positions = {
        one: at[position]
        for one, position in stage.positions.items()
        if position in at and one in mine.graph.index
    }
    return {**positions, **constants, **found}
