"""The same explorer in its other hosts: the demo's page and Notebook 7."""

from __future__ import annotations

import contextlib
import re
import secrets
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import psutil

SOURCE = """
import irviz
from irviz.course.mlp import MyModule
irviz.explore(MyModule)
"""


@contextlib.contextmanager
def command(
    folder: Path, *arguments: str, ended_by: signal.Signals = signal.SIGINT
) -> Iterator[str]:
    """Run `irviz …` until the block ends; give the address it prints."""
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "irviz.app.command", *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
        )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+", line)
        assert found, line + (folder / "log.txt").read_text()
        yield found[0]
    finally:
        process.send_signal(ended_by)
        assert process.wait(timeout=20) == 0
        process.stdout.close()


def test_the_demo_shows_the_mlp_and_does_the_main_job(chromium: Any, tmp_path: Path) -> None:
    with command(tmp_path, "demo", "--no-browser") as url:
        page = chromium.new_page(viewport={"width": 1300, "height": 900})
        page.set_default_timeout(30_000)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        page.locator(".irviz-canvas svg.irviz").first.wait_for()
        page.locator(".irviz-canvas").first.locator(".node[data-node='lv1']").click()
        page.get_by_role("button", name="Swap").click()
        page.locator(".irviz-stages .irviz-badge", has_text="= equal").wait_for()
        page.locator(".irviz-tabs").get_by_role("tab", name="Save", exact=True).click()
        page.get_by_role("button", name="Save SVG").click()
        page.get_by_text("saved ").wait_for()
        page.close()
    here = url.partition("?")[0]
    assert [address for address in asked if not address.startswith((here, f"blob:{here}"))] == []
    assert (tmp_path / "main-1.svg").read_text().startswith("<svg")


def test_the_page_is_shown_to_nobody_without_its_token(tmp_path: Path) -> None:
    with command(tmp_path, "demo", "--no-browser") as url:
        with urllib.request.urlopen(url.partition("?")[0], timeout=10) as response:
            assert "/login" in response.geturl()
            assert b"irviz.ipynb" not in response.read()
        assert "/login" not in asked(url)


def test_nothing_is_left_running_when_it_is_ended(tmp_path: Path) -> None:
    before = set(psutil.Process().children(recursive=True))
    with (
        command(tmp_path, "demo", "--no-browser", ended_by=signal.SIGINT) as one,
        command(tmp_path, "demo", "--no-browser", ended_by=signal.SIGTERM) as other,
    ):
        with ThreadPoolExecutor() as pool:
            list(pool.map(asked, (one, other)))  # which starts a kernel
        family = set(psutil.Process().children(recursive=True)) - before
        commands = [" ".join(process.cmdline()) for process in family]
        assert sum("ipykernel" in command for command in commands) >= 2
        tokens = [url.partition("token=")[2] for url in (one, other)]
        assert not any(token in command for command in commands for token in tokens)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []


def asked(url: str) -> str:
    """Return the address that a page comes from in the end."""
    with urllib.request.urlopen(url, timeout=60) as response:
        response.read()
        return str(response.geturl())


def test_a_file_is_opened_in_the_browser(chromium: Any, tmp_path: Path) -> None:
    script = (
        "import tvm; from irviz.course.mlp import MyModuleHighLevel as mod;"
        "open('module.json', 'w').write(tvm.ir.save_json(mod))"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    with command(tmp_path, "open", "module.json", "--no-browser") as url:
        page = chromium.new_page()
        page.goto(url)
        page.locator(".irviz-canvas .node.operator").first.wait_for(timeout=30_000)
        page.close()


def test_notebook_7_shows_the_explorer(
    chromium: Any, serving: Any, free_port: int, tmp_path: Path
) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SOURCE)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, tmp_path / "test.ipynb")
    token = secrets.token_hex(16)
    server = [
        *(sys.executable, "-m", "notebook", "--no-browser", "--allow-root", "--ip=127.0.0.1"),
        *(f"--port={free_port}", f"--IdentityProvider.token={token}"),
        f"--ServerApp.root_dir={tmp_path}",
    ]
    url = f"http://127.0.0.1:{free_port}"
    home = str(tmp_path / "home")
    with serving(
        server, f"{url}/api/status?token={token}", tmp_path / "log.txt", JUPYTER_CONFIG_DIR=home
    ):
        page = chromium.new_page()
        page.set_default_timeout(30_000)
        page.goto(f"{url}/notebooks/test.ipynb?token={token}")
        page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
        page.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']").wait_for()
        page.keyboard.press("Shift+Enter")
        page.locator(".irviz-canvas svg.irviz").first.wait_for()
        page.locator(".irviz-canvas").first.locator(".node[data-node='lv1']").click()
        page.locator(".irviz-details h4", has_text="lv1").wait_for()
        page.close()
