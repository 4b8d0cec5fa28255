"""A file's bytes, and what kind of file they say it is."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from irviz.loaders.loaded import LoadError

MOST_BYTES = 1 << 31
"""Files that are larger are not read."""

TAKEN = (
    "TVMScript (.py), a notebook (.ipynb), TVM's JSON (.json), a torch.export program (.pt2) or "
    "ONNX (.onnx)"
)


class Kind(Enum):
    """What a file holds."""

    JSON = "TVM's JSON"
    NOTEBOOK = "a notebook"
    SCRIPT = "TVMScript"
    PT2 = "a torch.export program"
    ONNX = "an ONNX model"


_SUFFIXES = {
    ".json": Kind.JSON,
    ".ipynb": Kind.NOTEBOOK,
    ".py": Kind.SCRIPT,
    ".pt2": Kind.PT2,
    ".onnx": Kind.ONNX,
}
# What people have that holds no graph, or one that only running it would tell.
_OTHERS = {
    b"\x80": (
        "is a pickle, which may run anything as it is read and was not read: save the model with "
        "torch.export.save(torch.export.export(model, inputs), 'model.pt2')"
    ),
    b"\x89HDF": "is HDF5, which holds arrays: give the model itself, as ONNX or .pt2",
    b"GGUF": "is GGUF, which holds weights and no graph: give the model itself, as ONNX or .pt2",
    b"\x93NUMPY": "is an array: give it as params or inputs, beside a module",
    b"\x7fELF": "is compiled, and no IRModule can be read from it: give the module it is made of",
}


def content_of(path: Path) -> bytes:
    """Return the bytes of a file; raise LoadError for what is none, or too large."""
    name = str(path)
    try:
        if path.is_dir():
            raise LoadError(f"{name!r} is a directory: name a file in it")
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise LoadError(f"{name!r} is no regular file: name one")
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise LoadError(
                f"{name!r} has {size:,} bytes, and at most {MOST_BYTES:,} are read: give a smaller "
                "one"
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise LoadError(f"there is no file {name!r}: check the name") from None
    except OSError as failure:
        raise LoadError(
            f"{name!r} may not be read ({failure.strerror}): check its name and permissions"
        ) from None
    except ValueError as failure:
        if isinstance(failure, LoadError):
            raise
        raise LoadError(f"{name!r} can be no file's name ({failure}): check it") from None


def kind_of(content: bytes, name: str) -> Kind:
    """Return what a file holds: by its bytes and, where those leave it open, by its name.

    Raises LoadError for what is none of the kinds.
    """
    named = _SUFFIXES.get(Path(name).suffix.lower())
    if not content.strip():
        raise LoadError(f"{name!r} is {_no(named)}: it is empty; give {TAKEN}")
    for start, words in _OTHERS.items():
        if content.startswith(start):
            raise LoadError(f"{name!r} {words}")
    if content.startswith(b"PK\x03\x04"):
        return Kind.PT2
    # ONNX has no mark of its own: it begins with its version, a field and a number below 32.
    if named is Kind.ONNX or (content[:1] == b"\x08" and content[1:2] < b"\x20"):
        return Kind.ONNX
    if named is Kind.PT2:
        raise LoadError(
            f"{name!r} is {_no(named)}: it is no zip archive; write one with "
            "torch.export.save(torch.export.export(model, inputs), path)"
        )
    return _kind_of_text(text_of(content, name), named)


def text_of(content: bytes, name: str) -> str:
    """Return a file's text; raise LoadError where it is none."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        named = _SUFFIXES.get(Path(name).suffix.lower())
        raise LoadError(
            f"{name!r} is {_no(named)}: it is no text in UTF-8, as byte {failure.start:,} is "
            f"{content[failure.start]:#04x}; give {TAKEN}"
        ) from None


def _kind_of_text(text: str, named: Kind | None) -> Kind:
    if text.lstrip()[:1] != "{":
        return named or Kind.SCRIPT
    if '"root_index"' in text:
        return Kind.JSON
    if '"nbformat"' in text:
        return Kind.NOTEBOOK
    return named or Kind.JSON


def _no(kind: Kind | None) -> str:
    return f"not {kind.value}" if kind else "none of the files that are read"
