"""Read a model's parameters from a file, running nothing in it."""

from __future__ import annotations

import json
import math
import os
import pickle
import pickletools
import zipfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final, Literal

import ml_dtypes  # noqa: F401 - which adds the names of its dtypes to NumPy
import numpy as np
from numpy.typing import NDArray
from safetensors import deserialize

from irviz.errors import LoadError
from irviz.loaders.file_limits import (
    ZIP_STARTS,
    FileError,
    brief,
    check_unpacked,
    file_errors,
    memory_share,
    named,
    open_archive,
    read_file,
)
from irviz.loaders.tvm_json import unique_keys

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


# --- Read arrays from a .safetensors file: a header in JSON, then the bytes of all arrays --------
#
# The safetensors library checks that the arrays lie one after the other, overlap nowhere and
# fill the file. This module also rejects unknown fields and duplicate keys, for which readers
# choose different values.


_LENGTH: Final = 8
_LONGEST_HEADER: Final = 100_000_000
"""The longest header that the format allows, in bytes."""
_MAX_HEADER: Final = 1 << 22
"""The longest header that is read, for some 30,000 arrays; reading takes thirty times its size."""
_METADATA: Final = "__metadata__"
_FIELDS: Final = {"dtype", "shape", "data_offsets"}
_DTYPES: Final = {
    "BOOL": "?",
    **{f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": f"<f{size}" for size in (2, 4, 8)},
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}
_ADVICE: Final = "save the arrays with safetensors.numpy.save_file(params, path) and load that file"


def is_safetensors(content: bytes) -> bool:
    """Tell whether data starts like a .safetensors file: with a length, then JSON."""
    length = int.from_bytes(content[:_LENGTH], "little")
    return content[_LENGTH : _LENGTH + 1] == b"{" and length <= _LONGEST_HEADER


def from_safetensors(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays by name, in native byte order; raise FileError for any other file.

    Arrays of bfloat16 and of 8-bit floats have the dtypes of ml_dtypes.
    """
    length = int.from_bytes(content[:_LENGTH], "little")
    if _MAX_HEADER < length <= _LONGEST_HEADER:
        raise FileError(
            f"has a header of {length:,} bytes, and at most {_MAX_HEADER:,} are read: save fewer "
            "arrays"
        )
    with file_errors("is damaged, cut short or not a .safetensors file", _ADVICE):
        entries = deserialize(content)  # type: ignore[no-untyped-call]
        header = json.loads(content[_LENGTH : _LENGTH + length], object_pairs_hook=unique_keys)
        for name, entry in header.items():
            if name != _METADATA and entry.keys() != _FIELDS:
                raise ValueError(f"unknown field in {brief(name)}: {brief(entry)}")
        return {name: _array(name, entry) for name, entry in entries}


def _array(name: str, entry: Mapping[str, Any]) -> NDArray[Any]:
    if entry["dtype"] not in _DTYPES:
        raise FileError(
            f"holds {brief(name)} of dtype {brief(entry['dtype'])}, where {NUMBERS}, or bfloat16, "
            f"is needed; convert it, and {_ADVICE}"
        )
    dtype: np.dtype[Any] = np.dtype(_DTYPES[entry["dtype"]])
    flat: NDArray[Any] = np.frombuffer(entry["data"], dtype)
    return flat.astype(dtype.newbyteorder("="), copy=False).reshape(entry["shape"])


# --- Read an array in NumPy's format, .npy -------------------------------------------------------


def read_npy(file: IO[bytes], size: int) -> NDArray[Any]:
    """Return the array in a file of `size` bytes in NumPy's format.

    Raises what NumPy raises for damaged files, and ValueError for a shape larger than the file, for
    which NumPy would allocate memory.
    """
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"the shape {shape} of {dtype} is larger than its {size:,} bytes")
    file.seek(0)
    array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array


# --- The dtypes that parameters and inputs from files can have -----------------------------------


SAVE: Final = "save the arrays with numpy.savez(path, w0=..., b0=...) and load that file"
CONVERT: Final = f"convert it with numpy.asarray(value, dtype='float32') and {SAVE}"
NUMBERS: Final = "bool, int, uint or float of at most 64 bits"
DTYPES: Final = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}


def native_array(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Copy an array: writeable, C-contiguous, native byte order. Raise FileError for others."""
    if array.dtype.str[1:] not in DTYPES:
        raise FileError(
            f"holds {brief(name)} of dtype {str(array.dtype)!r}, where {NUMBERS} is "
            f"needed; {CONVERT}"
        )
    return np.array(array, array.dtype.newbyteorder("="), order="C")


# --- Read arrays from a pickle without giving it any function to call ----------------------------
#
# A pickle can name any function of any module and call it. So the few names that NumPy writes
# resolve to stand-ins in this module, which only record their arguments; the arrays are made
# from the records.


NOT_RUN: Final = f"arrays do not need, so nothing in it was run; {SAVE}"


def from_pickle(content: bytes) -> dict[str, NDArray[Any]]:
    """Read a pickled dict of arrays, running nothing; raise FileError for anything else."""
    _check_instructions(content)
    # latin1 keeps the bytes of Python 2's strings, in which its arrays are stored.
    loaded = _Unpickler(BytesIO(content), encoding="latin1").load()
    if type(loaded) is not dict:
        raise FileError(f"holds {brief(loaded)}, where a dict of arrays is needed; {SAVE}")
    arrays: dict[int, NDArray[Any]] = {}
    bytes_left = len(content)
    for key, value in loaded.items():
        if type(key) is not str:
            raise FileError(f"has the key {brief(key)}, where a str is needed; {SAVE}")
        if type(value) is not _Array:
            raise FileError(
                f"holds {brief(value)} under {brief(key)}, where an array is needed; "
                f"give nested dicts flat names such as 'layer.w0', and {SAVE}"
            )
        # Weights tied under two names are one array in the file and stay one.
        if id(value) not in arrays:
            array = value.to_array()
            bytes_left -= array.nbytes
            if bytes_left < 0:
                raise FileError(f"makes many arrays of the same bytes; {SAVE}")
            arrays[id(value)] = native_array(key, array)
    return {key: arrays[id(value)] for key, value in loaded.items()}


# The instructions that the pickler writes for dicts, lists and arrays, and persistent ids, which
# the unpickler refuses by itself. Not among them: EXT*, which can bypass find_class through
# copyreg's cache, and the other instructions that make objects (INST, OBJ, NEWOBJ, NEWOBJ_EX).
_ADMITTED: Final = """
    PROTO FRAME STOP MARK PERSID BINPERSID GLOBAL STACK_GLOBAL REDUCE BUILD NONE NEWTRUE NEWFALSE
    INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8
    EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT DICT SETITEM
    SETITEMS PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET
"""
_INSTRUCTIONS: Final = frozenset(_ADMITTED.split())
# An array takes about thirty. Tuples nested 200,000 deep overflow the C stack when hashed.
_MAX_INSTRUCTIONS: Final = 20_000


def _check_instructions(content: bytes) -> None:
    """Raise FileError for instructions that no pickle of arrays contains, executing none."""
    may_be_tuple: dict[object, bool] = {}
    on_top = False
    for count, (instruction, argument, _) in enumerate(pickletools.genops(content)):
        name = instruction.name
        if name not in _INSTRUCTIONS:
            raise FileError(f"uses the pickle instruction {name!r}, which {NOT_RUN}")
        odd = count >= _MAX_INSTRUCTIONS
        if name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            index = len(may_be_tuple) if name == "MEMOIZE" else argument
            may_be_tuple[index] = on_top
            # The pickler counts up; the unpickler allocates memory up to any index.
            odd |= not isinstance(index, int) or index > count
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            # The pickler uses no tuple twice. A tuple that contains one tuple twice, nested forty
            # times, is a short pickle that takes forever to hash.
            odd |= may_be_tuple.get(argument, False)
            on_top = False
        elif name not in ("PROTO", "FRAME"):
            # The last three do not change the top, and the pickler memoizes nothing after them.
            on_top = name.startswith(("TUPLE", "SETITEM", "APPEND", "BUILD"))
        if odd:
            raise FileError(f"is a pickle longer or odder than one of arrays; {SAVE}")


class _Inert:
    """A stand-in that a pickle can neither change nor inspect."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__[1:].lower()}>"

    def __setstate__(self, state: object) -> None:
        # Without this, BUILD sets any attributes.
        raise FileError(f"changes the state of a stand-in, which {NOT_RUN}")


class _Callable(_Inert):
    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., object]) -> None:
        self._make = make

    def __call__(self, *arguments: object) -> object:
        return self._make(*arguments)


class _Bytes(_Inert):
    """A record of bytes as protocols 0 to 2 write them: text with a character for each byte."""

    __slots__ = ("text",)

    def __init__(self, text: object = "", encoding: object = "latin1") -> None:
        if not isinstance(text, str) or encoding != "latin1":
            raise FileError(f"encodes text by {brief(encoding)}, not 'latin1'; {SAVE}")
        self.text = text


class _DType(_Inert):
    __slots__ = ("code", "order")

    def __init__(self, code: object, *_flags: object) -> None:
        if not isinstance(code, str) or code not in DTYPES:
            what = "Python objects" if code in ("O4", "O8") else f"dtype {brief(code)}"
            raise FileError(f"holds an array of {what}, where {NUMBERS} is needed; {CONVERT}")
        self.code, self.order = code, "="

    def __setstate__(self, state: object) -> None:
        match state:
            case (3, "<" | ">" | "|" | "=" as order, None, None, None, -1, -1, 0):
                self.order = order
            case _:
                raise FileError(f"holds an array of structured or annotated dtype; {CONVERT}")


class _Array(_Inert):
    """A record of an array: its bytes, dtype, shape and order, and its axes if permuted."""

    __slots__ = ("record",)

    def __init__(self, *record: object) -> None:
        self.record = record

    def __setstate__(self, state: object) -> None:
        match state:
            case (1, shape, dtype, fortran, data):
                self.record = (data, dtype, shape, "F" if fortran else "C")
            case _:
                raise FileError(f"holds an array in a form that NumPy does not write; {SAVE}")

    def to_array(self) -> NDArray[Any]:
        """Return a view of the bytes as an array; raise FileError for an inconsistent record."""
        match self.record:
            case (data, _DType() as kind, tuple() as shape, "C" | "F" | "K" as order, *axes):
                dtype = np.dtype(kind.order + kind.code)
                # In a Python 2 pickle bytes are plain text.
                text = data.text if isinstance(data, _Bytes) else data
                data = text.encode("latin1") if isinstance(text, str) else data
                if (
                    isinstance(data, bytes | bytearray)
                    and all(type(size) is int and size >= 0 for size in shape)
                    and math.prod(shape) * dtype.itemsize == len(data)
                ):
                    layout: Literal["C", "F"] = "F" if order == "F" else "C"
                    array: NDArray[Any] = np.ndarray(shape, dtype, data, order=layout)
                    permuted: Any = axes[0] if order == "K" and axes else None
                    return array if permuted is None else array.transpose(permuted)
        raise FileError(f"holds an array whose bytes do not fit its shape and dtype; {SAVE}")


# Every name in the pickles of NumPy's arrays and scalars, of NumPy 1 (core) and 2 (_core), and in
# those of Python's bytes below protocol 3.
_STAND_INS: Final[dict[tuple[str, str], object]] = {
    # A pickle only names an array's class, so its stand-in does nothing.
    ("numpy", "ndarray"): "numpy.ndarray",
    ("numpy", "dtype"): _Callable(_DType),
    ("_codecs", "encode"): _Callable(_Bytes),
    ("__builtin__", "bytes"): _Callable(_Bytes),
}
for _core in ("numpy.core", "numpy._core"):
    _STAND_INS[f"{_core}.multiarray", "_reconstruct"] = _Callable(lambda *_: _Array())
    _STAND_INS[f"{_core}.multiarray", "scalar"] = _Callable(lambda d, b: _Array(b, d, (), "C"))
    _STAND_INS[f"{_core}.numeric", "_frombuffer"] = _Callable(_Array)


class _Unpickler(pickle.Unpickler):
    """Looks names up in a table instead of importing them."""

    def find_class(self, module_name: str, global_name: str, /) -> object:
        if (module_name, global_name) in _STAND_INS:
            return _STAND_INS[module_name, global_name]
        name = brief(f"{module_name}.{global_name}")
        raise FileError(f"names the global {name}, which {NOT_RUN}")

    def persistent_load(self, pid: object) -> object:
        raise FileError(f"has the persistent id {brief(pid)}, which {NOT_RUN}")
