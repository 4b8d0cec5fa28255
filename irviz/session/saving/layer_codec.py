"""Encode the layers of bindings as JSON: a list of all layers, and indices into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irviz.loaders.file_errors import brief
from irviz.model.graph.graph import NodeId
from irviz.model.graph.infer_layers import LayersByNode
from irviz.model.graph.layers import Layer, LayerPart
from irviz.session.saving.value_codec import EncodingError


def encode_layers(layers: Mapping[str, LayersByNode]) -> dict[str, object]:
    """Return the layers of bindings, by function, as JSON."""
    numbers: dict[Layer, int] = {}
    functions = {
        function: {
            node: [numbers.setdefault(layer, len(numbers)) for layer in served]
            for node, served in nodes.items()
        }
        for function, nodes in layers.items()
    }
    return {"layers": list(numbers), "functions": functions}


def decode_layers(data: object) -> dict[str, LayersByNode]:
    """Reverse `encode_layers`; raise EncodingError for other data."""
    match data:
        case {"layers": list() as rows, "functions": dict() as functions}:
            layers = [_layer(row) for row in rows]
            return {function: _nodes(nodes, layers) for function, nodes in functions.items()}
    raise EncodingError(f"{brief(data)} is not the layers of a model")


def _layer(row: Any) -> Layer:
    match row:
        case list() if all(_is_part(part) for part in row):
            return tuple(LayerPart(*part) for part in row)
    raise EncodingError(f"{brief(row)} is not a layer of a model")


def _is_part(part: object) -> bool:
    return isinstance(part, list) and len(part) == 2 and all(isinstance(n, str) for n in part)


def _nodes(nodes: Any, layers: list[Layer]) -> LayersByNode:
    found: dict[NodeId, tuple[Layer, ...]] = {}
    if not isinstance(nodes, dict):
        raise EncodingError(f"{brief(nodes)} is not the layers of a function's nodes")
    for node, numbers in nodes.items():
        is_list = isinstance(numbers, list) and all(type(n) is int for n in numbers)
        if not is_list or not all(0 <= n < len(layers) for n in numbers):
            raise EncodingError(f"{brief(numbers)} are not the layers of the node {brief(node)}")
        found[NodeId(node)] = tuple(layers[n] for n in numbers)
    return found
