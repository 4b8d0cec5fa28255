"""Detect the kind of a file from its content, and from its name where that is ambiguous."""

from __future__ import annotations

import re
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
_SIGNATURES = {
    re.compile(signature, re.DOTALL): words
    for signature, words in {
        rb".{4}\0{4}\{": f"is .safetensors, {_WEIGHTS}",
        rb"\x80[\0-\x05]": _PICKLE,
        rb"\x89HDF": f"is HDF5, which holds arrays: {_CONVERT}",
        rb"GGUF": f"is GGUF, {_WEIGHTS}",
        rb"\x93NUMPY": "is an array: give it as params or inputs, beside a module",
        rb"PK\x03\x04.{22}.{4}[^/]{1,200}\.npy": (
            "is an .npz, which holds arrays: give it as params= or inputs=, beside a module"
        ),
        rb"PK\x03\x04.{26}(?:metadata\.json|config\.json|model\.weights\.h5)": (
            f"is a Keras model: {_ONNX_BY_TF}"
        ),
        rb"\x7fELF|MZ[^\n]{0,60}\0|[\xce\xcf]\xfa\xed\xfe|\xca\xfe\xba\xbe|!<arch>\n": COMPILED,
        rb".{4}TFL3": (
            "is TensorFlow Lite: import it with tvm.relax.frontend.tflite.from_tflite, and give "
            "the IRModule"
        ),
        rb"\x1f\x8b|BZh|\xfd7zXZ\0|\x28\xb5\x2f\xfd": (
            "is compressed: unpack it, and give the model that is in it"
        ),
        rb".{257}ustar": (
            "is a tar archive: unpack it, and give the model that is in it; if TVM has exported "
            "it as a library, give the module that was built"
        ),
        rb"\x89PNG|\xff\xd8\xff|GIF8|RIFF.{4}WEBP": _IMAGE,
        rb"%PDF": "is a PDF: give a model",
    }.items()
}
_FOREIGN = {
    ".pb": f"is a graph of TensorFlow: {_ONNX_BY_TF}",
    ".mlmodel": f"is a Core ML model: {_CONVERT}",
    ".mlir": (
        "is MLIR: import StableHLO with tvm.relax.frontend.stablehlo.from_stablehlo, and give the "
        "IRModule"
    ),
    ".ll": COMPILED,
    ".bc": COMPILED,
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
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return holds_session(file.read(30 + _MOST_NAME))


def detect_kind(content: bytes, name: str) -> FileKind:
    """Return the kind of a file; raise LoadError if irviz does not read this kind."""
    named = _named_kind(name)
    if not content.strip():
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
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        raise LoadError(
            f"{_wrong(name)}: it is not text in UTF-8, as byte {failure.start:,} is "
            f"{content[failure.start]:#04x}; give {READABLE}"
        ) from None


def _named_kind(name: str) -> FileKind | None:
    suffix = Path(name).suffix.lower()
    return next((kind for kind in FileKind if kind.suffix == suffix), None)


def _wrong(name: str) -> str:
    kind = _named_kind(name)
    return f"{name!r} is {f'not {kind.title}' if kind else 'not a kind of file that irviz reads'}"
