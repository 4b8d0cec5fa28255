"""Measure what running in another process costs, and what a trace costs.

    python bench/worker_overhead.py

Runs through irviz and through TVM alone take turns, so that a noisy machine hurts both alike; a
figure is the median, with the smallest and the largest. The last lines say how soon a run that
never ends, or dies, is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from measurement_table import against, end, heading
from tvm import ir, relax

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.errors import RunError
from irviz.worker.supervisor import RUNS

ROUNDS = 25
BAR = 0.02


def main() -> None:
    """Measure everything."""
    heading("bar")
    images = digits().images
    warm("MLP, 360 images", MyModule, images)
    warm("MLP, 1 image", MyModule, images[:1])
    traced("MLP", irviz.Session(MyModule, params=mlp_params(), inputs=images[:1]))
    for count in (30, 300):
        traced(f"{count} calls", irviz.Session(chain(count)))
    faults()
    end()


def warm(what: str, mod: ir.IRModule, images: np.ndarray) -> None:
    """Measure a warm run of the explorer's session beside TVM alone."""
    params = mlp_params()
    session = irviz.Session(mod, params=params, inputs=images)
    here = irviz.Session(mod, params=params, inputs=images, isolate=False)
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())

    def alone() -> None:
        weights = [tvm.runtime.tensor(params[name]) for name in ("w0", "b0", "w1", "b1")]
        np.stack([vm["main"](tvm.runtime.tensor(x[None]), *weights).numpy() for x in images])

    times = _in_turn(alone, session.run, here.run)
    against(f"{what}: TVM alone", times[0])
    against(f"{what}: session.run()", times[1])
    against(f"{what}: session.run() over TVM alone", _over(times[1], times[0]), "ms", BAR)
    against(f"{what}: with isolate=False, over TVM alone", _over(times[2], times[0]))


def traced(what: str, session: Any) -> None:
    """Measure a run with a trace beside one without, and what the trace says of itself."""
    times = _in_turn(session.run, session.trace, rounds=9)
    against(f"{what}: session.run()", times[0])
    against(f"{what}: session.trace(), with 20 timed calls or 0.3 s of them", times[1])
    trace = session.trace()
    values = len(trace.visits)
    against(f"{what}: one call, untraced", [trace.untraced])
    against(f"{what}: the sum of its {values} nodes' times", [trace.seconds])
    against(f"{what}: recording the {values} values", [trace.cost])


def chain(count: int) -> ir.IRModule:
    """Return a module of so many calls of one PrimFunc, each of some microseconds."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([128, 128], "float32"))
    with builder.function("main", [x]):
        h: ir.Expr = x
        with builder.dataflow():
            for _ in range(count):
                h = builder.emit(relax.op.tanh(h))
            h = builder.emit_output(h)
        builder.emit_func_output(h)
    return relax.transform.LegalizeOps()(builder.get())


def faults() -> None:
    """Measure how soon a run that never ends, or ends its process, is an error."""

    @irviz.library.register("bench.endless", "(...)->(...)")
    def endless(_: np.ndarray, out: np.ndarray) -> None:  # noqa: ARG001
        while True:
            pass

    @irviz.library.register("bench.exits", "(...)->(...)")
    def exits(_: np.ndarray, out: np.ndarray) -> None:  # noqa: ARG001
        import os

        os._exit(3)

    first = irviz.Session(MyModule, params=mlp_params(), inputs=digits().images[:1], seconds=1)
    for name, limit, what in (
        ("bench.endless", 1.0, "an endless loop: the error comes after its limit by"),
        ("bench.exits", 0.0, "a process that ends: the error comes after"),
    ):
        session = first.swap("relu0", name)
        taken = []
        for _ in range(5):
            RUNS.call(int)  # so that its start is not counted
            start = time.perf_counter()
            try:
                session.run()
            except RunError:
                taken.append(time.perf_counter() - start - limit)
        against(what, taken, "s", 2)


def _in_turn(*calls: Callable[[], object], rounds: int = ROUNDS) -> list[list[float]]:
    """Return the seconds of each call in each round, after two rounds that do not count."""
    found: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 2):
        for index in range(len(calls)):
            chosen = (index + turn) % len(calls)
            start = time.perf_counter()
            calls[chosen]()
            if turn >= 2:
                found[chosen].append(time.perf_counter() - start)
    return found


def _over(times: list[float], reference: list[float]) -> list[float]:
    return [one - other for one, other in zip(times, reference, strict=True)]


if __name__ == "__main__":
    main()
