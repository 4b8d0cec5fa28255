"""Load a module, with its weights and inputs, from a file or an object in memory."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import tvm
from tvm import ir, relax, tirx

from irviz.errors import LoadError
from irviz.loaders.file_errors import brief, named
from irviz.loaders.file_kind import COMPILED, READABLE, FileKind
from irviz.loaders.file_limits import file_size, seconds_for
from irviz.loaders.loaded_model import Loaded, Missing
from irviz.loaders.models.imported_layers import remember_layers
from irviz.loaders.read_file_contents import read_content, read_path
from irviz.loaders.read_in_worker import read_in_worker


def load(
    source: object,
    *,
    inputs: Any = None,
    params: Any = None,
    name: str = "",
    dynamic_shapes: Any = None,
    missing: Missing = "error",
) -> Loaded:
    """Load a module. Files are read in the worker, and nothing in them is run.

    Args:
        source: The path of a file, which holds TVMScript, a notebook, TVM's JSON, a .pt2 program
            or ONNX; or an IRModule, a function, a `relax.frontend.nn` module, a module or
            GraphModule of PyTorch, a program of torch.export or torch.onnx, or an ONNX model.
        inputs: The inputs; PyTorch modules need them, as examples.
        params: Arrays by parameter name; they replace those of the source.
        name: The module to load from a file that defines several.
        dynamic_shapes: Sizes of a PyTorch module that may vary, as `torch.export.export` takes
            them.
        missing: What to do with calls that TVM's importer does not support: "error", or "opaque" to
            import them as calls without a definition.

    Raises:
        LoadError: No module can be loaded.
    """
    if missing not in get_args(Missing):
        raise LoadError(f"missing={missing!r} is unknown: give 'error' or 'opaque'")
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        with named(str(path)):
            seconds = _seconds(str(path), file_size(path))  # raises before a worker starts
            arguments = path.absolute(), str(path), name, missing
            loaded = read_in_worker(read_path, *arguments, seconds=seconds)
    elif name:
        raise LoadError(
            f"{name!r} names a module of a file, and this is of the type {_type_name(source)}"
        )
    else:
        loaded, inputs = _load_object(source, inputs, dynamic_shapes, missing)
    remember_layers(loaded.module, loaded.layers)
    if inputs is not None:
        loaded = replace(loaded, inputs=inputs)
    return replace(loaded, params={**loaded.params, **params}) if params else loaded


def _seconds(file: str, size: int) -> float:
    """Return the time limit for opening a file."""
    model = FileKind.PT2.suffix, FileKind.ONNX.suffix
    return seconds_for(size, is_text=not file.endswith(model))


def load_content(content: bytes, file: str) -> Loaded:
    """Load a module from the bytes of a file; raise LoadError as `load` does.

    ONNX models with external weights are refused.
    """
    with named(file):
        seconds = _seconds(file, len(content))
        loaded = read_in_worker(read_content, content, file, seconds=seconds)
    remember_layers(loaded.module, loaded.layers)
    return loaded


def _load_object(
    source: object, inputs: Any, dynamic_shapes: Any, missing: Missing
) -> tuple[Loaded, Any]:
    """Return the loaded object, and the inputs that the loader has not used."""
    from tvm.relax.frontend import nn

    from irviz.loaders.models.relax_nn_models import from_nn

    if isinstance(source, ir.IRModule):
        return Loaded(source), inputs
    if isinstance(source, relax.Function | tirx.PrimFunc):
        return _from_function(source), inputs
    if isinstance(source, nn.Module):
        return from_nn(source, inputs), None
    torch, onnx = sys.modules.get("torch"), sys.modules.get("onnx")
    if torch is not None:  # an object of a library implies that the library is imported
        from irviz.loaders.models.torch_models import from_module, from_program

        if isinstance(source, torch.nn.Module):
            return from_module(source, inputs, dynamic_shapes, missing), None
        if isinstance(source, torch.export.ExportedProgram):
            return from_program(source, missing=missing), inputs
        if isinstance(source, torch.onnx.ONNXProgram):
            source, onnx = source.model_proto, importlib.import_module("onnx")
    if onnx is not None and isinstance(source, onnx.ModelProto):
        from irviz.loaders.models.onnx_models import from_model

        return from_model(source, missing), inputs
    if isinstance(source, tvm.runtime.Executable | tvm.runtime.Module):
        raise LoadError(f"{_type_name(source)} {COMPILED}")
    raise LoadError(
        f"{brief(source)}, of the type {_type_name(source)}, is not a model: give a file of "
        f"{READABLE}, an IRModule, or a model of TVM, torch or ONNX"
    )


def _from_function(function: relax.Function | tirx.PrimFunc) -> Loaded:
    """Return a module of one function, named by its global symbol, or "main"."""
    attributes = function.attrs or {}
    name = str(attributes["global_symbol"]) if "global_symbol" in attributes else "main"
    public = function.with_attr("global_symbol", name)
    return Loaded(ir.IRModule({ir.GlobalVar(name): public}), function=name)


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
