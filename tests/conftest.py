"""What the tests of several rooms share."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

collect_ignore = ["constructs", "modules.py", "oracle.py"]  # no tests: what the tests share


@pytest.fixture(scope="session")
def modules() -> ModuleType:
    """Return tests/modules.py, the small IRModules; the tests are no package to import it from."""
    return _loaded("modules")


@pytest.fixture(scope="session")
def constructs() -> ModuleType:
    """Return tests/constructs, the IRModules with everything that can stand in one."""
    return _loaded("constructs")


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """Return tests/oracle.py, the second reading of Relax functions."""
    return _loaded("oracle")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a `construct` once for each, by its name."""
    if "construct" in metafunc.fixturenames:
        metafunc.parametrize("construct", _loaded("constructs").CONSTRUCTS)


def _loaded(name: str) -> ModuleType:
    """Return a module or package of this folder, run at its first use.

    Its code is run here and not by the import system, whose frames TVMScript would look through
    again and again, at every decorator.
    """
    full_name = f"irviz_test_{name}"
    if full_name not in sys.modules:
        path = Path(__file__).with_name(name)
        if path.is_dir():
            _run(full_name, path / "__init__.py", path, *sorted(path.glob("[!_]*.py")))
        else:
            _run(full_name, path.with_suffix(".py"))
    return sys.modules[full_name]


def _run(full_name: str, path: Path, package: Path | None = None, *parts: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        full_name, path, submodule_search_locations=package and [str(package)]
    )
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = loaded  # where TVMScript looks for the source
    for part in parts:
        _run(f"{full_name}.{part.stem}", part)
    exec(spec.loader.get_code(full_name), vars(loaded))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Fail a run that was told to skip nothing (IRVIZ_NO_SKIPS) and did."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped and os.environ.get("IRVIZ_NO_SKIPS"):
        terminalreporter.section("skipped, though nothing may be", red=True)
        terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED
