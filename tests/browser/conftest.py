"""A real JupyterLab in a real Chromium, one of each for all browser tests, and ended with these."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import irviz

if TYPE_CHECKING:
    from .shown import Shown

playwright_api = pytest.importorskip(
    "playwright.sync_api", reason="install the development extra: pip install 'irviz[dev]'"
)

_PATIENCE = 20_000  # milliseconds
playwright_api.expect.set_options(timeout=_PATIENCE)
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_START_SECONDS = 60
IS_IDLE = """() => window.jupyterapp?.shell.currentWidget?.sessionContext
    .session?.kernel?.status === 'idle'"""
"""Whether the notebook shown has a kernel that waits: it says `idle` before it has one, too."""
_PREPARED = """
import numpy as np
import irviz
from irviz.course.mlp import MyModule, MyModuleHighLevel
from tvm import relax
from tvm.script import relax as R
import irviz.explorer.actions as actions

def made_by(session, *passes):
    for name in passes:
        session = session.apply(name)
    return session

def stack(layers):
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 8), "float32"))
    params = [x]
    with builder.function("main"):
        with builder.dataflow():
            h = x
            for layer in range(layers):
                w = relax.Var(f"w_{layer}", R.Tensor((8, 8), "float32"))
                params.append(w)
                y = builder.emit(relax.op.matmul(h, w))
                y = builder.emit(relax.op.nn.gelu(y))
                h = builder.emit(relax.op.add(h, y))
            out = builder.emit_output(relax.op.tanh(h))
        builder.emit_func_output(out, params)
    return builder.get()

def pooled(x):
    x = relax.op.nn.adaptive_avg_pool1d(relax.op.expand_dims(x, 0), 8)  # a long name
    return relax.op.squeeze(x, 0)

def many_softmax(count):
    # of other shapes each, which become as many PrimFuncs
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x_{n}", R.Tensor((n + 2, 8, 4), "float32")) for n in range(count)]
    with builder.function("main", params):
        with builder.dataflow():
            found = [builder.emit(relax.op.nn.softmax(one)) for one in params]
            out = builder.emit_output(relax.Tuple(found))
        builder.emit_func_output(out)
    return builder.get()

OPERATORS = (relax.op.tanh, relax.op.exp, relax.op.nn.relu, relax.op.sigmoid, relax.op.nn.gelu)

def chain(count, steps=OPERATORS):
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            h = x
            for place in range(count):
                h = builder.emit(steps[place**3 % 11 % len(steps)](h))
            out = builder.emit_output(h)
        builder.emit_func_output(out)
    return builder.get()

def linears():
    from tvm.relax.frontend import nn

    class Model(nn.Module):
        def __init__(self):
            self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

        def forward(self, x):
            for layer in self.layers:
                x = nn.op.relu(layer(x))
            return x

    mod, _ = Model().export_tvm({"forward": {"x": nn.spec.Tensor((2, 8), "float32")}})
    return mod

def piped():
    with irviz.record() as recording:
        relax.get_pipeline("zero")(MyModuleHighLevel)
    return recording.session()

from irviz.course.digits import digits, mlp_params
params, images, labels = mlp_params(), digits().images[:10], digits().labels[:10]
mlp = irviz.Session(MyModule)
fused = made_by(
    irviz.Session(MyModuleHighLevel), "LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"
)
"""

# as in tests/conftest.py: the server starts in half the time
_JUPYTERLAB = """
import sys
sys.modules["rfc3987_syntax"] = None
from jupyterlab.labapp import main
sys.exit(main())
"""

SCRIPT = """
from tvm.script import ir as I, relax as R

@I.ir_module
class Dropped:
    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        y = R.add(x, x)
        return y
"""
"""A file with a module."""


def unused_port() -> int:
    """Return a port of the loopback address that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], url: str, log: Path, **environment: str) -> Iterator[None]:
    """Run a server until the block ends; the block begins when it answers."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"{command[0]} does not answer:\n{log.read_text()[-3000:]}")
                time.sleep(0.1)
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=20)


def write_notebook(path: Path, *sources: str) -> None:
    """Write a notebook of these code cells."""
    import nbformat  # which takes seconds

    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, path)


def complaints(page: playwright_api.Page) -> list[str]:
    """Return the list that the page's errors and warnings will be added to."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on(
        "console",
        lambda message: (
            found.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    return found


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="package")
def chromium() -> Iterator[playwright_api.Browser]:
    # the shell draws the same with a sixth less of the processor
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no browser: install Debian's package chromium to run the browser tests")
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def open_window(chromium: playwright_api.Browser) -> Iterator[playwright_api.Page]:
    page = chromium.new_page()
    page.set_default_timeout(_PATIENCE)
    yield page
    page.close()


@pytest.fixture
def window(open_window: playwright_api.Page) -> Iterator[playwright_api.Page]:
    """A window of 1440×900 for one's own pages; all tests share it, as a new one takes a second."""
    open_window.set_viewport_size({"width": 1440, "height": 900})
    open_window.emulate_media(color_scheme="light")
    yield open_window
    open_window.goto("about:blank")


@dataclass
class Offline:
    """A window without a network, for sessions that are opened from disk."""

    page: playwright_api.Page
    folder: Path
    wrong: list[str]

    def open(self, path: Path, height: int = 900, scheme: str = "light") -> playwright_api.Page:
        """Open a file; only the file itself may be asked for."""
        self.page.set_viewport_size({"width": 1440, "height": height})
        self.page.emulate_media(color_scheme=scheme)
        self.page.goto(path.as_uri())
        self.page.locator(".irviz-frame").wait_for()
        assert self.wrong.pop(0) == path.as_uri()
        return self.page

    def show(self, session: str) -> Shown:
        """Show the recording of what an expression gives, as `Lab.show` shows it with a kernel."""
        from .shown import Shown  # which needs what may not be installed

        path = self.folder / f"{hashlib.sha256(session.encode()).hexdigest()}.html"
        if not path.exists():
            made = eval(session, _prepared())
            made = made if isinstance(made, irviz.Session) else irviz.Session(made)
            made.save_html(path)
        page = self.open(path)
        return Shown(page, page.locator("body")).wait()


@functools.cache
def _prepared() -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(_PREPARED, namespace)
    return namespace


@pytest.fixture(scope="package")
def offline_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("offline")


@pytest.fixture
def offline(window: playwright_api.Page, offline_folder: Path) -> Iterator[Offline]:
    """A window for files from disk; at the end nothing may have been wrong, or asked for."""
    wrong: list[str] = []
    listeners = {
        "console": lambda message: wrong.append(message.text),
        "pageerror": lambda error: wrong.append(str(error)),
        "request": lambda request: wrong.append(request.url),
    }
    window.context.set_offline(True)
    for event, listener in listeners.items():
        window.on(event, listener)
    yield Offline(window, offline_folder, wrong)
    for event, listener in listeners.items():
        window.remove_listener(event, listener)
    window.context.set_offline(False)
    assert wrong == []


@dataclass
class Lab:
    """An open notebook: cells are added below, run and looked at."""

    page: playwright_api.Page
    folder: Path
    url: str
    token: str
    complaints: list[str]

    def show(self, session: str) -> Shown:
        """Show the explorer of what an expression gives, in a cell of its own."""
        from .shown import Shown  # which needs what may not be installed

        cell = self.run(f"explorer = irviz.explore({session})\nexplorer")
        return Shown(self.page, cell).wait()

    def run(self, source: str) -> playwright_api.Locator:
        """Add a cell below the others, run it to its end and return it; it must not fail."""
        index = self.page.evaluate(
            """async source => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                const cells = notebook.model.sharedModel;
                const index = cells.cells.length;
                cells.insertCell(index, {cell_type: 'code', source});
                notebook.activeCellIndex = index;
                await window.jupyterapp.commands.execute('notebook:run-cell');
                return index;
            }""",
            source,
        )
        failed = self.page.evaluate(
            """index => window.jupyterapp.shell.currentWidget.content.widgets[index].model
                .outputs.toJSON().filter(output => output.output_type === 'error')
                .map(output => output.traceback.join('\\n'))""",
            index,
        )
        assert not failed, failed[0]
        return self.page.locator(".jp-Notebook .jp-Cell").nth(index)

    def do(self, source: str) -> None:
        """Run Python in the notebook's kernel, without a cell; it must not fail."""
        self._ask(source, "None")

    def value(self, expression: str) -> object:
        """Return the value that an expression has in the kernel, by way of JSON."""
        text = self._ask("import json", f"json.dumps({expression})")
        return json.loads(ast.literal_eval(text))

    def expect_value(self, expression: str, wanted: object) -> None:
        """Wait until an expression has a value in the kernel: widgets say what they show later."""
        deadline = time.monotonic() + _PATIENCE / 1e3
        while (found := self.value(expression)) != wanted and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found == wanted

    def _ask(self, source: str, expression: str) -> str:
        reply = self.page.evaluate(
            """async ([code, value]) => {
                const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
                const asked = { code, store_history: false, user_expressions: { value } };
                return (await kernel.requestExecute(asked).done).content;
            }""",
            [source, expression],
        )
        assert reply["status"] == "ok", reply.get("traceback")
        answer = reply["user_expressions"]["value"]
        assert answer["status"] == "ok", answer
        return str(answer["data"]["text/plain"])

    def clear(self) -> None:
        """Delete all cells, so that a test begins with an empty page."""
        self.page.evaluate(
            """() => {
                const notebook = window.jupyterapp.shell.currentWidget.content;
                const cells = notebook.model.sharedModel;
                cells.deleteCellRange(0, cells.cells.length);
            }"""
        )

    def restart(self) -> None:
        """Give the notebook a new kernel, prepared as the first one was."""
        self.page.evaluate(
            """async () => {
                const context = window.jupyterapp.shell.currentWidget.sessionContext;
                await context.changeKernel({ name: 'python3' });
            }"""
        )
        self.page.wait_for_function(IS_IDLE)
        self.do(_PREPARED)

    def forgive(self) -> None:
        """Do not mind what the page has complained of until now."""
        self.complaints.clear()

    def theme(self, name: str) -> None:
        """Change JupyterLab's theme and wait until it is there."""
        self.page.evaluate(
            "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})",
            name,
        )
        light = "true" if "Light" in name else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
        # JupyterLab throws where its splash is to go twice
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")


@pytest.fixture(scope="package")
def open_lab(
    chromium: playwright_api.Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    write_notebook(folder / "test.ipynb")
    port, token = unused_port(), secrets.token_hex(16)
    command = [
        *(sys.executable, "-c", _JUPYTERLAB, "--no-browser", "--allow-root"),
        *("--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={token}"),
        f"--ServerApp.root_dir={folder}",
        *(f"--{app}.expose_app_in_browser=True" for app in ("LabApp", "JupyterNotebookApp")),
    ]
    home = folder / "home"
    settings_folder = home / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings_folder.mkdir(parents=True)
    no_news = settings_folder / "notification.jupyterlab-settings"
    no_news.write_text('{"fetchNews": "false"}')
    url = f"http://127.0.0.1:{port}"
    settings = {
        name: str(home) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")
    }
    with running(command, f"{url}/api/status?token={token}", folder / "log.txt", **settings):
        page = chromium.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(_PATIENCE)
        page.goto(f"{url}/lab/tree/test.ipynb?token={token}")
        page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.content?.model?.sharedModel"
        )
        page.wait_for_function(IS_IDLE)
        page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        lab = Lab(page, folder, url, token, complaints(page))
        lab.do(_PREPARED)
        yield lab
        page.close()


@pytest.fixture
def lab(open_lab: Lab) -> Iterator[Lab]:
    """The open notebook, without cells; at the end the page must not have complained."""
    yield open_lab
    open_lab.do("")  # what was under way is answered
    open_lab.clear()
    told, open_lab.complaints[:] = list(open_lab.complaints), []
    assert told == []


@pytest.fixture(scope="package")
def axe() -> Callable[[Shown], list[object]]:
    """Return what lists the serious and critical findings of axe-core in a viewer."""
    if not _AXE.exists():
        pytest.skip("no axe-core: run `npm ci` in irviz/explorer/viewer")
    program = _AXE.read_text(encoding="utf-8")

    def findings(viewer: Shown) -> list[object]:
        if not viewer.page.evaluate("() => 'axe' in window"):
            viewer.page.evaluate(f"() => {{ {program} }}")
        return list(viewer.root.evaluate(_FINDINGS))

    return findings


_AXE = Path(irviz.__file__).parent / "explorer/viewer/node_modules/axe-core/axe.min.js"
_FINDINGS = """async root => {
    const { passes, violations } = await axe.run(root, { resultTypes: ['violations'] });
    if (passes.length < 10) throw new Error(`only ${passes.length} rules had something to look at`);
    return violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
        .map(({ id, help, nodes }) => [id, help, ...nodes.slice(0, 3).map(
            node => `${node.html.slice(0, 200)} ${node.any.map(one => one.message)}`)]);
}"""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Tell of a test that failed what its page showed."""
    report: Any = yield
    found = getattr(item, "funcargs", {}).get("lab")
    if report.when != "teardown" and report.failed and found is not None:
        report.sections.append(("the notebook", json.dumps(found.page.evaluate(_STATE), indent=1)))
        picture = found.folder / f"{item.name}.png"
        found.page.screenshot(path=picture)
        report.sections.append(("the page", str(picture)))
    return report


_STATE = """() => {
    const notebook = window.jupyterapp.shell.currentWidget;
    const cells = notebook.content.widgets.map(cell => ({
        source: cell.model.sharedModel.source,
        count: cell.model.executionCount,
        state: cell.model.executionState,
        outputs: (cell.model.outputs?.toJSON() ?? []).map(output => JSON.stringify(output)
            .slice(0, 300)),
        shown: cell.node.isConnected,
        text: cell.node.innerText.slice(0, 300),
    }));
    return {kernel: notebook.sessionContext.session?.kernel?.status, cells};
}"""
