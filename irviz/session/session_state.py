"""What a session holds, as one immutable value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from irviz.errors import UntrustedError
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
        trusted: The opened files whose code may be run.
    """

    tree: StageTree
    function: str
    call_inputs: CallInputs
    run_config: RunConfig
    trusted: frozenset[str] = frozenset()

    def stage(self, stage_id: str | None = None) -> Stage:
        """Return a stage by its id, the current one by default; raise ValueError for no such id."""
        return self.tree.stage(stage_id)

    def check_trust(self, what: str, *stages: Stage) -> None:
        """Raise UntrustedError if stages come from opened files whose code may not be run.

        Args:
            what: What would run it, as the subject of a sentence.
        """
        if files := frozenset().union(*(stage.files for stage in stages)) - self.trusted:
            raise UntrustedError(what, files)

    def is_trusted(self, stage: Stage) -> bool:
        """Tell whether the code of a stage may be run."""
        return stage.files <= self.trusted

    def config_for(self, *stages: Stage) -> RunConfig:
        """Return where stages run: in another process if they come from files."""
        is_opened = any(stage.files for stage in stages)
        return replace(self.run_config, isolate=True) if is_opened else self.run_config
