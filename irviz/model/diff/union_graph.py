"""One graph of several stages of a function, in which an unchanged node occurs once.

Pictures that take their positions from one layout of it show each unchanged node in the same place;
Archambault, Purchase and Pinaud, "Difference Map Readability for Dynamic Graphs" (2010) call such a
graph a difference map, and Diehl and Görg, "Graphs, They Are Changing" (2002) a supergraph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from irviz.gc_pause import gc_paused
from irviz.model.diff.diff_result import Aspect, ChangeKind, NodeDiff
from irviz.model.folding.group_tree import ContainerTree, container_tree, writes_into_buffers
from irviz.model.graph.graph import Edge, Graph, Node, NodeId, NodeKind, Region, RegionKind, grouped

_MAX_UNFOLDED = 24
"""In functions with more bindings than this, long runs of unchanged ones are drawn as one node."""
_MIN_RUN = 4


@dataclass(frozen=True, eq=False)
class UnionGraph:
    """The graph of several stages.

    A node that became several, or that several became, is a region around these instead of a node.

    Attributes:
        nodes: For each stage, the node of `graph` for each node of the stage.
        frames: For each stage, the index of the region for each of the other nodes.
        edges: For each stage, the edge of `graph` along which each edge of the stage runs.
        outputs: For each stage, the node of `graph` for each of its outputs.
        regions: For each stage, the index of the region of `graph` for each of its regions.
    """

    graph: Graph
    stages: Sequence[Graph]
    nodes: Sequence[Mapping[NodeId, NodeId]]
    frames: Sequence[Mapping[NodeId, int]]
    edges: Sequence[Sequence[Edge]]
    outputs: Sequence[Sequence[NodeId]]
    regions: Sequence[Mapping[int, int]]

    @cached_property
    def tree(self) -> ContainerTree:
        """The containers of `graph`, which take long to find in a large one."""
        are_lowered = all(map(writes_into_buffers, self.stages))
        return container_tree(self.graph, folds_calls=are_lowered)


@gc_paused()
def union_graph(
    stages: Sequence[Graph], steps: Sequence[Sequence[NodeDiff]], *, folds: bool = True
) -> UnionGraph:
    """Return the graph of several stages of a function, in linear time.

    Args:
        stages: The graphs, at least one.
        steps: What became of each node between a stage and the next one.
        folds: Whether long runs of unchanged nodes of a large function are regions.
    """
    elements = union_elements(stages, steps)
    writer = _Writer(elements, folds=folds)
    writer.write()
    ids, places = writer.ids, {node.id: number for number, node in enumerate(writer.nodes)}
    edges = _Edges(elements, ids)
    drawn = [edges.along(at) for at in range(len(stages))]
    outputs = [
        [ids[elements.of[at][one].last_leaf] for one in stage.outputs]
        for at, stage in enumerate(stages)
    ]
    graph = Graph(
        stages[-1].function,
        tuple(writer.nodes),
        tuple(sorted(edges.found.values(), key=lambda edge: (places[edge.target], edge.position))),
        tuple(writer.regions),
        tuple(dict.fromkeys(one for each in outputs for one in each)),
        attributes=stages[-1].attributes,
    )
    nodes = [{one: ids[two] for one, two in of.items() if two in ids} for of in elements.of]
    frames = [
        {one: writer.region_of[two] for one, two in of.items() if two in writer.region_of}
        for of in elements.of
    ]
    regions = [
        {
            index: writer.owners[scope]
            for index, scope in enumerate(each)
            if scope in writer.owners and _has_frame(stage.regions[index])
        }
        for stage, each in zip(stages, elements.scopes, strict=True)
    ]
    return UnionGraph(graph, stages, nodes, frames, drawn, outputs, regions)


class _Writer:
    """Writes nodes and regions, outermost first.

    `ids` has the nodes of elements, `region_of` the regions of frames, `owners` those of scopes.
    """

    def __init__(self, elements: UnionElements, *, folds: bool) -> None:
        self.elements = elements
        self.nodes: list[Node] = []
        self.regions: list[Region] = []
        self.ids: dict[Element, NodeId] = {}
        self.region_of: dict[Element, int] = {}
        self._taken: set[NodeId] = set()
        self.owners: dict[Scope, int] = {}
        self._tops = grouped((one.scope, one) for one in elements if one.frame is None)
        self._inner = _inner_scopes(self._tops)
        self._ends: dict[Scope, int] = {}
        bound = [one for one in elements if not one.inside and not one.is_input]
        self._folds = (
            folds and len(bound) > _MAX_UNFOLDED and not elements.unchanged.issuperset(bound)
        )
        self._near = _near_changes(elements) if self._folds else set()

    def write(self) -> None:
        """Write everything."""
        self._write_scope(None, None)
        for scope, index in self.owners.items():
            at = max(scope.regions)
            owner = scope.regions[at].owner
            node = self.ids.get(self.elements.of[at][owner]) if owner is not None else None
            self.regions[index] = self.regions[index]._replace(owner=node)

    def _write_scope(self, scope: Scope | None, region: int | None) -> None:
        """Write what is in a scope in the order of the text; an owner follows its regions."""
        items: list[tuple[int, int, Element | Scope]] = [
            *((one.order, 1, one) for one in self._tops.get(scope, ())),
            *((self._end(one), 0, one) for one in self._inner.get(scope, ())),
        ]
        items.sort(key=lambda item: item[:2])
        run: list[Element] = []
        for _, _, item in items:
            if isinstance(item, Element) and self._may_fold(item):
                run.append(item)
                continue
            self._write_run(run, region)
            run = []
            if isinstance(item, Element):
                self._write_element(item, region)
            else:
                last = item.regions[max(item.regions)]
                self.owners[item] = self._add_region(last._replace(parent=region, owner=None))
                self._write_scope(item, self.owners[item])
        self._write_run(run, region)

    def _may_fold(self, one: Element) -> bool:
        is_plain = one in self.elements.unchanged and one not in self._near
        return self._folds and (is_plain or one.is_input)

    def _write_run(self, run: Sequence[Element], region: int | None) -> None:
        """Write consecutive unchanged elements, as one region if there are many."""
        count, inner = sum(not one.is_input for one in run), region
        if count >= _MIN_RUN:
            inner = self._add_region(Region(RegionKind.UNCHANGED, f"{count} unchanged", region))
        for one in run:
            self._write_element(one, region if one.is_input else inner)

    def _write_element(self, one: Element, region: int | None) -> None:
        if one.inside:
            self.region_of[one] = self._add_region(Region(RegionKind.FUSED, one.title, region))
            for each in sorted(one.inside, key=lambda each: each.order):
                self._write_element(each, self.region_of[one])
            return
        name = one.node.id
        while name in self._taken:
            name = NodeId(f"{name}'")
        self._taken.add(name)
        self.ids[one] = name
        looks = tuple((at, each.kind, each.structure) for at, each in one.at.items())
        structure = hash((looks, one.is_changed))
        node = one.node._replace(id=name, region=region, structure=structure)
        if any(each.kind is NodeKind.PARAM for each in one.at.values()):
            node = node._replace(kind=NodeKind.PARAM)  # also bound: no block has a parameter
        self.nodes.append(node)

    def _add_region(self, region: Region) -> int:
        self.regions.append(region)
        return len(self.regions) - 1

    def _end(self, scope: Scope) -> int:
        """Return the place of the last element in a scope."""
        if scope not in self._ends:
            inner = [self._end(one) for one in self._inner.get(scope, ())]
            own = [one.order for one in self._tops.get(scope, ())]
            self._ends[scope] = max(*inner, *own, -1, -1)
        return self._ends[scope]


def _inner_scopes(tops: Mapping[Scope | None, object]) -> dict[Scope | None, list[Scope]]:
    """Return the scopes that are directly in each scope, of those with an element."""
    used = dict.fromkeys(one for scope in tops for one in _between(scope, None))
    return grouped((scope.parent, scope) for scope in used)


def _near_changes(elements: UnionElements) -> set[Element]:
    """Return the elements that use a value of a changed one, or make one that it uses."""
    near: set[Element] = set()
    for of, graph in zip(elements.of, elements.stages, strict=True):
        for edge in graph.edges:
            source, target = of[edge.source], of[edge.target]
            if source not in elements.unchanged:
                near.add(target)
            if target not in elements.unchanged:
                near.add(source)
    return near


class _Edges:
    """Finds the edges of all stages."""

    def __init__(self, elements: UnionElements, ids: Mapping[Element, NodeId]) -> None:
        self.found: dict[tuple[NodeId, NodeId, tuple[int, ...]], Edge] = {}
        self._elements, self._ids = elements, ids
        self._between: dict[tuple[Element, Element], list[Edge]] = {}
        for at, graph in enumerate(elements.stages):
            for edge in graph.edges:
                source, target = self._ends(at, edge)
                if not source.inside and not target.inside:
                    self._add(source, target, edge)

    def along(self, at: int) -> list[Edge]:
        """Return the edge along which each edge of a stage runs.

        An edge of a frame runs along one of a node inside, if there is one, as what was fused used
        the same value.
        """
        drawn = []
        served: Counter[tuple[Element, Element]] = Counter()
        for edge in self._elements.stages[at].edges:
            source, target = self._ends(at, edge)
            there = self._between.get((source, target))
            if not (source.inside or target.inside):
                drawn.append(self.found[self._ids[source], self._ids[target], edge.position])
            elif there:
                drawn.append(there[min(served[source, target], len(there) - 1)])
                served[source, target] += 1
            else:
                drawn.append(self._add(source.last_leaf, target.last_leaf, edge))
        return drawn

    def _ends(self, at: int, edge: Edge) -> tuple[Element, Element]:
        of = self._elements.of[at]
        return of[edge.source], of[edge.target]

    def _add(self, source: Element, target: Element, edge: Edge) -> Edge:
        key = (self._ids[source], self._ids[target], edge.position)
        if key not in self.found:
            self.found[key] = edge._replace(source=key[0], target=key[1])
            if source.frame or target.frame:
                for ends in product(_around(source), _around(target)):
                    self._between.setdefault(ends, []).append(self.found[key])
        return self.found[key]


def _around(one: Element) -> list[Element]:
    """Return an element and the frames around it."""
    found = [one]
    while found[-1].frame is not None:
        found.append(found[-1].frame)
    return found


# --- Merge the nodes of several stages, and find the frames and regions that contain them --------


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
        title: The title of the frame, with counts if it belongs to a single step.
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
        return bool(self.at) and self.node.is_input

    @property
    def last_leaf(self) -> Element:
        """The last element inside that is not a frame, or the element itself."""
        found = self
        while found.inside:
            found = found.inside[-1]
        return found


@dataclass(frozen=True, eq=False)
class UnionElements:
    """The elements of several stages, by stage and node; `frames` are those that are frames.

    `scopes` has, for each stage, the innermost scope of each region: none is of a plain block.
    """

    stages: Sequence[Graph]
    of: Sequence[Mapping[NodeId, Element]]
    frames: Sequence[Element]
    scopes: Sequence[Sequence[Scope | None]]

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


def _is_moved(diff: NodeDiff) -> bool:
    """Return whether nodes moved to another block."""
    return any(one.aspect is Aspect.BLOCK for one in diff.differences)


def _relate(
    diff: NodeDiff,
    mine: Mapping[NodeId, Element],
    theirs: dict[NodeId, Element],
    after: Graph,
    at: int,
    scopes: Mapping[NodeId, Scope | None],
) -> None:
    """Add the nodes that a difference leads to in the next stage, which are in these scopes."""
    if _is_in_place(diff) and not _is_moved(diff):  # what moved stands elsewhere
        one, scope = mine[diff.before[0]], scopes[diff.after[0]]
        place = _common_place(one.scope, one.at, scope, at)
        if place is None and one.is_input:
            place = _place_of_input(one, after[diff.after[0]], scope)
        if place is not None:
            one.scope = place[0]
            one.at[at] = after[diff.after[0]]
            one.is_changed |= diff.change is not ChangeKind.SAME
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
        around = _around(one)[-1]
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


def _scopes(
    stages: Sequence[Graph], steps: Sequence[Sequence[NodeDiff]]
) -> list[list[Scope | None]]:
    """Return the scope of each region of each stage: regions with the same nodes share one.

    A region without a counterpart in another stage may contain a scope there, or be inside of one:
    a layer that is in a dataflow block in one stage is in that block's scope, and so are the blocks
    that a pass merges. Scopes that a stage has are inside of each other as its regions are.
    """
    found: list[list[Scope | None]] = []
    for at, graph in enumerate(stages):
        same: Mapping[int, int] = {}
        merged: Mapping[int, Sequence[int]] = {}
        parts: Mapping[int, int] = {}
        if at:
            same, merged, parts = _region_relations(steps[at - 1], stages[at - 1], graph)
        mine: list[Scope | None] = []
        for index, region in enumerate(graph.regions):
            parent = None if region.parent is None else mine[region.parent]
            if not _has_frame(region):
                mine.append(parent)
                continue
            scope = (found[-1][same[index]] if index in same else None) or Scope()
            known = found[-1][parts[index]] if index in parts else scope.parent
            around = scope.regions or (known.regions if known else {})
            place = _common_place(known, around, parent, at)
            if place is None:
                scope, place = Scope(), (parent,)
            scope.regions[at], scope.parent = region, place[0]
            for one in merged.get(index, ()):
                inner = found[-1][one]
                if inner is not None and inner.parent is scope.parent:
                    inner.parent = scope
            mine.append(scope)
        found.append(mine)
    return found


def _has_frame(region: Region) -> bool:
    return region.kind is not RegionKind.BINDING_BLOCK


def _region_relations(
    step: Sequence[NodeDiff], before: Graph, after: Graph
) -> tuple[dict[int, int], dict[int, list[int]], dict[int, int]]:
    """Return how the regions of two stages correspond, of those of a kind, by the nodes in them.

    Regions without nodes to tell it correspond if they are of one container, or have the same
    parameters.

    Returns:
        The region before of each region after that is the same, those before that are in a larger
        one, and the one before that a smaller one is in.
    """
    shared, inputs = _shared_nodes(step, before, after)
    both, mine, theirs = Counter[tuple[int, int]](), Counter[int](), Counter[int]()
    for (ones, twos), count in shared.items():
        mine.update(dict.fromkeys(ones, count))
        theirs.update(dict.fromkeys(twos, count))
        both.update(dict.fromkeys(product(ones, twos), count))
    alike = [
        (one, two, count)
        for (one, two), count in sorted(both.items())
        if after.regions[two].kind is before.regions[one].kind
    ]
    # a region that lost some nodes and got others is the same; else one may be in the other
    likely = [
        (one, two)
        for one, two, count in alike
        if (count == mine[one]) is (count == theirs[two])
        and 2 * count > max(mine[one], theirs[two])
    ]
    ids = {(one.id, one.kind): index for index, one in enumerate(before.regions) if one.id}
    named = [(ids.get((one.id, one.kind), -1), index) for index, one in enumerate(after.regions)]
    untold = [(one, two) for one, two in (*named, *inputs) if one >= 0]
    likely += [(one, two) for one, two in untold if not mine[one] or not theirs[two]]
    same: dict[int, int] = {}
    for one, two in likely:
        if two not in same and one not in same.values():
            same[two] = one
    left = [each for each in alike if each[1] not in same and each[0] not in same.values()]
    merged = grouped((two, one) for one, two, count in left if count == mine[one])
    parts = {two: one for one, two, count in left if mine[one] > count == theirs[two]}
    return same, merged, parts


def _shared_nodes(
    step: Sequence[NodeDiff], before: Graph, after: Graph
) -> tuple[Counter[tuple[tuple[int, ...], tuple[int, ...]]], list[tuple[int, int]]]:
    """Count the nodes that stay, by the regions around them; pair the regions around inputs."""
    found = Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
    inputs: list[tuple[int, int]] = []
    for diff in step:
        if _is_in_place(diff) and not _is_moved(diff):
            was, now = before[diff.before[0]], after[diff.after[0]]
            around = _framed(before, was.region), _framed(after, now.region)
            if was.is_input or now.is_input:
                inputs += [
                    (one, two)
                    for one, two in product(*around)
                    if before.regions[one].kind is after.regions[two].kind
                ]
            else:
                found[around] += 1
    return found, inputs


def _framed(graph: Graph, region: int | None) -> tuple[int, ...]:
    """Return the regions with frames around something in a region."""
    around = graph.regions_around(region)
    return tuple(one for one in around if _has_frame(graph.regions[one]))


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
    around = _between(known.scope, None)
    outer = next((one for one in around if _contains(one, scope)), None)
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
