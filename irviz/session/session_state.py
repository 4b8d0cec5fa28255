"""The contents of a session, as one immutable value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from irviz.errors import UntrustedError
from irviz.runtime.build_module import why_not_confined
from irviz.runtime.run import CallInputs, RunConfig
from irviz.runtime.run_config import parse_device
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree
from irviz.worker.sandbox import can_confine


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

    def check_run(self, what: str, *stages: Stage) -> None:
        """Raise UntrustedError if stages may be run neither with trust nor in the sandbox."""
        self.check_trust(what, *(stage for stage in stages if not self.can_run(stage)))

    def can_run(self, stage: Stage) -> bool:
        """Tell whether a stage may be run: it is trusted, or will be confined."""
        return self.is_trusted(stage) or (
            can_confine()
            and parse_device(self.run_config.device) is None
            and not why_not_confined(stage.module, self.run_config.build)
        )

    def is_trusted(self, stage: Stage) -> bool:
        """Tell whether the code of a stage may be run."""
        return stage.files <= self.trusted

    def config_for(self, *stages: Stage) -> RunConfig:
        """Return where stages run: in another process if they come from files.

        It is confined if the files are not trusted.
        """
        is_opened = any(stage.files for stage in stages)
        confine = not all(map(self.is_trusted, stages))
        return (
            replace(self.run_config, isolate=True, confine=confine)
            if is_opened
            else self.run_config
        )
