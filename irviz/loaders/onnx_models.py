"""ONNX -> IRModule and weights."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from irviz.loaders.loaded import Loaded, LoadError, weights_aside
from irviz.worker.pool import TRIES, WorkerError

if TYPE_CHECKING:
    import onnx

NEEDED = "ONNX is needed for it: install irviz[onnx], as in pip install 'irviz[onnx]'"
SECONDS = 300.0
"""How long a file may take to be read."""
MEMORY = 8 << 30


def from_onnx_file(content: bytes, name: str, folder: Path | None) -> Loaded:
    """Return the model in an ONNX file of this name, read by another process.

    Weights in files of their own are read from `folder`, and from nowhere else. Raises LoadError.
    """
    try:
        return TRIES.call(_read, content, folder, seconds=SECONDS, memory=MEMORY)
    except LoadError as failure:
        raise LoadError(f"{name!r} {failure}") from failure
    except WorkerError as failure:
        raise LoadError(f"{name!r} could not be read: {failure}") from failure


def from_model(model: onnx.ModelProto) -> Loaded:
    """Return an ONNX model as TVM imports it, with its weights as parameters.

    Raises LoadError for what TVM cannot import.
    """
    from tvm.relax.frontend.onnx import from_onnx

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # of what onnx's own checker finds, and of the importer's
        try:
            mod = from_onnx(model, keep_params_in_input=True)
        except Exception as failure:  # whatever the importer throws
            words = " ".join(str(failure).split())[:500] or type(failure).__name__
            raise LoadError(f"is ONNX that TVM cannot import: {words}") from failure
    return Loaded(*weights_aside(mod))


def _read(content: bytes, folder: Path | None) -> Loaded:
    """Read a file's content; the worker calls this."""
    try:
        import onnx
    except ImportError:
        raise LoadError(f"is an ONNX model: {NEEDED}") from None
    try:
        model = onnx.load_model_from_string(content)
    except Exception as failure:  # protobuf has errors of its own
        raise LoadError(
            f"is no whole ONNX model ({' '.join(str(failure).split())}): write it again with "
            "onnx.save(model, path)"
        ) from failure
    if not model.graph.node and not model.graph.output:
        raise LoadError("is no ONNX model: it has no graph; write one with onnx.save(model, path)")
    outside = {location for tensor in _tensors(model.graph) for location in _locations(tensor)}
    if outside:
        _load_beside(model, outside, folder)
    return from_model(model)


def _load_beside(model: onnx.ModelProto, locations: set[str], folder: Path | None) -> None:
    """Read the weights that are in files of their own, which must lie beside the model."""
    from onnx.external_data_helper import load_external_data_for_model

    if folder is None:
        raise LoadError(
            f"keeps weights in files of their own ({_brief(locations)}): open it by its path"
        )
    home = folder.resolve()
    for location in sorted(locations):
        parts = {*PurePosixPath(location).parts, *PureWindowsPath(location).parts}
        rooted = PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor
        place = home / location
        if rooted or ".." in parts or not place.resolve().is_relative_to(home):
            raise LoadError(
                f"wants weights from {location!r}, which is not beside it, so they were not read: "
                "save it again with onnx.save(model, path)"
            )
        if not place.is_file():
            raise LoadError(f"wants weights from {location!r}, and there is no such file beside it")
    try:
        load_external_data_for_model(model, str(home))
    except Exception as failure:  # sizes that do not fit, a link, a file that may not be read
        words = " ".join(str(failure).split())
        raise LoadError(f"has weights that cannot be read from {_brief(locations)}: {words}") from (
            failure
        )


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor of a graph, also those of the graphs that its nodes hold."""
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
