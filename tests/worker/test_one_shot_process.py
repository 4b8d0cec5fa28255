"""Each run has a fresh process, and leaves nothing: no state, no memory, no process."""

import ctypes
import os
import platform
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest
import tvm

from irviz.errors import RunError
from irviz.session.session import Session
from irviz.worker.supervisor import RUNS

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are forked on Linux"),
]

NAME = "test.fresh.call"


SOURCE = """
@I.ir_module
class Calls:
    @R.function
    def main(x: R.Tensor((3,), "float32")):
        with R.dataflow():
            y = R.call_dps_packed("test.fresh.call", (x,), R.Tensor((3,), "float32"))
            z = R.divide(x, y)
            R.output(z)
        return z
"""
CALLS = tvm.script.from_source(SOURCE)
"""Calls a function of the test, and divides."""


def run(function, **given):
    """Run a module that calls a function with the array that it writes."""

    def called(_, out):
        out.copyfrom(np.full(3, 3, "float32"))
        function()

    tvm.register_global_func(NAME, called, override=True)
    return Session(CALLS, inputs=np.ones((1, 3), "float32")[0], **given).run().outputs[0]


def nothing():
    """Do nothing."""


def rounds_down():
    ctypes.CDLL("libm.so.6").fesetround(0x400)  # FE_DOWNWARD of x86-64; another number elsewhere


def is_alive(pid):
    """Tell whether a process lives; one that has ended may wait to be asked how."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def wait_for_end(pid):
    """Wait until a process is gone."""
    deadline = time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the mode has another number")
def test_a_rounding_mode_that_a_run_sets_does_not_change_the_next():
    before = run(nothing)
    down = run(rounds_down)
    assert np.nextafter(before, np.float32(0)).tolist() == down.tolist()  # the mode works
    for _ in range(3):
        assert run(nothing).tolist() == before.tolist()


def test_each_run_has_another_process_and_the_worker_stays(tmp_path):
    told = tmp_path / "told"

    def tells():
        with told.open("a") as file:
            print(os.getpid(), file=file)

    before = RUNS.call(os.getpid)
    for _ in range(4):
        run(tells)
    pids = told.read_text().split()
    assert len(set(pids)) == 4
    assert RUNS.call(os.getpid) == before
    assert str(before) not in pids


@pytest.mark.parametrize("ends", [nothing, lambda: os.abort(), lambda: time.sleep(60)])
def test_a_process_that_a_run_has_detached_does_not_survive_it(tmp_path, ends):
    told = tmp_path / "told"

    def detaches():
        if os.fork():
            while not (told.exists() and told.read_text()):
                time.sleep(0.01)
            ends()
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        told.write_text(str(os.getpid()))
        time.sleep(3600)

    if ends is nothing:
        run(detaches)
    else:
        with pytest.raises(RunError):
            run(detaches, seconds=2)
    wait_for_end(int(told.read_text()))


def test_a_run_that_ends_its_process_does_not_end_the_worker():
    before = RUNS.call(os.getpid)
    with pytest.raises(RunError, match=r"ended the process that tried it \(SIGSEGV\)"):
        run(lambda: os.kill(os.getpid(), signal.SIGSEGV))
    assert RUNS.call(os.getpid) == before


def test_a_program_that_a_run_starts_is_ended_with_it(tmp_path):
    told = tmp_path / "told"

    def starts():
        told.write_text(str(subprocess.Popen(["sleep", "3600"], start_new_session=True).pid))

    run(starts)
    wait_for_end(int(told.read_text()))
