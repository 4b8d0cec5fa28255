"""A notebook that was saved shows its last picture where no kernel runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from .conftest import write_notebook

STILL = "figure.irviz-still"


@pytest.fixture(scope="module")
def saved(open_lab: Any) -> Path:
    """A notebook whose explorer was used, and that was then saved by JupyterLab."""
    open_lab.clear()
    viewer = open_lab.show("fused.checkout('0')")
    viewer.stage("FuseOps").click()
    expect(viewer.current_stage).to_contain_text("FuseOps")
    # the picture is drawn again when the reader has changed nothing for a moment
    open_lab.page.wait_for_function(
        """() => window.jupyterapp.shell.currentWidget.content.widgets.some(cell =>
            JSON.stringify(cell.model.outputs?.toJSON() ?? '').includes('<b>FuseOps</b>')
            || JSON.stringify(cell.model.outputs?.toJSON() ?? '').includes('<b>3 FuseOps</b>'))"""
    )
    content = open_lab.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.content.model.toJSON()"
    )
    open_lab.clear()
    path = Path(open_lab.folder, "saved.ipynb")
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def converted(path: Path, *options: str) -> Path:
    command = [sys.executable, "-m", "nbconvert", "--to", "html", str(path), *options]
    subprocess.run(command, check=True, capture_output=True)
    return path.with_suffix(".html")


def shown_offline(window: Any, path: Path) -> tuple[str, list[str]]:
    """Open a file without a network: what stands below its picture, and what it says is wrong."""
    window.context.set_offline(True)
    window.goto(path.as_uri())
    picture = window.locator(f"{STILL} img, {STILL} svg").first
    expect(picture).to_be_visible()
    box = picture.bounding_box()
    assert box["width"] > 100
    assert box["height"] > 100
    words = window.locator(STILL).first.inner_text()
    errors = window.get_by_text("Error displaying widget").filter(visible=True)
    failures = errors.all_inner_texts()
    window.context.set_offline(False)
    return words, failures


def test_an_exported_notebook_shows_the_last_picture_with_its_stages(
    window: Any, saved: Path
) -> None:
    words, failures = shown_offline(window, converted(saved))
    assert "FuseOps" in words
    assert "LegalizeOps" in words
    assert failures == []


def test_a_notebook_that_is_run_while_it_is_exported_shows_its_picture(
    window: Any, tmp_path: Path
) -> None:
    path = tmp_path / "run.ipynb"
    source = "import irviz\nfrom irviz.course.mlp import MyModule\nirviz.explore(MyModule)"
    write_notebook(path, source)
    words, failures = shown_offline(window, converted(path, "--execute"))
    assert "initial module" in words
    assert failures == []


def test_a_notebook_that_is_reopened_without_a_kernel_shows_the_last_picture(
    window: Any, open_lab: Any, saved: Path
) -> None:
    window.goto(f"{open_lab.url}/lab/workspaces/other/tree/{saved.name}?token={open_lab.token}")
    picture = window.locator(f".jp-OutputArea {STILL} img, .jp-OutputArea {STILL} svg").first
    expect(picture).to_be_visible()
    expect(window.locator(STILL).first).to_contain_text("FuseOps")
