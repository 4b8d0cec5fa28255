"""The actions of the explorer: values that panels, the page and jobs send to the store.

The fields of an action and their types are its schema, by which `viewer.schema` reads messages of
the page.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal

import msgspec

from irviz.explorer.downloads import Saved
from irviz.explorer.state import CheckName, Side, State
from irviz.model.graph.graph import NodeId
from irviz.runtime.call_inputs import Inputs
from irviz.session.run_overlays import OverlayKind
from irviz.session.session import Session
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.stage import Transform
from irviz.view.figure import Figure
from irviz.view.graph.graph_figure import GraphFigure


class Action(
    msgspec.Struct,
    frozen=True,
    tag_field="action",
    tag=True,
    rename="camel",
    forbid_unknown_fields=True,
):
    """Base of all actions; as messages of the page they have their name as `action`."""


# --- stages ------------------------------------------------------------------------------------


class Checkout(Action, frozen=True):
    """Make another stage the current one, compared with `reference`, "" for no other.

    By default what is compared with stays.
    """

    stage: str
    reference: str | None = None


class Apply(Action, frozen=True):
    """Apply a transform, which is also what session files and scripts record of the stage."""

    transform: Transform


class Changed(Action, frozen=True, eq=False):
    """Take the result of an action, `wanted` in a stage, that transformed or opened a module.

    The `result` is the session after it, or why there is none.
    """

    wanted: Action
    before: Session
    result: Session | Exception
    stage: str


class TryTransform(Action, frozen=True):
    """Find out what a transform would do to the current stage."""

    transform: Transform


class ChooseLoop(Action, frozen=True):
    """Choose a loop or block of the shown PrimFunc for a step, "" for none.

    It is chosen alone, or else added to those chosen before, or taken out again.
    """

    loop: str
    adds: bool = False


class DoStep(Action, frozen=True):
    """Apply a step that is offered for the chosen loops and blocks.

    Attributes:
        primitive: The name of the primitive.
        target: What it is done with, in the words of the offer.
        values: The values of the offer's fields, as texts; "" for none.
    """

    primitive: str
    target: str
    values: list[str]


class ReplaySchedule(Action, frozen=True):
    """Make these the steps of a PrimFunc's schedule, up to the current stage."""

    function: str
    steps: tuple[ScheduleStep, ...]


class ReplayBranch(Action, frozen=True):
    """Apply the transforms that led to the current stage to another stage."""

    stage: str


class Rename(Action, frozen=True):
    """Give a stage another label."""

    stage: str
    label: str


class Drop(Action, frozen=True):
    """Drop a stage and all that were made from it."""

    stage: str


class Undo(Action, frozen=True):
    """Undo the last change to the stages."""


class Redo(Action, frozen=True):
    """Redo the last undone change."""


class OpenFile(Action, frozen=True):
    """Open a file as another root stage."""

    name: str
    content: bytes


class SetSession(Action, frozen=True):
    """Show another session."""

    session: Session


class SetInputs(Action, frozen=True):
    """Set the inputs, the seed of random ones, and the sizes that no array determines."""

    inputs: Inputs
    seed: int = 0
    sizes: Mapping[str, int] = msgspec.field(default_factory=dict)


LimitName = Literal["isolate", "seconds", "memory", "device", "build"]


class SetLimit(Action, frozen=True):
    """Set where stages run or a limit of runs: a field of the session's RunConfig."""

    name: LimitName
    value: bool | float | int | str | None


# --- what is looked at -------------------------------------------------------------------------


FieldName = Literal[
    "case",
    "has_blame",
    "has_numpy",
    "has_script",
    "is_dark",
    "drawing",
    "file",
    "jobs",
    "making",
    "applying",
    "measures_steps",
    "preview",
    "prim_func",
    "question",
    "runs_new_stages",
    "search",
    "step_sizes",
    "tab",
]


class Look(Action, frozen=True):
    """Perform an action that changes the picture, once the new one has been drawn."""

    wanted: Action


class Show(Action, frozen=True, eq=False):
    """Perform the actions that the state `before` has in `asked`: their pictures are drawn."""

    before: State
    after: State


class SetField(Action, frozen=True):
    """Set a field of the state on which nothing else depends."""

    name: FieldName
    value: Any


class Focus(Action, frozen=True):
    """Show another function."""

    function: str


class Select(Action, frozen=True):
    """Select a node in one of the pictures, "" for none."""

    node: str
    side: Side = "current"


class Write(Action, frozen=True):
    """Do at once all that the page wrote in one message."""

    written: tuple[SetField | Select, ...]


class Toggle(Action, frozen=True):
    """Expand a collapsed container in one of the pictures, or collapse an expanded one."""

    container: str
    side: Side = "current"


class ToggleAll(Action, frozen=True):
    """Expand all groups of the pictures, outer ones first while there is room; or collapse all."""

    opens: bool


class ShowCopy(Action, frozen=True):
    """Show another copy of a repeat, counted from 0."""

    container: str
    copy: int


class CompareCopies(Action, frozen=True):
    """Show the copy of a repeat that a node is in next to another copy, as separate stages.

    Copies are counted from 0.
    """

    node: str
    copy: int
    other: int


class CompareLayers(Action, frozen=True):
    """Show two layers of the function side by side, as separate stages."""

    layer: str
    other: str


class LookAround(Action, frozen=True):
    """Show what is at most `steps` uses away from a node, or between it and `to`.

    Without a node, show the whole function.
    """

    node: str = ""
    steps: int = 1
    to: str = ""


class Reveal(Action, frozen=True):
    """Go to a node of a function, expanding the containers around it, and select it.

    Without a node, go to the function; without a stage, stay in the current one.
    """

    function: str
    node: NodeId
    stage: str = ""


class Compare(Action, frozen=True):
    """Compare the current stage with another one, "" for none."""

    reference: str


class ColourBy(Action, frozen=True):
    """Colour nodes by a quantity of a run, "" for none."""

    kind: OverlayKind | Literal[""]


class ShowFirstDifference(Action, frozen=True):
    """Go to the first node whose value differs and dim everything before it; or stop dimming."""


class Say(Action, frozen=True):
    """Show a message in the status bar."""

    words: str
    is_error: bool = False


# --- jobs, which effects start and report ------------------------------------------------------


class Run(Action, frozen=True):
    """Run stages that have no run, and those that they are compared with.

    By default, that is the current stage, which `again` runs once more.
    """

    stages: tuple[str, ...] = ()
    again: bool = False


class RecordValues(Action, frozen=True):
    """Record the values at every node of the current stage."""


class Measure(Action, frozen=True):
    """Time the current stage alternately with those that it is compared with, or all stages."""

    every: bool = False


class MeasureSteps(Action, frozen=True):
    """Time the steps of the schedule: the last one and a few others, or all of them."""

    every: bool = False


class FindPass(Action, frozen=True):
    """Find the first pass, up to the current stage, that makes a check fail, and go to it."""

    check: CheckName


class FetchValue(Action, frozen=True):
    """Run again to get the full value of the selected node."""


class Trust(Action, frozen=True):
    """Allow code of files to be run from now on, and perform the action that needed it."""

    then: Action
    files: frozenset[str]


class Answer(Action, frozen=True):
    """Answer whether code of files may be run."""

    is_allowed: bool


class Cancel(Action, frozen=True):
    """Cancel running and waiting jobs."""


class Report(Action, frozen=True):
    """Report a job's result or exception; `state` defines the keys of jobs."""

    key: Hashable
    answer: object


# --- files, which effects make and the browser saves ---------------------------------------------


class Save(Action, frozen=True):
    """Send the browser a file of what is shown."""

    wanted: Saved


class SaveDrawing(Action, frozen=True):
    """Send the browser a shown picture; the suffix of the name is the format."""

    drawing: Figure | GraphFigure
    name: str


class CopyScript(Action, frozen=True):
    """Copy a script that recreates the current stage."""


class Copied(Action, frozen=True):
    """Put a text on the page's clipboard."""

    text: str
