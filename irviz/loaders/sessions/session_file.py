"""A session as one file: a zip archive of JSON, TVM's JSON and arrays; nothing in it is ever run.

`index.json` says what there is, `objects.json` has the modules and tensors, and `arrays/` the
arrays, each of these once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tvm
from tvm import ir

from irviz.loaders.numbers import brief
from irviz.loaders.sessions import archive
from irviz.loaders.sessions.archive import SessionFileError as SessionFileError
from irviz.loaders.sessions.archive import array_entry, damaged, read_archive, write_archive
from irviz.loaders.sessions.objects import ObjectsError, as_text, from_text
from irviz.loaders.sessions.values import Shelf, ValueFormError, from_data, from_npy, npy, to_data

FORMAT = 1
_VERSION = "irviz session"

ConstantNames = tuple[tuple[tvm.runtime.Tensor, str], ...]


@dataclass(frozen=True, eq=False)
class SavedStage:
    """A stage as it is saved; `made_by` describes its transform, in plain values."""

    id: str
    module: ir.IRModule
    label: str
    parent: str | None = None
    made_by: Mapping[str, object] | None = None
    error: str = ""
    constant_names: ConstantNames = ()
    said: str = ""
    seconds: float | None = None
    within: tuple[str, ...] = ()
    is_same: bool = False


@dataclass(frozen=True, eq=False)
class SavedSession:
    """Stages, each behind its parent, and what they are called with: `given`, by name."""

    stages: tuple[SavedStage, ...]
    shown_id: str
    count: int
    function: str
    given: Mapping[str, object] = field(default_factory=dict)


def save_session(path: str | os.PathLike[str], session: SavedSession, version: str) -> Path:
    """Write a session to a file, whole or not at all; `version` is that of irviz.

    Raises SessionFileError, with the file as it was, for what cannot be saved or written.
    """
    shelf, tables = Shelf(), list[ConstantNames]()
    stages = [_stage_data(stage, shelf, tables) for stage in session.stages]
    try:
        given = to_data(session.given, shelf)
    except (ValueFormError, RecursionError) as failure:
        raise SessionFileError(
            f"the session cannot be saved: {failure}; give params and inputs as arrays of numbers"
        ) from None
    constants = [[[shelf.put_object(one), name] for one, name in table] for table in tables]
    index = {
        _VERSION: FORMAT,
        "irviz": version,
        "tvm": tvm.__version__,
        "function": session.function,
        "shown": session.shown_id,
        "count": session.count,
        "given": given,
        "constants": constants,
        "stages": stages,
    }
    entries = {
        archive.INDEX: json.dumps(index, separators=(",", ":")).encode(),
        archive.OBJECTS: _objects_text(session, shelf).encode(),
    }
    for number, array in enumerate(shelf.arrays):
        entries[array_entry(number)] = npy(array)
    return write_archive(path, entries)


def load_session(path: str | os.PathLike[str], version: str) -> SavedSession:
    """Read a session from a file that `save_session` wrote; `version` is that of irviz.

    Modules are read by another process first. Raises SessionFileError, in one sentence, for a
    file that is missing, unreadable, damaged or something else.
    """
    name, entries = os.fspath(path), read_archive(path)
    try:
        index = json.loads(entries[archive.INDEX])
    except (ValueError, RecursionError) as failure:
        raise SessionFileError(damaged(name, f"its index is no JSON ({failure})")) from None
    writer = _check_version(name, index, version)
    try:
        return _session(index, _shelf(entries))
    except (ValueFormError, ObjectsError, RecursionError) as failure:
        raise SessionFileError(damaged(name, f"{failure}{writer}")) from None


def _check_version(name: str, index: object, here: str) -> str:
    """Raise SessionFileError for another format; return what to add where TVM is another."""
    version = index.get(_VERSION) if isinstance(index, dict) else None
    if not isinstance(index, dict) or type(version) is not int or version < 1:
        raise SessionFileError(
            f"{name!r} is no session: its index has no version of a session's format, where a "
            "file that Session.save wrote was expected"
        )
    if version > FORMAT:
        raise SessionFileError(
            f"{name!r} was written by a newer irviz, {brief(index.get('irviz'))}, in format "
            f"{version}, and this one, {here}, reads format {FORMAT}: update irviz"
        )
    is_other = index.get("tvm") != tvm.__version__
    there = f"; it was written with TVM {brief(index.get('tvm'))}, this is {tvm.__version__}"
    return there if is_other else ""


def _shelf(entries: Mapping[str, bytes]) -> Shelf:
    count = sum(name not in (archive.INDEX, archive.OBJECTS) for name in entries)
    missing = {archive.OBJECTS, *map(array_entry, range(count))} - entries.keys()
    if missing:
        raise ValueFormError(f"it has no entry {min(missing)!r}")
    try:
        text = entries[archive.OBJECTS].decode()
    except UnicodeDecodeError:
        raise ValueFormError("its modules are no text") from None
    arrays = [from_npy(entries[array_entry(number)]) for number in range(count)]
    return Shelf(from_text(text), arrays)


# --- writing -----------------------------------------------------------------------------------


def _stage_data(stage: SavedStage, shelf: Shelf, tables: list[ConstantNames]) -> dict[str, object]:
    same = [i for i, table in enumerate(tables) if table is stage.constant_names]
    try:
        number = same[0] if same else _table(stage.constant_names, tables)
        return {
            "id": stage.id,
            "module": shelf.put_object(stage.module),
            "label": stage.label,
            "parent": stage.parent,
            "made_by": None if stage.made_by is None else to_data(stage.made_by, shelf),
            "error": stage.error,
            "constants": number,
            "said": stage.said,
            "seconds": stage.seconds,
            "within": list(stage.within),
            "is_same": stage.is_same,
        }
    except ValueFormError as failure:
        raise SessionFileError(f"stage {stage.id!r} cannot be saved: {failure}") from None


def _table(names: ConstantNames, tables: list[ConstantNames]) -> int:
    if names not in tables:
        tables.append(names)
    return tables.index(names)


def _objects_text(session: SavedSession, shelf: Shelf) -> str:
    try:
        return as_text(shelf.objects)
    except ObjectsError as failure:
        which = next((one for one in session.stages if not _can_write(one.module)), None)
        what = "the session" if which is None else f"stage {which.id!r}, {which.label!r},"
        raise SessionFileError(
            f"{what} cannot be saved: TVM does not write it ({failure}); drop the stage, and save "
            "again"
        ) from None


def _can_write(mod: ir.IRModule) -> bool:
    try:
        as_text([mod])
    except ObjectsError:
        return False
    return True


# --- reading -----------------------------------------------------------------------------------


def _session(index: Mapping[str, Any], shelf: Shelf) -> SavedSession:
    tables = [_names(table, shelf) for table in _list(index, "constants")]
    stages: dict[str, SavedStage] = {}
    for data in _list(index, "stages"):
        stage = _stage(data, shelf, tables)
        if stage.id in stages:
            raise ValueFormError(f"there are two stages {stage.id!r}")
        if stage.parent is not None and stage.parent not in stages:
            raise ValueFormError(
                f"stage {stage.id!r} comes from {brief(stage.parent)}, which does not stand before "
                "it"
            )
        stages[stage.id] = stage
    shown, count = _text(index, "shown"), index.get("count")
    if shown not in stages:
        raise ValueFormError(f"there is no stage {brief(shown)} to show")
    if type(count) is not int or count <= max(map(int, stages)):
        raise ValueFormError(f"{brief(count)} is no count of its stages")
    given = from_data(index.get("given"), shelf)
    if not isinstance(given, dict):
        raise ValueFormError(f"{brief(given)} is not what stages are called with")
    return SavedSession(tuple(stages.values()), shown, count, _text(index, "function"), given)


def _stage(data: object, shelf: Shelf, tables: Sequence[ConstantNames]) -> SavedStage:
    if not isinstance(data, dict):
        raise ValueFormError(f"{brief(data)} is no stage")
    stage_id, parent = _text(data, "id"), data.get("parent")
    # ids become parts of file names, and are counted
    if not (stage_id.isascii() and stage_id.isdecimal() and len(stage_id) < 10):
        raise ValueFormError(f"{brief(stage_id)} is no id of a stage")
    module, number = shelf.object_at(data.get("module")), data.get("constants")
    if not isinstance(module, ir.IRModule):
        raise ValueFormError(f"stage {stage_id!r} has a {type(module).__name__} for its module")
    if type(number) is not int or not 0 <= number < len(tables):
        raise ValueFormError(f"stage {stage_id!r} has no names of constants {brief(number)}")
    made_by = from_data(data.get("made_by"), shelf)
    if made_by is not None and not isinstance(made_by, dict):
        raise ValueFormError(f"stage {stage_id!r} was made by {brief(made_by)}")
    if (parent is None) != (made_by is None) or not isinstance(parent, str | None):
        raise ValueFormError(f"stage {stage_id!r} has a parent or a transform, and lacks the other")
    seconds, is_same, within = data.get("seconds"), data.get("is_same"), _list(data, "within")
    if not isinstance(seconds, int | float | None) or not isinstance(is_same, bool):
        raise ValueFormError(f"stage {stage_id!r} has times or flags that are none")
    if not all(isinstance(one, str) for one in within):
        raise ValueFormError(f"stage {stage_id!r} is within {brief(within)}")
    return SavedStage(
        stage_id,
        module,
        _text(data, "label"),
        parent,
        made_by,
        _text(data, "error"),
        tables[number],
        _text(data, "said"),
        seconds,
        tuple(within),
        is_same,
    )


def _names(table: object, shelf: Shelf) -> ConstantNames:
    found = []
    for item in table if isinstance(table, list) else [table]:
        match item:
            case [int() as number, str() as name]:
                tensor = shelf.object_at(number)
            case _:
                raise ValueFormError(f"{brief(item)} is no constant's name")
        if not isinstance(tensor, tvm.runtime.Tensor):
            raise ValueFormError(f"the constant {brief(name)} is a {type(tensor).__name__}")
        found.append((tensor, name))
    return tuple(found)


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise ValueFormError(f"{brief(value)} stands where its {key} was expected")
    return value


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    if not isinstance(value, list):
        raise ValueFormError(f"{brief(value)} stands where a list of {key} was expected")
    return value
