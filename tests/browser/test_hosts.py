"""The same explorer in its other hosts: the demo's page and Notebook 7."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import tvm

from irviz.course.mlp import MyModuleHighLevel


@contextlib.contextmanager
def command(
    folder: Path, *arguments: str, ended_by: signal.Signals, ignoring: str = ""
) -> Iterator[str]:
    """Run `irviz …` until the block ends; give the address it prints.

    Whatever the signal is that ends the command, none of its processes may be left. `ignoring` are
    the signals that are ignored at its start, as `nohup … &` does.
    """
    starts = ["sh", "-c", f'trap "" {ignoring}; exec "$@"', "sh"] if ignoring else []
    with (folder / "log.txt").open("wb") as log:
        process = psutil.Popen(
            [*starts, sys.executable, "-m", "irviz.cli.main", *arguments, "--no-browser"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
        )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=(\S+)", line)
        assert found, line + (folder / "log.txt").read_text()
        yield found[0]
        family = process.children(recursive=True)
        commands = [" ".join(one.cmdline()) for one in (process, *family)]
        assert any("irviz.cli.page_server" in command for command in commands)
        assert not any(found[1] in command for command in commands), "its token can be seen"
    finally:
        process.send_signal(ended_by)
        assert process.wait(timeout=60) == (-ended_by if ended_by == signal.SIGKILL else 0)
        process.stdout.close()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []


def complaints(page: Any) -> list[str]:
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


def test_the_demo_shows_the_mlp_and_does_the_main_job(chromium: Any, tmp_path: Path) -> None:
    with command(tmp_path, "demo", ended_by=signal.SIGINT, ignoring="INT TERM") as url:
        page = chromium.new_page(viewport={"width": 1300, "height": 900})
        page.set_default_timeout(60_000)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        said = complaints(page)
        page.goto(url)
        page.locator("#main svg.irviz .node[data-node='lv1']").first.click()
        page.get_by_role("button", name="Replace", exact=True).first.click()
        page.get_by_role("treeitem").filter(has_text="= equal").first.wait_for()
        page.get_by_role("tab", name="Save", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Save picture").click()
        assert download.value.path().read_text().startswith("<svg")
        page.close()
    assert said == []
    here = url.partition("?")[0]
    assert [address for address in asked if not address.startswith((here, f"blob:{here}"))] == []


def test_a_file_is_opened_in_the_browser_and_run_when_the_reader_agrees(
    chromium: Any, tmp_path: Path
) -> None:
    (tmp_path / "module.json").write_text(tvm.ir.save_json(MyModuleHighLevel))
    arguments = ("open", "module.json")
    with command(tmp_path, *arguments, ended_by=signal.SIGTERM, ignoring="INT TERM") as url:
        page = chromium.new_page()
        said = complaints(page)
        page.goto(url)
        page.locator("#main svg.irviz .node.operator").first.wait_for(timeout=60_000)
        page.get_by_role("button", name="Run", exact=True).first.click()
        page.get_by_text("runs code of module.json").first.wait_for()
        assert page.get_by_role("treeitem").filter(has_text="reference").count() == 0
        page.get_by_role("button", name="Run it").first.click()
        page.get_by_role("treeitem").filter(has_text="reference").wait_for()
        page.close()
    assert said == []


def test_notebook_7_shows_the_explorer(chromium: Any, open_lab: Any) -> None:
    """Notebook 7 is an extension of the server that JupyterLab has."""
    page = chromium.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{open_lab.url}/notebooks/explorer.ipynb?token={open_lab.token}")
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    page.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']").wait_for()
    page.keyboard.press("Shift+Enter")
    page.locator(".irviz-viewer svg.irviz .node[data-node='lv1']").first.click()
    page.locator(".irviz-inspector", has_text="lv1").wait_for()
    page.close()
