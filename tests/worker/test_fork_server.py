"""Workers that need TVM are forked where it is loaded, and are like workers that load it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from irviz.worker.supervisor import (
    CrashedError,
    ForkedProcess,
    ForkServer,
    StartError,
    TimedOutError,
    Worker,
)

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are forked on Linux"),
]

PARALLEL = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def doubled(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in T.parallel(64):
            with T.sblock("B"):
                v = T.axis.spatial(64, i)
                B[v] = A[v] * T.float32(2)
"""


@pytest.fixture
def worker():
    one = Worker()
    yield one
    one.stop()


@pytest.fixture
def other_server():
    """Let workers be forked by a server that only this test has."""
    end_server()
    yield
    end_server()


def end_server():
    """End the server of this process, if there is one; the next worker starts another."""
    servers = [one for one in psutil.Process().children() if is_server(one)]
    for one in servers:
        one.kill()
    psutil.wait_procs(servers, timeout=60)


def is_server(process):
    return any("fork_server_main" in word for word in process.cmdline())


def server_of(worker):
    return worker.call(os.getppid)


def test_all_workers_that_need_tvm_are_forks_of_one_process(worker):
    other = Worker()
    assert server_of(worker) == server_of(other) != os.getpid()
    assert worker.call(os.getpid) != other.call(os.getpid)
    other.stop()


def test_a_worker_that_is_replaced_comes_from_the_same_server(worker):
    before, server = worker.call(os.getpid), server_of(worker)
    with pytest.raises(CrashedError, match=r"SIGSEGV"):
        worker.call(lambda: os.kill(os.getpid(), signal.SIGSEGV))
    with pytest.raises(CrashedError, match=r"exit code 3"):
        worker.call(lambda: os._exit(3))
    with pytest.raises(TimedOutError):
        worker.call(time.sleep, 3600, seconds=0.1)
    assert worker.call(os.getpid) != before
    assert server_of(worker) == server
    assert not psutil.pid_exists(before)
    assert psutil.STATUS_ZOMBIE not in {one.status() for one in psutil.Process(server).children()}


@pytest.mark.usefixtures("other_server")
def test_a_worker_need_not_load_what_its_calls_are_known_to_need(worker):
    import irviz.runtime.run
    import irviz.transforms.apply_transform  # noqa: F401

    needed = {"irviz.runtime.run_jobs", "irviz.transforms.apply_transform"}
    assert set(worker.call(lambda: list(sys.modules), answer=list[str])) >= needed


def test_a_worker_looks_for_modules_files_and_variables_where_its_parent_does(
    worker, tmp_path, monkeypatch
):
    server_of(worker)
    worker.stop()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "module_of_the_user.py").write_text("VALUE = 7", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("IRVIZ_TEST_NEW", "new")
    monkeypatch.delenv("PATH")

    def found():
        import module_of_the_user

        return (
            str(Path.cwd()),
            module_of_the_user.VALUE,
            os.getenv("IRVIZ_TEST_NEW"),
            os.getenv("PATH"),
        )

    assert worker.call(found) == [str(tmp_path), 7, "new", None]


def test_a_worker_starts_in_a_folder_that_was_deleted(worker, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert worker.call(abs, -1) == 1


def test_a_worker_has_only_its_own_streams(worker):
    def open_files():
        links = list(Path("/proc/self/fd").iterdir())
        return [str(link.readlink()) for link in links if link.is_symlink()]

    streams = worker.call(open_files)
    assert not any(name.startswith("socket:") for name in streams)
    assert sum(name.startswith("pipe:") for name in streams) == 2
    assert sum(name.startswith("/memfd:irviz-") for name in streams) == 1  # for the answer
    assert sum("irviz-" in name for name in streams) == 2


@pytest.mark.parametrize("inherited", [signal.default_int_handler, signal.SIG_IGN])
@pytest.mark.usefixtures("other_server")
def test_signals_do_in_a_worker_what_they_do_in_python(worker, inherited):
    def handlers():
        return [str(signal.getsignal(one)) for one in (signal.SIGTERM, signal.SIGINT)]

    before = signal.signal(
        signal.SIGINT, inherited
    )  # a new Python keeps what is ignored, as under nohup
    try:
        assert worker.call(handlers) == [str(signal.SIG_DFL), str(inherited)]
    finally:
        signal.signal(signal.SIGINT, before)
    assert worker.call(lambda: os.getsid(0) == os.getpgid(0) == os.getpid())


def test_threads_of_libraries_work_in_a_worker(worker):
    def product():
        import tvm

        ones = tvm.runtime.tensor(np.ones(64, "float32"))
        out = tvm.runtime.tensor(np.zeros(64, "float32"))
        tvm.compile(tvm.script.from_source(PARALLEL), target="llvm")["doubled"](ones, out)
        large = np.ones((500, 500))
        return float(out.numpy().sum()), float((large @ large).sum())

    assert worker.call(product) == [128.0, 500.0**3]


def test_the_server_is_replaced_when_it_dies_and_its_workers_end_with_it(worker):
    before, server = worker.call(os.getpid), server_of(worker)
    left = psutil.Process(before)
    os.kill(server, signal.SIGKILL)
    assert psutil.wait_procs([left], timeout=60)[1] == []
    assert server_of(worker) != server


def test_the_server_kills_the_children_of_workers_when_it_is_ended(worker):
    child = psutil.Process(worker.call(lambda: subprocess.Popen(["sleep", "3600"]).pid))
    os.kill(server_of(worker), signal.SIGTERM)
    assert psutil.wait_procs([child], timeout=60)[1] == []


def test_a_server_that_hangs_is_killed_with_its_workers(tmp_path):
    with (tmp_path / "printed").open("w") as printed:
        server = ForkServer(patience=0.5)
        os.kill(server.pid, signal.SIGSTOP)
        process = ForkedProcess(server, printed.fileno())
        assert process.end() is None
        assert not server.is_alive
        with process.requests, process.answers:
            assert process.answers.read() == b""


@pytest.mark.usefixtures("other_server")
def test_why_tvm_cannot_be_loaded_is_said(tmp_path, monkeypatch):
    (tmp_path / "tvm.py").write_text("raise ImportError('no TVM here')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(StartError, match="could not be started: ImportError: no TVM here"):
        Worker().call(abs, -1)


FORKED = """
import json, os, sys
from pathlib import Path
from irviz.worker.supervisor import Worker, fork_workers_from_here
from irviz.worker.worker_main import load_tvm

def seen():
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    names = [str(link.readlink()) for link in links]
    return [sys.modules["only_here"].value, os.getsid(0) == os.getpid(), "secret" in str(names)]

load_tvm()
sys.modules["only_here"] = type(sys)("only_here")
sys.modules["only_here"].value = 7
secret = open("secret", "w")
fork_workers_from_here()
worker = Worker()
print(json.dumps([os.getpid(), worker.call(os.getppid), worker.call(os.getpid), worker.call(seen)]))
sys.stdout.flush()
sys.stdin.readline()
"""


@pytest.mark.parametrize("by", ["its end", "SIGKILL"])
def test_a_process_that_has_loaded_tvm_forks_its_workers_which_have_no_file_of_it(tmp_path, by):
    (tmp_path / "program.py").write_text(FORKED, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        here, server, worker, seen = json.loads(process.stdout.readline())
        assert seen == [7, True, False]
        assert psutil.Process(server).ppid() == here == process.pid
        left = [psutil.Process(server), psutil.Process(worker)]
        if by == "SIGKILL":
            process.kill()
        else:
            process.communicate("end\n", timeout=60)
            assert process.returncode == 0
    assert psutil.wait_procs(left, timeout=60)[1] == []
