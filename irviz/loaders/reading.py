"""What all readers of files share: the limits, the errors, and reading a file whole."""

from __future__ import annotations

import contextlib
import reprlib
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from irviz.errors import IrvizError, LoadError

# --- limits -------------------------------------------------------------------------------------

MAX_BYTES = 1 << 31
"""Larger files are not read, and larger inputs are not made of images."""
TVM_SECONDS = 120.0
"""The time limit for TVM's readers in the worker."""
MIN_UNPACKED, MAX_RATIO = 1 << 28, 100
"""An archive may unpack to this many bytes, or to this many times its own size.

Deflate packs a thousand to one at best, and trained weights not even two to one.
"""
MODEL_SECONDS, MODEL_BYTES = 300.0, 8 << 30
"""The limits of time and memory for a reader of models in the worker."""


@dataclass(frozen=True)
class SyntaxLimits:
    """The limits of a Python text: its characters, its tokens, and the depth of its syntax tree."""

    characters: int
    tokens: int
    depth: int
    admits_formatted_strings: bool = False


# A large text consists mostly of weights in JSON; a module of 17,000 bindings has one million
# tokens; TVM's own parser fails at about this depth.
TVMSCRIPT_LIMITS = SyntaxLimits(64 * 2**20, tokens=2_000_000, depth=150)
# libcst takes about ten seconds for so many tokens.
UPGRADE_LIMITS = SyntaxLimits(2_000_000, tokens=150_000, depth=100, admits_formatted_strings=True)


def is_zip_bomb(packed: int, unpacked: int) -> bool:
    """Tell whether an archive unpacks to more bytes than is admitted."""
    return unpacked > max(MIN_UNPACKED, MAX_RATIO * packed)


# --- errors -------------------------------------------------------------------------------------


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


# --- reading ------------------------------------------------------------------------------------

ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of a zip archive, and of an empty one."""


def read_file(path: Path, most: int | None = MAX_BYTES) -> bytes:
    """Return the bytes of a file; raise FileError if it cannot be read or has more than `most`."""
    size = file_size(path)
    if most is not None and size > most:
        raise FileError(f"has {size:,} bytes, and at most {most:,} are read: give a smaller one")
    try:
        return path.read_bytes()
    except OSError as failure:
        raise _unreadable(failure) from failure


def file_size(path: Path) -> int:
    """Return the size of a regular file; raise FileError for anything else."""
    try:
        status = path.stat()
    except (OSError, ValueError) as failure:  # ValueError: the name contains a NUL
        raise _unreadable(failure) from failure
    if stat.S_ISDIR(status.st_mode):
        raise FileError("is a directory: give the path of a file in it")
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device may never end
        raise FileError("is a device or a pipe: give the path of a regular file")
    return status.st_size


def _unreadable(failure: Exception) -> FileError:
    return FileError(f"cannot be read ({one_line(failure)}): check its name and permissions")


def unique_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; raise ValueError if a key occurs twice, as readers differ on that."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found
