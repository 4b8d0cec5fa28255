"""Find the first pass that makes a check of a module fail.

The stages of a session are the prefixes of a pipeline. Each is built as it is, by TVM's plain
lowering, and compared with the first; `irviz.session.check_equivalence` compares values.
"""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tvm import ir
from tvm_ffi import structural_equal

from irviz.errors import CancelledRunError, InputError, RunError, StageError
from irviz.ir.module_functions import drawable_functions
from irviz.ir.parameter_values import Argument
from irviz.ir.symbolic_shapes import parameter_types
from irviz.model.runs.run_result import RunResult, Tolerance
from irviz.runtime.call_inputs import Inputs
from irviz.session.check_equivalence import INTERFACE, StageVerdict, ValueCheck, renamed
from irviz.session.session import Session
from irviz.transforms.passes.pass_transform import as_transform, leaf_passes
from irviz.transforms.stage import Stage
from irviz.units import format_bytes
from irviz.view.module_diff import Diff
from irviz.view.run_result_html import ErrorTable, ErrorTableRow
from irviz.worker.supervisor import RUNS, TRIES

Check = Literal["values", "time", "memory"] | Callable[[RunResult, RunResult], object]
"""What must hold between a stage and the first one: a keyword, or a function of their results."""
Progress = Callable[[int, int, str], None]
"""Gets the number of steps done, their total, which may grow, and the next step."""
_LOOK_SECONDS = 0.05
_LONG_SECONDS, _CLEAR_TIMES, _VERY_MANY_TIMES = 0.05, 1.5, 10.0
"""If three runs of this length each take clearly longer than the first stage's, measuring is
unnecessary."""
_MOST_TIMES = 1.1
"""How many times the memory or time of the first stage another stage may take."""
_JUMP = 2.0
"""If a pass enlarges the error by less than this, the error has grown over many stages."""


@dataclass(frozen=True, eq=False, repr=False)
class Bisection:
    """The first pass that makes a check fail.

    Attributes:
        session: The stages that were checked.
        stage: The stage that the pass produced, None if no stage fails.
        before: The stage that the pass was applied to; it passes the check.
        checked: The outcomes of the stages that were checked, in pipeline order.
        check: The check, with its tolerance.
        is_exhaustive: Whether every stage up to the failing one was checked. If not, `before`
            passes and `stage` fails, but an earlier stage may fail too.
        tried: The sizes and values that the stages were called with, in words.
        only_on: The values that ordinary inputs do not have, such as "NaN in x", if the stage fails
            with these alone; "" otherwise.
        arguments: The arguments that the stage fails with, by the names of the first stage's
            parameters, if it is because of values.
    """

    session: Session
    stage: Stage | None
    before: Stage | None
    checked: tuple[StageVerdict, ...]
    check: Check
    tolerance: Tolerance | None
    is_exhaustive: bool
    tried: str = ""
    only_on: str = ""
    arguments: Mapping[str, Argument] | None = None

    @property
    def words(self) -> str:
        """Why the stage fails, in words; "" if none does."""
        found = self.stage.id if self.stage else ""
        return next((one.words for one in self.checked if one.fails and one.id == found), "")

    @property
    def line(self) -> str:
        """The pass that was found and how certain that is, or that there is none, in words."""
        count = f"{len(self.checked)} of {len(self.session.lineage())} stages were checked."
        if self.stage is None or self.before is None:
            return f"It is none of the passes: {count}"
        first = f"{self.stage.label}, which made stage {self.stage.id}: {self.words}."
        if self.is_exhaustive:
            return f"{first} All stages before it hold. {count}"
        return f"{first} Stage {self.before.id} holds, and an earlier one may fail as well. {count}"

    @property
    def is_too_long(self) -> bool:
        """Whether the pass, or the run of its result, hit its time limit."""
        return "longer than" in self.words

    def diff(self) -> Diff:
        """Return what the pass changed; raise StageError if no stage fails."""
        if self.stage is None or self.before is None:
            raise StageError("no pass makes the check fail: there is nothing to compare")
        return self.session.diff(self.before.id, self.stage.id)

    def errors(self) -> ErrorTable:
        """Return how the largest error grows from stage to stage.

        An error that jumps at a pass is its own; one that grows slowly is that of rounding.

        Example:
            ```python
            print(found.errors())
            ```
        """
        return ErrorTable(
            tuple(
                ErrorTableRow(
                    one.id, self.session.stage(one.id).label, one.words, one.max_abs, one.share
                )
                for one in self.checked
            )
        )

    def __repr__(self) -> str:
        """Return the pass, what is wrong, and how many stages were checked with which inputs."""
        runs = f"{len(self.checked)} stages were checked"
        runs += f" with {self.tried}" if self.tried else ""
        if self.stage is None or self.before is None:
            return f"<no pass makes the check fail: {runs}>"
        how = "all before it hold" if self.is_exhaustive else f"stage {self.before.id} holds"
        return f"<{self.stage.label} (stage {self.stage.id}): {self.words}; {how}; {runs}>"


def bisect(
    mod: ir.IRModule | Session,
    passes: object = (),
    check: Check = "values",
    *,
    tolerance: Tolerance | None = None,
    every: bool = False,
    inputs: Inputs = "random",
    progress: Progress | None = None,
    cancel: threading.Event | None = None,
    **options: Any,
) -> Bisection:
    """Find the first pass that makes a check fail.

    A pass or run that fails, crashes, hangs or exceeds the memory limit fails any check. If the
    last stage fails, the search is binary, to save runs: the stage found fails, and the stage
    before it passes. If the last stage passes, all stages are checked.

    With "values", random inputs are of several sizes and magnitudes; an integer that leads to an
    index stays in its range. The interface is a part of the check: the function's name, its
    parameters and the dtypes of its results. NaN, infinities, negative zero and denormals are tried
    if no stage fails with ordinary inputs, as correct passes may treat them in another way; the
    result then says that it is on these alone.

    Args:
        mod: A module; or a session, whose stages up to the current one are checked too.
        passes: The passes, in order: names in the catalog, `tvm.transform.Pass` objects and
            functions from module to module; or a single one, such as a `Sequential`.
        check: "values": the results equal those of the first stage; "time" or "memory": at most 1.1
            times that of the first stage; or a function that takes the `RunResult` of a stage and
            of the first stage, and returns whether the stage is right.
        tolerance: The tolerance for "values"; by default it is what rounding can do, which follows
            from the dtypes, the number of operations, and how the results change with the inputs.
        every: Whether to check every stage, in order, because an earlier one may fail too.
        inputs: The inputs of a module, as for `Session`.
        progress: Called before each pass is applied and each stage is checked, with the number of
            steps done, the total, and the next step. The total may grow.
        cancel: An event that stops the search once it is set, from any thread.
        **options: Further arguments of `Session`.

    Raises:
        StageError: The first stage already fails.
        CancelledRunError: The search was cancelled.

    Example:
        ```python
        irviz.bisect(MyModule, ["LegalizeOps", "FuseOps", my_pass])
        ```
    """
    session = mod if isinstance(mod, Session) else Session(mod, inputs=inputs, **options)
    steps = _Steps(progress, cancel or threading.Event())
    with cancelled_by(steps.cancel):
        return _bisect(session, list(leaf_passes(passes)), check, tolerance, every, steps)


def _bisect(
    session: Session,
    passes: Sequence[object],
    check: Check,
    tolerance: Tolerance | None,
    every: bool,
    steps: _Steps,
) -> Bisection:
    most = len(passes) + len(session.lineage())
    fewest = min(most, 2 + max(most - 2, 0).bit_length())  # if the last one fails
    steps.expect(len(passes) + fewest)
    for one in passes:
        steps.begin(f"applying {as_transform(one).label}")
        session = session.apply(one)
        steps.check_cancelled()  # a pass that was stopped made a stage with an error
        if session.current.error:
            break
    stages = _checkable(session)
    broken = next(
        (at for at, stage in enumerate(stages) if stage.error or _lacks(session, stage)),
        len(stages),
    )
    checks = _Checks(session, stages[: broken + 1], check, tolerance, steps)
    last = len(checks.stages) - 1
    if checks.fails(0):
        raise StageError(f"stage {stages[0].id} itself fails the check: {checks.found[0].words}")
    if every or not checks.fails(last):
        # a later pass may hide what an earlier one did
        steps.expect(last + 1 - len(checks.found))
        first = next((at for at in range(1, last + 1) if checks.fails(at)), None)
        if first is None and last and check == "values" and checks.fails_specially(last):
            first = _first_failing(checks.fails_specially, last)
    elif broken == last and not checks.fails(last - 1):
        first = last
    else:
        first = _first_failing(checks.fails, last if broken > last else last - 1)
        first = _largest_jump(checks, first, steps)
    verdict = checks.found[first or 0]
    return Bisection(
        session,
        None if first is None else stages[first],
        None if first is None else stages[first - 1],
        tuple(checks.found[at] for at in sorted(checks.found)),
        check,
        tolerance,
        set(range(first or 0)) <= checks.found.keys(),
        checks.tried,
        verdict.sample.values if verdict.sample and verdict.is_special else "",
        checks.arguments(verdict),
    )


def _checkable(session: Session) -> list[Stage]:
    """Return the stages that have the function and whose module differs from the one before.

    Late stages of a compilation lack the function, and many passes change nothing.
    """
    stages: list[Stage] = []
    lineage = session.tree.lineage()
    for stage in lineage:
        if not stage.error and _lacks(session, stage):
            is_renamed = renamed(lineage[0].module, stage.module, session.function)
            if not (stages and is_renamed):
                continue
        if stage.error or not stages or not structural_equal(stages[-1].module, stage.module):
            stages.append(stage)
    return stages


def _lacks(session: Session, stage: Stage) -> bool:
    return session.function not in drawable_functions(stage.module)


def _first_failing(fails: Callable[[int], bool], high: int) -> int:
    """Return a failing stage that follows a passing one; the first passes and `high` fails."""
    return bisect_left(range(high), True, lo=1, key=fails)


def _largest_jump(checks: _Checks, first: int, steps: _Steps) -> int:
    """Return the failing stage, or that which adds most to an error that grew over many stages."""
    before, after = (checks.share(at) for at in (first - 1, first))
    if before is None or after is None or after >= _JUMP * before:
        return first
    steps.expect(first)
    errors = [0.0] * (first + 1)
    for at in range(1, first + 1):
        checks.fails(at)
        errors[at] = checks.share(at) or 0.0
    return max(range(1, first + 1), key=lambda at: errors[at] - errors[at - 1])


@contextlib.contextmanager
def cancelled_by(cancel: threading.Event) -> Iterator[None]:
    """Stop the workers' tasks inside the block once an event is set."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(_LOOK_SECONDS):
            if cancel.is_set():
                TRIES.cancel()
                RUNS.cancel()

    threading.Thread(target=watch, name="irviz cancel", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


class _Steps:
    """Reports the progress of a bisection, and stops it when it is cancelled."""

    def __init__(self, progress: Progress | None, cancel: threading.Event) -> None:
        self._progress, self.cancel = progress, cancel
        self._done = self._total = 0

    def expect(self, more: int) -> None:
        """Expect this many steps after those that have begun."""
        self._total = self._done + more

    def begin(self, words: str) -> None:
        """Begin a step; raise CancelledRunError if the bisection was cancelled."""
        self.check_cancelled()
        self._total = max(self._total, self._done + 1)
        if self._progress is not None:
            self._progress(self._done, self._total, words)
        self._done += 1

    def check_cancelled(self) -> None:
        """Raise CancelledRunError if it was cancelled."""
        if self.cancel.is_set():
            raise CancelledRunError("the bisection was cancelled")


class _Checks:
    """Checks stages, each once; `found` has the outcomes, by position of the stage."""

    def __init__(
        self,
        session: Session,
        stages: Sequence[Stage],
        check: Check,
        tolerance: Tolerance | None,
        steps: _Steps,
    ) -> None:
        if not callable(check) and check not in ("values", "time", "memory"):
            raise InputError(
                f"the check {check!r} is unknown: give 'values', 'time', 'memory', or a function "
                "of two RunResults that returns whether the first is right"
            )
        self.session, self.stages = session, stages
        self.found: dict[int, StageVerdict] = {}
        self._check, self._tolerance, self._steps = check, tolerance, steps
        self._results: dict[int, RunResult] = {}
        self._values = ValueCheck(session, stages, tolerance)

    @property
    def tried(self) -> str:
        """The sizes and values that stages were called with."""
        return "; ".join(filter(None, self._values.tried))

    def arguments(self, verdict: StageVerdict) -> Mapping[str, Argument] | None:
        """Return the arguments that a stage fails with, None if it is not because of values."""
        if verdict.sample is None:
            return None
        function = drawable_functions(self.stages[0].module)[self.session.function]
        case = verdict.sample.cases[verdict.case]
        return dict(zip(parameter_types(function), case, strict=True))

    def share(self, at: int) -> float | None:
        """Return the error of a stage in proportion to the tolerance, None if it is unknown."""
        return self.found[at].share if at in self.found else None

    def fails_specially(self, at: int) -> bool:
        """Return whether a stage fails for values that ordinary inputs do not have."""
        stage = self.stages[at]
        self._steps.begin(f"checking stage {stage.id}, {stage.label}, with special values")
        verdict, ordinary = self._values.special(stage), self.found[at]
        if verdict.fails:
            verdict = replace(verdict, max_abs=ordinary.max_abs, share=ordinary.share)
            self.found[at] = replace(verdict, id=stage.id)
        return verdict.fails

    def fails(self, at: int) -> bool:
        """Return whether a stage fails; one that cannot be built or run does."""
        if at not in self.found:
            stage = self.stages[at]
            self._steps.begin(f"checking stage {stage.id}, {stage.label}")
            try:
                verdict = StageVerdict(True, stage.error) if stage.error else self._look(at)
            except CancelledRunError:
                raise
            except RunError as failure:
                verdict = StageVerdict(True, str(failure))
            self.found[at] = replace(verdict, id=stage.id)
        return self.found[at].fails

    def _look(self, at: int) -> StageVerdict:
        stage, name = self.stages[at], self.session.function
        if _lacks(self.session, stage):
            now = renamed(self.stages[0].module, stage.module, name)
            return StageVerdict(True, f"{INTERFACE}: there is no function {name!r}, but {now!r}")
        if self._check == "memory":
            return self._memory(at)
        if self._check == "time":
            return self._time(at)
        if callable(self._check):
            holds = bool(self._check(self._result(at), self._result(0)))
            return StageVerdict(not holds, "the check holds" if holds else "the check fails")
        # where the first differs from itself, no pass is to blame
        return self._values.ordinary(stage) if at else self._values.first()

    def _result(self, at: int) -> RunResult:
        if at not in self._results:
            self._results[at] = self.session.run(stage=self.stages[at].id)
        return self._results[at]

    def _memory(self, at: int) -> StageVerdict:
        peak, first = (self.session.memory_use(stage=self.stages[one].id).peak for one in (at, 0))
        words = f"{format_bytes(peak)}, {format_bytes(first)} at first"
        return StageVerdict(peak > _MOST_TIMES * first, words)

    def _time(self, at: int) -> StageVerdict:
        if at == 0:
            return StageVerdict(False, "measured with each of the others")
        first, stage = self.stages[0].id, self.stages[at].id
        if times := self._times_as_long(at):
            return StageVerdict(True, f"{1 / times:.2g} times as fast as at first")
        ratio = self.session.measure(first, stage).ratio(stage)
        if ratio.high < 1 / _MOST_TIMES:  # slower by more than noise, unless it was disturbed
            ratio = self.session.measure(first, stage).ratio(stage)
        words = f"{ratio.median:.2g} times as fast as at first"
        return StageVerdict(ratio.high < 1 / _MOST_TIMES, words)

    def _times_as_long(self, at: int) -> float:
        """Return how many times as long a run takes, or 0 if it must be measured.

        One run of each is enough if the times differ by a large factor.
        """
        times = 0.0
        for _ in range(3):
            took, first = (self.session.run(stage=self.stages[one].id).seconds for one in (at, 0))
            times = took / first
            if took < _LONG_SECONDS or times < _CLEAR_TIMES:
                return 0.0
            if times > _VERY_MANY_TIMES:
                break
        return times
