"""What the viewer shows of one or two stages: pictures, facts and changes, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from math import prod
from typing import NamedTuple, get_args
from xml.etree import ElementTree

from irviz.errors import NotFoundError, message_of
from irviz.explorer.stage_pictures import (
    attempted,
    compared,
    dimmed,
    facts,
    graph_or_none,
    overlay,
    scene,
    stage_id_of,
    view_or_none,
)
from irviz.explorer.state import Side, State, derived
from irviz.explorer.viewer import schema
from irviz.ir.module_functions import prim_funcs
from irviz.model.diff.diff_result import BlockDiff, ChangeKind, NodeDiff, node_summary
from irviz.model.folding.expansion import repeat_copies
from irviz.model.graph.graph import (
    Edge,
    Graph,
    Node,
    NodeId,
    NodeKind,
    Region,
    RegionKind,
    Resolution,
)
from irviz.model.graph.layers import common_layer, layer_name
from irviz.model.loop_nest import Block, LoopNest, LoopNode, contains_block, schedule_addresses
from irviz.model.runs.execution_trace import Trace
from irviz.session.run_overlays import size_overlay, time_overlay
from irviz.session.shown_function import StageView
from irviz.session.stable_layout import ComparedViews
from irviz.session.stage_cache import (
    array_of,
    graph_of,
    nest_of,
    reading_of,
    source_notes,
    tree_of,
)
from irviz.session.stage_diff import diff_stages
from irviz.transforms.stage import Stage
from irviz.units import format_number
from irviz.view.diff_text import block_words
from irviz.view.graph.change_marks import LEGEND, draw_sign, node_change_mark
from irviz.view.graph.layout import Route
from irviz.view.graph.nodes_and_edges import (
    add_shape,
    draw_edge,
    draw_effect_number,
    effect_numbers,
)
from irviz.view.graph.overlay import Overlay, draw_scale
from irviz.view.loop_nest_figure import draw_loops
from irviz.view.node_details import Facts, constant_facts, copies_html, node_html
from irviz.view.svg_primitives import Rect, Size, shorten, svg_document, svg_text, visible
from irviz.view.theme import STYLES, NodeShape, get_theme, node_style

# --- The loops of a PrimFunc: its nest, or what became of it between two stages -------------------


_SIGNS = {
    ChangeKind.ADDED: "+",
    ChangeKind.REMOVED: "−",
    ChangeKind.FUSED: "⊃",
    ChangeKind.INLINED: "⊃",
    ChangeKind.SPLIT: "⊂",
    ChangeKind.MOVED: "↕",
    ChangeKind.REORDERED: "↕",
}
"""The sign of what became of a block; "≠" for anything else."""


class LoopPicture(NamedTuple):
    """What is shown of loops, and in a comparison what differs."""

    shown: schema.Loops
    summary: str = ""
    changes: tuple[schema.Change, ...] = ()


@derived(lambda state: (state.stage, state.stage_of("reference"), state.function))
def loop_picture(state: State) -> LoopPicture | None:
    """Return the loops of the shown function, or why there are none; None if it is no PrimFunc."""
    stages = state.stage_of("reference"), state.stage
    if not any(one is not None and state.function in prim_funcs(one.module) for one in stages):
        return None
    given = [one for one in stages if one is not None]
    found = attempted("the picture of the loops", lambda: _drawn_loops(state), *given)
    if not isinstance(found, Exception):
        return found
    return LoopPicture({"svg": "", "after": 0.0, "error": visible(message_of(found))})


def _drawn_loops(state: State) -> LoopPicture:
    diff = None
    if state.reference:
        tree, pair = state.session.tree, (state.reference, state.stage_id)
        diff = diff_stages(tree, *pair, state.function).functions[0]
    is_compared = diff is not None and any(diff.nests)
    own = nest_of(state.stage, state.function)
    nests = diff.nests if diff and is_compared else (None, own)
    if not any(nests):
        raise NotFoundError(f"{state.function!r} is not a PrimFunc of stage {state.stage_id}")
    ids = tuple(
        {} if nest is None or stage is None else _nodes_of_nest(stage, nest)
        for nest, stage in zip(nests, (state.stage_of("reference"), state.stage), strict=True)
    )
    loops = diff.loops if diff else None
    choosable = schedule_addresses(own) if own else ()
    drawn, after = draw_loops(
        nests, loops, (ids[0], ids[1]), "page", choosable=choosable, is_compared=is_compared
    )
    shown: schema.Loops = {"svg": drawn.svg, "after": after, "error": ""}
    if diff is None:
        return LoopPicture(shown)
    changed = [one for one in loops.blocks if one.change is not ChangeKind.SAME] if loops else []
    changes = tuple(_block_change(block, ids[0], ids[1]) for block in changed)
    is_same = diff.change is ChangeKind.SAME
    return LoopPicture(shown, "the loops do not differ" if is_same else diff.summary, changes)


def _nodes_of_nest(stage: Stage, nest: LoopNest) -> Mapping[str, str]:
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


def _block_change(
    block: BlockDiff, before: Mapping[str, str], after: Mapping[str, str]
) -> schema.Change:
    def nodes(ids: Sequence[str], known: Mapping[str, str]) -> list[str]:
        return list(dict.fromkeys(known[one] for one in ids if known.get(one)))

    return {
        "sign": _SIGNS.get(block.change, "≠"),
        "words": visible(f"{block.name}: {block_words(block)}"),
        "reference": nodes(block.before, before),
        "current": nodes(block.after, after),
    }


# --- What the viewer shows of the stages ----------------------------------------------------------


_MOST_NUMBERS = 10_000
"""The facts of larger constants have no statistics."""
_SAMPLE = Size(26.0, 16.0)
_SHAPE = Rect(2, 2, 24, 14)
_THEME = get_theme("page")


@derived(
    lambda state: (
        *(scene(state, "current"), state.reference and scene(state, "reference"), state.function),
        *(state.view, state.function_runs.traces.get(state.stage_id)),
        *(state.function_runs.traces.get(state.reference), compared(state), loop_picture(state)),
        *(*dimmed(state, "current"), "", *(dimmed(state, "reference") if state.reference else ())),
    )
)
def scene_data(state: State) -> schema.Scene:
    """Return the scene; `moved` is left to the caller, who knows what was shown before."""
    both, loops = compared(state), loop_picture(state)
    if loops is not None:
        summary, changes = loops.summary, list(loops.changes)
    else:
        summary = _summary(both)
        changes = list(_changes(both)) if isinstance(both, ComparedViews) else []
    return {
        "key": scene_key(state),
        "function": visible(state.function),
        "current": picture(state, "current"),
        "reference": picture(state, "reference") if state.reference else None,
        "loops": None if loops is None else loops.shown,
        "summary": summary,
        "changes": changes,
        "legend": _legend(
            [view for side in get_args(Side) if (view := view_or_none(state, side))],
            [one for side in get_args(Side) if (one := overlay(state, side))],
            changes,
        ),
        "moved": [],
        "part": _part(state),
    }


def scene_key(state: State) -> str:
    """Return the key of a scene: the function and the ids of both stages."""
    return f"{state.function}/{state.stage_id}/{state.reference}"


def picture(state: State, side: Side) -> schema.Picture:
    """Return the picture of a side with the facts of its nodes, or why it cannot be drawn."""
    drawn = scene(state, side)
    view, stage, figure = view_or_none(state, side), drawn.stage, drawn.figure
    return {
        "stage": stage.id,
        "label": visible(stage.label),
        "name": visible(f"graph of {state.function}, stage {stage.id}"),
        "svg": "" if figure is None else figure.svg,
        "error": visible(drawn.error),
        "instead": [str(one) for one in drawn.instead],
        "note": "" if figure is None else figure.note,
        "facts": [visible(one) for one in facts(view)] if view is not None else [],
        "dimmed": dimmed(state, side),
        "nodes": {} if drawn.view is None else _nodes(state, side, stage, drawn.view),
        "groups": {} if drawn.view is None else _groups(drawn.view.graph),
    }


def _groups(graph: Graph) -> dict[str, schema.Group]:
    """Return the expanded groups, by id."""

    def parent(region: Region) -> str:
        around = None if region.parent is None else graph.regions[region.parent]
        return "" if around is None else around.id or parent(around)

    def name(region: Region) -> str:
        return "" if region.kind is RegionKind.DATAFLOW_BLOCK else visible(region.name)

    return {
        region.id: {"name": name(region), "parent": parent(region)}
        for region in graph.regions
        if region.id
    }


def _nodes(state: State, side: Side, stage: Stage, view: StageView) -> dict[str, schema.NodeFacts]:
    """Return the facts of each drawn node, in the order of the text."""
    trace = state.function_runs.traces.get(stage_id_of(state, side))
    regions = {region.id: region.name for region in view.graph.regions if region.id}
    openable = view.openable
    whole = cache(lambda function: graph_of(stage, function))  # of which a part may be drawn
    tree = tree_of(stage, view.whole.function)
    overlays = {} if trace is None else {"time": time_overlay(trace, view)}
    if trace is not None:
        overlays["values"] = size_overlay(trace, view)

    def measured(group: NodeId) -> Facts:
        return [
            (name, one.marks[group].text) for name, one in overlays.items() if group in one.marks
        ]

    def drawn_node(node: NodeId) -> Node | None:
        place = view.where(node)
        shown = view.graph[place] if place and place in view.graph.index else None
        return shown if shown and shown.kind is NodeKind.GROUP else None

    found: dict[str, schema.NodeFacts] = {}
    for shown in (*view.graph.nodes, *(weight for weight, _ in view.weights.values())):
        function, inner, _ = view.locate(shown.id)
        graph = whole(function)
        is_known = inner in graph.index
        node = graph[inner] if is_known else shown
        is_own = is_known and function == view.whole.function
        group = view.around(shown.id)
        place = source_notes(stage, function).get(inner, "")
        more = _numbers(stage, function, node) if is_known else measured(shown.id)
        more = [*([("from", place)] if place else []), *more]
        html = node_html(
            graph if is_known else view.graph, node, more, drawn_node if is_own else None
        )
        copies = repeat_copies(tree, inner) if is_own else None
        if copies is not None:
            html += copies_html(copies, graph)
            if state.view.around is not None:  # a part has no copies to choose from
                copies = None
        found[str(shown.id)] = {
            "name": visible(node.name or str(node.id)),
            "kind": STYLES[node.kind].name,
            "operator": visible((node.callee or node.operator).removeprefix("relax.")),
            "type": visible(node.type_label),
            "value": value_words(trace, str(shown.id)),
            "facts": str(html),
            "function": function,
            "inner": str(inner),
            "source": node.callee if node.resolution is Resolution.PRIM_FUNC else "",
            "group": group,
            "groupName": visible(regions.get(group, "")),
            "isOpenable": shown.id in openable,
            "isOwn": is_own and side == "current",
            "container": copies.container if copies else "",
            "copy": copies.copy if copies else 0,
            "copies": len(copies.nodes) if copies else 0,
            "layer": visible(layer_name(common_layer(shown.layers))) if side == "current" else "",
        }
    return found


def _numbers(stage: Stage, function: str, node: Node) -> Facts:
    """Return the facts of a small constant; a form shows those of a large one."""
    if node.kind is not NodeKind.CONSTANT:
        return ()
    tensor = reading_of(stage, function).constants.get(node.id)
    if tensor is None or prod(tensor.shape) > _MOST_NUMBERS:
        return ()
    array = array_of(stage, function, node.id)
    return () if array is None else constant_facts(array)


def value_words(trace: Trace | None, node: str) -> str:
    """Describe a node's recorded value in one line, "" if unknown."""
    if trace is None or node not in trace.visits:
        return ""
    value = trace[node].value
    if not value.summaries:
        return visible(value.text)
    one = value.summaries[0]
    words = [f"{one.dtype} {one.shape}"]
    if one.minimum is not None and one.maximum is not None:
        words.append(f"{format_number(one.minimum, 4)} to {format_number(one.maximum, 4)}")
    if one.mean is not None and one.shape:
        words.append(f"mean {format_number(one.mean, 4)}")
    if not one.is_finite:
        words.append(f"{one.nans:,} NaN, {one.infs:,} Inf")
    if len(value.summaries) > 1:
        words.append(f"the first of {len(value.summaries)}")
    return ", ".join(words)


def _part(state: State) -> str:
    """Describe the part of the function that is shown, "" for all of it."""
    look = state.view
    if look.around is None:
        return ""
    uses = f"{look.steps:,} use" + ("" if look.steps == 1 else "s")
    return visible(f"{look.around} → {look.to}" if look.to else f"{uses} around {look.around}")


# --- what differs ------------------------------------------------------------------------------


def _changes(both: ComparedViews) -> Iterable[schema.Change]:
    """Return what became of nodes, in the order of the text, with similar changes merged."""
    known: set[tuple[object, ...]] = set()
    for diff in both.diff.changed_nodes:
        mark = node_change_mark(diff)
        if mark is None:
            continue
        before, after = both.before.marks(diff.before), both.after.marks(diff.after)
        key = (mark.text[:1], *before, "", *after)
        if (not before and not after) or key in known:
            continue
        known.add(key)
        sign, _, word = mark.text.partition(" ")
        names = _names(diff)
        yield {
            "sign": sign,
            "words": visible(f"{names}: {word or diff.change.value}" if names else word),
            "reference": before,
            "current": after,
        }


def _names(diff: NodeDiff) -> str:
    before = ", ".join(map(str, diff.before[:4]))
    after = ", ".join(map(str, diff.after[:4]))
    return before if before == after or not after else f"{before} → {after}".lstrip(" →")


def _summary(both: ComparedViews | Exception | None) -> str:
    """Count the changes and name those of the function itself, or say why they are unknown."""
    if both is None:
        return ""
    if not isinstance(both, ComparedViews):
        return visible(f"not compared: {both}")
    words = [node_summary(both.diff.changed_nodes) or "no node differs"]
    return visible("; ".join([*words, *(shorten(str(one)) for one in both.diff.differences)]))


# --- the legend --------------------------------------------------------------------------------


def _legend(
    views: Sequence[StageView], overlays: Sequence[Overlay], changes: Sequence[schema.Change]
) -> list[schema.LegendEntry]:
    """Explain the tints, the kinds of nodes and edges, and the signs of changes, in the pictures.

    With an overlay, colours are its own, so that kinds are told by their shapes alone.
    """
    kinds: dict[object, Node] = {}
    edges: dict[str, tuple[Edge, Node]] = {}
    for view in views:
        for node in view.graph.nodes:
            kinds.setdefault((node_style(node).shape, node_style(node).colour), node)
        for edge in view.graph.edges:
            words = next((words for kind, words in _EDGES.items() if getattr(edge, kind)), "")
            edges.setdefault(words, (edge, view.graph[edge.source]))
    scales = {f"{one.title}: {one.low} to {one.high}" for one in overlays}
    draw = partial(draw_scale, rect=_SHAPE, theme=_THEME)
    entries = [_entry(words, draw) for words in sorted(scales)]
    entries += [_kind_entry(node, has_colour=not overlays) for node in kinds.values()]
    entries += [_edge_entry(words, *edge) for words, edge in edges.items() if words]
    if any(effect_numbers(view.graph) for view in views):
        whole = Rect(0, 0, _SAMPLE.width, _SAMPLE.height)
        number = partial(draw_effect_number, number=1, rect=whole, theme=_THEME)
        entries.append(_entry("may have an effect, in this order", number))
    signs = {change["sign"][:1] for change in changes}
    entries += [
        _entry(words, partial(draw_sign, sign=sign, corner=(1, 0), theme=_THEME))
        for sign, (_, words) in LEGEND.items()
        if sign in signs
    ]
    return entries


_EDGES = {
    "is_carried": "to the next copy",
    "is_other": "of another copy",
    "is_write": "write to a buffer",
}
"""What the kinds of edges mean that are not plain, by what tells them."""
_RESOLUTIONS = {
    Resolution.LIBRARY: "library function",
    Resolution.UNKNOWN: "call of an unknown function",
}


def _kind_entry(node: Node, *, has_colour: bool) -> schema.LegendEntry:
    style = node_style(node)
    fill, stroke = _THEME.colours[style.colour]
    fill = fill if has_colour else _THEME.background
    lines: dict[str, str | float] = {"fill": fill, "stroke": stroke, "stroke_width": 1.4}
    beside = 6 if style.shape is NodeShape.STACK else 0  # for its lines
    rect = _SHAPE._replace(right=_SHAPE.right - beside)
    known = _RESOLUTIONS.get(node.resolution) if node.resolution else None
    return _entry(known or style.name, lambda root: add_shape(root, style.shape, rect, **lines))


def _edge_entry(words: str, edge: Edge, source: Node) -> schema.LegendEntry:
    right, y = _SAMPLE.width - 1, _SAMPLE.height / 2
    route = Route(((1, y), (6, y), (12, y), (right - 7, y)), (right, y))
    return _entry(words, lambda root: draw_edge(root, edge, source, route, _THEME))


def _entry(words: str, draw: Callable[[ElementTree.Element], object]) -> schema.LegendEntry:
    root = svg_document(_SAMPLE, "sample", "", _THEME)
    draw(root)
    root.remove(root[0])  # its ground
    root.set("aria-hidden", "true")
    return {"sample": svg_text(root), "words": words}
