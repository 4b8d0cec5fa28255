"""The loop nest of one PrimFunc, as plain data.

Sizes, indices and conditions are text as TVMScript writes them, so that symbolic ones need no
second form. Names are unique where they can be seen together, as in TVMScript.

A node's `id` is the way to it from the PrimFunc, such as `body.block.body.seq[0]`, as TVM writes
it: unique in the nest, and what an error of TVM's schedule points with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias


class AxisKind(Enum):
    """What an axis of a block promises about the order of its steps; the value is the word."""

    SPATIAL = "spatial"
    REDUCTION = "reduction"
    ORDERED = "ordered"
    OPAQUE = "opaque"
    THREAD = "thread"
    UNROLLED = "unrolled"
    VECTORIZED = "vectorized"
    PARALLEL = "parallel"
    TENSORIZED = "tensorized"


class LoopKind(Enum):
    """How a loop runs; the value is the word."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    THREAD_BINDING = "thread_binding"


@dataclass(frozen=True)
class Buffer:
    """Memory with a shape, written as a Python tuple; `scope` says where it lies."""

    name: str
    shape: str
    dtype: str
    scope: str = "global"


@dataclass(frozen=True)
class Scalar:
    """A parameter without a shape: a number or a handle."""

    name: str
    dtype: str


@dataclass(frozen=True)
class Access:
    """A part of a buffer: `region` is what stands between the brackets."""

    buffer: str
    region: str


@dataclass(frozen=True)
class Axis:
    """One axis of a block; `binding` is its value in terms of loops, "" where none is given."""

    name: str
    kind: AxisKind
    extent: str
    binding: str
    start: str = "0"


@dataclass(frozen=True)
class Match:
    """A block's own view of a part of another buffer (TVM's match_buffer)."""

    buffer: Buffer
    source: Access


@dataclass(frozen=True)
class Statement:
    """What is neither loop nor block, as one line of TVMScript, and what stands inside of it."""

    text: str
    children: tuple[LoopNode, ...] = ()
    id: str = field(default="", compare=False)


@dataclass(frozen=True)
class Loop:
    """A loop; `axes` are the kinds of the axes that its variable drives, each once.

    `thread` names the thread that a THREAD_BINDING loop is bound to.
    """

    variable: str
    extent: str
    kind: LoopKind
    children: tuple[LoopNode, ...]
    axes: tuple[AxisKind, ...] = ()
    start: str = "0"
    step: str = "1"
    thread: str = ""
    annotations: tuple[tuple[str, str], ...] = ()
    id: str = field(default="", compare=False)


@dataclass(frozen=True)
class Block:
    """A block (TVM's SBlock): what one step of the loops around it reads, writes and does.

    `predicate` is the condition under which the step is made, "" for always.
    """

    name: str
    axes: tuple[Axis, ...]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    children: tuple[LoopNode, ...]
    init: tuple[LoopNode, ...] = ()
    temporaries: tuple[Buffer, ...] = ()
    matches: tuple[Match, ...] = ()
    predicate: str = ""
    annotations: tuple[tuple[str, str], ...] = ()
    id: str = field(default="", compare=False)


LoopNode: TypeAlias = Loop | Block | Statement


@dataclass(frozen=True)
class LoopNest:
    """A PrimFunc: its parameters, every buffer allocated anywhere in it, and what it does."""

    name: str
    parameters: tuple[Buffer | Scalar, ...]
    temporaries: tuple[Buffer, ...]
    body: tuple[LoopNode, ...]


@dataclass(frozen=True)
class BlockNamed:
    """Where a block is: its name, which TVM's schedules find it by."""

    name: str

    def __str__(self) -> str:
        """Say it in a word."""
        return self.name


@dataclass(frozen=True)
class LoopOf:
    """Where a loop is: it is number `depth` of those around a block, counted from 0, the outer."""

    block: str
    depth: int

    def __str__(self) -> str:
        """Say it in words."""
        return f"loop {self.depth} of {self.block}"


Address: TypeAlias = BlockNamed | LoopOf


def addresses(nest: LoopNest) -> dict[str, Address]:
    """Return where a schedule finds each loop and block, by id.

    What is missing cannot be scheduled: a loop without a block right under it, what stands in
    an init, and blocks that share their name with another.
    """
    placed = list(_placed(nest.body, ()))
    names = Counter(block.name for block, _ in placed)
    found: dict[str, Address] = {}
    for block, around in placed:
        if names[block.name] == 1:
            found[block.id] = BlockNamed(block.name)
            for depth, loop in enumerate(around):
                found.setdefault(loop.id, LoopOf(block.name, depth))
    return found


def nearest(nest: LoopNest, path: str) -> str:
    """Return the id of the innermost node on a way from the PrimFunc, "" for none."""
    on_it = [node.id for node in nodes(nest) if _is_on(path, node.id)]
    return max(on_it, key=len, default="")


def nodes(nest: LoopNest) -> Iterator[LoopNode]:
    """Yield every node, in the order of the text."""
    stack = list(reversed(nest.body))
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)
        if isinstance(node, Block):
            stack += reversed(node.init)


def _placed(
    inside: tuple[LoopNode, ...], around: tuple[Loop, ...]
) -> Iterator[tuple[Block, tuple[Loop, ...]]]:
    """Yield the blocks with the loops around each, up to the next block."""
    for node in inside:
        match node:
            case Loop():
                yield from _placed(node.children, (*around, node))
            case Block():
                yield node, around
                yield from _placed(node.children, ())
            case Statement():
                yield from _placed(node.children, around)


def _is_on(path: str, node_id: str) -> bool:
    rest = path.removeprefix(node_id)
    return bool(node_id) and path.startswith(node_id) and rest[:1] in ("", ".", "[")
