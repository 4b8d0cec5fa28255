"""What became of the blocks, loops and buffers of a PrimFunc."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import NamedTuple

from irviz.model.diff.canonical_names import Names
from irviz.model.diff.diff_result import (
    Aspect,
    BlockDiff,
    BufferDiff,
    Difference,
    LoopChange,
    LoopGroup,
    LoopNestDiff,
)
from irviz.model.diff.longest_increasing import longest_increasing
from irviz.model.diff.size_renaming import Renaming
from irviz.model.loop_nest import (
    Block,
    Buffer,
    Loop,
    LoopKind,
    LoopNest,
    LoopNode,
    Scalar,
    Statement,
    walk,
)
from irviz.model.matching.node_matching import MatchedBy

_WORD = re.compile(r"[^\W\d]\w*")


class _Place(NamedTuple):
    """A block, with the loops around it, outermost first, and its position in the text."""

    block: Block
    loops: tuple[Loop, ...]
    number: int


def diff_loop_nests(before: LoopNest, after: LoopNest) -> LoopNestDiff:
    """Return what became of the blocks, loops and buffers of a PrimFunc.

    Blocks are matched by unique name, then by the buffers they write, then by what they compute.
    Loops are matched by the axes of the block that they iterate over.
    """
    mine, theirs = _places(before), _places(after)
    pairs = _matched_blocks(mine, theirs)
    buffers = _matched_buffers(before, after, pairs)
    renaming = Renaming(*(Names(sorted(_names(nest))) for nest in (before, after)))
    for name, other in buffers.items():
        renaming.is_equal(name, other)
    unmatched = list(_unmatched_blocks(mine, theirs, pairs))
    moved = _moved([*pairs, *_split_pairs(unmatched, mine, theirs)])
    blocks = [
        _block_diff(one, two, by, renaming.copy(), is_moved=two.number in moved)
        for one, two, by in pairs
    ]
    blocks += unmatched
    here = {place.block.id: (place.number, 1) for place in mine}
    there = {place.block.id: (place.number, 0) for place in theirs}
    blocks.sort(key=lambda diff: there[diff.after[0]] if diff.after else here[diff.before[0]])
    return LoopNestDiff(
        tuple(blocks),
        tuple(_buffer_diffs(before, after, buffers)),
        tuple(_statements(before, after)),
    )


def _places(nest: LoopNest) -> list[_Place]:
    """Return the blocks in the order of the text; a nested block has the loops around both."""
    found: list[_Place] = []

    def visit(nodes: Iterable[LoopNode], loops: tuple[Loop, ...]) -> None:
        for node in nodes:
            match node:
                case Loop():
                    visit(node.children, (*loops, node))
                case Block():
                    found.append(_Place(node, loops, len(found)))
                    visit((*node.init, *node.children), loops)
                case _:
                    visit(node.children, loops)

    visit(nest.body, ())
    return found


def _names(nest: LoopNest) -> frozenset[str]:
    """Return all names that a PrimFunc defines."""
    found = {one.name for one in (*nest.parameters, *nest.temporaries)}
    for node in walk(nest):
        if isinstance(node, Loop):
            found.add(node.variable)
        elif isinstance(node, Block):
            found |= {axis.name for axis in node.axes}
            found |= {match.buffer.name for match in node.matches}
    return frozenset(found)


_Pairs = list[tuple[_Place, _Place, MatchedBy]]


def _matched_blocks(mine: Sequence[_Place], theirs: Sequence[_Place]) -> _Pairs:
    pairs: _Pairs = []
    keys = (
        (lambda place: place.block.name, MatchedBy.NAME),
        (lambda place: tuple(each.buffer for each in place.block.writes), MatchedBy.USE),
        (lambda place: _computation(place.block), MatchedBy.STRUCTURE),
    )
    for key, by in keys:
        done = {one.number for one, _, _ in pairs}, {two.number for _, two, _ in pairs}
        sides: list[dict[object, list[_Place]]] = [{}, {}]
        for side, places, taken in zip(sides, (mine, theirs), done, strict=True):
            for place in places:
                if place.number not in taken:
                    side.setdefault(key(place), []).append(place)
        for value, here in sides[0].items():
            there = sides[1].get(value, [])
            is_certain = len(here) == len(there) and (len(here) == 1 or by is MatchedBy.STRUCTURE)
            if value and is_certain:
                pairs += [(one, two, by) for one, two in zip(here, there, strict=True)]
    return sorted(pairs, key=lambda pair: pair[1].number)


def _computation(block: Block) -> object:
    """Return what a block computes, with its names replaced by their order of appearance."""
    order: dict[str, int] = {}
    texts = [getattr(node, "text", "") for node in (*block.init, *block.children)]
    axes = [(axis.kind, axis.extent) for axis in block.axes]

    def number(found: re.Match[str]) -> str:
        return f"_{order.setdefault(found[0], len(order))}"

    return tuple(axes), tuple(_WORD.sub(number, text) for text in texts)


def _block_diff(
    one: _Place,
    two: _Place,
    by: MatchedBy,
    renaming: Renaming,
    *,
    is_moved: bool,
) -> BlockDiff:
    mine, theirs = one.block, two.block
    texts = {
        Aspect.NAME: ("", "") if mine.name == theirs.name else (mine.name, theirs.name),
        Aspect.AXES: (_axes(mine), _axes(theirs)),
        Aspect.STATEMENT: (_body(mine), _body(theirs)),
        Aspect.READS: tuple(", ".join(map(str, each.reads)) for each in (mine, theirs)),
        Aspect.WRITES: tuple(", ".join(map(str, each.writes)) for each in (mine, theirs)),
        Aspect.ATTRIBUTE: tuple(str(dict(each.annotations) or "") for each in (mine, theirs)),
    }
    found = [
        Difference(aspect, was, now)
        for aspect, (was, now) in texts.items()
        if not renaming.is_equal(was, now)
    ]
    loops = tuple(_loop_groups(one, two))
    if mine.predicate != theirs.predicate and all(len(g.before) == len(g.after) for g in loops):
        found.append(Difference(Aspect.PREDICATE, mine.predicate, theirs.predicate))
    is_same = not found and all(each.changes == (LoopChange.SAME,) for each in loops)
    change = LoopChange.SAME if is_same else LoopChange.CHANGED
    if is_moved:
        change = LoopChange.MOVED
    return BlockDiff(change, (mine.id,), (theirs.id,), theirs.name, by, tuple(found), loops)


def _axes(block: Block) -> str:
    return ", ".join(f"{axis.name} {axis.kind.value} {axis.extent}" for axis in block.axes)


def _has_axes_of(block: Block, other: Block) -> bool:
    """Return whether two blocks have the same axes, whatever their names are."""
    one, two = ([(axis.kind, axis.extent) for axis in each.axes] for each in (block, other))
    return one == two


def _body(block: Block) -> str:
    """Return the statements of a block, without those of nested blocks."""
    texts = []
    for init, nodes in (("init: ", block.init), ("", block.children)):
        waiting = list(reversed(nodes))
        while waiting:
            node = waiting.pop()
            if not isinstance(node, Block):
                waiting += reversed(node.children)
            if isinstance(node, Statement):
                texts.append(f"{init}{node.text}")
    return "; ".join(texts)


_Loops = tuple[list[Loop], list[Loop]]
"""Loops before and after that belong together."""


def _loop_groups(one: _Place, two: _Place) -> Iterator[LoopGroup]:
    """Return what became of the loops around a block."""
    groups = _loops_by_axes(one, two)
    reordered = _out_of_order(groups, one.loops, two.loops)
    for index, (mine, theirs) in enumerate(groups):
        changes = list(_loop_changes(mine, theirs))
        if index in reordered:
            changes.append(LoopChange.REORDERED)
        yield LoopGroup(
            tuple(each.variable for each in mine),
            tuple(each.variable for each in theirs),
            tuple(dict.fromkeys(changes)) or (LoopChange.SAME,),
            tuple(each.id for each in mine),
            tuple(each.id for each in theirs),
        )


def _loops_by_axes(one: _Place, two: _Place) -> list[_Loops]:
    """Match the loops around a block by the axes whose values they determine."""
    there = _axes_by_variable(one.block, range(len(one.block.axes)))
    back = _axes_by_variable(two.block, _axis_numbers(one.block, two.block))
    left = {loop.variable: loop for loop in one.loops}
    free = {loop.variable: loop for loop in two.loops}
    groups: list[_Loops] = []
    for name in list(left):
        if name in left and name in there:
            axes = _connected(there[name], there, back)
            here = [each for each in left if there.get(each, frozenset()) & axes]
            others = [each for each in free if back.get(each, frozenset()) & axes]
            if others:
                groups.append(([left.pop(one) for one in here], [free.pop(two) for two in others]))
    # loops that no axis depends on, on one side at least, such as those of one iteration
    both = [name for name in left if name in free]
    groups += [([left.pop(name)], [free.pop(name)]) for name in both]
    groups += [([loop], []) for loop in left.values()]
    groups += [([], [loop]) for loop in free.values()]
    return groups


def _axes_by_variable(block: Block, numbers: Sequence[int]) -> dict[str, frozenset[int]]:
    """Return the numbers of the axes that each variable is bound to."""
    found: dict[str, set[int]] = {}
    for number, axis in zip(numbers, block.axes, strict=True):
        for word in _WORD.findall(axis.binding):
            found.setdefault(word, set()).add(number)
    return {name: frozenset(axes) for name, axes in found.items()}


def _axis_numbers(before: Block, after: Block) -> Sequence[int]:
    """Return the numbers before of the axes after: by name or, for other names, by position."""
    numbers = {axis.name: number for number, axis in enumerate(before.axes)}
    known = {axis.name for axis in after.axes}
    free = iter([number for name, number in numbers.items() if name not in known])
    new = count(len(before.axes))
    return [
        numbers[axis.name] if axis.name in numbers else next(chain(free, new))
        for axis in after.axes
    ]


def _connected(axes: frozenset[int], *sides: Mapping[str, frozenset[int]]) -> frozenset[int]:
    """Return the axes that share a variable with the given ones, before or after."""
    while True:
        wider = axes.union(*(each for side in sides for each in side.values() if each & axes))
        if wider == axes:
            return axes
        axes = wider


_KIND_CHANGES = {
    LoopKind.THREAD_BINDING: LoopChange.BOUND,
    LoopKind.VECTORIZED: LoopChange.VECTORIZED,
    LoopKind.UNROLLED: LoopChange.UNROLLED,
    LoopKind.PARALLEL: LoopChange.PARALLEL,
    LoopKind.SERIAL: LoopChange.SERIAL,
}


def _loop_changes(mine: Sequence[Loop], theirs: Sequence[Loop]) -> Iterator[LoopChange]:
    if not mine or not theirs:
        yield LoopChange.ADDED if theirs else LoopChange.REMOVED
        return
    if len(mine) < len(theirs):
        yield LoopChange.SPLIT
    elif len(mine) > len(theirs):
        yield LoopChange.FUSED
    elif len(mine) > 1 and [each.extent for each in mine] != [each.extent for each in theirs]:
        yield LoopChange.SPLIT
        yield LoopChange.FUSED
    was = {(each.kind, each.thread) for each in mine}
    for loop in theirs:
        if (loop.kind, loop.thread) not in was and not (
            loop.kind is LoopKind.SERIAL and len(theirs) > 1
        ):
            yield _KIND_CHANGES[loop.kind]
    if len(mine) == len(theirs) == 1:
        (one,), (two,) = mine, theirs
        if (one.start, one.extent, one.step, one.annotations) != (
            two.start,
            two.extent,
            two.step,
            two.annotations,
        ):
            yield LoopChange.CHANGED


def _out_of_order(
    groups: Sequence[_Loops], before: Sequence[Loop], after: Sequence[Loop]
) -> set[int]:
    """Return the groups whose loops are in another order than before."""
    place = {loop.id: index for index, loop in enumerate(before)}
    sequence: dict[str, tuple[int, int]] = {}
    for index, (mine, theirs) in enumerate(groups):
        for number, loop in enumerate(theirs if mine else ()):
            counterpart = mine[number] if len(mine) == len(theirs) else mine[0]
            sequence[loop.id] = place[counterpart.id], index
    ordered = [sequence[loop.id] for loop in after if loop.id in sequence]
    kept = longest_increasing([at * len(ordered) + n for n, (at, _) in enumerate(ordered)])
    return {group for index, (_, group) in enumerate(ordered) if index not in kept}


def _split_pairs(
    diffs: Iterable[BlockDiff], mine: Sequence[_Place], theirs: Sequence[_Place]
) -> _Pairs:
    """Return the blocks that were split, each with the resulting block that has its axes."""
    here = {place.block.id: place for place in mine}
    there = {place.block.id: place for place in theirs}
    found: _Pairs = []
    for diff in diffs:
        if diff.change is LoopChange.SPLIT:
            one = here[diff.before[0]]
            made = [there[each] for each in diff.after]
            two = next((each for each in made if _has_axes_of(each.block, one.block)), None)
            found += [(one, two, MatchedBy.USE)] if two else []
    return found


def _moved(pairs: _Pairs) -> set[int]:
    """Return the resulting blocks that entered or left the loops of another, or changed order."""
    moved: set[int] = set()
    nests: dict[str, list[tuple[_Place, _Place]]] = {}
    for one, two, _ in pairs:
        if two.loops:
            nests.setdefault(two.loops[0].id, []).append((one, two))
    homes: dict[str, str] = {}
    for nest, places in nests.items():
        owner = _owner(places)
        for one, two in places:
            home = one.loops[0].id if one.loops else ""
            if home != owner or homes.setdefault(home, nest) != nest:
                moved.add(two.number)
    ordered = sorted(pairs, key=lambda pair: pair[1].number)
    kept = longest_increasing([one.number for one, _, _ in ordered])
    return moved | {two.number for index, (_, two, _) in enumerate(ordered) if index not in kept}


def _owner(places: Sequence[tuple[_Place, _Place]]) -> str:
    """Return the outermost loop, before the change, of the block that owned a loop nest.

    That block is the one from whose loops most of the now shared loops, and its own, have derived
    names. Of several it is the last, because a block usually moves into the loops of the block that
    uses it.
    """
    shared = {loop.variable for loop in places[0][1].loops}
    for _, two in places:
        shared &= {loop.variable for loop in two.loops}

    def score(place: tuple[_Place, _Place]) -> tuple[int, int]:
        one, two = place
        names = [loop.variable for loop in one.loops]
        own = [is_made_of(loop.variable, names) for loop in two.loops]
        return sum(is_made_of(name, names) for name in shared), -own.count(False)

    one, _ = max(reversed(places), key=score)
    return one.loops[0].id if one.loops else ""


def is_made_of(variable: str, sources: Iterable[str]) -> bool:
    """Return whether a loop's name is derived from one of these, as `i_0` is from `i`."""
    return any(variable == each or variable.startswith(f"{each}_") for each in sources)


def _unmatched_blocks(
    mine: Sequence[_Place], theirs: Sequence[_Place], pairs: _Pairs
) -> Iterator[BlockDiff]:
    done = {one.number for one, _, _ in pairs}, {two.number for _, two, _ in pairs}
    gone = [place for place in mine if place.number not in done[0]]
    new = {place.number: place for place in theirs if place.number not in done[1]}
    written = {each.buffer for place in theirs for each in place.block.writes}
    writers: dict[str, list[int]] = {}
    for place in new.values():
        for access in place.block.writes:
            writers.setdefault(access.buffer, []).append(place.number)
    for place in gone:
        block = place.block
        buffers = {each.buffer for each in block.writes}
        numbers = {each for buffer in buffers for each in writers.get(buffer, ()) if each in new}
        if len(numbers) > 1:  # such as an initialisation that became a block of its own
            made = [new.pop(each) for each in sorted(numbers)]
            ids = tuple(each.block.id for each in made)
            same = (one for one in made if _has_axes_of(one.block, block))
            loops = next((tuple(_loop_groups(place, one)) for one in same), ())
            by = MatchedBy.USE
            yield BlockDiff(LoopChange.SPLIT, (block.id,), ids, block.name, by, (), loops)
            continue
        # TVM inlines no reductions
        is_inlined = bool(buffers and theirs) and not block.init and not buffers & written
        change = LoopChange.INLINED if is_inlined else LoopChange.REMOVED
        yield BlockDiff(change, (block.id,), (), block.name)
    for place in new.values():
        yield BlockDiff(LoopChange.ADDED, (), (place.block.id,), place.block.name)


def _matched_buffers(before: LoopNest, after: LoopNest, pairs: _Pairs) -> dict[str, str]:
    """Match buffers: parameters by position, others by the blocks that write them, or by name."""
    mine = {one.name for one in (*before.parameters, *before.temporaries)}
    theirs = {one.name for one in (*after.parameters, *after.temporaries)}
    found: dict[str, str] = {}
    taken: set[str] = set()

    def pair(one: str, other: str) -> None:
        if one in mine and other in theirs and one not in found and other not in taken:
            found[one] = other
            taken.add(other)

    if len(before.parameters) == len(after.parameters):
        for param, other in zip(before.parameters, after.parameters, strict=True):
            pair(param.name, other.name)
    for name in sorted(mine & theirs):
        pair(name, name)
    for one, two, _ in pairs:
        for access, other_access in zip(one.block.writes, two.block.writes, strict=False):
            pair(access.buffer, other_access.buffer)
    return found


def _buffer_diffs(
    before: LoopNest, after: LoopNest, pairs: Mapping[str, str]
) -> Iterator[BufferDiff]:
    mine = {one.name: one for one in (*before.parameters, *before.temporaries)}
    theirs = {one.name: one for one in (*after.parameters, *after.temporaries)}
    for name, one in mine.items():
        if name not in pairs:
            yield BufferDiff(LoopChange.REMOVED, name, "")
            continue
        differences = tuple(_buffer_differences(one, theirs[pairs[name]]))
        change = LoopChange.CHANGED if differences else LoopChange.SAME
        yield BufferDiff(change, name, pairs[name], differences)
    matched = set(pairs.values())
    for name in theirs:
        if name not in matched:
            yield BufferDiff(LoopChange.ADDED, "", name)


def _buffer_differences(one: Buffer | Scalar, two: Buffer | Scalar) -> Iterator[Difference]:
    parts = {"shape": Aspect.SHAPE, "dtype": Aspect.DTYPE, "scope": Aspect.SCOPE}
    for part, aspect in parts.items():
        was, now = getattr(one, part, ""), getattr(two, part, "")
        if was != now:
            yield Difference(aspect, was, now)


def _statements(before: LoopNest, after: LoopNest) -> Iterator[Difference]:
    """Yield the statements outside of blocks, and their loops, that only one side has."""
    mine, theirs = Counter(_outside(before.body)), Counter(_outside(after.body))
    for text in (mine - theirs).elements():
        yield Difference(Aspect.STATEMENT, text, "")
    for text in (theirs - mine).elements():
        yield Difference(Aspect.STATEMENT, "", text)


def _outside(nodes: Iterable[LoopNode]) -> Iterator[str]:
    for node in nodes:
        match node:
            case Block():
                pass
            case Loop():
                if not _contains_block(node):
                    yield _header(node)
                yield from _outside(node.children)
            case Statement():
                yield node.text
                yield from _outside(node.children)


def _contains_block(node: LoopNode) -> bool:
    return isinstance(node, Block) or any(map(_contains_block, node.children))


def _header(loop: Loop) -> str:
    step = "" if loop.step == "1" else f", step {loop.step}"
    notes = "".join(f", {name}: {value}" for name, value in loop.annotations)
    thread = f" {loop.thread}" if loop.thread else ""
    end = f"{loop.start}, {loop.extent}"
    return f"{loop.kind.value}{thread} loop {loop.variable} ({end}{step}{notes})"
