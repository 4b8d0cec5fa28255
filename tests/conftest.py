"""What the tests of several rooms share."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def modules() -> ModuleType:
    """Return tests/modules.py, the small IRModules; the tests are no package to import it from."""
    path = Path(__file__).with_name("modules.py")
    spec = importlib.util.spec_from_file_location("irviz_test_modules", path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # where TVMScript looks for the source
    spec.loader.exec_module(loaded)
    return loaded


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Fail a run that was told to skip nothing (IRVIZ_NO_SKIPS) and did."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped and os.environ.get("IRVIZ_NO_SKIPS"):
        terminalreporter.section("skipped, though nothing may be", red=True)
        terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED
