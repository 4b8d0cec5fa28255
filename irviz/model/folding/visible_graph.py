"""The drawn graph: expanded containers are regions, collapsed ones are group nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from irviz.gc_pause import gc_paused
from irviz.limits import MAX_INPUTS, MOST_NODES, MOST_SHARED
from irviz.model.folding.expansion import Expansion, container_paths, expanded_containers
from irviz.model.folding.group_tree import (
    Container,
    ContainerTree,
    count_elements,
    group_facts,
    with_parameters,
)
from irviz.model.folding.repeats import BoundNodes, Operand
from irviz.model.graph.graph import (
    Edge,
    Graph,
    Layer,
    Node,
    NodeId,
    NodeKind,
    Region,
    RegionKind,
    with_group_titles,
)
from irviz.model.graph.layers import common_layer, layer_name
from irviz.model.graph.memory_accesses import computing


@dataclass(frozen=True, eq=False)
class VisibleGraph:
    """The drawn graph, and where everything of the whole graph is in it.

    A step is the index of a bound node (`BoundNodes`).

    Attributes:
        same: The drawn step for each step: for steps in other copies of an expanded repeat, that in
            the shown copy.
        places: The drawn node for each of these steps, and for parameters and constants.
        repeats: The expanded repeats, the outer ones first.
        shared: The weights that have no edges, as each of their users has a line for them; the
            place of each is one of these users.
    """

    graph: Graph
    tree: ContainerTree
    same: Sequence[int]
    places: Mapping[int | NodeId, NodeId]
    repeats: Sequence[OpenRepeat]
    shared: Collection[NodeId] = ()

    def where(self, node_id: NodeId) -> NodeId | None:
        """Return the drawn node that shows or contains a node of the whole graph.

        Returns None for an unused parameter that is left out.
        """
        bound = self.tree.bound
        step = bound.at.get(node_id)
        if step is not None:
            return self.places[self.same[step]]
        if node_id in self.places:
            return self.places[node_id]
        if node_id not in bound.graph.leaving:
            return None
        # a leaf of a copy that is not shown: find the one of the copy that is
        use = bound.graph.leaving[node_id][0]
        step = bound.at[use.target]
        slot = next(i for i, one in enumerate(bound.operands[step]) if one.position == use.position)
        for one in self.repeats:
            step = one.in_place_of(step)
            leaf = bound.operands[step][slot].node
            if leaf in self.places:
                return self.places[leaf]
        raise KeyError(node_id)


class OpenRepeat(NamedTuple):
    """An expanded repeat with so many steps in a copy; `copy`, counted from 0, is the shown one.

    `around` is the region that contains it in the drawn graph, None for the function itself.
    """

    start: int
    held: int
    copies: int
    copy: int
    around: int | None

    def copy_of(self, step: int) -> int | None:
        """Return the copy that a step is in, None for a step outside the repeat."""
        copy, is_in = (step - self.start) // self.held, step >= self.start
        return copy if is_in and copy < self.copies else None

    def in_place_of(self, step: int) -> int:
        """Return the step in the shown copy that corresponds to a step in any copy."""
        copy = self.copy_of(step)
        return step if copy is None else step + (self.copy - copy) * self.held


@gc_paused()
def visible_graph(
    tree: ContainerTree,
    expansion: Expansion | None = None,
    limit: int = MOST_NODES,
    minimum: int = 0,
    *,
    separate: frozenset[str] = frozenset(),
) -> VisibleGraph:
    """Return the graph to draw in place of the whole graph.

    `separate` weights and elements of a call's result are nodes of it, and no part of the call.

    It has at most `limit` nodes, and at least `minimum` (up to MIN_NODES) if the expanded graph,
    with one copy of each repeat, has as many and the user collapsed nothing.
    """
    expansion = expansion or Expansion()
    is_open = expanded_containers(tree, expansion, limit, minimum)
    scene = _Scene(tree, expansion, is_open, separate)
    uses = scene.uses()
    more = 0 if expansion.closed or expansion.every is False else minimum - len(scene.items)
    room = limit - len(scene.items)
    leaves = LeafPlacement(scene, uses, expansion.opened, room, more)
    places: dict[int | NodeId, NodeId] = {
        step: scene.items[item].id for step, item in scene.item_at.items()
    }
    places.update(leaves.places.items())
    edges: Counter[tuple[NodeId, NodeId, tuple[int, ...], bool]] = Counter()
    own: set[tuple[NodeId, NodeId, tuple[int, ...], bool]] = set()
    for source, step, item, _, is_carried, is_other in uses:
        start = places[scene.same[source.step] if source.step >= 0 else source.node]
        end = scene.items[item].id
        is_inside = (item in scene.groups or source.step < 0) and start == end and not is_carried
        is_inside |= source.node in leaves.shared
        if not is_inside and not scene.is_plan(source, step, item):
            position = () if item in scene.groups else source.position
            ends = (start, end, position, is_carried)
            edges[ends] += 1
            if not is_other and (source.step < 0 or scene.same[source.step] == source.step):
                own.add(ends)  # used by the copy that is drawn
    nodes = _ordered(scene, leaves)
    order = {node.id: index for index, node in enumerate(nodes)}
    drawn = [
        Edge(*ends[:3], count, ends[3], not ends[3] and ends not in own)
        for ends, count in edges.items()
    ]
    drawn.sort(key=lambda edge: (order[edge.target], edge.position, order[edge.source]))
    whole = scene.bound.graph
    graph = replace(whole, nodes=nodes, edges=tuple(drawn), regions=tuple(scene.frames), outputs=())
    found = VisibleGraph(graph, tree, scene.same, places, scene.repeats, leaves.shared)
    outputs = [place for one in whole.outputs if (place := found.where(one)) is not None]
    is_whole = len(nodes) == len(whole.nodes)
    graph = replace(graph, outputs=tuple(outputs if is_whole else dict.fromkeys(outputs)))
    return replace(found, graph=with_group_titles(graph))


class _Scene:
    """The drawn graph without its parameters and constants, from the expanded containers.

    It has, besides what `VisibleGraph` has, the index of the item for each step that is drawn, the
    kind of container for each collapsed item, and the weights and elements of results that are
    nodes of their own.
    """

    def __init__(
        self,
        tree: ContainerTree,
        expansion: Expansion,
        is_open: Collection[str],
        separate: frozenset[str],
    ) -> None:
        self.bound = tree.bound
        self.same = list(range(len(tree.bound.nodes)))
        self.items: list[Node] = []
        self.item_at: dict[int, int] = {}
        self.groups: dict[int, RegionKind] = {}
        self.frames: list[Region] = []
        self.repeats: list[OpenRepeat] = []
        self._expansion, self._is_open = expansion, is_open
        self._aliases: set[int] = set()
        self._has_layers = tree.has_layers
        self.separate = separate.union(expansion.opened)
        self._show(tree.root, 0, None)

    def _show(self, container: Container, offset: int, frame: int | None) -> None:
        """Add the contents of a container; `offset` is from the first copies to those shown."""
        for child in container.children:
            if isinstance(child, int):
                self._show_step(child + offset, frame)
            elif child.id in self._is_open:
                self._open(child, offset, frame)
            else:
                span = range(child.start + offset, child.stop + offset)
                self.groups[len(self.items)] = child.kind
                self.item_at.update(dict.fromkeys(span, len(self.items)))
                self.items.append(_group_node(self.bound, child, span)._replace(region=frame))

    def _show_step(self, step: int, frame: int | None) -> None:
        """Add a step, unless it is another name of a value that is shown."""
        node = self.bound.nodes[step]
        is_alone = not self.bound.graph.has_weights or node.id in self.separate
        made = None if is_alone else self.bound.renamed(step)
        item = None if made is None else self.item_at.get(self.same[made])
        if item is None:
            item = len(self.items)
            self.items.append(node._replace(region=frame))
        else:
            self._aliases.add(step)
            is_used = node.kind is NodeKind.TUPLE_GET_ITEM and self.bound.last[step] > step
            if is_used and item not in self.groups:
                self.items[item] = self.items[item]._replace(item=node)
        self.item_at[step] = item

    def _open(self, child: Container, offset: int, frame: int | None) -> None:
        """Add a region with one copy of the contents, which stands for the other copies."""
        copy = min(max(self._expansion.copies.get(child.id, 0), 0), child.copies - 1)
        name = child.title + (f" · copy {copy + 1}" if child.copies > 1 else "")
        self.frames.append(Region(child.kind, name, frame, child.owner, child.id))
        held, start = child.held, child.start + offset
        self._show(child, offset + copy * held, len(self.frames) - 1)
        if child.copies > 1:
            here = self.same[start + copy * held : start + (copy + 1) * held]
            self.same[start : start + child.copies * held] = here * child.copies
            self.repeats.insert(0, OpenRepeat(start, held, child.copies, copy, frame))

    def item_of(self, node_id: NodeId) -> int:
        """Return the item that shows a bound node."""
        return self.item_at[self.same[self.bound.at[node_id]]]

    def uses(self) -> list[Use]:
        """Return the drawn uses: those in shown copies, and some in the others.

        The latter are of values passed from copy to copy, and of outside values that only one copy
        uses: steps, and inputs that are drawn for another use anyway.
        """
        operands = self.bound.operands
        found: list[Use] = []
        known: set[tuple[int, int]] = set()
        own: dict[tuple[int, int], Use] = {}
        for one, step, slot, is_next in self._crossing_operands():
            item = self.item_at[self.same[step]]
            if is_next:
                carried = operands[step + one.held][slot]
                user = step + one.held
                found.append(Use(carried, user, item, self.items[item].region, True))
            for user in range(step, step + (1 if is_next else one.copies) * one.held, one.held):
                operand = operands[user][slot]
                use = Use(operand, user, item, one.around, is_other=user not in self.item_at)
                if operand.step < 0 and not is_next:
                    own[user, slot] = use
                    continue
                if (user, slot) not in known and not self._is_carried(operand.step, user):
                    found.append(use)
                known.add((user, slot))
        for step, item in self.item_at.items():
            if step in self._aliases:
                continue
            frame = self.items[item].region
            for slot, operand in enumerate(operands[step]):
                if (step, slot) not in known and not self._is_carried(operand.step, step):
                    found.append(Use(operand, step, item, frame))
                known.add((step, slot))
        drawn = {use.source.node for use in found}
        more = (use for key, use in own.items() if key not in known and use.source.node in drawn)
        return [*found, *more]

    def is_plan(self, source: Operand, step: int, item: int) -> bool:
        """Return whether a use in a collapsed container only belongs to a memory plan.

        How storage passes from layer to layer is visible in expanded layers.
        """
        if source.step < 0 or item not in self.groups:
            return False
        is_part = self._has_layers or self.groups[item] is RegionKind.CALL
        return is_part and self.bound.plans_memory(source, step)

    def _crossing_operands(self) -> Iterator[tuple[OpenRepeat, int, int, bool]]:
        """Yield the operands through which copies of expanded repeats use values from outside.

        Each is a repeat, a step of its first copy, the index of the operand, and whether the value
        comes from the copy before; otherwise each copy has its own value.
        """
        operands = self.bound.operands
        for one in self.repeats:
            for step in range(one.start, one.start + one.held):
                pairs = zip(operands[step], operands[step + one.held], strict=True)
                for slot, (first, second) in enumerate(pairs):
                    if one.copy_of(second.step) == 0:
                        yield one, step, slot, True
                    elif first.step < one.start and first.node != second.node:
                        yield one, step, slot, False

    def _is_carried(self, source: int, target: int) -> bool:
        """Return whether a step of a copy that is not shown is used by another copy."""
        if source < 0 or self.same[source] == source:
            return False
        copies = ((one.copy_of(source), one.copy_of(target)) for one in self.repeats)
        return any(None not in pair and pair[0] != pair[1] for pair in copies)


def _ordered(scene: _Scene, leaves: LeafPlacement) -> tuple[Node, ...]:
    """Return the nodes in the order of the text, with the inputs inside of each."""
    index = scene.bound.graph.index
    first = {item: step for step, item in reversed(scene.item_at.items())}
    found = {index[node_id]: node for node_id, node in leaves.nodes.items()}
    for item, node in enumerate(scene.items):
        at = index[scene.bound.nodes[first[item]].id]
        held = leaves.held.get(item, ())
        if item in scene.groups:
            found[at] = with_parameters(
                node._replace(size=node.size + len(held)), leaves.weights[item]
            )
        else:
            found[at] = node._replace(weights=tuple(held))
    return tuple(found[at] for at in sorted(found))


_NAMED = (RegionKind.LAYER, RegionKind.REPEAT, RegionKind.PART)


def group_nodes(tree: ContainerTree) -> tuple[Node, ...]:
    """Return the layers, repeats and parts of a function as nodes, each before what is in it."""
    return tuple(
        _group_node(tree.bound, one, range(one.start, one.stop))
        for _, (*_, one) in container_paths(tree.root)
        if one.kind in _NAMED
    )


def _group_node(bound: BoundNodes, container: Container, span: range) -> Node:
    """Return the node that stands for a collapsed container.

    Its attributes describe its contents, its type the values used outside.
    """
    one, first = (bound.nodes[at : at + container.held] for at in (span.start, container.start))
    out = [bound.nodes[step] for step in span if bound.last[step] >= span.stop]
    out = [node for node in out if _is_result(bound, node, span)] or out
    layer = _layer_around(one)
    full = _layer_in_copy(container.layer, _layer_around(first), layer)
    layers = one[0].layers and (layer,)
    group = Node(NodeId(container.id), NodeKind.GROUP, container.title, "", layers=layers)
    return with_contents(group, container, bound.nodes[span.start : span.stop], out, full)


def with_contents(
    group: Node, container: Container, nodes: Sequence[Node], results: Sequence[Node], layer: str
) -> Node:
    """Return the node of a container with what follows from the nodes of all of its copies.

    `results` are the nodes that are used outside, `layer` is the full name of the layer, "" for no
    layer.
    """
    calls = computing(nodes)
    call = calls[0] if container.kind is RegionKind.CALL and len(calls) == 1 else None
    return group._replace(
        type_text=_values(results),
        callee=call.callee if call else "",
        resolution=call.resolution if call else None,
        operator=call.operator if call else "",
        attributes=group_facts(nodes, layer, container.copies),
        is_pure=call is not None or all(node.is_pure for node in nodes),
        size=len(nodes),
    )


def _layer_around(nodes: Sequence[Node]) -> Layer:
    return common_layer(each for node in nodes for each in node.layers)


def _layer_in_copy(name: str, first: Layer, own: Layer) -> str:
    """Return the full name in a copy of a layer that has a name in the first copy.

    `first` and `own` are the innermost layers around what it holds there, and in this copy.
    """
    depths = (depth for depth in range(len(first)) if layer_name(first[: depth + 1]) == name)
    depth = next(depths, None)
    return name if depth is None else layer_name(own[: depth + 1])


def _is_result(bound: BoundNodes, node: Node, span: range) -> bool:
    """Return whether a value is used after these steps, and not only by a memory plan."""
    graph, operand = bound.graph, Operand(bound.at[node.id], node.id, ())
    users = (bound.at[edge.target] for edge in graph.leaving.get(node.id, ()))
    return node.id in graph.outputs or any(
        user not in span and not bound.plans_memory(operand, user) for user in users
    )


def _values(nodes: Sequence[Node]) -> str:
    """Return a label for the values of several nodes."""
    types = {node.type_label for node in nodes}
    if len(nodes) == 1:
        return f"{nodes[0].name}: {nodes[0].type_label}"
    return f"{len(nodes)} × {types.pop()}" if len(types) == 1 else f"{len(nodes)} values"


# --- Place each leaf (parameter or constant) in the region where it is used ----------------------


_CONTAINS_PARAMS = (RegionKind.REPEAT, RegionKind.PART, RegionKind.UNCHANGED, RegionKind.LAYER)
"""Containers in which a parameter is drawn if nothing outside uses it."""


_SHAPE_OF = "relax.shape_of"


class Use(NamedTuple):
    """A use that is drawn, of a step or an input, by a step and the scene's item that shows it.

    The frame of a use by another copy is not the item's own. `is_carried` is as in `Edge`, and
    `is_other` tells whether a copy other than the shown one uses it.
    """

    source: Operand
    step: int
    item: int
    frame: int | None
    is_carried: bool = False
    is_other: bool = False


class LeafPlacement:
    """Draws each parameter and constant in the innermost region around all of its uses.

    Inputs are merged into one node if there would be more than `room` nodes otherwise. Of inputs
    with the same users, the first ones stay separate, up to `minimum` nodes.

    Attributes:
        places: The drawn node for each input.
        nodes: The drawn inputs, by their first input.
        held: The inputs inside each collapsed container, and the weights that are lines in a call.
        weights: The number of elements in the parameters of each container.
        shared: The weights that are lines in several calls.
    """

    def __init__(
        self,
        scene: _Scene,
        uses: Sequence[Use],
        opened: Sequence[str],
        room: int,
        minimum: int,
    ) -> None:
        self._scene = scene
        self._has_weights = scene.bound.graph.has_weights
        self.places: dict[NodeId, NodeId] = {}
        self.nodes: dict[NodeId, Node] = {}
        self.held: dict[int, list[Node]] = {}
        self.weights: Counter[int] = Counter()
        self.shared: dict[NodeId, None] = {}  # in the order of the text
        users: dict[NodeId, set[tuple[int, int | None]]] = {}
        for source, _, item, frame, *_ in uses:
            if source.step < 0:
                users.setdefault(source.node, set()).add((item, frame))
        for bundle in _bundled(self._homes(users), opened, room, minimum):
            self._put(*bundle)

    def _homes(
        self, users: Mapping[NodeId, set[tuple[int, int | None]]]
    ) -> dict[tuple[int | None, frozenset[int]], list[Node]]:
        """Return the inputs that are drawn, by their region and their users."""
        graph = self._scene.bound.graph
        found: dict[tuple[int | None, frozenset[int]], list[Node]] = {}
        for node in graph.nodes:
            if node.id in self._scene.bound.at:
                continue
            used_by = users.get(node.id, set())
            if not used_by and (node.id in graph.leaving or self._is_left_out(node)):
                continue  # used by copies that are not shown, or by nothing
            users_ = frozenset(item for item, _ in used_by)
            if holders := self._holders(node, sorted(users_), used_by):
                self._hold(node, holders)
                if len(users_) > 1:
                    self.shared[node.id] = None
                continue
            frame = self._innermost([frame for _, frame in used_by])
            if node.kind is NodeKind.PARAM:
                frame = None if self._is_input(node) else self._outside(frame, node)
            while frame is not None and self._scene.frames[frame].kind is RegionKind.FUSED:
                frame = self._scene.frames[frame].parent  # the fused node has it as an argument
            if not used_by and node.region is not None:
                owner = graph.regions[node.region].owner
                frame = self._frame_of(owner) if owner else None
            found.setdefault((frame, users_), []).append(node._replace(region=frame))
        return found

    def _holders(
        self, leaf: Node, users: Sequence[int], used_by: Collection[tuple[int, int | None]]
    ) -> Sequence[int]:
        """Return the items that a leaf is part of: its only user, or each of many calls.

        Calls that use its shape alone are not counted.
        """
        items, groups = self._scene.items, self._scene.groups
        if len(users) == 1 and all(frame == items[users[0]].region for _, frame in used_by):
            kind, only = groups.get(users[0]), items[users[0]]
            if self._is_held(leaf, kind, only.region) if kind else self._is_line(leaf, only):
                return users
        graph = self._scene.bound.graph
        targets = {use.target for use in graph.leaving.get(leaf.id, ())}
        computing = [one for one in targets if graph[one].callee != _SHAPE_OF]
        is_shared = len(targets) > 1 and not 1 < len(computing) <= MOST_SHARED
        if not is_shared or not self._may_be_line(leaf):
            return ()
        calls = [one for one in users if one not in groups]
        if not all(self._is_line(leaf, items[one]) for one in calls):
            return ()
        first = {self._scene.item_of(one) for one in computing}
        return calls or sorted(users, key=lambda one: one not in first)[:1]

    def _hold(self, leaf: Node, holders: Sequence[int]) -> None:
        self.places[leaf.id] = self._scene.items[holders[0]].id
        for item in holders:
            self.held.setdefault(item, []).append(leaf)
            if self._has_weights:
                self.weights[item] += count_elements(leaf)

    def _is_held(self, leaf: Node, kind: RegionKind, frame: int | None) -> bool:
        """Return whether a leaf that only a collapsed container uses is part of it.

        A parameter is part of its function, and of a repeat or part, which is not a scope.
        """
        if kind is RegionKind.CALL:
            return self._has_weights and not self._is_input(leaf)
        if leaf.kind is NodeKind.CONSTANT or kind in _CONTAINS_PARAMS:
            return not self._is_input(leaf)
        owner = None if leaf.region is None else self._scene.bound.graph.regions[leaf.region].owner
        return owner is not None and self._frame_of(owner) == frame

    def _is_line(self, leaf: Node, user: Node) -> bool:
        """Return whether a leaf that only one node uses is a line in that node.

        It is if it is a weight, and neither it nor a called function is expanded.
        """
        is_expanded = user.id in self._scene.separate
        return self._may_be_line(leaf) and user.is_call_or_operator and not is_expanded

    def _may_be_line(self, leaf: Node) -> bool:
        is_weight = bool(leaf.layers) if leaf.kind is NodeKind.PARAM else self._has_weights
        return is_weight and leaf.id not in self._scene.separate

    def _is_input(self, leaf: Node) -> bool:
        """Return whether a leaf is an input of a model, if inputs can be told from weights."""
        is_param = leaf.kind is NodeKind.PARAM and leaf.region is None
        return self._has_weights and is_param and not leaf.layers

    def _is_left_out(self, leaf: Node) -> bool:
        """Return whether a leaf is an unused weight, which is not worth drawing."""
        outputs = self._scene.bound.graph.outputs
        return bool(leaf.layers) and leaf.kind is NodeKind.PARAM and leaf.id not in outputs

    def _put(self, leaves: Sequence[Node], alone: int, frame: int | None) -> None:
        """Draw inputs in a region: the first ones separately, the rest as one node."""
        rest = leaves[alone:]
        for node in leaves[:alone]:
            self.nodes[node.id], self.places[node.id] = node, node.id
        if not rest:
            return
        kinds = {node.kind for node in rest}
        what = f"{kinds.pop().value}s" if len(kinds) == 1 else "leaves"
        names = f"{rest[0].name or rest[0].id} … {rest[-1].name or rest[-1].id}"
        name, size = f"{len(rest)} {what}", len(rest)
        group = Node(_bundle_id(leaves), NodeKind.GROUP, name, names, region=frame, size=size)
        self.nodes[rest[0].id] = group
        self.places.update(dict.fromkeys((node.id for node in rest), group.id))

    def _outside(self, frame: int | None, param: Node) -> int | None:
        """Return the region around the blocks and branches that only use a parameter."""
        graph, frames = self._scene.bound.graph, self._scene.frames
        owner = None if param.region is None else graph.regions[param.region].owner
        while frame is not None and frames[frame].kind not in _CONTAINS_PARAMS:
            if owner is not None and frames[frame].owner == owner:
                break
            frame = frames[frame].parent
        return frame

    def _frame_of(self, owner: NodeId) -> int | None:
        scene = self._scene  # a subgraph may lack it
        return scene.items[scene.item_of(owner)].region if owner in scene.bound.at else None

    def _path(self, frame: int | None) -> list[int]:
        """Return a region and those around it, the outermost first."""
        return [] if frame is None else [*self._path(self._scene.frames[frame].parent), frame]

    def _innermost(self, frames: Sequence[int | None]) -> int | None:
        """Return the innermost region around all of these."""
        around = [
            level[0]
            for level in zip(*map(self._path, frames), strict=False)
            if len(set(level)) == 1
        ]
        return around[-1] if around else None


def _bundle_id(leaves: Sequence[Node]) -> NodeId:
    return NodeId(f"leaves:{leaves[0].id}")


def _bundled(
    homes: Mapping[tuple[int | None, frozenset[int]], list[Node]],
    opened: Sequence[str],
    room: int,
    minimum: int,
) -> list[tuple[list[Node], int, int | None]]:
    """Return sets of inputs, how many in each are drawn separately, and the region of each.

    Many inputs with the same users are one node, unless the user expanded it and there is space. As
    space runs short, all inputs with the same users become one node, then all inputs of a region,
    then all inputs.
    """
    of_frame: dict[int | None, list[Node]] = {}
    for (frame, _), leaves in homes.items():
        of_frame.setdefault(frame, []).extend(leaves)
    alike = [(leaves, frame) for (frame, _), leaves in homes.items()]
    framed = [(leaves, frame) for frame, leaves in of_frame.items()]
    together = [([node for leaves, _ in framed for node in leaves], None)]
    for most, found in ((MAX_INPUTS, alike), (1, alike), (1, framed), (1, together)):
        bundles = {_bundle_id(leaves): len(leaves) for leaves, _ in found if len(leaves) > most}
        count = sum(len(leaves) if len(leaves) <= most else 1 for leaves, _ in found)
        if count <= room:
            break
    alone: dict[NodeId, int] = {}
    for bundle, size in bundles.items():
        alone[bundle] = min(max(0, minimum - count), size - 2)
        count += alone[bundle]
    for bundle in map(NodeId, reversed(opened)):
        more = bundles.get(bundle, 0) - alone.get(bundle, 0) - 1
        if more > 0 and count + more <= room:
            count += more
            alone[bundle] = bundles[bundle]
    return [(one, alone.get(_bundle_id(one), len(one)), frame) for one, frame in found if one]
