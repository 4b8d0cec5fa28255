"""Open modules, models and files, to draw, read or compare them."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from irviz.errors import LoadError
from irviz.limits import OPERATION_SECONDS
from irviz.loaders.file_limits import Reader, reader
from irviz.loaders.load import is_session_file, load_content
from irviz.loaders.load import load as load_model
from irviz.loaders.loaded_model import Missing
from irviz.loaders.param_files import load_params
from irviz.model.graph.graph import Graph, NodeId
from irviz.runtime.argument_conversion import Array
from irviz.session.operation_limits import limited
from irviz.session.session import Session
from irviz.session.shown_function import ViewState
from irviz.session.stage_diff import diff_modules, diff_stages
from irviz.transforms.stage import INITIAL, Stage
from irviz.view.graph.graph_figure import Direction, GraphFigure
from irviz.view.module_diff import Diff
from irviz.view.theme import ThemeName
from irviz.worker.supervisor import Worker

_SECONDS, _LEAST_SECONDS = 8.5, 3.0
"""Opening and comparing two small files takes at most 8.5 s; comparing may always take 3 s."""


def load(
    what: object,
    *,
    name: str = "",
    params: Mapping[str, Array] | str | os.PathLike[str] | None = None,
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
            .onnx, .tflite or a saved session (.irviz, and `"work.irviz#1"` for its stage 1); or a
            model: an IRModule, a `relax.Function`, a PrimFunc, a module of `relax.frontend.nn`,
            torch or torch.fx, a program of torch.export or torch.onnx, or an ONNX model.
        name: The name of the module to open, if a file defines several.
        params: Arrays by parameter name, which replace those of the model, or the path of an .npz,
            a .safetensors or a pickle with them.
        inputs: What functions are called with; a torch module needs example inputs.
        labels: The correct class of each case, of shape (cases,).
        function: The function to show; by default "main", or else the first by name, Relax
            functions before PrimFuncs.
        trust: Whether code in the file may be run, as after `Session.trust`.
        dynamic_shapes: Sizes of a torch module that may vary, as `torch.export.export` takes them.
        missing: What to do with calls that TVM's importer does not support: "error" raises,
            "opaque" lets torch or ONNX compute those of its own, and imports others as nodes
            without a definition, so that the model can be drawn.

    Raises:
        LoadError: It is not a model, is damaged, or contains code that could run.
        NotFoundError: There is no function of this name.

    Example:
        ```python
        session = irviz.load("model.onnx")
        ```
    """
    if isinstance(params, str | os.PathLike):
        params = load_params(params)
    what, stage = split_stage(what)
    if is_session(what):
        if name:
            raise LoadError(f"{os.fspath(what)!r} is a saved session: leave out {name!r}")
        session = Session.load(what, trust=trust)
        session = session.checkout(stage) if stage else session
        return session.select_function(function) if function else session
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


def split_stage(what: object) -> tuple[object, str]:
    """Return a file and the id of a stage, "" for none; a file's own name may contain the sign."""
    if not isinstance(what, str | os.PathLike):
        return what, ""
    path = os.fspath(what)
    file, sign, stage = path.rpartition("#")
    # Path.exists raises an error for a name that is too long
    if sign and stage and is_session(file) and not os.path.exists(path):  # noqa: PTH110
        return file, stage
    return path, ""


def is_session(what: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether something is the path of a saved session."""
    return isinstance(what, str | os.PathLike) and is_session_file(Path(what))


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


def graph(mod: object, function: str = "") -> Graph:
    """Read a function as plain data: nodes, edges and regions, without TVM objects.

    Args:
        mod: A module, or anything that `irviz.load` takes.
        function: The name of a Relax function or a PrimFunc; by default "main", or else the
            first by its name.

    Raises:
        LoadError: It is not a model.
        NotFoundError: There is no function of this name.
    """
    return load(mod, function=function).graph()


def draw(
    mod: object,
    function: str = "",
    *,
    around: str = "",
    steps: int = 1,
    to: str = "",
    theme: ThemeName = "course",
    direction: Direction = "up",
) -> GraphFigure:
    """Draw a function as a figure that displays itself in a notebook and can be saved.

    Repeated structure is drawn once, and a large function is folded to at most 300 nodes.

    Args:
        mod: A module, or anything that `irviz.load` takes.
        function: The name of a Relax function or a PrimFunc; by default "main", or else the
            first by its name.
        around: A variable, to draw only the nodes at most `steps` uses away from it.
        steps: How many uses.
        to: Another variable, to draw only the paths between the two.
        theme: The colours.
        direction: Where data flows to.

    Raises:
        LoadError: It is not a model.
        NotFoundError: There is no such function or variable, or no path.
        DrawError: There is no such theme or direction.

    Example:
        ```python
        irviz.draw(MyModule, around="lv3").save("lv3.svg")
        ```
    """
    session = load(mod, function=function)
    return session.draw(view=part(around, steps, to), theme=theme, direction=direction)


def part(around: str, steps: int = 1, to: str = "") -> ViewState:
    """Return what is drawn of a function, by the arguments of `draw`."""
    if not around:
        return ViewState()
    return ViewState().at(NodeId(around), steps, NodeId(to) if to else None)


def diff(
    a: object, b: object, function: str = "", *, module: str = "", missing: Missing = "error"
) -> Diff:
    """Return the differences between two modules: what became of each function and node.

    Nothing in a file is run.

    Args:
        a: The module before, or anything that `irviz.load` takes. `"work.irviz#1"` names a stage of
            a saved session; without the number it is the session's current stage.
        b: The module after, likewise.
        function: Compare only this function.
        module: The name of the module to read, if a file defines several.
        missing: What to do with calls that TVM's importer does not support, as in `irviz.load`.

    Raises:
        LoadError: One of the two is not a model.
        NotFoundError: There is no such stage, or no such function.

    Example:
        ```python
        print(irviz.diff(MyModule, relax.transform.LegalizeOps()(MyModule)).text())
        ```
    """
    (file, stage), (other_file, other_stage) = split_stage(a), split_stage(b)
    if is_session(file) and file == other_file:
        before = load(file, name=module)
        stage = stage or before.current_id
        with limited("the comparison", *before.stages):
            return Diff.of(
                diff_stages(before.tree, stage, other_stage or before.current_id, function)
            )
    began = time.monotonic()
    before, after = _load_both(file, other_file, module, missing)
    left = max(_LEAST_SECONDS, _SECONDS - (time.monotonic() - began))
    one = before.tree.stage(stage or None)
    two = after.tree.stage(other_stage or None)
    titles = _title(a, one.label, "before"), _title(b, two.label, "after")
    with limited("the comparison", one, two, seconds=min(OPERATION_SECONDS, left)):
        return Diff.of(diff_modules(one, two, titles, function))


def recordings(a: str, b: str) -> tuple[Session, Session] | None:
    """Return the sessions of two saved recordings, None if either file is something else.

    A name with the number of a stage, such as `"work.irviz#1"`, is not a whole recording.
    """
    if any(not is_session(path) or stage for path, stage in map(split_stage, (a, b))):
        return None
    one, two = _load_both(a, b)
    is_recorded = [any(stage.seconds is not None for stage in each.stages) for each in (one, two)]
    return (one, two) if all(is_recorded) else None


def _load_both(
    a: object, b: object, name: str = "", missing: Missing = "error"
) -> tuple[Session, Session]:
    """Open two files or models, files at the same time: each is read in a process of its own."""
    if not all(isinstance(each, str | os.PathLike) for each in (a, b)):
        return load(a, name=name, missing=missing), load(b, name=name, missing=missing)

    worker = Worker()

    def load_second() -> Session:
        began = time.monotonic()
        worker.call(os.getpid, answer=int)  # when its process has started
        reader.set(Reader(worker, time.monotonic() - began))
        return load(b, name=name, missing=missing)

    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(copy_context().run, load_second)
        try:
            return load(a, name=name, missing=missing), second.result()
        finally:
            worker.stop()  # also if the first file cannot be opened


def _title(what: object, label: str, default: str) -> str:
    """Return a module's title in the diff: its file, name or stage."""
    if isinstance(what, str | os.PathLike):
        return os.fspath(what)
    name = getattr(what, "__name__", "")
    return str(name) or (default if label == INITIAL else label)
