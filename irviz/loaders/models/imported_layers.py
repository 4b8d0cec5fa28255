"""Which layer of a model each binding of an imported function comes from.

The layers are kept, so that a recording that starts from an imported module has them too.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tvm import ir, relax

from irviz.ir.module_functions import relax_functions
from irviz.ir.node_ids import definitions, identify
from irviz.model.graph.graph import Layer, LayerPart, NodeId
from irviz.model.graph.layers import LayersByNode, layer_of_modules

if TYPE_CHECKING:
    import onnx
    from torch.fx import Node

Layers = Mapping[str, LayersByNode]
"""The layers of nodes, by function."""
Places = Mapping[NodeId, tuple[str, int]]
"""The files and lines of nodes."""
_Origin = TypeVar("_Origin")
_FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
_IN_TORCH = re.compile(r"[/\\](site|dist)-packages[/\\]torch[/\\]")


def torch_places(mod: ir.IRModule, values: Mapping[Node, Any]) -> tuple[Layers, Places]:
    """Return the layers, and the files and lines, of what was imported from an exported program.

    `values` maps each node of the program's graph to what it was imported as. A line is that of the
    innermost call outside torch, noted when the program was exported.
    """
    layers, places = [], []
    for node, value in values.items():
        results = _results(value)
        if node.op != "placeholder":
            modules = (node.meta.get("nn_module_stack") or {}).values()
            layer = layer_of_modules(
                (name, str(getattr(kind, "__name__", kind))) for name, kind in modules
            )
            layers += [(layer, one) for one in results]
        if (place := source_place(node.meta.get("stack_trace"))) is not None:
            places += [(place, one) for one in results]
    return _layers(mod, layers), by_binding(mod["main"], places)


def described(node: Node) -> str:
    """Describe a node by what it calls, its layer and line, as in 'erfinv.default of layer mlp'."""
    words = str(getattr(node.target, "__name__", node.target))
    if words == "with_effects":  # around an operator that checks or prints something
        words = str(node.args[1])
    layers = list((node.meta.get("nn_module_stack") or {}).values())
    return words + place_words(layers, node.meta.get("stack_trace"))


def place_words(layers: Sequence[tuple[str, Any]], stack_trace: str | None) -> str:
    """Describe a node by its innermost layer, given as (name, class), and its source line."""
    words = ""
    if layers and layers[-1][0]:
        kind = str(getattr(layers[-1][1], "__name__", layers[-1][1])).rpartition(".")[2]
        words += f" of layer {layers[-1][0]} ({kind})"
    place = source_place(stack_trace)
    return words if place is None else f"{words}, {place[0]}, line {place[1]}"


def source_place(stack_trace: str | None) -> tuple[str, int] | None:
    """Return the file and line of the innermost call outside torch, or else of the innermost."""
    frames = _FRAME.findall(stack_trace or "")
    own = [one for one in frames if not _IN_TORCH.search(one[0]) and one[0][0] != "<"] or frames
    return (own[-1][0], int(own[-1][1])) if own else None


def onnx_places(
    mod: ir.IRModule, graph: onnx.GraphProto, values: Mapping[str, Any]
) -> tuple[Layers, Places]:
    """Return the layers, and the operators and names with the line 0, of what was imported.

    The last binding of a node has the name of its output as well, unless that begins with the name
    of the node. `values` maps each value of the graph to what it was imported as.
    """
    layers, found = [], []
    for node in graph.node:
        layer = _onnx_layer(node)
        for output in node.output:
            results = _results(values.get(output))
            if layer is not None:
                layers += [(layer, one) for one in results]
            is_named = bool(node.name) and not output.startswith(node.name)
            words = f"{node.op_type} {node.name or output}", output if is_named else ""
            found += [(words, one) for one in results]
    bound = definitions((), mod["main"].body)
    ids = identify(mod["main"])
    items = {
        ids[var]
        for var, binding in bound
        if isinstance(getattr(binding, "value", None), relax.TupleGetItem)
    }
    lines = {one: told for one, told in by_binding(mod["main"], found).items() if one not in items}
    last = {told: one for one, told in lines.items()}  # the result of each node is bound last
    return _layers(mod, layers), {
        one: (f"{name} → {output}" if output and last[name, output] == one else name, 0)
        for one, (name, output) in lines.items()
    }


def tflite_layers(mod: ir.IRModule, values: Mapping[str, ir.Expr]) -> Layers:
    """Return the layers of the bindings of a module that was imported from TensorFlow Lite.

    `values` maps the name of each tensor to what it was imported as. A tensor that several
    operators were fused into has their names, separated by semicolons.
    """
    found = [(_layer_of_path(name.partition(";")[0]), value) for name, value in values.items()]
    return _layers(mod, found)


def _layers(mod: ir.IRModule, results: Iterable[tuple[Layer, ir.Expr]]) -> Layers:
    """Return the layers of `main`, from the results of each layer."""
    return {"main": {one: (layer,) for one, layer in by_binding(mod["main"], results).items()}}


def by_binding(
    function: relax.Function, results: Iterable[tuple[_Origin, ir.Expr]]
) -> dict[NodeId, _Origin]:
    """Return the origin of each binding, such as its layer, from the results of each origin.

    Results are variables, or their values. The bindings between two results belong to the second
    one, apart from the items of a tuple that are no results: they belong to the tuple.
    """
    ids = {str(var.name): node_id for var, node_id in identify(function).items()}
    bound = [one for block in function.body.blocks for one in block.bindings]
    places: dict[str | int, int] = {}
    for index, binding in enumerate(bound):
        places[str(binding.var.name)] = index
        places.setdefault(binding.value.__chandle__(), index)
    ends: dict[int, _Origin] = {}
    for origin, result in results:
        key = str(result.name) if isinstance(result, relax.Var) else result.__chandle__()
        if key in places:
            ends.setdefault(places[key], origin)
    found: dict[NodeId, _Origin] = {}
    left = deque(sorted(ends))
    for index, binding in enumerate(bound):
        while left and left[0] < index:
            left.popleft()
        whole = None if index in ends else found.get(_whole_of_item(binding.value, ids))
        if whole is not None or left:
            found[ids[str(binding.var.name)]] = ends[left[0]] if whole is None else whole
    return found


def _whole_of_item(value: ir.Expr, ids: Mapping[str, NodeId]) -> NodeId:
    """Return the node of the tuple that an expression is an item of, "" for another one."""
    if isinstance(value, relax.TupleGetItem) and isinstance(value.tuple_value, ir.Var):
        return ids.get(str(value.tuple_value.name), NodeId(""))
    return NodeId("")


_MAX_REMEMBERED = 64
_remembered: OrderedDict[int, LayersByNode] = OrderedDict()
"""The layers of functions, by what these compute; the latest last."""


def remember_layers(mod: ir.IRModule, layers: Mapping[str, LayersByNode]) -> None:
    """Keep the layers of a module's functions for `known_layers`, those of the latest ones."""
    for name, found in layers.items():
        if found and name in mod:
            _remembered[_outline(mod[name])] = found
    while len(_remembered) > _MAX_REMEMBERED:
        _remembered.popitem(last=False)


def known_layers(mod: ir.IRModule) -> dict[str, LayersByNode]:
    """Return the layers of those functions that bind the same calls as one that is remembered.

    Whether weights are parameters or constants makes no difference.
    """
    if not _remembered:
        return {}
    outlines = {name: _outline(function) for name, function in relax_functions(mod).items()}
    return {name: _remembered[one] for name, one in outlines.items() if one in _remembered}


def _outline(function: relax.Function) -> int:
    """Return a number that is equal for functions with the same variables, bound to like calls."""
    outline: list[tuple[str, ...]] = []
    for var, binding in definitions((), function.body):
        value = getattr(binding, "value", None)
        called = value.op if isinstance(value, ir.Call) else None
        name = getattr(called, "name", None) or getattr(called, "name_hint", "")
        outline.append((str(var.name), type(value).__name__, str(name)))
    return hash(tuple(outline))


def _results(value: Any) -> list[ir.Expr]:
    """Return the expressions in what a node became, those in tuples too."""
    if isinstance(value, list | tuple):
        return [one for part in value for one in _results(part)]
    if isinstance(value, ir.Tuple):
        return [value, *_results(list(value.fields))]
    return [value] if isinstance(value, ir.Expr) else []


def _onnx_layer(node: onnx.NodeProto) -> Layer | None:
    """Return the layer of a node of ONNX: torch notes it beside the node or in its name.

    None for a node that an optimiser of the graph has made.
    """
    noted = {each.key: each.value for each in node.metadata_props}
    scopes = _texts(noted.get("pkg.torch.onnx.name_scopes", ""))
    kinds = _texts(noted.get("pkg.torch.onnx.class_hierarchy", ""))
    if scopes and len(scopes) == len(kinds):
        return layer_of_modules(list(zip(scopes, kinds, strict=True))[:-1])  # without the operator
    return _layer_of_path(node.name) if "/" in node.name else None


def _layer_of_path(path: str) -> Layer:
    """Return the layer of an operator from its path, such as /layer1/layer1.0/conv1/Conv."""
    parts: list[LayerPart] = []
    around = ""
    for name in path.strip("/").split("/")[:-1]:
        own = name.removeprefix(f"{around}.")  # such as layer1/layer1.0/conv1
        parts.append(LayerPart(re.sub(r"_\d+$", "", own)))
        around = name
    return tuple(parts)


def _texts(text: str) -> list[str]:
    """Return the strings of a list that is written as Python does."""
    return re.findall(r"'([^']*)'", text)
