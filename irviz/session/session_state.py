"""What a session holds: stages, the function that is looked at, and how it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from irviz.errors import NotFoundError, UntrustedError
from irviz.ir.module_functions import drawable_function, drawable_functions
from irviz.runtime.argument_conversion import Array
from irviz.runtime.build_module import why_not_confined
from irviz.runtime.run import CallInputs, Inputs, RunConfig
from irviz.session.stage_diff import is_lost
from irviz.transforms.stage import Stage, StageTree
from irviz.worker.sandbox import can_confine

if TYPE_CHECKING:
    from typing_extensions import Self  # of Python 3.11


@dataclass(frozen=True, eq=False, repr=False)
class SessionState:
    """A tree of stages, the function that is looked at, and how it is called and run.

    `trusted` are the opened files whose code may be run.
    """

    tree: StageTree
    function: str
    call_inputs: CallInputs
    run_config: RunConfig
    trusted: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Return the labels of the stages, and which one is current."""
        names = ", ".join(f"{stage.id} {stage.label}" for stage in self.stages)
        return f"<Session of {self.function!r}: {names}; current: {self.current_id}>"

    def stage(self, stage_id: str | None = None) -> Stage:
        """Return a stage by its id, the current one by default; raise ValueError for no such id."""
        return self.tree.stage(stage_id)

    def check_trust(self, what: str, *stages: Stage) -> None:
        """Raise UntrustedError if stages come from opened files whose code may not be run.

        `what` would run it, and is the subject of a sentence.
        """
        if files := frozenset().union(*(stage.files for stage in stages)) - self.trusted:
            raise UntrustedError(what, files)

    def check_steps(self, what: str, steps: Sequence[Stage], *targets: Stage) -> None:
        """Raise UntrustedError if one of the transforms runs code that may not be run."""
        for step in steps:
            if step.transform is not None and step.transform.evaluates_code:
                self.check_trust(f"{what}, such as {step.label},", step, *targets)

    def check_run(self, what: str, *stages: Stage) -> None:
        """Raise UntrustedError if stages may be run neither with trust nor in the sandbox."""
        self.check_trust(what, *(stage for stage in stages if not self.can_run(stage)))

    def can_run(self, stage: Stage) -> bool:
        """Tell whether a stage may be run: it is trusted, or will be confined."""
        return self.is_trusted(stage) or (
            can_confine()
            and self.run_config.remote is None
            and not why_not_confined(stage.module, self.run_config.build)
        )

    def is_trusted(self, stage: Stage) -> bool:
        """Tell whether the code of a stage may be run."""
        return stage.files <= self.trusted

    def config_for(self, *stages: Stage) -> RunConfig:
        """Return where stages run: in another process if they come from files.

        It is confined if the files are not trusted.
        """
        if not any(stage.files for stage in stages):
            return self.run_config
        confine = not all(map(self.is_trusted, stages))
        return replace(self.run_config, isolate=True, confine=confine)

    def _with(self, **changes: Any) -> Self:
        changed = copy(self)
        vars(changed).update(changes)
        return changed

    # --- the stages, and which is looked at ---

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages, each after the one that it was made from."""
        return self.tree.stages

    @property
    def current_id(self) -> str:
        """The id of the current stage."""
        return self.tree.current_id

    @property
    def current(self) -> Stage:
        """The stage that methods use by default."""
        return self.tree.stage()

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the current stage's Relax functions, then of its PrimFuncs."""
        return tuple(drawable_functions(self.current.module))

    def checkout(self, stage_id: str) -> Self:
        """Make another stage the current one."""
        return self._with(tree=self.tree.checkout(stage_id))

    def undo(self) -> Self:
        """Undo the last change to the stages; raise StageError if there is none."""
        return self._with(tree=self.tree.undo())

    def redo(self) -> Self:
        """Redo the last undone change; raise StageError if there is none."""
        return self._with(tree=self.tree.redo())

    def rename(self, stage_id: str, label: str) -> Self:
        """Give a stage another label; raise StageError for an empty one."""
        return self._with(tree=self.tree.rename(stage_id, label))

    def drop(self, stage_id: str) -> Self:
        """Drop a stage and all that were made from it; raise StageError for the first stage."""
        return self._with(tree=self.tree.drop(stage_id))

    def lineage(self, stage: str | None = None) -> tuple[str, ...]:
        """Return the ids of the stages from the first to this one."""
        return tuple(one.id for one in self.tree.lineage(stage))

    def select_function(self, function: str) -> Self:
        """Show another function; raise NotFoundError if the current stage lacks it."""
        drawable_function(self.current.module, function)
        return self._with(function=function)

    def select_available_function(self, preferred: str) -> Self:
        """Show this function, or another one if no stage of this module has it.

        If only the current stage lacks it, a note on what became of it stands in place of its
        graph. Raises NotFoundError if the current stage has no function at all.
        """
        available = self.functions
        if not available:
            raise NotFoundError(f"{self.current.label} left no function to show")
        if preferred in available or is_lost(self.tree, self.current, preferred):
            return self._with(function=preferred)
        return self if self.function in available else self._with(function=available[0])

    def add_stages(self, stages: Sequence[Stage]) -> Self:
        """Add existing stages; the last of them becomes current."""
        return self._with(tree=self.tree.add(stages))

    def from_file(self, file: str) -> Self:
        """Mark all stages as coming from an opened file.

        From then on, anything that would run their code raises UntrustedError until `trust` is
        called.
        """
        marked: dict[str | None, Stage] = {}
        for one in self.stages:  # each after its parent; what is read of one is kept by the stage
            parent = marked.get(one.parent)
            marked[one.id] = replace(one, files=one.files | {file}, made_from=parent)
        return self._with(tree=replace(self.tree, stages=tuple(marked.values())))

    def trust(self, *files: str) -> Self:
        """Allow code of opened files, by default of all, to run in another process.

        There it can do anything that you can do on this machine.
        """
        chosen = frozenset(files).union(*(stage.files for stage in self.stages if not files))
        return self._with(trusted=self.trusted | chosen)

    # --- what functions are called with, and where ---

    def with_inputs(
        self,
        inputs: Inputs,
        *,
        labels: NDArray[np.int64] | None = None,
        seed: int = 0,
        sizes: Mapping[str, int] | None = None,
    ) -> Self:
        """Call functions with other inputs; the arguments are those of `irviz.Session`."""
        params = self.call_inputs.params
        return self._with(call_inputs=CallInputs(inputs, params, labels, seed, dict(sizes or {})))

    def with_params(self, params: Mapping[str, Array]) -> Self:
        """Add params by name, for binding and running."""
        added = {**self.call_inputs.params, **params}
        return self._with(call_inputs=replace(self.call_inputs, params=added))

    def with_run_config(self, **changes: Any) -> Self:
        """Change where stages run and the limits of a run, by fields of `RunConfig`."""
        return self._with(run_config=replace(self.run_config, **changes))

    def resolved_sizes(self, stage: str | None = None) -> Mapping[str, int]:
        """Return the symbolic sizes of a run, or the session's own if the stage cannot be run."""
        call = self.call_inputs
        try:
            return call.plan(self.stage(stage).module, self.function).dims
        except ValueError:
            return call.sizes

    @property
    def unbound_params(self) -> dict[str, Array]:
        """The session's params that are not bound in the current stage yet."""
        function = drawable_functions(self.current.module).get(self.function)
        arrays = self.call_inputs.params
        params = function.params if isinstance(function, relax.Function) else ()
        return {param.name: arrays[param.name] for param in params if param.name in arrays}
