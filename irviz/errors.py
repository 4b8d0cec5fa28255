"""The errors of irviz: one common base, and a kind for each thing that can be wrong."""

from __future__ import annotations


class IrvizError(Exception):
    """The base of all errors that irviz raises on purpose; the message says what to do."""

    def __str__(self) -> str:
        """Return the message as it is, also for what is a KeyError, too."""
        return Exception.__str__(self)


class LoadError(IrvizError, ValueError):
    """A file or a model that cannot be opened."""


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
    """Something that cannot be written to a file; the file is as it was."""


class NotFoundError(IrvizError, ValueError):
    """A name of a stage, a function, a node or a pass that does not exist."""


class StageError(IrvizError, ValueError):
    """A change of the stages that is impossible, such as an undo where nothing was done."""


class TransformError(IrvizError, ValueError):
    """A transform that refuses its arguments or the module; nothing was applied."""


class InputError(IrvizError, ValueError):
    """Inputs, sizes or limits that a function cannot be called with."""


class RunError(IrvizError, RuntimeError):
    """A function that cannot be built or run, or that did not survive it."""


class CancelledRunError(RunError):
    """A run that was cancelled."""


class NumPyError(IrvizError, ValueError):
    """A function with a construct that NumPy does not have; the message has its line.

    Attributes:
        construct: The words for the construct alone.
        origin: The binding or the statement that has it, None for the parameters.
    """

    def __init__(self, message: str, construct: str = "", origin: object = None) -> None:
        super().__init__(message)
        self.construct = construct or message
        self.origin = origin


class DrawError(IrvizError, ValueError):
    """A theme, a direction or a kind of picture that does not exist or does not fit."""
