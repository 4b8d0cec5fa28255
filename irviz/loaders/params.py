"""Read a model's parameters from a file, running nothing that the file may carry."""

import os
import stat
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from irviz.loaders.array_pickle import from_pickle
from irviz.loaders.numbers import CONVERT, SAVE, Params, ParamsError, plain
from irviz.loaders.safetensors_file import from_safetensors, is_safetensors

_ZIP_STARTS: Final = (b"PK\x03\x04", b"PK\x05\x06")
# From protocol 2 on a pickle says that it is one; before, a container or an array begins so.
_PICKLE_STARTS: Final = (b"\x80", b"(", b")", b"}", b"]", b"c")
# Deflate packs a thousand to one at best, and trained weights not even two to one.
_NPZ_RATIO, _NPZ_ROOM = 100, 1 << 28


def load_params(path: str | os.PathLike[str]) -> Params:
    """Read a flat mapping of names to arrays from an ``.npz``, a ``.safetensors`` or a pickle.

    What the file is, its first bytes say; its name only where they leave that open. Arrays keep
    shape and type (bool, int, uint or float of at most 64 bits; from ``.safetensors`` bfloat16
    too) and come in native byte order, C-contiguous and writeable.
    Pickles are those of NumPy 1 and 2 by protocols 0 to 5. No code in a file is ever run.
    Raises ParamsError where the file cannot be read or holds anything else.
    """
    name = os.fspath(path)
    try:
        content = _content(Path(path))
        is_named = Path(path).suffix.lower() == ".safetensors"
        begins_otherwise = content.startswith((*_ZIP_STARTS, *_PICKLE_STARTS))
        if is_safetensors(content) or (is_named and not begins_otherwise):
            return from_safetensors(content)
        if content.startswith(_ZIP_STARTS):
            return _from_npz(content)
        if content.startswith(_PICKLE_STARTS):
            return from_pickle(content)
    except ParamsError as error:  # every sentence below begins after the file's name
        raise ParamsError(f"{name!r} {error}") from error.__cause__
    except Exception as error:  # what damaged files raise, zipfile and pickle leave open
        raise ParamsError(
            f"{name!r} is damaged, cut short or not what it begins as ({error}); {SAVE}"
        ) from error
    raise ParamsError(
        f"{name!r} begins with {content[:8]!r} and is none of an .npz, a .safetensors and a "
        f"pickle; {SAVE}"
    )


def _content(path: Path) -> bytes:
    try:
        # A pipe or a device may never end, so only a file is opened.
        content = path.read_bytes() if stat.S_ISREG(path.stat().st_mode) else None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", error)
        raise ParamsError(
            f"cannot be read ({reason}); give the path of an .npz, .safetensors or pickle that "
            "this user may read"
        ) from error
    if not content:
        what = "a directory or device" if content is None else "empty"
        raise ParamsError(f"is {what}, where arrays were expected; {SAVE}")
    return content


def _from_npz(content: bytes) -> Params:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".npy"):
                raise ParamsError(
                    f"is a zip archive but not an .npz: it holds {member.filename!r}, where each "
                    f"member would be an array, '<name>.npy'; {SAVE}"
                )
        # zipfile reads no more of a member than the archive declares.
        declared = sum(member.file_size for member in archive.infolist())
        if declared > max(_NPZ_ROOM, _NPZ_RATIO * len(content)):
            raise ParamsError(f"unpacks from {len(content)} to {declared} bytes; {SAVE}")
        return dict(_from_npy(archive, member) for member in archive.namelist())


def _from_npy(archive: zipfile.ZipFile, member: str) -> tuple[str, NDArray[Any]]:
    name = member.removesuffix(".npy")
    try:
        with archive.open(member) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except ValueError as error:
        raise ParamsError(
            f"holds {name!r}, a damaged array or none of numbers ({error}); {CONVERT}"
        ) from error
    return name, plain(name, array)
