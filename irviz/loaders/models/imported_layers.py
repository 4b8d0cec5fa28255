"""Which layer of a model each binding of an imported function comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tvm import ir, relax

from irviz.ir.node_ids import identify
from irviz.model.graph.graph import NodeId
from irviz.model.graph.infer_layers import LayersByNode
from irviz.model.graph.layers import Layer, LayerPart, layer_of_modules

if TYPE_CHECKING:
    import onnx
    from torch.fx import Node


def torch_layers(mod: ir.IRModule, values: Mapping[Node, Any]) -> LayersByNode:
    """Return the layers of the bindings of a module that was imported from an exported program.

    `values` has what each node of the program's graph became.
    """
    found = []
    for node, value in values.items():
        modules = (node.meta.get("nn_module_stack") or {}).values()
        layer = layer_of_modules((name, _class_name(kind)) for name, kind in modules)
        found += [(layer, one) for one in _results(value) if node.op != "placeholder"]
    return layers_of_bindings(mod["main"], found)


def onnx_layers(
    mod: ir.IRModule, graph: onnx.GraphProto, values: Mapping[str, Any]
) -> LayersByNode:
    """Return the layers of the bindings of a module that was imported from ONNX.

    `values` has what each of the graph's values became.
    """
    found = [
        (layer, one)
        for node in graph.node
        if (layer := _onnx_layer(node)) is not None
        for output in node.output
        for one in _results(values.get(output))
    ]
    return layers_of_bindings(mod["main"], found)


def layers_of_bindings(
    function: relax.Function, results: Iterable[tuple[Layer, ir.Expr]]
) -> LayersByNode:
    """Return the layers of bindings, from the results of each layer: variables, or their values.

    The bindings between two results belong to the second one.
    """
    ids = {str(var.name): node_id for var, node_id in identify(function).items()}
    bound = [one for block in function.body.blocks for one in block.bindings]
    places: dict[str | int, int] = {}
    for index, binding in enumerate(bound):
        places[str(binding.var.name)] = index
        places.setdefault(binding.value.__chandle__(), index)
    ends: dict[int, Layer] = {}
    for layer, result in results:
        key = str(result.name) if isinstance(result, relax.Var) else result.__chandle__()
        if key in places:
            ends.setdefault(places[key], layer)
    found: dict[NodeId, tuple[Layer, ...]] = {}
    start = 0
    for end, layer in sorted(ends.items()):
        for binding in bound[start : end + 1]:
            found[ids[str(binding.var.name)]] = (layer,)
        start = end + 1
    return found if any(ends.values()) else {}


def _results(value: Any) -> list[ir.Expr]:
    """Return the expressions in what a node became, those in tuples too."""
    if isinstance(value, list | tuple):
        return [one for part in value for one in _results(part)]
    if isinstance(value, ir.Tuple):
        return [value, *_results(list(value.fields))]
    return [value] if isinstance(value, ir.Expr) else []


def _class_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else str(getattr(kind, "__name__", ""))


def _onnx_layer(node: onnx.NodeProto) -> Layer | None:
    """Return the layer of a node of ONNX: torch notes it beside the node or in its name.

    None for a node that an optimiser of the graph has made.
    """
    noted = {each.key: each.value for each in node.metadata_props}
    scopes = _texts(noted.get("pkg.torch.onnx.name_scopes", ""))
    kinds = _texts(noted.get("pkg.torch.onnx.class_hierarchy", ""))
    if scopes and len(scopes) == len(kinds):
        return layer_of_modules(list(zip(scopes, kinds, strict=True))[:-1])  # without the operator
    if "/" not in node.name:
        return None
    parts: list[LayerPart] = []
    around = ""
    for name in node.name.strip("/").split("/")[:-1]:
        own = name.removeprefix(f"{around}.")  # such as layer1/layer1.0/conv1
        parts.append(LayerPart(re.sub(r"_\d+$", "", own)))
        around = name
    return tuple(parts)


def _texts(text: str) -> list[str]:
    """Return the strings of a list that is written as Python does."""
    return re.findall(r"'([^']*)'", text)
