"""What the command line says of what went wrong."""

from __future__ import annotations

from irviz.errors import IrvizError

FAILURES = (IrvizError, OSError, ValueError, RuntimeError, ImportError, MemoryError)
"""What a command may fail with; anything else is a defect of irviz."""


def failure_words(failure: BaseException) -> str:
    """Return one sentence about what a command failed with."""
    if isinstance(failure, ImportError):
        return f"{failure}: install what irviz needs with pip install irviz"
    if isinstance(failure, MemoryError):
        return "this takes more memory than there is: try a smaller file"
    return " ".join(str(failure).split())
