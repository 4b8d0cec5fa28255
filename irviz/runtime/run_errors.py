"""Turn errors of building and running modules into RunError or MemoryError."""

from __future__ import annotations

import contextlib
import re
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


_KNOWN = (
    (
        r"Cannot find ffi::Function (\S+) in",
        "it calls {!r}, which nothing defines: replace the call, or register a function of that "
        "name after `import irviz`, with tvm.register_global_func or irviz.library.register",
    ),
    (
        r"CodeGenVM cannot emit this Relax operator[^\0]*Offending call:\s*(.+)",
        "TVM has not lowered {}, perhaps as it cannot prove which size the result has",
    ),
)
"""Patterns of TVM's messages for known faults, and their meanings."""


def error_summary(failure: Exception) -> str:
    """Return the known meaning of an exception, or its class and the last line of its message."""
    for pattern, meaning in _KNOWN:
        if found := re.search(pattern, str(failure)):
            return meaning.format(found[1])
    lines = [line for line in str(failure).splitlines() if line.strip()]
    return f"{type(failure).__name__}: {lines[-1].strip()}" if lines else type(failure).__name__
