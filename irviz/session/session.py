"""The session: the stages of a module, and operations on them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx
from tvm.relax.dpl import DFPattern

from irviz.errors import DrawError, LoadError, StageError, TransformError
from irviz.ir.destination_passing import destination_passing
from irviz.ir.module_functions import default_function, drawable_function, drawable_functions
from irviz.ir.tvmscript import Script
from irviz.limits import RUN_SECONDS
from irviz.model.diff.aligned_stage_graphs import side_graphs
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import SEPARATOR, Graph, NodeId
from irviz.model.graph.layers import LayersByNode
from irviz.model.runs.array_diff import summarise
from irviz.model.runs.memory_timeline import MemoryUse
from irviz.model.runs.run_result import Origin
from irviz.runtime.argument_conversion import Array
from irviz.runtime.run import CallInputs, Inputs, RunConfig
from irviz.runtime.simulate_memory import memory_use
from irviz.safe_files import atomic_write
from irviz.session.extract_layer import layer_stage
from irviz.session.node_history import Blame, NodeHistory, blame, node_history
from irviz.session.operation_limits import limits
from irviz.session.run_overlays import OVERLAYS, OverlayKind, trace_overlay
from irviz.session.run_stages import StageRuns, node_arrays
from irviz.session.session_file import load_session, save_session, script_in_worker
from irviz.session.session_state import SessionState
from irviz.session.shown_function import StageView, ViewState, stage_view
from irviz.session.stage_cache import graph_of, script_of
from irviz.session.stage_diff import diff_modules, diff_stages, union_along
from irviz.transforms.apply_transform import apply_transform, replay
from irviz.transforms.bind_params import bind_params
from irviz.transforms.kernels.swap import Swap, UpdateFunction
from irviz.transforms.passes.pass_transform import as_transform
from irviz.transforms.recording import stage_times
from irviz.transforms.schedules.schedule_step import IllegalStepError, ScheduleStep
from irviz.transforms.schedules.schedule_trace import (
    ScheduleFunction,
    record_schedule,
    schedule_trace,
)
from irviz.transforms.stage import Stage, StageTree, to_script
from irviz.view.figure import Figure
from irviz.view.graph.graph_figure import Direction, GraphFigure, draw_graph, draw_placed
from irviz.view.graph.overlay import Overlay
from irviz.view.graph.side_by_side_layout import place_sides
from irviz.view.memory_chart import memory_chart
from irviz.view.module_diff import Diff
from irviz.view.pass_times import PassTimes
from irviz.view.theme import ThemeName
from irviz.view.value_charts import ValuePicture, draw_chart, fitting_charts
from irviz.worker.supervisor import RUNS

_PASS_FACTOR = 2
"""How much longer a pass may take than a run."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Session(StageRuns):
    """An immutable tree of stages of one module; methods that change it return a new session.

    A stage is a module and the transform that produced it from another stage. Transforms apply to
    the current stage, and the stage that they add becomes current. Passes are first tried, and
    stages run, in another process, so that a crash cannot end this one.

    In all methods, `stage` is the id of a stage, by default the current one, `case` is the index of
    an input, `theme` sets the colours of a drawing and `direction` where data flows. An unknown
    stage raises NotFoundError, an unknown theme or direction DrawError, and a stage that cannot be
    run RunError. Inputs or a case that do not fit raise InputError.

    Attributes:
        tree: The stages, which of them is current, and what can be undone.
        function: The name of the function shown.
        call_inputs: What functions are called with: inputs, params, labels, seed and sizes.
        run_config: Where stages run, and the limits of a run.

    Example:
        ```python
        session = Session(MyModule, params=params, inputs=images)
        session = session.bind().swap("relu0", "env.relu")
        session.compare("2", "0")
        session.checkout("1").apply("LegalizeOps").draw()
        ```
    """

    def __init__(
        self,
        module: ir.IRModule,
        *,
        function: str = "",
        params: Mapping[str, Array] | None = None,
        inputs: Inputs = None,
        labels: NDArray[np.int64] | None = None,
        seed: int = 0,
        sizes: Mapping[str, int] | None = None,
        layers: Mapping[str, LayersByNode] | None = None,
        origin: Origin | None = None,
        isolate: bool = True,
        seconds: float = RUN_SECONDS,
        memory: int | None = None,
        device: str = "",
        target: str = "",
        build: str = "plain",
        database: str = "",
    ) -> None:
        """Create a session with one stage, the module.

        Args:
            module: The module; it is never changed.
            function: The function to show; by default "main", or else the first by name, Relax
                functions before PrimFuncs.
            params: Arrays by parameter name, for binding and running.
            inputs: The values of the other parameters: one array, arrays by name, "random" or
                "zeros". An array with one more axis than its parameter holds one case per row.
            labels: The correct class of each case, of shape (cases,).
            seed: The seed of random inputs.
            sizes: Symbolic sizes by name, where no array determines them.
            layers: By function, the model's layers that bindings come from; by default, layers are
                inferred from the names of parameters.
            origin: The model that the module was imported from; see `RunResult.origin`.
            isolate: Whether stages run, and passes are tried, in another process.
            seconds: The time limit of a run; a pass may take twice as long.
            memory: The memory limit of a run in bytes; by default four fifths of the free memory.
            device: Where to run: "cpu", or "host:port" of TVM's RPC server.
            target: The target to build for, in TVM's syntax; by default, one that suits the device.
            build: How Relax functions are optimised before a run: "plain", "default", "dlight" or
                "tuned", as in `RunConfig`.
            database: The folder of MetaSchedule's database, for "tuned".

        Raises:
            LoadError: It is not a module; `irviz.load` takes other models and files.
            NotFoundError: It has no function of this name.
        """
        if not isinstance(module, ir.IRModule):
            raise LoadError(
                f"{module!r} is not a tvm.IRModule: give one, such as a class decorated with "
                "@I.ir_module"
            )
        name = function or default_function(module)
        drawable_function(module, name)
        super().__init__(
            StageTree((Stage("0", module, layers=layers or {}, origin=origin),)),
            name,
            CallInputs(inputs, dict(params or {}), labels, seed, dict(sizes or {})),
            RunConfig(isolate, seconds, memory, device, target, build, database),
        )

    @classmethod
    def from_state(cls, state: SessionState) -> Session:
        """Return a session with the given state."""
        return cls.__new__(cls)._with(**vars(state))

    @classmethod
    def from_stages(cls, stages: Sequence[Stage]) -> Session:
        """Return a session of existing stages.

        The current stage is the one that failed, or else the first that has a function.

        Raises:
            StageError: There is no stage, or none has a function to show.
        """
        drawable = next((stage for stage in stages if drawable_functions(stage.module)), None)
        if drawable is None:
            raise StageError("there is no stage with a function: record a block that runs a pass")
        current = next((stage for stage in stages if stage.error), drawable)
        tree = StageTree(tuple(stages), current.id, len(stages))
        return cls(drawable.module)._with(tree=tree)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, trust: bool = False) -> Session:
        """Read a session from a file written by `save`; nothing in it is applied or run.

        Args:
            trust: Whether code in the file may be run, as after `trust`.

        Raises:
            SessionFileError: The file is missing, unreadable, damaged or not a session.
        """
        session = cls.from_state(load_session(path)).from_file(os.fspath(path))
        return session.trust() if trust else session

    def save(self, path: str | os.PathLike[str], *, params: bool = True) -> Path:
        """Save the stages, their transforms, and the inputs to one file.

        The run configuration and the undo history are not saved.

        Args:
            path: The file, by convention with the suffix `.irviz`.
            params: Whether to save the session's params; bound ones are saved anyway.

        Raises:
            SaveError: Something cannot be saved or written; an existing file is left unchanged.
        """
        return save_session(self, path, params=params)

    def save_html(self, path: str | os.PathLike[str], *, run: bool = False) -> Path:
        """Save the explorer of this session as a single HTML file; see `irviz.save_html`."""
        import irviz  # by its public name: the explorer is a layer above

        return irviz.save_html(self, path, run=run)

    # --- transforms ---

    def apply(self, transform: object, /, **arguments: object) -> Session:
        """Apply a transform to the current stage.

        A pass that fails adds a stage with the error and its parent's module.

        Args:
            transform: The name of a pass, a `tvm.transform.Pass`, or a transform of irviz.
            **arguments: The arguments of a pass that is given by name.

        Raises:
            TransformError: The transform rejects its arguments.

        Example:
            ```python
            session.apply("FuseOps", fuse_opt_level=2)
            ```
        """
        chosen, isolate = as_transform(transform, arguments), self.run_config.isolate
        if chosen.evaluates_code:
            self.check_trust(f"applying {chosen.label}", self.current)
        if isolate:
            RUNS.start()  # the new stage is run next
        made = apply_transform(
            self.current,
            chosen,
            str(self.tree.count),
            isolate=isolate,
            seconds=_PASS_FACTOR * self.run_config.seconds,
        )
        return self.add_stages([made])

    def bind(self, params: Mapping[str, Array] | None = None) -> Session:
        """Bind parameters to constants, by default `unbound_params`.

        Raises:
            TransformError: A name is unknown, an array does not fit, or nothing is left to bind.
        """
        chosen = params if params is not None else self.unbound_params
        if not chosen:
            raise TransformError(
                f"no parameter of {self.function!r} is left that the session has an array for: "
                "give arrays by name, as in session.bind({'w0': w0})"
            )
        return self.apply(bind_params(chosen, self.function))

    def swap(
        self,
        callee: str,
        replacement: str,
        *,
        node: str | None = None,
        matching: DFPattern | None = None,
    ) -> Session:
        """Replace calls of `callee` by calls of `replacement`, by default all of them.

        Args:
            callee: The name of a callee, or a pattern of names such as "linear*".
            replacement: A PrimFunc of the module, a registered library function, or a definition
                such as "topi.linear", from which a PrimFunc is made.
            node: The variable of the one call to change.
            matching: A pattern that the calls to change match.

        Raises:
            TransformError: There is no such call, or the signatures do not match.
        """
        chosen = None if node is None else NodeId(node)
        return self.apply(Swap(callee, replacement, chosen, self.function, matching))

    def update_function(self, name: str, prim_func: tirx.PrimFunc) -> Session:
        """Replace a PrimFunc of the module.

        Raises:
            TransformError: There is no PrimFunc of this name, or its calls do not match the new
                one.
        """
        return self.apply(UpdateFunction(name, prim_func))

    def schedule(self, function: str, steps: ScheduleFunction) -> Session:
        """Schedule a PrimFunc: `steps` gets a `tvm.s_tir.Schedule`, and each step adds a stage.

        Raises:
            IllegalStepError: TVM rejects a step; no stage is added.
        """
        module, stages = self.current.module, [self.current]
        recorded = record_schedule(module, function, steps, isolate=self.run_config.isolate)
        for number, step in enumerate(recorded, self.tree.count):  # each was tried when recorded
            stages.append(apply_transform(stages[-1], step, str(number), isolate=False))
        return self.add_stages(stages[1:])

    def apply_schedule_step(self, step: ScheduleStep) -> Session:
        """Apply a schedule step; raise IllegalStepError where `apply` would add a failed stage."""
        new = self.apply(step)
        if error := new.current.error:
            raise IllegalStepError(f"{step.source} is not done: {error}")
        return new

    def replay_schedule(self, function: str, steps: Sequence[ScheduleStep]) -> Session:
        """Make these steps the function's schedule up to the current stage.

        The stages of leading steps that are already there are kept; the other steps branch off
        after them.

        Raises:
            IllegalStepError: A step cannot be applied; no stage is added.
        """
        now = schedule_trace(self.tree.lineage(), function)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(steps, now.steps, strict=False))
        kept = number = sum(1 for _ in same)
        new = self.checkout([now.base, *now.stages][kept].id)
        try:
            for number, step in enumerate(steps[kept:], start=kept + 1):  # noqa: B007
                new = new.apply_schedule_step(step)
        except IllegalStepError as failure:
            # without its access paths, which lead through a module that is not shown
            raise IllegalStepError(f"step {number}: {failure}", failure.details) from None
        return new

    def replay(self, stage: str | None = None, *, onto: ir.IRModule | str) -> Session:
        """Apply the transforms that led to a stage again, to another module or stage.

        On a module, all of them are applied, in a new session. On a stage of this session, those
        after the last common stage are. A step that cannot be applied adds a stage with the error.

        Raises:
            UntrustedError: A pass would run code of an opened file; see `trust`.
        """
        isolate = self.run_config.isolate
        if not isinstance(onto, ir.IRModule):
            shared = self.tree.lineage(onto)
            steps = [one for one in self.tree.lineage(stage) if one not in shared]
            self.check_steps("applying the steps", steps, self.stage(onto))
            made = replay(steps, self.stage(onto), self.tree.count, isolate=isolate)
            return self.add_stages(made)
        self.check_steps("applying the steps", self.tree.lineage(stage))
        new = Session(onto, params=self.call_inputs.params, isolate=isolate)
        if self.function in new.functions:
            new = new.select_function(self.function)
        return new.add_stages(replay(self.tree.lineage(stage), new.current, 1, isolate=isolate))

    @limits("the script")
    def to_python(self, stage: str | None = None, *, arrays_file: str | Path = "") -> str:
        """Return a script that recreates a stage with TVM alone.

        Bound arrays are written into the script, or saved to `arrays_file` (.npz).

        Raises:
            UntrustedError: A pass would run code of an opened file; see `trust`.
            RunError: Content of a file takes too long, or ends the process that writes the script.
            SaveError: `arrays_file` cannot be written.
        """
        stages = self.tree.lineage(stage)
        self.check_steps("writing the steps", stages)
        script = script_in_worker(stages, self) if stages[-1].files else to_script(stages)
        if not arrays_file or not script.arrays:
            return script.text()
        with atomic_write(arrays_file) as partial, partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **script.arrays)
        return script.text(str(Path(arrays_file)))

    # --- graphs, text and drawings ---

    @limits("the graph")
    def graph(self, stage: str | None = None) -> Graph:
        """Return the graph of a stage."""
        return graph_of(self.stage(stage), self.function)

    @limits("the text")
    def script(self, stage: str | None = None) -> Script:
        """Return the TVMScript of a stage, with the lines of nodes."""
        return script_of(self.stage(stage))

    @limits("the comparison")
    def diff(self, before: str, after: str | None = None, function: str = "") -> Diff:
        """Return the differences between two stages: what became of each function and node.

        Stages several steps apart are compared through the stages in between.

        Args:
            before: The id of the stage before.
            after: The id of the stage after, by default of the current one.
            function: Compare only this function.
        """
        return Diff.of(diff_stages(self.tree, before, self.stage(after).id, function))

    @limits("the comparison")
    def compare_layers(self, layer: str, other: str, *, stage: str | None = None) -> Diff:
        """Return the differences between two layers of the function, such as two blocks of a model.

        Args:
            layer: The name of a layer, or its last parts: `h.0` for `transformer.h.0`.
            other: The layer to compare it with, named likewise.

        Raises:
            NotFoundError: No node belongs to such a layer.

        Example:
            ```python
            session.compare_layers("h.0", "h.11").figure()
            ```
        """
        chosen = self.stage(stage)
        parts = [layer_stage(chosen, self.function, one) for one in (layer, other)]
        return Diff.of(diff_modules(parts[0], parts[1], (layer, other)))

    @limits("the picture")
    def view(self, stage: str | None = None, state: ViewState | None = None) -> StageView:
        """Return what is drawn of a stage in a view state; by default all of it, folded.

        Raises:
            NotFoundError: The state names a node that does not exist.
        """
        return stage_view(self.stage(stage), self.function, state)

    @limits("the history")
    def history(self, node: str, *, stage: str | None = None) -> NodeHistory:
        """Return where a node comes from and what became of it, pass by pass.

        The history covers the stages that the stage was made from, and those most recently made
        from it. Raises NotFoundError for an unknown node.

        Example:
            print(session.history("lv3"))
        """
        return node_history(self.tree, self.function, node, stage)

    @limits("the text")
    def blame(self, stage: str | None = None) -> Blame:
        """Return the TVMScript of a stage, with the pass that last changed each line.

        Example:
            print(session.blame())
        """
        return blame(self.tree, self.function, stage)

    def pass_times(self) -> PassTimes:
        """Return the times of recorded passes, as a table, flame graph or trace events.

        Raises:
            StageError: The session has no recorded stage.

        Example:
            irviz.load("work.irviz").pass_times().save("passes.json")
        """
        return stage_times(self.stages)

    @limits("the picture")
    def draw(
        self,
        stage: str | None = None,
        *,
        view: ViewState | None = None,
        theme: ThemeName = "course",
        direction: Direction = "up",
        overlay: Overlay | None = None,
        dimmed: Collection[str] = (),
    ) -> GraphFigure:
        """Draw a stage.

        Args:
            view: What is expanded, and which part is drawn.
            overlay: Colours and marks of nodes, as `session.overlays` computes them for a `view`.
            dimmed: The ids of nodes to draw pale.
        """
        graph = self.view(stage, view).graph
        return draw_graph(graph, theme, direction, overlay=overlay, dimmed=dimmed)

    @limits("the picture")
    def draw_stages(
        self,
        *stages: str,
        theme: ThemeName = "course",
        direction: Direction = "up",
        expansion: Expansion | None = None,
    ) -> list[GraphFigure]:
        """Draw several stages, with unchanged nodes in the same place in all of them.

        Stepping through the pictures, only what changes moves.

        Args:
            stages: Their ids, in order; by default the lineage of the current stage.
            expansion: What is expanded in all of them.

        Raises:
            NotFoundError: There is no such stage, or one of them lacks the function.

        Example:
            ```python
            for figure in session.draw_stages("1", "2", "3"):
                display(figure)
            ```
        """
        union = union_along(self.tree, stages or self.lineage(), self.function)
        _, placed = place_sides(side_graphs(union, expansion), direction)
        return [draw_placed(one, theme) for one in placed]

    @limits("the picture")
    def overlay(
        self,
        by: OverlayKind = "time",
        *,
        stage: str | None = None,
        reference: str = "0",
        case: int | None = None,
    ) -> Overlay:
        """Run a stage and return the colours and marks of its nodes, as `draw_overlay` draws them.

        Raises:
            DrawError: Nodes cannot be coloured by this.
        """
        if by not in OVERLAYS:
            known = ", ".join(map(repr, OVERLAYS))
            raise DrawError(f"nodes cannot be coloured by {by!r}; choose one of {known}")
        chosen, view = self.stage(stage), self.view(stage)
        if by == "difference":
            report = self.first_difference(chosen.id, reference, case=case)
            return report.overlay(view, chosen.id)
        return trace_overlay(by, self.trace(chosen.id, case=case or 0), view)

    @limits("the picture")
    def draw_overlay(
        self,
        by: OverlayKind = "time",
        *,
        stage: str | None = None,
        reference: str = "0",
        case: int | None = None,
        theme: ThemeName = "course",
        direction: Direction = "up",
    ) -> GraphFigure:
        """Run a stage and draw it with its nodes coloured.

        Args:
            by: What colour stands for: the time of a node, the size of its value, its largest
                absolute value, or the largest absolute difference from `reference`.
            reference: The stage to take differences from.
            case: By default the first; for differences, the one whose outputs differ most.

        Raises:
            DrawError: Nodes cannot be coloured by this.
        """
        overlay = self.overlay(by, stage=stage, reference=reference, case=case)
        return draw_graph(self.view(stage).graph, theme, direction, overlay=overlay)

    def value(self, node: str, *, stage: str | None = None, case: int = 0) -> tuple[Array, ...]:
        """Return the full value of a node, however large: its tensor, or the tensors of its tuple.

        `lv3/y` is the `y` of the function that `lv3` calls. Raises KeyError if the run did not
        reach the node.
        """
        if SEPARATOR not in node and node not in self.graph(stage).index:
            node = node.replace("/", SEPARATOR)
        return node_arrays(self, stage, NodeId(node), case)

    @limits("the picture")
    def draw_value(
        self,
        node: str,
        kind: ValuePicture | None = None,
        *,
        stage: str | None = None,
        case: int = 0,
        theme: ThemeName = "course",
    ) -> Figure:
        """Run a stage and draw the value of a node; by default the kind of picture suits the value.

        Raises:
            DrawError: The value cannot be drawn as this kind of picture.
            KeyError: The run did not reach the node.
        """
        arrays = self.value(node, stage=stage, case=case)
        if not arrays:
            raise DrawError(f"the value of {node!r} is not a tensor: draw that of another node")
        array = arrays[0]
        fitting = fitting_charts(array.shape)
        if kind and kind not in fitting:
            known = ", ".join(map(repr, fitting)) or "another node, this one is empty"
            raise DrawError(f"{kind!r} does not fit a value of shape {array.shape}: give {known}")
        return draw_chart(kind or fitting[0], array, summarise(array), theme, title=node)

    @limits("the count of the memory")
    def memory_use(self, *, stage: str | None = None) -> MemoryUse:
        """Return what a stage allocates at each step of a run, and its peak."""
        return memory_use(self.stage(stage).module, self.function, self.resolved_sizes(stage))

    @limits("the picture of the memory")
    def draw_memory(self, *, stage: str | None = None, theme: ThemeName = "course") -> Figure:
        """Draw the memory that a stage holds at each step of a run."""
        return memory_chart(self.memory_use(stage=stage), theme)

    @limits("the picture")
    def draw_destination_passing(
        self,
        *,
        stage: str | None = None,
        planned: bool = False,
        theme: ThemeName = "course",
        direction: Direction = "up",
    ) -> GraphFigure:
        """Draw the buffers of a stage, and which call writes to which.

        With `planned`, name the storage that TVM plans for each buffer.
        """
        graph = destination_passing(self.stage(stage).module, self.function, planned=planned)
        return draw_graph(graph, theme, direction)
