"""What the tests of runs share."""

import contextlib
import gc
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from irviz.runtime.rpc_vm import connections
from irviz.worker import responses

collect_ignore = ["servers.py"]  # no tests: what the tests share


@pytest.fixture(scope="session")
def servers() -> ModuleType:
    """Return tests/runtime/servers.py, TVM's servers and others."""
    name = "irviz_test_servers"
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name("servers.py"))
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded  # where dataclasses looks
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture
def told(tmp_path):
    """Return a function that gives the new progress messages of runs in this process.

    They go to a file, as those of a worker go to a pipe.
    """
    with (tmp_path / "frames").open("w+b") as frames:
        read = 0

        def new():
            nonlocal read
            frames.seek(read)
            found = []
            with contextlib.suppress(EOFError):
                while True:
                    found.append(responses.receive_frame(frames)[1].decode())
                    read = frames.tell()
            return found

        responses.set_pipe(frames)
        yield new
        responses.set_pipe(None)


@pytest.fixture(scope="module")
def lasting_server(servers, tmp_path_factory):
    """Yield a server with a key: it takes a second to start, and forks itself for each client."""
    gc.freeze()  # or each test would wait until the collector has looked at all that there is
    server = servers.Server(servers.free_port(), tmp_path_factory.mktemp("there"), key="lab")
    yield server.start()
    server.end()


@pytest.fixture
def server(lasting_server):
    """Yield a server with a key, for runs in this process, which nobody is connected to."""
    yield lasting_server
    connections.clear()
    gc.collect()  # what is left of a connection that failed
    if lasting_server.process is None:
        lasting_server.start()
