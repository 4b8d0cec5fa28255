"""Align two loop nests side by side: which rows correspond, and what became of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import takewhile, zip_longest
from typing import NamedTuple

from irviz.model.diff.compare_loop_nests import is_made_of
from irviz.model.diff.diff_result import Aspect, BlockDiff, ChangeKind, LoopGroup, LoopNestDiff
from irviz.model.graph.graph import grouped
from irviz.model.loop_nest import (
    Axis,
    AxisKind,
    Block,
    Loop,
    LoopKind,
    LoopNest,
    LoopNode,
    contains_block,
    walk,
)
from irviz.model.matching.alignment import Alignment, align_lists
from irviz.model.matching.block_matching import axis_partners, renamed

_LETTERS = {AxisKind.SPATIAL: "", AxisKind.REDUCTION: " (R)"}


class RowKind(Enum):
    """The kind of a row."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    LOOP = "loop"
    BLOCK = "block"
    WHERE = "where"
    READS = "reads"
    WRITES = "writes"
    VIEW = "view"
    ANNOTATION = "annotation"
    INIT = "init"
    STATEMENT = "statement"


class Row(NamedTuple):
    """A row of a listing.

    Attributes:
        node: The id of the loop, block or statement that the row belongs to; a buffer's name.
        block: The id of the innermost block around a loop or a statement, "" for none.
        name: The name of the view or annotation.
    """

    kind: RowKind
    text: str
    indent: int
    node: str
    block: str = ""
    name: str = ""


def loop_text(loop: Loop) -> str:
    """Return a loop in one line, such as `for i in 128 · parallel`."""
    start = "" if loop.start == "0" else f" from {loop.start}"
    step = "" if loop.step == "1" else f" by {loop.step}"
    notes = [f"{key} = {value}" for key, value in loop.annotations]
    if loop.kind is LoopKind.THREAD_BINDING:
        notes.insert(0, f"bound to {loop.thread}")
    elif loop.kind is not LoopKind.SERIAL:
        notes.insert(0, loop.kind.value)
    words = "".join(f" · {note}" for note in notes)
    return f"for {loop.variable} in {loop.extent}{start}{step}{words}"


def _rows(
    nodes: Iterable[LoopNode], indent: int, block: str, with_extents: Collection[str]
) -> Iterator[Row]:
    for node in nodes:
        match node:
            case Loop():
                yield Row(RowKind.LOOP, loop_text(node), indent, node.id, block)
                yield from _rows(node.children, indent + 1, block, with_extents)
            case Block():
                yield from _block_rows(node, indent, with_extents)
                if node.init:
                    yield Row(RowKind.INIT, "init", indent + 1, node.id, node.id)
                    yield from _rows(node.init, indent + 2, node.id, with_extents)
                yield from _rows(node.children, indent + 1, node.id, with_extents)
            case _:
                yield Row(RowKind.STATEMENT, node.text, indent, node.id, block)
                yield from _rows(node.children, indent + 1, block, with_extents)


def _block_rows(block: Block, indent: int, with_extents: Collection[str]) -> Iterator[Row]:
    """Yield the rows of a block up to its statements."""
    axes = ", ".join(_axis(axis, is_full=block.id in with_extents) for axis in block.axes)
    yield Row(RowKind.BLOCK, f"block {block.name}  {axes}".rstrip(), indent, block.id)
    views = [
        (match.buffer.name, f"view {match.buffer} of {match.source}") for match in block.matches
    ]
    notes = [(key, f"{key} = {value}") for key, value in block.annotations]
    lines = [
        (RowKind.WHERE, "", f"where {block.predicate}" if block.predicate else ""),
        (RowKind.READS, "", f"reads {', '.join(map(str, block.reads))}" if block.reads else ""),
        (RowKind.WRITES, "", f"writes {', '.join(map(str, block.writes))}" if block.writes else ""),
        *((RowKind.VIEW, *view) for view in views),
        *((RowKind.ANNOTATION, *note) for note in notes),
    ]
    for kind, name, text in lines:
        if text:
            yield Row(kind, text, indent + 1, block.id, name=name)


def _axis(axis: Axis, *, is_full: bool) -> str:
    if is_full:
        return f"{axis} ({axis.kind.value})"
    value = f" = {axis.binding}" if axis.binding else ""
    return f"{axis.name}{value}{_LETTERS.get(axis.kind, f' ({axis.kind.value})')}"


_DETAILS = {
    RowKind.WHERE: Aspect.PREDICATE,
    RowKind.READS: Aspect.READS,
    RowKind.WRITES: Aspect.WRITES,
    RowKind.VIEW: None,
    RowKind.ANNOTATION: Aspect.ATTRIBUTE,
}
_SEVERAL = (ChangeKind.SPLIT, ChangeKind.FUSED)
_INSIDE = (RowKind.LOOP, RowKind.STATEMENT)
_BODY = (RowKind.INIT, *_INSIDE)
_HEADS = (RowKind.LOOP, RowKind.BLOCK, RowKind.BUFFER, RowKind.PARAMETER)
"""Rows that get a line to where they moved; other rows move with them."""


class RowMark(NamedTuple):
    """What became of a row: a sign, a colour, by its name in `Theme.changes`, and a word.

    The sign is "+", "−", "≠", "⊃ 2 → 1", "⊂ 1 → 2" or "↕", readable without colour; "" for rows
    that move with another one.
    """

    sign: str
    change: str
    word: str = ""


class Link(NamedTuple):
    """Rows before and the rows after that they became; `change` is as in `RowMark`."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    change: str


class Side:
    """The rows of one loop nest, what became of the changed ones, and their partners.

    `with_extents` are the ids of the blocks whose axes are written with kind and extent. `bodies`
    has the rows of statements, and of loops, by the innermost block around them, and `blocks` the
    blocks by their ids.
    """

    def __init__(self, nest: LoopNest | None, with_extents: Collection[str] = ()) -> None:
        self.rows: list[Row] = []
        if nest:
            params, buffers = nest.parameters, nest.temporaries
            self.rows += [Row(RowKind.PARAMETER, f"param {one}", 0, one.name) for one in params]
            self.rows += [Row(RowKind.BUFFER, f"buffer {one}", 0, one.name) for one in buffers]
            self.rows += _rows(nest.body, 0, "", with_extents)
        self.marks: dict[int, RowMark] = {}
        self.partners: dict[int, int] = {}
        self.places = {(row.kind, row.node, row.name): at for at, row in enumerate(self.rows)}
        self.bodies = grouped(
            (row.block, at) for at, row in enumerate(self.rows) if row.block and row.kind in _BODY
        )
        nodes = list(walk(nest)) if nest else []
        self.blocks = {node.id: node for node in nodes if isinstance(node, Block)}
        self._loops = {node.id: node for node in nodes if isinstance(node, Loop)}

    def loop(self, at: int) -> Loop:
        """Return the loop of a row."""
        return self._loops[self.rows[at].node]

    def head(self, block: str) -> int:
        """Return the row of a block's name and axes."""
        return self.places[RowKind.BLOCK, block, ""]

    def row(self, kinds: Iterable[RowKind], node: str) -> int | None:
        """Return the row of a node that is of one of these kinds, None if there is none."""
        found = (self.places.get((kind, node, "")) for kind in kinds)
        return next((at for at in found if at is not None), None)

    def readers(self, buffers: Collection[str]) -> list[str]:
        """Return the names of the blocks that read buffers."""
        blocks = self.blocks.values()
        reading = (one for one in blocks if any(each.buffer in buffers for each in one.reads))
        return list(dict.fromkeys(one.name for one in reading))

    def free(self, rows: Iterable[int]) -> list[int]:
        """Return those rows without a partner or a mark, less the loops around blocks."""
        left = (at for at in rows if at not in self.partners and at not in self.marks)
        return [at for at in left if not self.is_around(at)]

    def is_around(self, at: int) -> bool:
        """Return whether a row is of a loop around a block."""
        return self.rows[at].kind is RowKind.LOOP and contains_block(self.loop(at))


class SideBySide(NamedTuple):
    """Two loop nests: which rows are side by side, by number, and which a line connects."""

    before: Side
    after: Side
    lines: Sequence[tuple[int | None, int | None]]
    links: Sequence[Link]


def side_by_side(
    nests: tuple[LoopNest | None, LoopNest | None], diff: LoopNestDiff | None
) -> SideBySide:
    """Put two loop nests side by side.

    Corresponding rows are side by side, as many as keep their order. If one nest is missing, all
    rows of the other are marked.
    """
    before, after = nests
    if before is None or after is None or diff is None:
        gone, new = Side(before), Side(after)
        gone.marks = dict.fromkeys(range(len(gone.rows)), RowMark("−", "removed"))
        new.marks = dict.fromkeys(range(len(new.rows)), RowMark("+", "added"))
        lines = [*((at, None) for at in gone.marks), *((None, at) for at in new.marks)]
        return SideBySide(gone, new, lines, ())
    return _Alignment(before, after, diff).result()


class _Alignment:
    """The rows of two nests while they are being matched."""

    def __init__(self, before: LoopNest, after: LoopNest, diff: LoopNestDiff) -> None:
        self._diff = diff
        full = [block for block in diff.blocks if _differs(block, Aspect.AXES)]
        self._before = Side(before, {each for one in full for each in one.before})
        self._after = Side(after, {each for one in full for each in one.after})
        self._sides = self._before, self._after
        self._may_move: set[int] = set()
        self._links: list[Link] = []

    def result(self) -> SideBySide:
        self._match_buffers()
        single = [one for one in self._diff.blocks if len(one.before) == len(one.after) == 1]
        several = [one for one in self._diff.blocks if one.change in _SEVERAL]
        for block in sorted([*single, *several], key=_others_loops):
            self._match_loops(block)
        for block in single:
            self._match_block(block.before[0], block.after[0], block)
        for block in several:
            self._match_several(block)
        self._mark_inlined()
        self._match_rest()
        rows = range(len(self._before.rows)), range(len(self._after.rows))
        alignment = Alignment(dict.fromkeys(self._before.partners.items()))
        stretches = list(alignment.union(*rows, self._may_move))
        self._mark_moved({one for each in stretches if each.is_common for one in each.before})
        self._mark_rest()
        lines = [line for each in stretches for line in zip_longest(each.before, each.after)]
        return SideBySide(self._before, self._after, lines, self._links)

    def _pair(self, one: int, two: int) -> bool:
        """Record that two rows correspond, unless one of them already has a partner."""
        if one in self._before.partners or two in self._after.partners:
            return False
        self._before.partners[one], self._after.partners[two] = two, one
        return True

    def _mark(self, one: int, two: int, mark: RowMark) -> None:
        self._before.marks[one] = mark._replace(word="")
        self._after.marks[two] = mark

    def _match_buffers(self) -> None:
        kinds = (RowKind.PARAMETER, RowKind.BUFFER)
        for buffer in self._diff.buffers:
            one = self._before.row(kinds, buffer.before)
            two = self._after.row(kinds, buffer.after)
            if one is not None and two is not None and self._pair(one, two) and buffer.differences:
                word = ", ".join(each.aspect.value for each in buffer.differences)
                self._mark(one, two, RowMark("≠", "changed", word))

    def _match_loops(self, block: BlockDiff) -> None:
        for group in block.loops:
            here = [self._before.places[RowKind.LOOP, one, ""] for one in group.ids_before]
            there = [self._after.places[RowKind.LOOP, one, ""] for one in group.ids_after]
            here = [one for one in here if one not in self._before.partners]
            there = [one for one in there if one not in self._after.partners]
            if here and there:
                self._match_group(here, there, group, is_moved=block.change is ChangeKind.MOVED)

    def _match_group(
        self, here: Sequence[int], there: Sequence[int], group: LoopGroup, *, is_moved: bool
    ) -> None:
        is_reordered = ChangeKind.REORDERED in group.changes
        loops = [self._before.loop(one) for one in here], [self._after.loop(two) for two in there]
        is_bundle = len(here) != len(there) or (
            len(here) > 1 and [one.extent for one in loops[0]] != [two.extent for two in loops[1]]
        )
        for one, two in zip(here, there, strict=False):
            self._pair(one, two)
        if is_reordered or is_moved:
            self._may_move.update(here)
        if is_bundle:
            self._mark_bundle(here, there, group)
            return
        for one, two, old, new in zip(here, there, *loops, strict=True):
            mark = _loop_mark(old, new, group)
            if mark:
                self._mark(one, two, mark)
            if is_reordered:
                self._links.append(Link((one,), (two,), "moved"))

    def _mark_bundle(self, here: Sequence[int], there: Sequence[int], group: LoopGroup) -> None:
        """Mark loops that were split or fused."""
        count = f"{len(here)} → {len(there)}"
        order = ", reordered" if ChangeKind.REORDERED in group.changes else ""
        domain = f", {group.domain}" if group.domain else ""
        is_split = len(here) <= len(there)
        sign = "⊂" if is_split else "⊃"
        self._before.marks |= dict.fromkeys(here, RowMark(sign, "fused"))
        self._after.marks |= dict.fromkeys(there, RowMark(sign, "fused"))
        side, at = (self._before, here[0]) if is_split else (self._after, there[0])
        word = "split" if is_split else "fused"
        if len(here) == len(there):
            word = "fused and split"
        side.marks[at] = RowMark(f"{sign} {count}", "fused", f"{word}{order}{domain}")
        self._links.append(Link(tuple(here), tuple(there), "fused"))

    def _match_block(self, before: str, after: str, diff: BlockDiff) -> None:
        """Match the rows of a block: its head, what it reads and writes, and its statements."""
        one, two = self._before.head(before), self._after.head(after)
        if not self._pair(one, two):
            return
        words = []
        if _differs(diff, Aspect.NAME):
            words.append("renamed")
        if _differs(diff, Aspect.AXES):
            words.append("axes")
        elif (diff.changed_loops or _differs(diff, Aspect.BINDINGS)) and (
            self._before.rows[one].text != self._after.rows[two].text
        ):
            words.append("bindings")
        words += [each.what for each in diff.differences if each.aspect is Aspect.DOMAIN]
        if diff.change is ChangeKind.MOVED:
            self._may_move.add(one)
            self._mark(one, two, RowMark("↕", "moved", ", ".join(["moved", *words])))
            self._links.append(Link((one,), (two,), "moved"))
        elif words:
            self._mark(one, two, RowMark("≠", "changed", ", ".join(words)))
        names = self._axis_names(before, after)
        for at, row in self._details(before):
            other = self._after.places.get((row.kind, after, row.name))
            if other is not None:
                self._match_detail(at, other, diff, names)
        self._match_bodies(before, after, diff, names)

    def _axis_names(self, before: str, after: str) -> dict[str, str]:
        """Return the names after of a block's axes, by their names before."""
        partners = axis_partners(self._before.blocks[before], self._after.blocks[after])
        return {was: now for now, was in partners.items()}

    def _details(self, block: str) -> Iterator[tuple[int, Row]]:
        """Yield the rows of a block before between its head and its statements."""
        rows, at = self._before.rows, self._before.head(block) + 1
        while at < len(rows) and rows[at].kind in _DETAILS and rows[at].node == block:
            yield at, rows[at]
            at += 1

    def _match_detail(self, one: int, two: int, diff: BlockDiff, names: Mapping[str, str]) -> None:
        self._pair(one, two)
        self._may_move.add(one)
        kind = self._before.rows[one].kind
        aspect = _DETAILS[kind]
        is_same = (
            aspect is not None
            and not _differs(diff, aspect)
            and not (kind is RowKind.WHERE and diff.changed_loops)
            and diff.change not in _SEVERAL
        )
        text = renamed(self._before.rows[one].text, names)
        if is_same:
            self._mark_text(one, two, diff, names)
        elif text != self._after.rows[two].text:
            self._mark(one, two, RowMark("≠", "changed"))

    def _mark_text(self, one: int, two: int, diff: BlockDiff, names: Mapping[str, str]) -> None:
        """Mark rows of a changed block that mean the same and have another text."""
        is_other = renamed(self._before.rows[one].text, names) != self._after.rows[two].text
        if is_other and self._before.head(diff.before[0]) in self._before.marks:
            self._mark(one, two, RowMark("", "changed"))

    def _match_bodies(
        self, before: str, after: str, diff: BlockDiff, names: Mapping[str, str]
    ) -> None:
        """Match the statements of a block; unchanged ones may differ in names."""
        mine = self._before.free(self._before.bodies.get(before, ()))
        theirs = self._after.free(self._after.bodies.get(after, ()))
        is_same = diff.change not in _SEVERAL and not _differs(diff, Aspect.STATEMENT)
        is_alike = len(mine) == len(theirs) and all(map(self._is_same_kind, mine, theirs))
        if not is_same or not is_alike:
            self._match_texts(mine, theirs, names)
            return
        for one, two in zip(mine, theirs, strict=True):
            self._pair(one, two)
            self._may_move.add(one)
            if self._before.rows[one].kind is RowKind.LOOP:
                mark = _loop_mark(self._before.loop(one), self._after.loop(two))
                if mark:
                    self._mark(one, two, mark)
            else:
                self._mark_text(one, two, diff, names)

    def _is_same_kind(self, one: int, two: int) -> bool:
        return self._before.rows[one].kind is self._after.rows[two].kind

    def _match_texts(
        self,
        mine: Sequence[int],
        theirs: Sequence[int],
        names: Mapping[str, str],
        *,
        may_differ: bool = True,
    ) -> None:
        """Match rows with the same text; those between two matches, if as many, are changed."""
        rows = [self._before.rows[at] for at in mine], [self._after.rows[at] for at in theirs]
        keys = (
            [(row.kind, renamed(row.text, names)) for row in rows[0]],
            [(row.kind, row.text) for row in rows[1]],
        )
        found = align_lists(*keys, replaced=may_differ)
        for (at, to), is_same in found.pairs.items():
            self._match_lines(mine[at], theirs[to], is_same=is_same)

    def _match_lines(self, one: int, two: int, *, is_same: bool) -> None:
        if self._is_same_kind(one, two) and self._pair(one, two):
            self._may_move.add(one)
            if not is_same:
                self._mark(one, two, RowMark("≠", "changed"))

    def _match_several(self, diff: BlockDiff) -> None:
        """Match a block with the last of several that it was split into or fused from.

        Its init statement is matched with the other one if there is only one.
        """
        is_split = diff.change is ChangeKind.SPLIT
        sign, word = ("⊂", "split") if is_split else ("⊃", "fused")
        heads = [
            [side.head(one) for one in blocks]
            for side, blocks in zip(self._sides, (diff.before, diff.after), strict=True)
        ]
        (whole,), parts = (diff.before, diff.after) if is_split else (diff.after, diff.before)
        self._match_init(0 if is_split else 1, whole, parts[:-1], parts[-1])
        self._match_block(diff.before[-1], diff.after[-1], diff)
        self._links.append(Link(tuple(heads[0]), tuple(heads[1]), "fused"))
        for side, rows in zip(self._sides, heads, strict=True):
            count = f"{sign} {len(heads[0])} → {len(heads[1])}"
            mark = RowMark(count, "fused", word) if len(rows) == 1 else RowMark(sign, "fused")
            side.marks |= dict.fromkeys(rows, mark)

    def _match_init(self, side: int, whole: str, others: Sequence[str], main: str) -> None:
        """Match the init statement of a block on one side with a block."""
        here, there = self._sides[side], self._sides[1 - side]
        init = here.places.get((RowKind.INIT, whole, ""))
        if init is None or len(others) > 1 or (RowKind.INIT, main, "") in there.places:
            return
        rows = here.rows
        inside = takewhile(
            lambda at: rows[at].indent > rows[init].indent, range(init + 1, len(rows))
        )
        mine = list(inside)
        theirs = [at for at in there.bodies.get(others[0], ()) if not there.is_around(at)]
        if len(mine) != len(theirs):
            return
        names = (
            self._axis_names(whole, others[0]) if side == 0 else self._axis_names(others[0], whole)
        )
        for pair in zip(mine, theirs, strict=True):
            one, two = pair if side == 0 else pair[::-1]
            self._pair(one, two)
            self._may_move.add(one)
            text = renamed(self._before.rows[one].text, names)
            is_same = text == self._after.rows[two].text
            self._mark(one, two, RowMark("", "fused") if is_same else RowMark("≠", "changed"))
        here.marks[init] = RowMark("", "fused")

    def _mark_inlined(self) -> None:
        for block in self._diff.blocks:
            if block.change is ChangeKind.INLINED:
                node = self._before.blocks[block.before[0]]
                readers = self._before.readers({access.buffer for access in node.writes})
                word = f"inlined into {', '.join(readers)}" if readers else "inlined"
                self._before.marks[self._before.head(node.id)] = RowMark("−", "removed", word)

    def _match_rest(self) -> None:
        """Match the rows outside of blocks; match buffers by text, as several may have one name."""
        for (before, after), is_same in self._diff.lines.pairs.items():
            one, two = self._before.row(_INSIDE, before), self._after.row(_INSIDE, after)
            if one is not None and two is not None:
                self._match_lines(one, two, is_same=is_same)
        mine, theirs = (
            side.free(at for at, row in enumerate(side.rows) if row.kind is RowKind.BUFFER)
            for side in self._sides
        )
        self._match_texts(mine, theirs, {}, may_differ=False)

    def _mark_moved(self, beside: Collection[int]) -> None:
        """Mark the rows that are not beside their partners, and link their heads."""
        linked = {one for link in self._links for one in link.before}
        for one, two in self._before.partners.items():
            if one in beside:
                continue
            is_head = self._before.rows[one].kind in _HEADS
            if one not in self._before.marks:
                mark = RowMark("↕", "moved", "moved") if is_head else RowMark("", "moved")
                self._mark(one, two, mark)
            if is_head and one not in linked:
                self._links.append(Link((one,), (two,), "moved"))

    def _mark_rest(self) -> None:
        """Mark the rows without a partner."""
        marks = RowMark("−", "removed"), RowMark("+", "added")
        for side, mark in zip(self._sides, marks, strict=True):
            for at in range(len(side.rows)):
                if at not in side.partners:
                    side.marks.setdefault(at, mark)


def _others_loops(diff: BlockDiff) -> tuple[bool, int]:
    """Return whether a block moved, and how many of its loops are not made of those it had.

    Loops that several blocks now share belong to the block for which this is smallest.
    """
    new = [
        name for loops in diff.loops for name in loops.after if not is_made_of(name, loops.before)
    ]
    return diff.change is ChangeKind.MOVED, len(new)


def _differs(diff: BlockDiff, aspect: Aspect) -> bool:
    return any(each.aspect is aspect for each in diff.differences)


def _loop_mark(one: Loop, two: Loop, group: LoopGroup | None = None) -> RowMark | None:
    """Return what became of a loop; a new kind of loop needs no word, as its text ends with it."""
    is_other_kind = (one.kind, one.thread) != (two.kind, two.thread)
    names = ("extent", "start", "step", "annotations")
    words = [name for name in names if getattr(one, name) != getattr(two, name)]
    if is_other_kind and two.kind is LoopKind.SERIAL:
        words.insert(0, "serial")
    if group is not None and group.domain:
        words.append(group.domain if words else group.domain.removeprefix("but "))
    if group is not None and ChangeKind.REORDERED in group.changes:
        return RowMark("↕", "moved", ", ".join(["reordered", *words]))
    return RowMark("≠", "changed", ", ".join(words)) if words or is_other_kind else None
