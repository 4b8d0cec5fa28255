"""The answers of workers, as data: reading one runs nothing, and it has the expected type.

An answer is MessagePack, read by msgspec as the return type of the function that was called: plain
values, dataclasses, named tuples, enums and arrays, and kinds that `register` adds. What is
annotated as Any, or not at all, becomes plain values. Large arrays are written into an anonymous
file of the parent, if there is one.
"""

from __future__ import annotations

import contextlib
import functools
import math
import mmap
import os
import re
import struct
import sys
import threading
import traceback
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import msgspec

from irviz.worker.shared_arrays import LEAST_BYTES, Place, adopted, aligned

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


# --- Frames: progress messages, and finally the answer --------------------------------------------


PROGRESS, ANSWER = b"p", b"a"
MOST_BYTES = 1 << 30
"""The size limit of an answer, without its large arrays."""
_MAX_CHARACTERS = 256
_HEADER = struct.Struct("<cQ")
_MOST = {PROGRESS: 4 * _MAX_CHARACTERS, ANSWER: MOST_BYTES}
_answers: BinaryIO | None = None
"""The pipe to the parent, if this process is a worker."""
_lock = threading.Lock()


def set_pipe(answers: BinaryIO | None) -> None:
    """Make this process a worker that answers through a pipe, or none."""
    global _answers
    _answers = answers


def pipe_number() -> int | None:
    """Return the descriptor of that pipe, None if this process is no worker."""
    return None if _answers is None else _answers.fileno()


def send_frame(kind: bytes, content: bytes) -> None:
    """Send a progress message or an answer."""
    assert _answers is not None, "only a worker sends"
    with _lock:
        _answers.write(_HEADER.pack(kind, len(content)))
        _answers.write(content)
        _answers.flush()


def receive_frame(answers: BinaryIO) -> tuple[bytes, bytes]:
    """Read the kind and the content of a frame; raise EOFError at the end, ValueError for none."""
    kind, size = _HEADER.unpack(_read(answers, _HEADER.size))
    if size > _MOST.get(kind, -1):
        raise ValueError(f"{kind!r} of {size} bytes is no frame of a worker")
    return kind, _read(answers, size)


def report_progress(message: str) -> None:
    """Set the progress message, if this process is a worker."""
    if _answers is not None:
        words = message[:_MAX_CHARACTERS].replace("\n", " ")
        with contextlib.suppress(OSError):  # the parent is gone
            send_frame(PROGRESS, words.encode(errors="backslashreplace")[: _MOST[PROGRESS]])


def _read(answers: BinaryIO, size: int) -> bytes:
    parts, left = list[bytes](), size
    while left:
        parts.append(answers.read(left))  # a raw file may give fewer
        if not parts[-1]:
            raise EOFError
        left -= len(parts[-1])
    return b"".join(parts)


# --- Answers --------------------------------------------------------------------------------------


Result = TypeVar("Result")

_DTYPE = re.compile(r"[<>|]?[biufc?][0-9]*|(?:bfloat|float|u?int)[a-z0-9_]+")
"""The dtypes of answers: numbers and bools."""
_MOST_AXES = 32
_Plain = str | bool | int | float | None


class UnreadableAnswerError(Exception):
    """A worker did not send an answer of the expected type."""


class Packed(bytes):
    """An answer that another process has packed."""


class Failure(msgspec.Struct, array_like=True):
    """An exception: its class and the bases of it, by module and name, and its traceback."""

    kinds: list[tuple[str, str]]
    arguments: list[_Plain]
    attributes: dict[str, _Plain]
    text: str


class _Answer(msgspec.Struct, array_like=True):
    """The MessagePack of a value; the size of the arrays in the file, and if they are read-only."""

    value: msgspec.Raw
    failure: Failure | None = None
    size: int = 0
    is_shared: bool = False


class _Array(msgspec.Struct, array_like=True):
    """An array: its bytes, or their offset in the file."""

    dtype: str
    shape: list[int]
    is_writable: bool
    content: bytes | int


_file: int | None = None
"""The file for large arrays of the next answer, if this process is a worker."""
_limit: tuple[int, Exception] | None = None
"""The most bytes of the next answer, and the error if it has more."""
_Packing = tuple[Callable[[Any], object], Callable[[Any], object]]
_kinds: dict[type, _Packing] = {}


def register(kind: type, pack: Callable[[Any], object], unpack: Callable[[Any], object]) -> None:
    """Let answers have values of a type; `unpack` raises ValueError for what it refuses."""
    _kinds[kind] = pack, unpack


register(Path, str, Path)


def answer_type(function: Callable[..., object]) -> Any:
    """Return the annotated return type of a function, Any if there is none."""
    while isinstance(function, functools.partial):
        function = function.func
    found = {} if isinstance(function, type) else getattr(function, "__annotations__", {})
    own = types.SimpleNamespace(__annotations__={"": found.get("return", Any)})
    return typing.get_type_hints(own, getattr(function, "__globals__", None))[""]


def convert(packed: object, kind: type[Result]) -> Result:
    """Return what `register`'s `unpack` gets as another type; raise ValueError if it is not one."""
    return msgspec.convert(packed, kind, dec_hook=functools.partial(_unpacked, None, False))


def set_answer_file(number: int | None) -> None:
    """Set the descriptor of the file for large arrays of this process's next answer."""
    global _file
    _file = number


def answer_file() -> int | None:
    """Return the descriptor of that file, None if there is none."""
    return _file


def limit_answer(most: int, refusal: Exception) -> None:
    """Let the function that is called now fail if its answer has more bytes, with its arrays."""
    global _limit
    _limit = most, refusal


def packed_call(function: Callable[[], object]) -> bytes:
    """Call a function and return its packed value, or exception and traceback."""
    global _limit
    _limit = None
    try:
        value = function()
        return value if isinstance(value, Packed) else pack_answer(value, _file)
    except BaseException as failure:
        return pack_failure(failure, "".join(traceback.format_exception(failure)))


def pack_answer(value: object, number: int | None) -> bytes:
    """Pack a value, with its large arrays in the file of a descriptor; raise what packing raises.

    Without a file, or without room in it, arrays are a part of the result.
    """
    if number is not None:
        file = _ArrayFile()
        packed = _packed(value, file.place)
        _check_size(len(packed) + file.size)
        with contextlib.suppress(OSError):
            file.write(number)
            return _packed(_Answer(msgspec.Raw(packed), None, file.size, file.is_shared))
    packed = _packed(value)
    _check_size(len(packed))
    return _packed(_Answer(msgspec.Raw(packed)))


def _check_size(size: int) -> None:
    if _limit and size > _limit[0]:
        raise _limit[1]


def pack_failure(failure: BaseException, text: str) -> bytes:
    """Pack an exception and its traceback."""
    kinds = [one for one in type(failure).__mro__ if _is_known(one) and one is not Exception]
    arguments, attributes = list(failure.args), vars(failure)
    if type(failure) not in kinds:
        arguments, attributes = [f"{type(failure).__name__}: {failure}"], {}
    elif not all(isinstance(one, _Plain) for one in arguments):
        arguments = [str(failure)]
    kept = {
        name: _text(one)
        for name, one in attributes.items()
        if isinstance(one, _Plain) and not name.startswith("_")
    }
    names = [(one.__module__, one.__qualname__) for one in kinds]
    packed = Failure(names, [_text(one) for one in arguments], kept, _text(text))
    return _packed(_Answer(msgspec.Raw(_packed(None)), packed))


def unpack_answer(packed: bytes, place: Place | None, kind: Any) -> tuple[Any, Failure | None]:
    """Return the value of an answer or its failure; raise UnreadableAnswerError."""
    try:
        answer = msgspec.msgpack.decode(packed, type=_Answer)
        if answer.failure is not None:
            return None, answer.failure
        memory = None
        if answer.size:
            memory = _mapped(place, answer.size, is_shared=answer.is_shared)
        reader = functools.partial(_unpacked, memory, not answer.is_shared)
        return msgspec.msgpack.decode(answer.value, type=kind, dec_hook=reader), None
    except Exception as failure:  # a type may refuse its fields in any way
        raise UnreadableAnswerError(f"{type(failure).__name__}: {failure}") from None


def exception(failure: Failure) -> Exception:
    """Return the exception of a failure, of its class, or else the first base known here."""
    for module, name in failure.kinds:
        kind: Any = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and _is_known(kind):
            with contextlib.suppress(Exception):  # a class may take other arguments
                made: Exception = kind.__new__(kind, *failure.arguments)  # type: ignore[assignment]
                made.args = tuple(failure.arguments)
                vars(made).update(failure.attributes)
                return made
    return RuntimeError(*failure.arguments)


def _is_known(kind: type) -> bool:
    """Tell whether a class is an exception of Python or irviz, which answers may have."""
    is_own = kind.__module__ == "builtins" or kind.__module__.startswith("irviz.")
    return is_own and issubclass(kind, Exception)


def _text(value: Any) -> Any:
    """Return a text as UTF-8 can have it; other values as they are."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _packed(value: object, array: Callable[[Array], object] | None = None) -> bytes:
    def pack(one: Any) -> object:
        import numpy as np  # every worker imports this module, few need arrays

        if isinstance(one, np.ndarray):
            return (array or _inline)(one)
        if isinstance(one, np.generic):
            return one.item()
        if isinstance(one, str):  # of a subclass
            return str.__str__(one)
        for kind, (packed, _) in _kinds.items():
            if isinstance(one, kind):
                return packed(one)
        raise TypeError(f"a {type(one).__qualname__} cannot be sent from another process")

    return msgspec.msgpack.encode(value, enc_hook=pack)


def _inline(array: Array) -> _Array:
    return _described(array, array.tobytes())


def _described(array: Array, content: bytes | int) -> _Array:
    dtype = array.dtype.name if array.dtype.kind == "V" else array.dtype.str
    if not _DTYPE.fullmatch(dtype):
        raise TypeError(f"an array of {array.dtype} cannot be sent from another process")
    return _Array(dtype, list(array.shape), bool(array.flags.writeable), content)


class _ArrayFile:
    """The large arrays of an answer, and where each is in the file."""

    def __init__(self) -> None:
        self._arrays: list[tuple[int, Array]] = []
        self.size = 0

    @property
    def is_shared(self) -> bool:
        """Whether all arrays are read-only, so that other workers may map them."""
        return not any(array.flags.writeable for _, array in self._arrays)

    def place(self, array: Array) -> _Array:
        """Describe an array, and give a large one a place."""
        if array.nbytes < LEAST_BYTES:
            return _inline(array)
        described = _described(array, self.size)
        self._arrays.append((self.size, array))
        self.size += aligned(array.nbytes)
        return described

    def write(self, number: int) -> None:
        """Write the arrays; raise OSError if there is no room."""
        import numpy as np

        if self.size:
            os.posix_fallocate(number, 0, self.size)
        for offset, array in self._arrays:
            view, done = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, 0
            while done < len(view):
                done += os.pwrite(number, view[done:], offset + done)


def _mapped(place: Place | None, size: int, *, is_shared: bool) -> mmap.mmap:
    if place is None or size < 0 or os.fstat(place.number).st_size < size:
        raise ValueError("there is no file with its arrays")
    return adopted(place, is_shared=is_shared)


def _unpacked(memory: mmap.mmap | None, is_writable: bool, kind: Any, packed: Any) -> Any:
    """Return a value of a type that msgspec does not know."""
    import numpy as np

    kind = typing.get_origin(kind) or kind
    if kind is np.ndarray:
        return _array(msgspec.convert(packed, _Array), memory, is_writable=is_writable)
    if kind in _kinds:
        return _kinds[kind][1](packed)
    if kind is object:
        return packed
    raise ValueError(f"a {kind} is not read from another process")


def _array(packed: _Array, memory: mmap.mmap | None, *, is_writable: bool) -> Array:
    """Return an array; raise ValueError if its bytes are not there."""
    import numpy as np

    if not _DTYPE.fullmatch(packed.dtype) or len(packed.shape) > _MOST_AXES:
        raise ValueError(f"an array of {packed.dtype} and {len(packed.shape)} axes")
    with contextlib.suppress(ImportError):
        import ml_dtypes  # noqa: F401 - which adds the names of its dtypes
    dtype, content = np.dtype(packed.dtype), packed.content
    nbytes = math.prod(packed.shape) * dtype.itemsize
    buffer: bytes | bytearray | mmap.mmap | None
    buffer = content if isinstance(content, bytes) else memory
    offset = content if isinstance(content, int) else 0
    if buffer is None or min([offset, *packed.shape]) < 0 or offset + nbytes > len(buffer):
        raise ValueError("the bytes of an array are not there")
    if isinstance(buffer, bytes) and packed.is_writable:
        buffer = bytearray(buffer)
    array: Array = np.ndarray(packed.shape, dtype, buffer, offset)
    array.flags.writeable = packed.is_writable and (is_writable or buffer is not memory)
    return array
