"""How a node came about: its history over the stages, and the pass to blame for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import tvm_ffi

from irviz.errors import NotFoundError
from irviz.gc_pause import gc_paused
from irviz.ir.module_functions import function_named, relax_functions
from irviz.ir.tvmscript import source_words
from irviz.model.diff.diff_result import ChangeKind, FunctionDiff, NodeDiff
from irviz.model.graph.graph import Edge, Graph, Node, NodeId, Region, RegionKind, grouped
from irviz.model.graph.layers import layer_name
from irviz.session.stable_layout import chain
from irviz.session.stage_cache import graph_of, script_of, source_lines_of
from irviz.session.stage_diff import diff_modules
from irviz.transforms.stage import Stage, StageTree
from irviz.view.graph.graph_figure import Direction, GraphFigure, draw_graph
from irviz.view.theme import ThemeName


@dataclass(frozen=True)
class HistoryStep:
    """What a node is in one stage, and what the pass that made the stage did to it.

    Attributes:
        function: The function that the nodes are in.
        nodes: The nodes that became the node, or that it became; empty once it is gone.
        diffs: What the pass did to them; empty in the first stage.
    """

    stage: Stage
    function: str
    nodes: tuple[NodeId, ...]
    diffs: tuple[NodeDiff, ...] = ()

    @property
    def changes(self) -> tuple[ChangeKind, ...]:
        """What the pass did: empty in the first stage, SAME if it left the nodes alone."""
        changes = dict.fromkeys(one.change for one in self.diffs)
        if len(changes) > 1:
            changes.pop(ChangeKind.SAME, None)
        return tuple(changes)

    @property
    def changed_nodes(self) -> tuple[NodeId, ...]:
        """The nodes that the pass changed; in the first stage, all of them."""
        changed = nodes_of(one.after for one in self.diffs if one.change is not ChangeKind.SAME)
        return tuple(one for one in self.nodes if one in changed) or self.nodes

    @property
    def is_changed(self) -> bool:
        """Whether the pass changed or renamed the nodes; true in the first stage."""
        return self.changes != (ChangeKind.SAME,) or bool(self._old_name)

    @property
    def words(self) -> str:
        """What the pass did, such as `fused: lv0 + lv1`.

        In the first stage, this is where the nodes were written, such as `model.py, line 23`.
        """
        if not self.diffs:
            written = source_lines_of(self.stage, self.function)
            return source_words(written[node] for node in self.nodes if node in written)
        words = []
        for change in self.changes:
            nodes = nodes_of(one.before for one in self.diffs if one.change is change)
            if change is ChangeKind.REMOVED:
                words.append(f"gone: {', '.join(nodes)}" if self.nodes else "gone")
            elif change not in (ChangeKind.SAME, ChangeKind.CHANGED):
                is_one = len(nodes) < 2 or change is ChangeKind.MOVED
                words.append(change.value if is_one else f"{change.value}: {' + '.join(nodes)}")
        if self._old_name:
            words.append(f"renamed from {self._old_name}")
        differences = dict.fromkeys(each for one in self.diffs for each in one.differences)
        return "; ".join([*words, *map(str, differences)])

    @property
    def _old_name(self) -> str:
        """The previous name of a single renamed node, else ""."""
        before = nodes_of(one.before for one in self.diffs)
        is_renamed = len(self.nodes) == len(before) == 1 and self.nodes != before
        return before[0] if is_renamed else ""

    def __str__(self) -> str:
        """Return the step on one line, such as `3 FuseOps: lv; fused: lv0 + lv1`."""
        words = "; ".join(filter(None, [", ".join(self.nodes), self.words]))
        return f"{self.stage.id} {self.stage.label}: {words}"


@dataclass(frozen=True, repr=False)
class NodeHistory:
    """A node's history: what it was in each stage, from the first that has it to the last.

    Attributes:
        node: The node that was asked for.
        stage: The id of its stage.
        layers: The names of the model's layers that it belongs to.
        steps: The stages in their order.
    """

    node: NodeId
    stage: str
    layers: tuple[str, ...]
    steps: tuple[HistoryStep, ...]

    @property
    def changes(self) -> tuple[HistoryStep, ...]:
        """The first stage, and those whose pass changed the node."""
        return tuple(step for step in self.steps if step.is_changed)

    @property
    def graph(self) -> Graph:
        """The node after each change, one frame per stage, with edges to its successors.

        Node ids start with the id of the stage: `3/lv`.
        """
        nodes: list[Node] = []
        edges: list[Edge] = []
        regions: list[Region] = []
        before = ""
        for step in self.changes:
            known = {node.id for node in nodes}
            if step.nodes:
                graph = graph_of(step.stage, step.function)
                for node in step.nodes:
                    one = NodeId(f"{step.stage.id}/{node}")
                    nodes.append(graph[node]._replace(id=one, region=len(regions)))
            for diff in step.diffs:
                for source, target in itertools.product(diff.before, diff.after):
                    ends = NodeId(f"{before}/{source}"), NodeId(f"{step.stage.id}/{target}")
                    if ends[0] in known and target in step.nodes:
                        edges.append(Edge(*ends, (len(edges),)))
            regions.append(Region(RegionKind.PART, f"{step.stage.id} {step.stage.label}"))
            before = step.stage.id
        last = tuple(node.id for node in nodes if node.region == len(regions) - 1)
        return Graph(self.steps[0].function, tuple(nodes), tuple(edges), tuple(regions), last)

    def figure(self, theme: ThemeName = "course", direction: Direction = "up") -> GraphFigure:
        """Draw the node after each change, from the first stage to the last.

        Example:
            ```python
            session.history("lv3").figure().save("history.svg")
            ```
        """
        return draw_graph(self.graph, theme, direction)

    def __repr__(self) -> str:
        """Return a line for each stage that changed the node."""
        layers = f", in {', '.join(self.layers)}" if self.layers else ""
        return "\n".join([f"{self.node} of stage {self.stage}{layers}", *map(str, self.changes)])


def node_history(
    tree: StageTree, function: str, node: str, stage_id: str | None = None
) -> NodeHistory:
    """Return the history of a node; see `Session.history`."""
    tree = tree if stage_id is None else tree.checkout(stage_id)
    stages, at = chain(tree), len(tree.lineage()) - 1
    graph = graph_of(stages[at], function)
    if node not in graph.index:
        raise NotFoundError(
            f"stage {stages[at].id} has no node {node!r} in {function!r}: give the name of "
            "one of its variables, as session.graph() lists them"
        )
    own = (NodeId(node),)
    with gc_paused():
        until = reversed([*_back(function, own, stages[: at + 1])])
        steps = (*until, *_after(function, own, stages[at:]))
    layers = tuple(filter(None, map(layer_name, graph[own[0]].layers)))
    return NodeHistory(own[0], stages[at].id, layers, steps)


def _back(
    function: str, nodes: tuple[NodeId, ...], stages: Sequence[Stage]
) -> Iterator[HistoryStep]:
    """Yield the steps from the last stage back to the first one that has the nodes."""
    for before, after in reversed(list(pairwise(stages))):
        diffs, name = _beside(before, after, function, nodes, is_before=True)
        yield HistoryStep(after, function, nodes, diffs)
        function, nodes = name, nodes_of(one.before for one in diffs)
        if not nodes:
            return
    yield HistoryStep(stages[0], function, nodes)


def _after(
    function: str, nodes: tuple[NodeId, ...], stages: Sequence[Stage]
) -> Iterator[HistoryStep]:
    """Yield the steps after the first stage, up to the one where the nodes are gone."""
    for before, after in pairwise(stages):
        if not relax_functions(after.module):  # what is left of a compilation has PrimFuncs alone
            return
        diffs, function = _beside(before, after, function, nodes, is_before=False)
        nodes = nodes_of(one.after for one in diffs)
        yield HistoryStep(after, function, nodes, diffs)
        if not nodes:
            return


def nodes_of(sides: Iterable[tuple[NodeId, ...]]) -> tuple[NodeId, ...]:
    """Return the nodes on one side of several diffs, each once."""
    return tuple(dict.fromkeys(itertools.chain.from_iterable(sides)))


def _beside(
    before: Stage, after: Stage, name: str, nodes: tuple[NodeId, ...], *, is_before: bool
) -> tuple[tuple[NodeDiff, ...], str]:
    """Return what became of nodes between two stages, and the function's name in the other.

    The nodes are followed back from the later stage, or forward from the earlier one.
    """
    if _is_same_function(before, after, name):
        return tuple(NodeDiff(ChangeKind.SAME, (node,), (node,)) for node in nodes), name
    found = diff_beside(before, after, name, is_before=is_before)
    if found is None:  # the function is gone, or new
        change = ChangeKind.ADDED if is_before else ChangeKind.REMOVED
        sides = ((), nodes) if is_before else (nodes, ())
        return (NodeDiff(change, *sides),), name
    diff, by_node = found
    diffs = {id(one): one for node in nodes for one in by_node.get(node, ())}
    return tuple(diffs.values()), diff.before if is_before else diff.after


@lru_cache(maxsize=256)
def _is_same_function(before: Stage, after: Stage, name: str) -> bool:
    """Return whether the pass between two stages left a function unchanged."""
    mine, theirs = (function_named(each.module, name) for each in (before, after))
    return mine is not None and bool(mine.same_as(theirs))


@lru_cache(maxsize=256)
def diff_beside(
    before: Stage, after: Stage, name: str, *, is_before: bool
) -> tuple[FunctionDiff, Mapping[NodeId, Sequence[NodeDiff]]] | None:
    """Return what became of a function of the stage after, or of the one before, and by node.

    Returns None if the other stage lacks the function.
    """
    for one in diff_modules(before, after, function=name).functions:
        names = (one.after, one.before) if is_before else (one.before, one.after)
        if names[0] == name and names[1]:
            sides = ((each.after if is_before else each.before, each) for each in one.nodes)
            return one, grouped((node, each) for side, each in sides for node in side)
    return None


# --- Which pass last changed each line of a stage, as `git blame` does for commits ----------------


@dataclass(frozen=True)
class BlamedLine:
    """A line of TVMScript, and the pass that last changed it.

    Attributes:
        stage: The stage that the pass made, None if unknown.
        function: The function in that stage that the line belongs to.
        node: The node bound on the line, by its name in that stage; "" for none.
    """

    text: str
    stage: Stage | None = None
    function: str = ""
    node: str = ""


@dataclass(frozen=True, repr=False)
class Blame:
    """The TVMScript of a stage, with the pass that last changed each line.

    Attributes:
        lines: Its lines. A line that binds a node has the pass that last changed that node; a line
            of another function has the pass that last changed that function.
        nodes: By node of the function, the stage whose pass last changed it.
    """

    stage: Stage
    lines: tuple[BlamedLine, ...]
    nodes: Mapping[NodeId, Stage]

    def __repr__(self) -> str:
        """Return the script with a column of passes, each named on its first line."""
        names = [f"{one.stage.id:>3} {one.stage.label}" if one.stage else "" for one in self.lines]
        width = max(map(len, names), default=0)
        shown = ["" if name == before else name for before, name in pairwise(["", *names])]
        rows = zip(shown, self.lines, strict=True)
        return "\n".join(f"{name:<{width}} │ {line.text}".rstrip() for name, line in rows)


def blame(tree: StageTree, function: str, stage_id: str | None = None) -> Blame:
    """Return which pass last changed each line; see `Session.blame`."""
    stages = tree.lineage(stage_id)
    stage, printed = stages[-1], script_of(stages[-1])
    texts = printed.text.splitlines()
    lines = [BlamedLine(text) for text in texts]
    starts = sorted((line, name) for name, line in printed.functions.items())
    for (start, name), (end, _) in pairwise([*starts, (len(texts) + 1, "")]):
        if name != function:
            changed = _changed_last(stages, name)
            # without blank lines, and decorators of the next function
            code = [at for at in range(start, end) if texts[at - 1].lstrip()[:1] not in ("", "@")]
            for at in range(start, code[-1] + 1):
                lines[at - 1] = BlamedLine(texts[at - 1], changed, name)
    origins = {
        node.id: next(
            step
            for step in _back(function, (node.id,), stages)
            if step.changes != (ChangeKind.SAME,)
        )
        for node in graph_of(stage, function).nodes
    }
    for node, one in origins.items():
        at = printed.lines.get((function, node), 0)
        if at and at != printed.functions.get(function):
            lines[at - 1] = BlamedLine(texts[at - 1], one.stage, one.function, one.nodes[0])
    return Blame(stage, tuple(lines), {node: one.stage for node, one in origins.items()})


def _changed_last(stages: Sequence[Stage], name: str) -> Stage:
    """Return the stage whose pass last changed a function."""
    for before, after in reversed(list(pairwise(stages))):
        mine, theirs = (function_named(one.module, name) for one in (before, after))
        if mine is None or not (mine.same_as(theirs) or tvm_ffi.structural_equal(mine, theirs)):
            return after
    return stages[0]
