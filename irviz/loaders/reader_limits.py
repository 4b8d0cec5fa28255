"""What all readers of files share: the limits, the errors, and reading a file whole."""

from __future__ import annotations

import contextlib
import pickle
import re
import reprlib
import stat
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path

import cloudpickle

from irviz.errors import IrvizError, LoadError
from irviz.worker.memory_limit import free_memory, limited_memory

# --- limits -------------------------------------------------------------------------------------

MAX_BYTES = 1 << 31
"""Larger files are not read, and larger inputs are not made of images."""
SECONDS = 120.0
"""The time limit for opening a file."""
_FREE_SHARE = 0.5
"""The share of the free memory that a file may take while it is read."""
_MIN_MEMORY = 2 << 30
"""A reader in the worker may take this many bytes for any file; importing PyTorch takes some."""
DRAWING_BYTES, DRAWING_SECONDS = 1 << 30, 30.0
"""The memory and the processor time for drawing a module: the caller draws it again."""
MIN_UNPACKED, MAX_RATIO = 1 << 28, 20
"""A file may become this many bytes, or this many times its own size.

Trained weights do not even pack two to one, and TVMScript becomes about fifteen times as much JSON.
"""

MAX_ARRAYS = 20_000
"""More arrays are not read from a file: the smallest takes a tenth of a millisecond."""


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


def max_unpacked(size: int) -> int:
    """Return how many bytes a file may become in proportion to its size."""
    return max(MIN_UNPACKED, MAX_RATIO * size)


def memory_share() -> int:
    """Return how many bytes a file may take while it is read, whatever its size."""
    free = free_memory()
    return MAX_BYTES if free is None else int(free * _FREE_SHARE)


def check_unpacked(size: int, unpacked: int, advice: str) -> None:
    """Raise FileError if a file of `size` bytes would become too many bytes of arrays."""
    most = min(max_unpacked(size), memory_share() // 2)  # arrays are copied once
    if unpacked > most:
        raise FileError(
            f"would become {unpacked:,} bytes, and a file of {size:,} bytes may become "
            f"{most:,}: {advice}"
        )


@contextlib.contextmanager
def memory_for(size: int, ratio: int) -> Iterator[None]:
    """Limit the memory for reading a file to `ratio` times its size, or the least for any file.

    Raises FileError beyond that.
    """
    most = min(max(_MIN_MEMORY, ratio * size), memory_share())
    try:
        with limited_memory(most):
            yield
    except MemoryError:
        raise FileError(
            f"takes more than {most:,} bytes of memory to read, the limit for a file of "
            f"{size:,} bytes: give a smaller one"
        ) from None


def check_result(result: object, size: int) -> None:
    """Raise FileError if what was read of a file of `size` bytes is too large to be passed on."""
    cloudpickle.dump(result, _Counter(size, min(max_unpacked(size), memory_share())))


class _Counter:
    """A file that only counts what is written to it."""

    def __init__(self, size: int, most: int) -> None:
        self._size, self._most, self._count = size, most, 0

    def write(self, content: bytes | pickle.PickleBuffer) -> int:
        """Count more bytes; raise FileError if there are too many."""
        count = memoryview(content).nbytes
        self._count += count
        if self._count > self._most:
            raise FileError(
                f"becomes more than {self._most:,} bytes, the limit for a file of {self._size:,} "
                "bytes: give a smaller model, or one with its weights in the file"
            )
        return count


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


# --- reading ------------------------------------------------------------------------------------

ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of a zip archive, and of an empty one."""
_ENTRY = re.compile(rb"PK\x01\x02")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_IS_ENCRYPTED = 1


def read_file(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file; raise FileError if it cannot be read or has more than `most`.

    It also raises FileError if the file takes too much of the free memory.
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
    """Return a zip archive; raise FileError if unpacking it would take long for its size.

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


def unique_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object; raise ValueError if a key occurs twice, as readers differ on that."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found
