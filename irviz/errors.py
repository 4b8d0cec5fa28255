"""The errors of irviz: one common base, and a kind for each thing that can be wrong."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator


class IrvizError(Exception):
    """The base class of irviz's own errors; the message says what to do."""

    def __str__(self) -> str:
        """Return the message unquoted, also for subclasses of KeyError."""
        return Exception.__str__(self)


class LoadError(IrvizError, ValueError):
    """A file or model cannot be opened."""


class UnsupportedOperatorError(LoadError):
    """TVM's importer does not support an operator of a model; `missing="opaque"` opens it."""


class UntrustedError(IrvizError, PermissionError):
    """Something that would run code of files that nobody has said may run.

    Attributes:
        files: Their names.
    """

    def __init__(self, what: str, files: frozenset[str]) -> None:
        names = " and ".join(map(repr, sorted(files)))
        super().__init__(
            f"{what} would run code of {names}: if you trust where it comes from, open it with "
            "trust=True, or go on with session.trust()"
        )
        self.files = files


class SaveError(IrvizError, ValueError):
    """Something cannot be written to a file; an existing file is left unchanged."""


class NotFoundError(IrvizError, ValueError):
    """No stage, function, node or pass has the given name."""


class StageError(IrvizError, ValueError):
    """A change to the stages is impossible, such as undo when nothing has been done."""


class TransformError(IrvizError, ValueError):
    """A transform rejects its arguments or the module; nothing was applied."""


class InputError(IrvizError, ValueError):
    """A function cannot be called with the given inputs, sizes or limits."""


class RunError(IrvizError, RuntimeError):
    """A function cannot be built or run, or its process died while running it."""


class CancelledRunError(RunError):
    """A run was cancelled."""


class LimitError(IrvizError, RuntimeError):
    """An operation on an opened file would take too much time or memory."""


class PrintError(IrvizError, ValueError):
    """TVM cannot print a module or function as TVMScript; the message is TVM's reason."""


class NumPyError(IrvizError, ValueError):
    """A function uses a construct that NumPy lacks; the message gives its line.

    Attributes:
        construct: The construct in words.
        origin: The binding or statement that contains it, None for the parameters.
    """

    def __init__(self, message: str, construct: str = "", origin: object = None) -> None:
        super().__init__(message)
        self.construct = construct or message
        self.origin = origin


class DrawError(IrvizError, ValueError):
    """A theme, direction or kind of picture does not exist or does not suit the drawn object."""


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Raise MemoryError where TVM's C++ code, which raises others, has no memory left."""
    try:
        yield
    except Exception as failure:
        if "bad_alloc" in str(failure) and not isinstance(failure, MemoryError):
            raise MemoryError(str(failure)) from failure
        raise


@contextlib.contextmanager
def run_errors(what: str) -> Iterator[None]:
    """Raise RunError or MemoryError for whatever TVM or a Python kernel raises in the block.

    Args:
        what: The beginning of the message, such as "the module could not be built".
    """
    try:
        with memory_errors():
            yield
    except (MemoryError, RunError):
        raise
    except Exception as failure:  # TVM's C++ code raises exceptions of any class
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


def message_of(failure: Exception) -> str:
    """Return the message of an exception, or its class where it has none."""
    return str(failure) or type(failure).__name__


def error_summary(failure: Exception) -> str:
    """Return the known meaning of an exception, or its class and the last line of its message."""
    for pattern, meaning in _KNOWN:
        if found := re.search(pattern, str(failure)):
            return meaning.format(found[1])
    lines = [line for line in str(failure).splitlines() if line.strip()]
    return f"{type(failure).__name__}: {lines[-1].strip()}" if lines else type(failure).__name__
