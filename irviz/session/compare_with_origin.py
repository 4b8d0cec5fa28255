"""Compare the results of an imported module with those of the model itself, by PyTorch or ONNX."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from irviz.errors import error_summary
from irviz.ir.module_functions import relax_function
from irviz.model.runs.array_diff import scaled_tolerance
from irviz.model.runs.execution_trace import Array, first_divergence, node_differences
from irviz.model.runs.run_result import Origin, OriginRun, OriginVerdict, RunResult, compare_runs
from irviz.runtime.local_vm import remembered
from irviz.runtime.run import CallInputs, RunConfig, TraceRequest, run
from irviz.session.session_state import SessionState
from irviz.session.stage_cache import inlined_graph
from irviz.transforms.stage import Stage
from irviz.view.run_result_html import difference_amount, node_path
from irviz.worker.sandbox import default_memory_limit
from irviz.worker.supervisor import RUNS, OnProgress

_BUDGET = 1 << 28
"""The bytes of values kept to find the first node that differs."""
_MOST = 8
_verdicts: OrderedDict[Hashable, object] = OrderedDict()


def origin_verdict(
    state: SessionState,
    stage: Stage,
    call: CallInputs,
    result: RunResult,
    on_progress: OnProgress | None = None,
) -> OriginVerdict | None:
    """Return how a stage's results compare with its origin's, None if it has no origin.

    Only the first case is compared. The verdict is cached for the next run with the same inputs.
    """
    origin = stage.origin
    if origin is None or state.function != "main" or not result.outputs:
        return None
    config = state.config_for(stage)
    if origin.is_isolated and config.confine:
        return OriginVerdict(
            origin.name, None, "that runs code of the file, which session.trust() allows"
        )
    check = _OriginCheck(origin, stage, call, config, on_progress)
    key = origin, call, stage.module
    return remembered(_verdicts, key, lambda: check.verdict(result), _MOST)


@dataclass(frozen=True, eq=False)
class _OriginCheck:
    """A comparison of a stage's function "main" with its origin."""

    origin: Origin
    stage: Stage
    call: CallInputs
    config: RunConfig
    on_progress: OnProgress | None

    def verdict(self, result: RunResult) -> OriginVerdict:
        """Return how these results of the stage compare."""
        names = [one.name for one in relax_function(self.stage.module, "main").params]
        values = self.call.cases(self.stage.module, "main")[0]
        arguments = {
            name: np.asarray(value)
            for name, value in zip(names, values, strict=True)
            if isinstance(value, np.ndarray | np.generic | bool | int | float)
        }
        name = self.origin.name
        if self.on_progress is not None:
            self.on_progress(f"running {name} for comparison")
        try:
            expected = self.run_origin(arguments, 0)
        except Exception as failure:  # whatever it is, the stage itself has run
            return OriginVerdict(name, None, error_summary(failure))
        first = tuple(output[:1] for output in result.outputs)
        wanted = tuple(output[None] for output in expected.outputs)
        given = [value.dtype for value in values if isinstance(value, np.ndarray)]
        limits = [scaled_tolerance(*pair, given) for pair in zip(first, wanted, strict=False)]
        comparison = compare_runs(RunResult(first, 0.0), RunResult(wanted, 0.0), limits)
        verdict = OriginVerdict(name, comparison)
        if verdict.is_different:
            with contextlib.suppress(Exception):  # the verdict stands without it
                recorded = self.run_origin(arguments, _BUDGET)
                return replace(verdict, remark=self.first_difference(recorded))
        return verdict

    def run_origin(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Run the origin, and keep so many bytes of values."""
        if not self.origin.is_isolated:
            return self.origin.run(arguments, budget)
        memory = self.config.memory
        return RUNS.call(
            self.origin.run,
            arguments,
            budget,
            seconds=self.config.seconds,
            memory=default_memory_limit() if memory is None else memory,
            on_progress=self.on_progress,
        )

    def first_difference(self, expected: OriginRun) -> str:
        """Describe the first node whose value differs from the origin's; "" if none is known."""
        trace = run(
            self.stage.module,
            "main",
            self.call,
            trace=TraceRequest(budget=_BUDGET),
            config=self.config,
            on_progress=self.on_progress,
        ).trace
        assert trace is not None, "it was requested"
        graph = inlined_graph(self.stage, "main").graph
        pairs = {node: node for node in expected.trace.visits}
        found = first_divergence(trace, graph, node_differences(trace, expected.trace, pairs))
        if found is None:
            return ""
        callee = graph[found.node].callee
        name = f"{node_path(found.node)} ({callee})" if callee else node_path(found.node)
        words = [f"first at {name}: {difference_amount(found.difference)}"]
        if label := expected.labels.get(found.node):
            words.append(f"imported from {label}")
        words.append(
            "no transform was applied: TVM's importer or compiler is wrong, or the model enlarges "
            "the errors of rounding"
        )
        return "; ".join(words)
