"""Whatever people have -> a session: a module, its weights and what it is called with."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irviz.app.session import Session
from irviz.loaders.load import load as loaded
from irviz.loaders.load import load_content
from irviz.runtime.inputs import Array
from irviz.transforms.stage import Stage

_SESSION = ".irviz"
"""The suffix of a file that `Session.save` wrote."""


def load(
    what: object,
    *,
    name: str = "",
    params: Mapping[str, Array] | None = None,
    inputs: Any = None,
    labels: NDArray[np.int64] | None = None,
    function: str = "",
) -> Session:
    """Open a file or a model as a session, with the weights that come with it as its params.

    A file is TVMScript (.py) of any year, a notebook, TVM's JSON, .pt2, ONNX, or a session that
    was saved (.irviz, with all of its own); `name` is one of its modules, where it defines
    several; nothing in it is run. A model is an IRModule, a
    `relax.Function`, a PrimFunc, a module of `relax.frontend.nn`, of torch or of torch.fx, a
    program of torch.export, or an ONNX model. `inputs` are what it is called with; modules of
    torch need them, as examples. Raises LoadError, in one sentence, for anything else, and
    ValueError when there is no function of this name.
    """
    if isinstance(what, str | os.PathLike) and Path(what).suffix.lower() == _SESSION:
        return Session.load(what)
    found = loaded(what, inputs=inputs, params=params, name=name)
    for note in found.notes:
        warnings.warn(note, stacklevel=2)
    return Session(
        found.module,
        params=found.params,
        inputs=found.inputs,
        labels=labels,
        function=function or found.function,
    )


def begun(session: Session, file: str, content: bytes) -> Session:
    """Open what a file holds as another beginning of a session; no stage is lost.

    The weights that come with it join the session's params. Raises LoadError, in one sentence,
    for what cannot be opened, and ValueError where it holds no function.
    """
    found = load_content(content, file)
    assert session.tree is not None, "it is made with the session"
    stage = Stage(str(session.tree.count), found.module, f"opened {file}")
    params = {**session.params, **found.params}
    return replace(session, tree=session.tree.add([stage]), params=params)
