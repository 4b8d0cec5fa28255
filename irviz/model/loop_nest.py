"""The loop nest of one PrimFunc, as plain data.

Sizes, indices and conditions are text in the form of TVMScript, which covers symbolic ones too.
Names are unique within a scope, as in TVMScript.

A node's `id` is its access path in the PrimFunc, such as `body.block.body.seq[0]`. Errors of TVM's
schedules name nodes by these paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias


class AxisKind(Enum):
    """The iteration type of a block's axis, in the order of TVM's numbers for them."""

    SPATIAL = "spatial"
    THREAD = "thread"
    REDUCTION = "reduction"
    ORDERED = "ordered"
    OPAQUE = "opaque"
    UNROLLED = "unrolled"
    VECTORIZED = "vectorized"
    PARALLEL = "parallel"
    TENSORIZED = "tensorized"


class LoopKind(Enum):
    """How a loop runs; the names are those of TVM's ForKind."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    THREAD_BINDING = "thread_binding"


@dataclass(frozen=True)
class Buffer:
    """A buffer; its shape is written as a Python tuple, `scope` is its storage scope.

    `layout` has the strides, the offset and the alignment where they are not TVM's defaults.
    """

    name: str
    shape: str
    dtype: str
    scope: str = "global"
    layout: str = ""

    def __str__(self) -> str:
        scope = "" if self.scope == "global" else f" {self.scope}"
        return f"{self.name}: {self.shape} {self.dtype}{scope}"


@dataclass(frozen=True)
class Scalar:
    """A parameter without a shape: a number or a handle."""

    name: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}"


@dataclass(frozen=True)
class BufferRegion:
    """A part of a buffer: `region` is the text between the brackets."""

    buffer: str
    region: str

    def __str__(self) -> str:
        return f"{self.buffer}[{self.region}]"


@dataclass(frozen=True)
class Axis:
    """An axis of a block; `binding` is its value in terms of loop variables, "" for none."""

    name: str
    kind: AxisKind
    extent: str
    binding: str
    start: str = "0"

    def __str__(self) -> str:
        value = f" = {self.binding}" if self.binding else ""
        start = "" if self.start == "0" else f" from {self.start}"
        return f"{self.name}{value} of {self.extent}{start}"


@dataclass(frozen=True)
class MatchBuffer:
    """A block's own name for a part of a buffer (TVM's match_buffer)."""

    buffer: Buffer
    source: BufferRegion


@dataclass(frozen=True)
class Statement:
    """Any other statement: one line of TVMScript, and the statements inside."""

    text: str
    children: tuple[LoopNode, ...] = ()
    id: str = field(default="", compare=False)


@dataclass(frozen=True)
class Loop:
    """A loop.

    `axes` are the kinds of the axes that its variable is bound to, each once. `thread` is the
    thread axis of a THREAD_BINDING loop.
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
    """A block (TVM's SBlock), which runs in each iteration of the loops around it.

    `predicate` is the condition under which it runs, "" for always.
    """

    name: str
    axes: tuple[Axis, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    children: tuple[LoopNode, ...]
    init: tuple[LoopNode, ...] = ()
    temporaries: tuple[Buffer, ...] = ()
    matches: tuple[MatchBuffer, ...] = ()
    predicate: str = ""
    annotations: tuple[tuple[str, str], ...] = ()
    id: str = field(default="", compare=False)


LoopNode: TypeAlias = Loop | Block | Statement


@dataclass(frozen=True)
class LoopNest:
    """A PrimFunc: its parameters, all buffers that it allocates anywhere, and its statements."""

    name: str
    parameters: tuple[Buffer | Scalar, ...]
    temporaries: tuple[Buffer, ...]
    body: tuple[LoopNode, ...]


@dataclass(frozen=True)
class BlockAddress:
    """The address of a block in a schedule: its name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class LoopAddress:
    """The address of a loop in a schedule: its number among the loops of a block, from outside."""

    block: str
    depth: int

    def __str__(self) -> str:
        return f"loop {self.depth} of {self.block}"


ScheduleAddress: TypeAlias = BlockAddress | LoopAddress


def schedule_addresses(nest: LoopNest) -> dict[str, ScheduleAddress]:
    """Return the addresses of loops and blocks by id.

    Some have none and cannot be scheduled: loops that are not around a block, anything in an init
    statement, and blocks with the same name as another block.
    """
    blocks = list(blocks_in_loops(nest.body))
    names = Counter(block.name for block, _ in blocks)
    addresses: dict[str, ScheduleAddress] = {}
    for block, loops in blocks:
        if names[block.name] == 1:
            addresses[block.id] = BlockAddress(block.name)
            for depth, loop in enumerate(loops):
                addresses.setdefault(loop.id, LoopAddress(block.name, depth))
    return addresses


def innermost_node(nest: LoopNest, path: str) -> str:
    """Return the id of the innermost node on an access path, "" for none."""
    ids = (node.id for node in walk(nest) if node.id)
    around = (one for one in ids if f"{path}.".startswith((f"{one}.", f"{one}[")))
    return max(around, key=len, default="")


def walk(nest: LoopNest) -> Iterator[LoopNode]:
    """Yield every node, in the order of the text."""
    return (node for node, _ in within(nest.body))


def within(nodes: Sequence[LoopNode]) -> Iterator[tuple[LoopNode, tuple[LoopNode, ...]]]:
    """Yield nodes and all within them, each with those around it, the outermost first."""
    around: tuple[LoopNode, ...] = ()
    stack = [(node, around) for node in reversed(nodes)]
    while stack:
        node, around = stack.pop()
        yield node, around
        inside = (*node.init, *node.children) if isinstance(node, Block) else node.children
        if inside:
            around = (*around, node)
            stack += [(one, around) for one in reversed(inside)]


def contains_block(node: LoopNode) -> bool:
    """Return whether a node is a block, or has one inside."""
    return isinstance(node, Block) or any(map(contains_block, node.children))


def blocks_in_loops(
    nodes: tuple[LoopNode, ...], loops: tuple[Loop, ...] = ()
) -> Iterator[tuple[Block, tuple[Loop, ...]]]:
    """Yield the blocks, each with the loops between it and the block around it."""
    for node in nodes:
        match node:
            case Loop():
                yield from blocks_in_loops(node.children, (*loops, node))
            case Block():
                yield node, loops
                yield from blocks_in_loops(node.children)
            case Statement():
                yield from blocks_in_loops(node.children, loops)
