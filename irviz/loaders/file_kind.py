"""Detect the kind of a file from its content, and from its name where that is ambiguous."""

from __future__ import annotations

import contextlib
import re
from codecs import BOM_UTF8
from enum import Enum
from pathlib import Path

from irviz.errors import LoadError

READABLE = (
    "TVMScript (.py), a notebook (.ipynb), TVM's JSON (.json), a torch.export program (.pt2), "
    "ONNX (.onnx) or a saved session (.irviz)"
)


class FileKind(Enum):
    """A kind of file that holds modules: the suffix of its name, and its title in errors."""

    JSON = ".json", "TVM's JSON"
    NOTEBOOK = ".ipynb", "a notebook"
    SCRIPT = ".py", "TVMScript"
    PT2 = ".pt2", "a torch.export program"
    ONNX = ".onnx", "an ONNX model"
    SESSION = ".irviz", "a saved session"

    def __init__(self, suffix: str, title: str) -> None:
        self.suffix, self.title = suffix, title


# What is said of common files that hold no graph, or one that only running them would show.
COMPILED = (
    "is compiled, and no IRModule can be read from it: give the module it is made of, or record "
    "its build with irviz.record()"
)
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
    re.compile(signature, re.DOTALL): words
    for signature, words in {
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
        rb".{2}\0\0TFL3": (
            "is TensorFlow Lite: import it with tvm.relax.frontend.tflite.from_tflite, and give "
            "the IRModule"
        ),
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
    }.items()
}
_FOREIGN = {
    ".pb": f"is a graph of TensorFlow: {_ONNX_BY_TF}",
    ".pbtxt": f"is a graph of TensorFlow: {_ONNX_BY_TF}",
    ".mlmodel": f"is a Core ML model: {_CONVERT}",
    ".mlir": _MLIR,
    ".nnef": f"is NNEF: {_CONVERT}",
    ".pdmodel": "is a Paddle model: convert it to ONNX with paddle2onnx",
    ".prototxt": f"is a Caffe model: {_CONVERT}",
    ".caffemodel": f"is a Caffe model: {_CONVERT}",
    **dict.fromkeys((".ll", ".bc", ".c", ".cu", ".ptx", ".cl", ".metal"), COMPILED),
}
"""What is said of files that only their suffix tells apart."""

_WRITTEN_BY = {
    FileKind.PT2: "write one with torch.export.save(torch.export.export(model, inputs), path)",
    FileKind.SESSION: "write one with session.save(path)",
}
_ZIP = b"PK\x03\x04"
SESSION_ENTRY = re.compile(r"index\.json|objects\.json|arrays/(?:0|[1-9][0-9]{0,8})\.npy")
"""The names of the entries of a saved session, which is a zip archive as a .pt2 file is."""
_MOST_NAME, _MOST_START = 30, 1000
_ONNX = re.compile(rb"\x08[\2-\x1f]")
"""ONNX has no signature of its own: it begins with its version, a field and a number. Models that
TensorFlow has saved have 1 there."""


def holds_session(content: bytes) -> bool:
    """Return whether a file that begins so is a saved session, by the name of its first entry."""
    size = int.from_bytes(content[26:28], "little")
    name = content[30 : 30 + min(size, _MOST_NAME)].decode("ascii", "replace")
    return content.startswith(_ZIP) and SESSION_ENTRY.fullmatch(name) is not None


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
    if words := _other_kind(content, name):
        raise LoadError(f"{name!r} {words}")
    if content.startswith(_ZIP):
        return FileKind.PT2
    if named is FileKind.ONNX or _ONNX.match(content):
        return FileKind.ONNX
    if named in _WRITTEN_BY:
        raise LoadError(f"{_wrong(name)}: it is not a zip archive; {_WRITTEN_BY[named]}")
    text = decode_text(content, name)
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
    words = next((said for begins, said in _SIGNATURES.items() if begins.match(start)), "")
    suffix = Path(name).suffix.lower()
    if suffix == ".pb" and _ONNX.match(content):  # as ONNX's own tests are called
        return words
    return words or _FOREIGN.get(suffix, "")


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
