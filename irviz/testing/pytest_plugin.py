"""The pytest plugin: a fixture that compares a module with a reviewed one.

It imports irviz only when a test uses it, because pytest loads it in every project.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tvm import ir

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
    from irviz.testing.snapshots_and_assertions import (
        assert_ir_equal,
        find_snapshot,
        write_snapshot,
    )

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
