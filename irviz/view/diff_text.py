"""A diff as text: TVMScript of both modules, with lines matched by the nodes that they bind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from irviz.model.diff.diff_result import (
    Aspect,
    BlockDiff,
    ChangeKind,
    Difference,
    FunctionDiff,
    FunctionText,
    LoopNestDiff,
    ModuleDiff,
    NodeDiff,
)
from irviz.model.graph.graph import NodeId, NodeKind
from irviz.model.matching.alignment import align_lists
from irviz.view.svg_primitives import visible

_CONTEXT = 2
_COLOURS = {"-": "31", "+": "32", "~": "33", "#": "1"}
_MARKED = "7"
_IN_EVERY_FUNCTION = ("def ", "return ", "R.output(")
_WORD = re.compile(r"\w+|[^\w\s]")
_NO_TEXT = FunctionText((), {}, 1)


_LONGEST_MARKED = 1000


class Line(NamedTuple):
    """A line of the text: a sign, the text, a remark, and the parts that differ.

    The sign is "-" for a removed line, "+" for an added one, "~" for a moved one, "#" for a heading
    and " " for an unchanged line.
    """

    sign: str
    text: str
    remark: str = ""
    marks: tuple[tuple[int, int], ...] = ()


def diff_text(diff: ModuleDiff, *, colour: bool) -> str:
    """Return the differences by function, with unchanged stretches folded."""
    none: Mapping[str, FunctionText] = {}
    before, after = [one.functions for one in diff.texts] if diff.texts else [none, none]
    if not diff:
        first, second = _printable(diff.before), _printable(diff.after)
        return f"{first} and {second} do not differ{_names_only(before, after)}\n"
    lines = [Line("#", f"--- {diff.before}"), Line("#", f"+++ {diff.after}")]
    lines += [Line("#", f"module: {each}") for each in diff.differences]
    for one in diff.changed_functions:
        mine, theirs = before.get(one.before, _NO_TEXT), after.get(one.after, _NO_TEXT)
        lines += [Line("#", ""), Line("#", _heading(one))]
        lines += _loop_lines(one.loops) if one.loops else ()
        if one.change is ChangeKind.CHANGED:
            lines += _folded(list(function_lines(one, mine, theirs)))
        else:
            sign = "+" if one.change is ChangeKind.ADDED else "-"
            lines += _signature(theirs if one.after else mine, sign)
    return "".join(f"{_written(line, colour)}\n" for line in lines)


def function_lines(diff: FunctionDiff, before: FunctionText, after: FunctionText) -> Iterator[Line]:
    """Yield the lines of a function: a removed line where it was, a moved one where it is now.

    Lines of nodes are matched by their nodes, all others by their text.
    """
    by_line, keys = _keys(diff, before, after)
    constants = _constants(diff, before, after)
    names = {one.after[-1]: one.before[-1] for one in diff.nodes if one.before and one.after}
    mine, theirs = keys
    found = align_lists(mine, theirs)
    for stretch in found.union(range(len(mine)), range(len(theirs))):
        if stretch.is_common:
            for one, two in zip(stretch.before, stretch.after, strict=True):
                node = by_line.get(mine[one])
                if node is None:
                    yield from _plain_pair(before.lines[one], after.lines[two], diff, names)
                else:
                    yield from _pair(before.lines[one], after.lines[two], node, constants)
            continue
        for one in stretch.before:
            if one not in found.there or mine[one] not in by_line:
                yield _single("-", before.lines[one], by_line.get(mine[one]))
        for two in stretch.after:
            key = theirs[two]
            if key in by_line and two in found.back:
                lines = before.lines[found.back[two][0]], after.lines[two]
                yield from (_moved(line) for line in _pair(*lines, by_line[key], constants))
            else:
                yield _single("+", after.lines[two], by_line.get(key))


def _keys(
    diff: FunctionDiff, before: FunctionText, after: FunctionText
) -> tuple[dict[object, NodeDiff], tuple[list[object], list[object]]]:
    """Return the diff of each key, and a key for each line: equal ones are matched."""
    mine: list[object] = [_text_key(line) for line in before.lines]
    theirs: list[object] = [_text_key(line) for line in after.lines]
    found: dict[object, NodeDiff] = {}
    for index, one in enumerate(diff.nodes):
        for side, nodes, text in ((0, one.before, before), (1, one.after, after)):
            keys = (mine, theirs)[side]
            places = [text.nodes[node] for node in nodes if node in text.nodes]
            for number, at in enumerate(reversed(places)):
                # the last of several stands for all, the others are on one side only
                key = (index,) if number == 0 else (index, side, number)
                keys[at] = key
                found[key] = one
    return found, (mine, theirs)


def _text_key(line: str) -> str:
    """Return the text of a line without a node; lines that every function has are equal."""
    text = line.strip()
    return next((start for start in _IN_EVERY_FUNCTION if text.startswith(start)), text)


def _plain_pair(
    before: str, after: str, diff: FunctionDiff, names: Mapping[NodeId, NodeId]
) -> Iterator[Line]:
    """Yield a line without a node, as one where only names differ."""
    is_same = _WORD.findall(before) == [names.get(NodeId(one), one) for one in _WORD.findall(after)]
    if not is_same and before.startswith("def "):
        params = [one for one in diff.changed_nodes if _is_param(one, diff)]
        is_exchanged = diff.loops is not None and diff.loops.parameters
        is_same = (
            not params
            and not is_exchanged
            and before.partition(" -> ")[2] == after.partition(" -> ")[2]
        )
    if is_same:
        yield Line(" ", after)
    else:
        marks = _marks(before, after)
        yield Line("-", before, "", marks[0])
        yield Line("+", after, "", marks[1])


def _is_param(node: NodeDiff, diff: FunctionDiff) -> bool:
    sides = zip((node.before, node.after), diff.graphs, strict=True)
    return any(
        graph[each].kind is NodeKind.PARAM
        for nodes, graph in sides
        if graph is not None
        for each in nodes
    )


def _constants(
    diff: FunctionDiff, before: FunctionText, after: FunctionText
) -> Mapping[NodeId, str]:
    """Return what became of constants, whose values are not in the text, by their users."""
    found: dict[NodeId, list[str]] = {}
    graph = diff.graphs[1]
    for one in diff.changed_nodes:
        has_line = any(node in before.nodes for node in one.before)
        has_line |= any(node in after.nodes for node in one.after)
        if has_line or one.change is not ChangeKind.CHANGED or graph is None:
            continue
        for user in {
            edge.target: None for each in one.after for edge in graph.leaving.get(each, ())
        }:
            found.setdefault(user, []).append(f"{', '.join(one.after)}: {_remark(one)}")
    return {user: "; ".join(words) for user, words in found.items()}


def _pair(
    before: str, after: str, diff: NodeDiff, constants: Mapping[NodeId, str]
) -> Iterator[Line]:
    is_group = diff.change in _GROUPS
    remarks = [_remark(diff), *(constants.get(one, "") for one in diff.after)]
    remark = "; ".join(filter(None, remarks))
    if diff.change is ChangeKind.SAME and not remark:
        yield Line(" ", after)
    elif diff.change in (ChangeKind.SAME, ChangeKind.MOVED) or before == after:
        yield Line("~", after, remark)  # such as a callee's other body
    else:
        marks = ((), ()) if is_group else _marks(before, after)
        yield Line("-", before, "", marks[0])
        yield Line("+", after, remark, marks[1])


_GROUPS = (ChangeKind.FUSED, ChangeKind.SPLIT, ChangeKind.INLINED, ChangeKind.FOLDED)


def _single(sign: str, text: str, diff: NodeDiff | None) -> Line:
    is_last = diff is not None and diff.change in (ChangeKind.SPLIT, ChangeKind.INLINED)
    return Line(sign, text, _remark(diff) if diff is not None and is_last else "")


def _moved(line: Line) -> Line:
    return line._replace(sign="~", remark=line.remark or "moved") if line.sign == " " else line


def _remark(diff: NodeDiff) -> str:
    """Return what became of the nodes of a line, in a few words."""
    if diff.change in _GROUPS:
        count = f"{len(diff.before)} → {len(diff.after)}"
        return f"{diff.change.value} {count}: {', '.join(diff.before)} → {', '.join(diff.after)}"
    words = "; ".join(map(str, diff.differences))
    return f"moved: {words}" if diff.change is ChangeKind.MOVED else words


def _marks(before: str, after: str) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the parts that differ between two lines."""
    if max(len(before), len(after)) > _LONGEST_MARKED:  # it takes quadratic time
        return (), ()
    start = _count_same(before, after)  # most of a line is the same
    rests = before[start:], after[start:]
    end = _count_same(*(rest[::-1] for rest in rests))
    one, other = (rest[: len(rest) - end] for rest in rests)
    found = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    parts = [each for each in found if each[0] != "equal"]
    return tuple((start + a, start + b) for _, a, b, _, _ in parts if a < b), tuple(
        (start + a, start + b) for _, _, _, a, b in parts if a < b
    )


def _count_same(one: str, other: str) -> int:
    """Return the length of the common beginning of both texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _folded(lines: Sequence[Line]) -> list[Line]:
    """Replace long stretches of unchanged lines by their number."""
    shown: set[int] = set()
    for index, line in enumerate(lines):
        if line.sign != " ":
            shown.update(range(index - _CONTEXT, index + _CONTEXT + 1))
    found: list[Line] = []
    for is_shown, stretch in groupby(range(len(lines)), shown.__contains__):
        part = [lines[index] for index in stretch]
        if not is_shown and len(part) > 1:
            part = [Line(" ", f"    … {len(part)} unchanged")]
        found += part
    return found


def _heading(diff: FunctionDiff) -> str:
    name = diff.name
    if diff.before and diff.after and diff.before != diff.after:
        name = f"{diff.before} → {diff.after}"
    counts = Counter(node.change.value for node in diff.changed_nodes)
    words = [f"{count} {change}" for change, count in counts.items()]
    words += [str(each) for each in diff.differences]
    return f"function {name}: {', '.join(words) or diff.change.value}"


def _loop_lines(diff: LoopNestDiff) -> Iterator[Line]:
    """Yield what became of changed blocks and buffers, one per line."""
    for block in diff.blocks:
        if block.change is not ChangeKind.SAME:
            yield Line("#", f"  block {block.name}: {block_words(block)}")
    for buffer in diff.buffers:
        if buffer.change is not ChangeKind.SAME:
            words = [str(each) for each in buffer.differences] or [buffer.change.value]
            yield Line("#", f"  buffer {buffer.after or buffer.before}: {'; '.join(words)}")


def block_words(block: BlockDiff) -> str:
    """Describe what became of a changed block and of the loops around it, in one line."""
    words = [f"loop {each}" for each in block.changed_loops]
    words += [_block_difference(each) for each in block.differences]
    is_plain = block.change is ChangeKind.CHANGED and words
    return "; ".join([*([] if is_plain else [_block_change(block)]), *words])


_PREPOSITIONS = {
    ChangeKind.SPLIT: "into",
    ChangeKind.FUSED: "from",
    ChangeKind.INLINED: "with",
    ChangeKind.ADDED: "around",
    ChangeKind.REMOVED: "around",
}


def _block_change(diff: BlockDiff) -> str:
    """Return what became of a block, with the names of others, as in `split into C_init, C`."""
    if not diff.names:
        return diff.change.value
    return f"{diff.change.value} {_PREPOSITIONS[diff.change]} {', '.join(diff.names)}"


def _block_difference(difference: Difference) -> str:
    """Return what differs in a block; long texts are in the lines below."""
    match difference.aspect:
        case Aspect.DOMAIN:
            return difference.what
        case Aspect.WRITES if difference.before.isidentifier():
            return str(difference)
    return str(difference.aspect.value)


def _signature(text: FunctionText, sign: str) -> Iterable[Line]:
    """Return the line of a function's `def`, and the number of lines after it."""
    start = next((at for at, line in enumerate(text.lines) if line.startswith("def ")), None)
    if start is None:
        return []
    rest = len(text.lines) - start - 1
    return [Line(sign, text.lines[start]), Line(sign, f"    … {rest} lines")]


def _names_only(*texts: Mapping[str, FunctionText]) -> str:
    lines = [[text.lines for _, text in sorted(side.items())] for side in texts]
    return "" if lines[0] == lines[1] else ": only names, or the order of independent lines"


def _printable(text: str) -> str:
    """Return a text without characters that control a terminal."""
    plain = visible(text)
    if plain.isprintable():
        return plain
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in plain)


def _written(line: Line, colour: bool) -> str:
    sign = "" if line.sign == "#" else f"{line.sign} "
    remark = f"  # {_printable(line.remark)}" if line.remark else ""
    if not colour or line.sign == " ":
        return f"{sign}{_printable(line.text)}{remark}".rstrip()
    text = ""
    at = 0
    for start, end in line.marks:
        part = _printable(line.text[start:end])
        text += f"{_printable(line.text[at:start])}\x1b[{_MARKED}m{part}\x1b[27m"
        at = end
    text += _printable(line.text[at:])
    return f"\x1b[{_COLOURS[line.sign]}m{sign}{text}\x1b[0m{remark}"
