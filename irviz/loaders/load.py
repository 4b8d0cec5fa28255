"""Load a module, with its weights and inputs, from a file or an object in memory."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import zlib
from codecs import BOM_UTF8
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import tvm
from tvm import ir, relax, tirx

from irviz.errors import LoadError
from irviz.loaders.file_limits import (
    ZIP_STARTS,
    FileError,
    brief,
    file_size,
    limits_for,
    named,
    read_file,
    read_in_worker,
    seconds_for,
)
from irviz.loaders.loaded_model import Loaded, Missing
from irviz.loaders.models.imported_layers import remember_layers
from irviz.loaders.python_file import NO_MODULE
from irviz.loaders.tvm_json import MEMORY_RATIO, module_from_json
from irviz.model.runs.run_result import Origin
from irviz.worker import responses

READABLE = (
    "TVMScript (.py), a notebook (.ipynb), TVM's JSON (.json), a torch.export program (.pt2), "
    "ONNX (.onnx), TensorFlow Lite (.tflite) or a saved session (.irviz)"
)


class FileKind(Enum):
    """A kind of file that holds modules: the suffix of its name, and its title in errors.

    The memory for reading a file is a multiple of its size; Python's parser takes a thousand times
    the size of a text.
    """

    JSON = ".json", "TVM's JSON", MEMORY_RATIO
    NOTEBOOK = ".ipynb", "a notebook", 1000
    SCRIPT = ".py", "TVMScript", 1000
    PT2 = ".pt2", "a torch.export program", 20
    ONNX = ".onnx", "an ONNX model", 20
    TFLITE = ".tflite", "a TensorFlow Lite model", 20
    SESSION = ".irviz", "a saved session", 0

    def __init__(self, suffix: str, title: str, memory_ratio: int) -> None:
        self.suffix, self.title, self.memory_ratio = suffix, title, memory_ratio


# What is said of common files that hold no graph, or one that only running them would show.
_NO_MODULE_IN = (
    "and no IRModule can be read from it: give the module it is made of, or record its build with "
    "irviz.record()"
)
COMPILED = f"is compiled, {_NO_MODULE_IN}"
_CONVERT = "give the model itself, as ONNX or .pt2"
_WEIGHTS = f"which holds weights and no graph: {_CONVERT}, and the weights as params="
_PICKLE = (
    "is a pickle, which may run anything as it is read and was not read: save the model with "
    "torch.export.save(torch.export.export(model, inputs), 'model.pt2')"
)
_IMAGE = "is an image: give it as inputs, beside a model"
_ONNX_BY_TF = "convert it to ONNX with python -m tf2onnx.convert"
_UNPACK = "unpack it, and give the model that is in it"
_MLIR = (
    "is MLIR: import StableHLO with tvm.relax.frontend.stablehlo.from_stablehlo, and give the "
    "IRModule"
)
_SIGNATURES = {
    rb".{4}\0{4}\{": f"is .safetensors, {_WEIGHTS}",
    rb"\x80[\0-\x05]": _PICKLE,
    rb"\x89HDF": f"is HDF5, which holds arrays: {_CONVERT}",
    rb"GGUF": f"is GGUF, {_WEIGHTS}",
    rb"(?:lmgg|fmgg|tjgg).\0\0\0": f"is GGML, {_WEIGHTS}",
    rb"\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7": (
        "is .params of TVM, which holds weights and no graph: give the module, and the weights "
        "as params="
    ),
    rb"\x93NUMPY": "is an array: give it as params or inputs, beside a module",
    rb"PK\x03\x04.{22}.{4}[^/]{1,200}\.npy": (
        "is an .npz, which holds arrays: give it as params= or inputs=, beside a module"
    ),
    rb"PK\x03\x04.{26}(?:metadata\.json|config\.json|model\.weights\.h5)": (
        f"is a Keras model: {_ONNX_BY_TF}"
    ),
    rb"PK\x05\x06": "is an empty zip archive: give one of a model",
    rb"\x7fELF|MZ[^\n]{0,60}\0|[\xce\xcf]\xfa\xed\xfe|\xca\xfe\xba\xbe|!<arch>\n": COMPILED,
    rb"[fp]trt\0": COMPILED,
    rb"..\r\n[\0-\3]\0\0\0": "is compiled Python: give the .py file",
    rb".{2}\0\0ET\d\d": f"is an ExecuTorch program, which is lowered: {_CONVERT}",
    rb".{2}\0\0ORTM": f"is a model in the format of ONNX Runtime: {_CONVERT}",
    rb"ML\xefR": _MLIR,
    rb"(?:\s|(?://|#)[^\n]*\n)*(?:builtin\.)?module (?:@\S+ )?(?:attributes )?\{": _MLIR,
    rb"HloModule ": f"is HLO: {_CONVERT}, or StableHLO as an IRModule",
    rb"\s*<\s*ir_version": (
        "is ONNX as text: write the model with onnx.save(onnx.parser.parse_model(text), "
        "'model.onnx')"
    ),
    rb"\s*ir_version: \d": (
        "is ONNX as text: write the model with onnx.save(onnx.load(path, format='textproto'), "
        "'model.onnx')"
    ),
    rb'#\[version = "': (
        "is Relay, which TVM has removed: give the model that was imported, as ONNX or .pt2"
    ),
    rb'\s*\{\s*"root":': (
        "is the JSON of an older TVM: print the module there with mod.script(), and give the "
        "text as .py"
    ),
    rb'\s*\{\s*"nodes": *\[\s*\{\s*"op"': COMPILED,
    rb'\s*\{\s*(?:"metadata":\s*\{[^{}]*\},\s*)?"weight_map":': (
        f"lists the files of weights, and has no graph: {_CONVERT}"
    ),
    rb'\s*\{[^{}]*"(?:architectures|model_type)":': (
        f"describes a model without its graph: {_CONVERT}"
    ),
    rb"version https://git-lfs": (
        "is a pointer of Git LFS, in place of a file: get the file with git lfs pull"
    ),
    rb"(?i:\s*<(?:!doctype html|html|head|body))": (
        "is a web page: if it was downloaded in place of a model, download the file itself"
    ),
    rb"\s*(?:<\?xml[^>]*>\s*)?<net\b": f"is an OpenVINO model: {_CONVERT}",
    rb"\x1f\x8b|BZh|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!": f"is compressed: {_UNPACK}",
    rb".{257}ustar": (
        f"is a tar archive: {_UNPACK}; if TVM has exported it as a library, give the module "
        "that was built"
    ),
    rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF.{4}WEBP|BM.{4}\0{4}|\s*<svg\b": _IMAGE,
    rb"%PDF": "is a PDF: give a model",
    rb"\xff\xfe|\xfe\xff": "is text in UTF-16: save it in UTF-8",
}
"""What is said of files that begin so, as a regular expression in which a dot is any byte."""
_FOREIGN = {
    **dict.fromkeys((".pb", ".pbtxt"), f"is a graph of TensorFlow: {_ONNX_BY_TF}"),
    ".mlmodel": f"is a Core ML model: {_CONVERT}",
    ".mlir": _MLIR,
    ".nnef": f"is NNEF: {_CONVERT}",
    ".pdmodel": "is a Paddle model: convert it to ONNX with paddle2onnx",
    **dict.fromkeys((".prototxt", ".caffemodel"), f"is a Caffe model: {_CONVERT}"),
    **dict.fromkeys((".ll", ".bc", ".c", ".cu", ".ptx", ".cl", ".metal"), COMPILED),
}
"""What is said of files that only their suffix tells apart."""

_WRITTEN_BY = {
    FileKind.PT2: (
        "it is not a zip archive; write one with "
        "torch.export.save(torch.export.export(model, inputs), path)"
    ),
    FileKind.TFLITE: "TFL3 is not at its byte 4; write one with tf.lite.TFLiteConverter",
    FileKind.SESSION: "it is not a zip archive; write one with session.save(path)",
}
SESSION_ENTRY = re.compile(r"index\.json|objects\.json|arrays/(?:0|[1-9][0-9]{0,8})\.npy")
"""The names of the entries of a saved session, which is a zip archive as a .pt2 file is."""
_MOST_NAME, _MOST_START = 30, 1000
_KERNEL, _MOST_SYMBOLS = re.compile(rb"\0_?__tvm_ffi_([A-Za-z]\w*)(?=\0)"), 1 << 26
_ONNX = re.compile(rb"\x08[\2-\x1f]")
"""ONNX has no signature of its own: it begins with its version, a field and a number. Models that
TensorFlow has saved have 1 there."""


def holds_session(content: bytes) -> bool:
    """Return whether a file that begins so is a saved session, by the name of its first entry."""
    size = int.from_bytes(content[26:28], "little")
    name = content[30 : 30 + min(size, _MOST_NAME)].decode("ascii", "replace")
    return content.startswith(ZIP_STARTS) and SESSION_ENTRY.fullmatch(name) is not None


def is_session_file(path: Path) -> bool:
    """Return whether a file is a saved session, or is called one: then its damage is said."""
    if path.suffix.lower() == FileKind.SESSION.suffix:
        return True
    with contextlib.suppress(OSError):  # whoever reads the file says what is wrong with it
        if path.is_file():
            with path.open("rb") as file:
                return holds_session(file.read(30 + _MOST_NAME))
    return False


def detect_kind(content: bytes, name: str) -> FileKind:
    """Return the kind of a file; raise LoadError if irviz does not read this kind."""
    named = _named_kind(name)
    if not content.removeprefix(BOM_UTF8).strip():
        raise LoadError(f"{_wrong(name)}: it is empty; give {READABLE}")
    if holds_session(content):
        return FileKind.SESSION
    if content[4:8] == b"TFL3":
        return FileKind.TFLITE
    if words := _other_kind(content, name):
        raise LoadError(f"{name!r} {words}")
    if content.startswith(ZIP_STARTS):
        return FileKind.PT2
    if named is FileKind.ONNX or _ONNX.match(content):
        return FileKind.ONNX
    if named in _WRITTEN_BY:
        raise LoadError(f"{_wrong(name)}: {_WRITTEN_BY[named]}")
    return _text_kind(decode_text(content, name), named)


def _text_kind(text: str, named: FileKind | None) -> FileKind:
    if text.lstrip()[:1] != "{":
        return named or FileKind.SCRIPT
    if '"root_index"' in text:
        return FileKind.JSON
    if '"nbformat"' in text:
        return FileKind.NOTEBOOK
    return named or FileKind.JSON


def _other_kind(content: bytes, name: str) -> str:
    """Return what is said of a file of a kind that holds no module, "" for other files."""
    start = content[:_MOST_START]
    known = (said for begin, said in _SIGNATURES.items() if re.match(begin, start, re.DOTALL))
    words = next(known, "")
    if words and (kernels := _kernels(content)):
        return f"is compiled by TVM, has the kernels {brief(kernels)}, {_NO_MODULE_IN}"
    suffix = Path(name).suffix.lower()
    if suffix == ".pb" and _ONNX.match(content):  # as ONNX's own tests are called
        return words
    return words or _FOREIGN.get(suffix, "")


def _kernels(content: bytes) -> list[str]:
    """Return the functions that a library has for TVM, by the names of its symbols.

    TVM exports a library as a shared object, or as the archive of the objects that it is linked of.
    """
    if content.startswith(b"\x1f\x8b"):
        with contextlib.suppress(zlib.error):
            content = zlib.decompressobj(zlib.MAX_WBITS + 16).decompress(content, _MOST_SYMBOLS)
    return sorted({name.decode() for name in _KERNEL.findall(content, 0, _MOST_SYMBOLS)})


def decode_text(content: bytes, name: str) -> str:
    """Return a file's text; raise LoadError if it is not text in UTF-8."""
    at = content.find(b"\0")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        at = failure.start
    if at < 0:
        return text
    raise LoadError(
        f"{_wrong(name)}: it is not text in UTF-8, as byte {at:,} is {content[at]:#04x}; give "
        f"{READABLE}"
    )


def _named_kind(name: str) -> FileKind | None:
    suffix = Path(name).suffix.lower()
    return next((kind for kind in FileKind if kind.suffix == suffix), None)


def _wrong(name: str) -> str:
    kind = _named_kind(name)
    return f"{name!r} is {f'not {kind.title}' if kind else 'not a kind of file that irviz reads'}"


# --- Read a file or a model ----------------------------------------------------------------------


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
    """Load a module from the path of a file or from a model, with the arguments of `irviz.load`.

    Files are read in the worker, and nothing in them is run. Raises LoadError if no module can be
    loaded.
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
    model = FileKind.PT2.suffix, FileKind.ONNX.suffix, FileKind.TFLITE.suffix
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
    name = str((function.attrs or {}).get("global_symbol", "main"))
    public = function.with_attr("global_symbol", name)
    return Loaded(ir.IRModule({ir.GlobalVar(name): public}), function=name)


def _type_name(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _origin(packed: Any) -> Origin:
    """Return the origin of a file that the worker has read."""
    if "variables" in packed:
        from irviz.loaders.models.onnx_models import OnnxOrigin

        return responses.convert(packed, OnnxOrigin)
    from irviz.loaders.models.pt2_models import Pt2Origin

    return responses.convert(packed, Pt2Origin)


responses.register(Origin, vars, _origin)


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
    with limits_for(size, kind.memory_ratio):
        return _read(content, kind, file, name, path, missing)


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
        if kind is FileKind.TFLITE:
            from irviz.loaders.models.tflite_models import from_tflite_file

            return from_tflite_file(content)
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
