"""What the explorer shows and what the reader has chosen, as one immutable value."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any, Concatenate, Generic, Literal, NamedTuple, ParamSpec, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from irviz.explorer.background_runner import Jobs, was_cancelled
from irviz.ir.module_functions import function_named, relax_functions
from irviz.model.graph.graph import NodeId
from irviz.model.runs.execution_trace import Array, NodeValue, Trace
from irviz.model.runs.run_result import RunResult
from irviz.runtime.call_inputs import Inputs
from irviz.session.bisect import Bisection
from irviz.session.measure_schedule import ScheduleStages, ScheduleTimes
from irviz.session.run_overlays import OverlayKind
from irviz.session.run_stages import DivergenceReport
from irviz.session.session import Session
from irviz.session.shown_function import ViewState
from irviz.transforms.kernels.candidates import Candidate
from irviz.transforms.schedules.legal_steps import StepOffer
from irviz.transforms.stage import Stage, Transform
from irviz.view.run_result_html import TimingTable

Side = Literal["current", "reference"]
"""One of the two pictures: that of the current stage, or of the one that it is compared with."""

CheckName = Literal["values", "time", "memory"]
"""What of a stage must be as in the first one."""

P = ParamSpec("P")
Value = TypeVar("Value")

FIRST = "0"
"""The id of the stage that others are compared with where no other one is chosen."""

_TYPES = {
    ".svg": "image/svg+xml",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".html": "text/html",
    ".py": "text/x-python",
    ".zip": "application/zip",
}
_MOST_TRACES = 8
"""How many stages' values are kept, each in up to its budget of memory."""
_WHOLE = ViewState()


class RunKey(NamedTuple):
    """Identifies the run of a stage; it is traced where a `case` is given."""

    function: str
    stage: str
    case: int | None
    epoch: int


class CallKey(NamedTuple):
    """Identifies a call in a stage, whose callee can be replaced."""

    stage: Stage
    function: str
    node: NodeId


class ComparisonKey(NamedTuple):
    """Identifies the comparison of two traces."""

    function: str
    traces: tuple[Trace, Trace]


class TimingKey(NamedTuple):
    """Identifies a measurement of stages."""

    function: str
    stages: tuple[str, ...]
    epoch: int


class BisectionKey(NamedTuple):
    """Identifies the search for a pass up to a stage."""

    function: str
    stage: str
    check: CheckName
    epoch: int


class ChangesKey(NamedTuple):
    """Identifies the counts of what stages changed."""


class FunctionsKey(NamedTuple):
    """Identifies the comparison of all functions of two stages."""

    before: Stage
    after: Stage


class StepsKey(NamedTuple):
    """Identifies a measurement of a schedule's steps, of which `stage` is the last."""

    function: str
    stage: str
    sizes: tuple[tuple[str, int], ...]
    every: bool


class LoopChoice(NamedTuple):
    """Loops and blocks that were chosen for a step: their ids in a PrimFunc, in order.

    It identifies the trials of the steps that take them.
    """

    stage: Stage
    function: str
    ids: tuple[str, ...]


class TrialsKey(NamedTuple):
    """Identifies the trials of the passes that are suggested for a function of a stage."""

    stage: Stage
    function: str


@dataclass(frozen=True, eq=False)
class PreviewKey:
    """Identifies one try of a transform on a stage."""

    stage: Stage
    function: str
    transform: Transform


class Preview(NamedTuple):
    """What a transform would do to a stage: words, and the nodes that it would change."""

    words: str
    is_error: bool = False
    nodes: tuple[NodeId, ...] = ()


class ValueKey(NamedTuple):
    """Identifies the run for the whole value of a node."""

    function: str
    stage: str
    node: NodeId
    case: int
    value: NodeValue


class Selection(NamedTuple):
    """The one node that is selected: in which function, and in the picture of which side."""

    node: str = ""
    function: str = ""
    side: Side = "current"


class Message(NamedTuple):
    """Words for the status bar."""

    words: str
    is_error: bool = False


class Failure(NamedTuple):
    """An action that was refused, and why; the state is as it was before."""

    action: object
    error: Exception


@dataclass(frozen=True, eq=False)
class Question:
    """Whether code of files may be run, which an action needs."""

    action: object
    files: frozenset[str]


class Clipboard(NamedTuple):
    """A text for the clipboard; `serial` changes with each."""

    text: str = ""
    serial: int = 0


@dataclass(frozen=True, eq=False)
class File:
    """A file for the browser to save: its name and content."""

    name: str
    content: bytes = field(repr=False)

    @property
    def media_type(self) -> str:
        """What the suffix of the name tells."""
        return _TYPES.get(Path(self.name).suffix, "application/octet-stream")


class Making(NamedTuple):
    """A file that is being made, and how far it is, in words; "" where that is not known."""

    name: str
    progress: str = ""


class Inquiry(NamedTuple):
    """Traces that are being recorded for the reader, that of the current stage first.

    `goes_there` says whether to go to the first difference.
    """

    stages: tuple[str, ...]
    case: int
    compares: bool = False
    goes_there: bool = False


@dataclass(frozen=True, eq=False)
class Runs:
    """What the runs of one function's stages gave, by the stages' ids.

    `errors` says why a stage could not be run, `untraced` why its values could not be recorded.
    Traces are in the order in which their stages were looked at.
    """

    results: Mapping[str, RunResult] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    traces: Mapping[str, Trace] = field(default_factory=dict)
    untraced: Mapping[str, str] = field(default_factory=dict)

    def add(self, stage: str, case: int | None, answer: object) -> Runs:
        """Add the answer of a run, a result or an exception; a cancelled run changes no result."""
        if isinstance(answer, RunResult):
            traces, untraced = self.traces, self.untraced
            if answer.trace is not None:
                latest = {**_without(traces, stage), stage: answer.trace}.items()
                traces = dict([*latest][-_MOST_TRACES:])
                untraced = _without(untraced, stage)
            results = {**self.results, stage: replace(answer, trace=None)}
            return Runs(results, _without(self.errors, stage), traces, untraced)
        why = "it was cancelled" if was_cancelled(answer) else str(answer) or type(answer).__name__
        found = self
        if case is not None:
            found = replace(found, untraced={**found.untraced, stage: why})
        if was_cancelled(answer):
            return found
        # what can be run but not traced has not failed, and neither has what has no trace
        if case is None or (stage not in self.results and not isinstance(answer, ValueError)):
            results = _without(found.results, stage)  # what it gives now is not known
            found = replace(found, results=results, errors={**found.errors, stage: why})
        return found

    def touch(self, stages: tuple[str, ...]) -> Runs:
        """Put the traces of these stages behind the others, which are dropped before them."""
        touched = {one: self.traces[one] for one in stages if one in self.traces}
        traces = {**_without(self.traces, *touched), **touched}
        return replace(self, traces=traces, untraced=_without(self.untraced, *stages))

    def has_trace(self, stage: str, case: int | None = None) -> bool:
        """Tell whether the values of a stage are known, for this input or for any."""
        trace = self.traces.get(stage)
        return trace is not None and case in (None, trace.case)


_NO_RUNS = Runs()


@dataclass(frozen=True, eq=False)
class State:
    """All that more than one part of the explorer shows or acts on.

    Attributes:
        session: The stages, which of them is current, and how they are called and run.
        given: The inputs and labels that the reader brought, which can be chosen again.
        wanted_function: The function that the reader chose; a stage of another first module
            shows another.
        views: How each function is looked at, by its name, in all stages and in comparisons. What
            is chosen for containers that a picture lacks applies to the pictures that have them.
        anchor: What was opened or closed last, which stays in its place on the page.
        reference: The id of the stage in the second picture, "" for none.
        is_dimmed: Whether what is equal before the first difference is drawn pale.
        case: The number of the input that is looked at.
        epoch: Counts how often stages were given other inputs: earlier runs are of no use.
        inquiry: What is being recorded for the reader, None for nothing.
        compared: The last two traces that were compared, and how they differ or why that is not
            known.
        jobs: What is being done beside the kernel.
        timing: The last measurement of stages, or why there is none.
        bisection: Which pass first makes a check fail, as it was asked for last; or why that is not
            known, "" where it was not asked for.
        prim_func: The PrimFunc whose schedule is looked at; a stage without it shows another.
        step_offers: The steps that were tried last, each legal or with the reason against it.
        step_sizes: The symbolic sizes that steps are measured with, by name.
        steps: The steps that are to be measured next.
        candidates: Possible replacements for the selected call's callee, as far as known.
        fetched: A value that was too large to keep, with its tensors.
        preview: What the transform that was tried last would do, None for nothing.
        trials: What the suggested passes would change, by name, as far as they were tried.
        changes: How many nodes differ from the parent's, by stage and function, as far as that was
            counted; -1 where it cannot be.
        function_changes: What became of each function between two stages, where that was asked for.
        file: The file that the browser was given last, None for none.
        applying: What is being applied or opened, "" for nothing.
        asked: The actions that will be performed once their pictures are drawn.
        drawing: The stage whose drawing takes long enough to be reported, "" for none.
        question: What the reader is asked before code of a file is run, None for nothing.
        failure: The action that was refused last, until another one is done.
        has_numpy: Whether the functions are shown as NumPy beside the TVMScript.
        has_blame: Whether the pass that changed each line last is shown beside it.
    """

    session: Session
    given: tuple[Inputs, NDArray[np.int64] | None] = (None, None)
    wanted_function: str = ""
    views: Mapping[str, ViewState] = field(default_factory=dict)
    anchor: str = ""
    selection: Selection = field(default_factory=Selection)
    reference: str = ""
    colour_by: OverlayKind | None = None
    is_dimmed: bool = False
    search: str = ""
    case: int = 0
    runs_new_stages: bool = True
    runs: Mapping[str, Runs] = field(default_factory=dict)
    epoch: int = 0
    inquiry: Inquiry | None = None
    compared: tuple[tuple[Trace, Trace], DivergenceReport | BaseException] | None = None
    jobs: Jobs = field(default_factory=Jobs)
    timing: TimingTable | str = ""
    bisection: Bisection | str = ""
    prim_func: str = ""
    chosen_loops: LoopChoice | None = None
    step_offers: tuple[LoopChoice, tuple[StepOffer, ...]] | None = None
    measures_steps: bool = True
    step_sizes: Mapping[str, int] = field(default_factory=dict)
    steps: ScheduleStages | None = None
    step_times: ScheduleTimes = field(default_factory=ScheduleTimes)
    candidates: tuple[CallKey, tuple[Candidate, ...]] | None = None
    fetched: tuple[NodeValue, tuple[Array, ...]] | None = None
    preview: Preview | None = None
    trials: tuple[TrialsKey, Mapping[str, str]] | None = None
    changes: Mapping[tuple[Stage, str], int] = field(default_factory=dict)
    function_changes: Mapping[FunctionsKey, Mapping[str, tuple[str, int]]] = field(
        default_factory=dict
    )
    clipboard: Clipboard = field(default_factory=Clipboard)
    file: File | None = None
    making: Making | None = None
    applying: str = ""
    asked: tuple[object, ...] = ()
    drawing: str = ""
    message: Message | None = None
    failure: Failure | None = None
    question: Question | None = None
    is_dark: bool = False
    tab: str = "Node"
    has_script: bool = False
    has_numpy: bool = False
    has_blame: bool = False

    @classmethod
    def of(cls, session: Session) -> State:
        """Return the state that an explorer of a session begins with."""
        names = session.functions  # nobody has asked for one that the first stage to show lacks
        name = session.function if session.function in names else next(iter(names), "")
        shown = session.select_available_function(name)
        given = session.call_inputs.inputs, session.call_inputs.labels
        return cls(shown, given=given, wanted_function=session.function)

    @property
    def function(self) -> str:
        """The name of the function that is looked at."""
        return self.session.function

    @property
    def stage(self) -> Stage:
        """The current stage."""
        return self.session.current

    @property
    def stage_id(self) -> str:
        """The id of the current stage."""
        return self.session.current_id

    @property
    def pair(self) -> tuple[str, str]:
        """The ids of the current stage and of the one that its values are compared with."""
        return self.stage_id, self.reference or FIRST

    @property
    def view(self) -> ViewState:
        """How the function is looked at."""
        return self.views.get(self.function, _WHOLE)

    @property
    def function_runs(self) -> Runs:
        """What the runs of the function gave."""
        return self.runs.get(self.function, _NO_RUNS)

    @property
    def traces(self) -> tuple[Trace, Trace] | None:
        """The traces of the pair, None where they are not both known for the same input."""
        known = self.function_runs.traces
        if not set(self.pair) <= known.keys():
            return None
        first, second = (known[one] for one in self.pair)
        return (first, second) if first.case == second.case else None

    @property
    def comparison(self) -> DivergenceReport | BaseException | None:
        """What comparing the traces of the pair gave, None where they were not compared."""
        compared = self.compared
        return compared[1] if compared is not None and compared[0] == self.traces else None

    @property
    def divergence(self) -> DivergenceReport | None:
        """How the traces of the pair differ, None where that is not known."""
        found = self.comparison
        return found if isinstance(found, DivergenceReport) else None

    def stage_of(self, side: Side) -> Stage | None:
        """Return the stage of one of the two pictures, None where there is no second one."""
        if side == "current":
            return self.stage
        return self.session.stage(self.reference) if self.reference else None

    def can_record(self, stage_id: str) -> bool:
        """Tell whether a stage has values to record: a PrimFunc has none but its buffers."""
        stage = self.session.stage(stage_id)
        return not stage.error and self.function in relax_functions(stage.module)

    def has_function(self, stage_id: str) -> bool:
        """Tell whether a stage has the function that is looked at."""
        return function_named(self.session.stage(stage_id).module, self.function) is not None

    def is_run_by(self, stage_id: str, keys: Iterable[Hashable]) -> bool:
        """Tell whether one of these jobs runs a stage; `jobs` has those under way or waiting."""
        wanted = (self.function, stage_id, self.epoch)
        runs = (key for key in keys if isinstance(key, RunKey))
        return any((key.function, key.stage, key.epoch) == wanted for key in runs)


def opened_file(session: Session) -> str:
    """Return the name of the file that the first stage is from, "" for none."""
    return min((Path(file).name for file in session.stages[0].files), default="")


def _without(known: Mapping[str, Value], *names: str) -> dict[str, Value]:
    return {name: value for name, value in known.items() if name not in names}


# --- derived values ----------------------------------------------------------------------------


_KEPT = 12
"""How many results of each function are cached: two pictures, and those that keys lead to."""
_PLAIN = (str, int, float, bool, frozenset, type(None))


def unchanged(before: Sequence[object], after: Sequence[object]) -> bool:
    """Tell whether parts of a state are the same objects, or equal words and numbers."""
    return len(before) == len(after) and all(
        a is b or (isinstance(a, _PLAIN) and type(a) is type(b) and a == b)
        for a, b in zip(before, after, strict=True)
    )


class Derived(Generic[P, Value]):
    """A function of the state, with its last results cached by the `parts` that it depends on.

    The parts of a state are found once, however often the function is called with it. A thread that
    wants what another one is computing waits for that.
    """

    def __init__(
        self,
        parts: Callable[Concatenate[State, P], tuple[object, ...]],
        function: Callable[Concatenate[State, P], Value],
    ) -> None:
        update_wrapper(self, function)
        self.parts, self._function = parts, function
        self._known: tuple[tuple[ref[State], object, tuple[object, ...], Value], ...] = ()
        """The latest states with their arguments, parts and results. It is replaced as a whole, as
        several threads derive values; it keeps no state alive, which may have large traces."""
        self._computed: tuple[tuple[tuple[object, ...], threading.RLock], ...] = ()
        self._guard = threading.Lock()

    def __call__(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> Value:
        """Return the function's result."""
        given = args, kwargs
        for last, arguments, _, value in self._known:
            if last() is state and arguments == given:
                return value
        key = self.parts(state, *args, **kwargs)
        with self._turn(key):
            known = self._known
            at = _place(key, known)
            if at is None:
                value, others = self._function(state, *args, **kwargs), self._known
            else:
                value, others = known[at][-1], (*known[:at], *known[at + 1 :])
            self._known = ((ref(state), given, key, value), *others)[:_KEPT]
        return value

    def _turn(self, key: tuple[object, ...]) -> threading.RLock:
        """Return the lock that is held while the result for these parts is computed."""
        with self._guard:
            locks = (lock for one, lock in self._computed if unchanged(one, key))
            lock = next(locks, None) or threading.RLock()
            others = [each for each in self._computed if each[1] is not lock]
            self._computed = ((key, lock), *others)[:_KEPT]
            return lock

    def is_known(self, state: State, /, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Tell whether the result is cached."""
        return _place(self.parts(state, *args, **kwargs), self._known) is not None


def _place(key: tuple[object, ...], known: Sequence[tuple[Any, Any, Any, Any]]) -> int | None:
    return next((at for at, one in enumerate(known) if unchanged(one[2], key)), None)


def derived(
    parts: Callable[Concatenate[State, P], tuple[object, ...]],
) -> Callable[[Callable[Concatenate[State, P], Value]], Derived[P, Value]]:
    """Cache a function of the state by the `parts` that it depends on."""
    return partial(Derived, parts)
