"""Where parameters and constants are drawn: at their use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from irviz.model.graph import Node, NodeId, NodeKind, Region, RegionKind
from irviz.model.opening import MOST_LEAVES
from irviz.model.repeat import Operand, Steps

_HOLD_PARAMS = (RegionKind.REPEAT, RegionKind.PART)
"""Stretches that parameters belong to when nothing else uses them."""


class Use(NamedTuple):
    """A use as it is drawn: a step or a leaf is used by an item, from inside of a frame."""

    source: Operand
    item: int
    frame: int | None
    is_carried: bool = False
    is_other: bool = False


@dataclass(eq=False)
class Scene:
    """What is drawn, without leaves: `items` are nodes, `groups` those of them that are closed.

    `item_at` has the item of each step that is looked at, `same` the step that is looked at in
    place of each. Frames are the regions of the picture.
    """

    of: Steps
    same: list[int]
    items: list[Node] = field(default_factory=list)
    item_at: dict[int, int] = field(default_factory=dict)
    groups: dict[int, RegionKind] = field(default_factory=dict)
    frames: list[Region] = field(default_factory=list)


class Leaves:
    """Where parameters and constants are: at their use, in the innermost frame around all uses.

    `nodes` are those that are drawn, by the (first) leaf that they show; `held` counts those
    inside of each group. At most `room` nodes are drawn: so many leaves are shown as one.
    """

    def __init__(self, scene: Scene, uses: Sequence[Use], opened: Sequence[str], room: int) -> None:
        self._scene = scene
        self.places: dict[NodeId, NodeId] = {}
        self.nodes: dict[NodeId, Node] = {}
        self.held: Counter[int] = Counter()
        users: dict[NodeId, set[tuple[int, int | None]]] = {}
        for source, item, frame, *_ in uses:
            if source.step < 0:
                users.setdefault(source.node, set()).add((item, frame))
        for leaves, frame, is_bundle in _bundled(self._homes(users), opened, room):
            self._put(leaves, frame, is_bundle=is_bundle)

    def _homes(
        self, users: Mapping[NodeId, set[tuple[int, int | None]]]
    ) -> dict[tuple[int | None, frozenset[int]], list[Node]]:
        """Return the leaves that are drawn, by their frame and what they are used by."""
        graph, items = self._scene.of.graph, self._scene.items
        found: dict[tuple[int | None, frozenset[int]], list[Node]] = {}
        for node in graph.nodes:
            if node.id in self._scene.of.at:
                continue
            used_by = users.get(node.id, set())
            if not used_by and node.id in graph.leaving:
                continue  # in copies that are not shown
            users_ = frozenset(item for item, _ in used_by)
            only = min(users_) if len(users_) == 1 else None
            if only is not None and used_by == {(only, items[only].region)}:
                kind = self._scene.groups.get(only)
                if kind is not None and self._is_held(node, kind, items[only].region):
                    self.places[node.id] = items[only].id
                    self.held[only] += 1
                    continue
            frame = self._innermost([frame for _, frame in used_by])
            if node.kind is NodeKind.PARAM:
                frame = self._outside(frame, node)
            if not used_by and node.region is not None:
                owner = graph.regions[node.region].owner
                frame = self._frame_of(owner) if owner else None
            found.setdefault((frame, users_), []).append(node._replace(region=frame))
        return found

    def _is_held(self, leaf: Node, kind: RegionKind, frame: int | None) -> bool:
        """Tell whether a leaf that only a closed group uses is a part of it."""
        if leaf.kind is NodeKind.CONSTANT or kind in _HOLD_PARAMS:
            return True
        owner = None if leaf.region is None else self._scene.of.graph.regions[leaf.region].owner
        return owner is not None and self._frame_of(owner) == frame  # of a function that is closed

    def _put(self, leaves: Sequence[Node], frame: int | None, *, is_bundle: bool) -> None:
        """Draw leaves in a frame, each by itself or all of them as one."""
        if not is_bundle:
            self.nodes.update({node.id: node for node in leaves})
            self.places.update({node.id: node.id for node in leaves})
            return
        kinds = {node.kind for node in leaves}
        what = f"{kinds.pop().value}s" if len(kinds) == 1 else "leaves"
        names = f"{leaves[0].name or leaves[0].id} … {leaves[-1].name or leaves[-1].id}"
        group_id = _bundle_id(leaves)
        self.nodes[leaves[0].id] = Node(
            group_id,
            NodeKind.GROUP,
            f"{len(leaves)} {what}",
            names,
            region=frame,
            size=len(leaves),
        )
        self.places.update(dict.fromkeys((node.id for node in leaves), group_id))

    def _outside(self, frame: int | None, param: Node) -> int | None:
        """Leave the blocks and branches that a parameter is used in, but is no part of."""
        graph, frames = self._scene.of.graph, self._scene.frames
        owner = None if param.region is None else graph.regions[param.region].owner
        while frame is not None and frames[frame].kind not in _HOLD_PARAMS:
            if owner is not None and frames[frame].owner == owner:
                break
            frame = frames[frame].parent
        return frame

    def _frame_of(self, owner: NodeId) -> int | None:
        scene = self._scene
        step = scene.of.at.get(owner)  # a part of a graph may be without it
        return None if step is None else scene.items[scene.item_at[scene.same[step]]].region

    def _innermost(self, frames: Sequence[int | None]) -> int | None:
        """Return the innermost frame around all of these."""
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
) -> list[tuple[list[Node], int | None, bool]]:
    """Return the leaves that are drawn together, their frame, and whether they are shown as one.

    Many that are used alike are, unless the reader opened them and there is room; where there is
    no room at all, more are: all that are used alike, all of a frame, or all.
    """
    of_frame: dict[int | None, list[Node]] = {}
    for (frame, _), leaves in homes.items():
        of_frame.setdefault(frame, []).extend(leaves)
    alike = [(leaves, frame) for (frame, _), leaves in homes.items()]
    framed = [(leaves, frame) for frame, leaves in of_frame.items()]
    together = [([node for leaves, _ in framed for node in leaves], None)]
    for most, found in ((MOST_LEAVES, alike), (1, alike), (1, framed), (1, together)):
        bundles = {_bundle_id(leaves): len(leaves) for leaves, _ in found if len(leaves) > most}
        count = sum(len(leaves) for leaves, _ in found) - sum(bundles.values()) + len(bundles)
        if count <= room:
            break
    for bundle in map(NodeId, reversed(opened)):
        if bundle in bundles and count + bundles[bundle] - 1 <= room:
            count += bundles.pop(bundle) - 1
    return [(leaves, frame, _bundle_id(leaves) in bundles) for leaves, frame in found if leaves]
