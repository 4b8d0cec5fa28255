"""The pytest plugin: a fixture that compares a module with a reviewed one.

It imports irviz only when a test uses it, because pytest loads it in every project.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import tvm
from tvm import ir
from tvm_ffi import structural_equal

from irviz.atomic_write import atomic_write
from irviz.errors import LoadError
from irviz.ir.tvmscript import tvmscript
from irviz.session.open_session import load

FOLDER = "ir_snapshots"
_UPDATE = "--ir-snapshot-update"
_ARTEFACTS = "--ir-artefacts"
_NO_NAME = re.compile(r"[^\w.-]+")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("irviz")
    group.addoption(
        _UPDATE, action="store_true", help="write the modules of ir_snapshot anew, to be reviewed"
    )
    group.addoption(
        _ARTEFACTS,
        default="",
        metavar="FOLDER",
        help="where a page of both modules is written for each that differs",
    )


@pytest.fixture
def ir_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Return a function that compares a module with the one in `ir_snapshots/` next to the test.

    `ir_snapshot(mod)`; a second module of one test needs a name: `ir_snapshot(other, "other")`.
    """
    from irviz.testing.assert_ir_equal import assert_ir_equal
    from irviz.testing.pytest_plugin import find_snapshot, write_snapshot

    test = _NO_NAME.sub("-", f"{request.path.stem}.{request.node.name}").strip("-")
    folder = request.path.parent / FOLDER

    def check(mod: ir.IRModule, name: str = "") -> None:
        stem = folder / ".".join(filter(None, [test, _NO_NAME.sub("-", name)]))
        if request.config.getoption(_UPDATE):
            write_snapshot(mod, stem)
            return
        known = find_snapshot(stem)
        if known is None:
            pytest.fail(
                f"there is no {stem}.py or .json: run pytest with {_UPDATE}, and review what it "
                "writes"
            )
        artefacts = request.config.getoption(_ARTEFACTS)
        page = Path(artefacts) / f"{stem.name}.html" if artefacts else ""
        assert_ir_equal(mod, known, artefact=page)

    return check


def find_snapshot(stem: Path) -> Path | None:
    """Return the file of a snapshot, None if there is none."""
    files = (Path(f"{stem}{suffix}") for suffix in (".py", ".json"))
    return next((file for file in files if file.exists()), None)


def write_snapshot(mod: ir.IRModule, stem: Path) -> Path:
    """Write a snapshot, replacing an earlier one, and return the file."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    old = find_snapshot(stem)
    script, file = tvmscript(mod) + "\n", Path(f"{stem}.py")
    _write(file, script)
    try:
        is_kept = structural_equal(load(file).current.module, mod)
    except LoadError:
        is_kept = False
    if not is_kept:  # such as one with constants
        file.unlink()
        file = Path(f"{stem}.json")
        _write(file, tvm.ir.save_json(mod))
    if old is not None and old != file:
        old.unlink(missing_ok=True)
    return file


def _write(file: Path, text: str) -> None:
    with atomic_write(file) as partial:
        partial.write_text(text, encoding="utf-8")
