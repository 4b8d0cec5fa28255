"""Write files completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from irviz.errors import SaveError


def target_path(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Path:
    """Return the path of a file that can be written.

    Raises:
        SaveError: If its suffix is none of these, or its directory does not exist.
    """
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        known = " or ".join(suffixes)
        raise SaveError(f"cannot save {str(target)!r}: give a name ending in {known}")
    if not target.parent.is_dir():
        folder = str(target.parent)
        raise SaveError(f"cannot save {str(target)!r}: there is no directory {folder!r}")
    return target


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new file in the folder of a file, and replace the file by it at the end of the block.

    Its name cannot be guessed, and it is never a link. It gets the file's mode, or that of any new
    file. After an exception the file is unchanged, and the new one is deleted.
    """
    target = Path(path)
    number, name = tempfile.mkstemp(f"{target.suffix}.part", ".", target.parent)
    os.close(number)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
