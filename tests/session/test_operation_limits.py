"""What is done with an opened file ends within limits, however little the file has in it."""

import base64
import contextlib
import gzip
import inspect
import re
import subprocess
import sys
import time

import pytest

import irviz
from irviz.explorer import save_html
from irviz.limits import PASSES_SECONDS, passes_time
from irviz.runtime import simulate_memory
from irviz.session import operation_limits
from irviz.session.operation_limits import limited, limited_together

pytestmark = [
    pytest.mark.worker,
    # what ends an operation may be raised in Hypothesis's callback of Python's collector: Python
    # reports that and drops it, and irviz raises it again
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LONG = 30.0

TENSOR = 'R.Tensor((2, 2), "float32")'


def calls_that_call(times, depth):
    """Return a text of functions each of which calls the next several times."""
    lines = ["from tvm.script import ir as I, relax as R", "@I.ir_module", "class Module:"]
    for at in range(depth):
        name = f"f{at}" if at else "main"
        lines += [
            "    @R.function",
            f"    def {name}(y0: {TENSOR}) -> {TENSOR}:",
            "        cls = Module",
        ]
        callee = f"cls.f{at + 1}" if at + 1 < depth else "R.exp"
        lines += [f"        y{n + 1}: {TENSOR} = {callee}(y{n})" for n in range(times)]
        lines += [f"        return y{times}"]
    return "\n".join(lines)


@pytest.fixture
def opened(tmp_path):
    def open_text(text, name="small.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return irviz.load(path)

    return open_text


@pytest.fixture
def few_seconds(monkeypatch):
    monkeypatch.setattr(operation_limits, "OPERATION_SECONDS", 0.3)


def test_a_comparison_that_takes_too_long_ends_in_words_and_the_rest_stands(opened, monkeypatch):
    session = opened(calls_that_call(400, 2)).apply("LegalizeOps")
    with monkeypatch.context() as limits:
        limits.setattr(operation_limits, "OPERATION_SECONDS", 0.005)
        limits.setattr(operation_limits, "_POLL_SECONDS", 0.001)  # seldom, it may be over by then
        match = r"comparison takes more than 0\.005 s .* smaller"
        with pytest.raises(irviz.LimitError, match=match):
            session.diff("0", "1")
    assert "f1" in session.draw("0").svg


@pytest.mark.parametrize("draw", ["draw_memory", "draw_destination_passing"])
def test_what_another_process_lowers_for_a_picture_ends_in_words_too(opened, monkeypatch, draw):
    session = opened(calls_that_call(100, 2))
    assert getattr(opened(calls_that_call(2, 3), "less.py"), draw)().svg
    monkeypatch.setattr(operation_limits, "OPERATION_SECONDS", 0.05)
    match = r"longer than 0\.05 s and was stopped|the picture takes more than 0\.05 s"
    with pytest.raises(irviz.IrvizError, match=match):
        getattr(session, draw)()


@pytest.mark.usefixtures("few_seconds")
def test_what_another_process_takes_for_passes_is_time_of_the_operation(opened):
    (stage,) = opened(calls_that_call(1, 2)).stages

    def lower_twice():
        for _ in range(2):
            with passes_time() as seconds:
                assert seconds < 0.31
                time.sleep(0.2)
        spend(LONG)

    match = "the picture takes more than"
    with pytest.raises(irviz.LimitError, match=match), limited("the picture", stage):
        lower_twice()
    for _ in range(2):
        with passes_time() as seconds:
            assert seconds == PASSES_SECONDS


@pytest.mark.usefixtures("few_seconds")
def test_the_same_operation_on_modules_of_ones_own_is_not_limited(opened):
    mod = opened(calls_that_call(2, 3)).current.module
    session = irviz.Session(mod)
    with limited("the work", *session.stages):
        spend(0.5)


def test_what_takes_too_much_memory_ends_in_words(opened, monkeypatch):
    monkeypatch.setattr(operation_limits, "OPERATION_BYTES", 50 << 20)
    (stage,) = opened(calls_that_call(1, 2)).stages
    match = "the work takes more than 50 MB of memory"
    with pytest.raises(irviz.LimitError, match=match), limited("the work", stage):
        spend_memory(200 << 20)


def test_functions_that_call_each_other_in_a_long_chain_end_in_words(opened):
    session = opened(calls_that_call(1, 100)).apply("LegalizeOps")
    most = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 200)  # as with ten times as many functions
    try:
        with pytest.raises(irviz.LimitError, match="nested too deeply"):
            session.diff("0", "1")
    finally:
        sys.setrecursionlimit(most)


def test_the_memory_of_functions_that_call_twice_is_refused_in_words(opened, monkeypatch):
    session = opened(calls_that_call(2, 30))
    with monkeypatch.context() as limits:
        limits.setattr(operation_limits, "OPERATION_SECONDS", 0.5)
        with pytest.raises(irviz.RunError, match=r"longer than 0\.5 s"):
            session.memory_use()
    monkeypatch.setattr(simulate_memory, "_MOST_CALLS", 500)
    monkeypatch.setattr(simulate_memory.TRIES, "call", lambda read, sent, **_: read(sent))
    with pytest.raises(irviz.RunError, match="more than 500 calls"):
        session.memory_use()


def test_a_page_is_written_without_what_takes_too_long(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(save_html, "OPERATION_SECONDS", 0.5)
    monkeypatch.setattr(operation_limits, "OPERATION_SECONDS", 0.1)
    session = opened(calls_that_call(30, 6)).apply("LegalizeOps")
    page = session.save_html(tmp_path / "page.html")
    [packed] = re.findall(r'id="irviz-recording"[^>]*>([^<]*)<', page.read_text("utf-8"))
    recorded = gzip.decompress(base64.b64decode(packed)).decode()
    assert "is left out, as the operations before it took too long" in recorded
    assert "f5" in recorded


def test_operations_share_their_time_and_the_last_are_left_out(opened):
    (stage,) = opened(calls_that_call(1, 2)).stages

    def step(seconds):
        try:
            with limited("the picture", stage):
                spend(seconds)
        except irviz.LimitError as failure:
            return str(failure)
        return "drawn"

    def steps():
        for seconds in (0.01, LONG, 0.01):
            yield step(seconds)

    first, second, third = limited_together(steps(), 1.5)
    assert first == "drawn"
    assert "takes more than" in second
    assert "is left out" in third


@pytest.mark.usefixtures("few_seconds")
def test_an_operation_that_ends_in_time_is_not_stopped_later(opened):
    (stage,) = opened(calls_that_call(1, 2)).stages
    with limited("the picture", stage):
        spend(0.05)
    spend(0.6)


@pytest.mark.usefixtures("few_seconds")
def test_an_operation_ends_although_what_stops_it_was_dropped_once(opened):
    """Python drops it where it is raised in a finalizer, or in a callback of its collector."""
    (stage,) = opened(calls_that_call(1, 2)).stages

    def drop_it_once():
        with contextlib.suppress(BaseException):
            spend(5)
        spend(5)

    with pytest.raises(irviz.LimitError, match="takes more than"), limited("the work", stage):
        drop_it_once()


def test_profilers_work_after_an_operation_that_was_limited():
    """In CPython 3.11, an exception that is taken back makes the next profiled call endless."""
    run = subprocess.run(
        [sys.executable, "-c", PROFILED], timeout=60, capture_output=True, text=True
    )
    assert run.stdout == "ended\nprofiled\nstopped\nprofiled\n", run.stderr


PROFILED = """
import cProfile, time, types
from irviz.errors import LimitError
from irviz.session import operation_limits

operation_limits.OPERATION_SECONDS = 0.2
for seconds in (0.0, 0.5):
    try:
        with operation_limits.limited("the work", types.SimpleNamespace(files=("a file",))):
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                pass
        print("ended")
    except LimitError:
        print("stopped")
    cProfile.Profile().runcall(lambda: None)
    print("profiled")
"""


def spend_memory(nbytes):
    kept = []
    while len(kept) < nbytes // 100_000:
        kept.append(bytearray(b"1" * 100_000))
        time.sleep(1e-4)


def spend(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
