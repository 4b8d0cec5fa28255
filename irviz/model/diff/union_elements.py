"""Merge the nodes of several stages, and find the frames and regions that contain them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from irviz.model.diff.compare_functions import block_partners
from irviz.model.diff.diff_result import Aspect, NodeChange, NodeDiff
from irviz.model.graph.graph import INPUT_KINDS, Graph, Node, NodeId, NodeKind, Region


@dataclass(eq=False, slots=True)
class Scope:
    """A region of one stage or more."""

    regions: dict[int, Region] = field(default_factory=dict)
    parent: Scope | None = None


@dataclass(eq=False, slots=True)
class Element:
    """A node of one stage or more.

    Attributes:
        at: The node by the index of the stage; none for a frame that stands for no single node.
        scope: Its region, None for the function itself.
        inside: The elements that it became or that became it; the element is then a frame around
            them.
        frame: The frame around it.
        title: The title of the frame, with counts if it belongs to a single step.
        is_changed: Whether anything became of it between two stages.
        order: Its place in the order of the text.
    """

    at: dict[int, Node] = field(default_factory=dict)
    scope: Scope | None = None
    inside: list[Element] = field(default_factory=list)
    frame: Element | None = None
    title: str = ""
    is_changed: bool = False
    order: int = -1

    @property
    def node(self) -> Node:
        """The node of the last stage that has it."""
        return self.at[max(self.at)]

    @property
    def is_input(self) -> bool:
        """Whether it is a parameter or a constant."""
        return bool(self.at) and self.node.kind in INPUT_KINDS

    @property
    def outermost(self) -> Element:
        """The outermost frame around it, or itself."""
        found = self
        while found.frame is not None:
            found = found.frame
        return found

    @property
    def last_leaf(self) -> Element:
        """The last element inside that is not a frame, or the element itself."""
        found = self
        while found.inside:
            found = found.inside[-1]
        return found


@dataclass(frozen=True, eq=False)
class UnionElements:
    """The elements of several stages.

    Attributes:
        stages: The graphs of the stages.
        of: For each stage, the element of each node.
        frames: The elements that are frames.
        scopes: For each stage, the scope of each region.
    """

    stages: Sequence[Graph]
    of: Sequence[Mapping[NodeId, Element]]
    frames: Sequence[Element]
    scopes: Sequence[Sequence[Scope]]

    def __iter__(self) -> Iterator[Element]:
        """Yield every element once, in the order of the stages."""
        nodes = (one for elements in self.of for one in elements.values())
        return iter(dict.fromkeys((*nodes, *self.frames)))

    @cached_property
    def unchanged(self) -> frozenset[Element]:
        """The elements that every stage has, without a difference."""
        count = len(self.stages)
        return frozenset(
            one for one in self if not one.is_changed and not one.inside and len(one.at) == count
        )


def union_elements(stages: Sequence[Graph], steps: Sequence[Sequence[NodeDiff]]) -> UnionElements:
    """Return the elements of several stages, numbered in the order of the text.

    The arguments are those of `union_graph`.
    """
    scopes = _scopes(stages, steps)
    of: list[dict[NodeId, Element]] = []
    frames: dict[Element, None] = {}
    for at, graph in enumerate(stages):
        around = [None if n.region is None else scopes[at][n.region] for n in graph.nodes]
        here = dict(zip(graph.index, around, strict=True))
        if not at:
            of.append({one.id: Element({0: one}, here[one.id]) for one in graph.nodes})
            continue
        of.append({})
        for diff in steps[at - 1]:
            _relate(diff, of[at - 1], of[at], graph, at, here)
            if not _is_in_place(diff) and diff.before and diff.after:
                before = [of[at - 1][one] for one in diff.before]
                frame = _frame(before, [of[at][one] for one in diff.after], diff)
                frames.update({frame: None} if frame.inside else {})
    found = UnionElements(stages, of, _kept_frames(frames), scopes)
    _number(found)
    return found


def _is_in_place(diff: NodeDiff) -> bool:
    """Return whether one node became one."""
    return len(diff.before) == len(diff.after) == 1


def _relate(
    diff: NodeDiff,
    mine: Mapping[NodeId, Element],
    theirs: dict[NodeId, Element],
    after: Graph,
    at: int,
    scopes: Mapping[NodeId, Scope | None],
) -> None:
    """Add the nodes that a difference leads to in the next stage, which are in these scopes."""
    moved = any(one.aspect is Aspect.BLOCK for one in diff.differences)
    if _is_in_place(diff) and not moved:  # what moved to another block stands elsewhere
        one, scope = mine[diff.before[0]], scopes[diff.after[0]]
        place = _common_place(one.scope, one.at, scope, at)
        if place is None and one.is_input:
            place = _place_of_input(one, after[diff.after[0]], scope)
        if place is not None:
            one.scope = place[0]
            one.at[at] = after[diff.after[0]]
            one.is_changed |= diff.change is not NodeChange.SAME
            theirs[diff.after[0]] = one
            return
    for node_id in diff.before:
        mine[node_id].is_changed = True
    for node_id in diff.after:
        theirs[node_id] = Element({at: after[node_id]}, scopes[node_id], is_changed=True)


def _frame(before: Sequence[Element], after: Sequence[Element], diff: NodeDiff) -> Element:
    """Return the frame around elements that became each other."""
    if len(after) == 1:
        frame, inside = after[0], before
    elif len(before) == 1:
        frame, inside = before[0], after
    else:
        frame, inside = Element(is_changed=True), (*before, *after)
    for one in inside:
        around = one.outermost
        if around is not frame and not around.is_input and around.frame is None:
            around.frame = frame
            frame.inside.append(around)
    called = diff.callee or (frame.node.callee.removeprefix("relax.") if frame.at else "")
    count = f"{len(before)} → {len(after)}"
    if not frame.at:
        count = f"{count} nodes"
    else:
        count = f"⊂ {count}" if len(before) < len(after) else f"⊃ {count}"
    frame.title = called if frame.title else f"{count} {called}".rstrip()
    return frame


def _scopes(stages: Sequence[Graph], steps: Sequence[Sequence[NodeDiff]]) -> list[list[Scope]]:
    """Return the scope of each region of each stage: regions with the same nodes share one.

    A region without a counterpart in another stage may contain a scope there: one that a stage has
    in a dataflow block and the next one without it is in that block's scope. Scopes that a stage
    has are inside of each other exactly as its regions are.
    """
    found: list[list[Scope]] = []
    for at, graph in enumerate(stages):
        known: dict[int, Scope] = {}
        if at:
            partners = _region_pairs(steps[at - 1], stages[at - 1], graph)
            known = {two: found[-1][one] for two, one in partners.items()}
        mine: list[Scope] = []
        for index, region in enumerate(graph.regions):
            scope = known.get(index) or Scope()
            parent = None if region.parent is None else mine[region.parent]
            place = _common_place(scope.parent, scope.regions, parent, at)
            if place is None:
                scope, place = Scope(), (parent,)
            scope.regions[at], scope.parent = region, place[0]
            mine.append(scope)
        found.append(mine)
    return found


def _region_pairs(step: Sequence[NodeDiff], before: Graph, after: Graph) -> dict[int, int]:
    """Return the region before of each region after that has one, by their nodes.

    Those without nodes to tell it correspond if they are of one container, or around regions that
    do.
    """
    partners = block_partners(step, before, after)
    found: dict[int, int] = {}
    taken: set[int] = set()

    def pair(two: int | None, one: int | None) -> bool:
        is_free = two is not None and one is not None and two not in found and one not in taken
        if is_free:
            found[two] = one
            taken.add(one)
        return is_free

    for one, two in reversed(partners.items()):
        pair(two, one)
    ids = {region.id: index for index, region in enumerate(before.regions) if region.id}
    for index, region in enumerate(after.regions):
        pair(index, ids.get(region.id))
    for two, one in [*found.items()]:
        while pair(after.regions[two].parent, before.regions[one].parent):
            two, one = after.regions[two].parent, before.regions[one].parent
    return found


def _common_place(
    known: Scope | None, stages: Collection[int], other: Scope | None, at: int
) -> tuple[Scope | None] | None:
    """Return where something is that some stages have in one scope and another one in another.

    It is the inner one of both, if no stage has a scope around it that it is not in there.
    """
    if known is other or not stages:
        return (other,)
    if _contains(other, known):
        is_free = all(at not in one.regions for one in _between(known, other))
        return (known,) if is_free else None
    if _contains(known, other):
        is_free = not any(one.regions.keys() & stages for one in _between(other, known))
        return (other,) if is_free else None
    return None


def _between(inner: Scope | None, outer: Scope | None) -> Iterator[Scope]:
    """Yield a scope and those around it, up to one that is around them."""
    while inner is not None and inner is not outer:
        yield inner
        inner = inner.parent


def _place_of_input(known: Element, node: Node, scope: Scope | None) -> tuple[Scope | None] | None:
    """Return the scope around a constant's own, as no block binds it; a parameter stays in its own.

    So a parameter that becomes a constant does not enter the block that uses it.
    """
    outer = known.scope
    while outer is not None and not _contains(outer, scope):
        outer = outer.parent
    was_param = any(one.kind is NodeKind.PARAM for one in known.at.values())
    is_param = node.kind is NodeKind.PARAM
    moves = (was_param and outer is not known.scope) or (is_param and outer is not scope)
    return None if moves else (outer,)


def _contains(scope: Scope | None, inner: Scope | None) -> bool:
    """Return whether a scope is another one, or around it; None is the function itself."""
    return scope is None or any(one is scope for one in _between(inner, None))


def _kept_frames(frames: Iterable[Element]) -> list[Element]:
    """Return the frames around elements of one region; the others are dissolved."""
    kept = []
    for frame in frames:  # inner frames come before outer ones
        scopes = {one.scope for one in frame.inside}
        place = None
        if len(scopes) == 1:
            place = _common_place(frame.scope, frame.at, scopes.pop(), min(frame.inside[0].at))
        if place is not None:
            frame.scope = place[0]
            kept.append(frame)
        else:
            for one in frame.inside:
                one.frame = None
            frame.inside = []
    return kept


def _number(elements: UnionElements) -> None:
    """Set the order: that of the last stage, with other elements after what they followed."""
    order = list(dict.fromkeys(elements.of[-1].values()))
    for of in reversed(elements.of[:-1]):
        known = set(order)
        behind: dict[Element | None, list[Element]] = {}
        anchor: Element | None = None
        for one in of.values():
            if one in known:
                anchor = one
            else:
                behind.setdefault(anchor, []).append(one)
        first = behind.pop(None, [])
        order = [*first, *(each for one in order for each in (one, *behind.get(one, ())))]
    for number, one in enumerate(order):
        one.order = number
    last = len(elements.stages) - 1
    for frame in elements.frames:
        if last not in frame.at:
            frame.order = max(one.order for one in frame.inside)
