"""The result of a diff, as data: what became of each node, function, loop and buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from irviz.model.graph.graph import INPUT_KINDS, Graph, NodeId, NodeKind
from irviz.model.loop_nest import LoopNest
from irviz.model.matching.node_matching import MatchedBy


class Aspect(Enum):
    """What differs between a node, a function or a module before and after."""

    CALLEE = "callee"
    BODY = "callee's body"
    LOWERED = "operator lowered to a PrimFunc"
    OPERATION = "operation"
    OPERAND = "operand"
    SHAPE = "shape"
    DTYPE = "dtype"
    TYPE = "type"
    DEVICE = "virtual device"
    ATTRIBUTE = "attribute"
    PURITY = "purity"
    VALUE = "value of the constant"
    BOUND = "parameter bound to a constant"
    BLOCK = "block"
    ORDER = "order"
    RESULT = "result"
    NAME = "name"
    KIND = "kind of function"
    LOOPS = "loops and blocks"
    AXES = "axes"
    STATEMENT = "statement"
    READS = "reads"
    WRITES = "writes"
    PREDICATE = "condition"
    SCOPE = "storage scope"


class Difference(NamedTuple):
    """One difference, as text; "" stands for nothing.

    Attributes:
        what: Which operand or attribute it is: `(0,)` is written `0`, `(1, 2)` is `1.2`.
    """

    aspect: Aspect
    before: str
    after: str
    what: str = ""

    def __str__(self) -> str:
        """Return the difference in words, such as `operand 1: lv2 → lv3`."""
        what = f"{self.aspect.value} {self.what}".strip()
        if not self.before and not self.after:
            return what
        return f"{what}: {self.before or 'none'} → {self.after or 'none'}"


class NodeChange(Enum):
    """What became of a node, or of several."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    FUSED = "fused"
    SPLIT = "split"
    INLINED = "inlined"
    FOLDED = "folded into a constant"


class Part(NamedTuple):
    """A node and the node that it became inside of a function that is called.

    The one that is inside of a called function has an id as of `inlined_id`; in a PrimFunc it is a
    block, or the call as a whole where it is not known which block.
    """

    before: NodeId
    after: NodeId
    by: MatchedBy
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class NodeDiff:
    """What became of one node or, for FUSED, SPLIT, INLINED and FOLDED, of several.

    Attributes:
        before: The nodes before, in the order of the text; none for ADDED.
        after: The nodes after; none for REMOVED.
        by: What shows that they correspond; None for ADDED and REMOVED.
        differences: What differs, also for nodes that were moved.
        callee: The function that contains the nodes of the other side.
        parts: The nodes of the group one by one, where the function was looked into.
    """

    change: NodeChange
    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]
    by: MatchedBy | None = None
    differences: tuple[Difference, ...] = ()
    callee: str = ""
    parts: tuple[Part, ...] = ()


class LoopChange(Enum):
    """What became of a loop, a block or a buffer."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    INLINED = "inlined"
    SPLIT = "split"
    FUSED = "fused"
    REORDERED = "reordered"
    BOUND = "bound"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    PARALLEL = "made parallel"
    SERIAL = "made serial"


class LoopGroup(NamedTuple):
    """Loops around a block that run through the same axes of it, before and after.

    Attributes:
        before: The variables of the loops before, from the outside in.
        after: The variables after.
        changes: All that became of them; SAME alone where nothing did.
        ids_before: The ids of the loops in the nest before.
        ids_after: The ids after.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    changes: tuple[LoopChange, ...]
    ids_before: tuple[str, ...]
    ids_after: tuple[str, ...]

    def __str__(self) -> str:
        """Return it in words, such as `i → i_0, i_1: split`."""
        words = ", ".join(change.value for change in self.changes)
        sides = [", ".join(names) or "none" for names in (self.before, self.after)]
        names = sides[0] if sides[0] == sides[1] else " → ".join(sides)
        return f"{names}: {words}"


class BlockDiff(NamedTuple):
    """What became of a block, or of several: 1 → n for SPLIT.

    Attributes:
        before: The ids of the blocks before.
        after: The ids of the blocks after.
        name: The name of the block after or, where it was removed, before.
        by: What shows that they correspond.
        loops: What became of the loops around it; of a block that was split, around the one after
            that has its axes.
    """

    change: LoopChange
    before: tuple[str, ...]
    after: tuple[str, ...]
    name: str
    by: MatchedBy | None = None
    differences: tuple[Difference, ...] = ()
    loops: tuple[LoopGroup, ...] = ()

    @property
    def changed_loops(self) -> Sequence[LoopGroup]:
        """The loops that are not the same."""
        return [one for one in self.loops if one.changes != (LoopChange.SAME,)]


class BufferDiff(NamedTuple):
    """What became of a buffer; a name is "" where there is none."""

    change: LoopChange
    before: str
    after: str
    differences: tuple[Difference, ...] = ()


class LoopNestDiff(NamedTuple):
    """What became of a PrimFunc's body.

    `statements` are lines outside of blocks, and loops around no block, that differ.
    """

    blocks: tuple[BlockDiff, ...]
    buffers: tuple[BufferDiff, ...]
    statements: tuple[Difference, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether it says of anything that it is not the same."""
        changes = [*(one.change for one in self.blocks), *(one.change for one in self.buffers)]
        return bool(self.statements) or any(change is not LoopChange.SAME for change in changes)


class FunctionChange(Enum):
    """What became of a function."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class FunctionDiff:
    """What became of one function.

    Attributes:
        before: Its name before, "" where it was added.
        after: Its name after, "" where it was removed.
        by: What shows that it is one function; None where it was added or removed.
        differences: What differs of the function itself: its name, attributes, result, purity.
        nodes: What became of each node, those that are the same included, in the order of the
            text; empty for functions that were added or removed.
        loops: What became of the body of a PrimFunc; None where it is the same, and for others.
        graphs: The graphs before and after; None where there is none, and for a PrimFunc that is
            the same.
        nests: The loop nests before and after of a PrimFunc that is not the same; None where there
            is none.
    """

    before: str
    after: str
    change: FunctionChange
    by: MatchedBy | None = None
    differences: tuple[Difference, ...] = ()
    nodes: tuple[NodeDiff, ...] = ()
    loops: LoopNestDiff | None = None
    graphs: tuple[Graph | None, Graph | None] = field(
        default=(None, None), compare=False, repr=False
    )
    nests: tuple[LoopNest | None, LoopNest | None] = field(
        default=(None, None), compare=False, repr=False
    )

    @property
    def name(self) -> str:
        """The name after or, where it was removed, before."""
        return self.after or self.before

    @property
    def changed_nodes(self) -> Sequence[NodeDiff]:
        """The nodes that are not the same."""
        return [one for one in self.nodes if one.change is not NodeChange.SAME]

    @property
    def frame_contents(self) -> dict[NodeId, str]:
        """What a node of the other side consists of, as `matmul + add`, by the id of the node."""
        found: dict[NodeId, str] = {}
        before, after = self.graphs
        for one in self.nodes:
            if before and len(one.after) == 1 < len(one.before):
                found[one.after[0]] = _names(before, one.before)
            elif after and len(one.before) == 1 < len(one.after):
                found[one.before[0]] = _names(after, one.after)
        return found


def _names(graph: Graph, ids: Sequence[NodeId]) -> str:
    nodes = (graph[one] for one in ids)
    return " + ".join(
        (node.callee or node.name).removeprefix("relax.")
        for node in nodes
        if node.kind not in (*INPUT_KINDS, NodeKind.VALUE)
    )
