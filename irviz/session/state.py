"""What a session holds, as one immutable value."""

from __future__ import annotations

from dataclasses import dataclass

from irviz.runtime.run import CallInputs, RunConfig
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree


@dataclass(frozen=True, eq=False)
class SessionState:
    """A tree of stages, the function that is looked at, and how it is called and run.

    Attributes:
        tree: The stages, which of them is current, and what can be undone.
        function: The name of a Relax function or a PrimFunc.
        call_inputs: What functions are called with.
        run_config: Where they run, and what a run may take.
    """

    tree: StageTree
    function: str
    call_inputs: CallInputs
    run_config: RunConfig

    def stage(self, stage_id: str | None = None) -> Stage:
        """Return a stage by its id, the current one by default; raise ValueError for no such id."""
        return self.tree.stage(stage_id)
