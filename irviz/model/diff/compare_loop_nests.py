"""What became of the blocks, loops and buffers of a PrimFunc."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from irviz.model.diff.canonical_names import Names, Renaming
from irviz.model.diff.diff_result import (
    Aspect,
    BlockDiff,
    BufferDiff,
    ChangeKind,
    Difference,
    DomainDiff,
    LoopGroup,
    LoopNestDiff,
)
from irviz.model.graph.graph import grouped
from irviz.model.loop_nest import (
    Block,
    Buffer,
    Loop,
    LoopKind,
    LoopNest,
    Scalar,
    contains_block,
)
from irviz.model.matching.alignment import Alignment, align_lists, longest_increasing
from irviz.model.matching.block_matching import (
    WORD,
    BlockMatch,
    Place,
    axis_partners,
    body_text,
    defined_names,
    has_axes_of,
    lines,
    match_blocks,
    places,
    renamed,
)

CompareDomains = Callable[[str, str], Sequence[DomainDiff]]
"""Compares what two blocks visit, by their ids before and after."""


def diff_loop_nests(
    before: LoopNest, after: LoopNest, compare_domains: CompareDomains = lambda *_: ()
) -> LoopNestDiff:
    """Return what became of the blocks, loops and buffers of a PrimFunc.

    Loops are matched by the axes of the block that they iterate over. Blocks are compared by what
    they visit only where the text of their loops or axes differs.

    Parameters are matched by position. If the same names are in another order, they are matched by
    name where fewer blocks differ then: parameters were exchanged, and not their uses.
    """
    names = [[one.name for one in each.parameters] for each in (before, after)]
    by_position = dict(zip(*names, strict=True)) if len(names[0]) == len(names[1]) else {}
    found = _diff(before, after, by_position, compare_domains)
    if names[0] != names[1] and sorted(names[0]) == sorted(names[1]):
        other = _diff(before, after, {name: name for name in names[0]}, compare_domains)
        if _count_changed(other) < _count_changed(found):
            was, now = map(", ".join, names)
            order = Difference(Aspect.ORDER, was, now, "of parameters")
            return replace(other, parameters=(order,))
    return found


def _count_changed(diff: LoopNestDiff) -> int:
    changes = [*(one.change for one in diff.blocks), *(one.change for one in diff.buffers)]
    return len(diff.statements) + len(changes) - changes.count(ChangeKind.SAME)


def _diff(
    before: LoopNest,
    after: LoopNest,
    parameters: Mapping[str, str],
    compare_domains: CompareDomains,
) -> LoopNestDiff:
    matches = match_blocks(before, after)
    mains = [match.main for match in matches]
    buffers = _matched_buffers(before, after, mains, parameters)
    renaming = Renaming(*(Names(sorted(defined_names(nest))) for nest in (before, after)))
    for name, other in buffers.items():
        renaming.is_equal(name, other)
    moved = _moved(mains)
    blocks = [
        _block_diff(match, buffers, renaming.copy(), moved, compare_domains) for match in matches
    ]
    mine, theirs = places(before), places(after)
    blocks += _unmatched_blocks(mine, theirs, matches)
    here = {place.block.id: (place.number, 1) for place in mine}
    there = {place.block.id: (place.number, 0) for place in theirs}
    blocks.sort(
        key=lambda diff: min(
            there[each] if diff.after else here[each] for each in diff.after or diff.before
        )
    )
    outside, statements = _lines_outside(before, after, buffers)
    differing = tuple(_buffer_diffs(before, after, buffers))
    return LoopNestDiff(tuple(blocks), differing, tuple(statements), lines=outside)


def _block_diff(
    match: BlockMatch,
    buffers: Mapping[str, str],
    renaming: Renaming,
    moved: set[int],
    compare_domains: CompareDomains,
) -> BlockDiff:
    one, two = match.main
    mine, theirs = one.block, two.block
    change = ChangeKind.MOVED if two.number in moved else ChangeKind.CHANGED
    names: tuple[str, ...] = ()
    if len(match.after) > 1:
        change, names = ChangeKind.SPLIT, _names(match.after)
    elif len(match.before) > 1:
        change, names = ChangeKind.FUSED, _names(match.before)
    differences = list(
        _main_differences(match, buffers) if names else _differences(mine, theirs, renaming.copy())
    )
    is_same_domain = _has_same_domain(one, two, renaming)
    groups = tuple(loop_groups(one, two, buffers, renaming, is_same_domain=is_same_domain))
    if not is_same_domain:
        domains = compare_domains(mine.id, theirs.id) if match.is_whole else ()
        groups, rest = with_domains(groups, domains)
        if rest:
            differences.append(Difference(Aspect.DOMAIN, "", "", rest.removeprefix("but ")))
        has_loops = all(len(each.before) == len(each.after) for each in groups)
        if has_loops and not renaming.is_equal(mine.predicate, theirs.predicate):
            differences.append(Difference(Aspect.PREDICATE, mine.predicate, theirs.predicate))
        is_told = any(each.is_changed for each in groups) or any(
            each.aspect in _OF_DOMAIN for each in differences
        )
        was, now = _bindings(mine), _bindings(theirs)
        if not is_told and not names and was != now:
            differences.append(Difference(Aspect.BINDINGS, was, now))
    is_same = not differences and not any(each.is_changed for each in groups)
    if change is ChangeKind.CHANGED and is_same:
        change = ChangeKind.SAME
    ids = [tuple(place.block.id for place in side) for side in (match.before, match.after)]
    name = mine.name if change is ChangeKind.SPLIT else theirs.name
    return BlockDiff(change, ids[0], ids[1], name, match.by, tuple(differences), groups, names)


_OF_DOMAIN = (Aspect.AXES, Aspect.DOMAIN, Aspect.PREDICATE)


def _names(blocks: Iterable[Place]) -> tuple[str, ...]:
    return tuple(place.block.name for place in sorted(blocks, key=lambda each: each.number))


def _differences(one: Block, two: Block, renaming: Renaming) -> Iterator[Difference]:
    """Yield what differs in a block apart from the values of its axes."""
    texts = {
        Aspect.NAME: ("", "") if one.name == two.name else (one.name, two.name),
        Aspect.AXES: (_axes(one), _axes(two)),
        Aspect.STATEMENT: tuple("; ".join(body_text(each)) for each in (one, two)),
        Aspect.READS: tuple(", ".join(map(str, each.reads)) for each in (one, two)),
        Aspect.WRITES: tuple(", ".join(map(str, each.writes)) for each in (one, two)),
        Aspect.ATTRIBUTE: tuple(str(dict(each.annotations) or "") for each in (one, two)),
    }
    for aspect, (was, now) in texts.items():
        if not renaming.is_equal(was, now):
            yield Difference(aspect, was, now)


def _main_differences(match: BlockMatch, buffers: Mapping[str, str]) -> Iterator[Difference]:
    """Yield what differs where blocks were split or fused: statements, and the buffers written."""
    if not match.keeps_statements:
        sides = (match.before, match.after)
        was, now = (
            "; ".join(text for one in side for text in body_text(one.block)) for side in sides
        )
        yield Difference(Aspect.STATEMENT, was, now)
    one, two = match.main
    for before, after in zip(one.block.writes, two.block.writes, strict=False):
        if buffers.get(before.buffer, before.buffer) != after.buffer:
            yield Difference(Aspect.WRITES, before.buffer, after.buffer)


def _axes(block: Block) -> str:
    return ", ".join(f"{axis.name} {axis.kind.value} {axis.extent}" for axis in block.axes)


def _bindings(block: Block) -> str:
    return ", ".join(f"{axis.name} = {axis.binding}" for axis in block.axes)


def _domain_texts(place: Place) -> list[str]:
    """Return all that determines what a block visits, in an order that is the same for each."""
    found = [str(len(place.loops)), *place.conditions]
    for loop in place.loops:
        found += [loop.variable, loop.start, loop.extent, loop.step]
    for block in (*place.blocks, place.block):
        for axis in block.axes:
            found += [axis.name, axis.kind.value, axis.start, axis.extent, axis.binding]
        found += [block.predicate] if block.axes or block.predicate else []
    return found


def _has_same_domain(one: Place, two: Place, renaming: Renaming) -> bool:
    """Return whether the domains are equal up to names; the relation of names is not kept."""
    own, mine, theirs = renaming.copy(), _domain_texts(one), _domain_texts(two)
    return len(mine) == len(theirs) and all(map(own.is_equal, mine, theirs))


def _moved(pairs: Sequence[tuple[Place, Place]]) -> set[int]:
    """Return the resulting blocks that entered or left the loops of another, or changed order."""
    moved: set[int] = set()
    nests = grouped((two.loops[0].id, (one, two)) for one, two in pairs if two.loops)
    homes: dict[str, str] = {}
    for nest, inside in nests.items():
        owner = _owner(inside)
        for one, two in inside:
            home = one.loops[0].id if one.loops else ""
            if home != owner or homes.setdefault(home, nest) != nest:
                moved.add(two.number)
    ordered = sorted(pairs, key=lambda pair: pair[1].number)
    kept = longest_increasing([one.number for one, _ in ordered])
    return moved | {two.number for index, (_, two) in enumerate(ordered) if index not in kept}


def _owner(inside: Sequence[tuple[Place, Place]]) -> str:
    """Return the outermost loop, before the change, of the block that owned a loop nest.

    That block is the one from whose loops most of the now shared loops, and its own, have derived
    names. Of several it is one that kept further loops, which TVM names anew in a block that
    moves, and else the last, because a block usually moves into the loops of its consumer.
    """
    shared = {loop.variable for loop in inside[0][1].loops}
    for _, two in inside:
        shared &= {loop.variable for loop in two.loops}

    def score(place: tuple[Place, Place]) -> tuple[int, int, int]:
        one, two = place
        names = [loop.variable for loop in one.loops]
        own = [is_made_of(loop.variable, names) for loop in two.loops]
        return sum(is_made_of(name, names) for name in shared), -own.count(False), own.count(True)

    one, _ = max(reversed(inside), key=score)
    return one.loops[0].id if one.loops else ""


def is_made_of(variable: str, sources: Iterable[str]) -> bool:
    """Return whether a loop's name is derived from one of these, as `i_0` is from `i`."""
    return any(variable == each or variable.startswith(f"{each}_") for each in sources)


def _unmatched_blocks(
    mine: Sequence[Place], theirs: Sequence[Place], matches: Sequence[BlockMatch]
) -> Iterator[BlockDiff]:
    done = (
        {place.number for match in matches for place in match.before},
        {place.number for match in matches for place in match.after},
    )
    kept = {access.buffer for place in theirs for access in place.block.writes}
    for match in matches:  # a block that writes what another one wrote before has its operation
        one, two = match.main
        kept -= {each.buffer for each in two.block.writes} - {
            each.buffer for each in one.block.writes
        }
    for place in mine:
        if place.number not in done[0]:
            block = place.block
            buffers = {each.buffer for each in block.writes}
            # TVM inlines no reductions
            is_inlined = bool(buffers and theirs) and not block.init and not buffers & kept
            change = ChangeKind.INLINED if is_inlined else ChangeKind.REMOVED
            yield BlockDiff(change, (block.id,), (), block.name, names=place.inner)
    for place in theirs:
        if place.number not in done[1]:
            block = place.block
            yield BlockDiff(ChangeKind.ADDED, (), (block.id,), block.name, names=place.inner)


def _matched_buffers(
    before: LoopNest,
    after: LoopNest,
    pairs: Iterable[tuple[Place, Place]],
    parameters: Mapping[str, str],
) -> dict[str, str]:
    """Match buffers: parameters as given, others by name, or by the blocks that write them."""
    mine = {one.name for one in (*before.parameters, *before.temporaries)}
    theirs = {one.name for one in (*after.parameters, *after.temporaries)}
    found: dict[str, str] = {}
    taken: set[str] = set()

    def pair(one: str, other: str) -> None:
        if one in mine and other in theirs and one not in found and other not in taken:
            found[one] = other
            taken.add(other)

    for param, other in parameters.items():
        pair(param, other)
    for name in sorted(mine & theirs):
        pair(name, name)
    for one, two in pairs:
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
            yield BufferDiff(ChangeKind.REMOVED, name, "")
            continue
        differences = tuple(_buffer_differences(one, theirs[pairs[name]]))
        change = ChangeKind.CHANGED if differences else ChangeKind.SAME
        yield BufferDiff(change, name, pairs[name], differences)
    matched = set(pairs.values())
    for name in theirs:
        if name not in matched:
            yield BufferDiff(ChangeKind.ADDED, "", name)


def _buffer_differences(one: Buffer | Scalar, two: Buffer | Scalar) -> Iterator[Difference]:
    parts = {
        "shape": Aspect.SHAPE,
        "dtype": Aspect.DTYPE,
        "scope": Aspect.SCOPE,
        "layout": Aspect.LAYOUT,
    }
    for part, aspect in parts.items():
        was, now = getattr(one, part, ""), getattr(two, part, "")
        if was != now:
            yield Difference(aspect, was, now)


def _lines_outside(
    before: LoopNest, after: LoopNest, buffers: Mapping[str, str]
) -> tuple[Alignment[str, bool], list[Difference]]:
    """Align the statements and loops outside of blocks, and return those that differ or moved.

    Where one of the two has no blocks, as after lowering, all statements and loops are aligned.
    """
    are_all = not all(any(map(contains_block, each.body)) for each in (before, after))
    mine, theirs = (list(lines(each.body, are_all=are_all)) for each in (before, after))
    keys = [renamed(text, buffers) for _, text in mine], [text for _, text in theirs]
    found = align_lists(*keys, replaced=True).pairs
    here, there = ({pair[side] for pair, is_same in found.items() if is_same} for side in (0, 1))
    gone = [text for at, (_, text) in enumerate(mine) if at not in here]
    new = [text for at, (_, text) in enumerate(theirs) if at not in there]
    differences = [Difference(Aspect.STATEMENT, text, "") for text in gone]
    differences += [Difference(Aspect.STATEMENT, "", text) for text in new]
    if not differences and keys[0] != keys[1]:
        at = next(at for at, (one, two) in enumerate(zip(*keys, strict=True)) if one != two)
        differences = [Difference(Aspect.ORDER, mine[at][1], theirs[at][1], "of statements")]
    ids = {(mine[one][0].id, theirs[two][0].id): is_same for (one, two), is_same in found.items()}
    return Alignment(ids), differences


# --- What became of the loops around two blocks that correspond ----------------------------------


_Loops = tuple[list[Loop], list[Loop]]
"""Loops before and after that belong together."""


def loop_groups(
    one: Place, two: Place, buffers: Mapping[str, str], renaming: Renaming, *, is_same_domain: bool
) -> Iterator[LoopGroup]:
    """Yield what became of the loops around a block; `buffers` has the names after."""
    groups = _loops_by_axes(one, two, buffers)
    if not is_same_domain:
        groups = [pair for group in groups for pair in _by_name(*group)]
    reordered = _out_of_order(groups, one.loops, two.loops)
    for index, (mine, theirs) in enumerate(groups):
        changes = list(_loop_changes(mine, theirs, renaming))
        if index in reordered:
            changes.append(ChangeKind.REORDERED)
        yield LoopGroup(
            tuple(each.variable for each in mine),
            tuple(each.variable for each in theirs),
            tuple(dict.fromkeys(changes)) or (ChangeKind.SAME,),
            tuple(each.id for each in mine),
            tuple(each.id for each in theirs),
        )


def with_domains(
    groups: Iterable[LoopGroup], domains: Iterable[DomainDiff]
) -> tuple[tuple[LoopGroup, ...], str]:
    """Return groups of loops with what differs in what they visit, and the rest in words."""
    found = list(groups)
    own = grouped((_group_of(domain, found), domain) for domain in domains if domain.words)
    rest = own.pop(-1, ())
    for at, differing in own.items():
        if ChangeKind.REORDERED in found[at].changes:
            differing = [each for each in differing if not each.is_same]
        found[at] = found[at]._replace(domain=_in_words(differing))
    return tuple(found), _in_words(rest)


def _group_of(domain: DomainDiff, groups: Sequence[LoopGroup]) -> int:
    """Return the first group that has one of the loops, a reordered one before others, or -1."""
    found = [
        (ChangeKind.REORDERED not in group.changes, at)
        for at, group in enumerate(groups)
        if {*group.ids_before}.intersection(domain.loops_before)
        or {*group.ids_after}.intersection(domain.loops_after)
    ]
    return min(found)[1] if found else -1


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


def _by_name(mine: list[Loop], theirs: list[Loop]) -> list[_Loops]:
    """Return a pair of loops for each name if only their order changed, else all loops as one."""
    was, now = ([(loop.variable, loop.extent) for loop in side] for side in (mine, theirs))
    if was == now or sorted(was) != sorted(now):
        return [(mine, theirs)]
    by_name = {loop.variable: loop for loop in theirs}
    return [([loop], [by_name[loop.variable]]) for loop in mine]


_Uses = dict[str, frozenset[Hashable]]
"""For each loop variable what depends on it: axes by name, or indices by their access."""


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
    partners = axis_partners(mine, theirs)
    here = {axis.name: axis.binding for axis in mine.axes}
    there = {partners.get(axis.name, (axis.name, "new")): axis.binding for axis in theirs.axes}
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
    LoopKind.THREAD_BINDING: ChangeKind.BOUND,
    LoopKind.VECTORIZED: ChangeKind.VECTORIZED,
    LoopKind.UNROLLED: ChangeKind.UNROLLED,
    LoopKind.PARALLEL: ChangeKind.PARALLEL,
    LoopKind.SERIAL: ChangeKind.SERIAL,
}


def _loop_changes(
    mine: Sequence[Loop], theirs: Sequence[Loop], renaming: Renaming
) -> Iterator[ChangeKind]:
    if not mine or not theirs:
        yield ChangeKind.ADDED if theirs else ChangeKind.REMOVED
        return
    is_bundle = len(mine) > 1 and [one.extent for one in mine] != [two.extent for two in theirs]
    if len(mine) < len(theirs):
        yield ChangeKind.SPLIT
    elif len(mine) > len(theirs):
        yield ChangeKind.FUSED
    elif is_bundle:
        yield ChangeKind.SPLIT
        yield ChangeKind.FUSED
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
        yield ChangeKind.CHANGED


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
