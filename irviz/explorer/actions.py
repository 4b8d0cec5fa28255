"""What can be done in the explorer: each action is a value, sent to the store by whoever acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from irviz.explorer.state import CallKey, Jobs, RunKey, Side
from irviz.model.graph.graph import NodeId
from irviz.model.runs.trace import NodeValue, Trace
from irviz.runtime.inputs.argument_lists import Inputs
from irviz.session.overlays import OverlayKind
from irviz.session.session import Session
from irviz.transforms.kernels.candidates import Candidate
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.stage import Transform
from irviz.view.figure import Figure
from irviz.view.graph.figure import Direction, GraphFigure
from irviz.view.theme import ThemeName


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
class ReplaySchedule(Action):
    """Let these be the steps of a PrimFunc's schedule, up to the current stage."""

    function: str
    steps: tuple[ScheduleStep, ...]


@dataclass(frozen=True)
class ReplayBranch(Action):
    """Apply what led to the current stage behind another one."""

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
    """Take the last change of the stages back."""


@dataclass(frozen=True)
class Redo(Action):
    """Make the change again that was undone last."""


@dataclass(frozen=True)
class OpenFile(Action):
    """Open what a file holds as another beginning."""

    name: str
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class SetSession(Action):
    """Show another session."""

    session: Session


@dataclass(frozen=True)
class SetInputs(Action):
    """Call functions with other inputs, made with a seed, and sizes for what no array tells."""

    inputs: Inputs
    seed: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SetLimit(Action):
    """Set where stages run, or what a run may take: a field of the session, by its name."""

    name: Literal["isolate", "seconds", "memory", "device"]
    value: bool | float | int | str | None


# --- what is looked at -------------------------------------------------------------------------


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
class LookAround(Action):
    """Look at what is at most `steps` uses away from a node, or between it and `to`."""

    node: str
    steps: int = 1
    to: str = ""


@dataclass(frozen=True)
class LookAtWhole(Action):
    """Look at the whole function."""


@dataclass(frozen=True)
class Reveal(Action):
    """Go to a node of a function, opening what hides it, and select it."""

    function: str
    node: NodeId


@dataclass(frozen=True)
class Search(Action):
    """Search nodes by words."""

    words: str


@dataclass(frozen=True)
class Compare(Action):
    """Compare the current stage with another one, "" for none."""

    reference: str


@dataclass(frozen=True)
class ColourBy(Action):
    """Colour nodes by what a run did, or by nothing."""

    kind: OverlayKind | None


@dataclass(frozen=True)
class ShowFirstDifference(Action):
    """Go to the first node whose value differs, with all before it drawn pale; or stop that."""


@dataclass(frozen=True)
class SetDark(Action):
    """Follow the page's colours."""

    is_dark: bool


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
class RunNewStages(Action):
    """Run each new stage from now on, or stop that."""

    is_on: bool


@dataclass(frozen=True)
class ShowCase(Action):
    """Look at another input, by its number."""

    case: int


@dataclass(frozen=True)
class Record(Action):
    """Record the values at every node of the current stage."""


@dataclass(frozen=True)
class Measure(Action):
    """Measure the current stage in turn with those that it is compared with, or every stage."""

    every: bool = False


@dataclass(frozen=True)
class ChoosePrimFunc(Action):
    """Look at the schedule of another PrimFunc."""

    name: str


@dataclass(frozen=True)
class MeasureEachStep(Action):
    """Measure each step of a schedule from now on, or stop that."""

    is_on: bool


@dataclass(frozen=True)
class SetStepSizes(Action):
    """Measure steps with these symbolic sizes, by name."""

    sizes: Mapping[str, int]


@dataclass(frozen=True)
class MeasureSteps(Action):
    """Measure the steps of the schedule: the last of them with a few others, or every one."""

    every: bool = False


@dataclass(frozen=True)
class FetchValue(Action):
    """Run once more for the whole value of the selected node."""


@dataclass(frozen=True)
class Cancel(Action):
    """Cancel what is being done and what waits."""


@dataclass(frozen=True)
class JobsChanged(Action):
    """Report what is being done."""

    jobs: Jobs


@dataclass(frozen=True)
class RunFinished(Action):
    """Report the result of a run, or the exception that it ended with."""

    key: RunKey
    answer: object = field(repr=False)


@dataclass(frozen=True)
class TracesCompared(Action):
    """Report how two traces differ, or the exception that the comparison ended with."""

    traces: tuple[Trace, Trace]
    answer: object


@dataclass(frozen=True)
class Measured(Action):
    """Report a measurement of stages, or the exception that it ended with."""

    function: str
    epoch: int
    answer: object


@dataclass(frozen=True)
class StepsMeasured(Action):
    """Report a measurement of a schedule's steps, or the exception that it ended with."""

    answer: object


@dataclass(frozen=True)
class ValueFetched(Action):
    """Report the tensors of a value, or the exception that the run for them ended with."""

    value: NodeValue
    answer: object


@dataclass(frozen=True)
class CandidatesFound(Action):
    """Report what could be called in the place of a call, as far as it was tried."""

    call: CallKey
    found: tuple[Candidate, ...]


# --- files, which effects write ----------------------------------------------------------------


@dataclass(frozen=True)
class SaveStage(Action):
    """Save the picture of the current stage."""

    path: str
    theme: ThemeName
    direction: Direction


@dataclass(frozen=True)
class SaveDrawing(Action):
    """Save a picture that is shown."""

    drawing: Figure | GraphFigure
    path: str


@dataclass(frozen=True)
class SaveSession(Action):
    """Save all stages, with or without the parameters' arrays."""

    path: str
    params: bool = True


@dataclass(frozen=True)
class SaveScript(Action):
    """Save a script that makes the current stage."""

    path: str


@dataclass(frozen=True)
class CopyScript(Action):
    """Copy a script that makes the current stage; large arrays go to a file beside `path`."""

    path: str


@dataclass(frozen=True)
class Copied(Action):
    """Put a text on the clipboard of the page."""

    text: str
