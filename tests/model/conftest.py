"""What the tests of graphs share."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

collect_ignore = ["graphs.py"]  # no tests: what the tests share


@pytest.fixture(scope="session")
def graphs() -> ModuleType:
    """Return tests/model/graphs.py, makers of graphs; the tests are no package to import from."""
    spec = importlib.util.spec_from_file_location(
        "irviz_test_graphs", Path(__file__).with_name("graphs.py")
    )
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
