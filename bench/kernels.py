"""Measure what it costs to run a stage whose kernels were compiled before.

    python bench/kernels.py

A network of operators of unlike sizes stands for a model: each is a kernel. What is compared takes
turns, and ratios are of one round; a figure is the median, with the smallest and the largest.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import tvm
from measurement_table import against, end, heading
from tvm import ir, relax

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.worker.supervisor import RUNS

ROUNDS = 5
KERNELS = 60
CLICK_ROUNDS = 15


def main() -> None:
    """Measure everything, with an empty folder of kernels."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["IRVIZ_KERNELS"] = folder
        heading("bar")
        stages()
        clicks()
        weights()
        end()


def stages() -> None:
    """Measure a first run, a second stage's, and a comparison, beside what TVM alone compiles."""
    mod = network(KERNELS)
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        irviz.forget_kernels()
        RUNS.call(int)  # so that its start is not counted
        session = irviz.Session(mod, seconds=600)
        alone = _seconds(lambda: relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu()))
        first = _seconds(session.run)
        call = _seconds(session.run)
        second = session.apply("LegalizeOps")
        again = _seconds(second.run)
        RUNS.stop()
        RUNS.call(int)
        disk = _seconds(second.run)
        irviz.forget_kernels()
        RUNS.call(int)
        both = _seconds(partial(second.compare, "1", "0"))
        irviz.forget_kernels()
        RUNS.call(int)
        traced = _seconds(session.trace)
        build = first - call
        values = {
            f"{KERNELS} kernels: first build over tvm.compile and the VM's start": build / alone,
            "a second stage's run over the first's build": again / build,
            "a run in another process over the first's build": disk / build,
            "comparison of two stages over one build and two calls": both / (build + 2 * call),
            "a run with a trace over one without, nothing compiled": traced / first,
        }
        for what, value in values.items():
            found.setdefault(what, []).append(value)
    for (what, ratios), bar in zip(found.items(), (None, 0.15, None, 1.2, 2.0), strict=True):
        against(what, ratios, "x", bar)


def clicks() -> None:
    """Measure bind, swap and a pass of the MLP with their runs, beside TVM alone."""
    images, params = digits().images, mlp_params()
    session = irviz.Session(MyModule, params=params, inputs=images)
    bound = session.bind()
    bound.run()
    taken: dict[str, list[float]] = {}
    for _ in range(CLICK_ROUNDS):
        work: dict[str, Callable[[], object]] = {
            "MLP: TVM alone: compile, start, 360 calls": lambda: alone(images, params),
            "MLP: bind, run on 360 images": lambda: session.bind().run(),
            "MLP: swap, run on 360 images": lambda: bound.swap("relu0", "env.relu").run(),
            "MLP: a pass, run on 360 images": lambda: bound.apply("ToNonDataflow").run(),
            "MLP: a warm run of 360 images": bound.run,
        }
        for what, do in work.items():
            taken.setdefault(what, []).append(_seconds(do))
    own = taken["MLP: TVM alone: compile, start, 360 calls"]
    for what, seconds in taken.items():
        against(what, seconds, "ms", 0.09 if "," in what and "alone" not in what else None)
        ratios = [one / other for one, other in zip(seconds, own, strict=True)]
        against(f"{what}, over TVM alone", ratios, "x")


def weights() -> None:
    """Measure what weights of 512 MB add to the runs of a model and of its stages."""
    small, large = (_weighted(rows) for rows in (64, 250_000))
    new_stages: dict[str, Callable[[irviz.Session], irviz.Session]] = {
        "512 MB of params: they add to a run": lambda one: one,
        "512 MB bound: they add to the first run of a new stage": lambda one: one.bind().apply(
            "CanonicalizeBindings"
        ),
    }
    for what, stage in new_stages.items():
        pairs = [(stage(small), stage(large)) for _ in range(ROUNDS)]
        added = [_seconds(more.run) - _seconds(less.run) for less, more in pairs]
        against(what, added, "ms", 0.05)


def network(count: int) -> ir.IRModule:
    """Return a module of so many operators, none of which has the kernel of another."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([1, 64], "float32"))
    operators = (relax.op.tanh, relax.op.exp, relax.op.nn.softmax, relax.op.sigmoid)
    with builder.function("main", [x]):
        value: ir.Expr = x
        with builder.dataflow():
            for number in range(count):
                wide = builder.emit(relax.op.concat([value, x], 1)) if number % 4 == 0 else value
                value = builder.emit(operators[number % 4](wide))
            value = builder.emit_output(value)
        builder.emit_func_output(value)
    return builder.get()


def _weighted(rows: int) -> irviz.Session:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([1, 64], "float32"))
    kind = relax.TensorType([rows, 64], "float32")
    params = [relax.Var(f"w{number}", kind) for number in range(8)]
    with builder.function("main", [x, *params]):
        value: ir.Expr = x
        for one in params:
            row = builder.emit(relax.op.strided_slice(one, [0], [0], [1]))
            value = builder.emit(relax.op.add(value, row))
        builder.emit_func_output(value)
    arrays = {one.name: np.ones((rows, 64), "float32") for one in params}
    session = irviz.Session(builder.get(), params=arrays, inputs=np.ones((1, 64), "float32"))
    session.run()
    session.bind().run()
    return session


def alone(images: np.ndarray, params: dict[str, np.ndarray]) -> None:
    """Build the lecture's MLP and call it on images, with TVM alone."""
    vm = relax.VirtualMachine(tvm.compile(MyModule, "llvm"), tvm.cpu())
    own = [tvm.runtime.tensor(params[name]) for name in ("w0", "b0", "w1", "b1")]
    np.stack([vm["main"](tvm.runtime.tensor(one[None]), *own).numpy() for one in images])


def _seconds(do: Callable[[], object]) -> float:
    start = time.perf_counter()
    do()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
