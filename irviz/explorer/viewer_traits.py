"""Everything that the viewer shows, as plain data computed from the state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from irviz.explorer.graph_pane_data import scene_data, scene_key
from irviz.explorer.script_pane_data import block_lines, scripts
from irviz.explorer.selected_node import (
    history,
    location,
    node_source,
    selected_value,
    shown_selection,
)
from irviz.explorer.shown_schedule import schedule_data
from irviz.explorer.stage_pictures import attempted, scene, view_or_none
from irviz.explorer.stage_rows import answer, comparison, functions_key, stage_rows
from irviz.explorer.state import Derived, Message, State, derived, opened_file
from irviz.explorer.viewer import schema
from irviz.ir.module_functions import contents, relax_functions
from irviz.model.graph.graph import Node, NodeId, NodeKind
from irviz.model.graph.search_nodes import MOST_FOUND, other_matches, search_nodes, search_text
from irviz.model.runs.execution_trace import NodeValue
from irviz.session.bisect import Bisection
from irviz.session.run_overlays import OVERLAYS
from irviz.session.session import Session
from irviz.session.stage_cache import graph_of, groups_of, source_notes
from irviz.transforms.recording import stage_times
from irviz.transforms.stage import INITIAL, Stage
from irviz.units import format_duration
from irviz.view.graph.node_labels import layers_label
from irviz.view.graph.node_labels import title as title_of
from irviz.view.node_details import function_html, module_html, value_html
from irviz.view.run_result_html import comparison_summary
from irviz.view.svg_primitives import shorten, visible
from irviz.view.theme import STYLES

_MOST_FUNCTIONS = 2000
_MOST_SEARCHED = 50


def viewer_data(state: State) -> dict[str, object]:
    """Return the traits of the viewer that depend on the state."""
    return {**picture_data(state), **text_data(state)}


def text_data(state: State, *, has_history: bool = True) -> dict[str, object]:
    """Return the traits that take as long as TVM takes to print the module.

    The history of the selected node, for which all stages are compared, can be left out.
    """
    return {
        "scripts": scripts(state),
        "blockLines": block_lines(state),
        "details": details(state, None, has_history),
        "found": found_nodes(state),
    }


def iter_text_data(state: State) -> Iterator[dict[str, object]]:
    """Yield these traits, first without the history if that is not known."""
    if not history.is_known(state):
        yield text_data(state, has_history=False)
    yield text_data(state)


def is_text_known(state: State) -> bool:
    """Tell whether these traits are there at once, as they are cached."""
    return all(one.is_known(state) for one in TEXTS)


def text_parts(state: State) -> tuple[object, ...]:
    """Return the parts of the state that these traits depend on."""
    return tuple(part for one in (*TEXTS, selected_value) for part in one.parts(state))


def picture_data(state: State) -> dict[str, object]:
    """Return the other traits."""
    session = state.session
    return {
        "title": title(session),
        "rows": stage_rows(state),
        "canUndo": session.tree.past is not None,
        "canRedo": session.tree.future is not None,
        "functions": functions(state),
        "scene": scene_data(state),
        "selection": {"node": shown_selection(state), "side": state.selection.side},
        "marked": marked(state),
        "schedule": schedule_data(state),
        "status": status_data(state),
        "times": _times(state),
        "colours": _COLOURS,
        "colour": state.colour_by or "",
        "clipboard": {"text": state.clipboard.text, "serial": state.clipboard.serial},
        **{name: getattr(state, field) for name, field in schema.WRITTEN.items()},
    }


_COLOURS: list[schema.ColourChoice] = [
    {"kind": kind, "label": label} for kind, label in OVERLAYS.items()
]


def title(session: Session) -> str:
    """Return the title: the name of the file, or that of the first stage."""
    label = session.stages[0].label
    return visible(opened_file(session) or ("IRModule" if label == INITIAL else label))


@derived(lambda state: (state.stage.module, _function_changes(state)))
def functions(state: State) -> list[schema.FunctionRow]:
    """Return the functions that can be drawn, with what became of them."""
    kinds = {one.name: one.kind for one in contents(state.stage.module).functions}
    names = state.session.functions[:_MOST_FUNCTIONS]
    known = _function_changes(state) or {}
    rows: list[schema.FunctionRow] = []
    for name in names:
        words, count = known.get(name, ("", -1))
        kind = kinds.get(name, "")
        kind = "Relax" if kind.startswith("Relax") else kind
        rows.append({"name": name, "kind": kind, "words": visible(words), "changes": count})
    return rows


def _function_changes(state: State) -> Mapping[str, tuple[str, int]] | None:
    key = functions_key(state)
    return None if key is None else state.function_changes.get(key)


def moved(state: State, before: State) -> list[float]:
    """Return how far what was expanded or collapsed moved, [] in another scene."""
    figures = [scene(one, "current").figure for one in (before, state)]
    found = [figure.places.get(state.anchor) for figure in figures if figure is not None]
    places = [place for place in found if place is not None]
    if scene_key(state) != scene_key(before) or len(places) < 2:
        return []
    return [to - start for start, to in zip(*places, strict=True)]


@derived(lambda state: (state.preview, view_or_none(state, "current")))
def marked(state: State) -> list[str]:
    """Return the nodes that the previewed transform would change."""
    view = view_or_none(state, "current")
    return [] if state.preview is None or view is None else view.marks(state.preview.nodes)


@derived(lambda state: (state.stage, state.function))
def _module_facts(state: State) -> str:
    shown = ""
    if state.function in relax_functions(state.stage.module):
        with suppress(Exception):  # the picture says why this function cannot be read
            shown = function_html(graph_of(state.stage, state.function))
    return f"{shown}{module_html(contents(state.stage.module))}"


@derived(
    lambda state, charts=None, has_history=True: (
        *(location(state), state.stage, state.function, state.reference, state.selection.side),
        *(node_source(state), selected_value(state), charts),
        history(state) if has_history else (),
    )
)
def details(
    state: State,
    charts: Callable[[NodeValue], str] | None = None,
    has_history: bool = True,
) -> schema.Details:
    """Return code and history of the selected node, or describe the module if there is none.

    With `charts`, which draws values, the details include its value, which a form shows in a
    notebook.
    """
    found = location(state)
    value = _module_facts(state) if found is None else ""
    shown = selected_value(state)
    if charts is not None and found is not None and shown.value is not None:
        summary = next(iter(shown.value.summaries), None)
        facts = value_html(shown.label, summary, shown.value.text, shown.words)
        value = f"{facts}{charts(shown.value)}"
    return {
        "key": scene_key(state),
        "node": "" if found is None else found.node,
        "side": state.selection.side,
        "value": value,
        "code": node_source(state),
        "history": [
            {
                "stage": step.stage.id,
                "label": visible(step.stage.label),
                "function": step.function,
                "node": next(iter(step.changed_nodes), ""),
                "names": visible(", ".join(step.nodes)),
                "words": visible(step.words),
            }
            for step in (history(state) if has_history else ())
        ],
    }


@derived(lambda state: (state.search, state.stage, state.function))
def _found(state: State) -> schema.Found:
    """Return what matches the words, in the current function first: other views have the same."""
    words = state.search.strip()
    others = [name for name in state.session.functions if name != state.function]
    matches: list[tuple[str, Node]] = []
    errors: list[str] = []
    shown = [state.function] if state.function in state.session.functions else []
    for function in (*shown, *others[:_MOST_SEARCHED]) if words else ():
        nodes = searched_nodes(state.stage, function)
        if isinstance(nodes, Exception):  # the other functions can be searched
            errors.append(visible(f"{function!r} cannot be searched: {nodes}"))
        else:
            found = search_nodes(nodes.values(), words, source_notes(state.stage, function))
            matches += [(function, nodes[node_id]) for node_id in found]
    first = matches[:MOST_FOUND]
    lines = found_lines([node for _, node in first])
    notes = (source_notes(state.stage, function).get(node.id, "") for function, node in first)
    texts = (search_text(node, note) for (_, node), note in zip(first, notes, strict=True))
    return {
        "words": state.search,
        "nodes": [
            {
                "function": function,
                "node": str(node.id),
                "shown": "",
                "line": visible(line),
                "rest": visible(f"{rest}  {other_matches(f'{line} {rest}', text, words)}".rstrip()),
            }
            for (function, node), text, (line, rest) in zip(first, texts, lines, strict=True)
        ],
        "count": len(matches),
        "errors": errors,
    }


@derived(lambda state: (_found(state), view_or_none(state, "current")))
def found_nodes(state: State) -> schema.Found:
    """Return the nodes and groups that match the words, and what the picture shows for each."""
    found, view = _found(state), view_or_none(state, "current")

    def shown(one: schema.FoundNode) -> str:
        if view is None or one["function"] != state.function:
            return ""
        return str(view.where(NodeId(one["node"])) or "")

    return {**found, "nodes": [{**one, "shown": shown(one)} for one in found["nodes"]]}


def searched_nodes(stage: Stage, function: str) -> dict[NodeId, Node] | Exception:
    """Return what is found in a function, by id: groups, and then nodes; or why nothing can be."""

    def nodes() -> dict[NodeId, Node]:
        found = (*groups_of(stage, function), *graph_of(stage, function).nodes)
        return {node.id: node for node in found}

    return attempted("the search", nodes, stage)


def found_lines(nodes: Sequence[Node]) -> list[tuple[str, str]]:
    """Return the texts that nodes can be found by, in columns.

    First the title in the picture and the layer, then the name of the variable and its type.
    """
    rows = [_found_columns(node) for node in nodes]
    widths = [min(max(map(len, column)), 24) for column in zip(*rows, strict=True)]
    padded = [tuple(map(str.ljust, row, widths)) for row in rows]
    return [("  ".join(filter(None, row[:2])), "  ".join(row[2:]).rstrip()) for row in padded]


def _found_columns(node: Node) -> tuple[str, str, str, str]:
    if node.kind is NodeKind.GROUP:
        layer = dict(node.attributes).get("layer", "")
        return title_of(node), layer if layer != node.name else "", "group", ""
    shown, name = title_of(node), node.name or str(node.id)
    own = STYLES[node.kind].name if name == shown else name
    return shown, layers_label(node), own, shorten(node.type_label)


TEXTS: tuple[Derived[[], Any], ...] = (scripts, block_lines, node_source, history, found_nodes)
"""What takes long of the traits of texts."""


def status_data(state: State) -> schema.Status:
    """Return the last message, the running jobs, and the pending question."""
    said, question, jobs, making = _said(state), state.question, state.jobs, state.making
    asked = ""
    if question is not None:
        names = " and ".join(sorted(Path(file).name for file in question.files))
        asked = f"This runs code of {names}, which can do all that you can do here. Run it?"
    stage, reference = state.pair
    given = answer(state)
    compared = comparison(state, stage, state.reference)
    # one run of each tells nothing about their times
    verdict = f"results of B against A: {comparison_summary(compared)}" if compared else ""
    return {
        "words": "" if said is None else visible(said.words),
        "isError": said is not None and said.is_error,
        "job": visible(state.applying or jobs.name),
        "progress": visible(making.progress if making else "" if state.applying else jobs.progress),
        "waiting": jobs.waiting,
        "making": visible(making.name if making else ""),
        "drawing": state.drawing,
        "verdict": visible(verdict),
        "answer": visible(given.words),
        "answerKind": given.kind,
        "found": visible(_finding(state)),
        "question": visible(asked),
        "canDiffer": state.can_record(stage) and stage != reference,
        "isDimmed": state.is_dimmed,
    }


def _said(state: State) -> Message | None:
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


def _finding(state: State) -> str:
    """Describe the pass that was found, or else the first difference that was gone to."""
    if isinstance(state.bisection, Bisection):
        return state.bisection.line
    report = state.divergence
    return report.line if state.is_dimmed and report is not None else ""


@derived(lambda state: (state.session,))
def _times(state: State) -> list[schema.PassTime]:
    """Return the flame graph of the recorded passes, [] if there are none."""
    stages = state.session.stages
    if all(stage.seconds is None for stage in stages):
        return []
    root = stage_times(stages).root
    return [
        {
            "name": visible(one.name),
            "stage": one.stage,
            "depth": depth - 1,
            "left": one.start / (root.seconds or 1),
            "width": one.seconds / (root.seconds or 1),
            "own": format_duration(one.own),
            "total": format_duration(one.seconds),
            "isChanged": one.is_changed,
            "error": visible(one.error),
        }
        for depth, one in root.walk()
        if depth
    ]
