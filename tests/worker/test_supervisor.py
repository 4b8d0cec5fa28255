"""What ends a process ends the worker, and the next call has a new one."""

import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from irviz.errors import LoadError
from irviz.worker import responses
from irviz.worker.supervisor import (
    TRIES,
    CancelledError,
    CrashedError,
    StartError,
    TimedOutError,
    Worker,
    WorkerError,
)

pytestmark = pytest.mark.worker


def nothing():
    """Do nothing, as to prepare a process that needs no TVM."""


def endless():
    threading.Event().wait()


WORKER = Worker(nothing)
"""A worker that is replaced quickly, because it does not load TVM."""


def pid():
    return WORKER.call(os.getpid)


def test_a_function_is_called_in_another_process_that_is_kept():
    assert WORKER.call(lambda one, two: one + two, 2, 3) == 5
    assert pid() == pid() != os.getpid()


def test_what_a_function_raises_is_raised_here():
    def refuses():
        raise KeyError("what it likes")

    with pytest.raises(KeyError, match="what it likes") as caught:
        WORKER.call(refuses)
    assert "in refuses" in str(caught.value.__cause__)


def test_an_error_that_says_what_to_do_comes_without_the_traceback_of_the_worker():
    def refuses():
        raise LoadError("'model.onnx' is empty")

    with pytest.raises(LoadError, match=r"'model\.onnx' is empty") as caught:
        WORKER.call(refuses)
    assert caught.value.__cause__ is None


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
        WORKER.call(end)
    assert pid() != before
    assert not psutil.pid_exists(before)


def test_what_takes_too_long_is_stopped_and_the_next_call_works():
    before = pid()
    with pytest.raises(TimedOutError, match=r"longer than 0\.3 s and was stopped"):
        WORKER.call(endless, seconds=0.3)
    assert not psutil.pid_exists(before)
    assert pid() != before
    assert issubclass(TimedOutError, WorkerError)


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_stops_what_is_running():
    before = pid()
    main = os.getpid()
    timer = subprocess.Popen(
        [sys.executable, "-c", f"import os,time;time.sleep(1);os.kill({main},{int(signal.SIGINT)})"]
    )
    with pytest.raises(KeyboardInterrupt):
        WORKER.call(time.sleep, 60)
    timer.wait()
    assert not psutil.pid_exists(before)
    assert pid() != before


def test_it_can_be_started_ahead_of_need_which_is_not_waited_for(tmp_path):
    gate, begun = tmp_path / "gate", tmp_path / "begun"

    def prepare():
        with begun.open("a") as file:
            print(os.getpid(), file=file)
        while not gate.exists():
            time.sleep(0.01)

    worker = Worker(prepare)
    worker.start()
    gate.touch()
    assert [str(worker.call(os.getpid))] == begun.read_text().split()
    worker.stop()


def test_torch_is_not_loaded_by_it():
    assert TRIES.call(lambda: "torch" in sys.modules) is False
    assert TRIES.call(lambda: "tvm" in sys.modules) is True


def test_it_ends_with_its_parent_however_that_ends(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import os
            from irviz.worker.supervisor import TRIES
            print(TRIES.call(os.getpid), flush=True)
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
    trap, said = tmp_path / "cloudpickle.py", tmp_path / "said"
    trap.write_text(f"open({str(said)!r}, 'w')", encoding="utf-8")
    (tmp_path / "tvm.py").write_text(trap.read_text(encoding="utf-8"), encoding="utf-8")
    program = "import os; from irviz.worker.supervisor import TRIES; print(TRIES.call(os.getpid))"
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


def test_a_time_out_that_the_function_raises_is_its_own():
    def gives_up():
        raise TimeoutError("the function's own")

    before = pid()
    with pytest.raises(TimeoutError, match="the function's own"):
        WORKER.call(gives_up)
    assert pid() == before


def test_a_call_can_be_cancelled_from_another_thread():
    before = pid()
    timer = threading.Timer(0.5, WORKER.cancel)
    timer.start()
    with pytest.raises(CancelledError, match="it was cancelled"):
        WORKER.call(endless)
    timer.join()
    assert not psutil.pid_exists(before)
    assert pid() != before


def test_to_cancel_when_nothing_runs_hurts_no_later_call():
    WORKER.cancel()
    assert WORKER.call(lambda: 4) == 4


def test_what_takes_more_memory_than_it_may_is_an_error_and_the_process_lives_on():
    def takes_much():
        return len(bytearray(500_000_000))

    before = pid()
    with pytest.raises(MemoryError):
        WORKER.call(takes_much, memory=100_000_000)
    assert WORKER.call(takes_much) == 500_000_000
    assert pid() == before


def test_what_it_does_is_heard_while_it_does_it_and_told_when_it_dies():
    def counts():
        for number in range(3):
            responses.report_progress(f"step {number}")
            time.sleep(0.2)
        return "done"

    def dies():
        responses.report_progress("on the way\nout")
        os._exit(1)

    messages = []
    assert WORKER.call(counts, on_progress=messages.append) == "done"
    assert messages == ["step 0", "step 1", "step 2"]
    with pytest.raises(CrashedError) as failure:
        WORKER.call(dies)
    assert failure.value.doing == "on the way out"


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (
            lambda: os._exit(3),
            r"^the process for it could not be started: it ended \(exit code 3\)$",
        ),
        (lambda: os.abort(), r"could not be started: it ended \(SIGABRT\)$"),
        (endless, "could not be started: that took longer than 1 s"),
        (lambda: [][1], "could not be started: IndexError: list index out of range$"),
    ],
)
def test_a_process_that_cannot_be_started_is_an_error(prepare, words):
    before = set(psutil.Process().children(recursive=True))
    with pytest.raises(WorkerError, match=words):
        Worker(prepare, start_seconds=1 if prepare is endless else 60).call(os.getpid)
    assert set(psutil.Process().children(recursive=True)) <= before


def test_each_worker_has_a_process_of_its_own():
    other = Worker()
    assert other.call(os.getpid) != pid()
    other.stop()


def test_no_file_is_left(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    worker = Worker(nothing)
    worker.call(os.getpid)
    assert list(tmp_path.iterdir()) == []
    worker.stop()
    for prepare in (lambda: os._exit(1), lambda: [][1]):
        with pytest.raises(StartError):
            Worker(prepare).call(os.getpid)
    assert list(tmp_path.iterdir()) == []


def test_one_that_died_while_nobody_called_it_hurts_no_call():
    worker = Worker(nothing)
    before = worker.call(os.getpid)
    os.kill(before, signal.SIGKILL)
    assert worker.call(os.getpid) not in (before, os.getpid())
    worker.stop()


def test_one_that_dies_as_it_sends_its_answer_is_an_error():
    def dies_half_way():
        class Half:
            def __init__(self, number):
                self.number = number

            def write(self, content):
                os.write(self.number, content[:1_000])
                if len(content) > 1_000:
                    os.kill(os.getpid(), signal.SIGKILL)

        responses.set_pipe(Half(os.dup(responses.pipe_number())))  # the other closes with its file
        return bytes(1_000_000)

    worker = Worker(nothing)
    with pytest.raises(CrashedError, match=r"ended the process that tried it \(SIGKILL\)"):
        worker.call(dies_half_way, seconds=5)
    assert worker.call(abs, -1) == 1
    worker.stop()


def test_what_cannot_be_sent_back_is_told():
    class OddError(Exception):
        def __init__(self, one, two):
            super().__init__(f"{one} and {two}")

    def raises(failure):
        raise failure

    def odd():
        raise OddError("this", "that")

    worker = Worker(nothing)
    before = worker.call(os.getpid)
    with pytest.raises(RuntimeError, match=r"^OddError: this and that"):
        worker.call(odd)
    with pytest.raises(RuntimeError, match="SystemExit: I leave"):
        worker.call(raises, SystemExit("I leave"))
    with pytest.raises(TypeError, match="cannot be sent from another process"):
        worker.call(threading.Lock)
    assert worker.call(os.getpid) == before
    worker.stop()


def test_what_is_printed_is_told_whatever_becomes_of_the_call():
    def says(word, then):
        print(word)
        os.system(f"echo {word} of a child")
        ctypes.CDLL(None).puts(f"{word} in C".encode())
        sys.stdout.write("an end")
        then()

    def raises():
        raise ValueError

    worker, told = Worker(nothing), []
    worker.call(says, "one", nothing, on_output=told.append)
    assert sorted(told.pop().splitlines()) == ["an end", "one", "one in C", "one of a child"]
    for then in (raises, lambda: os._exit(1), lambda: time.sleep(60)):
        with pytest.raises((ValueError, WorkerError)):
            worker.call(says, "two", then, on_output=told.append, seconds=1)
        assert {"two", "two in C", "two of a child"} <= set(told.pop().splitlines())
    worker.call(nothing, on_output=told.append)
    assert told == []
    worker.stop()


def test_a_flood_of_what_is_printed_is_cut(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def flood():
        while True:
            print("x" * 1_000)

    worker, told = Worker(nothing), []
    with pytest.raises(TimedOutError):
        worker.call(flood, on_output=told.append, seconds=0.5)
    assert len(told[0]) < 66_000
    assert told[0].endswith("\n… only the first 64 KB are shown\n")
    worker.stop()


def test_to_cancel_ends_what_runs_and_what_waits_and_nothing_else():
    worker, ended = Worker(nothing), []

    def sleeps():
        with pytest.raises(CancelledError):
            worker.call(endless)
        ended.append(True)

    threads = [threading.Thread(target=sleeps) for _ in range(3)]
    worker.call(nothing)
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    worker.cancel()
    worker.cancel()
    for thread in threads:
        thread.join()
    assert ended == [True] * 3
    before = worker.call(os.getpid)
    worker.cancel()
    assert worker.call(os.getpid) == before
    worker.stop()


def test_something_longer_is_cancelled_between_its_calls_too():
    worker = Worker(nothing)
    since = worker.cancels
    assert worker.call(abs, -1, since=since) == 1
    worker.cancel()
    with pytest.raises(CancelledError):
        worker.call(abs, -1, since=since)
    assert worker.call(abs, -1) == 1
    worker.stop()


def test_many_calls_and_many_cancels_at_once_neither_block_nor_lose_a_process():
    worker, strange, counts = Worker(nothing), [], {"answers": 0, "cancels": 0}
    before = set(psutil.Process().children(recursive=True))

    def calls():
        for number in range(4):
            try:
                assert worker.call(pow, number, 2) == number**2
                counts["answers"] += 1
                worker.call(time.sleep, 60)
            except CancelledError:  # noqa: PERF203
                counts["cancels"] += 1
            except BaseException as failure:
                strange.append(failure)

    is_over = threading.Event()

    def cancels():
        while not is_over.wait(random.random() * 0.3):
            worker.cancel()

    callers = [threading.Thread(target=calls, daemon=True) for _ in range(5)]
    cancellers = [threading.Thread(target=cancels, daemon=True) for _ in range(2)]
    for thread in [*callers, *cancellers]:
        thread.start()
    for thread in callers:
        thread.join(60)
    is_over.set()
    for thread in cancellers:  # a late cancel would meet the call below
        thread.join(60)
    assert not any(thread.is_alive() for thread in callers)
    assert strange == []
    assert counts["cancels"] == 20
    assert worker.call(abs, -1) == 1
    worker.stop()
    assert set(psutil.Process().children(recursive=True)) <= before
