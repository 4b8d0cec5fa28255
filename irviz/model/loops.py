"""The loop nest of one PrimFunc, as plain data.

Sizes, indices and conditions are text as TVMScript writes them, so that symbolic ones need no
second form. Names are unique where they can be seen together, as in TVMScript.
"""

from __future__ import annotations

from dataclasses import dataclass
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


LoopNode: TypeAlias = Loop | Block | Statement


@dataclass(frozen=True)
class LoopNest:
    """A PrimFunc: its parameters, every buffer allocated anywhere in it, and what it does."""

    name: str
    parameters: tuple[Buffer | Scalar, ...]
    temporaries: tuple[Buffer, ...]
    body: tuple[LoopNode, ...]
