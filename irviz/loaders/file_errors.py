"""Errors of files that cannot be read, and how values of files are written in them."""

from __future__ import annotations

import contextlib
import reprlib
from collections.abc import Iterator

from irviz.errors import IrvizError, LoadError


class FileError(LoadError):
    """A file that cannot be read; the message continues a sentence after the file's name."""


@contextlib.contextmanager
def named(name: str, error: type[IrvizError] = LoadError) -> Iterator[None]:
    """Raise FileError as another error, whose message begins with the file's name."""
    try:
        yield
    except FileError as failure:
        raise error(f"{name!r} {failure}") from failure.__cause__


@contextlib.contextmanager
def file_errors(reason: str, advice: str) -> Iterator[None]:
    """Raise FileError for errors of any class, which decoders raise for damaged files."""
    try:
        yield
    except FileError:
        raise
    except MemoryError:
        raise FileError("takes more memory than is free: give a smaller one") from None
    except Exception as failure:
        raise FileError(f"{reason} ({one_line(failure)}); {advice}") from failure


def one_line(failure: Exception) -> str:
    """Return the reason of any error in one line."""
    words = str(getattr(failure, "strerror", None) or failure)
    return " ".join(words.split())[:500] or type(failure).__name__


def brief(value: object) -> str:
    """Return the repr of a value from a file, shortened, as it may be long or deep."""
    return " ".join(_brief.repr(value).split())


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 100
