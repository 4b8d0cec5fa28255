"""The layers of a model that nodes belong to: their names, and where unknown, inferred layers.

`model.folding.containers` makes the groups of them that are drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from string import digits

from irviz.gc_pause import gc_paused
from irviz.model.graph.graph import Graph, Layer, LayerPart, Node, NodeId, NodeKind

_TENSOR = re.compile(
    r"[._](weight|bias|scale|gamma|beta|kernel|embedding|running_(mean|var)|moving_\w+)$"
)
_NUMBERED = re.compile(r"(.+?[._]\d+)[._]")


def layer_name(layer: Sequence[LayerPart]) -> str:
    """Return the full name of a layer, such as `transformer.h.3.attn`."""
    return ".".join(part.name for part in layer)


def common_layer(layers: Iterable[Layer]) -> Layer:
    """Return the innermost layer around all of these."""
    levels = zip(*set(layers), strict=False)
    return tuple(parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, levels))


def previous_layer(layer: Layer) -> Layer:
    """Return the layer with the number before: `h.2` for `h.3`, () for a layer without a number."""
    part = layer[-1]
    name = part.name.rstrip(digits)
    number = int(part.name[len(name) :] or 0)
    return (*layer[:-1], part._replace(name=f"{name}{number - 1}")) if number else ()


def layer_of_modules(modules: Iterable[tuple[str, str]]) -> Layer:
    """Return a layer from the full names and classes of the modules around it."""
    parts: list[LayerPart] = []
    around = ""
    for name, kind in modules:
        if not name or name == around:
            continue
        own = name.removeprefix(f"{around}.") if around else name
        parts.append(LayerPart(own, kind.rpartition(".")[2]))
        around = name
    return tuple(parts)


def layer_of_parameter(name: str) -> Layer | None:
    """Return the layer in a parameter's name, such as `layers.0.attn.q.weight`, or None.

    A number belongs to the list before it: the parts of that name are `layers.0`, `attn` and `q`.
    """
    tensor = _TENSOR.search(name)
    if tensor is None:
        return None
    rest = name[: tensor.start()].removeprefix("p_")
    parts = []
    while numbered := _NUMBERED.match(f"{rest}."):
        parts.append(numbered[1].replace("_", "."))
        rest = rest[numbered.end() :]
    parts += [one for one in rest.split(".") if one]
    return tuple(map(LayerPart, parts))


# --- Layers of all nodes, inferred from the nodes around where unknown ---------------------------


LayersByNode = Mapping[NodeId, tuple[Layer, ...]]
"""The layers that nodes belong to: several for a node that others were fused into."""

_MIN_LAYERS = 3
"""With fewer layers, names of parameters are not taken as structure."""


@gc_paused()
def with_layers(graph: Graph, known: LayersByNode) -> Graph:
    """Return the graph with layers on all nodes: known ones, and inferred ones in between.

    If none is known, layers are taken from the names of parameters; a graph without such names is
    returned unchanged.
    """
    known = {one: layers for one, layers in known.items() if layers}
    is_named = not known
    known = known or _named(graph)
    if not known:
        return graph
    bound = [node for node in graph.nodes if not node.is_input]
    found = _filled(graph, bound, known)
    if is_named:
        _end_with_siblings(bound, known, found)
    inputs = number_of_inputs(graph)
    nodes: list[Node] = []
    params = 0
    for node in graph.nodes:
        if node.kind is NodeKind.PARAM and node.region is None:
            params += 1
            if params <= inputs or not (inputs or layer_of_parameter(node.name)):
                nodes.append(node)
                continue
        if node.is_input:
            users = (edge.target for edge in graph.leaving.get(node.id, ()))
            layers: tuple[Layer, ...] = (common_layer(found.get(one, ()) for one in users),)
        else:
            layers = known.get(node.id) or (found[node.id],)
        nodes.append(node._replace(layers=layers))
    return graph.with_nodes(nodes)


def number_of_inputs(graph: Graph) -> int:
    """Return how many of the first parameters are inputs, 0 if unknown."""
    text = dict(graph.attributes).get("num_input", "")
    return int(text) if text.isdecimal() else 0


def _named(graph: Graph) -> dict[NodeId, tuple[Layer, ...]]:
    """Return the layers of nodes that use parameters, from the parameters' names."""
    weights: dict[NodeId, list[Layer]] = {}
    for node in graph.nodes:
        if node.is_input:
            layer = layer_of_parameter(node.name)
            if layer is not None:
                weights[node.id] = [layer]
    if len({layer for (layer,) in weights.values()}) < _MIN_LAYERS:
        return {}
    found: dict[NodeId, tuple[Layer, ...]] = {}
    for node in graph.nodes:
        if node.is_input:
            continue
        sources = [edge.source for edge in graph.operands(node.id)]
        own = [layer for one in sources for layer in weights.get(one, ())]
        if own:
            found[node.id] = tuple(dict.fromkeys(own))
            if all(one in weights for one in sources):  # such as a transposed weight
                weights[node.id] = own
    return found


def _filled(graph: Graph, bound: list[Node], known: LayersByNode) -> dict[NodeId, Layer]:
    """Return one layer per node: the innermost around those that it belongs to, or an inferred one.

    An unknown layer continues that of the previous or the next node: it is that of the operands or
    of the first user, or else the common part of the two.
    """
    found = {one: common_layer(layers) for one, layers in known.items()}
    following: dict[NodeId, Layer] = {}
    after: Layer = ()
    for node in reversed(bound):
        following[node.id] = after
        after = found.get(node.id, after)
    before: Layer = ()
    for node in bound:
        if node.id not in found:
            found[node.id] = _between(graph, node, before, following[node.id], found)
        before = found[node.id]
    return found


def _end_with_siblings(bound: list[Node], known: LayersByNode, found: dict[NodeId, Layer]) -> None:
    """End the last layer of a list where its siblings end, by moving what follows out of it.

    An example is the reshape between the last block and the head.
    """
    ends: dict[Layer, list[Node]] = {}
    for node in bound:
        layer = found[node.id]
        if node.id in known:
            for depth in range(len(layer)):
                ends[layer[: depth + 1]] = []
        elif layer and node.kind is not NodeKind.VALUE:  # another name of the result
            ends.setdefault(layer, []).append(node)
    for layer, end in ends.items():
        sibling = ends.get(previous_layer(layer))
        if sibling and len(sibling) < len(end):
            shared = list(zip(end, sibling, strict=False))
            if all(one.operation == other.operation for one, other in shared):
                for node in end[len(sibling) :]:
                    found[node.id] = layer[:-1]


def _between(
    graph: Graph, node: Node, before: Layer, after: Layer, found: Mapping[NodeId, Layer]
) -> Layer:
    users = graph.leaving.get(node.id, ())
    if not users and not node.is_pure:
        return before  # such as the end of a buffer
    sources = [edge.source for edge in graph.operands(node.id)]
    params = (one for one in sources if graph[one].kind is NodeKind.PARAM)
    inputs = {one for one in params if layer_of_parameter(graph[one].name) is None}
    made = [found.get(one, ()) for one in sources if one in found or one in inputs]
    used = [found[edge.target] for edge in users if edge.target in found][:1]
    near = common_layer(made or used)
    fits = near in (before[: len(near)], after[: len(near)])
    shared = common_layer((before, after))
    if before in made and not (near or shared):  # such as the sum that ends a block
        return before[:-1]
    return near if fits and len(near) > len(shared) else shared
