# ruff: noqa: N803, N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""What may go wrong, wherever it goes wrong: each time one clear error, and all else lives on."""

import ctypes
import itertools
import os
import re
import signal
import sys
import tempfile
import threading
import time

import cloudpickle
import numpy as np
import psutil
import pytest
import tvm
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES
from irviz.errors import CancelledRunError, InputError, RunError
from irviz.session.session import Session
from irviz.transforms.kernels import library
from irviz.worker import supervisor
from irviz.worker.supervisor import RUNS, Worker
from irviz.worker.worker_main import load_tvm

pytestmark = pytest.mark.worker

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # a worker need not find it

SECONDS, START_SECONDS = 2.0, 12.0
"""The limits of what does not end by itself; all else has as long as a busy machine needs."""
MEMORY = 300_000_000
INPUT = digits().images[:1]
NAME = "test.faults.relu"


def segfault():
    ctypes.string_at(0)


def endless():
    while True:
        time.sleep(1)


def much_at_once():
    return np.ones(2**50)


def little_by_little():
    kept = []
    while True:
        kept.append(bytearray(1_000_000))


def raises():
    raise ValueError("the callee's own words")


def leaves():
    raise SystemExit("the callee leaves")


def exits():
    os._exit(3)


def aborts():
    os.abort()


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


MUCH = r"needs more memory than the 300 MB that it may take|MemoryError|Unable to allocate"
FAULTS = {
    segfault: r"it ended .*\(SIGSEGV\)|it ended \(SIGSEGV\)",
    endless: r"took longer than (2|12) s and was stopped",
    much_at_once: MUCH,
    little_by_little: MUCH,
    raises: r"the callee's own words",
    leaves: r"the callee leaves",
    exits: r"it ended .*\(exit code 3\)|it ended \(exit code 3\)",
    aborts: r"SIGABRT",
    is_killed: r"SIGKILL",
}
POINTS = {
    "start": "^'main' cannot be run: the process for it could not be started: ",
    "build": "while building|^the module could not be built",
    "transfer": f"while receiving|^'{NAME}' cannot be used in the process that runs it",
    "run": "while running input 1 of 1|^'main' failed as it ran",
    "result": "while sending the results",
}
KINDS = (segfault, endless, raises)
"""A fault of each kind: the process ends, it is stopped, and the call fails."""
TABLE = [
    (point, fault)
    for point, fault in itertools.product(POINTS, FAULTS)
    if point == "run" or fault in KINDS
]


def healthy(x, out):
    """Do what the function that is swapped does."""
    np.maximum(x, 0, out=out)


class Unpacked:
    """A function whose unpacking is a fault."""

    def __init__(self, fault):
        self.fault = fault

    def __reduce__(self):
        return self.fault, ()

    def __call__(self, *_):
        """Never get so far."""


def inject(monkeypatch, tmp_path, point, fault):
    """Let a fault happen once, at a point of the next run."""
    if point == "start":
        is_over = tmp_path / "over"

        def prepare():
            if not is_over.exists():
                is_over.touch()
                fault()
            load_tvm()

        seconds = START_SECONDS if fault is endless else 60
        monkeypatch.setattr(supervisor, "RUNS", Worker(prepare, start_seconds=seconds))
    elif point == "transfer":
        tvm.register_global_func(NAME, Unpacked(fault), override=True)
    elif point == "run":

        @library.register(NAME, "(...)->(...)")
        def relu(x, out):  # noqa: ARG001 - what a kernel takes
            fault()

    else:
        RUNS.call(plant, point, fault, tmp_path / "over")


def plant(point, fault, over):
    """Put a fault into the worker, which happens once: then the file `over` is there."""
    from irviz.runtime import run_jobs
    from irviz.worker import one_shot_process

    one_shot_process.in_fresh_process(lambda: None)  # so that the next run is forked after this
    if point == "build":
        real = tvm.compile

        def build(*_, **__):
            tvm.compile = real
            fault()

        tvm.compile = build
    else:

        class Packed(np.ndarray):
            def tobytes(self, *_):
                fault()

        real = run_jobs.stack_cases

        def joined(outputs):
            if over.exists():
                return real(outputs)
            over.touch()
            return (np.zeros(3).view(Packed),)

        run_jobs.stack_cases = joined


@pytest.fixture(scope="module")
def session():
    """Return a session with a stage that calls a function of the test, and one that does not."""

    library.register(NAME, "(...)->(...)")(healthy)
    begun = Session(
        MODULES["MyModuleWithExternCall"],
        params=mlp_params(),
        inputs=INPUT,
        memory=MEMORY,
    )
    return begun.swap("env.relu", NAME)


@pytest.fixture(scope="module")
def wanted(session):
    """Return what the stage gives that calls no function of the test."""
    return session.run(stage="0").outputs[0]


@pytest.fixture(autouse=True)
def _all_lives_on(session, wanted, monkeypatch, tmp_path):
    """Check that after a fault nothing is lost, nothing is left, and the next run works."""
    library.register(NAME, "(...)->(...)")(healthy)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stages = [(stage, stage.module, tvm.ir.save_json(stage.module)) for stage in session.stages]
    before = processes()
    yield
    again = session.run(stage="0").outputs[0]
    np.testing.assert_array_equal(again, wanted)
    for stage, (one, module, text) in zip(session.stages, stages, strict=True):
        assert stage is one
        assert stage.module is module
        assert tvm.ir.save_json(module) == text
    if supervisor.RUNS is not RUNS:
        supervisor.RUNS.stop()
    assert len(processes()) == len(before)
    assert not list(tmp_path.glob("irviz-*"))


def processes():
    """Return the processes that this one started and that live, but the one for the next run."""
    worker = psutil.Process(RUNS.call(os.getpid))
    deadline = time.monotonic() + 10
    while len([one for one in worker.children() if one.status() != psutil.STATUS_ZOMBIE]) > 1:
        assert time.monotonic() < deadline
    return set(psutil.Process().children(recursive=True)) - set(worker.children())


def refused(session, **given):
    """Return the words of the one error that a run ends with."""
    with pytest.raises(RunError) as caught:
        session.run(stage="1", **given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("point", "fault"), TABLE, ids=lambda one: one if isinstance(one, str) else one.__name__
)
def test_a_fault_is_one_clear_error_and_nothing_is_lost(
    session, monkeypatch, tmp_path, point, fault
):
    inject(monkeypatch, tmp_path, point, fault)
    is_endless = fault is endless and point != "start"
    words = refused(session.with_run_config(seconds=SECONDS) if is_endless else session)
    assert re.search(FAULTS[fault], words), words
    assert re.search(POINTS[point], words), words


# --- what is written in TVM's own languages ------------------------------------------------------


@I.ir_module
class Odd:
    """What ends its process, does not end, or takes all memory."""

    @T.prim_func(s_tir=True)
    def outside(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in T.serial(4):
            with T.sblock("B"):
                vi = T.axis.spatial(4, i)
                B[vi * 100000000] = A[vi]

    @T.prim_func
    def endless(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        while A[0] < 1000:
            B[0] = A[0] * 0

    @R.function
    def crashes(x: R.Tensor((4,), "int32")):
        cls = Odd
        return R.call_tir(cls.outside, (x,), R.Tensor((4,), "int32"))

    @R.function
    def waits(x: R.Tensor((4,), "int32")):
        cls = Odd
        return R.call_tir(cls.endless, (x,), R.Tensor((4,), "int32"))

    @R.function
    def static(x: R.Tensor((4,), "int32")):
        return R.zeros(R.shape([1000000, 1000000, 4]), dtype="float32")

    @R.function
    def dynamic(x: R.Tensor(("n",), "int32")):
        n = T.int64()
        return R.zeros(R.shape([n * 1000000, 1000000]), dtype="float32")

    @R.function
    def itself(x: R.Tensor((4,), "int32")) -> R.Tensor((4,), "int32"):
        cls = Odd
        y: R.Tensor((4,), "int32") = cls.itself(x)
        return R.add(y, x)

    @R.function
    def main(x: R.Tensor((4,), "int32")):
        return R.add(x, x)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("crashes", r"'crashes' cannot be run: it ended the process .*\(SIGSEGV\) while running"),
        ("waits", r"'waits' cannot be run: it took longer than 2 s and was stopped while running"),
        ("static", r"'static' needs more memory than the 300 MB that it may take while run"),
        ("dynamic", r"'dynamic' needs more memory than the 300 MB that it may take while run"),
        ("itself", r"it ended the process|needs more memory|took longer than 2 s"),
    ],
)
def test_what_tvm_itself_does_wrong_is_one_clear_error(function, words):
    x = np.zeros(4, "int32")
    session = Session(Odd, function=function, inputs=x, memory=MEMORY)
    with pytest.raises(RunError, match=words):
        session.with_run_config(seconds=SECONDS).run()
    assert session.select_function("main").run().outputs[0].tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize("doing", ["building", "running", "receiving"])
def test_a_run_can_be_cancelled_whatever_it_does(session, monkeypatch, tmp_path, doing):
    point = {"building": "build", "running": "run", "receiving": "transfer"}[doing]
    inject(monkeypatch, tmp_path, point, endless)

    def on_progress(words):
        if words.startswith(doing):
            threading.Thread(target=RUNS.cancel).start()

    with pytest.raises(CancelledRunError, match=f"^'main' was cancelled while {doing}"):
        session.run(stage="1", on_progress=on_progress)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"memory": 0}, "memory=0 is too little to build anything: give at least 33,554,432"),
        ({"memory": -1}, "memory=-1 is too little"),
        ({"seconds": 0}, "seconds=0 is not a time limit: give more than 0"),
        ({"seconds": float("nan")}, "seconds=nan is not a time limit"),
    ],
)
def test_limits_that_nothing_can_keep_to_are_refused(session, limits, words):
    with pytest.raises(InputError, match=words):
        session.with_run_config(**limits).run()


def test_what_the_system_ends_is_told(session, monkeypatch, tmp_path):
    inject(monkeypatch, tmp_path, "run", endless)
    worker = RUNS.call(os.getpid)

    def on_progress(words):
        if words.startswith("running"):
            os.kill(worker, signal.SIGKILL)

    with pytest.raises(RunError, match=r"ended the process .*\(SIGKILL\) while running input 1"):
        session.run(stage="1", on_progress=on_progress)


def test_in_this_process_what_is_raised_is_the_same_error(session, monkeypatch, tmp_path):
    inject(monkeypatch, tmp_path, "run", raises)
    words = refused(session)
    here = Session(
        session.stages[0].module, params=session.call_inputs.params, inputs=INPUT, isolate=False
    )
    with pytest.raises(RunError) as caught:
        here.swap("env.relu", NAME).run()
    assert str(caught.value) == words
