"""Read a model's parameters from a file, running nothing in it."""

import os
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from irviz.loaders.arrays.array_pickle import from_pickle
from irviz.loaders.arrays.numeric_arrays import CONVERT, SAVE, Params, ParamsError, native_array
from irviz.loaders.arrays.safetensors_file import from_safetensors, is_safetensors
from irviz.loaders.read_file import FileError, read_file

_ZIP_STARTS: Final = (b"PK\x03\x04", b"PK\x05\x06")
# A pickle starts with \x80 since protocol 2; earlier ones start with a container or an array.
_PICKLE_STARTS: Final = (b"\x80", b"(", b")", b"}", b"]", b"c")
# Deflate packs a thousand to one at best, and trained weights not even two to one.
_MAX_RATIO, _MIN_LIMIT = 100, 1 << 28


def load_params(path: str | os.PathLike[str]) -> Params:
    """Read arrays by name from an ``.npz``, a ``.safetensors`` or a pickle; run no code in it.

    The first bytes determine the kind of file, and the name only if these are ambiguous. Pickles
    may be from NumPy 1 or 2, in protocols 0 to 5.

    Returns:
        Arrays of bool, int, uint or float of at most 64 bits (bfloat16 and 8-bit floats from
        ``.safetensors`` too), writeable, C-contiguous, in native byte order.

    Raises:
        ParamsError: If the file cannot be read or holds anything else.
    """
    name = os.fspath(path)
    try:
        content = _read(Path(path))
        is_named = Path(path).suffix.lower() == ".safetensors"
        is_other = content.startswith((*_ZIP_STARTS, *_PICKLE_STARTS))
        if is_safetensors(content) or (is_named and not is_other):
            return from_safetensors(content)
        if content.startswith(_ZIP_STARTS):
            return _from_npz(content)
        if content.startswith(_PICKLE_STARTS):
            return from_pickle(content)
    except ParamsError as error:  # its message follows the file's name
        raise ParamsError(f"{name!r} {error}") from error.__cause__
    except Exception as error:  # zipfile and pickle raise errors of any class for damaged files
        raise ParamsError(f"{name!r} is damaged or cut short ({error}); {SAVE}") from error
    raise ParamsError(
        f"{name!r} begins with {content[:8]!r} and is none of an .npz, a .safetensors and a "
        f"pickle; {SAVE}"
    )


def _read(path: Path) -> bytes:
    try:
        content = read_file(path, most=None)
    except FileError as error:
        raise ParamsError(str(error)) from error.__cause__
    if not content:
        raise ParamsError(f"is empty, where arrays were expected; {SAVE}")
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
        if declared > max(_MIN_LIMIT, _MAX_RATIO * len(content)):
            raise ParamsError(f"unpacks from {len(content)} to {declared} bytes; {SAVE}")
        return dict(_from_npy(archive, member) for member in archive.namelist())


def _from_npy(archive: zipfile.ZipFile, member: str) -> tuple[str, NDArray[Any]]:
    name = member.removesuffix(".npy")
    try:
        with archive.open(member) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except ValueError as error:
        raise ParamsError(
            f"holds {name!r}, which is damaged or not an array of numbers ({error}); {CONVERT}"
        ) from error
    return name, native_array(name, array)
