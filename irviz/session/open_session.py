"""Open files and models as sessions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irviz.loaders.load import load as load_model
from irviz.loaders.load import load_content
from irviz.loaders.loaded_model import Missing
from irviz.runtime.inputs.argument_lists import Array
from irviz.session.session import Session
from irviz.transforms.stage import Stage

SESSION_SUFFIX = ".irviz"
"""The suffix of a file that `Session.save` wrote."""


def load(
    what: object,
    *,
    name: str = "",
    params: Mapping[str, Array] | None = None,
    inputs: Any = None,
    labels: NDArray[np.int64] | None = None,
    function: str = "",
    trust: bool = False,
    dynamic_shapes: Any = None,
    missing: Missing = "error",
) -> Session:
    """Open a file or a model as a session; nothing in a file is run.

    Args:
        what: A path to TVMScript of any TVM version (.py, or a notebook with it), TVM's JSON, .pt2,
            .onnx or a saved session (.irviz); or a model: an IRModule, a `relax.Function`, a
            PrimFunc, a module of `relax.frontend.nn`, torch or torch.fx, a program of torch.export
            or torch.onnx, or an ONNX model.
        name: The name of the module to open, if a file defines several.
        params: Arrays by parameter name, which replace those of the model.
        inputs: What functions are called with; a torch module needs example inputs.
        labels: The correct class of each case, of shape (cases,).
        function: The function to show; by default "main", or else the first by name, Relax
            functions before PrimFuncs.
        trust: Whether code in the file may be run, as after `Session.trust`.
        dynamic_shapes: Sizes of a torch module that may vary, as `torch.export.export` takes them.
        missing: What to do with calls that TVM's importer does not support: "error" raises,
            "opaque" imports them as nodes without a definition, so that the model can be drawn.

    Raises:
        LoadError: It is not a model, is damaged, or contains code that could run.
        NotFoundError: There is no function of this name.

    Example:
        ```python
        session = irviz.load("model.onnx")
        ```
    """
    if isinstance(what, str | os.PathLike) and Path(what).suffix.lower() == SESSION_SUFFIX:
        return Session.load(what, trust=trust)
    loaded = load_model(
        what,
        inputs=inputs,
        params=params,
        name=name,
        dynamic_shapes=dynamic_shapes,
        missing=missing,
    )
    for note in loaded.notes:
        warnings.warn(note, stacklevel=2)
    session = Session(
        loaded.module,
        params=loaded.params,
        inputs=loaded.inputs,
        labels=labels,
        layers=loaded.layers,
        function=function or loaded.function,
        origin=loaded.origin,
    )
    if isinstance(what, str | os.PathLike):
        session = session.from_file(os.fspath(what))
    return session.trust() if trust else session


def add_file(session: Session, file: str, content: bytes) -> Session:
    """Add the module of a file to a session, as a stage without a parent.

    Its weights are added to the session's params, and its example inputs are used if the session
    has no inputs. Raises LoadError.
    """
    loaded = load_content(content, file)
    stage = Stage(
        str(session.tree.count),
        loaded.module,
        f"opened {file}",
        files=frozenset({file}),
        layers=loaded.layers,
        origin=loaded.origin,
    )
    if session.call_inputs.inputs is None and loaded.inputs is not None:
        session = session.with_inputs(loaded.inputs)
    return session.with_params(loaded.params).add_stages([stage])
