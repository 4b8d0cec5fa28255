"""Assert that two modules are equal, and show the differences if they are not."""

from __future__ import annotations

import os
from pathlib import Path

from irviz.explorer.html_file import save_html
from irviz.session.open_diff import diff
from irviz.session.open_session import load
from irviz.session.session import Session
from irviz.transforms.stage import Stage


def assert_ir_equal(
    actual: object, expected: object, *, artefact: str | os.PathLike[str] = ""
) -> None:
    """Raise AssertionError with the diff unless two modules are equal up to names.

    Names of variables and private functions are ignored, and the order of lines that changes no
    read.

    Args:
        actual: A module, or anything that `irviz.load` takes.
        expected: Likewise.
        artefact: If the modules differ, write an HTML page (`.html`) with both side by side to this
            path. Its folder is created.

    Example:
        ```python
        assert_ir_equal(my_pass(Before), After)
        ```
    """
    found = diff(expected, actual)
    if not found:
        return
    lines = ["the modules differ (- expected, + actual):", str(found)]
    if artefact:
        lines.append(f"side by side: {_write(actual, expected, Path(artefact))}")
    raise AssertionError("\n".join(lines))


def _write(actual: object, expected: object, path: Path) -> Path:
    """Write a page of both modules, as a stage and its child."""
    before, after = (load(one).current.module for one in (expected, actual))
    stages = [Stage("0", before, "expected"), Stage("1", after, "actual", "0")]
    path.parent.mkdir(parents=True, exist_ok=True)
    return save_html(Session.from_stages(stages).checkout("1"), path)
