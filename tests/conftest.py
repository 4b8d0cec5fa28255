"""What the tests of several rooms share."""

import contextlib
import functools
import gc
import importlib.util
import inspect
import os
import signal
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

if "PYTEST_XDIST_WORKER" not in os.environ:  # kernels are kept for these tests alone
    _kernels = tempfile.TemporaryDirectory(prefix="kernels-of-tests-")
    os.environ["IRVIZ_KERNELS"] = _kernels.name

# jsonschema would compile 38 grammars for it, for seconds, in each process that imports nbformat
sys.modules.setdefault("rfc3987_syntax", None)

# the collector would look again and again through what is imported, as long as the tests run
gc.disable()

_LIBRARIES = ("<", *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
_frame_info = inspect.getframeinfo


def _frame_info_of_our_code(frame: Any, context: int = 1) -> inspect.Traceback:
    """Return what inspect does, without the lines of libraries, which take long to find.

    TVMScript's decorators ask for the lines of all frames, pytest's included.
    """
    if isinstance(frame, FrameType) and frame.f_code.co_filename.startswith(_LIBRARIES):
        code = frame.f_code
        return inspect.Traceback(code.co_filename, frame.f_lineno, code.co_name, None, None)
    return _frame_info(frame, context)


inspect.getframeinfo = _frame_info_of_our_code


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what irviz writes about the user out of the user's folders; processes inherit it."""
    folder = str(tmp_path_factory.mktemp("user"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_STATE_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, folder)
        yield


class _ByFile(LoadFileScheduling):
    """A file's tests run in one process, and all tests with the browser in one: they share it."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "tests/browser" if file.startswith("tests/browser/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    """Say how tests are distributed over processes."""
    return _ByFile(config, log)


@pytest.fixture(scope="session")
def modules() -> ModuleType:
    """Return tests/modules.py, the small IRModules."""
    return _loaded("modules")


@pytest.fixture(scope="session")
def constructs() -> ModuleType:
    """Return tests/constructs, the IRModules with everything that can stand in one."""
    return _loaded("constructs")


@pytest.fixture(scope="session")
def oracle() -> ModuleType:
    """Return tests/oracle.py, the second reading of Relax functions."""
    return _loaded("oracle")


@pytest.fixture(scope="session")
def diff_by_structure() -> ModuleType:
    """Return tests/diff_by_structure.py, which compares a diff with TVM's structural equality."""
    return _loaded("diff_by_structure")


@pytest.fixture(scope="session")
def diff_by_values() -> ModuleType:
    """Return tests/diff_by_values.py, which compares a diff with the values of runs."""
    return _loaded("diff_by_values")


@pytest.fixture(scope="session")
def exchanged_folders() -> ModuleType:
    """Return tests/exchanged_folders.py, which plants kernels and exchanges their folders."""
    return _loaded("exchanged_folders")


@pytest.fixture(scope="session")
def mutants() -> ModuleType:
    """Return tests/mutants.py, which makes equal and other modules of modules."""
    return _loaded("mutants")


@pytest.fixture(scope="session")
def symbolic_run() -> ModuleType:
    """Return tests/symbolic_run.py, which tells what the order of bindings changes."""
    return _loaded("symbolic_run")


@pytest.fixture
def full_disk() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """Return a context in which no file gets more than 16 KB, as on a disk that is full."""

    @contextlib.contextmanager
    def limited() -> Iterator[None]:
        import resource  # which Windows has not

        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16384, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.fixture
def forgets_registrations() -> Iterator[None]:
    """Forget at the end which passes, kernels and definitions were registered in the test."""
    from irviz.transforms.kernels import library
    from irviz.transforms.passes import catalog

    registries: list[dict[str, Any]]
    registries = [
        catalog.PASSES_BY_NAME,
        library.KERNELS_BY_NAME,
        library.DEFINITIONS_BY_NAME,
    ]
    before = [dict(registry) for registry in registries]
    yield
    for registry, known in zip(registries, before, strict=True):
        registry.clear()
        registry.update(known)


@pytest.fixture
def only_irvizs_kernels(forgets_registrations: None) -> None:  # noqa: ARG001 - it restores them
    """Leave in the library what irviz itself puts there: other tests register kernels too."""
    from irviz.transforms.kernels import library

    for name in list(library.kernels()):
        if name not in ("env.linear", "env.relu") and not name.startswith(("numpy.", "torch.")):
            del library.KERNELS_BY_NAME[name]


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, also where the tests were started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# the same cases in each run: what fails for one fails for all
hypothesis.settings.register_profile("irviz", derandomize=True, deadline=None, max_examples=25)
hypothesis.settings.register_profile(
    "deep", hypothesis.settings.get_profile("irviz"), max_examples=100
)  # of `make deep`
hypothesis.settings.load_profile("irviz")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a `construct` once for each, by its name."""
    if "construct" in metafunc.fixturenames:
        metafunc.parametrize("construct", _loaded("constructs").CONSTRUCTS)


def _loaded(name: str) -> ModuleType:
    """Return a module or package of this folder, run at its first use.

    Its code is run here and not by the import system, whose frames TVMScript would look through
    again and again, at every decorator.
    """
    full_name = f"tests.{name}"  # as tests import it that can do so
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests with the browser, and begin with what takes longest."""
    for item in items:
        if "tests/browser/" in item.nodeid:
            item.add_marker("browser")
    slow = ("browser", "worker", "build")
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in slow])


def pytest_configure() -> None:
    """Let commands that are tested in this process not fork it: it has threads, and other tests."""
    from irviz.worker import supervisor

    supervisor.fork_workers_from_here = _nothing  # before a module imports it


def _nothing() -> None:
    """Do nothing."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the collector look only at what the tests make, and check their markers."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()
    _check_markers(session)


def _check_markers(session: pytest.Session) -> None:
    """Let no test of `make quick` do what it has a marker for, so that no marker is forgotten."""
    if session.config.option.markexpr.startswith("not ("):
        import tvm

        from irviz.view.graph.graphviz_engine import ENGINE
        from irviz.worker.supervisor import Worker

        for owner, name in ((tvm, "compile"), (tvm.tirx, "build")):
            setattr(owner, name, functools.partial(_forgotten, "build"))
        for name in ("start", "call"):
            real = getattr(Worker, name)
            setattr(Worker, name, functools.partialmethod(_unless_layout, ENGINE, real))
        sys.addaudithook(_audit)


def _unless_layout(worker: object, engine: object, real: Any, *rest: Any, **options: Any) -> Any:
    """Call a method of the layout engine, the one worker that pictures need."""
    if worker is not engine:
        _forgotten("worker")
    return real(worker, *rest, **options)


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event == "subprocess.Popen":
        command = " ".join(map(str, arguments[1]))
        if sys.executable in command and "irviz.worker.worker_main" not in command:
            _forgotten("worker")


def _forgotten(marker: str, *_: object, **__: object) -> NoReturn:
    pytest.fail(f"a test that does this needs pytest.mark.{marker}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs PyTorch where it is not installed."""
    if item.get_closest_marker("torch") and importlib.util.find_spec("torch") is None:
        pytest.skip("this needs PyTorch: pip install 'irviz[torch]'")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write what was skipped to IRVIZ_SKIPPED; fail a run that skips against IRVIZ_NO_SKIPS."""
    skipped = terminalreporter.stats.get("skipped", [])
    if path := os.environ.get("IRVIZ_SKIPPED"):
        Path(path).write_text("".join(f"{report.nodeid}\n" for report in skipped))
    if skipped and os.environ.get("IRVIZ_NO_SKIPS"):
        terminalreporter.section("skipped, though nothing may be", red=True)
        terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED
