"""The error messages of the command line."""

from __future__ import annotations

from irviz.errors import IrvizError

FAILURES = (IrvizError, OSError, ValueError, RuntimeError, ImportError, MemoryError)
"""The errors that a command may fail with; any other is a bug in irviz."""


def failure_words(failure: BaseException) -> str:
    """Describe a command's error in one sentence."""
    if isinstance(failure, ImportError):
        return f"{failure}: install what irviz needs with pip install irviz"
    if isinstance(failure, MemoryError):
        return "this takes more memory than there is: try a smaller file"
    return " ".join(str(failure).split())
