"""Load ONNX models."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from irviz.errors import LoadError
from irviz.loaders.loaded import Loaded, detach_weights
from irviz.loaders.reading import FileError, file_errors, one_line
from irviz.loaders.trial import read_model

if TYPE_CHECKING:
    import onnx

NEEDED = "it needs ONNX: install irviz[onnx], as in pip install 'irviz[onnx]'"


def from_onnx_file(content: bytes, name: str, folder: Path | None) -> Loaded:
    """Return the model in an ONNX file, which the worker reads; raise LoadError for others.

    External weights are read from `folder` and from nowhere else.
    """
    return read_model(name, _read_file, content, folder)


def from_model(model: onnx.ModelProto) -> Loaded:
    """Return an ONNX model as TVM imports it, with its weights as parameters.

    Raises LoadError if TVM cannot import it.
    """
    from tvm.relax.frontend.onnx import from_onnx

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # by onnx's checker and by the importer
        try:
            mod = from_onnx(model, keep_params_in_input=True)
        except Exception as failure:  # the importer raises errors of any class
            words = one_line(failure)
            raise LoadError(f"the ONNX model cannot be imported by TVM: {words}") from failure
    return Loaded(*detach_weights(mod))


def _read_file(content: bytes, folder: Path | None) -> Loaded:
    """Read the content of a file; runs in the worker."""
    try:
        import onnx
    except ImportError:
        raise FileError(f"is an ONNX model: {NEEDED}") from None
    with file_errors("is not a complete ONNX model", "write it again with onnx.save(model, path)"):
        model = onnx.load_model_from_string(content)
    if not model.graph.node and not model.graph.output:
        raise FileError(
            "is not an ONNX model: it has no graph; write one with onnx.save(model, path)"
        )
    locations = {location for tensor in _tensors(model.graph) for location in _locations(tensor)}
    if locations:
        _load_external_weights(model, locations, folder)
    return from_model(model)


def _load_external_weights(
    model: onnx.ModelProto, locations: set[str], folder: Path | None
) -> None:
    """Read weights from other files, which must be in the model's folder."""
    from onnx.external_data_helper import load_external_data_for_model

    if folder is None:
        raise FileError(f"keeps weights in other files ({_brief(locations)}): open it by its path")
    home = folder.resolve()
    for location in sorted(locations):
        parts = {*PurePosixPath(location).parts, *PureWindowsPath(location).parts}
        is_absolute = PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor
        place = home / location
        if is_absolute or ".." in parts or not place.resolve().is_relative_to(home):
            raise FileError(
                f"wants weights from {location!r}, which is not in its folder, so they were not "
                "read: save it again with onnx.save(model, path)"
            )
        if not place.is_file():
            raise FileError(f"wants weights from {location!r}, and its folder has no such file")
    damaged = f"has weights that cannot be read from {_brief(locations)}"
    with file_errors(damaged, "save it again with onnx.save(model, path)"):
        load_external_data_for_model(model, str(home))


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor of a graph, and of the graphs inside its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from attribute.tensors
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)
            for inner in attribute.graphs:
                yield from _tensors(inner)


def _locations(tensor: onnx.TensorProto) -> Iterator[str]:
    if tensor.data_location == tensor.EXTERNAL:
        known: dict[str, Any] = {entry.key: entry.value for entry in tensor.external_data}
        yield str(known.get("location", ""))


def _brief(locations: set[str]) -> str:
    first, *more = sorted(locations)
    return f"{first!r} and {len(more)} more" if more else repr(first)
