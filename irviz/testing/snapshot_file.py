"""Snapshot files: TVMScript, or TVM's JSON for modules that TVMScript cannot represent."""

from __future__ import annotations

from pathlib import Path

import tvm
from tvm import ir
from tvm_ffi import structural_equal

from irviz.atomic_write import atomic_write
from irviz.errors import LoadError
from irviz.ir.tvmscript import tvmscript
from irviz.session.open_session import load


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
