"""Limits on the size of a file, and on time and memory for reading it, in the worker; errors."""

from __future__ import annotations

import contextlib
import re
import reprlib
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from irviz.errors import IrvizError, LoadError
from irviz.limits import FILE_SECONDS
from irviz.worker import supervisor
from irviz.worker.responses import limit_answer
from irviz.worker.sandbox import free_memory, limited_memory


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


MAX_BYTES = 1 << 31
"""The size limit of a file, and of inputs made from images."""
_TEXT_SECONDS, _SHORT, _CHARACTERS_A_SECOND = 9.5, 100_000, 20_000
"""The time limit for opening a text that is no longer than `_SHORT`, and what is read of the rest
of a longer one: an old one is upgraded first, which takes most of that."""
_FREE_SHARE = 0.5
"""The share of the free memory that a file may take while it is read."""
_MIN_MEMORY = 2 << 30
"""The memory that a reader in the worker may take for any file; importing PyTorch takes some of
it."""
MIN_UNPACKED, MAX_RATIO = 1 << 28, 20
"""A file may unpack to this many bytes, or to this many times its own size.

Trained weights do not even pack two to one, and TVMScript becomes about fifteen times as much JSON.
"""

MAX_ARRAYS = 20_000
"""The number of arrays in a file is limited because even the smallest takes 0.1 ms."""


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


def seconds_for(size: int, *, is_text: bool) -> float:
    """Return the time limit for opening a file of this size.

    Binary kinds may need the import of a framework, which alone takes seconds.
    """
    most = _TEXT_SECONDS + max(0, size - _SHORT) / _CHARACTERS_A_SECOND
    return min(FILE_SECONDS, most) if is_text else FILE_SECONDS


def max_unpacked(size: int) -> int:
    """Return how many bytes a file of this size may unpack to."""
    return max(MIN_UNPACKED, MAX_RATIO * size)


def memory_share() -> int:
    """Return how many bytes a file may take while it is read, whatever its size."""
    free = free_memory()
    return MAX_BYTES if free is None else int(free * _FREE_SHARE)


def check_unpacked(size: int, unpacked: int, advice: str) -> None:
    """Raise FileError if a file of `size` bytes would unpack to too many bytes of arrays."""
    most = min(max_unpacked(size), memory_share() // 2)  # arrays are copied once
    if unpacked > most:
        raise FileError(
            f"would become {unpacked:,} bytes, and a file of {size:,} bytes may become "
            f"{most:,}: {advice}"
        )


@contextlib.contextmanager
def limits_for(size: int, ratio: int) -> Iterator[None]:
    """Limit the memory for reading a file of `size` bytes, and what the worker answers.

    The memory may be `ratio` times the size, or the minimum. Raises FileError beyond that, and so
    does the worker for an answer that is too large.
    """
    answer = min(max_unpacked(size), memory_share())
    refusal = (
        f"becomes more than {answer:,} bytes, the limit for a file of {size:,} bytes: give a "
        "smaller model, or one with its weights in the file"
    )
    limit_answer(answer, FileError(refusal))
    most = min(max(_MIN_MEMORY, ratio * size), memory_share())
    try:
        with limited_memory(most):
            yield
    except MemoryError:
        raise FileError(
            f"takes more than {most:,} bytes of memory to read, the limit for a file of "
            f"{size:,} bytes: give a smaller one"
        ) from None


# --- Read files in the worker: reading can crash, hang or fill the memory ------------------------


Result = TypeVar("Result")


class Reader(NamedTuple):
    """The worker that reads, and how many seconds of a file's time its start has taken."""

    worker: supervisor.Worker
    late: float = 0.0


_USUAL = Reader(supervisor.TRIES)
reader: ContextVar[Reader] = ContextVar("reader", default=_USUAL)
"""Another one, where two files are opened at once."""


def read_in_worker(
    read: Callable[..., Result], *arguments: object, seconds: float = FILE_SECONDS
) -> Result:
    """Read a file in the worker with `read`, within limits of time and memory.

    Raises:
        FileError: The time or memory limit was exceeded, or the worker crashed.
        Exception: Whatever `read` raises.
    """
    memory = memory_share()
    worker, late = reader.get()
    left = max(seconds - late, seconds / 2)
    try:
        return worker.call(read, *arguments, seconds=left, memory=memory)
    except supervisor.TimedOutError:
        reason = f"takes longer than {seconds:g} s to open and was stopped: give a smaller file"
    except supervisor.StartError as failure:
        reason = f"was not opened, as no process could be started to read it in ({failure})"
    except supervisor.CrashedError as failure:
        reason = f"was not opened: {failure}; write it again, or take another copy"
    except supervisor.CancelledError:
        reason = "was not opened: it was cancelled"
    except MemoryError:
        reason = f"takes more than {memory:,} bytes of memory to open: give a smaller file"
    except RecursionError:
        reason = "is nested too deeply to be opened: give a smaller file"
    raise FileError(reason)


# --- Read a whole file, or open an archive, within the limits for files --------------------------


ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of a zip archive with entries, and of an empty one."""
_ENTRY = re.compile(rb"PK\x01\x02")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_IS_ENCRYPTED = 1


def read_file(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file; raise FileError if it is unreadable or longer than `most`.

    Also raises FileError if the file would take too much of the free memory.
    """
    size = file_size(path)
    most = min(most, memory_share())
    if size > most:
        raise FileError(f"has {size:,} bytes, and at most {most:,} are read: give a smaller one")
    try:
        return path.read_bytes()
    except OSError as failure:
        raise _unreadable(failure) from failure


def open_archive(content: bytes) -> zipfile.ZipFile:
    """Open a zip archive; raise FileError if it would take too long to unpack for its size.

    The entries are counted before `zipfile` makes an object of each.
    """
    entries = list(islice(_ENTRY.finditer(content), MAX_ARRAYS + 1))
    if len(entries) > MAX_ARRAYS:
        raise FileError(f"has more than {MAX_ARRAYS:,} entries: save fewer arrays")
    archive = zipfile.ZipFile(BytesIO(content))
    for member in archive.infolist():
        if member.compress_type not in _METHODS or member.flag_bits & _IS_ENCRYPTED:
            raise FileError(
                f"has {brief(member.filename)} packed in another way than deflated: save it again"
            )
    return archive


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
