"""Read ONNX files, with external weights from the same folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from irviz.loaders.file_errors import FileError, brief, file_errors
from irviz.loaders.file_limits import MAX_BYTES, file_size

if TYPE_CHECKING:
    import onnx

_AGAIN = "save it again with onnx.save(model, path)"
NEEDED = "it needs ONNX: install irviz[onnx], as in pip install 'irviz[onnx]'"


def read_model(content: bytes, path: Path | None) -> onnx.ModelProto:
    """Return the model in an ONNX file with its external weights; raise LoadError for others."""
    model = _model(content)
    if locations := external_locations(model):
        _load_external_weights(model, locations, path and path.parent)
    return inlined(model)


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with calls of its own functions replaced by their nodes."""
    if not model.functions:
        return model
    from onnx.inliner import inline_local_functions

    try:
        return inline_local_functions(model, convert_version=True)
    except Exception:  # of a version that cannot be converted: the importer names the call
        return model


def external_bytes(content: bytes, folder: Path | None) -> int:
    """Return the size of the files with a model's external weights; raise LoadError as above."""
    return sum(map(file_size, _places(external_locations(_model(content)), folder)))


def _model(content: bytes) -> onnx.ModelProto:
    """Return the model in a file, without its external weights."""
    try:
        import onnx
    except ImportError:
        raise FileError(f"is an ONNX model: {NEEDED}") from None
    with file_errors("is not a complete ONNX model", _AGAIN):
        model = onnx.load_model_from_string(content)
    if not model.graph.node and not model.graph.output:
        raise FileError(
            "is not an ONNX model: it has no graph; write one with onnx.save(model, path)"
        )
    return model


def external_locations(model: onnx.ModelProto) -> list[str]:
    """Return the locations of external weights."""
    return sorted({each for tensor in _tensors(model.graph) for each in _locations(tensor)})


def _load_external_weights(
    model: onnx.ModelProto, locations: list[str], folder: Path | None
) -> None:
    """Read weights from other files, which must be in the model's folder."""
    from onnx.external_data_helper import load_external_data_for_model

    total = sum(map(file_size, _places(locations, folder)))
    if total > MAX_BYTES:
        raise FileError(
            f"has weights of {total:,} bytes in {_brief(locations)}, and at most {MAX_BYTES:,} "
            "are read: give a smaller model"
        )
    damaged = f"has weights that cannot be read from {_brief(locations)}"
    with file_errors(damaged, _AGAIN):
        load_external_data_for_model(model, str(folder))


def _places(locations: list[str], folder: Path | None) -> list[Path]:
    """Return the files at these locations; raise FileError unless they are in the folder."""
    if not locations:
        return []
    if folder is None:
        raise FileError(f"keeps weights in other files ({_brief(locations)}): open it by its path")
    home = folder.resolve()
    places = []
    for location in locations:
        if "\0" in location:
            raise FileError(
                f"wants weights from {brief(location)}, which is not a file name: {_AGAIN}"
            )
        parts = {*PurePosixPath(location).parts, *PureWindowsPath(location).parts}
        is_absolute = PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor
        place = home / location
        if is_absolute or ".." in parts or not place.resolve().is_relative_to(home):
            raise FileError(
                f"wants weights from {brief(location)}, which is not in its folder, so they were "
                f"not read: {_AGAIN}"
            )
        if not place.is_file():
            raise FileError(
                f"wants weights from {brief(location)}, and its folder has no such file"
            )
        places.append(place)
    return places


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


def _brief(locations: list[str]) -> str:
    first, *more = locations
    return f"{brief(first)} and {len(more)} more" if more else brief(first)
