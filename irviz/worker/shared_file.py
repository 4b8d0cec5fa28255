"""A file that this process and another one have open, and that has a name only until then."""

from __future__ import annotations

import contextlib
import os
import tempfile


def made() -> tuple[int, str]:
    """Make an empty file; return its descriptor and its path."""
    return tempfile.mkstemp(prefix="irviz-")


def remove(path: str) -> None:
    """Take the name from a file, so that nothing is left when nobody has it open."""
    with contextlib.suppress(OSError):  # the other process was first, or still has it open
        os.unlink(path)  # noqa: PTH108
