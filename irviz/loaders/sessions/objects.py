"""Modules, functions and tensors as one text of TVM's JSON, in which what they share stands once.

So variables that several modules have are the same ones when they are read, and what a session
takes grows with what its stages differ in. The text is read by the worker first, as a damaged one
can end the process that reads it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import tvm
import tvm_ffi
from tvm import ir, relax

from irviz.ir.extract import extract
from irviz.ir.identity import drawn_functions
from irviz.loaders.node_types import foreign_type
from irviz.worker.pool import TRIES, CrashedError, StartError, WorkerError

_TRIAL_SECONDS = 120.0


class ObjectsError(ValueError):
    """A text that holds no such objects; the message says why, to stand behind a colon."""


def as_text(objects: Sequence[object]) -> str:
    """Return objects as text; raise ObjectsError for what TVM cannot write."""
    try:
        return str(tvm.ir.save_json(tvm_ffi.Array(list(objects))))
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise ObjectsError(_last_line(failure)) from failure


def from_text(text: str) -> list[object]:
    """Return the objects of a text; raise ObjectsError where it is damaged or holds others."""
    try:
        foreign = foreign_type(text)
    except (ValueError, RecursionError) as failure:
        raise ObjectsError(f"its modules are no JSON of TVM's ({failure})") from None
    if foreign:
        raise ObjectsError(
            f"among its modules is a {foreign!r}, which is part of none, so nothing was read"
        )
    try:
        reason = TRIES.call(trial, text, seconds=_TRIAL_SECONDS)
    except StartError as failure:
        raise ObjectsError(f"no process could be started to try it in ({failure})") from None
    except CrashedError:
        raise ObjectsError("reading its modules crashes TVM") from None
    except WorkerError as failure:
        raise ObjectsError(f"its modules could not be tried: {failure}") from None
    if reason:
        raise ObjectsError(f"TVM does not read its modules ({reason})")
    return _read(text)


def trial(text: str) -> str:
    """Read a text in every way that a session will; return why TVM cannot read it, or "".

    A module may be one that cannot be printed: such a one was saved like that.
    """
    try:
        found = _read(text)
    except Exception as failure:  # whatever TVM's reader throws, it is the file's fault
        return _last_line(failure)
    seen: set[int] = set()
    for one in found:
        if isinstance(one, ir.IRModule):
            _look_at(one, seen)
        else:
            _try(one.numpy if isinstance(one, tvm.runtime.Tensor) else one.__str__)
    return ""


def _look_at(mod: ir.IRModule, seen: set[int]) -> None:
    """Do with a module what a picture and a script do; functions of others before are done."""
    _try(ir.IRModule({}, attrs=mod.attrs, global_infos=mod.global_infos).script)
    for name in drawn_functions(mod):
        function = mod[name]
        if function.__chandle__() not in seen:
            seen.add(function.__chandle__())
            if isinstance(function, relax.Function):
                _try(extract, mod, name)
            _try(function.script)


def _try(look: Callable[..., object], *arguments: object) -> None:
    """See whether the process survives it."""
    with contextlib.suppress(Exception):
        look(*arguments)


def _read(text: str) -> list[object]:
    found = tvm.ir.load_json(text)
    if not isinstance(found, tvm_ffi.Array):
        raise ObjectsError(f"it holds a {type(found).__name__}, not a list of objects")
    return list(found)


def _last_line(failure: Exception) -> str:
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return (lines or [type(failure).__name__])[-1][:500]
