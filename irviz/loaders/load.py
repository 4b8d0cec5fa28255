"""Whatever people have -> a module, with the weights and the inputs that come with it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tvm import ir, relax, tirx

from irviz.ir.refusal import RefusedError
from irviz.loaders.content import TAKEN, Kind, content_of, kind_of, text_of
from irviz.loaders.loaded import Loaded, LoadError


def load(what: object, *, inputs: Any = None, params: Any = None, name: str = "") -> Loaded:
    """Return what this holds: the path of a file, or a module or model that is in memory.

    A file is TVMScript, a notebook, TVM's JSON, .pt2 or ONNX; `name` is one of its modules, where
    it defines several; nothing in it is run. A model may be an IRModule, a function of one, a
    module of `relax.frontend.nn`, of torch, of torch.fx, a program of torch.export, or an ONNX
    model. `inputs` are what it is called with; torch's modules need them, as examples. `params`
    are arrays by the names of parameters, in the place of those that come with it. Raises
    LoadError, in one sentence, which says what would be right.
    """
    if isinstance(what, str | os.PathLike):
        file = Path(what)
        found = load_content(content_of(file), str(file), name=name, folder=file.parent)
    elif name:
        raise LoadError(f"{name!r} names a module of a file, and this is of the type {_kind(what)}")
    else:
        found, inputs = _live(what, inputs)
    if inputs is not None:
        found = replace(found, inputs=inputs)
    return replace(found, params={**found.params, **params}) if params else found


def load_content(
    content: bytes, file: str, *, name: str = "", folder: Path | None = None
) -> Loaded:
    """Return what a file of this name holds; raise LoadError for what is none of those read.

    `folder` is where it lies, for the weights that ONNX keeps beside it. Nothing in it is run.
    """
    kind = kind_of(content, file)
    if name and kind not in (Kind.SCRIPT, Kind.NOTEBOOK):
        raise LoadError(f"{file!r} is {kind.value}, which holds one module: leave out {name!r}")
    if kind is Kind.PT2:
        from irviz.loaders.torch_models import from_pt2

        return from_pt2(content, file)
    if kind is Kind.ONNX:
        from irviz.loaders.onnx_models import from_onnx_file

        return from_onnx_file(content, file, folder)
    text = text_of(content, file)
    if kind is Kind.JSON:
        from irviz.loaders.tvm_json import from_json

        return Loaded(from_json(text, file))
    return _from_python(text, repr(file), name, kind)


def _from_python(text: str, file: str, name: str, kind: Kind) -> Loaded:
    is_guess = kind is Kind.SCRIPT and not file.endswith((".py'", '.py"'))
    from irviz.loaders.notebook_file import python_of
    from irviz.loaders.script_file import from_script

    if kind is Kind.NOTEBOOK:
        text, file = python_of(text, file), f"{file} (its cells as one text)"
    try:
        return from_script(text, file, name)
    except RefusedError as refusal:
        if is_guess and refusal.reason.startswith("this is no Python"):
            raise LoadError(f"{file} is none of the files that are read: give {TAKEN}") from refusal
        raise LoadError(str(refusal)) from refusal


def _live(what: object, inputs: Any) -> tuple[Loaded, Any]:
    """Return what is in memory, and the inputs that are still to be given for it."""
    from tvm.relax.frontend import nn

    from irviz.loaders.relax_models import from_function, from_nn

    if isinstance(what, ir.IRModule):
        return Loaded(what), inputs
    if isinstance(what, relax.Function | tirx.PrimFunc):
        return from_function(what), inputs
    if isinstance(what, nn.Module):
        return from_nn(what, inputs), None
    torch, onnx = sys.modules.get("torch"), sys.modules.get("onnx")
    if torch is not None:  # an object of a library that is not loaded there cannot be
        from irviz.loaders.torch_models import from_module, from_program

        if isinstance(what, torch.nn.Module):
            return from_module(what, inputs), None
        if isinstance(what, torch.export.ExportedProgram):
            return from_program(what), inputs
    if onnx is not None and isinstance(what, onnx.ModelProto):
        from irviz.loaders.onnx_models import from_model

        return from_model(what), inputs
    raise LoadError(
        f"{_brief(what)}, of the type {_kind(what)}, is no model: give a file of {TAKEN}, "
        "an IRModule, or a model of TVM, torch or ONNX"
    )


def _kind(what: object) -> str:
    kind = type(what)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _brief(what: object) -> str:
    text = " ".join(repr(what).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
