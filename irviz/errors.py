"""The errors of irviz: one common base, and a kind for each thing that can be wrong."""

from __future__ import annotations


class IrvizError(Exception):
    """The base class of irviz's own errors; the message says what to do."""

    def __str__(self) -> str:
        """Return the message unquoted, also for subclasses of KeyError."""
        return Exception.__str__(self)


class LoadError(IrvizError, ValueError):
    """A file or model cannot be opened."""


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
