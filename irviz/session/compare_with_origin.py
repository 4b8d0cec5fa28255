"""Compare the results of an imported module with those of the model itself, by PyTorch or ONNX."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Hashable, Mapping

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
    if origin.is_isolated and state.config_for(stage).confine:
        return OriginVerdict(
            origin.name, None, "that runs code of the file, which session.trust() allows"
        )
    return remembered(
        _verdicts,
        (origin, call, stage.module),
        lambda: _verdict(origin, state, stage, call, result, on_progress),
        _MOST,
    )


def _verdict(
    origin: Origin,
    state: SessionState,
    stage: Stage,
    call: CallInputs,
    result: RunResult,
    on_progress: OnProgress | None,
) -> OriginVerdict:
    config = state.config_for(stage)
    names = [param.name for param in relax_function(stage.module, state.function).params]
    values = call.cases(stage.module, state.function)[0]
    arguments = {
        name: np.asarray(value)
        for name, value in zip(names, values, strict=True)
        if isinstance(value, np.ndarray | np.generic | bool | int | float)
    }
    if on_progress is not None:
        on_progress(f"running {origin.name} for comparison")
    try:
        expected = _run(origin, arguments, 0, config, on_progress)
    except Exception as failure:  # whatever it is, the stage itself has run
        return OriginVerdict(origin.name, None, error_summary(failure))
    first = tuple(output[:1] for output in result.outputs)
    wanted = tuple(output[None] for output in expected.outputs)
    given = [value.dtype for value in values if isinstance(value, np.ndarray)]
    limits = [scaled_tolerance(*pair, given) for pair in zip(first, wanted, strict=False)]
    comparison = compare_runs(RunResult(first, 0.0), RunResult(wanted, 0.0), limits)
    verdict = OriginVerdict(origin.name, comparison)
    if not verdict.is_different:
        return verdict
    remark = ""
    with contextlib.suppress(Exception):  # the verdict stands without it
        recorded = _run(origin, arguments, _BUDGET, config, on_progress)
        remark = _first_difference(recorded, state, stage, call, config, on_progress)
    return OriginVerdict(origin.name, comparison, remark)


def _run(
    origin: Origin,
    arguments: Mapping[str, Array],
    budget: int,
    config: RunConfig,
    on_progress: OnProgress | None,
) -> OriginRun:
    if not origin.is_isolated:
        return origin.run(arguments, budget)
    memory = default_memory_limit() if config.memory is None else config.memory
    return RUNS.call(
        origin.run,
        arguments,
        budget,
        seconds=config.seconds,
        memory=memory,
        on_progress=on_progress,
    )


def _first_difference(
    expected: OriginRun,
    state: SessionState,
    stage: Stage,
    call: CallInputs,
    config: RunConfig,
    on_progress: OnProgress | None,
) -> str:
    """Describe the first node whose value differs from the origin's; "" if none is known."""
    trace = run(
        stage.module,
        state.function,
        call,
        trace=TraceRequest(budget=_BUDGET),
        config=config,
        on_progress=on_progress,
    ).trace
    assert trace is not None, "it was requested"
    graph = inlined_graph(stage, state.function).graph
    pairs = {node: node for node in expected.trace.visits}
    found = first_divergence(trace, graph, node_differences(trace, expected.trace, pairs))
    if found is None:
        return ""
    amount = difference_amount(found.difference)
    callee = graph[found.node].callee
    name = f"{node_path(found.node)} ({callee})" if callee else node_path(found.node)
    words = [f"first at {name}: {amount}"]
    if label := expected.labels.get(found.node):
        words.append(f"imported from {label}")
    words.append(
        "no transform was applied: TVM's importer or compiler is wrong, or the model enlarges the "
        "errors of rounding"
    )
    return "; ".join(words)
