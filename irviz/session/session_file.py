"""Save a session as a zip archive of an index, TVM objects and arrays.

The index is JSON. All modules are one text of TVM's JSON, so variables and tensors shared by stages
stay shared, and the file grows only with the differences between stages. Nothing in a file is run,
and every part is checked before it is used.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import msgspec
import numpy as np
import tvm
from tvm import ir

from irviz.errors import LoadError, RunError, SaveError
from irviz.ir.module_functions import drawable_functions
from irviz.limits import SCRIPT_SECONDS
from irviz.loaders.file_limits import (
    FileError,
    brief,
    check_unpacked,
    max_unpacked,
    memory_share,
    named,
    one_line,
    open_archive,
    read_file,
)
from irviz.loaders.load import SESSION_ENTRY
from irviz.loaders.tvm_json import TvmJsonError, objects_from_json, objects_to_json, read_objects
from irviz.model.graph.graph import Layer, LayerPart, NodeId
from irviz.model.graph.layers import LayersByNode
from irviz.runtime.run import CallInputs, Inputs, RunConfig
from irviz.safe_files import atomic_write
from irviz.session.session_encoding import (
    EncodingError,
    LabelOnly,
    ObjectTable,
    array_from_npy,
    array_to_npy,
    decode,
    describe,
    encode,
    restore,
)
from irviz.session.session_state import SessionState
from irviz.transforms.export_python import PythonScript
from irviz.transforms.stage import Stage, StageTree, to_script
from irviz.version import __version__
from irviz.worker.supervisor import TRIES, WorkerError

Value = TypeVar("Value")

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
    entries = encode_session(state, params=params)
    with atomic_write(path) as partial:
        _write(partial, entries, zipfile.ZIP_DEFLATED)
        if sum(map(len, entries.values())) > max_unpacked(partial.stat().st_size):
            # it packs so well that it would be refused as a zip bomb
            _write(partial, entries, zipfile.ZIP_STORED)
    return Path(path)


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
        INDEX: json.dumps(index, separators=(",", ":")).encode(),
        OBJECTS: _objects_text(tree.stages, table).encode(),
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
        index = json.loads(entries[INDEX])
    except (ValueError, RecursionError) as failure:
        raise _damaged(name, f"its index is not JSON ({failure})") from None
    version_note = _check_version(name, index)
    try:
        return _decode_session(index, _object_table(entries, read_objects))
    except (EncodingError, TvmJsonError, RecursionError) as failure:
        raise _damaged(name, f"{failure}{version_note}") from None


def _check_version(name: str, index: object) -> str:
    """Raise SessionFileError for an unknown format; return a note if the TVM version differs."""
    version = index.get(_VERSION) if isinstance(index, dict) else None
    if not isinstance(index, dict) or type(version) is not int or version < 1:
        raise _not_a_session(name, "its index has no version of the session format")
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
    count = sum(name not in (INDEX, OBJECTS) for name in entries)
    missing = {OBJECTS, *map(array_entry, range(count))} - entries.keys()
    if missing:
        raise EncodingError(f"it has no entry {min(missing)!r}")
    try:
        text = entries[OBJECTS].decode()
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
    constants = [_decode_constants(names, table) for names in _field(index, "constants", list)]
    stages: dict[str, Stage] = {}
    for data in _field(index, "stages", list):
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
    current, count = _field(index, "shown", str), index.get("count")
    if current not in stages:
        raise EncodingError(f"there is no stage {brief(current)} to show")
    if type(count) is not int or count <= max(map(int, stages)):
        raise EncodingError(f"{brief(count)} is not a count of its stages")
    function = _field(index, "function", str)
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
    stage_id, parent = _field(data, "id", str), data.get("parent")
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
    enclosing = _field(data, "enclosing_passes", list)
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
        _field(data, "label", str),
        parent,
        transform,
        _field(data, "error", str),
        constant_lists[constants],
        _field(data, "stderr", str),
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


def _field(data: Mapping[str, Any], key: str, kind: type[Value]) -> Value:
    """Return a string or a list; raise EncodingError for something else."""
    value = data.get(key)
    if not isinstance(value, kind):
        words = "string" if kind is str else "list"
        raise EncodingError(f"its {key} is {brief(value)}, not a {words}")
    return value


# --- The declared names, methods and sizes are checked before anything is read -------------------


INDEX, OBJECTS = "index.json", "objects.json"
_SIGNATURE = b"PK\x03\x04"
_MAX_INDEX = 1 << 24
"""The largest index in bytes; that of a session with a thousand stages has a million."""
_AGAIN = "save the session again, or take a copy of the file"


class SessionFileError(LoadError, SaveError):
    """A session cannot be saved, or a file does not hold one; the message says why."""


def array_entry(index: int) -> str:
    """Return the entry name of an array."""
    return f"arrays/{index}.npy"


def _write(path: Path, entries: Mapping[str, bytes], method: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)  # without the time, so that equal sessions are equal files
            # numbers pack badly, and slowly
            how = method if name.endswith(".json") else zipfile.ZIP_STORED
            archive.writestr(info, content, how)


def read_archive(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Return the entries of a file; raise SessionFileError for any other file."""
    name = os.fspath(path)
    try:
        with named(name, SessionFileError):
            content = read_file(Path(path), memory_share() // 2)  # arrays are copied once
            if not content.startswith(_SIGNATURE):
                reason = f"it begins with {content[:8]!r}" if content else "it is empty"
                raise _not_a_session(name, reason)
            with open_archive(content) as archive:
                return _entries(name, archive, len(content))
    except SessionFileError:
        raise
    except Exception as failure:  # zipfile raises errors of any class for damaged archives
        raise _damaged(name, one_line(failure)) from failure


def _damaged(name: str, reason: str) -> SessionFileError:
    return SessionFileError(
        f"{name!r} is damaged or cut short: {' '.join(reason.split())}; {_AGAIN}"
    )


def _not_a_session(name: str, reason: str) -> SessionFileError:
    return SessionFileError(
        f"{name!r} is not a session: {reason}, where a file that Session.save wrote was expected"
    )


def _entries(name: str, archive: zipfile.ZipFile, size: int) -> dict[str, bytes]:
    members = archive.infolist()
    if all(member.filename != INDEX for member in members):
        raise _not_a_session(name, f"it is a zip archive without {INDEX!r}")
    seen: set[str] = set()
    for member in members:
        if not SESSION_ENTRY.fullmatch(member.filename):
            raise _damaged(name, f"it has the entry {brief(member.filename)}, which no session has")
        if member.filename in seen:
            raise _damaged(name, f"it has {member.filename!r} more than once")
        seen.add(member.filename)
    declared = sum(member.file_size for member in members)
    try:
        check_unpacked(size, declared, _AGAIN)
    except FileError as failure:
        raise SessionFileError(f"{name!r} {failure}") from None
    if (index := archive.getinfo(INDEX).file_size) > _MAX_INDEX:
        raise _damaged(name, f"its index has {index:,} bytes, and at most {_MAX_INDEX:,} are read")
    # zipfile reads no more of an entry than the archive declares
    return {member.filename: archive.read(member) for member in members}


# --- Encode the layers of bindings as JSON: a list of all layers, and indices into it ------------


def encode_layers(layers: Mapping[str, LayersByNode]) -> dict[str, object]:
    """Return the layers of bindings, by function, as JSON."""
    numbers: dict[Layer, int] = {}
    functions = {
        function: {
            node: [numbers.setdefault(layer, len(numbers)) for layer in served]
            for node, served in nodes.items()
        }
        for function, nodes in layers.items()
    }
    return {"layers": list(numbers), "functions": functions}


class _Layers(msgspec.Struct):
    """All layers, and the indices of those that each node of a function serves."""

    layers: list[list[tuple[str, str]]]
    functions: dict[str, dict[NodeId, list[Annotated[int, msgspec.Meta(ge=0)]]]]


def decode_layers(data: object) -> dict[str, LayersByNode]:
    """Reverse `encode_layers`; raise EncodingError for other data."""
    try:
        found = msgspec.convert(data, _Layers)
        layers = [tuple(LayerPart(*part) for part in row) for row in found.layers]
        return {
            function: {node: tuple(layers[n] for n in served) for node, served in nodes.items()}
            for function, nodes in found.functions.items()
        }
    except (msgspec.ValidationError, IndexError) as failure:
        raise EncodingError(f"its layers cannot be read: {failure}") from None


def script_in_worker(stages: Sequence[Stage], state: SessionState) -> PythonScript:
    """Return the script that recreates the last stage of a path, as `to_script` does.

    The stages are sent as the entries of a session file. Raises RunError if writing takes too long
    or ends the worker, and SessionFileError if a stage cannot be sent.
    """
    tree = StageTree(tuple(stages), stages[-1].id, 1 + max(int(stage.id) for stage in stages))
    function = next(name for stage in stages for name in drawable_functions(stage.module))
    entries = encode_session(SessionState(tree, function, CallInputs(), state.run_config))
    try:
        return TRIES.call(_write_script, entries, seconds=SCRIPT_SECONDS * len(stages))
    except WorkerError as failure:
        raise RunError(f"the script could not be written: {failure}") from failure


def _write_script(entries: Mapping[str, bytes]) -> PythonScript:
    """Write the script. Runs in the worker."""
    return to_script(decode_session(entries, "the session", read_objects).tree.stages)
