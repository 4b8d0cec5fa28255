"""Other projects compare modules in their tests, and see what differs where they fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irviz
from irviz.course.digits import mlp_params
from irviz.course.mlp import MyModuleHighLevel
from irviz.transforms.bind_params import bind_params

pytestmark = pytest.mark.worker

TEST = """
from tvm import relax
from irviz.course.mlp import MyModuleHighLevel

def test_lowered(ir_snapshot):
    ir_snapshot(relax.transform.{transform}()(MyModuleHighLevel))
"""


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run the test of another project in this process; return the exit code and the output."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def made(transform: str, *options: str) -> tuple[int, str]:
        test = tmp_path / "test_it.py"
        test.write_text(TEST.format(transform=transform))
        sys.modules.pop("test_it", None)
        plain = ["-c", os.devnull, f"--rootdir={tmp_path}", "-p", "no:cacheprovider"]
        plain += ["-p", "no:unraisableexception"]  # it collects the garbage of all tests
        code = pytest.main([*plain, "-p", "irviz.testing.pytest_plugin", "-q", *options, str(test)])
        return int(code), capsys.readouterr().out

    return made


def test_modules_that_are_equal_up_to_names_pass(tmp_path: Path) -> None:
    renamed = tmp_path / "renamed.py"
    renamed.write_text(MyModuleHighLevel.script().replace("lv2", "hidden"))
    irviz.assert_ir_equal(renamed, MyModuleHighLevel)


def test_a_module_that_differs_fails_with_the_diff_and_a_page_of_both(tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(MyModuleHighLevel.script().replace("R.nn.relu", "R.nn.gelu"))
    page = tmp_path / "artefacts" / "page.html"
    with pytest.raises(AssertionError, match=r"(?s)-.*R\.nn\.relu.*\+.*R\.nn\.gelu") as failure:
        irviz.assert_ir_equal(other, MyModuleHighLevel, artefact=page)
    assert f"side by side: {page}" in str(failure.value)
    assert "expected" in page.read_text("utf-8")


def test_a_snapshot_is_written_reviewed_and_compared(
    tmp_path: Path, run: Callable[..., tuple[int, str]]
) -> None:
    code, said = run("LegalizeOps")
    assert code == 1
    assert "run pytest with --ir-snapshot-update" in said
    assert run("LegalizeOps", "--ir-snapshot-update")[0] == 0
    (snapshot,) = (tmp_path / "ir_snapshots").iterdir()
    assert snapshot.name == "test_it.test_lowered.py"
    assert "R.call_tir" in snapshot.read_text()
    assert run("LegalizeOps")[0] == 0
    code, said = run("Normalize", "--ir-artefacts", str(tmp_path / "pages"))
    assert code == 1
    assert "the modules differ (- expected, + actual)" in said
    assert (tmp_path / "pages" / "test_it.test_lowered.html").exists()


def test_constants_are_kept_in_a_snapshot(tmp_path: Path) -> None:
    from irviz.testing.snapshots_and_assertions import find_snapshot, write_snapshot

    bound = bind_params(mlp_params())(MyModuleHighLevel)
    stem = tmp_path / "snapshots" / "bound"
    assert write_snapshot(bound, stem).suffix == ".json"
    other = {**mlp_params(), "b0": np.ones(128, "float32")}
    irviz.assert_ir_equal(bound, find_snapshot(stem))
    with pytest.raises(AssertionError, match="function main: 1 changed"):
        irviz.assert_ir_equal(bind_params(other)(MyModuleHighLevel), find_snapshot(stem))
    assert write_snapshot(MyModuleHighLevel, stem).suffix == ".py"
    assert [one.name for one in stem.parent.iterdir()] == ["bound.py"]
