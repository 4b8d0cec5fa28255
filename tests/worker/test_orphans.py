"""No process is left behind, however the one that started it ends."""

import os
import signal
import subprocess
import sys
import textwrap

import psutil
import pytest

pytestmark = pytest.mark.worker

BEGIN = """
import contextlib, ctypes, os, sys, threading, time
from irviz.worker.supervisor import CrashedError, Worker
from irviz.worker.worker_main import load_tvm

def none(): ...
def endless():
    while True:
        pass
def asleep():
    time.sleep(3600)
def holding_the_lock():
    ctypes.PyDLL(None).sleep(3600)
def with_a_child():
    import subprocess
    subprocess.run(["sleep", "3600"])

def call(what, prepare=none):
    worker = Worker(prepare)
    print(worker.call(os.getpid), flush=True)
    def ends():
        with contextlib.suppress(CrashedError):
            worker.call(what)
    thread = threading.Thread(target=ends, daemon=True)
    thread.start()
    workers.append(worker)
    return thread
workers = []
"""


def started(tmp_path, program):
    """Start a program; return it and the processes whose numbers it prints until "ready"."""
    file = tmp_path / "program.py"
    file.write_text(BEGIN + textwrap.dedent(program), encoding="utf-8")
    one = subprocess.Popen(
        [sys.executable, file],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    others = [psutil.Process(int(line)) for line in iter(one.stdout.readline, "ready\n")]
    return one, others


def ends(one):
    """Let a program go on to its end; return what it said on standard error."""
    _, said = one.communicate("\n", timeout=60)
    return said


def test_a_worker_ends_with_its_parent_whatever_either_does(tmp_path):
    one, others = started(
        tmp_path,
        """
        for what in (asleep, holding_the_lock, endless):
            call(what)
            call(what, load_tvm)
        time.sleep(0.3)
        print("ready", flush=True)
        time.sleep(3600)
        """,
    )
    assert len(others) == 6
    os.kill(one.pid, signal.SIGKILL)
    ends(one)
    left = psutil.wait_procs(others, timeout=60)[1]
    assert left == []


def test_a_worker_does_not_end_with_the_thread_that_needed_it_first(tmp_path):
    one, _ = started(
        tmp_path,
        """
        worker = Worker(none)
        found = []
        thread = threading.Thread(target=lambda: found.append(worker.call(os.getpid)))
        thread.start()
        thread.join()
        time.sleep(0.3)
        found.append(worker.call(os.getpid))
        print("ready", flush=True)
        assert found[0] == found[1], found
        """,
    )
    assert ends(one) == ""
    assert one.returncode == 0


def test_python_can_end_while_calls_are_under_way(tmp_path):
    one, others = started(
        tmp_path,
        """
        for what in (asleep, holding_the_lock, with_a_child):
            call(what)
        call(with_a_child, load_tvm)
        call(endless)
        time.sleep(0.3)
        print("ready", flush=True)
        input()
        """,
    )
    children = [child for other in others for child in other.children()]
    assert len(others) == 5
    assert len(children) == 2
    assert "Traceback" not in ends(one)  # the calls would take an hour, or never end
    assert one.returncode == 0
    assert psutil.wait_procs([*others, *children], timeout=60)[1] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("prepare", ["none", "load_tvm"])
def test_a_fork_has_workers_of_its_own(tmp_path, prepare):
    one, _ = started(
        tmp_path,
        f"""
        import warnings
        warnings.simplefilter("ignore")
        worker = Worker({prepare})
        mine = worker.call(os.getpid)
        hold = threading.Thread(target=lambda: worker.call(time.sleep, 1))
        hold.start()
        time.sleep(0.2)
        child = os.fork()
        if not child:
            its = worker.call(os.getpid)
            worker.stop()
            os._exit(7 if its != mine else 8)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        hold.join()
        print("ready", flush=True)
        assert code == 7, code
        assert worker.call(os.getpid) == mine
        """,
    )
    assert "Traceback" not in ends(one)
    assert one.returncode == 0
