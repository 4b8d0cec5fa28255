"""Read a model's parameters from a file, running nothing that the file may carry.

An ``.npz`` is read without pickles. A pickle can name any function of any module and call it, so
one is read by an unpickler that has no functions to give: the few names that NumPy writes stand
for stand-ins of this module, which take notes, and the arrays are made of the notes afterwards.
"""

import math
import os
import pickle
import pickletools
import reprlib
import stat
import sys
import zipfile
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Params = dict[str, NDArray[Any]]

_SAVE: Final = "save the arrays with numpy.savez(path, w0=..., b0=...) and load that file"
_CONVERT: Final = f"convert it with numpy.asarray(value, dtype='float32') and {_SAVE}"
_NUMBERS: Final = "bool, int, uint or float of at most 64 bits"
_DTYPES: Final = frozenset("b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split())

_ZIP_STARTS: Final = (b"PK\x03\x04", b"PK\x05\x06")
# From protocol 2 on a pickle says that it is one; before, a container or an array begins so.
_PICKLE_STARTS: Final = (b"\x80", b"(", b")", b"}", b"]", b"c")
# Deflate packs a thousand to one at best, and trained weights not even two to one.
_NPZ_RATIO: Final = 100
_NPZ_ROOM: Final = 1 << 28

# What a file says of itself may be long, deep or both.
_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 100


class ParamsError(ValueError):
    """Say why a file of parameters was not read, what would have been right and what to do."""


class _Unfit(Exception):
    """Carry such a sentence up to ``load_params``, which puts the name of the file before it."""


def load_params(path: str | os.PathLike[str]) -> Params:
    """Read a flat mapping of names to numeric arrays from an ``.npz`` or a pickle.

    What the file is, its first bytes say, not its name. Arrays keep shape and type (bool, int,
    uint or float of at most 64 bits) and come in native byte order, C-contiguous and writeable.
    Pickles are those of NumPy 1 and 2 by protocols 0 to 5. No code in the file is run.
    Raises ParamsError where the file cannot be read or holds anything else.
    """
    try:
        content = _content(Path(path))
        if content.startswith(_ZIP_STARTS):
            return _from_npz(content)
        if content.startswith(_PICKLE_STARTS):
            return _from_pickle(content)
        raise _Unfit(f"begins with {content[:8]!r} and is neither an .npz nor a pickle; {_SAVE}")
    except _Unfit as unfit:
        raise ParamsError(f"{os.fspath(path)!r} {unfit}") from unfit.__cause__


def _content(path: Path) -> bytes:
    try:
        # A pipe or a device may never end, so only a file is opened.
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a directory" if path.is_dir() else "not a regular file"
            raise _Unfit(f"is {kind}; give the path of an .npz or pickle file of parameters")
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise _Unfit("does not exist; give the path of an .npz or pickle file") from error
    except PermissionError as error:
        raise _Unfit("may not be read by this user; change its permissions or copy it") from error
    except (OSError, ValueError) as error:
        raise _Unfit(f"cannot be read ({error}); give the path of an .npz or pickle") from error
    if not content:
        raise _Unfit(f"is empty, where an .npz or a pickle was expected; {_SAVE}")
    return content


def _from_npz(content: bytes) -> Params:
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            for member in archive.infolist():
                if not member.filename.endswith(".npy"):
                    raise _Unfit(
                        f"is a zip archive but not an .npz: it holds {member.filename!r}, where "
                        f"each member would be an array, '<name>.npy'; {_SAVE}"
                    )
            # zipfile reads no more of a member than the archive declares.
            declared = sum(member.file_size for member in archive.infolist())
            if declared > max(_NPZ_ROOM, _NPZ_RATIO * len(content)):
                raise _Unfit(f"unpacks to {declared} bytes from {len(content)}; {_SAVE}")
            arrays = {name: _from_npy(archive, name) for name in archive.namelist()}
    except _Unfit:
        raise
    except Exception as error:  # zipfile and its codecs share no base class of errors
        raise _Unfit(
            f"is a damaged or incomplete .npz ({error}); copy it again, or {_SAVE}"
        ) from error
    return {name.removesuffix(".npy"): array for name, array in arrays.items()}


def _from_npy(archive: zipfile.ZipFile, member: str) -> NDArray[Any]:
    with archive.open(member) as file:
        try:
            return _plain(member, np.lib.format.read_array(file, allow_pickle=False))
        except ValueError as error:
            raise _Unfit(
                f"holds {member!r}, a damaged array or none of numbers ({error}); {_CONVERT}"
            ) from error


def _plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.str[1:] not in _DTYPES:
        raise _Unfit(
            f"holds {_brief.repr(name)} of dtype {str(array.dtype)!r}, where {_NUMBERS} is "
            f"needed; {_CONVERT}"
        )
    return np.array(array, array.dtype.newbyteorder("="), order="C")


def _from_pickle(content: bytes) -> Params:
    try:
        _check_instructions(content)
        # By latin1 Python 2's strings, which its arrays keep their bytes in, read as they were.
        loaded = _Unpickler(BytesIO(content), encoding="latin1").load()
        if type(loaded) is not dict:
            raise _Unfit(f"holds {_kind(loaded)}, where a dict of arrays is needed; {_SAVE}")
        for key, value in loaded.items():
            if type(key) is not str:
                raise _Unfit(f"has the key {_brief.repr(key)}, where a str is needed; {_SAVE}")
            if type(value) is not _Array:
                raise _Unfit(
                    f"holds {_brief.repr(key)}, {_kind(value)}, where an array is needed; a "
                    f"nested dict needs flat names such as 'layer.w0', a number {_CONVERT}"
                )
        room = len(content)
        made: dict[int, NDArray[Any]] = {}
        for key, value in loaded.items():
            # Weights tied under two names are one array in the file and stay one.
            if id(value) not in made:
                array = value.made()
                room -= array.nbytes
                if room < 0:
                    raise _Unfit(f"is a pickle that uses the same bytes for many arrays; {_SAVE}")
                made[id(value)] = _plain(key, array)
        return {key: made[id(value)] for key, value in loaded.items()}
    except _Unfit:
        raise
    except Exception as error:  # pickle's documentation leaves open what a damaged one raises
        raise _Unfit(
            f"is a damaged or incomplete pickle, or none ({error}); copy it again, or {_SAVE}"
        ) from error


def _kind(value: object) -> str:
    return "an array" if isinstance(value, _Array) else f"a {type(value).__name__.lstrip('_')}"


# What the pickler writes for dicts, lists and arrays, and persistent ids, which the unpickler
# refuses by itself. Left out above all: EXT*, which can get past find_class through copyreg's
# cache, and the other ways of making objects (INST, OBJ, NEWOBJ, NEWOBJ_EX).
_INSTRUCTIONS: Final = frozenset(
    """PROTO FRAME STOP MARK PERSID BINPERSID GLOBAL STACK_GLOBAL REDUCE BUILD NONE NEWTRUE NEWFALSE
    INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING
    UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8
    EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT DICT SETITEM
    SETITEMS PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET""".split()
)
# An array takes about thirty. With no bound, a key of tuples nested 200,000 deep, when hashed,
# takes the process down.
_MOST_INSTRUCTIONS: Final = 20_000


def _check_instructions(content: bytes) -> None:
    """Refuse what no pickle of arrays contains, before any of it is followed."""
    memo_of_tuple: dict[object, bool] = {}
    on_top_is_tuple = False
    for count, (instruction, argument, _) in enumerate(pickletools.genops(content)):
        name = instruction.name
        if name not in _INSTRUCTIONS:
            raise _Unfit(
                f"uses the pickle instruction {name!r}, which arrays do not need, so nothing in "
                f"it was run; {_SAVE}"
            )
        odd = count >= _MOST_INSTRUCTIONS
        if name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
            index = len(memo_of_tuple) if name == "MEMOIZE" else argument
            memo_of_tuple[index] = on_top_is_tuple
            # The pickler counts up; the unpickler makes room for whatever number it is told.
            odd |= not isinstance(index, int) or index > count
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            # The pickler uses no tuple twice. A tuple of twice itself, forty times over, is small
            # to write and takes for ever to hash.
            odd |= memo_of_tuple.get(argument, False)
            on_top_is_tuple = False
        else:
            on_top_is_tuple = name in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3")
        if odd:
            raise _Unfit(f"is a pickle longer or odder than arrays make one; {_SAVE}")


class _Inert:
    """Be a stand-in that a pickle can neither change nor look into."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        # Without this, BUILD sets whatever attributes it names.
        raise _Unfit(f"changes what arrays are made with, so nothing in it was run; {_SAVE}")


class _Maker(_Inert):
    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., object]) -> None:
        self._make = make

    def __call__(self, *arguments: object) -> object:
        return self._make(*arguments)


class _Bytes(_Inert):
    """Note bytes as protocols 0 to 2 write them: text, a character for each byte."""

    __slots__ = ("text",)

    def __init__(self, text: object = "", encoding: object = "latin1") -> None:
        if not isinstance(text, str) or encoding != "latin1":
            raise _Unfit(f"encodes text by {_brief.repr(encoding)}, not by 'latin1'; {_SAVE}")
        self.text = text

    def __repr__(self) -> str:
        return f"b{self.text!r}"


class _DType(_Inert):
    __slots__ = ("code", "order")

    def __init__(self, code: object, *_flags: object) -> None:
        if not isinstance(code, str) or code not in _DTYPES:
            what = "Python objects" if code in ("O4", "O8") else f"dtype {_brief.repr(code)}"
            raise _Unfit(f"holds an array of {what}, where {_NUMBERS} is needed; {_CONVERT}")
        self.code, self.order = code, "="

    def __setstate__(self, state: object) -> None:
        match state:
            case (3, "<" | ">" | "|" | "=" as order, None, None, None, -1, -1, 0):
                self.order = order
            case _:
                raise _Unfit(f"holds an array of structured or annotated dtype; {_CONVERT}")


class _Array(_Inert):
    """Note what an array is made of."""

    __slots__ = ("note",)

    def __init__(self, *note: object) -> None:
        self.note = note

    def __setstate__(self, state: object) -> None:
        match state:
            case (1, shape, dtype, fortran, data):
                self.note = (data, dtype, shape, "F" if fortran else "C", None)
            case _:
                raise _Unfit(f"holds an array in a form that NumPy does not write; {_SAVE}")

    def made(self) -> NDArray[Any]:
        """Make the array, as a view of the bytes noted, if the notes agree with each other."""
        match self.note:
            case (data, _DType() as kind, tuple() as shape, "C" | "F" | "K" as order, axes):
                # A Python 2 pickle has its bytes as plain text.
                data = _Bytes(data) if isinstance(data, str) else data
                data = data.text.encode("latin1") if isinstance(data, _Bytes) else data
                dtype = np.dtype(f"{kind.order}{kind.code}")
                sizes = [size for size in shape if type(size) is int and 0 <= size <= sys.maxsize]
                if (
                    isinstance(data, bytes | bytearray)
                    and len(sizes) == len(shape) <= _MOST_AXES
                    and math.prod(sizes) * dtype.itemsize == len(data)
                ):
                    array: NDArray[Any] = np.ndarray(
                        shape, dtype, bytes(data), order="F" if order == "F" else "C"
                    )
                    return array if axes is None else array.transpose(axes)
        raise _Unfit(f"holds an array whose bytes do not fit its shape and dtype; {_SAVE}")


_MOST_AXES: Final = 32
# An array's class is only ever named, so its stand-in need not be able to do anything at all.
_NDARRAY: Final = "numpy.ndarray"


def _reconstruct(kind: object, _shape: object, _typecode: object) -> _Array:
    if kind != _NDARRAY:
        raise _Unfit(f"makes an array of what is no array class; {_SAVE}")
    return _Array()


def _frombuffer(
    data: object, dtype: object, shape: object, order: object, axes: object = None
) -> _Array:
    return _Array(data, dtype, shape, order, axes)


def _scalar(dtype: object, data: object) -> _Array:
    return _Array(data, dtype, (), "C", None)


# Every name that ndarray.__reduce__, __reduce_ex__(5) and NumPy's scalars write, in NumPy 1 (core)
# and 2 (_core), and that Python writes for bytes below protocol 3.
_STAND_INS: Final[dict[tuple[str, str], object]] = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _Maker(_DType),
    ("_codecs", "encode"): _Maker(_Bytes),
    ("__builtin__", "bytes"): _Maker(_Bytes),
    ("builtins", "bytes"): _Maker(_Bytes),
} | {
    (f"numpy.{core}.{module}", name): _Maker(make)
    for core in ("core", "_core")
    for module, name, make in (
        ("multiarray", "_reconstruct", _reconstruct),
        ("multiarray", "scalar", _scalar),
        ("numeric", "_frombuffer", _frombuffer),
    )
}


class _Unpickler(pickle.Unpickler):
    """Look names up in a table instead of importing them."""

    def find_class(self, module_name: str, global_name: str, /) -> object:
        try:
            return _STAND_INS[module_name, global_name]
        except KeyError:
            raise _Unfit(
                f"names the global {_brief.repr(f'{module_name}.{global_name}')}, which arrays do "
                f"not need, so nothing in it was run; {_SAVE}"
            ) from None

    def persistent_load(self, pid: object) -> object:
        raise _Unfit(
            f"refers to an object outside it by the persistent id {_brief.repr(pid)}, so nothing "
            f"in it was run; {_SAVE}"
        )
