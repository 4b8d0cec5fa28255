"""What the tests share, for measurements with the same modules and second readings."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).parents[1] / "tests"


def from_tests(name: str) -> ModuleType:
    """Return a module or package of the tests that has no tests in it."""
    spec = importlib.util.spec_from_file_location("irviz_bench_conftest", TESTS / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    conftest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conftest)
    loaded: ModuleType = conftest._loaded(name)
    return loaded
