"""What can be done in the explorer: each action is a value, sent to the store by whoever acts.

The fields of an action and their types are its schema: `viewer.schema` reads by it what the
page sends.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from irviz.explorer.downloads import Saved
from irviz.explorer.state import CheckName, File, Side
from irviz.model.graph.graph import NodeId
from irviz.runtime.inputs.argument_lists import Inputs
from irviz.session.run_overlays import OverlayKind
from irviz.session.session import Session
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.transform import Transform
from irviz.view.figure import Figure
from irviz.view.graph.graph_figure import GraphFigure


class Action:
    """Base of all actions."""


# --- stages ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Checkout(Action):
    """Make another stage the current one."""

    stage: str


@dataclass(frozen=True)
class Apply(Action):
    """Apply a transform, which is also what a session file and a script write of a stage."""

    transform: Transform


@dataclass(frozen=True)
class TryTransform(Action):
    """Find out what a transform would do to the current stage."""

    transform: Transform


@dataclass(frozen=True)
class ForgetPreview(Action):
    """Show no longer what a transform would do."""


@dataclass(frozen=True)
class ReplaySchedule(Action):
    """Make these the steps of a PrimFunc's schedule, up to the current stage."""

    function: str
    steps: tuple[ScheduleStep, ...]


@dataclass(frozen=True)
class ReplayBranch(Action):
    """Apply what led to the current stage to another stage."""

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
    """Undo the last change of the stages."""


@dataclass(frozen=True)
class Redo(Action):
    """Redo what was undone last."""


@dataclass(frozen=True)
class OpenFile(Action):
    """Open a file as another first stage."""

    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class SetSession(Action):
    """Show another session."""

    session: Session


@dataclass(frozen=True)
class SetInputs(Action):
    """Call functions with other inputs, made with a seed, and sizes that no array determines."""

    inputs: Inputs
    seed: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)


LimitName = Literal["isolate", "seconds", "memory", "device", "build"]


@dataclass(frozen=True)
class SetLimit(Action):
    """Set where stages run, or what a run may take: a field of the session's RunConfig."""

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
    "measures_steps",
    "prim_func",
    "runs_new_stages",
    "search",
    "step_sizes",
    "tab",
]


@dataclass(frozen=True)
class Look(Action):
    """Do what changes the picture, when the new one is drawn."""

    wanted: Action


@dataclass(frozen=True)
class Show(Action):
    """Do what was asked for, the pictures of which are drawn now."""

    wanted: tuple[Action, ...]


@dataclass(frozen=True)
class SetField(Action):
    """Set a field of the state that nothing else follows from."""

    name: FieldName
    value: Any


@dataclass(frozen=True)
class Focus(Action):
    """Look at another function."""

    function: str


@dataclass(frozen=True)
class Select(Action):
    """Select a node in one of the pictures, "" for none."""

    node: str
    side: Side = "current"


@dataclass(frozen=True)
class Toggle(Action):
    """Open what is closed in one of the pictures, or close what is open."""

    container: str
    side: Side = "current"


@dataclass(frozen=True)
class CloseAround(Action):
    """Close what is around a node of one of the pictures."""

    node: str
    side: Side = "current"


@dataclass(frozen=True)
class ShowCopy(Action):
    """Show another copy of a repeat, counted from 0."""

    container: str
    copy: int


@dataclass(frozen=True)
class CompareCopies(Action):
    """Show the copy of a repeat that a node is in beside another one, each as a stage of its own.

    Copies are counted from 0.
    """

    node: str
    copy: int
    other: int


@dataclass(frozen=True)
class CompareLayers(Action):
    """Show two layers of the function side by side, each as a stage of its own."""

    layer: str
    other: str


@dataclass(frozen=True)
class LookAround(Action):
    """Look at what is at most `steps` uses away from a node, or between it and `to`.

    Without a node it is the whole function.
    """

    node: str = ""
    steps: int = 1
    to: str = ""


@dataclass(frozen=True)
class Reveal(Action):
    """Go to a node of a function, opening what hides it, and select it.

    Without a node it is the function, and without a stage the shown one.
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
    """Colour nodes by what a run did, "" for nothing."""

    kind: OverlayKind | Literal[""]


@dataclass(frozen=True)
class ShowFirstDifference(Action):
    """Go to the first node whose value differs, with all before it drawn pale; or stop that."""


@dataclass(frozen=True)
class Say(Action):
    """Say something in the status bar."""

    words: str
    is_error: bool = False


# --- jobs, which effects start and report ------------------------------------------------------


@dataclass(frozen=True)
class Run(Action):
    """Run stages that were not run, and those that they are compared with.

    Without `stages` it is the current one; that is run once more with `again`.
    """

    stages: tuple[str, ...] = ()
    again: bool = False


@dataclass(frozen=True)
class RecordValues(Action):
    """Record the values at every node of the current stage."""


@dataclass(frozen=True)
class Measure(Action):
    """Measure the current stage in turn with those that it is compared with, or every stage."""

    every: bool = False


@dataclass(frozen=True)
class MeasureSteps(Action):
    """Measure the steps of the schedule: the last of them with a few others, or every one."""

    every: bool = False


@dataclass(frozen=True)
class FindPass(Action):
    """Find the pass up to the current stage that first makes a check fail, and go to it."""

    check: CheckName


@dataclass(frozen=True)
class FetchValue(Action):
    """Run once more for the whole value of the selected node."""


@dataclass(frozen=True)
class Ask(Action):
    """Ask whether code of files may be run, which `then` needs."""

    then: Action
    files: frozenset[str]


@dataclass(frozen=True)
class Trust(Action):
    """Let code of files be run from now on, and do what needed it."""

    then: Action
    files: frozenset[str]


@dataclass(frozen=True)
class Answer(Action):
    """Answer whether code of files may be run."""

    is_allowed: bool


@dataclass(frozen=True)
class Distrust(Action):
    """Leave what needs code of a file undone."""


@dataclass(frozen=True)
class Cancel(Action):
    """Cancel what is being done and what waits."""


@dataclass(frozen=True)
class Report(Action):
    """Report what a job returned, or the exception that it raised; `state` has the keys of jobs."""

    key: Hashable
    answer: object = field(repr=False)


# --- files, which effects make and the browser saves ---------------------------------------------


@dataclass(frozen=True)
class Save(Action):
    """Give the browser a file of what is shown."""

    wanted: Saved


@dataclass(frozen=True)
class SaveDrawing(Action):
    """Give the browser a picture that is shown, under a name whose suffix is the format."""

    drawing: Figure | GraphFigure
    name: str


@dataclass(frozen=True)
class CopyScript(Action):
    """Copy a script that makes the current stage."""


@dataclass(frozen=True)
class Made(Action):
    """Give the browser a file that was made."""

    file: File


@dataclass(frozen=True)
class Copied(Action):
    """Put a text on the clipboard of the page."""

    text: str
