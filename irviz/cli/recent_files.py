"""The list of recently opened files."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import platformdirs

from irviz.atomic_write import atomic_write
from irviz.errors import SaveError

_MOST = 10


def recent_files() -> list[Path]:
    """Return the recently opened files that still exist, latest first."""
    try:
        names = json.loads(_list().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # it is damaged
        return []
    if not isinstance(names, list):
        return []
    paths = [Path(name) for name in names if isinstance(name, str)]
    return [path for path in paths[:_MOST] if _is_file(path)]


def add_recent_file(path: Path) -> None:
    """Put a file at the head of the list; if the list cannot be written, it stays unchanged."""
    path = path.resolve()
    paths = [path, *(other for other in recent_files() if other != path)]
    with contextlib.suppress(OSError, SaveError):
        _list().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_write(_list()) as partial:
            partial.write_text(json.dumps([str(one) for one in paths[:_MOST]]), encoding="utf-8")


def _list() -> Path:
    return platformdirs.user_state_path("irviz") / "recent.json"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
