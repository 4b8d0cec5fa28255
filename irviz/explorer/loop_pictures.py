"""The loops of a PrimFunc: its nest, or what became of it between two stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from irviz.errors import NotFoundError
from irviz.explorer.pictures import graph_or_none
from irviz.explorer.state import State, derived
from irviz.explorer.viewer.schema import Change, Loops
from irviz.ir.module_functions import prim_funcs
from irviz.model.diff.diff_result import (
    BlockDiff,
    FunctionChange,
    FunctionDiff,
    LoopChange,
)
from irviz.model.graph.graph import NodeKind
from irviz.model.loop_nest import Block, LoopNest, LoopNode, contains_block, schedule_addresses
from irviz.session.operation_limits import limited
from irviz.session.stage_cache import nest_of
from irviz.session.stage_diff import diff_stages
from irviz.transforms.stage import Stage
from irviz.view.loop_nest_diff import draw_loops
from irviz.view.svg_primitives import visible
from irviz.view.text.diff_text import block_words

_SIGNS = {
    LoopChange.ADDED: "+",
    LoopChange.REMOVED: "−",
    LoopChange.FUSED: "⊃",
    LoopChange.INLINED: "⊃",
    LoopChange.SPLIT: "⊂",
    LoopChange.MOVED: "↕",
    LoopChange.REORDERED: "↕",
}
"""The sign of what became of a block; "~" for anything else."""


class LoopPicture(NamedTuple):
    """What is shown of loops, and in a comparison what differs."""

    shown: Loops
    summary: str = ""
    changes: tuple[Change, ...] = ()


@derived(lambda state: (state.stage, state.stage_of("reference"), state.function))
def loop_picture(state: State) -> LoopPicture | None:
    """Return the loops of the shown function, or why there are none; None if it is no PrimFunc."""
    stages = state.stage_of("reference"), state.stage
    if not any(one is not None and state.function in prim_funcs(one.module) for one in stages):
        return None
    try:
        with limited("the picture of the loops", *(one for one in stages if one is not None)):
            return _drawn(state)
    except Exception as failure:  # why is said in the place of the picture
        words = str(failure) or type(failure).__name__
        return LoopPicture({"svg": "", "after": 0.0, "error": visible(words)})


def _drawn(state: State) -> LoopPicture:
    diff = _diff(state) if state.reference else None
    is_compared = diff is not None and any(diff.nests)
    nests = diff.nests if diff and is_compared else (None, nest_of(state.stage, state.function))
    if not any(nests):
        raise NotFoundError(f"{state.function!r} is not a PrimFunc of stage {state.stage_id}")
    ids = tuple(
        {} if nest is None or stage is None else _node_ids(stage, nest)
        for nest, stage in zip(nests, (state.stage_of("reference"), state.stage), strict=True)
    )
    loops = diff.loops if diff else None
    own = nest_of(state.stage, state.function)
    choosable = schedule_addresses(own) if own else ()
    drawn = draw_loops(
        nests, loops, (ids[0], ids[1]), "page", choosable=choosable, is_compared=is_compared
    )
    shown: Loops = {"svg": drawn.figure.svg, "after": drawn.after, "error": ""}
    if diff is None:
        return LoopPicture(shown)
    changed = [one for one in loops.blocks if one.change is not LoopChange.SAME] if loops else []
    changes = tuple(_change(block, ids[0], ids[1]) for block in changed)
    is_same = diff.change is FunctionChange.SAME
    return LoopPicture(shown, "the loops do not differ" if is_same else diff.summary, changes)


def _diff(state: State) -> FunctionDiff:
    """Return what became of the function between the stages."""
    name = state.function
    return diff_stages(state.session.tree, state.reference, state.stage_id, name).functions[0]


def _node_ids(stage: Stage, nest: LoopNest) -> Mapping[str, str]:
    """Return the graph's node for the ids of a nest.

    A loop or an outer block has that of the first block inside of it, and a statement that of the
    block around it.
    """
    graph = graph_or_none(stage, nest.name)
    if graph is None:
        return {}
    found = {node.name: str(node.id) for node in graph.nodes if node.kind is NodeKind.PARAM}
    blocks = iter([str(node.id) for node in graph.nodes if node.kind is NodeKind.BLOCK])

    def visit(nodes: Sequence[LoopNode], around: str) -> str:
        first = ""
        for node in nodes:
            inner = (*node.init, *node.children) if isinstance(node, Block) else node.children
            own = around
            if isinstance(node, Block) and not any(map(contains_block, inner)):
                own = next(blocks, "")
                visit(inner, own)
            else:
                own = visit(inner, around) or around
            found[node.id] = own
            first = first or own
        return first

    visit(nest.body, "")
    return found


def _change(block: BlockDiff, before: Mapping[str, str], after: Mapping[str, str]) -> Change:
    def nodes(ids: Sequence[str], known: Mapping[str, str]) -> list[str]:
        return list(dict.fromkeys(known[one] for one in ids if known.get(one)))

    return {
        "sign": _SIGNS.get(block.change, "~"),
        "words": visible(f"{block.name}: {block_words(block)}"),
        "reference": nodes(block.before, before),
        "current": nodes(block.after, after),
    }
