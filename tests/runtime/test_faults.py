"""What may go wrong, wherever it goes wrong: each time one clear error, and all else lives on."""

import ctypes
import itertools
import os
import re
import signal
import sys
import tempfile
import time

import cloudpickle
import numpy as np
import psutil
import pytest
import tvm

from irviz.app.session import Session
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES
from irviz.runtime import place
from irviz.runtime.run import RunError
from irviz.transforms.kernels import library
from irviz.worker.inside import load_tvm
from irviz.worker.pool import RUNS, Worker

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # a worker need not find it

SECONDS, START_SECONDS = 1.0, 4.0
MEMORY = 300_000_000
INPUT = digits().images[:1]
NAME = "test.faults.relu"


def segfault():
    ctypes.string_at(0)


def endless():
    while True:
        pass


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


MUCH = r"asked for more memory than the 300 MB that it may take|MemoryError|Unable to allocate"
FAULTS = {
    segfault: r"it ended .*\(SIGSEGV\)|it ended \(SIGSEGV\)",
    endless: r"took longer than [14] s and was stopped",
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
TABLE = [
    (point, fault)
    for point, fault in itertools.product(POINTS, FAULTS)
    if (point, fault) != ("start", little_by_little)  # nothing limits what a start may take
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

        monkeypatch.setattr(place, "RUNS", Worker(prepare, start_seconds=START_SECONDS))
    elif point == "transfer":
        tvm.register_global_func(NAME, Unpacked(fault), override=True)
    elif point == "run":

        @library.register(NAME, "(...)->(...)")
        def relu(x, out):  # noqa: ARG001 - what a kernel takes
            fault()

    else:
        RUNS.call(plant, point, fault)


def plant(point, fault):
    """Put a fault into the worker, which takes itself away as it happens."""
    from irviz.runtime import job

    if point == "build":
        real = tvm.compile

        def build(*_, **__):
            tvm.compile = real
            fault()

        tvm.compile = build
    else:

        class Packed:
            def __reduce__(self):
                fault()
                return int, ()

        real = job.joined

        def joined(_):
            job.joined = real
            return (Packed(),)

        job.joined = joined


@pytest.fixture(scope="module")
def session():
    """Return a session with a stage that calls a function of the test, and one that does not."""

    library.register(NAME, "(...)->(...)")(healthy)
    begun = Session(
        MODULES["MyModuleWithExternCall"],
        params=mlp_params(),
        inputs=INPUT,
        seconds=SECONDS,
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
    if place.RUNS is not RUNS:
        place.RUNS.stop()
    assert len(processes()) == len(before)
    assert not list(tmp_path.glob("irviz-*"))


def processes():
    """Return what this process started and still lives, but the keepers of loky's semaphores."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "resource_tracker" not in " ".join(one.cmdline())]


def refused(session, seconds=SECONDS, **given):
    """Return the words of the one error that a run ends with, in time."""
    began = time.monotonic()
    with pytest.raises(RunError) as caught:
        session.run(stage="1", **given)
    assert time.monotonic() - began < seconds + 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("point", "fault"), TABLE, ids=lambda one: one if isinstance(one, str) else one.__name__
)
def test_a_fault_is_one_clear_error_in_time_and_nothing_is_lost(
    session, monkeypatch, tmp_path, point, fault
):
    inject(monkeypatch, tmp_path, point, fault)
    words = refused(session, START_SECONDS if point == "start" else SECONDS)
    assert re.search(FAULTS[fault], words), words
    assert re.search(POINTS[point], words), words
