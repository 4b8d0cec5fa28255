"""Which blocks of two loop nests correspond."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from irviz.model.graph.graph import grouped
from irviz.model.loop_nest import Block, Loop, LoopNest, LoopNode, Statement, contains_block, within
from irviz.model.matching.alignment import MatchedBy

WORD = re.compile(r"[^\W\d]\w*")
_INDICES = re.compile(r"\[[^\[\]]+\]")


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a text with other names."""
    return WORD.sub(lambda word: names.get(word[0], word[0]), text)


class Place(NamedTuple):
    """A block, its position in the text, and the blocks and loops around it, outermost first.

    The loops around outer blocks are included. `conditions` are the headings of other statements
    around it, such as `if`, and `inner` the names of the blocks inside of it.
    """

    block: Block
    number: int
    loops: tuple[Loop, ...]
    blocks: tuple[Block, ...]
    conditions: tuple[str, ...]
    inner: tuple[str, ...]


class BlockMatch(NamedTuple):
    """Blocks that correspond: several after for one that was split, several before if fused.

    The last one of each side has the statement, and the loops, of the one on the other side.
    `is_whole` says whether it should visit all that the other visits, and `keeps_statements`
    whether blocks that were split or fused compute the same of each element.
    """

    before: tuple[Place, ...]
    after: tuple[Place, ...]
    by: MatchedBy
    is_whole: bool = True
    keeps_statements: bool = True

    @property
    def main(self) -> tuple[Place, Place]:
        """The blocks whose loops correspond."""
        return self.before[-1], self.after[-1]


def places(nest: LoopNest) -> list[Place]:
    """Return the blocks of a loop nest in the order of the text."""
    blocks = [(one, around) for one, around in within(nest.body) if isinstance(one, Block)]
    return [
        Place(
            block,
            number,
            tuple(one for one in around if isinstance(one, Loop)),
            tuple(one for one in around if isinstance(one, Block)),
            tuple(one.text for one in around if isinstance(one, Statement)),
            tuple(
                one.name
                for one, _ in within((*block.init, *block.children))
                if isinstance(one, Block)
            ),
        )
        for number, (block, around) in enumerate(blocks)
    ]


def defined_names(nest: LoopNest) -> frozenset[str]:
    """Return all names that a PrimFunc defines."""
    found = {one.name for one in (*nest.parameters, *nest.temporaries)}
    for node, _ in within(nest.body):
        if isinstance(node, Loop):
            found.add(node.variable)
        elif isinstance(node, Block):
            found |= {axis.name for axis in node.axes}
            found |= {match.buffer.name for match in node.matches}
    return frozenset(found)


def match_blocks(before: LoopNest, after: LoopNest) -> list[BlockMatch]:
    """Match the blocks of two loop nests, in the order of the text after.

    Blocks are matched by unique name, then by their operation if only one block has it, then by the
    buffers they write, then by operation and axes. Last come the blocks that one of these was split
    into, or fused from.
    """
    mine, theirs = _Side(before), _Side(after)
    pairs: list[tuple[Place, Place, MatchedBy]] = []
    for key, by, may_repeat in _KEYS:
        here, there = mine.left_by(key), theirs.left_by(key)
        for value, ours in here.items():
            others = there.get(value, [])
            is_certain = len(ours) == len(others) and (len(ours) == 1 or may_repeat)
            if value and is_certain:
                found = list(zip(ours, others, strict=True))
                if key is not _operation or all(
                    _buffers(one) & _buffers(two) for one, two in found
                ):
                    pairs += [(one, two, by) for one, two in found]
                    mine.take(ours)
                    theirs.take(others)
    matches = [_with_parts(*pair, mine, theirs) for pair in pairs]
    matches += _without_partner(mine, theirs)
    matches += map(_reversed, _without_partner(theirs, mine))
    return sorted(matches, key=lambda match: match.after[-1].number)


def body_text(block: Block) -> Iterator[str]:
    """Yield the statements and loops of a block, without those of and around nested blocks."""
    yield from (f"init: {text}" for _, text in lines(block.init))
    yield from (text for _, text in lines(block.children))


def lines(
    nodes: Sequence[LoopNode], *, are_all: bool = False
) -> Iterator[tuple[Loop | Statement, str]]:
    """Yield statements and loops with their texts, without those of and around blocks."""
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Block):
            waiting += reversed((*node.init, *node.children) if are_all else ())
            continue
        waiting += reversed(node.children)
        if isinstance(node, Statement):
            yield node, node.text
        elif are_all or not contains_block(node):
            yield node, _header(node)


def _header(loop: Loop) -> str:
    step = "" if loop.step == "1" else f", step {loop.step}"
    notes = "".join(f", {name}: {value}" for name, value in loop.annotations)
    thread = f" {loop.thread}" if loop.thread else ""
    end = f"{loop.start}, {loop.extent}"
    return f"{loop.kind.value}{thread} loop {loop.variable} ({end}{step}{notes})"


def has_axes_of(block: Block, other: Block) -> bool:
    """Return whether two blocks have the same axes, whatever their names are."""
    one, two = ([(axis.kind, axis.extent) for axis in each.axes] for each in (block, other))
    return one == two


def axis_partners(before: Block, after: Block) -> dict[str, str]:
    """Match the axes of two blocks by name, then by kind and order, and the rest by order.

    The axes before are returned by those after.
    """
    there = {axis.name: axis for axis in before.axes}
    found = {axis.name: axis.name for axis in after.axes if there.pop(axis.name, None)}
    left = [axis for axis in after.axes if axis.name not in found]
    for is_any_kind in (False, True):
        for axis in (one for one in left if one.name not in found):
            others = (one for one in there.values() if is_any_kind or one.kind is axis.kind)
            if other := next(others, None):
                found[axis.name] = there.pop(other.name).name
    return found


class _Side:
    """The blocks of one loop nest; `left` are those without a partner."""

    def __init__(self, nest: LoopNest) -> None:
        self.places = places(nest)
        self.names = defined_names(nest)
        self.left = {place.number: place for place in self.places}
        innermost = (place for place in self.places if not place.inner)
        self.writers = grouped(
            (buffer, place) for place in innermost for buffer in set(_written(place))
        )

    def take(self, found: Iterable[Place]) -> None:
        for place in found:
            self.left.pop(place.number)

    def left_by(self, key: _Key) -> dict[object, list[Place]]:
        """Return the blocks without a partner by a key."""
        return grouped((key(place, self.names), place) for place in self.left.values())


_Key = Callable[[Place, Set[str]], object]


def _operation(place: Place, names: Set[str]) -> tuple[str, ...]:
    """Return what a block computes of each element: its statements without names and indices."""
    return _operation_of(place.block.children, names)


def _operation_of(nodes: Sequence[LoopNode], names: Set[str]) -> tuple[str, ...]:
    return tuple(_numbered(_without_indices(_statements(nodes)), names))


def _computation(place: Place, names: Set[str]) -> object:
    """Return what a block computes over which axes, with names replaced."""
    axes = tuple((axis.kind, axis.extent) for axis in place.block.axes)
    return axes, tuple(_numbered(body_text(place.block), names))


_KEYS: Sequence[tuple[_Key, MatchedBy, bool]] = (
    (lambda place, _: place.block.name, MatchedBy.NAME, False),
    (_operation, MatchedBy.STRUCTURE, False),
    (lambda place, _: _written(place), MatchedBy.USE, False),
    (_computation, MatchedBy.STRUCTURE, True),
)
"""What blocks are matched by, and whether several may be alike."""


def _written(place: Place) -> tuple[str, ...]:
    return tuple(access.buffer for access in place.block.writes)


def _buffers(place: Place) -> set[str]:
    return {access.buffer for access in (*place.block.reads, *place.block.writes)}


def _statements(nodes: Sequence[LoopNode]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Statement):
            yield node.text
        if not isinstance(node, Block):
            yield from _statements(node.children)


def _numbered(texts: Iterable[str], names: Set[str]) -> Iterator[str]:
    """Yield texts with names replaced by their order of appearance."""
    order: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        word = found[0]
        return order.setdefault(word, f"_{len(order)}") if word in names else word

    return (WORD.sub(number, text) for text in texts)


def _without_indices(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        count = 1
        while count:
            text, count = _INDICES.subn("", text)
        yield text


def _with_parts(one: Place, two: Place, by: MatchedBy, mine: _Side, theirs: _Side) -> BlockMatch:
    """Return the match of two blocks with the others that either was split into or fused from."""
    made = _parts(one, two, mine, theirs)
    if len(made) > 1:
        return _divided(one, made, mine, theirs)
    made = _parts(two, one, theirs, mine)
    if len(made) > 1:
        return _reversed(_divided(two, made, theirs, mine))
    return BlockMatch((one,), (two,), by)


def _divided(one: Place, made: Sequence[Place], mine: _Side, theirs: _Side) -> BlockMatch:
    """Return the match of a block that was split; the last of several is the main one."""
    operation = _operation(one, mine.names)
    alike = [each for each in made if _operation(each, theirs.names) == operation]
    same = (each for each in made if has_axes_of(each.block, one.block))
    main = next(each for each in (*alike, *same, *reversed(made)))
    others = tuple(each for each in made if each is not main)
    keeps = bool(alike) and _keeps_init(one, others, main, mine.names, theirs.names)
    if keeps and has_axes_of(one.block, main.block):
        keeps = _body(one, mine.names) == _body(main, theirs.names)
    return BlockMatch((one,), (*others, main), MatchedBy.USE, len(alike) == 1, keeps)


def _keeps_init(
    one: Place, others: Sequence[Place], main: Place, names: Set[str], names_after: Set[str]
) -> bool:
    """Return whether the init statement of a block is that of the main one, or another block."""
    init = _operation_of(one.block.init, names)
    if main.block.init or not init:
        return init == _operation_of(main.block.init, names_after)
    return any(init == _operation(other, names_after) for other in others)


def _body(place: Place, names: Set[str]) -> list[str]:
    return list(_numbered(_statements(place.block.children), names))


def _reversed(match: BlockMatch) -> BlockMatch:
    return match._replace(before=match.after, after=match.before)


def _parts(one: Place, two: Place, mine: _Side, theirs: _Side) -> Sequence[Place]:
    """Return the blocks that a block was split into if `two` is one of them.

    Another one fills what `two` updates, such as an initialisation, or does the same for another
    part of it. Or `two` only combines what another one, which has the operation, computes: this is
    what rfactor makes.
    """
    operation = _operation(one, mine.names)
    found = {two.number: two}
    for buffer, own in zip(_written(two), _written(one), strict=False):
        if len(mine.writers.get(own, ())) > 1:
            continue
        for other in theirs.writers.get(buffer, ()):
            reads = {access.buffer for access in other.block.reads}
            is_alike = _operation(other, theirs.names) == operation
            if other.number in theirs.left and (buffer not in reads or is_alike):
                found[other.number] = other
    if len(found) == 1 and one.block.init and _operation(two, theirs.names) != operation:
        for access in two.block.reads:
            for other in theirs.writers.get(access.buffer, ()):
                if other.number in theirs.left and _operation(other, theirs.names) == operation:
                    found[other.number] = other
    theirs.take(each for each in found.values() if each is not two)
    return [found[number] for number in sorted(found)]


def _without_partner(mine: _Side, theirs: _Side) -> Iterator[BlockMatch]:
    """Yield the blocks without a partner whose buffers several new blocks write now."""
    for one in list(mine.left.values()):
        found = {
            other.number: other
            for buffer in _written(one)
            for other in theirs.writers.get(buffer, ())
            if other.number in theirs.left
        }
        if len(found) > 1 and not one.inner:
            mine.take([one])
            theirs.take(found.values())
            yield _divided(one, [found[number] for number in sorted(found)], mine, theirs)
