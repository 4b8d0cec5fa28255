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


# Common files without a graph, or with a graph that only running them would show.
COMPILED = (
    "is compiled, and no IRModule can be read from it: give the module it is made of, or record "
    "its build with irviz.record()"
)
_UNREADABLE = {
    b"\x80": (
        "is a pickle, which may run anything as it is read and was not read: save the model with "
        "torch.export.save(torch.export.export(model, inputs), 'model.pt2')"
    ),
    b"\x89HDF": "is HDF5, which holds arrays: give the model itself, as ONNX or .pt2",
    b"GGUF": "is GGUF, which holds weights and no graph: give the model itself, as ONNX or .pt2",
    b"\x93NUMPY": "is an array: give it as params or inputs, beside a module",
    b"\x7fELF": COMPILED,
}


_WRITTEN_BY = {
    FileKind.PT2: "write one with torch.export.save(torch.export.export(model, inputs), path)",
    FileKind.SESSION: "write one with session.save(path)",
}
_ZIP = b"PK\x03\x04"
SESSION_ENTRY = re.compile(r"index\.json|objects\.json|arrays/(?:0|[1-9][0-9]{0,8})\.npy")
"""The names of the entries of a saved session, which is a zip archive as a .pt2 file is."""
_MOST_NAME = 30


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
    for start, reason in _UNREADABLE.items():
        if content.startswith(start):
            raise LoadError(f"{name!r} {reason}")
    if content.startswith(_ZIP):
        return FileKind.SESSION if holds_session(content) else FileKind.PT2
    # ONNX has no signature of its own: it begins with its version, a field and a number below 32.
    if named is FileKind.ONNX or (content[:1] == b"\x08" and content[1:2] < b"\x20"):
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
