"""Place each leaf (parameter or constant) in the region where it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from irviz.model.folding.folding_limits import MAX_INPUTS
from irviz.model.folding.group_facts import count_elements
from irviz.model.folding.repeats import BoundNodes, Operand
from irviz.model.graph.graph import Node, NodeId, NodeKind, Region, RegionKind

_CONTAINS_PARAMS = (
    RegionKind.REPEAT,
    RegionKind.PART,
    RegionKind.UNCHANGED,
    RegionKind.LAYER,
)
"""Containers in which a parameter is drawn if nothing outside uses it."""


class Use(NamedTuple):
    """A use that is drawn.

    Attributes:
        source: The step or the input that is used.
        step: The step that uses it.
        item: The index of the scene's item that uses it.
        frame: The region of the use; for a use by another copy, it is not the item's own.
        is_carried: Whether the value goes from one copy of a repeat to the next.
        is_other: Whether a copy other than the shown one uses it.
    """

    source: Operand
    step: int
    item: int
    frame: int | None
    is_carried: bool = False
    is_other: bool = False


@dataclass(eq=False)
class DrawnBindings:
    """The drawn graph without its parameters and constants.

    Attributes:
        same: The drawn step for each step.
        item_at: The index of the item for each step that is drawn.
        groups: The kind of container for each collapsed item.
        frames: The regions of the drawn graph.
    """

    bound: BoundNodes
    same: list[int]
    items: list[Node] = field(default_factory=list)
    item_at: dict[int, int] = field(default_factory=dict)
    groups: dict[int, RegionKind] = field(default_factory=dict)
    frames: list[Region] = field(default_factory=list)


class LeafPlacement:
    """Draws each parameter and constant in the innermost region around all of its uses.

    Inputs are merged into one node if there would be more than `room` nodes otherwise. Of inputs
    with the same users, the first ones stay separate, up to `minimum` nodes.

    Attributes:
        places: The drawn node for each input.
        nodes: The drawn inputs, by their first input.
        held: The number of inputs inside each collapsed container.
        weights: The number of elements in the parameters among these.
    """

    def __init__(
        self,
        scene: DrawnBindings,
        uses: Sequence[Use],
        opened: Sequence[str],
        room: int,
        minimum: int = 0,
    ) -> None:
        self._scene = scene
        self._has_weights = any(node.layers for node in scene.bound.graph.nodes)
        self.places: dict[NodeId, NodeId] = {}
        self.nodes: dict[NodeId, Node] = {}
        self.held: Counter[int] = Counter()
        self.weights: Counter[int] = Counter()
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
        graph, items = self._scene.bound.graph, self._scene.items
        found: dict[tuple[int | None, frozenset[int]], list[Node]] = {}
        for node in graph.nodes:
            if node.id in self._scene.bound.at:
                continue
            used_by = users.get(node.id, set())
            if not used_by and (node.id in graph.leaving or self._is_left_out(node)):
                continue  # used by copies that are not shown, or by nothing
            users_ = frozenset(item for item, _ in used_by)
            only = min(users_) if len(users_) == 1 else None
            if only is not None and used_by == {(only, items[only].region)}:
                kind = self._scene.groups.get(only)
                if kind is not None and self._is_held(node, kind, items[only].region):
                    self.places[node.id] = items[only].id
                    self.held[only] += 1
                    if self._has_weights:
                        self.weights[only] += count_elements(node)
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
        scene = self._scene
        step = scene.bound.at.get(owner)  # a subgraph may lack it
        return None if step is None else scene.items[scene.item_at[scene.same[step]]].region

    def _innermost(self, frames: Sequence[int | None]) -> int | None:
        """Return the innermost region around all of these."""
        paths = [self._path(frame) for frame in frames]
        around = [level[0] for level in zip(*paths, strict=False) if len(set(level)) == 1]
        return around[-1] if around else None

    def _path(self, frame: int | None) -> list[int]:
        path: list[int] = []
        while frame is not None:
            path.insert(0, frame)
            frame = self._scene.frames[frame].parent
        return path


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
