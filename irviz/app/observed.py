"""What can be seen of the runs of stages: values, pictures of them, where two stages part."""

from __future__ import annotations

from irviz.app.findings import Findings, fetched, findings
from irviz.app.overlays import BY_TRACE, DIFFERENCE
from irviz.app.runnable import Runnable
from irviz.ir.destinations import destination_passing
from irviz.model.graph import NodeId
from irviz.model.memory import MemoryUse
from irviz.model.result import compare
from irviz.model.splice import within
from irviz.model.summary import summarise
from irviz.model.trace import Array, Trace
from irviz.runtime.memory import memory_use
from irviz.view.drawing import Drawing
from irviz.view.figure import Figure, figure
from irviz.view.memory_chart import memory_chart
from irviz.view.value_figure import picture_of, pictures_of


class Observed(Runnable):
    """Stages whose runs can be looked into."""

    def trace(self, stage: str | None = None, *, case: int = 0) -> Trace:
        """Run a stage, the shown one by default, and return the value at every node.

        Raises what `run` raises.
        """
        found = self.run(stage=stage, trace=True, case=case).trace
        assert found is not None, "it was asked for"
        return found

    def value(self, node: str, *, stage: str | None = None, case: int = 0) -> tuple[Array, ...]:
        """Return the whole tensors of a node's value, however large: one, or those of a tuple.

        `lv3/y` is the `y` of the function that `lv3` calls. Raises KeyError for a node that was
        not reached, and what `run` raises.
        """
        chosen = self.stage(stage).id
        if within("", "") not in node and node not in self.graph(chosen).index:
            node = node.replace("/", within("", ""))
        return fetched(self, chosen, NodeId(node), case)

    def part(self, stage: str, reference: str = "0", *, case: int | None = None) -> Findings:
        """Compare two stages node by node, for the input on which they differ most.

        The result says where they part, and how each node's value differs. Raises what `run`
        raises.
        """
        if case is None:
            compared = compare(self.run(stage=stage), self.run(stage=reference))
            case = compared.worst_case or 0
        traces = self.trace(stage, case=case), self.trace(reference, case=case)
        return findings(self, (self.stage(stage).id, self.stage(reference).id), traces)

    def draw_coloured(
        self,
        by: str = "time",
        *,
        stage: str | None = None,
        against: str = "0",
        case: int | None = None,
        theme: str = "course",
        direction: str = "up",
    ) -> Figure:
        """Draw a stage with its nodes coloured by "time", "size", "max |value|" or "|Δ|".

        The last is the difference from the stage `against`, for the input on which they differ
        most where no case is given; else it is the first. Raises ValueError for anything else,
        and what `run` raises.
        """
        if by not in (*BY_TRACE, DIFFERENCE):
            known = ", ".join(map(repr, (*BY_TRACE, DIFFERENCE)))
            raise ValueError(f"nodes cannot be coloured by {by!r}; choose one of {known}")
        shown = self.stage(stage).id
        picture = self.picture(shown)
        if by == DIFFERENCE:
            overlay = self.part(shown, against, case=case).overlay(picture, shown)
        else:
            overlay = BY_TRACE[by](self.trace(shown, case=case or 0), picture)
        return self.draw(shown, theme=theme, direction=direction, overlay=overlay)

    def draw_value(
        self,
        node: str,
        kind: str = "",
        *,
        stage: str | None = None,
        case: int = 0,
        theme: str = "course",
    ) -> Drawing:
        """Draw a node's value: as "heat map", "histogram" or "images", what fits best by default.

        Raises ValueError for a kind that does not fit, KeyError for a node that was not reached,
        and what `run` raises.
        """
        arrays = self.value(node, stage=stage, case=case)
        if not arrays:
            raise ValueError(f"the value of {node!r} is no tensor: draw that of another node")
        array = arrays[0]
        fitting = pictures_of(array.shape)
        if kind and kind not in fitting:
            known = ", ".join(map(repr, fitting)) or "another node, this one is empty"
            raise ValueError(f"{kind!r} does not fit a value of shape {array.shape}: give {known}")
        return picture_of(kind or fitting[0], array, summarise(array), theme, title=node)

    def memory_use(self, *, stage: str | None = None) -> MemoryUse:
        """Return what a stage allocates as it runs, when, and the most that it holds at once."""
        return memory_use(self.stage(stage).module, self.function, self.dims())

    def draw_memory(self, *, stage: str | None = None, theme: str = "course") -> Drawing:
        """Draw what a stage allocates as it runs, over its steps."""
        return memory_chart(self.memory_use(stage=stage), theme)

    def draw_destinations(
        self,
        *,
        stage: str | None = None,
        planned: bool = False,
        theme: str = "course",
        direction: str = "up",
    ) -> Figure:
        """Draw a stage as it writes into memory: its buffers, and which call writes into which.

        With `planned`, the storages that TVM plans for the buffers are named.
        """
        module = self.stage(stage).module
        graph = destination_passing(module, self.function, planned=planned)
        return figure(graph, theme, direction)
