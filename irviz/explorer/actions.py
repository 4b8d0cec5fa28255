"""The actions of the explorer: values that panels, the page and jobs send to the store.

The fields of an action and their types are its schema, by which `viewer.schema` reads messages of
the page.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from irviz.explorer.downloads import Saved
from irviz.explorer.state import CheckName, File, Side, State
from irviz.model.graph.graph import NodeId
from irviz.runtime.call_inputs import Inputs
from irviz.session.run_overlays import OverlayKind
from irviz.session.session import Session
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.stage import Transform
from irviz.view.figure import Figure
from irviz.view.graph.graph_figure import GraphFigure


class Action:
    """Base of all actions."""


# --- stages ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checkout(Action):
    """Make another stage the current one, compared with `reference`, "" for no other.

    By default what is compared with stays.
    """

    stage: str
    reference: str | None = None


@dataclass(frozen=True)
class Apply(Action):
    """Apply a transform, which is also what session files and scripts record of the stage."""

    transform: Transform


@dataclass(frozen=True, eq=False)
class Changed(Action):
    """Take the result of an action that transformed or opened a module.

    Attributes:
        wanted: The action.
        before: The session that it was performed on.
        result: The session after it, or why there is none.
        stage: The stage that was shown when it was asked for.
    """

    wanted: Action
    before: Session
    result: Session | Exception
    stage: str


@dataclass(frozen=True)
class TryTransform(Action):
    """Find out what a transform would do to the current stage."""

    transform: Transform


@dataclass(frozen=True)
class ForgetPreview(Action):
    """Stop showing what a transform would do."""


@dataclass(frozen=True)
class ChooseLoop(Action):
    """Choose a loop or block of the shown PrimFunc for a step, "" for none.

    It is chosen alone, or else added to those chosen before, or taken out again.
    """

    loop: str
    adds: bool = False


@dataclass(frozen=True)
class DoStep(Action):
    """Apply a step that is offered for the chosen loops and blocks.

    Attributes:
        primitive: The name of the primitive.
        target: What it is done with, in the words of the offer.
        values: The values of the offer's fields, as texts; "" for none.
    """

    primitive: str
    target: str
    values: list[str]


@dataclass(frozen=True)
class ReplaySchedule(Action):
    """Make these the steps of a PrimFunc's schedule, up to the current stage."""

    function: str
    steps: tuple[ScheduleStep, ...]


@dataclass(frozen=True)
class ReplayBranch(Action):
    """Apply the transforms that led to the current stage to another stage."""

    stage: str


@dataclass(frozen=True)
class Rename(Action):
    """Give a stage another label."""

    stage: str
    label: str


@dataclass(frozen=True)
class Drop(Action):
    """Drop a stage and all that were made from it."""

    stage: str


@dataclass(frozen=True)
class Undo(Action):
    """Undo the last change to the stages."""


@dataclass(frozen=True)
class Redo(Action):
    """Redo the last undone change."""


@dataclass(frozen=True)
class OpenFile(Action):
    """Open a file as another root stage."""

    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class SetSession(Action):
    """Show another session."""

    session: Session


@dataclass(frozen=True)
class SetInputs(Action):
    """Set the inputs, the seed of random ones, and the sizes that no array determines."""

    inputs: Inputs
    seed: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)


LimitName = Literal["isolate", "seconds", "memory", "device", "build"]


@dataclass(frozen=True)
class SetLimit(Action):
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
    "jobs",
    "making",
    "applying",
    "measures_steps",
    "prim_func",
    "runs_new_stages",
    "search",
    "step_sizes",
    "tab",
]


@dataclass(frozen=True)
class Look(Action):
    """Perform an action that changes the picture, once the new one has been drawn."""

    wanted: Action


@dataclass(frozen=True, eq=False)
class Show(Action):
    """Perform requested actions, now that their pictures have been drawn.

    Attributes:
        before: The state that they were performed on, which has them in `asked`.
        after: The state after them.
    """

    before: State
    after: State


@dataclass(frozen=True)
class SetField(Action):
    """Set a field of the state on which nothing else depends."""

    name: FieldName
    value: Any


@dataclass(frozen=True)
class Focus(Action):
    """Show another function."""

    function: str


@dataclass(frozen=True)
class Select(Action):
    """Select a node in one of the pictures, "" for none."""

    node: str
    side: Side = "current"


@dataclass(frozen=True)
class Write(Action):
    """Do at once all that the page wrote in one message."""

    written: tuple[SetField | Select, ...]


@dataclass(frozen=True)
class Toggle(Action):
    """Expand a collapsed container in one of the pictures, or collapse an expanded one."""

    container: str
    side: Side = "current"


@dataclass(frozen=True)
class ToggleAll(Action):
    """Expand all groups of the pictures, outer ones first while there is room; or collapse all."""

    opens: bool


@dataclass(frozen=True)
class ShowCopy(Action):
    """Show another copy of a repeat, counted from 0."""

    container: str
    copy: int


@dataclass(frozen=True)
class CompareCopies(Action):
    """Show the copy of a repeat that a node is in next to another copy, as separate stages.

    Copies are counted from 0.
    """

    node: str
    copy: int
    other: int


@dataclass(frozen=True)
class CompareLayers(Action):
    """Show two layers of the function side by side, as separate stages."""

    layer: str
    other: str


@dataclass(frozen=True)
class LookAround(Action):
    """Show what is at most `steps` uses away from a node, or between it and `to`.

    Without a node, show the whole function.
    """

    node: str = ""
    steps: int = 1
    to: str = ""


@dataclass(frozen=True)
class Reveal(Action):
    """Go to a node of a function, expanding the containers around it, and select it.

    Without a node, go to the function; without a stage, stay in the current one.
    """

    function: str
    node: NodeId
    stage: str = ""


@dataclass(frozen=True)
class Compare(Action):
    """Compare the current stage with another one, "" for none."""

    reference: str


@dataclass(frozen=True)
class ColourBy(Action):
    """Colour nodes by a quantity of a run, "" for none."""

    kind: OverlayKind | Literal[""]


@dataclass(frozen=True)
class ShowFirstDifference(Action):
    """Go to the first node whose value differs and dim everything before it; or stop dimming."""


@dataclass(frozen=True)
class Say(Action):
    """Show a message in the status bar."""

    words: str
    is_error: bool = False


# --- jobs, which effects start and report ------------------------------------------------------


@dataclass(frozen=True)
class Run(Action):
    """Run stages that have no run, and those that they are compared with.

    By default, that is the current stage, which `again` runs once more.
    """

    stages: tuple[str, ...] = ()
    again: bool = False


@dataclass(frozen=True)
class RecordValues(Action):
    """Record the values at every node of the current stage."""


@dataclass(frozen=True)
class Measure(Action):
    """Time the current stage alternately with those that it is compared with, or all stages."""

    every: bool = False


@dataclass(frozen=True)
class MeasureSteps(Action):
    """Time the steps of the schedule: the last one and a few others, or all of them."""

    every: bool = False


@dataclass(frozen=True)
class FindPass(Action):
    """Find the first pass, up to the current stage, that makes a check fail, and go to it."""

    check: CheckName


@dataclass(frozen=True)
class FetchValue(Action):
    """Run again to get the full value of the selected node."""


@dataclass(frozen=True)
class Ask(Action):
    """Ask whether code of files may be run, as `then` requires."""

    then: Action
    files: frozenset[str]


@dataclass(frozen=True)
class Trust(Action):
    """Allow code of files to be run from now on, and perform the action that needed it."""

    then: Action
    files: frozenset[str]


@dataclass(frozen=True)
class Answer(Action):
    """Answer whether code of files may be run."""

    is_allowed: bool


@dataclass(frozen=True)
class Cancel(Action):
    """Cancel running and waiting jobs."""


@dataclass(frozen=True)
class Report(Action):
    """Report a job's result or exception; `state` defines the keys of jobs."""

    key: Hashable
    answer: object = field(repr=False)


# --- files, which effects make and the browser saves ---------------------------------------------


@dataclass(frozen=True)
class Save(Action):
    """Send the browser a file of what is shown."""

    wanted: Saved


@dataclass(frozen=True)
class SaveDrawing(Action):
    """Send the browser a shown picture; the suffix of the name is the format."""

    drawing: Figure | GraphFigure
    name: str


@dataclass(frozen=True)
class CopyScript(Action):
    """Copy a script that recreates the current stage."""


@dataclass(frozen=True)
class Made(Action):
    """Send the browser a finished file."""

    file: File


@dataclass(frozen=True)
class Copied(Action):
    """Put a text on the page's clipboard."""

    text: str
