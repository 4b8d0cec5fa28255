"""The session: an immutable tree of stages, and which one is shown."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tvm import ir, relax, tirx
from tvm.relax.dpl import DFPattern

from irviz.app import saved
from irviz.app.observed import Observed
from irviz.ir.identity import default_function, drawn_function, drawn_functions
from irviz.model.graph import NodeId
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
from irviz.worker.pool import RUNS


@dataclass(frozen=True, eq=False)
class Session(Observed):
    """Stages of one module. Each verb returns a new session, the old one stays as it is.

    `params` are arrays by parameter name, to bind and to run with; `inputs` are the values of
    the other parameters, with one case a row where there are several, or "random" (made with
    `seed`) or "zeros"; `sizes` the symbolic dimensions that no array tells; `labels` the right
    classes of the cases. Passes are tried and stages run in another process, which they can end;
    with `isolate=False` in this one. A run may take `seconds`, and `memory` in bytes; on `device`
    "host:port" it is that of TVM's RPC server there, built for `target`. Raises ValueError when
    the module has no function of this name.
    """

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

    def save(self, path: str | os.PathLike[str], *, params: bool = True) -> Path:
        """Save the stages, how each came to be, and what they are called with, to one file.

        Without `params` those are left out; what is bound stays bound. What can be undone is not
        saved, and neither is where runs take place. Raises SessionFileError, with the file as it
        was, for what cannot be saved or written.
        """
        return saved.save(self, path, params=params)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Session:
        """Return the session of a file that `save` wrote; nothing in it is applied or run.

        Raises SessionFileError, in one sentence, for a file that is missing, unreadable, damaged
        or something else.
        """
        return saved.load(cls, path)

    def apply(self, transform: object, /, **arguments: object) -> Session:
        """Apply a pass of the catalog by name, a `tvm.transform.Pass`, or a transform of irviz.

        `arguments` belong to a name: `session.apply("FuseOps", fuse_opt_level=2)`. A pass that
        fails makes a stage with the error on it. Raises TransformError when the transform
        refuses its arguments; the session is then as it was.
        """
        if self.isolate:
            RUNS.start()  # what is made is run next
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

    def __repr__(self) -> str:
        """Return the stages by name, and which is shown."""
        names = ", ".join(f"{stage.id} {stage.label}" for stage in self.stages)
        return f"<Session of {self.function!r}: {names}; shown: {self.shown_id}>"
