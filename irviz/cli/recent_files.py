"""The list of recently opened files."""

from __future__ import annotations

import json
from pathlib import Path

import platformdirs

from irviz.atomic_write import atomic_write
from irviz.errors import SaveError
from irviz.private_folder import private_folder, say_not_kept

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
    """Put a file at the head of the list; if it cannot be written, this is logged once."""
    path = path.resolve()
    paths = [path, *(other for other in recent_files() if other != path)]
    try:
        private_folder(_list().parent)
        with atomic_write(_list()) as partial:
            partial.write_text(json.dumps([str(one) for one in paths[:_MOST]]), encoding="utf-8")
    except (OSError, SaveError) as failure:
        say_not_kept("list of opened files", failure)


def _list() -> Path:
    return platformdirs.user_state_path("irviz") / "recent.json"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
