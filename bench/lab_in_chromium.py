"""JupyterLab in Chromium, to measure what a notebook's reader waits for."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
_START_SECONDS = 60

_ADD = """source => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    const cells = notebook.model.sharedModel;
    cells.insertCell(cells.cells.length, {cell_type: 'code', source});
    notebook.activeCellIndex = cells.cells.length - 1;
    return notebook.activeCellIndex;
}"""
_RUN = "() => { window.jupyterapp.commands.execute('notebook:run-cell'); }"
_DONE = """index => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index];
    return cell && cell.model.executionCount !== null && cell.model.executionState !== 'running';
}"""
_CLEAR = """() => {
    const cells = window.jupyterapp.shell.currentWidget.content.model.sharedModel;
    cells.deleteCellRange(0, cells.cells.length);
}"""
# A message posted from a frame's callback is handled when that frame has been painted.
PAINTED = """
const frame = () => new Promise(requestAnimationFrame);
const painted = () => new Promise(resolve => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(0);
});
const until = async (find, seconds = 60) => {
    for (const end = performance.now() + 1e3 * seconds; performance.now() < end; await frame()) {
        const found = find();
        if (found) return found;
    }
    const said = [...document.querySelectorAll('.jp-OutputArea-output')].map(o => o.innerText);
    throw new Error(`waited for ${seconds} s; the cells say: ${said.join(' ').slice(-3000)}`);
};
const sized = svg => svg?.getBoundingClientRect().width > 0 ? svg : null;
"""
_FIRST_PAINT = f"""async index => {{ {PAINTED}
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index].node;
    await frame();
    await frame();
    const asked = Date.now(), start = performance.now();
    window.jupyterapp.commands.execute('notebook:run-cell');
    await until(() => sized(cell.querySelector('.irviz-canvas svg.irviz')));
    const there = Date.now();
    await painted();
    return {{asked, there, seconds: (performance.now() - start) / 1e3}};
}}"""


@dataclass(frozen=True)
class Memory:
    """What a tab holds, in MB: its JavaScript heap, and its process without what it shares."""

    heap: float
    process: float


@dataclass
class Tab:
    """An open notebook with a kernel of its own."""

    page: Any
    browser: Any

    def run(self, source: str) -> str:
        """Run a cell to its end and return what it printed; raise RuntimeError if it failed."""
        index = self.page.evaluate(_ADD, source)
        self.page.evaluate(_RUN)
        self.page.wait_for_function(_DONE, arg=index, timeout=120_000)
        outputs = self.page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".jp-OutputArea")
        failed = outputs.locator("[data-mime-type='application/vnd.jupyter.stderr']")
        if failed.count() and "Traceback" in failed.first.inner_text():
            raise RuntimeError(failed.first.inner_text())
        return str(outputs.locator("pre").first.inner_text()) if outputs.count() else ""

    def value(self, expression: str) -> Any:
        """Return the value that an expression has in the kernel, by way of JSON."""
        return json.loads(self.run(f"import json; print(json.dumps({expression}))"))

    def first_paint(self, source: str) -> dict[str, float]:
        """Run a cell that shows the explorer; return the seconds until it has been painted.

        With them come the moments, in ms since the epoch, at which the cell was `asked` for and
        the picture was `there` to be painted.
        """
        index = self.page.evaluate(_ADD, source)
        found: dict[str, float] = self.page.evaluate(_FIRST_PAINT, index)
        self.page.wait_for_function(_DONE, arg=index)
        return found

    def clear(self) -> None:
        """Delete all cells."""
        self.page.evaluate(_CLEAR)

    def memory(self) -> Memory:
        """Measure what the page's process holds when its garbage is collected."""
        session = self.page.context.new_cdp_session(self.page)
        session.send("Performance.enable")
        for _ in range(2):
            session.send("HeapProfiler.collectGarbage")
        metrics = session.send("Performance.getMetrics")["metrics"]
        heap = next(one["value"] for one in metrics if one["name"] == "JSHeapUsedSize")
        session.detach()
        system = self.browser.new_browser_cdp_session()
        processes = system.send("SystemInfo.getProcessInfo")["processInfo"]
        system.detach()
        renderers = [psutil.Process(p["id"]) for p in processes if p["type"] == "renderer"]
        most = max(one.memory_full_info().pss for one in renderers)  # the others are spare ones
        return Memory(heap / 2**20, most / 2**20)


@dataclass
class Lab:
    """A JupyterLab server and a browser."""

    url: str
    token: str
    folder: Path
    browser: Any

    @contextlib.contextmanager
    def notebook(self) -> Iterator[Tab]:
        """Open a new notebook, in a new process of the browser and with a new kernel."""
        notebook = nbformat.v4.new_notebook()
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
        name = secrets.token_hex(4)
        nbformat.write(notebook, self.folder / f"{name}.ipynb")
        context = self.browser.new_context(viewport={"width": 1400, "height": 900})
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{self.url}/lab/workspaces/{name}/tree/{name}.ipynb?token={self.token}")
        page.wait_for_function(
            "() => window.jupyterapp?.shell.currentWidget?.content?.model?.sharedModel"
        )
        page.wait_for_function(
            """() => window.jupyterapp.shell.currentWidget.sessionContext
                .session?.kernel?.status === 'idle'"""
        )
        page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        try:
            yield Tab(page, self.browser)
            page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        finally:
            context.close()


@contextlib.contextmanager
def lab(*flags: str) -> Iterator[Lab]:
    """Run a JupyterLab server and a browser, with more flags, until the block ends."""
    with tempfile.TemporaryDirectory() as name:
        folder, token = Path(name), secrets.token_hex(16)
        with _server(folder, token) as url, browser(*flags) as chromium:
            yield Lab(url, token, folder, chromium)


@contextlib.contextmanager
def browser(*flags: str) -> Iterator[Any]:
    """Run a browser, with more flags if there are some, until the block ends."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=[*_FLAGS, *flags])
        try:
            yield chromium
        finally:
            chromium.close()


@contextlib.contextmanager
def _server(folder: Path, token: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        *("--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={token}"),
        *(f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True"),
    ]
    home = folder / "home"
    no_news = home / "lab/user-settings/@jupyterlab/apputils-extension"
    no_news.mkdir(parents=True)
    (no_news / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    homes = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **dict.fromkeys(homes, str(home))},
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(process, f"{url}/api/status?token={token}")
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=20)


def _wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):
            return
        time.sleep(0.1)
    raise RuntimeError("JupyterLab does not answer")
