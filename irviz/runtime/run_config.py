"""Where functions run, and the limits of a run with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, replace

from irviz.errors import InputError
from irviz.runtime.local.build_recipe import PLAIN, BuildRecipe
from irviz.runtime.run_target import RunTarget, run_target
from irviz.worker.sandbox import VARIABLE, can_confine

RUN_SECONDS = 60.0
"""The default time limit of a run."""
_LEAST_MEMORY = 32 * 2**20
"""With less memory LLVM may hang instead of raising an error."""


@dataclass(frozen=True)
class RunConfig:
    """Where functions run, and the limits of a run.

    Attributes:
        isolate: Whether to run in a worker process. If not, functions run in this process, without
            limits, and a fault crashes it.
        seconds: The time limit in seconds.
        memory: The memory limit in bytes; None for four fifths of the free memory.
        device: "cpu" or "" for this machine; "host:port" or "host:port/key" for a machine with
            TVM's RPC server.
        target: The target of the device, as JSON or as in "llvm -mtriple=aarch64-linux-gnu".
        build: How Relax functions are optimised before they are built: "plain" not at all,
            "default" with TVM's default pipeline for CPUs, "dlight" with DLight's CPU schedules as
            well, "tuned" with the schedules of a database.
        database: The folder of that database, as written by TVM's tuning.
        fill: A byte that fills memory before a run of Relax functions writes to it, so that reading
            what nothing wrote gives the same each time; None leaves it as it is. This needs glibc.
        confine: Whether functions may only compute: without files, network and other processes.
            This needs a process of its own, and what `irviz.worker.sandbox` says.
    """

    isolate: bool = True
    seconds: float = RUN_SECONDS
    memory: int | None = None
    device: str = ""
    target: str = ""
    build: str = PLAIN
    database: str = ""
    fill: int | None = None
    confine: bool = False

    @property
    def where(self) -> RunTarget:
        """The machine, the target and the build; raise RunError or InputError for invalid ones."""
        recipe = BuildRecipe(self.build, self.database)
        recipe.check()
        target = run_target(self.device, self.target, self.seconds if self.isolate else None)
        return replace(target, recipe=recipe, fill=self.fill, is_confined=self.confine)

    @property
    def clock(self) -> str:
        """The machine whose clock measures: "this machine" or an address."""
        return str(self.where.remote or "this machine")


def check_limits(config: RunConfig) -> None:
    """Raise InputError for impossible limits."""
    if config.memory is not None and config.memory < _LEAST_MEMORY:
        raise InputError(
            f"memory={config.memory!r} is too little to build anything: give at least "
            f"{_LEAST_MEMORY:,}, in bytes, or None for most of what is free"
        )
    if config.confine and not can_confine():
        raise InputError(
            "confine=True needs Linux with Landlock and seccomp, on x86-64 or aarch64, and "
            f"{VARIABLE} not 0: run it elsewhere, or with confine=False if you trust it"
        )
    if not config.seconds > 0:
        raise InputError(f"seconds={config.seconds!r} is not a time limit: give more than 0")
