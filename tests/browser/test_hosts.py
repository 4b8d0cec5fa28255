"""The same viewer in its other hosts: the page of `irviz demo` and `irviz open`, and Notebook 7."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import tvm
from PIL import Image
from playwright.sync_api import expect

from irviz.course.mlp import MyModuleHighLevel

from .conftest import IS_IDLE, Lab, complaints, write_notebook
from .shown import Shown

EXPLORER = "import irviz\nfrom irviz.course.mlp import MyModule\nirviz.explore(MyModule)"


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
        commands = [command_line(one) for one in (process, *family)]
        assert family
        assert not any(found[1] in command for command in commands), "its token can be seen"
    finally:
        process.send_signal(ended_by)
        assert process.wait(timeout=60) == (-ended_by if ended_by == signal.SIGKILL else 0)
        process.stdout.close()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []


def command_line(process: psutil.Process) -> str:
    """Return how a process was started, nothing if it ended: that of a run ends with the run."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def test_the_demo_shows_the_mlp_and_does_the_main_job(window: Any, tmp_path: Path) -> None:
    with command(tmp_path, "demo", ended_by=signal.SIGINT, ignoring="INT TERM") as url:
        asked: list[str] = []
        window.on("request", lambda request: asked.append(request.url))
        said = complaints(window)
        window.goto(url)
        viewer = Shown(window, window).wait()
        viewer.click("lv1")
        expect(viewer.inspector).to_contain_text("that fit compute the same")
        viewer.inspector.get_by_role("button", name=re.compile("Replace$")).first.click()
        expect(viewer.current_stage).to_contain_text("= equal")
        with window.expect_download() as download:
            viewer.tab("Save").get_by_role("button", name="Save picture").click()
        assert download.value.path().read_text().startswith("<svg")
        window.goto("about:blank")
    assert said == []
    here = url.partition("?")[0]
    assert [address for address in asked if not address.startswith((here, f"blob:{here}"))] == []
    assert [path.name for path in tmp_path.iterdir()] == ["log.txt"]  # the browser saves


def test_a_file_is_opened_in_the_browser_and_run_when_the_reader_agrees(
    window: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no sandbox, nothing of the file runs unasked."""
    monkeypatch.setenv("IRVIZ_SANDBOX", "0")
    (tmp_path / "module.json").write_text(tvm.ir.save_json(MyModuleHighLevel))
    arguments = ("open", "module.json")
    with command(tmp_path, *arguments, ended_by=signal.SIGTERM, ignoring="INT TERM") as url:
        said = complaints(window)
        window.goto(url)
        viewer = Shown(window, window).wait()
        crumbs = viewer.root.get_by_role("navigation", name="Where we are")
        expect(crumbs).to_contain_text("module.json")
        viewer.button("Run", exact=True).first.click()
        question = viewer.root.locator(".irviz-question")
        expect(question).to_contain_text("runs code of module.json")
        viewer.button("Do not run it").click()
        expect(question).to_have_count(0)
        expect(viewer.stages.first).to_have_attribute("title", re.compile("not run"))
        viewer.button("Run", exact=True).first.click()
        viewer.button("Run it", exact=True).click()
        expect(viewer.stages.first).to_contain_text("reference")
        window.goto("about:blank")
    assert said == []


def test_notebook_7_shows_the_explorer(window: Any, open_lab: Any) -> None:
    """Notebook 7 is an extension of the server that JupyterLab has."""
    write_notebook(open_lab.folder / "explorer.ipynb", EXPLORER)
    window.goto(f"{open_lab.url}/notebooks/explorer.ipynb?token={open_lab.token}")
    # a cell that is run sooner asks for a kernel, and what is shown meanwhile can take the focus
    window.wait_for_function(IS_IDLE)
    window.locator(".jp-Notebook .jp-CodeCell .cm-content").first.press("Shift+Enter")
    viewer = Shown(window, window).wait()
    viewer.node("lv1").click()
    expect(viewer.title).to_have_text("lv1")
    assert abs(viewer.height() - 560) < 2
    cells = window.locator(".jp-Notebook .jp-Cell").count()
    viewer.picture().focus()
    for key in "baxm":
        window.keyboard.press(key)
    viewer.node("lv0").click()
    expect(viewer.title).to_have_text("lv0")
    assert window.locator(".jp-Notebook .jp-Cell").count() == cells


def test_a_drawn_picture_is_as_light_or_dark_as_jupyterlab(lab: Lab) -> None:
    found = {}
    try:
        for theme in ("JupyterLab Dark", "JupyterLab Light"):
            lab.theme(theme)
            cell = lab.run("from irviz.course.mlp import MyModule\nirviz.draw(MyModule)")
            picture = cell.locator(".jp-RenderedSVG img").screenshot()
            found[theme] = Image.open(io.BytesIO(picture)).convert("L").getpixel((3, 3))
    finally:
        lab.theme("JupyterLab Light")
    assert found["JupyterLab Dark"] < 60 < 240 < found["JupyterLab Light"]
