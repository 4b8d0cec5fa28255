"""Compose the relations between the nodes of a function over two consecutive steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from irviz.model.diff.diff_result import Part
from irviz.model.diff.node_links import NodeLinks, outermost
from irviz.model.graph.graph import NodeId
from irviz.model.graph.inlined_ids import SEPARATOR, inlined_id
from irviz.model.matching.node_matching import MatchedBy

Ends = dict[NodeId, list[NodeId]]
"""The nodes of one side that correspond to each node of the other."""


@dataclass(frozen=True, eq=False)
class Step:
    """The relation over one step, including nodes inside of called functions.

    Attributes:
        inside: Returns the step between the callees of two corresponding calls, None if unknown.
    """

    links: NodeLinks
    inside: Callable[[NodeId, NodeId], Step | None] = lambda _, __: None

    @cached_property
    def whole(self) -> list[tuple[NodeId, NodeId]]:
        """The pairs of nodes that correspond as a whole, rather than by their contents."""
        parts = self.links.parts
        explained = {(outermost(part.before), outermost(part.after)) for part in parts}
        return [pair for pair in self.links.pairs if pair not in explained]

    @cached_property
    def pairs(self) -> list[tuple[NodeId, NodeId]]:
        """The pairs of corresponding nodes, with nodes inside of calls in place of the calls."""
        return [*self.whole, *((part.before, part.after) for part in self.links.parts)]

    @cached_property
    def ends(self) -> tuple[Ends, Ends]:
        """The partners, by node before and by node after."""
        return _ends(self.pairs)

    @cached_property
    def whole_ends(self) -> tuple[Ends, Ends]:
        """The partners that correspond as a whole, by node before and by node after."""
        return self.ends if not self.links.parts else _ends(self.whole)

    def follow(self, node_id: NodeId, *, back: bool = False) -> Iterator[tuple[NodeId, bool]]:
        """Yield what a node became, or with `back` what it was, and whether that is exact.

        For a node inside of a call, it may be the whole call.
        """
        exact = self.ends[back].get(node_id)
        if exact:
            yield from ((each, True) for each in exact)
            return
        call, separator, rest = node_id.partition(SEPARATOR)
        for other in self.whole_ends[back].get(NodeId(call), ()) if separator else ():
            pair = (other, NodeId(call)) if back else (NodeId(call), other)
            inner = self.inside(*pair)
            within = list(inner.follow(NodeId(rest), back=back)) if inner else []
            for each, is_exact in within:
                yield inlined_id(other, each), is_exact
            if not within:
                yield other, False


def compose_steps(first: Step, second: Step) -> Step:
    """Return the relation over two steps, one after the other."""
    composed = cache(compose_steps)  # many calls are of one function

    @cache
    def inside(before: NodeId, after: NodeId) -> Step | None:
        for middle in first.whole_ends[0].get(before, ()):
            if after in second.whole_ends[0].get(middle, ()):
                mine, theirs = first.inside(before, middle), second.inside(middle, after)
                if mine is not None and theirs is not None:
                    return composed(mine, theirs)
        return None

    return Step(_composed_links(first, second), inside)


def _composed_links(first: Step, second: Step) -> NodeLinks:
    pairs: dict[tuple[NodeId, NodeId], MatchedBy] = {}
    parts: dict[tuple[NodeId, NodeId], None] = {}
    known = (first.links.pairs, second.links.pairs)
    for before, middle, after, is_exact in _joined(first, second):
        is_part = not is_exact or SEPARATOR in before or SEPARATOR in after
        if is_part:
            parts[before, after] = None
        hows = known[0].get((before, middle)), known[1].get((middle, after))
        is_known = not is_part and set(hows) == {MatchedBy.KNOWN}
        pair = outermost(before), outermost(after)
        pairs[pair] = MatchedBy.KNOWN if is_known else MatchedBy.STAGES
    opened = first.links.calls_after, second.links.calls_before
    return NodeLinks(
        pairs,
        _values(first, second),
        tuple(Part(*pair, MatchedBy.STAGES) for pair in parts),
        first.links.calls_before
        | {one for one, two in first.links.pairs if two in opened[1] - opened[0]},
        second.links.calls_after
        | {two for one, two in second.links.pairs if one in opened[0] - opened[1]},
    )


def _joined(first: Step, second: Step) -> Iterator[tuple[NodeId, NodeId, NodeId, bool]]:
    """Yield what each node became through an intermediate node, and whether that is exact."""
    for before, middle in first.pairs:
        for after, is_exact in second.follow(middle):
            yield before, middle, after, is_exact
    for middle, after in second.pairs:
        if SEPARATOR in middle and middle not in first.ends[1]:
            for before, is_exact in first.follow(middle, back=True):
                yield before, middle, after, is_exact


def _values(first: Step, second: Step) -> dict[NodeId, frozenset[NodeId]]:
    """Return the nodes before with the same value, other than partners."""
    mine, theirs = first.links.values, second.links.values
    middles: dict[NodeId, set[NodeId]] = {}
    if mine:
        for middle, after in second.whole:
            if middle in mine:
                middles.setdefault(after, set()).add(middle)
    for after, same in theirs.items():
        middles.setdefault(after, set()).update(same)
    sources = first.whole_ends[1]
    values: dict[NodeId, frozenset[NodeId]] = {}
    for after, others in middles.items():
        found = {each for middle in others for each in mine.get(middle, ())}
        found.update(each for one in theirs.get(after, ()) for each in sources.get(one, ()))
        if found:
            values[after] = frozenset(found)
    return values


def _ends(pairs: Iterable[tuple[NodeId, NodeId]]) -> tuple[Ends, Ends]:
    there: Ends = {}
    back: Ends = {}
    for one, two in pairs:
        there.setdefault(one, []).append(two)
        back.setdefault(two, []).append(one)
    return there, back


def block_links(
    calls: Iterable[tuple[NodeId, Iterable[NodeId]]], blocks: Iterable[NodeId]
) -> list[tuple[NodeId, NodeId]]:
    """Pair the calls in a Relax function with the blocks of the PrimFunc that it became.

    The blocks are in the order of the calls. If the names contradict that, nothing is returned.

    Args:
        calls: Each call of a PrimFunc, with that PrimFunc's blocks.
        blocks: The blocks of the PrimFunc that replaces all of them.
    """
    expected = [(call, block) for call, own in calls for block in own]
    found = list(blocks)
    is_alike = len(expected) == len(found) and all(
        two.startswith(_base(one)) for (_, one), two in zip(expected, found, strict=True)
    )
    if not is_alike:
        return []
    return [(call, block) for (call, _), block in zip(expected, found, strict=True)]


def _base(name: str) -> str:
    """Return the name of a block without the number that makes it unique."""
    return name.partition("#")[0].rstrip("0123456789").removesuffix("_")
