"""Read a model's parameters from a file, running nothing in it."""

import os
import zipfile
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from irviz.errors import LoadError
from irviz.loaders.arrays.array_pickle import from_pickle
from irviz.loaders.arrays.npy_file import read_npy
from irviz.loaders.arrays.safetensors_file import from_safetensors, is_safetensors
from irviz.loaders.arrays.supported_dtypes import CONVERT, SAVE, native_array
from irviz.loaders.bounded_read import ZIP_STARTS, open_archive, read_file
from irviz.loaders.file_errors import FileError, file_errors, named
from irviz.loaders.file_limits import check_unpacked, memory_share

_PLAIN: Final = "save fewer arrays, or save them unpacked, with numpy.savez(path, w0=..., b0=...)"
# A pickle starts with \x80 since protocol 2; earlier ones start with a container or an array.
_PICKLE_STARTS: Final = (b"\x80", b"(", b")", b"}", b"]", b"c")


class ParamsError(LoadError):
    """Parameters cannot be read from a file; the message says what it should contain."""


def load_params(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Read arrays by name from an ``.npz``, a ``.safetensors`` or a pickle, running nothing in it.

    The first bytes determine the kind of file; the name decides only if they are ambiguous. Pickles
    may be from NumPy 1 or 2, in protocols 0 to 5.

    Returns:
        Arrays of bool, int, uint or float of at most 64 bits (bfloat16 and 8-bit floats from
        ``.safetensors`` too), writeable, C-contiguous, in native byte order.

    Raises:
        ParamsError: The file cannot be read, or holds anything else.
    """
    with named(os.fspath(path), ParamsError), file_errors("is damaged or cut short", SAVE):
        return _load(Path(path))


def _load(path: Path) -> dict[str, NDArray[Any]]:
    content = read_file(path, memory_share() // 2)  # arrays are copied once
    if not content:
        raise FileError(f"is empty, where arrays were expected; {SAVE}")
    is_named = path.suffix.lower() == ".safetensors"
    is_other = content.startswith((*ZIP_STARTS, *_PICKLE_STARTS))
    if is_safetensors(content) or (is_named and not is_other):
        return from_safetensors(content)
    if content.startswith(ZIP_STARTS):
        return _from_npz(content)
    if content.startswith(_PICKLE_STARTS):
        return from_pickle(content)
    raise FileError(
        f"begins with {content[:8]!r} and is none of an .npz, a .safetensors and a pickle; {SAVE}"
    )


def _from_npz(content: bytes) -> dict[str, NDArray[Any]]:
    with open_archive(content) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".npy"):
                raise FileError(
                    f"is a zip archive but not an .npz: it holds {member.filename!r}, where each "
                    f"member would be an array, '<name>.npy'; {SAVE}"
                )
        # zipfile reads no more of a member than the archive declares.
        declared = sum(member.file_size for member in archive.infolist())
        check_unpacked(len(content), declared, _PLAIN)
        return dict(_from_npy(archive, member) for member in archive.namelist())


def _from_npy(archive: zipfile.ZipFile, member: str) -> tuple[str, NDArray[Any]]:
    name = member.removesuffix(".npy")
    damaged = f"holds {name!r}, which is damaged or not an array of numbers"
    with file_errors(damaged, CONVERT), archive.open(member) as file:
        array = read_npy(file, archive.getinfo(member).file_size)
    return name, native_array(name, array)
