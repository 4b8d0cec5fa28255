"""The result of a diff: what became of each node, function, loop and buffer; parts of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from irviz.errors import NotFoundError
from irviz.model.graph.graph import (
    AFTER,
    BEFORE,
    INPUT_KINDS,
    Graph,
    NodeId,
    NodeKind,
    neighbourhood,
    nodes_between,
    subgraph,
)
from irviz.model.loop_nest import LoopNest
from irviz.model.matching.alignment import Alignment, MatchedBy


class Aspect(Enum):
    """The aspect in which a node, function or module differs."""

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
    VISIBILITY = "visibility"
    LOOPS = "loops and blocks"
    AXES = "axes"
    STATEMENT = "statement"
    READS = "reads"
    WRITES = "writes"
    PREDICATE = "condition"
    BINDINGS = "bindings"
    DOMAIN = "domain"
    SCOPE = "storage scope"
    LAYOUT = "memory layout"


class Difference(NamedTuple):
    """A difference, with both sides as text; "" means absent.

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
        is_other = self.aspect is Aspect.OPERAND and self.before == self.after
        other = "another " if is_other else ""  # two values of the same name
        return f"{what}: {self.before or 'none'} → {other}{self.after or 'none'}"


class ChangeKind(Enum):
    """What became of a function, or of nodes, loops, blocks or buffers."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    FUSED = "fused"
    SPLIT = "split"
    INLINED = "inlined"
    FOLDED = "folded into a constant"
    REORDERED = "reordered"
    BOUND = "bound"
    VECTORIZED = "vectorized"
    UNROLLED = "unrolled"
    PARALLEL = "made parallel"
    SERIAL = "made serial"


class Part(NamedTuple):
    """A node and the node inside of a called function that it became.

    A node inside of a called function has an id made by `inlined_id`. In a PrimFunc it is a block,
    or the whole call if the block is unknown.
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
        by: How they were matched; None for ADDED and REMOVED.
        differences: The differences, including those of moved nodes.
        callee: The function that contains the nodes of the other side.
        parts: The individual nodes of the group, if the called function was examined.
    """

    change: ChangeKind
    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]
    by: MatchedBy | None = None
    differences: tuple[Difference, ...] = ()
    callee: str = ""
    parts: tuple[Part, ...] = ()


class DomainDiff(NamedTuple):
    """Whether two blocks visit the same points by loops, given by their ids, that depend on others.

    `is_same` is None if it is not known. `words` say what differs, such as `covers 60 of 64`, or
    the order; else why it is not known.
    """

    loops_before: tuple[str, ...]
    loops_after: tuple[str, ...]
    is_same: bool | None
    words: str = ""


class LoopGroup(NamedTuple):
    """Loops around a block that iterate over the same of its axes, before and after.

    Attributes:
        before: The variables of the loops before, outermost first; `ids_before` are their ids.
        changes: What became of them; only SAME if nothing did.
        domain: What differs in what the block visits, such as `but covers 60 of 64`, or in the
            order of it; "" if nothing does.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    changes: tuple[ChangeKind, ...]
    ids_before: tuple[str, ...]
    ids_after: tuple[str, ...]
    domain: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether anything differs."""
        return bool(self.domain) or self.changes != (ChangeKind.SAME,)

    def __str__(self) -> str:
        """Describe the change, as in `i → i_0, i_1: split, but covers 60 of 64`."""
        changes = [change.value for change in self.changes if change is not ChangeKind.SAME]
        domain = self.domain if changes else self.domain.removeprefix("but ")
        words = ", ".join(filter(None, [*changes, domain])) or ChangeKind.SAME.value
        sides = [", ".join(names) or "none" for names in (self.before, self.after)]
        names = sides[0] if sides[0] == sides[1] else " → ".join(sides)
        return f"{names}: {words}"


class BlockDiff(NamedTuple):
    """What became of a block, or of several: 1 → n for SPLIT, n → 1 for FUSED.

    Attributes:
        before: The ids of the blocks before; the last of several has the loops and the statement.
        after: The ids of the blocks after; the last of several has the loops and the statement.
        name: The name of the block after or, where it was removed or split, before.
        loops: What became of the loops around it and the blocks around it.
        names: The names of the blocks that it was split into or fused from, or that are inside of
            one that was added, removed or inlined.
    """

    change: ChangeKind
    before: tuple[str, ...]
    after: tuple[str, ...]
    name: str
    by: MatchedBy | None = None
    differences: tuple[Difference, ...] = ()
    loops: tuple[LoopGroup, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def changed_loops(self) -> Sequence[LoopGroup]:
        """The loops that are not the same."""
        return [one for one in self.loops if one.is_changed]


class BufferDiff(NamedTuple):
    """What became of a buffer; a name is "" on a side without the buffer."""

    change: ChangeKind
    before: str
    after: str
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class LoopNestDiff:
    """What became of a PrimFunc's body.

    Attributes:
        statements: The statements outside of blocks, and the loops around no block, that differ.
        parameters: Another order of the parameters.
        lines: Which of these statements and loops correspond, and whether they are the same.
    """

    blocks: tuple[BlockDiff, ...]
    buffers: tuple[BufferDiff, ...]
    statements: tuple[Difference, ...] = ()
    parameters: tuple[Difference, ...] = ()
    lines: Alignment[str, bool] = field(default=Alignment({}), compare=False, repr=False)

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return any(self.changes)

    @property
    def summary(self) -> str:
        """What became of loops and blocks, as in `1 loop split · 1 block moved`; "" for nothing."""
        counts = Counter(self.changes)
        words = [f"{n:,} {what}{'s' * (n > 1)} {change}" for (what, change), n in counts.items()]
        return " · ".join(words)

    @property
    def changes(self) -> Iterator[tuple[str, str]]:
        """The kind of each thing that changed, such as "loop", and what became of it."""
        plain = (ChangeKind.SAME, ChangeKind.CHANGED)
        for block in self.blocks:
            for group in block.changed_loops:
                changes = [one for one in group.changes if one is not ChangeKind.SAME]
                yield from (("loop", one.value) for one in changes or [ChangeKind.CHANGED])
            is_said = block.change is ChangeKind.SAME or block.changed_loops
            if block.change not in plain or not is_said:
                yield "block", block.change.value
        for buffer in self.buffers:
            if buffer.change is not ChangeKind.SAME:
                yield "buffer", buffer.change.value
        yield from (("statement", ChangeKind.CHANGED.value) for _ in self.statements)
        yield from (("parameter", ChangeKind.REORDERED.value) for _ in self.parameters)


@dataclass(frozen=True)
class FunctionDiff:
    """What became of one function.

    Attributes:
        before: Its name before, "" where it was added.
        after: Its name after, "" where it was removed.
        by: How the two were matched; None if it was added or removed.
        differences: The differences in name, attributes, result and purity.
        nodes: What became of each node, including unchanged ones, in the order of the text; empty
            for functions that were added or removed.
        loops: What became of the body of a PrimFunc; None if unchanged, and for other functions.
        graphs: The graphs before and after; None if there is none, and for an unchanged PrimFunc.
        nests: The loop nests of a changed PrimFunc before and after; None if there is none.
    """

    before: str
    after: str
    change: ChangeKind
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
        return [one for one in self.nodes if one.change is not ChangeKind.SAME]

    @property
    def summary(self) -> str:
        """What differs, as in `3 changed · 5 → 1 fused`; what is said of loops if these differ."""
        parts = self.loops.summary if self.loops else node_summary(self.changed_nodes)
        others = ", ".join(dict.fromkeys(one.aspect.value for one in self.differences))
        return parts or others or self.change.value

    @property
    def changed_bindings(self) -> int:
        """How many bindings were changed, added, removed or replaced by others."""
        return sum(
            max(
                sum(graph[node].kind not in _NOT_BOUND for node in nodes) if graph else 0
                for graph, nodes in zip(self.graphs, (one.before, one.after), strict=True)
            )
            for one in self.changed_nodes
        )

    @property
    def frame_contents(self) -> dict[NodeId, str]:
        """By node id, what a grouped node is on the other side, as in `matmul + add`."""
        found: dict[NodeId, str] = {}
        before, after = self.graphs
        for one in self.nodes:
            if before and len(one.after) == 1 < len(one.before):
                found[one.after[0]] = _names(before, one.before)
            elif after and len(one.before) == 1 < len(one.after):
                found[one.before[0]] = _names(after, one.after)
        return found


def node_summary(changed: Iterable[NodeDiff]) -> str:
    """Count the changes of nodes, as in `3 changed · 5 → 1 fused`; "" for none."""
    counts: Counter[str] = Counter()
    joined: dict[str, list[int]] = {}
    for diff in changed:
        if len(diff.before) == len(diff.after) == 1 or not diff.before or not diff.after:
            counts[diff.change.value] += max(len(diff.before), len(diff.after))
        else:
            sums = joined.setdefault(diff.change.value, [0, 0])
            sums[0] += len(diff.before)
            sums[1] += len(diff.after)
    words = [f"{counts[one.value]:,} {one.value}" for one in ChangeKind if counts[one.value]]
    words += [f"{before:,} → {after:,} {word}" for word, (before, after) in joined.items()]
    return " · ".join(words)


_NOT_BOUND = (*INPUT_KINDS, NodeKind.VALUE)


def _names(graph: Graph, ids: Sequence[NodeId]) -> str:
    nodes = (graph[one] for one in ids)
    names = Counter(
        (node.callee or node.name).removeprefix("relax.")
        for node in nodes
        if node.kind not in _NOT_BOUND
    )
    return " + ".join(f"{name} ×{count}" if count > 1 else name for name, count in names.items())


# --- What became of a module ---------------------------------------------------------------------


_MOST_NAMED = 4


@dataclass(frozen=True)
class ModuleDiff:
    """The differences between two modules; true if there are any.

    Attributes:
        before: The title of the module before.
        after: The title of the module after.
        functions: What became of each function, including unchanged ones.
        differences: The differences of the modules themselves, such as their attributes.
        transform: The transform between the two, "" if unknown.
        texts: The TVMScript of both modules.
    """

    before: str
    after: str
    functions: tuple[FunctionDiff, ...]
    differences: tuple[Difference, ...] = ()
    transform: str = field(default="", compare=False)
    texts: tuple[ModuleText, ModuleText] | None = field(default=None, compare=False, repr=False)

    def __bool__(self) -> bool:
        """Return whether anything differs; names of variables do not count."""
        return bool(self.differences or self.changed_functions)

    @property
    def changed_functions(self) -> Sequence[FunctionDiff]:
        """The functions that are not the same."""
        return [one for one in self.functions if one.change is not ChangeKind.SAME]

    @property
    def summary(self) -> str:
        """The number of bindings that differ, and the functions, in words."""
        count = sum(one.changed_bindings for one in self.functions)
        words = [f"{count} binding{'s' * (count != 1)}"] if count else []
        for change in ChangeKind:
            names = [one.name for one in self.changed_functions if one.change is change]
            if names:
                more = ", …" if len(names) > _MOST_NAMED else ""
                shown = ", ".join(names[:_MOST_NAMED]) + more
                words.append(
                    f"{len(names)} function{'s' * (len(names) != 1)} {change.value} ({shown})"
                )
        words += ["attributes of the module"] if self.differences else []
        return "; ".join(words) or "nothing"

    def to_dict(self) -> dict[str, object]:
        """Return the diff as dictionaries, lists and strings, ready for JSON."""
        return {
            "before": self.before,
            "after": self.after,
            "differs": bool(self),
            "differences": _plain(self.differences),
            "functions": _plain(self.functions),
        }


def _plain(value: object) -> object:
    """Return records as dictionaries, without fields that are not compared."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.compare}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(each) for name, each in zip(value._fields, value, strict=True)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value


# --- The TVMScript of a module by function, with the line of each node ---------------------------


@dataclass(frozen=True)
class FunctionText:
    """The lines of a function, of which the module's text has the first at the line `start`.

    `nodes` has the index of the line of each binding.
    """

    lines: tuple[str, ...]
    nodes: Mapping[NodeId, int]
    start: int


class ModuleText:
    """The texts of a module's functions by name, printed on first use; pickled as plain data."""

    def __init__(self, make: Callable[[], Mapping[str, FunctionText]]) -> None:
        self._make: Callable[[], Mapping[str, FunctionText]] | None = make

    @cached_property
    def functions(self) -> Mapping[str, FunctionText]:
        """The functions by name, in the order of the text."""
        assert self._make is not None, "its result takes its place"
        made = self._make()
        self._make = None
        return made

    def __getstate__(self) -> dict[str, object]:
        return {"_make": None, "functions": self.functions}


def diff_part(
    diff: FunctionDiff, around: NodeId, steps: int = 1, to: NodeId | None = None
) -> FunctionDiff:
    """Return the diff of the neighbourhood of a node on both sides, or of the paths between two.

    The part includes what its nodes became, and what they were made from.

    Args:
        around: A node after the change or, if it was removed, before.
        steps: How many uses away a node may be.
        to: The node at the other end of the paths.

    Raises:
        NotFoundError: There is no such node, or no path between the two.
    """
    before, after = diff.graphs
    if before is None or after is None:
        raise NotFoundError(f"{diff.name!r} is not drawn as a graph: leave out {around!r}")
    starts = _on_both_sides(diff, before, after, around)
    ends = None if to is None else _on_both_sides(diff, before, after, to)
    kept: tuple[set[NodeId], set[NodeId]] = (set(), set())
    for at, graph in enumerate((before, after)):
        for start in starts[at]:
            if ends is None:
                kept[at].update(neighbourhood(graph, start, steps))
            for end in ends[at] if ends else ():
                kept[at].update(nodes_between(graph, start, end))
    if not kept[0] and not kept[1]:
        raise NotFoundError(f"there is no path between {around!r} and {to!r} in {diff.name!r}")
    nodes = [
        one
        for one in diff.nodes
        if not (kept[0].isdisjoint(one.before) and kept[1].isdisjoint(one.after))
    ]
    for one in nodes:
        kept[0].update(one.before)
        kept[1].update(one.after)
    graphs = subgraph(before, kept[0]), subgraph(after, kept[1])
    rest = [_rest(one, *graphs) for one in (BEFORE, AFTER)]
    return replace(diff, nodes=(*nodes, *filter(None, rest)), graphs=graphs)


def functions_with(diffs: Sequence[FunctionDiff], node: str) -> list[FunctionDiff]:
    """Return the functions with a node before or after; raise NotFoundError if there are none."""
    found = [one for one in diffs if any(graph and node in graph.index for graph in one.graphs)]
    if not found:
        names = ", ".join(repr(one.name) for one in diffs) or "no function"
        raise NotFoundError(f"there is no node {node!r} in what differs: {names}")
    return found


def _on_both_sides(
    diff: FunctionDiff, before: Graph, after: Graph, node: NodeId
) -> tuple[Collection[NodeId], ...]:
    """Return a node after with what it was before, or a node before with what it became."""
    if node in after.index:
        was = (one.before for one in diff.nodes if node in one.after)
        return next(was, ()), (node,)
    if node in before.index:
        became = (one.after for one in diff.nodes if node in one.before)
        return (node,), next(became, ())
    raise NotFoundError(f"neither side of {diff.name!r} has a node {node!r}")


def _rest(node: NodeId, before: Graph, after: Graph) -> NodeDiff | None:
    """Return the diff of a group of nodes that are left out."""
    was, now = ((node,) if node in graph.index else () for graph in (before, after))
    if was and now:
        return NodeDiff(ChangeKind.SAME, was, now)
    change = ChangeKind.REMOVED if was else ChangeKind.ADDED
    return NodeDiff(change, was, now) if was or now else None
