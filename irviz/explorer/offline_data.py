"""Everything that a viewer can show of a session, as data for a file without a kernel."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from irviz.explorer import actions
from irviz.explorer.change_counts import iter_change_counts
from irviz.explorer.jobs.job_queue import Jobs
from irviz.explorer.numpy_data import unwritten
from irviz.explorer.reducer import reduce
from irviz.explorer.scene_data import scene_data
from irviz.explorer.script_data import blamed_lines, block_lines_of, script_data
from irviz.explorer.selectors import view_or_none
from irviz.explorer.state import Clipboard, Selection, Side, State
from irviz.explorer.viewer.schema import (
    BlockLines,
    Details,
    Picture,
    Recording,
    Scene,
    Script,
    ToggledScene,
)
from irviz.explorer.viewer.widget import PANES
from irviz.explorer.viewer_traits import details, moved, viewer_data
from irviz.ir.module_functions import drawable_functions
from irviz.model.runs.trace import NodeValue
from irviz.transforms.stage import Stage
from irviz.view.values.chart_kinds import HISTOGRAM, draw_chart, fitting_charts

Value = TypeVar("Value")
_MOST_SCENES = 400
"""The most pictures; those of the current function come first."""
_MOST_TOGGLED_NODES = 4_000
"""The most nodes in all pictures with something expanded or collapsed: some seconds, and three
quarters of a megabyte."""
_MOST_NUMPY_FUNCTIONS = 1_000
"""The most functions translated to NumPy: some seconds, and a tenth of a megabyte."""
_MOST_OF_CHARTS = 1_000_000
"""The most characters in all pictures of values, apart from histograms."""


class _Charts:
    """Pictures of the values in a file, each drawn once, while there is room."""

    def __init__(self) -> None:
        self._room = _MOST_OF_CHARTS
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


def record_in_steps(state: State) -> Generator[str, None, Recording]:
    """Return the stages, pictures, comparisons with the stage before, texts, and values.

    Every stage is recorded with each of its functions, alone and next to its parent; values are
    those already recorded, and nothing is run. The recording starts in the given state. Progress
    messages are yielded, so that other work can be done in between.
    """
    start = replace(state, has_script=True, selection=Selection(), search="", tab="Node")
    for counts in iter_change_counts(start):
        yield "counting changes"
        start = replace(start, changes={**start.changes, **counts})
    start = replace(start, message=None, question=None, jobs=Jobs(), clipboard=Clipboard())
    scenes: dict[str, Scene] = {}
    charts = _Charts()
    shown_states: list[State] = []
    found: list[Details] = []
    count = len(state.session.stages)
    for shown in [start, *_states(start)]:
        yield f"stage {shown.stage_id} of {count}, {shown.function}"
        scene = scene_data(shown)
        if scene["key"] in scenes:
            continue
        scenes[scene["key"]] = scene
        found += _details(shown, charts, scenes)
        shown_states.append(shown)
        if len(scenes) >= _MOST_SCENES:
            break
    toggled, more = yield from _toggled(shown_states, charts)
    traits = {
        **viewer_data(start),
        "blockLines": _block_lines(shown_states),
        "panes": list(PANES),
        "height": 0,
        "still": "",
        "tabs": [],
        "forms": {},
        "canUndo": False,
        "canRedo": False,
    }
    return {
        "traits": traits,
        "scenes": list(scenes.values()),
        "toggled": toggled,
        "scripts": (yield from _scripts(start)),
        "details": [*found, *more],
    }


def _scripts(state: State) -> Generator[str, None, list[Script]]:
    """Return the texts of all stages, with the passes that last changed their lines.

    As many functions as there is room for are translated to NumPy.
    """
    found: dict[str, Script] = {}
    stages = state.session.stages
    room = _MOST_NUMPY_FUNCTIONS
    for stage in sorted(stages, key=lambda one: one.id != state.stage_id):
        yield f"text of stage {stage.id}"
        room -= len(stage.module.functions)
        script = script_data(stage, room >= 0)
        if room < 0:
            script = {**script, "numpy": unwritten("The NumPy of this stage is not in the file.")}
        found[stage.id] = {**script, "blame": blamed_lines(state, stage)}
    return [found[stage.id] for stage in stages]


def _block_lines(states: Iterable[State]) -> BlockLines:
    """Return the lines of all PrimFuncs that are shown."""
    found: BlockLines = {}
    for state in states:
        lines = block_lines_of(state.stage, state.function)
        if lines:
            found.setdefault(state.stage_id, {})[state.function] = lines
    return found


def last(steps: Generator[str, None, Value]) -> Value:
    """Take all steps, and return the final result."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _states(state: State) -> Iterator[State]:
    """Return a state for each function of each stage, alone and next to its parent."""
    stages = state.session.stages
    by_stage = {stage.id: list(drawable_functions(stage.module)) for stage in stages}
    every = dict.fromkeys([state.function, *(one for names in by_stage.values() for one in names)])
    for function in every:
        for stage in stages:
            if function in by_stage[stage.id]:
                yield from _pair(state, stage, function)


def _pair(state: State, stage: Stage, function: str) -> Iterator[State]:
    alone = replace(state, wanted_function=function, reference="")
    alone = reduce(alone, actions.Checkout(stage.id))
    if alone.function != function:
        return
    yield alone
    if stage.parent is not None:
        yield reduce(alone, actions.Compare(stage.parent))


def _toggled(
    states: Sequence[State], charts: _Charts
) -> Generator[str, None, tuple[list[ToggledScene], list[Details]]]:
    """Return the scenes with one container expanded, then those with one collapsed, with details.

    Earlier states come first, while there is room.
    """
    toggled: list[ToggledScene] = []
    found: list[Details] = []
    room = _MOST_TOGGLED_NODES
    for state, container in (
        *((one, each) for one in states for each in _containers(one, "openable")),
        *((one, each) for one in states for each in _containers(one, "closable")),
    ):
        yield "groups"
        after = reduce(state, actions.Toggle(container))
        before, scene = scene_data(state), scene_data(after)
        if scene is before:  # only the stage before has it
            continue
        pictures = (scene["current"], scene["reference"])
        room -= sum(len(one["nodes"]) for one in pictures if one is not None)
        if room < 0:
            break
        toggled.append({"container": container, "scene": {**scene, "moved": moved(after, state)}})
        found += _details(after, charts, {}, before)
    return toggled, found


def _containers(state: State, kind: Literal["openable", "closable"]) -> list[str]:
    view = view_or_none(state, "current")
    return [] if view is None else sorted(getattr(view, kind))


def _details(
    state: State, charts: _Charts, known: Mapping[str, Scene], before: Scene | None = None
) -> list[Details]:
    """Return the details of each node of the pictures, and those for no selection.

    A comparison only has details that are missing in the scenes of its single stages (`known`); a
    scene with something expanded only has those missing in the scene `before`.
    """
    scene = scene_data(state)
    sides: tuple[tuple[Side, Picture | None], ...]
    sides = (("current", scene["current"]), ("reference", scene["reference"]))
    found: list[Details] = []
    for side, picture in sides:
        if picture is None:
            continue
        alone = known.get(f"{state.function}/{picture['stage']}/") if state.reference else None
        there = set[str]() if alone is None else {"", *(alone["current"] or picture)["nodes"]}
        if before is not None:
            there |= {"", *(before[side] or picture)["nodes"]}
        lacking = [node for node in ("", *picture["nodes"]) if node not in there]
        shown = (
            replace(state, selection=Selection(node, state.function, side)) for node in lacking
        )
        found += [details(one, charts.of) for one in shown]
    return found
