"""What the start page offers: examples, and the files that were opened last."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import platformdirs

from irviz.cli.main import demo_session
from irviz.cli.page_launcher import DEMO
from irviz.errors import SaveError
from irviz.safe_files import atomic_write, private_folder, say_not_kept

if TYPE_CHECKING:
    from irviz.session.session import Session


class Example(NamedTuple):
    """A session that can be opened: what it shows, and what to do with it."""

    title: str
    words: str
    session: Callable[[], Session]


def _pipeline() -> Session:
    session = demo_session("MyModuleHighLevel")
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
        session = session.apply(name)
    return session


EXAMPLES: Mapping[str, Example] = {
    DEMO: Example(
        "A small neural network",
        "Bind its weights, replace a kernel, and press Run: are the digits still right?",
        demo_session,
    ),
    ":pipeline:": Example(
        "Four passes",
        "Step through the stages with Alt and the arrows; press d to see what each pass changed.",
        _pipeline,
    ),
    ":loops:": Example(
        "The loops of a matrix product",
        "Split and reorder them in Schedule, and see what each step does to the time.",
        lambda: demo_session("MyModuleStatic", "linear0"),
    ),
}
"""The examples by the names that requests have for them."""


# --- Recently opened files ------------------------------------------------------------------------


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
    # which raises nothing, whatever a name is
    return [path for path in paths[:_MOST] if os.path.isfile(path)]  # noqa: PTH113


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
