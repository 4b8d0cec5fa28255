"""Where modules run, and what becomes of what runs there."""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import cloudpickle
from tvm import ir

from irviz.runtime.address import Where, where
from irviz.runtime.callees import TravelError, python_callees, sent
from irviz.runtime.inputs import InputError
from irviz.runtime.job import Modules, UnknownModuleError
from irviz.runtime.machine import RunError, said
from irviz.worker.memory import available
from irviz.worker.pool import (
    RUNS,
    SECONDS,
    CancelledError,
    Heard,
    StartError,
    TimedOutError,
    WorkerError,
)

Key = TypeVar("Key")
Value = TypeVar("Value")

_MOST_KNOWN = 64
_LEAST_MEMORY = 32 * 2**20
"""With less LLVM may wait for ever, where it cannot say that it has too little."""
_keys: OrderedDict[ir.IRModule, str] = OrderedDict()
_sent: OrderedDict[str, None] = OrderedDict()
"""The keys of the modules that a process was sent: it may know them, or have ended since."""
_numbers = count()


class CancelledRunError(RunError):
    """A run that was cancelled."""


@dataclass(frozen=True)
class Place:
    """Where stages run and what a run may take: `seconds`, and `memory` in bytes.

    With `isolate` it is another process, which a fault may end. Without, faults are the reader's
    own, and there are no limits. No memory given stands for four fifths of what is free.

    `device` is "cpu" or "", which is this machine's, or "host:port" or "host:port/key", which is
    a machine with TVM's RPC server; `target` what to build for it, as TVM writes that, or as in
    "llvm -mtriple=aarch64-linux-gnu".
    """

    isolate: bool = True
    seconds: float = SECONDS
    memory: int | None = None
    device: str = ""
    target: str = ""

    @property
    def where(self) -> Where:
        """The machine and the target; raise RunError for a device or target that cannot be."""
        return where(self.device, self.target, self.seconds if self.isolate else None)

    @property
    def clock(self) -> str:
        """Whose clock measures: "this machine" or the address of the other one."""
        return str(self.where.remote or "this machine")


def key_of(mod: ir.IRModule) -> str:
    """Return what stands for this very module in messages to the worker."""
    if mod not in _keys:
        _keys[mod] = f"module {next(_numbers)}"
    _keys.move_to_end(mod)
    _forget_oldest(_keys)
    return _keys[mod]


def elsewhere(
    perform: Callable[[bytes, Modules], bytes],
    work: object,
    mods: Mapping[str, ir.IRModule],
    name: str,
    place: Place,
    heard: Heard | None,
) -> object:
    """Do some work on modules, by their keys, in the worker; `name` is the function's in errors.

    Modules are sent where the worker does not know them. Raises RunError where there is no answer.
    """
    _check(place)
    memory = available() if place.memory is None else place.memory
    since = RUNS.cancels

    def ask(packed: bytes, modules: Modules) -> bytes:
        return RUNS.call(
            perform,
            packed,
            modules,
            seconds=place.seconds,
            memory=memory,
            heard=heard,
            printed=_show,
            since=since,
        )

    try:
        callees = {n: one for mod in mods.values() for n, one in python_callees(mod).items()}
        packed = cloudpickle.dumps((work, sent(callees)))
        try:
            answer = ask(packed, _packed(mods) if not mods.keys() <= _sent.keys() else {})
        except UnknownModuleError:
            answer = ask(packed, _packed(mods))
        return cloudpickle.loads(answer)
    except (RunError, TravelError) as failure:
        raise RunError(str(failure)) from failure.__cause__  # the other process's stack, as text
    except MemoryError:
        most = "there is" if memory is None else f"the {_size(memory)} that it may take"
        raise RunError(
            f"{name!r} asked for more memory than {most}{_while(RUNS.doing)}: give it more with "
            "memory=…, in bytes, or smaller inputs"
        ) from None
    except WorkerError as failure:
        if not isinstance(failure, StartError):
            RUNS.start()
        raise _told(failure, name) from None
    except Exception as failure:  # what is sent may fail as it likes as it is packed or unpacked
        raise RunError(f"{name!r} cannot be run{_while(RUNS.doing)}: {said(failure)}") from failure


def _packed(mods: Mapping[str, ir.IRModule]) -> dict[str, bytes]:
    """Return modules as they travel, by their keys."""
    _sent.update(dict.fromkeys(mods))
    _forget_oldest(_sent)
    return {key: cloudpickle.dumps(mod) for key, mod in mods.items()}


def _forget_oldest(known: OrderedDict[Key, Value]) -> None:
    while len(known) > _MOST_KNOWN:
        known.popitem(last=False)


def _check(place: Place) -> None:
    """Raise InputError for limits that nothing can keep to."""
    if place.memory is not None and place.memory < _LEAST_MEMORY:
        raise InputError(
            f"memory={place.memory!r} is too little to build anything: give at least "
            f"{_LEAST_MEMORY:,}, in bytes, or None for most of what is free"
        )
    if not place.seconds > 0:
        raise InputError(f"seconds={place.seconds!r} is no time: give more than 0")


def _told(failure: WorkerError, name: str) -> RunError:
    """Say what became of a run that gave no answer."""
    doing = _while(failure.doing)
    match failure:
        case CancelledError():
            return CancelledRunError(f"{name!r} was cancelled{doing}")
        case TimedOutError():
            return RunError(
                f"{name!r} cannot be run: {failure}{doing}. It may never end; give it more with "
                "seconds=…"
            )
        case StartError():
            return RunError(
                f"{name!r} cannot be run: {failure}{doing}. Try again, or run it in this process "
                "with isolate=False"
            )
        case _ if failure.doing.startswith("building"):
            return RunError(
                f"{name!r} cannot be run: {failure}{doing}. The compiler does so where memory is "
                "too little, or by a fault of its own: give it more with memory=…, in bytes"
            )
        case _:
            return RunError(
                f"{name!r} cannot be run: {failure}{doing}. It may read or write outside of its "
                "buffers, call itself without end, or end the process; so may what it calls"
            )


def _while(doing: str) -> str:
    return f" while {doing}" if doing else ""


def _show(text: str) -> None:
    """Print here what was printed there."""
    with contextlib.suppress(AttributeError, ValueError, OSError):  # a closed stream, or none
        sys.stdout.write(text)
        sys.stdout.flush()


def _size(nbytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes:,} bytes"
