"""Share arrays between workers and their parent in mapped memory, so that they are not sent.

They are in anonymous files of the parent, which vanish with it. A worker maps arguments privately
for each call, so others do not see what it writes; the arrays of its answer are in an empty file.
This needs Linux; elsewhere, arrays are sent.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import secrets
import sys
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import cloudpickle

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]

LEAST_BYTES = 1 << 16
"""Smaller arrays are sent."""
_ALIGNMENT = 64
"""The alignment that TVM's kernels expect."""
_CAN_SHARE = sys.platform.startswith("linux") and hasattr(os, "memfd_create")


class UnsharedError(OSError):
    """The memory of another process cannot be mapped."""


@dataclass(frozen=True)
class _Segment:
    """A segment of memory: an anonymous file, or a private map of another process's file.

    `number` is the file's descriptor, None for a private map.
    """

    memory: weakref.ref[mmap.mmap]
    begin: int
    size: int
    name: str
    number: int | None


_segments: dict[str, _Segment] = {}
"""The segments of this process, by name."""
_mapped: dict[str, mmap.mmap] = {}
"""The maps made for the objects that are being unpickled, by name."""


def shared(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return read-only copies in shared memory; small, already shared or other values are kept."""
    import numpy as np  # in functions alone: every worker imports this module, few need arrays

    new = {
        name: array
        for name, array in arrays.items()
        if isinstance(array, np.ndarray) and not array.dtype.hasobject and not _segment_of(array)
    }
    size = sum(aligned(array.nbytes) for array in new.values())
    if not _CAN_SHARE or size < LEAST_BYTES:
        return dict(arrays)
    try:
        memory = _new_memory(size)
    except OSError:  # they are sent
        return dict(arrays)
    found, offset = dict(arrays), 0
    for name, array in new.items():
        copy = _array(memory, offset, array.shape, array.dtype)
        copy[...] = array
        copy.flags.writeable = False
        found[name] = copy
        offset += aligned(array.nbytes)
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
    """Return a shared array as a writable one, as DLPack requires."""
    segment = _segment_of(array)
    memory = None if segment is None else segment.memory()
    if segment is None or memory is None:
        return array
    return _array(memory, _address(array) - segment.begin, array.shape, array.dtype)


def dumps(value: object, *, whole: bool = False) -> bytes:
    """Pickle a value by cloudpickle; shared arrays are sent as references unless `whole`."""
    with io.BytesIO() as file:
        (cloudpickle.CloudPickler if whole else _Pickler)(file).dump(value)
        return file.getvalue()


def loads(packed: bytes) -> Any:
    """Unpickle the result of `dumps` in another process; raise UnsharedError if that fails."""
    try:
        return cloudpickle.loads(packed)
    finally:
        _mapped.clear()  # the next call gets maps of its own


class Place(NamedTuple):
    """An anonymous file of a process: its descriptor there, and its name."""

    process: int
    number: int
    name: str

    def open(self, flags: int) -> int:
        """Return a descriptor of the file in this process; raise UnsharedError."""
        path = Path(f"/proc/{self.process}/fd/{self.number}")
        try:
            if self.name not in path.readlink().name:
                raise UnsharedError(f"{path} is another file by now")
            return os.open(path, flags)
        except OSError as failure:
            raise UnsharedError(str(failure)) from failure


@contextlib.contextmanager
def answer_place() -> Iterator[Place | None]:
    """Yield an empty file of this process for the arrays of one answer, None if there is none."""
    name, number = _new_name(), None
    with contextlib.suppress(OSError):
        if _CAN_SHARE:
            number = os.memfd_create(name, os.MFD_ALLOW_SEALING)
    try:
        yield None if number is None else Place(os.getpid(), number, name)
    finally:
        if number is not None:
            os.close(number)


def adopted(place: Place, *, is_shared: bool) -> mmap.mmap:
    """Map an own file in which a worker wrote; workers can map it, too, where `is_shared`."""
    import fcntl  # of systems that have such files

    number = os.dup(place.number)
    try:
        # the worker may have it open still: from now on it cannot cut it off
        fcntl.fcntl(number, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        memory = mmap.mmap(number, 0)
    except BaseException:
        os.close(number)
        raise
    if is_shared:
        return _registered(memory, place.name, number)
    os.close(number)
    return memory


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc] # it has no types
    def reducer_override(self, value: object) -> Any:
        import numpy as np

        if type(value) is np.ndarray and (segment := _segment_of(value)) and segment.number:
            place = Place(os.getpid(), segment.number, segment.name)
            offset = _address(value) - segment.begin
            return _attached, (place, segment.size, offset, value.shape, value.dtype)
        return super().reducer_override(value)


def _attached(
    place: Place, size: int, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> Array:
    """Map another process's memory, and return an array in it."""
    if place.name not in _mapped:
        number = place.open(os.O_RDONLY)
        try:
            private = mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE
            _mapped[place.name] = _registered(mmap.mmap(number, size, *private), place.name, None)
        except OSError as failure:
            raise UnsharedError(str(failure)) from failure
        finally:
            os.close(number)
    return _array(_mapped[place.name], offset, shape, dtype)


def _new_memory(size: int) -> mmap.mmap:
    """Return memory that other processes can map; raise OSError."""
    name = _new_name()
    number = os.memfd_create(name)
    try:
        os.posix_fallocate(number, 0, size)  # which fails where there is no room
        return _registered(mmap.mmap(number, size), name, number)
    except OSError:
        os.close(number)
        raise


def _new_name() -> str:
    return f"irviz-{secrets.token_hex(8)}"


def _registered(memory: mmap.mmap, name: str, number: int | None) -> mmap.mmap:
    """Remember a map; the descriptor `number`, if any, is closed with it."""
    import numpy as np

    begin = _address(np.frombuffer(memory, np.uint8))
    own = name if number is not None else f"{name} at {begin}"
    _segments[own] = _Segment(weakref.ref(memory), begin, len(memory), name, number)
    weakref.finalize(memory, _segments.pop, own, None)
    if number is not None:
        weakref.finalize(memory, os.close, number)
    return memory


def _segment_of(array: Array) -> _Segment | None:
    """Return the segment with an array, None if there is none or the array is not contiguous."""
    if not _segments or not array.flags.c_contiguous or not array.nbytes:
        return None
    begin = _address(array)
    for one in list(_segments.values()):
        if one.begin <= begin and begin + array.nbytes <= one.begin + one.size:
            return one
    return None


def aligned(size: int) -> int:
    """Return the next offset that an array may have."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _array(memory: mmap.mmap, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    import numpy as np

    return np.ndarray(shape, dtype, memory, offset)
