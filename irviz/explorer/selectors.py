"""What the page shows, as functions of the state: pictures, marks, facts and texts.

Each function gets the whole state and reads some parts of it. Expensive results are computed once
for these parts, however many panels need them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from typing import Concatenate, Generic, ParamSpec, TypeVar, cast

from markupsafe import Markup
from tvm import tirx

from irviz.errors import NotFoundError
from irviz.explorer.state import CallKey, Message, Side, State
from irviz.ir.loop_nest_reader import loop_nest
from irviz.ir.module_functions import contents, drawable_functions, function_named, relax_functions
from irviz.ir.tensor_array import Array, is_equal_array
from irviz.ir.tvmscript import prim_func_script
from irviz.model.graph.graph import (
    INPUT_KINDS,
    Graph,
    Node,
    NodeId,
    NodeKind,
    RegionKind,
    Resolution,
    id_in_callee,
)
from irviz.model.graph.search import search_nodes
from irviz.model.loop_nest import LoopNest, ScheduleAddress, schedule_addresses
from irviz.model.runs.array_summary import summarise
from irviz.model.runs.run_result import Comparison, RunResult, compare_runs
from irviz.model.runs.trace import NodeValue, Trace
from irviz.runtime.prim_func_call import prim_func_sizes
from irviz.session.bisect import Bisection
from irviz.session.lost_function import is_lost, lost_function
from irviz.session.node_history import HistoryStep, node_history
from irviz.session.operation_limits import limited
from irviz.session.run_overlays import trace_overlay
from irviz.session.schedule_times import ScheduleStages
from irviz.session.shared_layout import (
    ComparedViews,
    SharedLayout,
    chain_part,
    compared_views,
    shared_layouts,
)
from irviz.session.stage_cache import array_of, constants_of, graph_of, script_of
from irviz.session.visible_function import StageView, stage_view
from irviz.transforms.schedules import schedule_trace as traces
from irviz.transforms.schedules.schedule_trace import ScheduleTrace
from irviz.transforms.stage import Stage
from irviz.units import format_duration
from irviz.view.graph.graph_figure import GraphFigure, PlacedGraph
from irviz.view.graph.labels import layers_label
from irviz.view.graph.overlay import Overlay
from irviz.view.loop_nest_html import loop_nest_html
from irviz.view.text.details import (
    module_html,
    source_html,
)
from irviz.view.text.run_results import comparison_summary, node_path
from irviz.view.theme import STYLES

P = ParamSpec("P")
Result = TypeVar("Result")

_MOST_FOUND = 200
"""The most search results that are listed."""
_SIZE = 128
"""The default value of a symbolic size in measurements."""
_KEPT = 8
"""How many results of each function are cached: two pictures, before and after a few clicks."""
_MOST_NAMES, _MOST_SHARING = 2, 6
_MOST_TAKEN = 262_144
"""The most elements of a weight used for its mean and histogram, which a click waits for."""
_MOST_SEARCHED = 50
_PLAIN = (str, int, float, bool, frozenset, type(None))
_VALUELESS = (
    *(NodeKind.FUNCTION, NodeKind.BLOCK, NodeKind.ALLOC, NodeKind.GROUP, NodeKind.CONSTANT),
)
"""Kinds of nodes whose values a run does not report."""
REPLACEABLE = (NodeKind.CALL_TIR, NodeKind.CALL_DPS_PACKED)
"""Kinds of nodes whose callees can be replaced."""


def unchanged(before: Sequence[object], after: Sequence[object]) -> bool:
    """Tell whether parts of a state are the same objects, or equal words and numbers."""
    return len(before) == len(after) and all(
        a is b or (isinstance(a, _PLAIN) and type(a) is type(b) and a == b)
        for a, b in zip(before, after, strict=True)
    )


class _Results(threading.local):
    """Results of this thread by function, state and arguments, None outside of `same_results`."""

    known: dict[tuple[object, ...], tuple[State, object]] | None = None


_results = _Results()


@contextmanager
def same_results() -> Iterator[None]:
    """Meanwhile, find the parts of each state once in this thread, not at each call."""
    outer, _results.known = _results.known, {}
    try:
        yield
    finally:
        _results.known = outer


class Derived(Generic[P, Result]):
    """A function of the state, with its last results cached by the `parts` that it depends on."""

    def __init__(
        self,
        parts: Callable[Concatenate[State, P], tuple[object, ...]],
        function: Callable[Concatenate[State, P], Result],
    ) -> None:
        update_wrapper(self, function)
        self.parts, self._function = parts, function
        self._known: tuple[tuple[tuple[object, ...], Result], ...] = ()  # for threads never changed

    def __call__(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        """Return the function's result."""
        known = None if kwargs else _results.known
        if known is None:
            return self._result(state, *args, **kwargs)
        asked = (self, id(state), *args)
        if asked not in known:
            known[asked] = (state, self._result(state, *args, **kwargs))
        return cast("Result", known[asked][1])

    def _result(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        key = self.parts(state, *args, **kwargs)
        for value in self._found(key):
            return value
        value = self._function(state, *args, **kwargs)
        self._known = ((key, value), *self._known[: _KEPT - 1])
        return value

    def is_known(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Tell whether the result is cached."""
        return any(True for _ in self._found(self.parts(state, *args, **kwargs)))

    def _found(self, key: tuple[object, ...]) -> Iterator[Result]:
        return (value for earlier, value in self._known if unchanged(earlier, key))


def derived(
    parts: Callable[Concatenate[State, P], tuple[object, ...]],
) -> Callable[[Callable[Concatenate[State, P], Result]], Derived[P, Result]]:
    """Cache a function of the state by the `parts` that it depends on."""
    return partial(Derived, parts)


# --- pictures ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scene:
    """A drawn stage, or why it cannot be drawn.

    `view` is None if the stage cannot be read, `figure` if it cannot be drawn; `error` then says
    why. If the stage lacks the shown function, `instead` lists others to show.
    """

    stage: Stage
    view: StageView | None
    figure: GraphFigure | None
    error: str = ""
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Location:
    """The selected node, with the stage and the function that contain it."""

    stage: Stage
    view: StageView
    node: str
    function: str
    inner: NodeId
    graph: Graph


def _graph(stage: Stage, function: str) -> Graph | Exception:
    """Return the graph of a function, or why it cannot be read."""
    try:
        with limited("the graph", stage):
            return graph_of(stage, function)
    except Exception as failure:  # to be said where it would be shown
        return failure


def graph_or_none(stage: Stage, function: str) -> Graph | None:
    """Return the graph of a function, None if it cannot be read."""
    graph = _graph(stage, function)
    return None if isinstance(graph, Exception) else graph


@derived(
    lambda state: (
        *(state.stage, state.stage_of("reference"), state.view, state.function),
        # names may lead elsewhere by now
        graph_or_none(state.stage, state.function),
    )
)
def compared(state: State) -> ComparedViews | Exception | None:
    """Return the views of the two stages, why there are none, or None for a single stage."""
    if not state.reference:
        return None
    ids = state.reference, state.stage_id
    try:
        with limited("the comparison", *map(state.session.stage, ids)):
            try:
                return compared_views(state.session.tree, *ids, state.function, state.view)
            except NotFoundError:  # they lack what is looked at: all of it is drawn
                return compared_views(state.session.tree, *ids, state.function, state.view.whole)
    except Exception as failure:  # each is drawn by itself
        return failure


@derived(
    lambda state: (
        *(state.function, state.view),
        *(part := chain_part(state.session.tree, state.function)),
        *(graph_or_none(stage, state.function) for stage in part),
    )
)
def _shared_layouts(state: State) -> Mapping[Stage, SharedLayout]:
    """Return the layouts shared by stages that the user can step through."""
    part = chain_part(state.session.tree, state.function)
    try:
        with limited("the layout", *part):
            return shared_layouts(part, state.function, state.view)
    except Exception:  # whatever is wrong with a stage, the others can be drawn
        return {}


def _shared_layout(state: State) -> PlacedGraph | None:
    """Return the current stage's layout from a shared one, None if it is laid out alone."""
    shared = _shared_layouts(state).get(state.stage)
    return None if shared is None else shared.of(state.stage)


@derived(
    lambda state, side: (
        *(side, stage := state.stage_of(side), state.view, state.function),
        # names may lead elsewhere by now
        None if stage is None else graph_or_none(stage, state.function),
    )
)
def chosen_view(state: State, side: Side) -> StageView | Exception:
    """Return what was chosen to be drawn of a stage, or why the stage lacks it."""
    try:
        stage = state.stage if side == "current" else state.session.stage(state.reference)
        with limited("the picture", stage):
            return stage_view(stage, state.function, state.view)
    except Exception as failure:  # why is said in the place of the picture
        return failure


@derived(
    lambda state, side: (
        *(side, stage := state.stage_of(side), state.view, state.function, compared(state)),
        # names may lead elsewhere by now
        None if stage is None else graph_or_none(stage, state.function),
        None if state.reference else _shared_layout(state),
    )
)
def _view(state: State, side: Side) -> StageView | Exception:
    stage, both = state.stage_of(side), compared(state)
    if stage is None:
        return NotFoundError("there is no second stage")
    if isinstance(both, ComparedViews):
        return both.after if side == "current" else both.before
    try:
        found = chosen_view(state, side)
        if isinstance(found, ValueError):  # it lacks what is looked at: all of it is drawn
            with limited("the picture", stage):
                return stage_view(stage, state.function, state.view.whole)
        if isinstance(found, Exception) or state.reference:
            return found
        return replace(found, placed=_shared_layout(state))
    except Exception as failure:  # why is said in the place of the picture
        return failure


def view_or_none(state: State, side: Side) -> StageView | None:
    """Return what is drawn of the stage on a side, None if it cannot be read."""
    found = _view(state, side)
    return found if isinstance(found, StageView) else None


@derived(
    lambda state, side: (
        *(side, state.stage_of(side), view_or_none(state, side), state.colour_by),
        *(state.function_runs.traces.get(stage_id_of(state, side)), state.divergence),
    )
)
def overlay(state: State, side: Side) -> Overlay | None:
    """Return the overlay of a side from its own trace, None without one."""
    view, stage_id = view_or_none(state, side), stage_id_of(state, side)
    trace = state.function_runs.traces.get(stage_id)
    if trace is None or view is None or not state.colour_by:
        return None
    if state.colour_by != "difference":
        return trace_overlay(state.colour_by, trace, view)
    report = state.divergence
    return report.overlay(view, stage_id) if report and stage_id in state.pair else None


@derived(lambda state, side: (side, state.stage_of(side), _view(state, side), overlay(state, side)))
def scene(state: State, side: Side) -> Scene:
    """Draw the stage on a side; the scene reports any failure."""
    stage = state.stage_of(side)
    if stage is None:
        raise ValueError("there is no second stage")
    view = _view(state, side)
    tree, function = state.session.tree, state.function
    if drawable_functions(stage.module) and is_lost(tree, stage, function):
        lost = lost_function(tree, stage, function)
        return Scene(stage, None, None, lost.words, lost.instead)
    try:
        if isinstance(view, Exception):
            raise view
        with limited("the picture", stage):
            return Scene(stage, view, view.figure("page", overlay=overlay(state, side)))
    except Exception as failure:  # whatever it is, another stage's picture must not stay
        words = str(failure) or type(failure).__name__
        return Scene(stage, None, None, f"This stage cannot be drawn: {words}")


@derived(
    lambda state, side: (
        *(side, state.stage_of(side), view_or_none(state, side)),
        *(state.is_dimmed, state.divergence),
    )
)
def dimmed(state: State, side: Side) -> list[str]:
    """Return the nodes to dim: those that are equal before the first difference."""
    view, report = view_or_none(state, side), state.divergence
    if view is None or report is None or not state.is_dimmed:
        return []
    return report.dimmed(view, stage_id_of(state, side))


def stage_id_of(state: State, side: Side) -> str:
    """Return the id of the stage on a side."""
    return state.stage_id if side == "current" else state.reference


def caption(state: State, side: Side) -> tuple[str, str, tuple[str, ...]]:
    """Return the caption of a picture: stage, label, and how much of it is drawn."""
    stage, view = state.stage_of(side), view_or_none(state, side)
    if stage is None:
        return "", "", ()
    facts: list[str] = []
    if view is not None:
        if view.count != view.size:
            facts.append(f"{view.count:,} of {view.size:,} nodes")
            groups = sum(node.kind is NodeKind.GROUP for node in view.graph.nodes)
            facts += [f"{groups} group{'s' * (groups > 1)}"] if groups else []
        copies = [one.name for one in view.graph.regions if one.kind is RegionKind.REPEAT]
        facts += [f"equal layers {name}" for name in copies[:_MOST_NAMES]]
    return stage.id, stage.label, tuple(facts)


# --- the selected node -------------------------------------------------------------------------


def shown_selection(state: State, side: Side) -> str:
    """Return the drawn node that shows the selected node on a side, "" if none does."""
    chosen, view = state.selection, view_or_none(state, side)
    if chosen.side != side or chosen.function != state.function or view is None:
        return ""
    node = chosen.node
    if not node or node in view.graph.index:
        return node
    if node in view.whole.index:
        return str(view.where(NodeId(node)) or "")
    call = next((one for one in view.graph.index if id_in_callee(one, node) is not None), "")
    first = (one.id for one in view.graph.nodes if view.around(one.id) == node)
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
    node = shown_selection(state, side)
    if stage is None or view is None or not node:
        return None
    return Location(stage, view, node, *view.locate(node))


def selected_call(state: State) -> Node | None:
    """Return the selected call in the current stage's function if its callee can be replaced."""
    node = selected_node(state)
    return node if node is not None and node.kind in REPLACEABLE else None


def selected_node(state: State) -> Node | None:
    """Return the selected node if it belongs to the current stage's function."""
    found = location(state)
    if found is None or found.stage is not state.stage or found.function != state.function:
        return None
    whole = graph_of(found.stage, found.function)
    return whole[found.inner] if found.inner in whole.index else None


def call_key(state: State) -> CallKey | None:
    """Identify the selected call, None for another node."""
    node = selected_call(state)
    return None if node is None else CallKey(state.stage, state.function, node.id)


@derived(lambda state: (state.stage,))
def module_facts(state: State) -> str:
    """Describe the contents of the current stage's module as HTML."""
    return str(module_html(contents(state.stage.module)))


@derived(lambda state: (state.stage, state.function, location(state)))
def node_source(state: State) -> str:
    """Return the selected node's line of TVMScript and its PrimFunc as HTML."""
    try:
        with limited("the text", *filter(None, [state.stage_of(state.selection.side)])):
            return _node_source(state)
    except Exception as failure:  # TVM does not print every module that it makes
        words = Markup('<p role="alert" class="irviz-error">TVM does not print this: {}</p>')
        return words.format(str(failure) or type(failure).__name__)


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
    found = function_named(stage.module, name)
    source = source_html(name, prim_func_script(stage.module, name), line, number)
    if not isinstance(found, tirx.PrimFunc):
        return str(source)
    return f"{source}<h3>loop nest</h3>{loop_nest_html(loop_nest(found, name))}"


@derived(lambda state: (location(state), state.session.stages))
def history(state: State) -> tuple[HistoryStep, ...]:
    """Return the passes that changed the selected node; empty if no Relax function has it."""
    found = location(state)
    if found is None or found.function not in relax_functions(found.stage.module):
        return ()
    try:
        tree = state.session.tree
        with limited("the history", *state.session.stages):
            return node_history(tree, found.function, found.inner, found.stage.id).changes
    except Exception:  # it is a group, or a stage cannot be read, which is said where it is shown
        return ()


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
        return ShownValue(_whole(state, value), label, "; ".join(filter(None, words)))
    weight = _weight(state, found)
    if weight is not None or trace is None or found.inner not in found.graph.index:
        return ShownValue(weight, label, "" if weight is None else _shared_words(state, found))
    is_reported = found.graph[found.inner].kind not in _VALUELESS
    return ShownValue(None, label, f"input {trace.case}: it was not reached" if is_reported else "")


def _whole(state: State, value: NodeValue) -> NodeValue:
    """Return a value with its tensors if they were fetched."""
    if state.fetched is None or state.fetched[0] is not value:
        return value
    return NodeValue(value.summaries, state.fetched[1], value.text)


def _weight(state: State, found: Location) -> NodeValue | None:
    """Return the value of a constant, or of a parameter from the session's arrays."""
    array = _weight_array(state, found, found.inner)
    return None if array is None else NodeValue((summarise(array, _MOST_TAKEN),), (array,))


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
    if found.inner not in graph.index or graph[found.inner].kind not in INPUT_KINDS:
        return ""
    return "; ".join(filter(None, (_users_words(graph, found), _equal_words(state, found))))


def _equal_words(state: State, found: Location) -> str:
    """List other weights with equal values, such as tied weights that were imported twice.

    Weights whose elements are all equal, as in untrained norms, are not compared.
    """
    own = _weight_array(state, found, found.inner)
    if own is None or own.size < 2 or not (own != own.flat[0]).any():
        return ""
    tensors = constants_of(found.stage, found.function)
    tied = tensors.get(found.inner)
    equal = []
    for node in found.graph.nodes:
        tensor = tensors.get(node.id)
        is_itself = node.id == found.inner or (tensor is not None and tensor.same_as(tied))
        if node.kind in INPUT_KINDS and not is_itself:
            array = _weight_array(state, found, node.id)
            if array is not None and is_equal_array(own, array):
                equal.append(node.name or node.id)
    more = f" and {len(equal) - _MOST_SHARING:,} more" if len(equal) > _MOST_SHARING else ""
    return f"equal to {', '.join(equal[:_MOST_SHARING])}{more}" if equal else ""


def _users_words(graph: Graph, found: Location) -> str:
    """List the users of a shared weight, including uses as another constant of the same tensor."""
    tensors = constants_of(found.stage, found.function)
    own = tensors.get(found.inner)
    same = [] if own is None else [one for one in tensors if tensors[one].same_as(own)]
    edges = [edge for one in same or [found.inner] for edge in graph.leaving.get(one, ())]
    users = list(dict.fromkeys(edge.target for edge in edges))
    layers = [layers_label(graph[one]) for one in users[:_MOST_SHARING]]
    names = [
        f"{one} ({layer})" if layer else one for one, layer in zip(users, layers, strict=False)
    ]
    more = f" and {len(users) - len(names):,} more" if len(users) > len(names) else ""
    return f"shared by {', '.join(names)}{more}" if len(users) > 1 else ""


def _time(trace: Trace, node_id: str) -> str:
    """Describe a node's time and its share of the call."""
    taken, share = trace.taken(node_id), trace.share(node_id)
    if taken is None or share is None:
        return ""
    return f"{format_duration(taken)}, {share:.0%} of the call"


def cost_words(trace: Trace | None) -> str:
    """Describe the cost of recording a trace, "" without one."""
    if trace is None:
        return ""
    untraced, cost = format_duration(trace.untraced), format_duration(trace.cost)
    return f"{len(trace.visits)} values recorded in {cost}; a call takes {untraced} without that"


# --- runs --------------------------------------------------------------------------------------


def comparison(state: State, stage_id: str, reference: str) -> Comparison | None:
    """Return how the results of two stages compare, None unless both were run."""
    results = state.function_runs.results
    if stage_id == reference or not {stage_id, reference} <= results.keys():
        return None
    return _compared(results[stage_id], results[reference])


_comparisons: deque[tuple[RunResult, RunResult, Comparison]] = deque(maxlen=256)


def _compared(result: RunResult, reference: RunResult) -> Comparison:
    for one, other, found in tuple(_comparisons):  # which another thread may change
        if one is result and other is reference:
            return found
    found = compare_runs(result, reference)
    _comparisons.appendleft((result, reference, found))
    return found


def verdict(state: State) -> str:
    """Describe how the results of the two stages compare, "" unless both were run."""
    compared = comparison(state, state.stage_id, state.reference)
    # one run of each tells nothing about their times
    return "" if compared is None else f"results of B against A: {comparison_summary(compared)}"


def bisection_words(found: Bisection | str) -> str:
    """Name the pass that was found and how certain that is, or say why there is none."""
    if isinstance(found, str):
        return found
    count = f"{len(found.checked)} of {len(found.session.lineage())} stages were checked."
    if found.stage is None or found.before is None:
        return f"It is none of the passes: {count}"
    first = f"{found.stage.label}, which made stage {found.stage.id}: {found.words}."
    if found.is_exhaustive:
        return f"{first} All stages before it hold. {count}"
    return f"{first} Stage {found.before.id} holds, and an earlier one may fail as well. {count}"


def status(state: State) -> Message | None:
    """Return the last message, or the current stage's error, or what TVM wrote."""
    stage = state.stage
    if state.message is not None and state.message.words:
        return state.message
    if stage.error:
        return Message(f"{stage.label} failed; the module is as before. {stage.error}", True)
    result = state.function_runs.results.get(stage.id)
    if result is not None and result.origin is not None and result.origin.is_different:
        return Message(f"Stage {stage.id} {result.origin}", True)
    if stage.stderr:
        return Message(f"TVM wrote while {stage.label} ran: {stage.stderr}")
    if result is not None and result.warnings:
        return Message(f"TVM warned as stage {stage.id} was built: {'; '.join(result.warnings)}")
    return None


# --- schedules ---------------------------------------------------------------------------------


@derived(lambda state: (state.stage.module,))
def prim_funcs(state: State) -> tuple[str, ...]:
    """Return the names of the current stage's PrimFuncs."""
    functions = state.stage.module.functions.items()
    return tuple(sorted(v.name_hint for v, f in functions if isinstance(f, tirx.PrimFunc)))


def prim_func(state: State) -> str:
    """Return the PrimFunc whose schedule is shown, "" if the stage has none."""
    names = prim_funcs(state)
    return state.prim_func if state.prim_func in names else next(iter(names), "")


@derived(lambda state: (state.session, prim_func(state)))
def schedule_trace(state: State) -> ScheduleTrace:
    """Return the steps of the PrimFunc's schedule, up to the current stage."""
    return traces.schedule_trace(state.session.stages, state.stage_id, prim_func(state))


@derived(lambda state: (state.stage.module, prim_func(state)))
def nest(state: State) -> LoopNest:
    """Return the loops of the PrimFunc."""
    name = prim_func(state)
    return loop_nest(state.stage.module[name], name)


@derived(lambda state: (nest(state),))
def loop_addresses(state: State) -> Mapping[str, ScheduleAddress]:
    """Return the addresses of the loops and blocks that steps can be applied to, by their ids."""
    return schedule_addresses(nest(state))


def steps_to_time(state: State) -> ScheduleStages | None:
    """Return the stages of the schedule and how to measure them; None without a PrimFunc."""
    name = prim_func(state)
    if not name:
        return None
    trace = schedule_trace(state)
    names = prim_func_sizes(state.stage.module, name)
    sizes = tuple((one, state.step_sizes.get(one, _SIZE)) for one in names)
    return ScheduleStages(
        (trace.base, *trace.stages), name, sizes, state.session.config_for(state.stage)
    )


# --- search ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The search results: function, id and line of the first nodes, of `count`; and errors."""

    nodes: tuple[tuple[str, NodeId, str], ...] = ()
    count: int = 0
    errors: tuple[str, ...] = ()


@derived(lambda state: (state.search, state.stage, state.function))
def found_nodes(state: State) -> Found:
    """Return the nodes that match the words, those of the current function first."""
    words = state.search.strip()
    if not words:
        return Found()
    others = [name for name in state.session.functions if name != state.function]
    matches: list[tuple[str, Node]] = []
    errors: list[str] = []
    shown = [state.function] if state.function in state.session.functions else []
    for function in (*shown, *others[:_MOST_SEARCHED]):
        graph = _graph(state.stage, function)
        if isinstance(graph, Exception):  # the other functions can be searched
            errors.append(f"{function!r} cannot be searched: {graph}")
        else:
            matches += [(function, graph[node_id]) for node_id in search_nodes(graph, words)]
    first = matches[:_MOST_FOUND]
    width = min(max((len(node.id) for _, node in first), default=0), 24)
    lines = tuple(
        (function, node.id, _line(node, width, "" if function == state.function else function))
        for function, node in first
    )
    return Found(lines, len(matches), tuple(errors))


def _line(node: Node, width: int, function: str) -> str:
    """Return the texts that a node can be found by, in columns."""
    what = node.callee.removeprefix("relax.") or STYLES[node.kind].name
    line = f"{node.id:<{width}}  {what:<16}  {node.type_label}"
    return f"{line}  in {function}" if function else line
