"""The session: an immutable tree of stages, and which one is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax, tirx
from tvm.relax.dpl import DFPattern

from irviz.app.picture import Look, Picture, picture
from irviz.app.read import graph_of, script_of
from irviz.app.runs import report, run_function
from irviz.ir.identity import default_function, drawn_function, drawn_functions
from irviz.ir.script import Script
from irviz.model.graph import Graph, NodeId
from irviz.model.result import Comparison, RunResult, compare
from irviz.runtime.inputs import Array
from irviz.transforms.bind import bind_params
from irviz.transforms.kernels.swap import Swap
from irviz.transforms.kernels.update import UpdateFunction
from irviz.transforms.lineage import path, replayed, to_script
from irviz.transforms.passes.tvm_pass import as_transform
from irviz.transforms.python import save_arrays
from irviz.transforms.schedules.recorded_schedule import Steps, record_schedule
from irviz.transforms.stage import Stage, Transform, TransformError, apply
from irviz.transforms.stage_tree import StageTree
from irviz.view.figure import Figure, figure
from irviz.view.report import Report


@dataclass(frozen=True, eq=False)
class Session:
    """Stages of one module. Each verb returns a new session, the old one stays as it is.

    `params` are arrays by parameter name, to bind and to run with; `inputs` are the arrays of
    the other parameters, with one case a row where there are several; `labels` the right classes
    of the cases. With `isolate` a pass is tried in another process first, which it can end.
    Raises ValueError when the module has no function of this name.
    """

    module: ir.IRModule
    params: Mapping[str, Array] = field(default_factory=dict, kw_only=True)
    inputs: Mapping[str, Array] | Array | None = field(default=None, kw_only=True)
    labels: NDArray[np.int64] | None = field(default=None, kw_only=True)
    function: str = field(default="", kw_only=True)
    isolate: bool = field(default=True, kw_only=True)
    tree: StageTree | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Begin with one stage, the module as given."""
        if not isinstance(self.module, ir.IRModule):
            raise ValueError(
                f"{self.module!r} is no tvm.IRModule: give one, such as a class decorated with "
                "@I.ir_module"
            )
        if self.tree is None:
            name = self.function or default_function(self.module)
            drawn_function(self.module, name)
            object.__setattr__(self, "function", name)
            object.__setattr__(self, "params", dict(self.params or {}))
            object.__setattr__(self, "tree", StageTree((Stage("0", self.module),)))

    @classmethod
    def of(cls, stages: Sequence[Stage]) -> Session:
        """Return a session of stages that were made elsewhere; one that failed is shown.

        Raises ValueError when there is none, or none with a function to look at.
        """
        named = next((stage for stage in stages if drawn_functions(stage.module)), None)
        if named is None:
            raise ValueError("there is no stage with a function: record a block that runs a pass")
        begun = cls(named.module)
        shown = next((stage for stage in stages if stage.error), named)
        tree = StageTree(tuple(stages), shown.id, len(stages))
        return replace(begun, module=stages[0].module, tree=tree)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages, each behind the one that it was made from."""
        return self._tree.stages

    @property
    def shown_id(self) -> str:
        """The id of the stage that is shown."""
        return self._tree.shown_id

    @property
    def _tree(self) -> StageTree:
        assert self.tree is not None, "it is made with the session"
        return self.tree

    @property
    def shown(self) -> Stage:
        """The stage that verbs start from."""
        return self.stage(self.shown_id)

    def stage(self, stage_id: str | None = None) -> Stage:
        """Return a stage by its id, the shown one by default; raise ValueError for no such id."""
        return self._tree.stage(stage_id)

    def show(self, stage_id: str) -> Session:
        """Show another stage; raise ValueError for no such id."""
        return replace(self, tree=self._tree.show(stage_id))

    def undo(self) -> Session:
        """Take the last change of the stages back; raise ValueError when there was none."""
        return replace(self, tree=self._tree.undo())

    def redo(self) -> Session:
        """Make again what was undone last; raise ValueError when nothing was."""
        return replace(self, tree=self._tree.redo())

    def rename(self, stage_id: str, label: str) -> Session:
        """Give a stage another label; raise ValueError for no such id or an empty label."""
        return replace(self, tree=self._tree.rename(stage_id, label))

    def drop(self, stage_id: str) -> Session:
        """Drop a stage and all that were made from it; its parent is shown if it was.

        Raises ValueError for no such id, and for the first stage.
        """
        return replace(self, tree=self._tree.drop(stage_id))

    def lineage(self, stage: str | None = None) -> tuple[str, ...]:
        """Return the ids of the stages from the first to this one, the shown one by default."""
        return tuple(one.id for one in path(self.stages, self.stage(stage).id))

    def replay(self, stage: str | None = None, *, on: ir.IRModule | str) -> Session:
        """Apply what led to a stage, the shown one by default, to another module or stage.

        `on` a module the whole path is applied, in a new session; `on` a stage of this session
        what comes behind the last stage that both have. A step that does not fit makes a stage
        that says why. Raises ValueError for no such stage.
        """
        steps = path(self.stages, self.stage(stage).id)
        if isinstance(on, ir.IRModule):
            begun = Session(on, params=self.params, function="", isolate=self.isolate)
            if self.function in drawn_functions(on):
                begun = begun.focus(self.function)
            made = replayed(steps, begun.shown, 1, isolate=self.isolate)
            return replace(begun, tree=begun._tree.add(made))
        target = self.stage(on)
        shared = self.lineage(target.id)
        steps = tuple(one for one in steps if one.id not in shared)
        made = replayed(steps, target, self._tree.count, isolate=self.isolate)
        return replace(self, tree=self._tree.add(made))

    def to_python(self, stage: str | None = None, *, arrays_file: str | Path = "") -> str:
        """Return a script with TVM alone that makes a stage, the shown one by default.

        The first module and bound arrays are written into it; with `arrays_file` the arrays are
        saved there, as .npz, and read from there. Raises ValueError for no such stage.
        """
        script = to_script(path(self.stages, self.stage(stage).id))
        if not arrays_file or not script.arrays:
            return script.text()
        return script.text(str(save_arrays(arrays_file, script.arrays)))

    def focus(self, function: str) -> Session:
        """Look at another function; raise ValueError when the shown stage lacks it."""
        drawn_function(self.shown.module, function)
        return replace(self, function=function)

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the shown stage's Relax functions, then of its PrimFuncs."""
        return tuple(drawn_functions(self.shown.module))

    def apply(self, transform: object, /, **arguments: object) -> Session:
        """Apply a pass of the catalog by name, a `tvm.transform.Pass`, or a transform of irviz.

        `arguments` belong to a name: `session.apply("FuseOps", fuse_opt_level=2)`. A pass that
        fails makes a stage with the error on it. Raises TransformError when the transform
        refuses its arguments; the session is then as it was.
        """
        wrapped: Transform = as_transform(transform, arguments)
        made = apply(self.shown, wrapped, str(self._tree.count), isolate=self.isolate)
        return replace(self, tree=self._tree.add([made]))

    def bind(self, params: Mapping[str, Array] | None = None) -> Session:
        """Bind parameters to constants: these, or those of the session not bound yet.

        Raises TransformError for an unknown name or an array that does not fit.
        """
        chosen = params if params is not None else self.bindable
        if not chosen:
            raise TransformError(
                f"no parameter of {self.function!r} is left that the session has an array for: "
                "give arrays by name, as in session.bind({'w0': w0})"
            )
        return self.apply(bind_params(chosen, self.function))

    @property
    def bindable(self) -> dict[str, Array]:
        """The session's params that are still parameters in the shown stage."""
        function = drawn_function(self.shown.module, self.function)
        params = function.params if isinstance(function, relax.Function) else ()
        return {p.name: self.params[p.name] for p in params if p.name in self.params}

    def swap(
        self,
        callee: str,
        replacement: str,
        *,
        node: str | None = None,
        matching: DFPattern | None = None,
    ) -> Session:
        """Let calls of `callee` call `replacement`: all, the one at `node`, or those that match.

        `callee` is a name or a pattern of names such as "linear*", `matching` a pattern of
        `tvm.relax.dpl`; `replacement` a PrimFunc of the module, a registered library function,
        or a definition such as "topi.linear", of which a PrimFunc is made. Raises TransformError
        when there is no such call or the signatures do not fit.
        """
        chosen = None if node is None else NodeId(node)
        return self.apply(Swap(callee, replacement, chosen, self.function, matching))

    def update(self, name: str, prim_func: tirx.PrimFunc) -> Session:
        """Put a PrimFunc in the place of the module's of this name.

        Raises TransformError when there is none, or when it does not fit the calls of the name.
        """
        return self.apply(UpdateFunction(name, prim_func))

    def schedule(self, function: str, steps: Steps) -> Session:
        """Schedule a PrimFunc as `steps` does with a `tvm.s_tir.Schedule`: a stage for each step.

        Raises IllegalStepError for the first step that TVM refuses; the session is then as it
        was.
        """
        module, made = self.shown.module, [self.shown]
        for step in record_schedule(module, function, steps, isolate=self.isolate):
            new_id = str(self._tree.count + len(made) - 1)
            made.append(apply(made[-1], step, new_id, isolate=False))  # tried as it was recorded
        return replace(self, tree=self._tree.add(made[1:]))

    def graph(self, stage_id: str | None = None) -> Graph:
        """Return the graph of a stage, the shown one by default."""
        return graph_of(self.stage(stage_id), self.function)

    def script(self, stage_id: str | None = None) -> Script:
        """Return the TVMScript of a stage, the shown one by default, with the lines of nodes."""
        return script_of(self.stage(stage_id))

    def picture(self, stage_id: str | None = None, look: Look | None = None) -> Picture:
        """Return what is drawn of a stage, the shown one by default.

        Raises ValueError for a look at a node that is not there.
        """
        return picture(self.stage(stage_id), self.function, look)

    def draw(
        self,
        stage_id: str | None = None,
        *,
        look: Look | None = None,
        theme: str = "course",
        direction: str = "up",
    ) -> Figure:
        """Draw a stage, the shown one by default; raise ValueError for an unknown theme."""
        return figure(self.picture(stage_id, look).graph, theme, direction)

    def run(
        self, inputs: Mapping[str, Array] | Array | None = None, *, stage: str | None = None
    ) -> RunResult:
        """Build and run a stage, the shown one by default, on the CPU.

        Without inputs the session's own are used, or random ones with a fixed seed where it has
        none. Raises InputError, MisfitError or RunError with what would be right.
        """
        chosen = self.inputs if inputs is None else inputs
        labels = self.labels if inputs is None else None
        module = self.stage(stage).module
        return run_function(module, self.function, chosen, self.params, labels)

    def report(self) -> Report:
        """Run all stages and set each against the first: a table, one row a stage.

        A stage that failed, or that cannot be run, has a row that says why.
        """
        return report(self.stages, lambda stage_id: self.run(stage=stage_id))

    def __repr__(self) -> str:
        """Return the stages by name, and which is shown."""
        names = ", ".join(f"{stage.id} {stage.label}" for stage in self.stages)
        return f"<Session of {self.function!r}: {names}; shown: {self.shown_id}>"

    def compare(
        self,
        stage: str,
        reference: str,
        inputs: Mapping[str, Array] | Array | None = None,
    ) -> Comparison:
        """Run two stages on the same inputs and compare the first with the second."""
        return compare(self.run(inputs, stage=stage), self.run(inputs, stage=reference))
