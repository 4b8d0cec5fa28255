"""Read what a file contains, in the worker: its module, its weights and its example inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irviz.errors import LoadError
from irviz.loaders.file_errors import FileError
from irviz.loaders.file_kind import READABLE, FileKind, decode_text, detect_kind
from irviz.loaders.file_limits import check_result, memory_for, read_file
from irviz.loaders.loaded_model import Loaded, Missing
from irviz.loaders.tvm_json import MEMORY_RATIO, module_from_json
from irviz.loaders.tvmscript.syntax_tree import RefusedError
from irviz.model.runs.origin import Origin
from irviz.worker import answers

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
    content: bytes,
    file: str,
    name: str = "",
    path: Path | None = None,
    missing: Missing = "error",
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
        raise LoadError(f"{file!r}: {failure}") from failure
    text = decode_text(content, file)
    if kind is FileKind.JSON:
        return Loaded(module_from_json(text, file))
    return _read_python(text, file, name, kind)


def _read_python(text: str, file: str, name: str, kind: FileKind) -> Loaded:
    from irviz.loaders.python_file import from_python, python_of_notebook

    title = repr(file)
    if kind is FileKind.NOTEBOOK:
        text, title = python_of_notebook(text, title), f"{title} (its cells as one text)"
    try:
        return from_python(text, title, name)
    except RefusedError as refusal:
        is_guess = kind is FileKind.SCRIPT and not file.endswith(".py")
        if is_guess and refusal.reason.startswith("this is not Python"):
            raise LoadError(
                f"{title} is not a kind of file that irviz reads: give {READABLE}"
            ) from refusal
        raise
