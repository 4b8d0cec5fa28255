"""Compare modules in tests: with another module, or with a snapshot in a file."""

from __future__ import annotations

import os
from pathlib import Path

import tvm
from tvm import ir
from tvm_ffi import structural_equal

from irviz.errors import LoadError
from irviz.explorer.save_html import save_html
from irviz.ir.tvmscript import tvmscript
from irviz.safe_files import atomic_write
from irviz.session.open_session import diff, load
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


# --- Snapshots ------------------------------------------------------------------------------------
#
# TVMScript, or TVM's JSON for modules that TVMScript cannot represent.


def find_snapshot(stem: Path) -> Path | None:
    """Return the file of a snapshot, None if there is none."""
    files = (Path(f"{stem}{suffix}") for suffix in (".py", ".json"))
    return next((file for file in files if file.exists()), None)


def write_snapshot(mod: ir.IRModule, stem: Path) -> Path:
    """Write a snapshot, replacing an earlier one, and return the file."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    old = find_snapshot(stem)
    script, file = tvmscript(mod) + "\n", Path(f"{stem}.py")
    _write_text(file, script)
    try:
        is_kept = structural_equal(load(file).current.module, mod)
    except LoadError:
        is_kept = False
    if not is_kept:  # such as one with constants
        file.unlink()
        file = Path(f"{stem}.json")
        _write_text(file, tvm.ir.save_json(mod))
    if old is not None and old != file:
        old.unlink(missing_ok=True)
    return file


def _write_text(file: Path, text: str) -> None:
    with atomic_write(file) as partial:
        partial.write_text(text, encoding="utf-8")
