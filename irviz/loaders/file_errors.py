"""Errors for files that cannot be read, and how their messages quote a file's values."""

from __future__ import annotations

import contextlib
import reprlib
from collections.abc import Iterator

from irviz.errors import IrvizError, LoadError


class FileError(LoadError):
    """A file cannot be read; the message continues a sentence that starts with its name."""


@contextlib.contextmanager
def named(name: str, error: type[IrvizError] = LoadError) -> Iterator[None]:
    """Turn FileError into another error, whose message starts with the file's name."""
    try:
        yield
    except FileError as failure:
        raise error(f"{name!r} {failure}") from failure.__cause__


@contextlib.contextmanager
def file_errors(reason: str, advice: str) -> Iterator[None]:
    """Turn the errors that decoders raise for damaged files, of any class, into FileError."""
    try:
        yield
    except FileError:
        raise
    except MemoryError:
        raise FileError("takes more memory than is free: give a smaller one") from None
    except Exception as failure:
        raise FileError(f"{reason} ({one_line(failure)}); {advice}") from failure


def one_line(failure: Exception) -> str:
    """Return an error's reason on one line."""
    words = str(getattr(failure, "strerror", None) or failure)
    return " ".join(words.split())[:500] or type(failure).__name__


def brief(value: object) -> str:
    """Return a shortened repr of a value from a file, which may be long or deeply nested."""
    return " ".join(_brief.repr(value).split())


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 100
