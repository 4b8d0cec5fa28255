"""What became of the loops around two blocks that correspond."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count

from irviz.model.diff.diff_result import DomainDiff, LoopChange, LoopGroup
from irviz.model.diff.longest_increasing import longest_increasing
from irviz.model.diff.match_blocks import WORD, Place, has_axes_of
from irviz.model.diff.size_renaming import Renaming
from irviz.model.loop_nest import Block, Loop, LoopKind

_Loops = tuple[list[Loop], list[Loop]]
"""Loops before and after that belong together."""


def loop_groups(
    one: Place, two: Place, buffers: Mapping[str, str], renaming: Renaming
) -> Iterator[LoopGroup]:
    """Yield what became of the loops around a block.

    Args:
        one: The block before.
        two: The block after.
        buffers: The names after of the buffers before.
        renaming: The names that correspond.
    """
    groups = _loops_by_axes(one, two, buffers)
    reordered = _out_of_order(groups, one.loops, two.loops)
    for index, (mine, theirs) in enumerate(groups):
        changes = list(_loop_changes(mine, theirs, renaming))
        if index in reordered:
            changes.append(LoopChange.REORDERED)
        yield LoopGroup(
            tuple(each.variable for each in mine),
            tuple(each.variable for each in theirs),
            tuple(dict.fromkeys(changes)) or (LoopChange.SAME,),
            tuple(each.id for each in mine),
            tuple(each.id for each in theirs),
        )


def with_domains(
    groups: Iterable[LoopGroup], domains: Iterable[DomainDiff]
) -> tuple[tuple[LoopGroup, ...], str]:
    """Return groups of loops with what differs in what they visit, and the rest in words."""
    found = list(groups)
    own: dict[int, list[DomainDiff]] = {}
    for domain in domains:
        if domain.words:
            own.setdefault(_group_of(domain, found), []).append(domain)
    rest = own.pop(-1, ())
    for at, differing in own.items():
        if LoopChange.REORDERED in found[at].changes:
            differing = [each for each in differing if not each.is_same]
        found[at] = found[at]._replace(domain=_in_words(differing))
    return tuple(found), _in_words(rest)


def _group_of(domain: DomainDiff, groups: Sequence[LoopGroup]) -> int:
    """Return the first group that has one of the loops, -1 for none."""
    for at, group in enumerate(groups):
        sides = (group.ids_before, domain.loops_before), (group.ids_after, domain.loops_after)
        if any(set(one).intersection(two) for one, two in sides):
            return at
    return -1


def _in_words(domains: Iterable[DomainDiff]) -> str:
    """Return what differs, such as `but covers 60 of 64`, or that it is not known."""
    words: dict[bool | None, dict[str, None]] = {}
    for each in domains:
        words.setdefault(each.is_same, {})[each.words] = None
    starts = {False: "but ", True: "", None: "but not known whether it visits the same: "}
    return ", ".join(start + "; ".join(words[key]) for key, start in starts.items() if key in words)


def _loops_by_axes(one: Place, two: Place, buffers: Mapping[str, str]) -> list[_Loops]:
    """Match the loops around a block by the axes, or the indices, whose values they determine."""
    there, back = _uses(one, two, buffers)
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


_Uses = dict[str, frozenset[Hashable]]
"""For each loop variable what depends on it: axes by number, or indices by their access."""


def _uses(one: Place, two: Place, buffers: Mapping[str, str]) -> tuple[_Uses, _Uses]:
    """Return what depends on each loop: the same axes or, if there are none, accesses or axes.

    Axes of tiles and axes of elements have nothing in common.
    """
    mine, theirs = one.block, two.block
    if not has_axes_of(mine, theirs):
        here, there = _accesses(mine, buffers), _accesses(theirs, {})
        texts = [{key: each[key] for key in here.keys() & there.keys()} for each in (here, there)]
        kinds = [[axis.kind for axis in block.axes] for block in (mine, theirs)]
        if texts[0] and (kinds[0] != kinds[1] or all(map(_uses_all_axes, (mine, theirs), texts))):
            return _by_variable(one, texts[0]), _by_variable(two, texts[1])
        if _writes_elements(mine) != _writes_elements(theirs):
            return {}, {}
    here = {number: axis.binding for number, axis in enumerate(mine.axes)}
    numbers = _axis_numbers(mine, theirs)
    there = {at: axis.binding for at, axis in zip(numbers, theirs.axes, strict=True)}
    return _by_variable(one, here), _by_variable(two, there)


def _accesses(block: Block, buffers: Mapping[str, str]) -> dict[Hashable, str]:
    """Return the indices of a block's accesses of single elements, with names of `buffers`."""
    counts: dict[Hashable, int] = {}
    found: dict[Hashable, str] = {}
    for kind, accesses in (("read", block.reads), ("write", block.writes)):
        for access in accesses:
            key = kind, buffers.get(access.buffer, access.buffer)
            number = counts[key] = counts.get(key, -1) + 1
            if ":" not in access.region:
                indices = access.region.split(", ")
                found |= {(*key, number, dim): text for dim, text in enumerate(indices)}
    return found


def _writes_elements(block: Block) -> bool:
    """Return whether a block writes single elements, and not tiles, as after tensorize."""
    indices = [index for access in block.writes for index in access.region.split(", ")]
    return all(start.isdigit() or not end for start, _, end in (i.partition(":") for i in indices))


def _uses_all_axes(block: Block, texts: Mapping[Hashable, str]) -> bool:
    used = {word for text in texts.values() for word in WORD.findall(text)}
    return all(axis.name in used for axis in block.axes)


def _by_variable(place: Place, texts: Mapping[Hashable, str]) -> _Uses:
    """Return the keys of the texts that each loop variable appears in, axes resolved."""
    bound = {axis.name: axis.binding for each in place.blocks for axis in each.axes}
    bound |= {axis.name: axis.binding for axis in place.block.axes}
    found: dict[str, set[Hashable]] = {}
    for key, text in texts.items():
        waiting, seen = [text], set()
        while waiting:
            for word in WORD.findall(waiting.pop()):
                if word in bound and word not in seen:
                    waiting.append(bound[word])
                elif word not in bound:
                    found.setdefault(word, set()).add(key)
                seen.add(word)
    return {name: frozenset(keys) for name, keys in found.items()}


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


def _connected(
    axes: frozenset[Hashable], *sides: Mapping[str, frozenset[Hashable]]
) -> frozenset[Hashable]:
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


def _loop_changes(
    mine: Sequence[Loop], theirs: Sequence[Loop], renaming: Renaming
) -> Iterator[LoopChange]:
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
    is_bundle = len(mine) > 1 and [one.extent for one in mine] != [two.extent for two in theirs]
    pairs = list(zip(mine, theirs, strict=False)) if len(mine) == len(theirs) else []
    was = {(each.kind, each.thread) for each in mine}
    for at, loop in enumerate(theirs):
        kinds = was if is_bundle or not pairs else {(pairs[at][0].kind, pairs[at][0].thread)}
        is_rest = loop.kind is LoopKind.SERIAL and len(theirs) > 1 and kinds is was
        if (loop.kind, loop.thread) not in kinds and not is_rest:
            yield _KIND_CHANGES[loop.kind]
    is_same = is_bundle or all(
        renaming.is_equal(getattr(one, bound), getattr(two, bound))
        for one, two in pairs
        for bound in ("start", "extent", "step")
    )
    if not is_same or _annotations(mine) != _annotations(theirs):
        yield LoopChange.CHANGED


def _annotations(loops: Iterable[Loop]) -> list[tuple[tuple[str, str], ...]]:
    return [loop.annotations for loop in loops if loop.annotations]


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
