"""What the tests of runs share."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from irviz.runtime.remote import connection

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
def server(servers, tmp_path):
    """Yield a server with a key, for runs in this process."""
    (tmp_path / "there").mkdir()
    server = servers.Server(servers.free_port(), tmp_path / "there", key="lab")
    yield server.start()
    connection._connections.clear()
    server.end()
