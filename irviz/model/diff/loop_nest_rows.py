"""A loop nest as rows of text, in abbreviated TVMScript."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from irviz.model.loop_nest import Axis, AxisKind, Block, Loop, LoopKind, LoopNest, LoopNode

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


def listing(nest: LoopNest, with_extents: Collection[str] = ()) -> list[Row]:
    """Return the rows of a loop nest, in the order of the text.

    Args:
        with_extents: The ids of the blocks whose axes are written with kind and extent.
    """
    rows = [Row(RowKind.PARAMETER, f"param {one}", 0, one.name) for one in nest.parameters]
    rows += [Row(RowKind.BUFFER, f"buffer {one}", 0, one.name) for one in nest.temporaries]
    rows += _rows(nest.body, 0, "", with_extents)
    return rows


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
    value = f" = {axis.binding}" if axis.binding else ""
    start = "" if axis.start == "0" else f" from {axis.start}"
    if is_full:
        return f"{axis.name}{value} of {axis.extent}{start} ({axis.kind.value})"
    return f"{axis.name}{value}{_LETTERS.get(axis.kind, f' ({axis.kind.value})')}"
