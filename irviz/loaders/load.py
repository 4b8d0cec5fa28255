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
from irviz.loaders.file_kind import COMPILED, READABLE, FileKind, decode_text, detect_kind
from irviz.loaders.file_limits import (
    FileError,
    brief,
    check_result,
    file_size,
    memory_for,
    named,
    read_file,
    seconds_for,
)
from irviz.loaders.loaded_model import Loaded, Missing
from irviz.loaders.models.imported_layers import remember_layers
from irviz.loaders.python_file import NO_MODULE
from irviz.loaders.read_in_worker import read_in_worker
from irviz.loaders.tvm_json import MEMORY_RATIO, module_from_json
from irviz.model.runs.run_result import Origin
from irviz.worker import answers

_LONGEST_PATH = 4096
"""That of Linux; no other system allows longer ones by default."""


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
            import them as calls that torch or ONNX computes, or that have no definition.

    Raises:
        LoadError: No module can be loaded.
    """
    if missing not in get_args(Missing):
        raise LoadError(f"missing={missing!r} is unknown: give 'error' or 'opaque'")
    if isinstance(source, str) and ("\n" in source or len(source) > _LONGEST_PATH):
        raise LoadError(
            f"{brief(source)} is a text, and the path of a file was expected: write it to a .py "
            "file, and give its path"
        )
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


# The memory for reading a file, in proportion to its size. Python's parser takes a thousand times
# the size of a text.
_RATIOS = {
    FileKind.JSON: MEMORY_RATIO,
    FileKind.NOTEBOOK: 1000,
    FileKind.SCRIPT: 1000,
    FileKind.PT2: 20,
    FileKind.ONNX: 20,
}


def _origin(packed: Any) -> Origin:
    """Return the origin of a file that the worker has read."""
    if "variables" in packed:
        from irviz.loaders.models.onnx_models import OnnxOrigin

        return answers.convert(packed, OnnxOrigin)
    from irviz.loaders.models.pt2_models import Pt2Origin

    return answers.convert(packed, Pt2Origin)


answers.register(Origin, vars, _origin)


def read_path(path: Path, file: str, name: str, missing: Missing = "error") -> Loaded:
    """Return what the file at an absolute path contains; errors call the file `file`."""
    return read_content(read_file(path), file, name, path, missing)


def read_content(
    content: bytes, file: str, name: str = "", path: Path | None = None, missing: Missing = "error"
) -> Loaded:
    """Return what the bytes of a file contain; raise LoadError for other files.

    A FileError continues a sentence after the file's name. ONNX may keep weights in other files
    beside `path`; for `missing` see `import_program`.
    """
    kind = detect_kind(content, file)
    if name and kind not in (FileKind.SCRIPT, FileKind.NOTEBOOK, FileKind.SESSION):
        raise LoadError(f"{file!r} is {kind.title}, which holds one module: leave out {name!r}")
    if kind is FileKind.SESSION:
        raise LoadError(f"{file!r} is {kind.title}, with stages of its own: open it by itself")
    external = 0
    if kind is FileKind.ONNX:
        from irviz.loaders.models.onnx_models import external_bytes

        external = external_bytes(content, path and path.parent)
    size = len(content) + external
    with memory_for(size, _RATIOS[kind]):
        loaded = _read(content, kind, file, name, path, missing)
        check_result(loaded, size)
    return loaded


def _read(
    content: bytes, kind: FileKind, file: str, name: str, path: Path | None, missing: Missing
) -> Loaded:
    try:
        if kind is FileKind.PT2:
            from irviz.loaders.models.pt2_models import from_pt2

            return from_pt2(content, path, missing)
        if kind is FileKind.ONNX:
            from irviz.loaders.models.onnx_models import from_onnx_file

            return from_onnx_file(content, path, missing)
    except FileError:
        raise
    except LoadError as failure:
        raise type(failure)(f"{file!r}: {failure}") from failure
    text = decode_text(content, file)
    if kind is FileKind.JSON:
        return Loaded(module_from_json(text, file))
    return _read_python(text, file, name, kind)


_NO_MODULES = "this is not Python", NO_MODULE
"""What is said of texts that were taken for TVMScript only because they are no other kind."""


def _read_python(text: str, file: str, name: str, kind: FileKind) -> Loaded:
    from irviz.loaders.python_file import from_python

    title = repr(file)
    if kind is FileKind.NOTEBOOK:
        from irviz.loaders.notebook_cells import python_of_notebook

        text, title = python_of_notebook(text, title), f"{title} (its cells as one text)"
    try:
        return from_python(text, title, name)
    except LoadError as refusal:
        is_guess = kind is FileKind.SCRIPT and not file.endswith(".py")
        if is_guess and any(words in str(refusal) for words in _NO_MODULES):
            raise LoadError(
                f"{title} is not a kind of file that irviz reads: give {READABLE}"
            ) from refusal
        raise
