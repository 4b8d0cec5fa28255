"""Save sessions to files and load them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irviz.ir.functions import drawable_functions
from irviz.loaders.arrays.numeric_arrays import brief
from irviz.loaders.sessions.session_file import (
    SavedSession,
    SavedStage,
    SessionFileError,
    load_session,
    save_session,
)
from irviz.runtime.run import CallInputs, RunConfig
from irviz.session.state import SessionState
from irviz.session.transform_codec import DescriptionError, describe, restore
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree
from irviz.version import __version__


def save(state: SessionState, path: str | os.PathLike[str], *, params: bool = True) -> Path:
    """Write a session to a file and return its path; raise SessionFileError if that is impossible.

    The file is as it was after an error. What can be undone is left out, and so is the RunConfig,
    which belongs to the machine.
    """
    call, tree = state.call_inputs, state.tree
    given = {
        "params": dict(call.params) if params else {},
        "inputs": call.inputs,
        "labels": call.labels,
        "seed": int(call.seed),
        "sizes": {name: int(size) for name, size in call.sizes.items()},
    }
    stages = _saved_stages(tree.stages)
    saved = SavedSession(stages, tree.current_id, tree.count, state.function, given)
    return save_session(path, saved, __version__)


def load(path: str | os.PathLike[str]) -> SessionState:
    """Return the state of a saved session; nothing in the file is applied or run.

    Raises SessionFileError for a file that is missing, unreadable, damaged or something else.
    """
    saved = load_session(path, __version__)
    try:
        stages = tuple(map(_stage, saved.stages))
        call = _call_inputs(saved.call_inputs)
    except DescriptionError as failure:
        raise SessionFileError(_damaged(path, str(failure))) from failure
    tree = StageTree(stages, saved.current_id, saved.count)
    # the current stage may lack it
    if not any(saved.function in drawable_functions(stage.module) for stage in stages):
        raise SessionFileError(_damaged(path, f"no stage has {brief(saved.function)} to show"))
    return SessionState(tree, saved.function, call, RunConfig())


def _damaged(path: str | os.PathLike[str], why: str) -> str:
    words = " ".join(why.split())
    return f"{os.fspath(path)!r} is damaged: {words}; save the session again"


def _saved_stages(stages: tuple[Stage, ...]) -> tuple[SavedStage, ...]:
    names: dict[frozenset[tuple[int, str]], tuple[tuple[Any, str], ...]] = {}
    made = []
    for stage in stages:
        key = frozenset((hash(one), name) for one, name in stage.constant_names.items())
        made.append(
            SavedStage(
                stage.id,
                stage.module,
                stage.label,
                stage.parent,
                None if stage.parent is None else _made_by(stage),
                stage.error,
                names.setdefault(key, tuple(stage.constant_names.items())),
                stage.stderr,
                stage.seconds,
                stage.enclosing_passes,
                stage.is_unchanged,
            )
        )
    return tuple(made)


def _made_by(stage: Stage) -> Mapping[str, object]:
    if stage.transform is None:
        return {"kind": "label", "label": stage.label, "is_pass": False}
    return describe(stage.transform)


def _stage(saved: SavedStage) -> Stage:
    try:
        transform = None if saved.made_by is None else restore(saved.made_by)
    except DescriptionError as failure:
        raise DescriptionError(f"stage {saved.id!r}: {failure}") from failure
    return Stage(
        saved.id,
        saved.module,
        saved.label,
        saved.parent,
        transform,
        saved.error,
        dict(saved.constant_names),
        saved.stderr,
        saved.seconds,
        saved.enclosing_passes,
        saved.is_unchanged,
    )


def _call_inputs(values: Mapping[str, object]) -> CallInputs:
    match values:
        case {
            "params": dict() as params,
            "inputs": dict() | np.ndarray() | str() | None as inputs,
            "labels": np.ndarray() | None as labels,
            "seed": int() as seed,
            "sizes": dict() as sizes,
            **rest,
        } if not rest and all(isinstance(one, int) for one in sizes.values()):
            return CallInputs(inputs, params, labels, seed, sizes)
    raise DescriptionError(f"{brief(dict(values))} is not what stages are called with")
