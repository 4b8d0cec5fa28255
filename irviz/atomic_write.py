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
        SaveError: Its suffix is none of these, its directory does not exist, or it is something
            else than a regular file.
    """
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        known = " or ".join(suffixes)
        raise SaveError(f"cannot save {str(target)!r}: give a name ending in {known}")
    if not target.parent.is_dir():
        folder = str(target.parent)
        raise SaveError(f"cannot save {str(target)!r}: there is no directory {folder!r}")
    _regular_file(target)
    return target


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new file in the folder of a file, and replace the file by it at the end of the block.

    Its name cannot be guessed, and it is never a link. It gets the file's mode, or that of any new
    file. A link to a file stays a link. After an exception the file is unchanged, and the new one
    is deleted.

    Raises:
        SaveError: The file cannot be written, or is not a regular file.
    """
    try:
        target = _regular_file(Path(path))
        number, name = tempfile.mkstemp(f"{target.suffix}.part", ".", target.parent)
        os.close(number)
        partial = Path(name)
        try:
            yield partial
            partial.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except SaveError:
        raise
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise _refusal(Path(path), reason) from failure


def _regular_file(path: Path) -> Path:
    """Return the file that is at a path or behind a link there, or will be; raise SaveError."""
    if path.is_symlink() and (owner := path.lstat().st_uid) and owner != os.geteuid():
        raise _refusal(path, "it is a link of another user")
    target = Path(os.path.realpath(path))
    if target.is_symlink() or (path.exists() and not path.is_file()):
        raise _refusal(path, "it is not a regular file")
    return target


def _refusal(path: Path, reason: str) -> SaveError:
    return SaveError(
        f"{str(path)!r} cannot be written ({reason}): give the path of a file in a folder that "
        "this user may write to, on a disk that has room for it"
    )


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
