"""Save a session as a zip archive of an index, TVM objects and arrays.

The index is JSON. All modules are one text of TVM's JSON, so variables and tensors shared by stages
stay shared, and the file grows only with the differences between stages. Nothing in a file is run,
and every part is checked before it is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import tvm
from tvm import ir

from irviz.ir.module_functions import drawable_functions
from irviz.ir.module_json import TvmJsonError
from irviz.loaders.file_errors import brief
from irviz.loaders.tvm_json import objects_from_json, objects_to_json
from irviz.runtime.inputs.argument_lists import Inputs
from irviz.runtime.run import CallInputs, RunConfig
from irviz.session.saving import archive
from irviz.session.saving.archive import SessionFileError as SessionFileError
from irviz.session.saving.archive import array_entry, damaged, read_archive, write_archive
from irviz.session.saving.layer_codec import decode_layers, encode_layers
from irviz.session.saving.transform_codec import LabelOnly, describe, restore
from irviz.session.saving.value_codec import (
    EncodingError,
    ObjectTable,
    array_from_npy,
    array_to_npy,
    decode,
    encode,
)
from irviz.session.session_state import SessionState
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree
from irviz.version import __version__

FORMAT = 1
_VERSION = "irviz session"
_MAX_SECONDS = 1e9
"""Longer than any pass; larger times, NaN and infinity are rejected."""

ConstantLists = dict[tuple[tuple[int, str], ...], int]
"""Numbers the distinct lists of constants, each of tensor indices in the table, and names."""


def save_session(state: SessionState, path: str | os.PathLike[str], *, params: bool = True) -> Path:
    """Write a session to a file atomically, and return its path.

    The undo history is left out, and so is the RunConfig, which belongs to the machine. Raises
    SaveError if something cannot be saved; an existing file is left unchanged.
    """
    return write_archive(path, encode_session(state, params=params))


def encode_session(state: SessionState, *, params: bool = True) -> dict[str, bytes]:
    """Return the entries of a session's file; raise SessionFileError if it cannot be saved."""
    table, constants = ObjectTable(), ConstantLists()
    call, tree = state.call_inputs, state.tree
    stages = [_encode_stage(stage, table, constants) for stage in tree.stages]
    given = {
        "params": dict(call.params) if params else {},
        "inputs": call.inputs,
        "labels": call.labels,
        "seed": int(call.seed),
        "sizes": {name: int(size) for name, size in call.sizes.items()},
    }
    try:
        encoded = encode(given, table)
    except (EncodingError, RecursionError) as failure:
        raise SessionFileError(
            f"the session cannot be saved: {failure}; give params and inputs as arrays of numbers"
        ) from None
    index = {
        _VERSION: FORMAT,
        "irviz": __version__,
        "tvm": tvm.__version__,
        "function": state.function,
        "shown": tree.current_id,
        "count": tree.count,
        "given": encoded,
        "constants": list(constants),
        "stages": stages,
    }
    entries = {
        archive.INDEX: json.dumps(index, separators=(",", ":")).encode(),
        archive.OBJECTS: _objects_text(tree.stages, table).encode(),
    }
    for number, array in enumerate(table.arrays):
        entries[array_entry(number)] = array_to_npy(array)
    return entries


def load_session(path: str | os.PathLike[str]) -> SessionState:
    """Return the state of a saved session, untrusted; nothing in the file is applied or run.

    The worker reads the modules first. Raises SessionFileError for any other file.
    """
    return decode_session(read_archive(path), os.fspath(path))


def decode_session(
    entries: Mapping[str, bytes],
    name: str,
    read_objects: Callable[[str], list[object]] = objects_from_json,
) -> SessionState:
    """Return the session in a file's entries; raise SessionFileError if they are damaged."""
    try:
        index = json.loads(entries[archive.INDEX])
    except (ValueError, RecursionError) as failure:
        raise SessionFileError(damaged(name, f"its index is not JSON ({failure})")) from None
    version_note = _check_version(name, index)
    try:
        return _decode_session(index, _object_table(entries, read_objects))
    except (EncodingError, TvmJsonError, RecursionError) as failure:
        raise SessionFileError(damaged(name, f"{failure}{version_note}")) from None


def _check_version(name: str, index: object) -> str:
    """Raise SessionFileError for an unknown format; return a note if the TVM version differs."""
    version = index.get(_VERSION) if isinstance(index, dict) else None
    if not isinstance(index, dict) or type(version) is not int or version < 1:
        raise SessionFileError(
            f"{name!r} is not a session: its index has no version of the session format, where a "
            "file that Session.save wrote was expected"
        )
    if version > FORMAT:
        raise SessionFileError(
            f"{name!r} was written by a newer irviz, {brief(index.get('irviz'))}, in format "
            f"{version}, and this one, {__version__}, reads format {FORMAT}: update irviz"
        )
    if index.get("tvm") == tvm.__version__:
        return ""
    return f"; it was written with TVM {brief(index.get('tvm'))}, this is {tvm.__version__}"


def _object_table(
    entries: Mapping[str, bytes], read_objects: Callable[[str], list[object]]
) -> ObjectTable:
    count = sum(name not in (archive.INDEX, archive.OBJECTS) for name in entries)
    missing = {archive.OBJECTS, *map(array_entry, range(count))} - entries.keys()
    if missing:
        raise EncodingError(f"it has no entry {min(missing)!r}")
    try:
        text = entries[archive.OBJECTS].decode()
        objects = read_objects(text)
    except UnicodeDecodeError:
        raise EncodingError("its modules are not text") from None
    except TvmJsonError as failure:
        raise EncodingError(f"its modules cannot be read: {failure}") from None
    return ObjectTable(objects, [array_from_npy(entries[array_entry(n)]) for n in range(count)])


# --- writing -----------------------------------------------------------------------------------


def _encode_stage(stage: Stage, table: ObjectTable, constants: ConstantLists) -> dict[str, object]:
    made_by = None if stage.parent is None else describe(stage.transform or LabelOnly(stage.label))
    try:
        encoded = {
            "id": stage.id,
            "module": table.add_object(stage.module),
            "label": stage.label,
            "parent": stage.parent,
            "made_by": encode(made_by, table),
            "error": stage.error,
            "stderr": stage.stderr,
            "seconds": stage.seconds,
            "enclosing_passes": list(stage.enclosing_passes),
            "is_unchanged": stage.is_unchanged,
        }
    except EncodingError as failure:
        raise SessionFileError(f"stage {stage.id!r} cannot be saved: {failure}") from None
    names = tuple((table.add_object(one), name) for one, name in stage.constant_names.items())
    layers = {"layers": encode_layers(stage.layers)} if stage.layers else {}
    return {**encoded, "constants": constants.setdefault(names, len(constants)), **layers}


def _objects_text(stages: Sequence[Stage], table: ObjectTable) -> str:
    try:
        return objects_to_json(table.objects)
    except TvmJsonError as failure:
        culprit = next((one for one in stages if not _is_writable(one.module)), None)
        what = "the session" if culprit is None else f"stage {culprit.id!r}, {culprit.label!r},"
        raise SessionFileError(
            f"{what} cannot be saved: TVM cannot write it ({failure}); drop the stage, and save "
            "again"
        ) from None


def _is_writable(mod: ir.IRModule) -> bool:
    try:
        objects_to_json([mod])
    except TvmJsonError:
        return False
    return True


# --- reading -----------------------------------------------------------------------------------


def _decode_session(index: Mapping[str, Any], table: ObjectTable) -> SessionState:
    constants = [_decode_constants(names, table) for names in _list(index, "constants")]
    stages: dict[str, Stage] = {}
    for data in _list(index, "stages"):
        stage = _decode_stage(data, table, constants)
        made_from = None if stage.parent is None else stages.get(stage.parent)
        stage = replace(stage, made_from=made_from)
        if stage.id in stages:
            raise EncodingError(f"there are two stages {stage.id!r}")
        if stage.parent is not None and stage.parent not in stages:
            raise EncodingError(
                f"the parent of stage {stage.id!r}, {brief(stage.parent)}, does not precede it"
            )
        stages[stage.id] = stage
    current, count = _string(index, "shown"), index.get("count")
    if current not in stages:
        raise EncodingError(f"there is no stage {brief(current)} to show")
    if type(count) is not int or count <= max(map(int, stages)):
        raise EncodingError(f"{brief(count)} is not a count of its stages")
    function = _string(index, "function")
    # the current stage may lack it
    if not any(function in drawable_functions(stage.module) for stage in stages.values()):
        raise EncodingError(f"no stage has {brief(function)} to show")
    call_inputs = _call_inputs(decode(index.get("given"), table))
    tree = StageTree(tuple(stages.values()), current, count)
    return SessionState(tree, function, call_inputs, RunConfig())


def _call_inputs(values: object) -> CallInputs:
    match values:
        case {
            "params": dict() as params,
            "inputs": dict() | np.ndarray() | str() | None as inputs,
            "labels": np.ndarray() | None as labels,
            "seed": int() as seed,
            "sizes": dict() as sizes,
            **rest,
        } if not rest and all(isinstance(one, int) for one in sizes.values()):
            return CallInputs(cast(Inputs, inputs), params, labels, seed, sizes)
    raise EncodingError(f"{brief(values)} is not what stages are called with")


def _decode_stage(
    data: object, table: ObjectTable, constant_lists: Sequence[dict[tvm.runtime.Tensor, str]]
) -> Stage:
    if not isinstance(data, dict):
        raise EncodingError(f"{brief(data)} is not a stage")
    stage_id, parent = _string(data, "id"), data.get("parent")
    # ids become parts of file names, and are counted
    if not (stage_id.isascii() and stage_id.isdecimal() and len(stage_id) < 10):
        raise EncodingError(f"{brief(stage_id)} is not the id of a stage")
    module, constants = table.object_at(data.get("module")), data.get("constants")
    if not isinstance(module, ir.IRModule):
        raise EncodingError(f"the module of stage {stage_id!r} is a {type(module).__name__}")
    if type(constants) is not int or not 0 <= constants < len(constant_lists):
        raise EncodingError(f"stage {stage_id!r} has no names of constants {brief(constants)}")
    made_by = decode(data.get("made_by"), table)
    if made_by is not None and not isinstance(made_by, dict):
        raise EncodingError(f"the transform of stage {stage_id!r} is {brief(made_by)}")
    if (parent is None) != (made_by is None) or not isinstance(parent, str | None):
        raise EncodingError(f"stage {stage_id!r} has only one of a parent and a transform")
    seconds, is_unchanged = data.get("seconds"), data.get("is_unchanged")
    enclosing = _list(data, "enclosing_passes")
    is_duration = isinstance(seconds, int | float) and 0 <= seconds < _MAX_SECONDS
    if not (seconds is None or is_duration) or not isinstance(is_unchanged, bool):
        raise EncodingError(f"stage {stage_id!r} has a wrong time or flag")
    if not all(isinstance(one, str) for one in enclosing):
        raise EncodingError(f"stage {stage_id!r} has enclosing passes {brief(enclosing)}")
    try:
        transform = None if made_by is None else restore(made_by)
    except EncodingError as failure:
        raise EncodingError(f"stage {stage_id!r}: {failure}") from failure
    return Stage(
        stage_id,
        module,
        _string(data, "label"),
        parent,
        transform,
        _string(data, "error"),
        constant_lists[constants],
        _string(data, "stderr"),
        seconds,
        tuple(enclosing),
        is_unchanged,
        layers=decode_layers(data["layers"]) if "layers" in data else {},
    )


def _decode_constants(names: object, table: ObjectTable) -> dict[tvm.runtime.Tensor, str]:
    found = {}
    for item in names if isinstance(names, list) else [names]:
        match item:
            case [int() as index, str() as name]:
                tensor = table.object_at(index)
            case _:
                raise EncodingError(f"{brief(item)} is not the name of a constant")
        if not isinstance(tensor, tvm.runtime.Tensor):
            raise EncodingError(f"the constant {brief(name)} is a {type(tensor).__name__}")
        found[tensor] = name
    return found


def _string(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise EncodingError(f"its {key} is {brief(value)}, not a string")
    return value


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    if not isinstance(value, list):
        raise EncodingError(f"its {key} is {brief(value)}, not a list")
    return value
