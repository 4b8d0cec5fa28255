"""Arrays in memory that workers map, so that large weights are not sent with each call.

They are anonymous files of this process, which vanish with it. A worker maps them anew for each
call, and what it writes there stays its own. Only Linux has them: elsewhere, arrays are sent.
"""

from __future__ import annotations

import io
import mmap
import os
import secrets
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]

LEAST_BYTES = 1 << 16
"""Less than this is sent."""
_ALIGNMENT = 64
"""What TVM's kernels expect."""
_CAN_SHARE = sys.platform.startswith("linux") and hasattr(os, "memfd_create")


class UnsharedError(OSError):
    """The memory of another process cannot be mapped."""


@dataclass(frozen=True)
class _Segment:
    """A part of this process's memory: a file of its own, or a private map of another's.

    `number` is the file's descriptor, None for a private map.
    """

    memory: weakref.ref[mmap.mmap]
    begin: int
    size: int
    name: str
    number: int | None


_segments: dict[str, _Segment] = {}
"""Those of this process, by name."""
_mapped: dict[str, mmap.mmap] = {}
"""What has been mapped for the objects that are being unpickled, by name."""


def shared(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return read-only copies in shared memory; what is there, small or no array as it is."""
    new = {
        name: array
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and not array.dtype.hasobject and not _segment_of(array)
    }
    offsets, size = dict[str, int](), 0
    for name, array in new.items():
        offsets[name] = size
        size += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    if not _CAN_SHARE or size < LEAST_BYTES:
        return dict(arrays)
    try:
        memory = _new_memory(size)
    except OSError:  # they are sent
        return dict(arrays)
    found = dict(arrays)
    for name, array in new.items():
        copy = _array(memory, offsets[name], array.shape, array.dtype)
        copy[...] = array
        copy.flags.writeable = False
        found[name] = copy
    return found


def is_mapped(array: Array) -> bool:
    """Tell whether an array is this worker's own map of another process's memory, and aligned."""
    segment = _segment_of(array)
    is_own = segment is not None and segment.number is None
    return is_own and _address(array) % _ALIGNMENT == 0


def is_shared(array: Array) -> bool:
    """Tell whether workers can map an array."""
    segment = _segment_of(array)
    return segment is not None and segment.number is not None


def writable(array: Array) -> Array:
    """Return a shared array as one that can be written, as DLPack wants it."""
    segment = _segment_of(array)
    memory = None if segment is None else segment.memory()
    if segment is None or memory is None:
        return array
    return _array(memory, _address(array) - segment.begin, array.shape, array.dtype)


def dumps(value: object, *, whole: bool = False) -> bytes:
    """Pickle a value by cloudpickle, with the places of arrays that are shared unless `whole`."""
    with io.BytesIO() as file:
        (cloudpickle.CloudPickler if whole else _Pickler)(file).dump(value)
        return file.getvalue()


def loads(packed: bytes) -> Any:
    """Unpickle what `dumps` gave in another process; raise UnsharedError, and what it raises."""
    try:
        return cloudpickle.loads(packed)
    finally:
        _mapped.clear()  # the next call gets maps of its own


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc] # it has no types
    def reducer_override(self, value: object) -> Any:
        if type(value) is np.ndarray and (segment := _segment_of(value)) and segment.number:
            source = (os.getpid(), segment.number, segment.name, segment.size)
            offset = _address(value) - segment.begin
            return _attached, (*source, offset, value.shape, value.dtype)
        return super().reducer_override(value)


def _attached(
    process: int,
    number: int,
    name: str,
    size: int,
    offset: int,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Array:
    """Map another process's memory, and return an array in there."""
    if name not in _mapped:
        path = Path(f"/proc/{process}/fd/{number}")
        try:
            if name not in path.readlink().name:
                raise UnsharedError(f"{path} is another file by now")
            with path.open("rb") as file:
                private = mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE
                _mapped[name] = _registered(mmap.mmap(file.fileno(), size, *private), name, None)
        except OSError as failure:
            raise UnsharedError(str(failure)) from failure
    return _array(_mapped[name], offset, shape, dtype)


def _new_memory(size: int) -> mmap.mmap:
    """Return memory that other processes can map; raise OSError."""
    name = f"irviz-{secrets.token_hex(8)}"
    number = os.memfd_create(name)
    try:
        os.posix_fallocate(number, 0, size)  # which fails where there is no room
        memory = _registered(mmap.mmap(number, size), name, number)
    except OSError:
        os.close(number)
        raise
    weakref.finalize(memory, os.close, number)
    return memory


def _registered(memory: mmap.mmap, name: str, number: int | None) -> mmap.mmap:
    begin = _address(np.frombuffer(memory, np.uint8))
    own = name if number is not None else f"{name} at {begin}"
    _segments[own] = _Segment(weakref.ref(memory), begin, len(memory), name, number)
    weakref.finalize(memory, _segments.pop, own, None)
    return memory


def _segment_of(array: Array) -> _Segment | None:
    """Return the segment that an array lies in, None for none or an array with gaps."""
    if not _segments or not array.flags.c_contiguous or not array.nbytes:
        return None
    begin = _address(array)
    for one in list(_segments.values()):
        if one.begin <= begin and begin + array.nbytes <= one.begin + one.size:
            return one
    return None


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _array(memory: mmap.mmap, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return np.ndarray(shape, dtype, memory, offset)
