"""TVM's JSON (`tvm.ir.save_json`) -> IRModule.

TVM's reader trusts the file: an index that is out of place can end the process. So a file is
first read by another Python process, with all that a picture needs of it, and only when that one
comes to its end does this process read it too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import tvm
from tvm import ir

from irviz.ir.extract import extract
from irviz.ir.identity import relax_functions
from irviz.loaders.content import content_of
from irviz.loaders.loaded import LoadError as LoadError
from irviz.loaders.node_types import foreign_type
from irviz.worker.pool import TRIES, TimedOutError, WorkerError

_TRIAL_SECONDS = 120
_AGAIN = "write it again with tvm.ir.save_json"
# TVM compiles and links what these hold, and loads it, when the module is run.
_COMPILED = ("ffi.Module", "runtime.Module")


def load_json(path: str | os.PathLike[str]) -> ir.IRModule:
    """Load an IRModule from a file that `tvm.ir.save_json` wrote.

    Raises LoadError, in one sentence, for a file that is missing, unreadable or something else.
    """
    file = Path(path)
    try:
        text = content_of(file).decode()
    except UnicodeDecodeError:
        raise LoadError(_wrong(str(file), "it is no text")) from None
    return from_json(text, str(file))


def from_json(text: str, name: str) -> ir.IRModule:
    """Return the IRModule in TVM's JSON, of a file of this name; raise LoadError for other text."""
    _check_outline(name, text)
    try:
        why = TRIES.call(_try, text, seconds=_TRIAL_SECONDS)
    except TimedOutError:
        raise LoadError(
            f"{name!r} was not read within {_TRIAL_SECONDS} s and is likely damaged; {_AGAIN}"
        ) from None
    except WorkerError:
        raise LoadError(f"{name!r} is damaged: reading it crashes TVM; {_AGAIN}") from None
    if why:
        raise LoadError(f"{name!r} holds no module: {why}")
    return _read(text)


def _check_outline(name: str, text: str) -> None:
    """Raise LoadError unless the text is JSON in the outline of TVM's."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as failure:
        why = "it is empty" if not text.strip() else f"it is no JSON ({failure})"
        raise LoadError(_wrong(name, why)) from None
    is_graph = isinstance(content, dict) and isinstance(content.get("nodes"), list)
    if not is_graph or "root_index" not in content:
        raise LoadError(_wrong(name, "it is JSON without TVM's 'nodes' and 'root_index'"))
    if any(isinstance(node, dict) and node.get("type") in _COMPILED for node in content["nodes"]):
        raise LoadError(
            f"{name!r} carries compiled or C code, which would be run with it, and was not read: "
            "save the module without its external_mods"
        )
    try:
        foreign = foreign_type(text)
    except ValueError as failure:
        raise LoadError(_wrong(name, str(failure))) from None
    if foreign:
        raise LoadError(_wrong(name, f"it names {foreign!r}, which is part of no module"))


def _wrong(name: str, why: str) -> str:
    return (
        f"{name!r} is no IRModule in TVM's JSON: {why}; "
        "write one with open(path, 'w').write(tvm.ir.save_json(mod))"
    )


def _read(text: str) -> ir.IRModule:
    mod = tvm.ir.load_json(text)
    if not isinstance(mod, ir.IRModule):
        raise LoadError(f"it holds a {type(mod).__name__}, not an IRModule")
    return mod


def _try(text: str) -> str:
    """Read a text in every way that a picture of it will need; return why not, or ""."""
    try:
        mod = _read(text)
        for name in relax_functions(mod):
            extract(mod, name)
        mod.script()
    except Exception as failure:  # whatever TVM's reader throws, it is the file's fault
        words = str(failure).strip().splitlines() or [type(failure).__name__]
        return words[-1] or "no reason given"
    return ""
