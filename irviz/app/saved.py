"""Sessions <-> files that hold them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from irviz import __version__
from irviz.app.described import DescriptionError, described, restored
from irviz.app.runnable import Runnable
from irviz.ir.identity import drawn_functions
from irviz.loaders.numbers import brief
from irviz.loaders.sessions.session_file import (
    SavedSession,
    SavedStage,
    SessionFileError,
    load_session,
    save_session,
)
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree

Saved = TypeVar("Saved", bound=Runnable)


def save(session: Runnable, path: str | os.PathLike[str], *, params: bool = True) -> Path:
    """Write a session to a file, whole or not at all, and return its path.

    What can be undone is left out, and where and how long runs may take: that is the machine's.
    Raises SessionFileError, with the file as it was, for what cannot be saved or written.
    """
    given = {
        "params": dict(session.params) if params else {},
        "inputs": session.inputs,
        "labels": session.labels,
        "seed": int(session.seed),
        "sizes": {name: int(size) for name, size in session.sizes.items()},
    }
    stages, tree = _saved_stages(session.stages), session.tree
    assert tree is not None, "it is made with the session"
    saved = SavedSession(stages, session.shown_id, tree.count, session.function, given)
    return save_session(path, saved, __version__)


def load(kind: type[Saved], path: str | os.PathLike[str]) -> Saved:
    """Return the session of a file; nothing of it is applied or run.

    Raises SessionFileError, in one sentence, for a file that is missing, unreadable, damaged or
    something else.
    """
    saved = load_session(path, __version__)
    try:
        stages = tuple(map(_stage, saved.stages))
        given = _given(saved.given)
    except DescriptionError as failure:
        raise SessionFileError(_damaged(path, str(failure))) from failure
    tree = StageTree(stages, saved.shown_id, saved.count)
    # the shown stage may have lost it
    if not any(saved.function in drawn_functions(stage.module) for stage in stages):
        raise SessionFileError(_damaged(path, f"no stage has {brief(saved.function)} to show"))
    return kind(stages[0].module, function=saved.function, tree=tree, **given)


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
                stage.said,
                stage.seconds,
                stage.within,
                stage.is_same,
            )
        )
    return tuple(made)


def _made_by(stage: Stage) -> Mapping[str, object]:
    if stage.transform is None:
        return {"kind": "label", "label": stage.label, "is_pass": False}
    return described(stage.transform)


def _stage(saved: SavedStage) -> Stage:
    try:
        transform = None if saved.made_by is None else restored(saved.made_by)
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
        saved.said,
        saved.seconds,
        saved.within,
        saved.is_same,
    )


def _given(values: Mapping[str, object]) -> dict[str, Any]:
    match values:
        case {
            "params": dict() as params,
            "inputs": dict() | np.ndarray() | str() | None as inputs,
            "labels": np.ndarray() | None as labels,
            "seed": int() as seed,
            "sizes": dict() as sizes,
            **rest,
        } if not rest and all(isinstance(one, int) for one in sizes.values()):
            return {
                "params": params,
                "inputs": inputs,
                "labels": labels,
                "seed": seed,
                "sizes": sizes,
            }
    raise DescriptionError(f"{brief(dict(values))} is not what stages are called with")
