"""Stages that can be run: what they are given, where they run, and how their runs compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from irviz.app.history import History
from irviz.app.runs import measured, report, run_function, with_constants
from irviz.model.result import Comparison, RunResult, compare
from irviz.model.trace import Array
from irviz.runtime.inputs import Inputs
from irviz.runtime.run import Given, Place, Wish
from irviz.view.report import Report
from irviz.view.times import Times
from irviz.worker.pool import SECONDS, Heard


@dataclass(frozen=True, eq=False)
class Runnable(History):
    """Stages, with what they are called with and what a call may take."""

    params: Mapping[str, Array] = field(default_factory=dict, kw_only=True)
    inputs: Inputs = field(default=None, kw_only=True)
    labels: NDArray[np.int64] | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    sizes: Mapping[str, int] = field(default_factory=dict, kw_only=True)
    isolate: bool = field(default=True, kw_only=True)
    seconds: float = field(default=SECONDS, kw_only=True)
    memory: int | None = field(default=None, kw_only=True)
    device: str = field(default="", kw_only=True)
    target: str = field(default="", kw_only=True)

    @property
    def place(self) -> Place:
        """Where stages run, and what a run may take."""
        return Place(self.isolate, self.seconds, self.memory, self.device, self.target)

    def given(self, inputs: Inputs = None) -> Given:
        """Return what a function is called with: these inputs, or else the session's own."""
        labels = self.labels if inputs is None else None
        chosen = self.inputs if inputs is None else inputs
        return Given(chosen, self.params, labels, self.seed, self.sizes)

    def dims(self, stage: str | None = None) -> Mapping[str, int]:
        """Return the symbolic sizes that a run has, by name; none where it cannot be run."""
        try:
            return self.given().plan(self.stage(stage).module, self.function).dims
        except ValueError:
            return self.sizes

    def run(
        self,
        inputs: Inputs = None,
        *,
        stage: str | None = None,
        trace: bool | Wish = False,
        case: int = 0,
        heard: Heard | None = None,
    ) -> RunResult:
        """Build and run a stage, the shown one by default, on the CPU.

        Without inputs the session's own are used, or random ones. With `trace` the result has
        the value at every node for one `case`, and its time. `heard` is told what is being done.
        Raises InputError, MisfitError or RunError with what would be right.
        """
        wish = trace if isinstance(trace, Wish) else Wish(case) if trace else None
        chosen, place = self.stage(stage), self.place
        result = run_function(chosen.module, self.function, self.given(inputs), wish, place, heard)
        if wish is None or result.trace is None:
            return result
        return replace(result, trace=with_constants(result.trace, chosen, wish.budget))

    def compare(self, stage: str, reference: str, inputs: Inputs = None) -> Comparison:
        """Run two stages on the same inputs and compare the first with the second."""
        return compare(self.run(inputs, stage=stage), self.run(inputs, stage=reference))

    def measure(
        self,
        *stages: str,
        inputs: Inputs = None,
        case: int = 0,
        heard: Heard | None = None,
    ) -> Times:
        """Measure stages, all by default, in turn; ratios are to the first of them.

        They are called in rounds, for about two seconds in all. Raises what `run` raises.
        """
        chosen = [self.stage(one) for one in stages] or [
            stage for stage in self.stages if not stage.error
        ]
        given, place = self.given(inputs), self.place
        return measured(chosen, self.function, given, case, place, heard)

    def report(self) -> Report:
        """Run all stages and set each against the first: a table, one row a stage.

        A stage that failed, or that cannot be run, has a row that says why.
        """
        return report(self.stages, lambda stage_id: self.run(stage=stage_id))
