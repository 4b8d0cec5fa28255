"""RunError and MemoryError for whatever is raised as modules are built and run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from irviz.errors import RunError


@contextlib.contextmanager
def run_errors(what: str) -> Iterator[None]:
    """Raise RunError or MemoryError for whatever TVM or a Python kernel raises in the block.

    Args:
        what: The beginning of the message, such as "the module could not be built".
    """
    try:
        yield
    except (MemoryError, RunError):
        raise
    except Exception as failure:  # TVM's C++ code raises exceptions of any class
        if "bad_alloc" in str(failure):
            raise MemoryError(str(failure)) from failure
        raise RunError(f"{what}: {error_summary(failure)}") from failure


def error_summary(failure: Exception) -> str:
    """Return an exception's class and the last line of its message."""
    lines = [line for line in str(failure).splitlines() if line.strip()]
    return f"{type(failure).__name__}: {lines[-1].strip()}" if lines else type(failure).__name__
