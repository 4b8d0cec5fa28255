"""Write a session to one HTML file, which shows it without a kernel or a network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

from markupsafe import Markup

from irviz.errors import RunError
from irviz.explorer import actions
from irviz.explorer.background_actions import perform
from irviz.explorer.background_runner import Jobs
from irviz.explorer.graph_pane_data import scene_data, scene_key
from irviz.explorer.reducer import reduce
from irviz.explorer.script_pane_data import blamed_lines, block_lines_of, script_data, unwritten
from irviz.explorer.stage_pictures import view_or_none
from irviz.explorer.stage_rows import iter_change_counts, stage_rows
from irviz.explorer.state import Clipboard, Runs, Selection, Side, State
from irviz.explorer.viewer import STATIC, schema
from irviz.explorer.viewer_traits import (
    details,
    found_lines,
    functions,
    moved,
    searched_nodes,
    status_data,
    viewer_data,
)
from irviz.ir.module_functions import drawable_functions
from irviz.limits import OPERATION_SECONDS
from irviz.model.graph.search_nodes import MOST_FOUND, search_text
from irviz.model.runs.execution_trace import NodeValue
from irviz.progress import with_progress
from irviz.runtime.run import TraceRequest
from irviz.safe_files import atomic_write, target_path
from irviz.session.operation_limits import limited_together
from irviz.session.session import Session
from irviz.session.stage_cache import source_notes
from irviz.view.svg_primitives import visible
from irviz.view.templating import render
from irviz.view.value_charts import HISTOGRAM, draw_chart, fitting_charts

SUFFIX = ".html"
_LONG = 100
_MANY = 6
"""Records and lists with at least this many values are written once, however often they occur."""
_NUMBER = "$"
"""The only key of an object that stands for a text."""
_EXPORTS = re.compile(r"export\{(?P<names>[^{}]*)\};(?=\s*(/\*!.*\*/\s*)?\Z)", re.DOTALL)
_START = re.compile(r"(?P<name>[\w$]+) as showRecordedPage\b")


def save_html(session: Session, path: str | os.PathLike[str], *, run: bool = False) -> Path:
    """Write a session to a single HTML file, atomically.

    A browser opens it from disk. It shows the stages with all their functions, the differences from
    the stage before, TVMScript and facts. It fetches nothing, and its stages cannot be transformed
    or run.

    Args:
        path: A file name ending in `.html`.
        run: Whether to run the stages first. The file then has the values of all nodes for the
            first case, and how the results compare; otherwise it has neither.

    Raises:
        SaveError: The file name has another suffix, or the file cannot be written.
        UntrustedError: Stages of an opened file would have to be run; see `Session.trust`.
    """
    target = target_path(path, [SUFFIX])
    state = State.of(session)
    return write_html(_run(state) if run else state, target)


def write_html(state: State, path: str | os.PathLike[str]) -> Path:
    """Write everything that an explorer in this state can show, with its recorded values."""
    target = target_path(path, [SUFFIX])
    content = page_content(with_progress(page_in_steps(state), target.name))
    with atomic_write(target) as partial:
        partial.write_bytes(content)
    return target


def page_content(page: str) -> bytes:
    """Return the content of the file."""
    return page.encode("utf-8", "replace")  # a file's name may be no text


def page_in_steps(state: State) -> Generator[str, None, str]:
    """Return the page: the viewer, its style sheet and a recording of what it shows.

    Yields progress messages.
    """
    seconds = OPERATION_SECONDS * len(state.session.stages)
    recording = yield from limited_together(record_in_steps(state), seconds)
    values: dict[str, int] = {}
    shortened = _shortened(recording, values)
    packed = {"recording": shortened, "values": [json.loads(one) for one in values]}
    json_bytes = json.dumps(packed, separators=(",", ":")).encode()
    script = _program((STATIC / "viewer.js").read_text(encoding="utf-8"))
    style = (STATIC / "viewer.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = render(
        "offline_page",
        title=recording["traits"]["title"],
        digest=digest,
        style=Markup(style),  # noqa: S704 - both are irviz's own
        script=Markup(script),  # noqa: S704
        # no character of base64 means anything in HTML
        recording=base64.b64encode(gzip.compress(json_bytes, mtime=0)).decode(),
    )
    return str(page)


def _shortened(value: object, values: dict[str, int]) -> object:
    """Return data with long texts, records and lists replaced by numbers.

    Stages have much in common, and gzip alone finds no repetition more than 32 kB apart. What is in
    a value comes before it in `values`, which are JSON.
    """
    short: object
    match value:
        case str():
            short, is_long = value, len(value) > _LONG
        case dict():
            short = {key: _shortened(one, values) for key, one in value.items()}
            is_long = len(value) >= _MANY
        case list():
            short = [_shortened(one, values) for one in value]
            is_long = len(value) >= _MANY
        case _:
            return value
    return {_NUMBER: values.setdefault(json.dumps(short), len(values))} if is_long else short


def _program(bundle: str) -> str:
    """Return the viewer's module, changed to show the recording instead of exporting names."""
    exports = _EXPORTS.search(bundle)
    start = exports and _START.search(exports["names"])
    assert exports is not None, "the bundle ends in its exports"
    assert start is not None, "one of which shows a recording"
    return f"{bundle[: exports.start()]}{start['name']}(document);{bundle[exports.end() :]}"


def _run(state: State) -> State:
    """Run all stages and record the values of the first case."""
    runs, traces = Runs(), {}
    session = state.session
    for stage in session.stages:
        if stage.error:
            continue
        answer: object
        try:
            answer = session.run(stage=stage.id, trace=TraceRequest(0))
            traces[stage.id] = answer.trace
        except (RunError, ValueError) as failure:
            answer = failure
        runs = runs.add(stage.id, 0, answer)
    kept = {stage: trace for stage, trace in traces.items() if trace is not None}
    return replace(state, runs={session.function: replace(runs, traces=kept)})


# --- Everything that a viewer can show of a session, as data for a file without a kernel ----------


@dataclass(frozen=True)
class Room:
    """How much there is room for in a file.

    Attributes:
        scenes: The most pictures, and the most views that only say what a stage lacks. Those of the
            current function come first.
        toggled_nodes: The most nodes in all pictures with something expanded or collapsed: some
            seconds, and three quarters of a megabyte.
        numpy_functions: The most functions translated to NumPy: some seconds, and a tenth of a
            megabyte.
        charts: The most characters in all pictures of values, apart from histograms.
    """

    scenes: int = 400
    toggled_nodes: int = 4_000
    numpy_functions: int = 1_000
    charts: int = 1_000_000


class _Charts:
    """Pictures of the values in a file, each drawn once, while there is room."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._drawn: dict[bytes, str] = {}

    def of(self, value: NodeValue) -> str:
        """Return the pictures of a value's first tensor: the default kind, and its histogram."""
        if not value.summaries:
            return ""
        summary, array = value.summaries[0], value.arrays[0] if value.arrays else None
        if summary.digest not in self._drawn:
            kinds = fitting_charts(summary.shape)
            is_drawn = bool(summary.shape) and array is not None and self._room > 0
            looks = [kind for kind in kinds if kind != HISTOGRAM][:is_drawn]
            histogram = [HISTOGRAM] if summary.counts else []
            drawn = [draw_chart(kind, array, summary, "page").svg for kind in looks + histogram]
            self._room -= sum(map(len, drawn[: len(looks)]))
            self._drawn[summary.digest] = "".join(drawn)
        return self._drawn[summary.digest]


def record_in_steps(state: State, room: Room = Room()) -> Generator[str, None, schema.Recording]:
    """Return the stages, pictures, comparisons with the stage before, texts, and values.

    Every stage is recorded with each of its functions, alone and next to its parent; values are
    those already recorded, and nothing is run. The recording starts in the given state. Progress
    messages are yielded, so that other work can be done in between.
    """
    start = replace(state, has_script=True, selection=Selection(), search="", tab="Node")
    start = replace(start, message=None, question=None, jobs=Jobs(), clipboard=Clipboard())
    start = replace(start, making=None, applying="", drawing="")
    views: dict[str, schema.RecordedView] = {}
    charts = _Charts(room.charts)
    found: list[schema.Details] = []
    count = len(state.session.stages)
    states: dict[str, State] = {}
    for one in chain([start], _states(start)):
        states.setdefault(scene_key(one), one)
        if len(states) >= room.scenes:
            break
    changes = start.changes
    for one in {state.function: state for state in states.values()}.values():
        for counts in iter_change_counts(replace(one, changes=changes)):
            yield "counting changes"
            changes = {**changes, **counts}
    # the start first, which there must be time for; then by stage, as little is cached of many
    first, place = scene_key(start), {one.id: at for at, one in enumerate(state.session.stages)}
    for key in sorted(states, key=lambda key: (key != first, place[states[key].stage_id])):
        states[key] = shown = replace(states[key], changes=changes)
        yield f"stage {shown.stage_id} of {count}, {shown.function}"
        views[key] = _view(shown)
        found += _details(shown, charts, views)
    views = {key: views[key] for key in states}
    shown_states = list(states.values())
    leads: dict[str, str] = {}
    for asked, shown in _others(shown_states):
        key = scene_key(shown)
        is_lacking = not shown.has_function(shown.stage_id)
        if key not in views and is_lacking and len(views) < 2 * room.scenes:
            yield f"stage {shown.stage_id} of {count}, {shown.function}"
            views[key] = _view(shown)
            found += _details(shown, charts, views)
        if key != asked and key in views:
            leads[asked] = key
    for view in views.values():
        stage = (view["scene"]["current"] or {"stage": ""})["stage"]
        view["functions"] = [one for one in view["functions"] if f"{one['name']}/{stage}/" in views]
    searched = _searched(shown_states)  # for which groups leave no time where that is limited
    toggled, more = yield from _toggled(shown_states, charts, views, room.toggled_nodes)
    traits = {
        **viewer_data(start),
        **views[scene_key(start)],
        "blockLines": _block_lines(shown_states),
        "panes": schema.ViewerTraits.panes,
        "height": 0,
        "still": "",
        "tabs": [],
        "forms": {},
        "canUndo": False,
        "canRedo": False,
    }
    return {
        "traits": traits,
        "views": list(views.values()),
        "leads": leads,
        "toggled": toggled,
        "searched": _drawn(searched, [*views.values(), *toggled]),
        "mostFound": MOST_FOUND,
        "scripts": (yield from _scripts(start, room.numpy_functions)),
        "details": [*found, *more],
    }


def _view(state: State) -> schema.RecordedView:
    return {
        "rows": stage_rows(state),
        "functions": functions(state),
        "scene": scene_data(state),
        "status": status_data(state),
    }


def _others(states: Sequence[State]) -> Iterator[tuple[str, State]]:
    """Return what else a stage leads to, by what is asked for.

    It may lack the function that is looked at, alone or beside a parent that has it, or be the one
    that is compared with.
    """
    by_function = {state.function: state for state in states}
    known = {scene_key(state) for state in states}
    for function, state in by_function.items():
        for stage in state.session.stages:
            parent = [stage.parent] if stage.parent and state.has_function(stage.parent) else []
            for reference in ("", stage.id, *parent):
                asked = f"{function}/{stage.id}/{reference}"
                if asked not in known:
                    before = replace(state, reference=reference)
                    yield asked, reduce(before, actions.Checkout(stage.id))


_Searched: TypeAlias = dict[str, list[schema.SearchedNode]]


def _drawn(searched: _Searched, views: Iterable[schema.RecordedView]) -> _Searched:
    """Return those groups and nodes that a view draws."""
    drawn: defaultdict[str, set[str]] = defaultdict(set)
    for view in views:
        drawn[view["scene"]["key"]].update((view["scene"]["current"] or {"nodes": ()})["nodes"])
    return {
        key: [one for one in nodes if one["node"] in drawn[key]] for key, nodes in searched.items()
    }


def _searched(states: Iterable[State]) -> _Searched:
    """Return the groups and nodes of each stage by itself."""
    found: _Searched = {}
    for state in states:
        known = {} if state.reference else searched_nodes(state.stage, state.function)
        if known and not isinstance(known, Exception):
            nodes = list(known.values())
            notes = source_notes(state.stage, state.function)
            texts = (search_text(node, notes.get(node.id, "")) for node in nodes)
            found[scene_key(state)] = [
                {
                    "node": str(node.id),
                    "text": visible(text),
                    "line": visible(line),
                    "rest": visible(rest),
                }
                for node, text, (line, rest) in zip(nodes, texts, found_lines(nodes), strict=True)
            ]
    return found


def _scripts(state: State, room: int) -> Generator[str, None, list[schema.Script]]:
    """Return the texts of all stages, with the passes that last changed their lines.

    As many functions as there is room for are translated to NumPy.
    """
    found: dict[str, schema.Script] = {}
    stages = state.session.stages
    for stage in sorted(stages, key=lambda one: one.id != state.stage_id):
        yield f"text of stage {stage.id}"
        room -= len(stage.module.functions)
        script = script_data(stage, room >= 0)
        if room < 0:
            script = {**script, "numpy": unwritten("The NumPy of this stage is not in the file.")}
        found[stage.id] = {**script, "blame": blamed_lines(state, stage)}
    return [found[stage.id] for stage in stages]


def _block_lines(states: Iterable[State]) -> schema.BlockLines:
    """Return the lines of all PrimFuncs that are shown."""
    found: schema.BlockLines = {}
    for state in states:
        lines = block_lines_of(state.stage, state.function)
        if lines:
            found.setdefault(state.stage_id, {})[state.function] = lines
    return found


def _states(state: State) -> Iterator[State]:
    """Return a state for each function of each stage, alone and next to its parent."""
    stages = state.session.stages
    by_stage = {stage.id: list(drawable_functions(stage.module)) for stage in stages}
    every = dict.fromkeys([state.function, *(one for names in by_stage.values() for one in names)])
    for function in every:
        for stage in stages:
            if function not in by_stage[stage.id]:
                continue
            alone = replace(state, wanted_function=function, reference="")
            alone = reduce(alone, actions.Checkout(stage.id))
            if alone.function == function:
                yield alone
                if stage.parent is not None:
                    yield reduce(alone, actions.Compare(stage.parent))


def _toggled(
    states: Sequence[State], charts: _Charts, views: Mapping[str, schema.RecordedView], room: int
) -> Generator[str, None, tuple[list[schema.ToggledView], list[schema.Details]]]:
    """Return the views with one container expanded, then those with one collapsed, with details.

    Earlier states come first, while there is room.
    """
    toggled: list[schema.ToggledView] = []
    found: list[schema.Details] = []
    for state, container in (
        *((one, each) for one in states for each in _containers(one, "openable")),
        *((one, "+") for one in states),
        *((one, each) for one in states for each in _containers(one, "closable")),
        *((one, "-") for one in states),
    ):
        yield "groups"
        is_all = container in ("+", "-")
        wanted = actions.ToggleAll(container == "+") if is_all else actions.Toggle(container)
        after = perform(state, wanted)
        before, scene = scene_data(state), scene_data(after)
        if scene is before:  # only the stage before has it
            continue
        pictures = (scene["current"], scene["reference"])
        room -= sum(len(one["nodes"]) for one in pictures if one is not None)
        if room < 0:
            break
        view = views[scene["key"]]
        scene = {**scene, "moved": moved(after, state)}
        toggled.append(
            {**view, "container": container, "scene": scene, "status": status_data(after)}
        )
        found += _details(after, charts, {}, before)
    return toggled, found


def _containers(state: State, kind: Literal["openable", "closable"]) -> list[str]:
    view = view_or_none(state, "current")
    return [] if view is None else sorted(getattr(view, kind))


def _details(
    state: State,
    charts: _Charts,
    known: Mapping[str, schema.RecordedView],
    before: schema.Scene | None = None,
) -> list[schema.Details]:
    """Return the details of each node of the pictures, and those for no selection.

    A comparison only has details that are missing in the scenes of its single stages (`known`); a
    scene with something expanded only has those missing in the scene `before`.
    """
    scene = scene_data(state)
    sides: tuple[tuple[Side, schema.Picture | None], ...]
    sides = (("current", scene["current"]), ("reference", scene["reference"]))
    found: list[schema.Details] = []
    for side, picture in sides:
        if picture is None:
            continue
        alone = known.get(f"{state.function}/{picture['stage']}/") if state.reference else None
        there = set[str]()
        if alone is not None:
            there = {"", *(alone["scene"]["current"] or picture)["nodes"]}
        if before is not None:
            there |= {"", *(before[side] or picture)["nodes"]}
        lacking = [node for node in ("", *picture["nodes"]) if node not in there]
        shown = (
            replace(state, selection=Selection(node, state.function, side)) for node in lacking
        )
        found += [details(one, charts.of) for one in shown]
    return found
