"""The engine gives what Graphviz gives, in time or not at all, and leaves no process behind."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pygraphviz
import pytest

from irviz.view.graph import graphviz_engine
from irviz.worker import supervisor
from irviz.worker.supervisor import StartError

pytestmark = pytest.mark.worker

SMALL = 'digraph { rankdir=BT; subgraph cluster_0 { a } a -> b [id="e0"] }'
PATIENCE = 20
"""Seconds that a test waits for what should take a moment: the machine may have other work."""


def dense(nodes, edges):
    """Return a graph that dot does not lay out in minutes, if it is large enough."""
    choice = random.Random(1)
    pairs = (f"n{choice.randrange(nodes)}->n{choice.randrange(nodes)}" for _ in range(edges))
    return f"digraph {{ {' '.join(pairs)} }}"


ENDLESS = dense(200, 800)


def in_process(dot):
    graph = pygraphviz.AGraph(string=dot)
    try:
        return graph.draw(format="json", prog="dot").decode()
    finally:
        graph.close()


others = set()
"""The processes that this one had started before the test."""


def engines(parent=None):
    """Return the engine processes of a process, zombies too."""
    found = []
    for child in psutil.Process(parent).children():
        has_no_command = child.status() == psutil.STATUS_ZOMBIE
        is_worker = has_no_command or any("worker_main" in word for word in child.cmdline())
        if is_worker and child not in others:
            found.append(child)
    return found


def the_engine(parent=None):
    """Return the one engine; a process has no command line yet when it has just been started."""
    wait_until(lambda: len(engines(parent)) == 1)
    return engines(parent)[0]


def is_alive(process):
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def wait_until(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


def wait_until_busy(process):
    """Wait until a process has computed for a while: longer than an engine's start takes."""
    begin = process.cpu_times().user
    wait_until(lambda: process.cpu_times().user > begin + 0.2)


@pytest.fixture(autouse=True)
def _right_afterwards():
    """Whatever a test has done, the next layout is right."""
    yield
    assert graphviz_engine.run_dot(SMALL, PATIENCE) == in_process(SMALL)


@pytest.fixture
def fresh():
    """Begin with no engine."""
    graphviz_engine.ENGINE.stop()
    others.clear()
    others.update(psutil.Process().children())


@pytest.fixture
def start(tmp_path):
    """Start Python on some lines, with warnings as errors, in a directory of the user's."""
    started = []

    def run(lines):
        command = [
            sys.executable,
            "-W",
            "error",
            "-c",
            f"from irviz.view.graph import graphviz_engine as engine\n{lines}",
        ]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


# --- what it gives -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dot",
    [
        SMALL,
        "digraph {}",
        'digraph "é 線" { "n\\"0" -> "é" [id="<&>"] }',
        'digraph { a [label=<<TABLE><TR><TD PORT="p"></TD></TR></TABLE>>] b -> a:p:s }',
        dense(30, 60),
    ],
)
def test_it_gives_what_graphviz_gives_in_process(dot):
    assert graphviz_engine.run_dot(dot, PATIENCE) == in_process(dot)


@pytest.mark.usefixtures("fresh")
def test_one_process_serves_all_layouts_and_each_as_if_it_were_the_first():
    graphviz_engine.run_dot(SMALL, PATIENCE)
    process = the_engine()
    for dot in (dense(40, 80), SMALL, dense(10, 20), SMALL):
        assert graphviz_engine.run_dot(dot, PATIENCE) == in_process(dot)
        assert the_engine() == process


def test_megabytes_go_in_and_out():
    words = "x" * 16_000  # Graphviz refuses a string of more than 16,384
    notes = " ".join(f'note{index}="{words}"' for index in range(200))
    drawn = json.loads(graphviz_engine.run_dot(f"digraph {{ a [{notes}] }}", PATIENCE))
    assert {drawn["objects"][0][f"note{index}"] for index in range(200)} == {words}


def test_what_graphviz_prints_is_none_of_the_answer():
    dot = (
        "digraph { subgraph cluster_a { {rank=same; b} } subgraph cluster_b { b } a:nowhere -> b }"
    )
    assert json.loads(graphviz_engine.run_dot(dot, PATIENCE))["objects"]


@pytest.mark.parametrize(
    ("dot", "words"),
    [
        ("garbage", "Error: syntax error in line 1 near 'garbage'"),
        ("digraph { a ->", "syntax error"),
        ("digraph { a [label=<<b>] }", "HTML"),
        ("", "Invalid Input"),
    ],
)
def test_a_text_that_is_no_dot_is_an_error_with_graphviz_words(dot, words):
    with pytest.raises(ValueError, match="Graphviz cannot lay out this DOT text: ") as caught:
        graphviz_engine.run_dot(dot, PATIENCE)
    assert words in str(caught.value)
    assert graphviz_engine.run_dot(SMALL, PATIENCE) == in_process(SMALL)


def test_a_warning_about_one_text_is_no_word_about_the_next():
    nowhere = "digraph { a -> b [tailport=nowhere] }"
    assert graphviz_engine.run_dot(nowhere, PATIENCE) is not None
    with pytest.raises(ValueError, match="syntax error") as caught:
        graphviz_engine.run_dot("digraph {", PATIENCE)
    assert "nowhere" not in str(caught.value)


@pytest.mark.usefixtures("fresh")
def test_threads_get_their_own_answers():
    dots = [dense(5 + index, 8 + index) for index in range(8)] * 5
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda dot: graphviz_engine.run_dot(dot, PATIENCE), dots))
    assert drawn == [in_process(dot) for dot in dots]
    assert len(engines()) == 1


# --- the time ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("fresh")
def test_past_its_time_a_layout_is_stopped_and_nothing_is_left_running():
    graphviz_engine.run_dot(SMALL, PATIENCE)
    process, threads = the_engine(), threading.enumerate()
    begin = time.monotonic()
    assert graphviz_engine.run_dot(ENDLESS, 0.3) is None
    assert time.monotonic() - begin >= 0.3
    assert not psutil.pid_exists(process.pid)
    assert engines() == []
    wait_until(lambda: set(threading.enumerate()) <= set(threads))


@pytest.mark.usefixtures("fresh")
def test_a_process_that_does_not_answer_at_all_is_replaced(monkeypatch):
    monkeypatch.setattr(supervisor, "PING_SECONDS", 1.0)
    graphviz_engine.run_dot(SMALL, PATIENCE)
    process = the_engine()
    process.suspend()
    assert graphviz_engine.run_dot(SMALL, PATIENCE) == in_process(SMALL)
    assert not psutil.pid_exists(process.pid)


def test_the_time_of_a_layout_does_not_include_the_start_of_the_engine(start, fake):
    fake("""
import time
time.sleep(1)
class AGraph:
    def __init__(self, string): pass
    def draw(self, **how): return b"{}"
    def close(self): pass
""")
    out, err = start(f"print(engine.run_dot({SMALL!r}, 0.7))").communicate(timeout=PATIENCE)
    assert (out, err) == ("{}\n", "")


@pytest.mark.usefixtures("fresh")
def test_no_time_is_no_layout():
    for seconds in (0, -1, float("nan")):
        assert graphviz_engine.run_dot(SMALL, seconds) is None
        assert engines() == []


def test_there_may_be_time_without_end():
    assert graphviz_engine.run_dot(SMALL, float("inf")) == in_process(SMALL)


@pytest.mark.usefixtures("fresh")
def test_a_warm_engine_is_the_one_that_is_used():
    graphviz_engine.ENGINE.start()
    process = the_engine()
    graphviz_engine.ENGINE.start()
    assert graphviz_engine.run_dot(SMALL, PATIENCE) == in_process(SMALL)
    assert the_engine() == process


@pytest.mark.usefixtures("fresh")
def test_warming_up_does_not_wait_for_a_layout():
    with ThreadPoolExecutor(1) as pool:
        graphviz_engine.run_dot(SMALL, PATIENCE)
        layout = pool.submit(graphviz_engine.run_dot, ENDLESS, PATIENCE)
        process = the_engine()
        wait_until_busy(process)
        graphviz_engine.ENGINE.start()
        assert is_alive(process)
        process.kill()
        assert layout.result() is None


# --- ends, expected and not --------------------------------------------------------------------


@pytest.mark.usefixtures("fresh")
def test_a_text_that_the_engine_dies_of_has_no_layout():
    graphviz_engine.run_dot(SMALL, PATIENCE)
    process = the_engine()
    with ThreadPoolExecutor(1) as pool:
        layout = pool.submit(graphviz_engine.run_dot, ENDLESS, PATIENCE)
        wait_until_busy(process)
        process.send_signal(signal.SIGSEGV)
        assert layout.result() is None
    assert not psutil.pid_exists(process.pid)


@pytest.mark.usefixtures("fresh")
def test_an_engine_that_died_at_rest_costs_no_layout():
    graphviz_engine.run_dot(SMALL, PATIENCE)
    process = the_engine()
    process.kill()
    wait_until(lambda: process.status() == psutil.STATUS_ZOMBIE)
    assert graphviz_engine.run_dot(SMALL, PATIENCE) == in_process(SMALL)
    assert the_engine() != process


@pytest.fixture(params=[True, False], ids=["as Python set it", "as TVM's solver sets it"])
def interruptible(request):
    """Whether Ctrl-C ends what waits for the system; a library may have said that it does not."""
    signal.siginterrupt(signal.SIGINT, request.param)
    yield
    signal.siginterrupt(signal.SIGINT, True)


@pytest.mark.usefixtures("fresh", "ctrl_c", "interruptible")
def test_ctrl_c_stops_the_layout_at_once_and_the_next_is_right():
    graphviz_engine.run_dot(SMALL, PATIENCE)
    process, threads = the_engine(), threading.enumerate()

    def interrupt():
        wait_until_busy(process)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        graphviz_engine.run_dot(ENDLESS, float("inf"))
    thread.join()
    assert not psutil.pid_exists(process.pid)
    wait_until(lambda: set(threading.enumerate()) <= set(threads))
    assert graphviz_engine.run_dot(SMALL, PATIENCE) == in_process(SMALL)


@pytest.mark.usefixtures("fresh")
def test_ctrl_c_in_the_terminal_does_not_reach_the_engine():
    graphviz_engine.ENGINE.start()
    process = the_engine()
    assert os.getpgid(process.pid) != os.getpgid(0)
    graphviz_engine.run_dot(SMALL, PATIENCE)
    process.send_signal(signal.SIGINT)
    assert graphviz_engine.run_dot(SMALL, PATIENCE) == in_process(SMALL)
    assert the_engine() == process


def test_a_killed_parent_leaves_no_engine_at_rest(start):
    parent = start(f"engine.run_dot({SMALL!r}, 20); print(flush=True); input()")
    parent.stdout.readline()
    process = the_engine(parent.pid)
    parent.kill()
    wait_until(lambda: not is_alive(process))


def test_a_killed_parent_leaves_no_layout_past_its_time(start):
    lines = f"engine.run_dot({SMALL!r}, 20); print(flush=True); engine.run_dot({ENDLESS!r}, 1.5)"
    parent = start(lines)
    parent.stdout.readline()
    process = the_engine(parent.pid)
    wait_until_busy(process)
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_alive(process))


def test_a_killed_parent_leaves_no_engine_even_if_a_fork_of_it_lives_on(start):
    parent = start(f"""
import os, sys
engine.run_dot({SMALL!r}, 20)
fork = os.fork()
if not fork:
    sys.stdin.read()
    os._exit(0)
print(engine.ENGINE.call(os.getpid), fork, flush=True)
input()
""")
    process, fork = (psutil.Process(int(pid)) for pid in parent.stdout.readline().split())
    parent.kill()
    wait_until(lambda: not is_alive(process))
    assert is_alive(fork)
    fork.kill()


def test_a_fork_has_an_engine_of_its_own(start):
    parent = start(f"""
import os, sys
first = engine.run_dot({SMALL!r}, 20)
theirs = engine.ENGINE.call(os.getpid)
fork = os.fork()
assert engine.run_dot({SMALL!r}, 20) == first
assert (engine.ENGINE.call(os.getpid) == theirs) == (fork != 0)
if fork:
    assert os.waitpid(fork, 0)[1] == 0
    assert engine.run_dot({SMALL!r}, 20) == first
    assert engine.ENGINE.call(os.getpid) == theirs
    print("right")
""")
    out, err = parent.communicate(timeout=PATIENCE)
    assert (out, err) == ("right\n", "")


@pytest.mark.parametrize(
    "lines",
    ["engine.ENGINE.start()", f"engine.run_dot({SMALL!r}, 20)", f"engine.run_dot({ENDLESS!r}, .2)"],
)
def test_python_ends_with_its_engine_ended_and_no_warning(start, lines):
    parent = start(
        f"import psutil\n{lines}\nprint(*(one.pid for one in psutil.Process().children()))"
    )
    out, err = parent.communicate(timeout=PATIENCE)
    assert (parent.returncode, err) == (0, "")
    assert (out == "\n") == ("ENDLESS" in lines or ".2" in lines)
    assert not [pid for pid in map(int, out.split()) if psutil.pid_exists(pid)]


# --- what it loads -----------------------------------------------------------------------------


def test_pygraphviz_is_loaded_in_the_other_process_only(start):
    parent = start(f"""
import sys
heavy = {{"pygraphviz", "json", "tvm", "numpy", "graphviz", "asyncio"}}
assert heavy.isdisjoint(sys.modules)
engine.run_dot({SMALL!r}, 20)
assert heavy.isdisjoint(sys.modules)
""")
    out, err = parent.communicate(timeout=PATIENCE)
    assert (parent.returncode, out, err) == (0, "", "")


def test_nothing_is_imported_from_the_directory_of_the_user(start, tmp_path):
    parent = start(f"""
import pathlib
for name in ("pygraphviz", "runpy", "tempfile", "struct"):
    pathlib.Path(f"{{name}}.py").write_text("import pathlib; pathlib.Path('ran').touch()")
assert engine.run_dot({SMALL!r}, 20)
""")
    out, err = parent.communicate(timeout=PATIENCE)
    assert (parent.returncode, out, err) == (0, "", "")
    assert (tmp_path / "tempfile.py").exists()
    assert not (tmp_path / "ran").exists()


def test_a_missing_pygraphviz_is_named(start, fake):
    fake("raise ImportError('no such library')")
    _, err = start(f"engine.run_dot({SMALL!r}, 20)").communicate(timeout=PATIENCE)
    assert err.splitlines()[-1] == (
        "ImportError: the layout engine cannot be loaded: no such library; install pygraphviz again"
    )


@pytest.mark.usefixtures("fresh")
def test_where_no_process_can_start_it_is_said(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    graphviz_engine.ENGINE.start()
    with pytest.raises(StartError, match=r"could not be started: .*No such file or directory"):
        graphviz_engine.run_dot(SMALL, PATIENCE)
