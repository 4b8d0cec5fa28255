"""The selected node: where it is, its text, its history and its value."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from irviz.errors import message_of
from irviz.explorer.stage_pictures import attempted, stage_id_of, view_or_none
from irviz.explorer.state import CallKey, State, derived
from irviz.ir.module_functions import relax_functions
from irviz.ir.parameter_values import Array, is_equal_array
from irviz.ir.tvmscript import prim_func_script
from irviz.model.graph.graph import Graph, Node, NodeId, NodeKind, Resolution, id_in_callee
from irviz.model.runs.array_diff import summarise
from irviz.model.runs.execution_trace import NodeValue, Trace
from irviz.session.node_history import HistoryStep, node_history
from irviz.session.stage_cache import array_of, graph_of, nest_of, reading_of, script_of
from irviz.transforms.stage import Stage
from irviz.units import first_names, format_duration
from irviz.view.graph.node_labels import layers_label
from irviz.view.node_details import loop_nest_html, source_html
from irviz.view.run_result_html import node_path

REPLACEABLE = (NodeKind.CALL_TIR, NodeKind.CALL_DPS_PACKED)
"""Kinds of nodes whose callees can be replaced."""
_VALUELESS = (
    *(NodeKind.FUNCTION, NodeKind.BLOCK, NodeKind.ALLOC, NodeKind.GROUP, NodeKind.CONSTANT),
)
"""Kinds of nodes whose values a run does not report."""
_MOST_SHARING = 6
_MOST_TAKEN = 1 << 20
"""The most elements of a weight used for its deviation and histogram, which a click waits for."""


@dataclass(frozen=True, eq=False)
class Location:
    """The selected node, with the stage and the function that contain it."""

    stage: Stage
    node: str
    function: str
    inner: NodeId
    graph: Graph


def shown_selection(state: State) -> str:
    """Return the drawn node or weight that shows the selected node, "" if none does."""
    chosen, view = state.selection, view_or_none(state, state.selection.side)
    if chosen.function != state.function or view is None:
        return ""
    node = chosen.node
    if not node or view.draws(node):
        return node
    if node in view.whole.index:
        return str(view.where(NodeId(node)) or "")
    call = next((one for one in view.graph.index if id_in_callee(one, node) is not None), "")
    first = (one.id for one in view.graph.nodes if node in view.all_around(one.id))
    return str(call or next(first, ""))  # what it is in, or what is in it


@derived(
    lambda state: (
        *(state.selection, state.function, state.stage_of(state.selection.side)),
        view_or_none(state, state.selection.side),
    )
)
def location(state: State) -> Location | None:
    """Return where the selected node is, None for no node."""
    side = state.selection.side
    stage, view = state.stage_of(side), view_or_none(state, side)
    node = shown_selection(state)
    if stage is None or view is None or not node:
        return None
    return Location(stage, node, *view.locate(node))


def selected_node(state: State) -> Node | None:
    """Return the selected node if it belongs to the current stage's function."""
    found = location(state)
    if found is None or found.stage is not state.stage or found.function != state.function:
        return None
    whole = graph_of(found.stage, found.function)
    return whole[found.inner] if found.inner in whole.index else None


def call_key(state: State) -> CallKey | None:
    """Identify the selected call whose callee can be replaced, None for another node."""
    node = selected_node(state)
    if node is None or node.kind not in REPLACEABLE:
        return None
    return CallKey(state.stage, state.function, node.id)


@derived(lambda state: (state.stage, state.function, location(state)))
def node_source(state: State) -> str:
    """Return the selected node's line of TVMScript and its PrimFunc as HTML."""
    stage = state.stage_of(state.selection.side) or state.stage
    found = attempted("the text", lambda: _node_source(state), stage)
    if not isinstance(found, Exception):
        return found
    return Markup('<p role="alert" class="irviz-error">{}</p>').format(message_of(found))


def _node_source(state: State) -> str:
    found = location(state)
    if found is None:
        return _source_html(state.stage, state.function)
    whole = graph_of(found.stage, found.function)
    if found.inner not in whole.index:
        return ""
    node, printed = whole[found.inner], script_of(found.stage)
    number = printed.lines.get((found.function, found.inner), 0)
    is_line = number and node.kind is not NodeKind.PARAM
    name = node.callee if node.resolution is Resolution.PRIM_FUNC else found.function
    return _source_html(found.stage, name, printed.line(number) if is_line else "", number)


def _source_html(stage: Stage, name: str, line: str = "", number: int = 0) -> str:
    """Return a line of TVMScript, and the PrimFunc of this name with its loop nest."""
    source = source_html(name, prim_func_script(stage.module, name), line, number)
    nest = nest_of(stage, name)
    return str(source) if nest is None else f"{source}<h3>loop nest</h3>{loop_nest_html(nest)}"


@derived(lambda state: (location(state), state.session.stages))
def history(state: State) -> tuple[HistoryStep, ...]:
    """Return the passes that changed the selected node; empty if no Relax function has it."""
    found = location(state)
    if found is None or found.function not in relax_functions(found.stage.module):
        return ()
    tree, node = state.session.tree, (found.function, found.inner, found.stage.id)
    known = attempted("the history", lambda: node_history(tree, *node), *state.session.stages)
    # it may be a group, or of a stage that cannot be read, which is said where that is shown
    return () if isinstance(known, Exception) else known.changes


# --- values ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ShownValue:
    """The value of the selected node, None if unknown, with remarks in `words`."""

    value: NodeValue | None = None
    label: str = ""
    words: str = ""


def selected_trace(state: State) -> Trace | None:
    """Return the trace of the stage whose picture the selected node is in."""
    return state.function_runs.traces.get(stage_id_of(state, state.selection.side))


@derived(lambda state: (location(state), selected_trace(state), state.divergence, state.fetched))
def selected_value(state: State) -> ShownValue:
    """Return the value of the selected node, as far as it was recorded or fetched."""
    found = location(state)
    if found is None:
        return ShownValue()
    trace, label = selected_trace(state), node_path(found.node)
    if trace is not None and found.node in trace.visits:
        is_current = found.stage is state.stage
        line = state.divergence.line_of(found.node) if state.divergence and is_current else ""
        words = [f"input {trace.case}", _time(trace, found.node), line, _shared_words(state, found)]
        value = trace[found.node].value
        if state.fetched is not None and state.fetched[0] is value:
            value = NodeValue(value.summaries, state.fetched[1], value.text)
        return ShownValue(value, label, "; ".join(filter(None, words)))
    array = _weight_array(state, found, found.inner)
    weight = None if array is None else NodeValue((summarise(array, _MOST_TAKEN),), (array,))
    if weight is not None or trace is None or found.inner not in found.graph.index:
        return ShownValue(weight, label, "" if weight is None else _shared_words(state, found))
    is_reported = found.graph[found.inner].kind not in _VALUELESS
    return ShownValue(None, label, f"input {trace.case}: it was not reached" if is_reported else "")


def _weight_array(state: State, found: Location, node_id: NodeId) -> Array | None:
    """Return the array of a constant, or the session's array for a parameter."""
    if found.function == state.function and node_id in found.graph.index:
        node = found.graph[node_id]
        if node.kind is NodeKind.PARAM:
            return state.session.call_inputs.params.get(node.name)
    return array_of(found.stage, found.function, node_id)


def _shared_words(state: State, found: Location) -> str:
    """List the users of a shared weight, and other weights with equal values."""
    graph = graph_of(found.stage, found.function)
    if found.inner not in graph.index or not graph[found.inner].is_input:
        return ""
    return "; ".join(filter(None, (_users_words(graph, found), _equal_words(state, found))))


def _equal_words(state: State, found: Location) -> str:
    """List other weights with equal values, such as tied weights that were imported twice.

    Weights whose elements are all equal, as in untrained norms, are not compared.
    """
    own = _weight_array(state, found, found.inner)
    if own is None or own.size < 2 or not (own != own.flat[0]).any():
        return ""
    tensors = reading_of(found.stage, found.function).constants
    tied = tensors.get(found.inner)
    equal = []
    for node in found.graph.nodes:
        tensor = tensors.get(node.id)
        is_itself = node.id == found.inner or (tensor is not None and tensor.same_as(tied))
        if node.is_input and not is_itself:
            array = _weight_array(state, found, node.id)
            if array is not None and is_equal_array(own, array):
                equal.append(node.name or node.id)
    return f"equal to {first_names(equal, _MOST_SHARING)}" if equal else ""


def _users_words(graph: Graph, found: Location) -> str:
    """List the users of a shared weight, including uses as another constant of the same tensor."""
    tensors = reading_of(found.stage, found.function).constants
    own = tensors.get(found.inner)
    same = [] if own is None else [one for one in tensors if tensors[one].same_as(own)]
    edges = [edge for one in same or [found.inner] for edge in graph.leaving.get(one, ())]
    users = list(dict.fromkeys(edge.target for edge in edges))
    layers = {one: layers_label(graph[one]) for one in users}
    names = [f"{one} ({layer})" if layer else one for one, layer in layers.items()]
    return f"shared by {first_names(names, _MOST_SHARING)}" if len(users) > 1 else ""


def _time(trace: Trace, node_id: str) -> str:
    """Describe a node's time and its share of the call."""
    taken, share = trace.taken(node_id), trace.share(node_id)
    if taken is None or share is None:
        return ""
    return f"{format_duration(taken)}, {share:.0%} of the call"
