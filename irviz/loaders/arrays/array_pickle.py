"""Read arrays from a pickle without giving it any function to call.

A pickle can name any function of any module and call it. So the few names that NumPy writes resolve
to stand-ins in this module, which only record their arguments; the arrays are made from the
records.
"""

import math
import pickle
import pickletools
from collections.abc import Callable
from io import BytesIO
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from irviz.loaders.arrays.supported_dtypes import (
    CONVERT,
    DTYPES,
    NUMBERS,
    SAVE,
    native_array,
)
from irviz.loaders.file_errors import FileError, brief

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
