"""Tree + choices -> the graph that is drawn: what is closed is one node with a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from irviz.model.graph import Edge, Graph, Node, NodeId, Region
from irviz.model.group import group
from irviz.model.leaves import Leaves, Scene, Use
from irviz.model.opening import LIMIT, Choices, opened
from irviz.model.pause import no_collection
from irviz.model.tree import Container, Tree


@dataclass(frozen=True, eq=False)
class Shown:
    """The graph that is drawn, and where in it everything of the whole graph is.

    `same` has for each step the step that is looked at in its place: another one in the copies
    of a repeat that are not shown. `places` has the node of the picture for each of these, and
    for parameters and constants. `repeats` are those that are open, the outer ones first.
    """

    graph: Graph
    tree: Tree
    same: Sequence[int]
    places: Mapping[int | NodeId, NodeId]
    repeats: Sequence[OpenRepeat]

    def where(self, node_id: NodeId) -> NodeId:
        """Return the node of the picture that shows a node of the whole graph."""
        of = self.tree.steps
        step = of.at.get(node_id)
        if step is not None:
            return self.places[self.same[step]]
        if node_id in self.places:
            return self.places[node_id]
        use = of.graph.leaving[node_id][0]  # in a copy that is not shown: the one in its place is
        step = of.at[use.target]
        slot = next(i for i, one in enumerate(of.operands[step]) if one.position == use.position)
        for one in self.repeats:
            step = one.in_place_of(step)
            leaf = of.operands[step][slot].node
            if leaf in self.places:
                return self.places[leaf]
        raise KeyError(node_id)


class OpenRepeat(NamedTuple):
    """A repeat that is open: its first step, how many a copy has, and the frame around it.

    `copy` is the one that is shown, counted from 0.
    """

    start: int
    held: int
    copies: int
    copy: int
    around: int | None

    def copy_of(self, step: int) -> int | None:
        """Return the copy that a step is in, None when it is in none."""
        copy, is_in = (step - self.start) // self.held, step >= self.start
        return copy if is_in and copy < self.copies else None

    def in_place_of(self, step: int) -> int:
        """Return the step of the copy that is shown in place of a step of any copy."""
        copy = self.copy_of(step)
        return step if copy is None else step + (self.copy - copy) * self.held


@no_collection()
def shown(tree: Tree, choices: Choices | None = None, limit: int = LIMIT) -> Shown:
    """Return what is drawn: at most `limit` nodes, and every edge between what they stand for."""
    chosen = choices or Choices()
    walk = _Walk(tree, chosen, opened(tree, chosen, limit))
    scene, uses = walk.scene, walk.uses()
    leaves = Leaves(scene, uses, chosen.opened, limit - len(scene.items))
    places: dict[int | NodeId, NodeId] = {
        step: scene.items[item].id for step, item in scene.item_at.items()
    }
    places.update(leaves.places.items())
    edges: Counter[tuple[NodeId, NodeId, tuple[int, ...], bool]] = Counter()
    own: set[tuple[NodeId, NodeId, tuple[int, ...], bool]] = set()
    for source, item, _, is_carried, is_other in uses:
        start = places[scene.same[source.step] if source.step >= 0 else source.node]
        end = scene.items[item].id
        is_inside = item in scene.groups and start == end and not is_carried
        if not is_inside:
            position = () if item in scene.groups else source.position
            ends = (start, end, position, is_carried)
            edges[ends] += 1
            if not is_other and (source.step < 0 or scene.same[source.step] == source.step):
                own.add(ends)  # of the copy that is drawn
    nodes = _ordered(scene, leaves)
    order = {node.id: index for index, node in enumerate(nodes)}
    drawn = [
        Edge(*ends[:3], count, ends[3], not ends[3] and ends not in own)
        for ends, count in edges.items()
    ]
    drawn.sort(key=lambda edge: (order[edge.target], edge.position, order[edge.source]))
    whole = scene.of.graph
    graph = Graph(
        whole.function, nodes, tuple(drawn), tuple(scene.frames), (), attributes=whole.attributes
    )
    found = Shown(graph, tree, scene.same, places, walk.repeats)
    outputs = [found.where(one) for one in whole.outputs]
    is_whole = len(nodes) == len(whole.nodes)
    return replace(
        found,
        graph=replace(graph, outputs=tuple(outputs if is_whole else dict.fromkeys(outputs))),
    )


class _Walk:
    """Goes through what is open, from the outside in, and puts it on the scene."""

    def __init__(self, tree: Tree, choices: Choices, is_open: Collection[str]) -> None:
        self.scene = Scene(tree.steps, list(range(len(tree.steps.nodes))))
        self.repeats: list[OpenRepeat] = []  # the outer ones first
        self._choices, self._is_open = choices, is_open
        self._show(tree.root, 0, None)

    def _show(self, container: Container, offset: int, frame: int | None) -> None:
        """Show what a container holds; `offset` leads from the first copies to this one."""
        scene = self.scene
        for child in container.children:
            if isinstance(child, int):
                scene.item_at[child + offset] = len(scene.items)
                scene.items.append(scene.of.nodes[child + offset]._replace(region=frame))
            elif child.id in self._is_open:
                self._open(child, offset, frame)
            else:
                span = range(child.start + offset, child.stop + offset)
                scene.groups[len(scene.items)] = child.kind
                scene.item_at.update(dict.fromkeys(span, len(scene.items)))
                scene.items.append(group(scene.of, child, span)._replace(region=frame))

    def _open(self, child: Container, offset: int, frame: int | None) -> None:
        """Draw a frame and one copy of what is in it: the others are where that one is."""
        scene = self.scene
        copy = min(max(self._choices.copies.get(child.id, 0), 0), child.copies - 1)
        name = child.name + (f" · copy {copy + 1}" if child.copies > 1 else "")
        scene.frames.append(Region(child.kind, name, frame, child.owner, child.id))
        held, start = child.held, child.start + offset
        self._show(child, offset + copy * held, len(scene.frames) - 1)
        if child.copies > 1:
            here = scene.same[start + copy * held : start + (copy + 1) * held]
            scene.same[start : start + child.copies * held] = here * child.copies
            self.repeats.insert(0, OpenRepeat(start, held, child.copies, copy, frame))

    def uses(self) -> list[Use]:
        """Return every use that is drawn: those of what is shown, and those of other copies.

        Of these, what goes from copy to copy, and what each copy uses of outside for itself: a
        step, or a leaf that is drawn for another use.
        """
        scene, operands = self.scene, self.scene.of.operands
        found: list[Use] = []
        known: set[tuple[int, int]] = set()
        own: dict[tuple[int, int], Use] = {}
        for one, step, slot, is_next in self._going_over():
            item = scene.item_at[scene.same[step]]
            if is_next:
                carried = operands[step + one.held][slot]
                found.append(Use(carried, item, scene.items[item].region, True))
            for user in range(step, step + (1 if is_next else one.copies) * one.held, one.held):
                operand = operands[user][slot]
                use = Use(operand, item, one.around, is_other=user not in scene.item_at)
                if operand.step < 0 and not is_next:
                    own[user, slot] = use
                    continue
                if (user, slot) not in known and not self._is_carried(operand.step, user):
                    found.append(use)
                known.add((user, slot))
        for step, item in scene.item_at.items():
            frame = scene.items[item].region
            for slot, operand in enumerate(operands[step]):
                if (step, slot) not in known and not self._is_carried(operand.step, step):
                    found.append(Use(operand, item, frame))
                known.add((step, slot))
        drawn = {use.source.node for use in found}
        more = (use for key, use in own.items() if key not in known and use.source.node in drawn)
        return [*found, *more]

    def _going_over(self) -> Iterator[tuple[OpenRepeat, int, int, bool]]:
        """Yield where copies of open repeats use what is not in them: a step of the first copy.

        And which of its operands, and whether it is in the copy before; else each has its own.
        """
        operands = self.scene.of.operands
        for one in self.repeats:
            for step in range(one.start, one.start + one.held):
                pairs = zip(operands[step], operands[step + one.held], strict=True)
                for slot, (first, second) in enumerate(pairs):
                    if one.copy_of(second.step) == 0:
                        yield one, step, slot, True
                    elif first.step < one.start and first.node != second.node:
                        yield one, step, slot, False

    def _is_carried(self, source: int, target: int) -> bool:
        """Tell whether a step of a copy that is not shown is used by the next copy."""
        if source < 0 or self.scene.same[source] == source:
            return False
        return any(
            one.copy_of(source) is not None
            and one.copy_of(target) is not None
            and one.copy_of(source) != one.copy_of(target)
            for one in self.repeats
        )


def _ordered(scene: Scene, leaves: Leaves) -> tuple[Node, ...]:
    """Return the nodes in the order of the text, groups with the leaves that they hold."""
    index = scene.of.graph.index
    first: dict[int, int] = {}
    for step, item in scene.item_at.items():
        first.setdefault(item, step)
    found = [(index[node_id], node) for node_id, node in leaves.nodes.items()]
    for item, node in enumerate(scene.items):
        sized = node._replace(size=node.size + leaves.held[item])
        found.append((index[scene.of.nodes[first[item]].id], sized))
    return tuple(node for _, node in sorted(found, key=lambda one: one[0]))
