"""What ends a process ends the worker, and the next call has a new one."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from irviz.worker.pool import CrashedError, TimedOutError, WorkerError, call, start, stop


def pid():
    return call(os.getpid)


def test_a_function_is_called_in_another_process_that_is_kept():
    assert call(lambda one, two: one + two, 2, 3) == 5
    assert pid() == pid() != os.getpid()


def test_what_a_function_raises_is_raised_here():
    def refuses():
        raise KeyError("what it likes")

    with pytest.raises(KeyError, match="what it likes"):
        call(refuses)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "SIGSEGV"),
        (lambda: os._exit(3), "ended the process that tried it"),
        (lambda: os.abort(), "SIGABRT"),
    ],
)
def test_what_ends_the_process_is_an_error_and_the_next_call_works(end, words):
    before = pid()
    with pytest.raises(CrashedError, match=words):
        call(end)
    assert pid() != before
    assert not psutil.pid_exists(before)


def test_what_takes_too_long_is_stopped_and_the_next_call_works():
    before = pid()
    began = time.monotonic()
    with pytest.raises(TimedOutError, match=r"longer than 0\.3 s and was stopped"):
        call(time.sleep, 60, seconds=0.3)
    assert time.monotonic() - began < 5
    assert not psutil.pid_exists(before)
    assert pid() != before
    assert issubclass(TimedOutError, WorkerError)


def test_an_interrupt_stops_what_is_running():
    before = pid()
    main = os.getpid()
    timer = subprocess.Popen(
        [sys.executable, "-c", f"import os,time;time.sleep(1);os.kill({main},{int(signal.SIGINT)})"]
    )
    with pytest.raises(KeyboardInterrupt):
        call(time.sleep, 60)
    timer.wait()
    assert not psutil.pid_exists(before)
    assert pid() != before


def test_it_can_be_started_ahead_of_need():
    stop()
    began = time.monotonic()
    start()
    assert time.monotonic() - began < 0.5
    assert pid() != os.getpid()


def test_torch_is_not_loaded_by_it():
    assert call(lambda: "torch" in sys.modules) is False
    assert call(lambda: "tvm" in sys.modules) is True


def test_it_ends_with_its_parent_however_that_ends(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import os
            from irviz.worker.pool import call
            print(call(os.getpid), flush=True)
            os.kill(os.getpid(), 9)
            """
        ),
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    left = int(done.stdout)
    deadline = time.monotonic() + 10
    while psutil.pid_exists(left) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(left)


def test_a_file_in_the_folder_is_not_taken_for_a_module(tmp_path):
    trap, said = tmp_path / "loky.py", tmp_path / "said"
    trap.write_text(f"open({str(said)!r}, 'w')", encoding="utf-8")
    (tmp_path / "tvm.py").write_text(trap.read_text(encoding="utf-8"), encoding="utf-8")
    program = "import os; from irviz.worker.pool import call; print(call(os.getpid))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program]
        if sys.version_info >= (3, 11)
        else [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert not said.exists()
    assert Path(trap).exists()
