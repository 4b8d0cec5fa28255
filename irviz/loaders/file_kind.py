"""Detect what kind of file some bytes are, by their content first and by the name second."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from irviz.errors import LoadError

READABLE = (
    "TVMScript (.py), a notebook (.ipynb), TVM's JSON (.json), a torch.export program (.pt2) or "
    "ONNX (.onnx)"
)


class FileKind(Enum):
    """A kind of file that holds a module."""

    JSON = "TVM's JSON"
    NOTEBOOK = "a notebook"
    SCRIPT = "TVMScript"
    PT2 = "a torch.export program"
    ONNX = "an ONNX model"


_SUFFIXES = {
    ".json": FileKind.JSON,
    ".ipynb": FileKind.NOTEBOOK,
    ".py": FileKind.SCRIPT,
    ".pt2": FileKind.PT2,
    ".onnx": FileKind.ONNX,
}
# Common files without a graph, or with a graph that only running them would show.
_UNREADABLE = {
    b"\x80": (
        "is a pickle, which may run anything as it is read and was not read: save the model with "
        "torch.export.save(torch.export.export(model, inputs), 'model.pt2')"
    ),
    b"\x89HDF": "is HDF5, which holds arrays: give the model itself, as ONNX or .pt2",
    b"GGUF": "is GGUF, which holds weights and no graph: give the model itself, as ONNX or .pt2",
    b"\x93NUMPY": "is an array: give it as params or inputs, beside a module",
    b"\x7fELF": "is compiled, and no IRModule can be read from it: give the module it is made of",
}


def detect_kind(content: bytes, name: str) -> FileKind:
    """Return the kind of a file; raise LoadError if irviz reads no such file."""
    named = _SUFFIXES.get(Path(name).suffix.lower())
    if not content.strip():
        raise LoadError(f"{name!r} is {_not_a(named)}: it is empty; give {READABLE}")
    for start, reason in _UNREADABLE.items():
        if content.startswith(start):
            raise LoadError(f"{name!r} {reason}")
    if content.startswith(b"PK\x03\x04"):
        return FileKind.PT2
    # ONNX has no signature of its own: it begins with its version, a field and a number below 32.
    if named is FileKind.ONNX or (content[:1] == b"\x08" and content[1:2] < b"\x20"):
        return FileKind.ONNX
    if named is FileKind.PT2:
        raise LoadError(
            f"{name!r} is {_not_a(named)}: it is not a zip archive; write one with "
            "torch.export.save(torch.export.export(model, inputs), path)"
        )
    text = decode_text(content, name)
    if text.lstrip()[:1] != "{":
        return named or FileKind.SCRIPT
    if '"root_index"' in text:
        return FileKind.JSON
    if '"nbformat"' in text:
        return FileKind.NOTEBOOK
    return named or FileKind.JSON


def decode_text(content: bytes, name: str) -> str:
    """Return a file's text; raise LoadError if it is not text in UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        named = _SUFFIXES.get(Path(name).suffix.lower())
        raise LoadError(
            f"{name!r} is {_not_a(named)}: it is not text in UTF-8, as byte {failure.start:,} is "
            f"{content[failure.start]:#04x}; give {READABLE}"
        ) from None


def _not_a(kind: FileKind | None) -> str:
    return f"not {kind.value}" if kind else "none of the files that are read"
