"""How Relax functions are optimised before they are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import tvm
from tvm import ir, relax
from tvm.relax.backend import cpu_generic
from tvm.s_tir import dlight
from tvm.s_tir import meta_schedule as ms

from irviz.errors import InputError, RunError

PLAIN = "plain"


@dataclass(frozen=True)
class BuildRecipe:
    """How Relax functions are optimised before they are built; PrimFuncs are built as they are.

    Attributes:
        kind: "plain" for nothing; "default" for the operators and fusions of TVM's default pipeline
            for CPUs; "dlight" for that with DLight's schedules for CPUs; "tuned" for that with the
            schedules of a database.
        database: The folder of MetaSchedule's database.
    """

    kind: str = PLAIN
    database: str = ""

    def check(self) -> None:
        """Raise InputError for an unknown kind, or a database that is missing or not used."""
        if self.kind not in BUILDS:
            known = ", ".join(map(repr, BUILDS))
            raise InputError(f"there is no build {self.kind!r}: choose one of {known}")
        if bool(self.database) != (self.kind == "tuned"):
            raise InputError(
                f"build={self.kind!r} with database={self.database!r}: give the folder of a "
                "database with build='tuned', and no other"
            )

    def optimised(self, mod: ir.IRModule, target: tvm.target.Target) -> ir.IRModule:
        """Return the module optimised for a target; raise RunError, and what TVM raises."""
        if self.kind == PLAIN:
            return mod
        legal = cpu_generic.library_dispatch_passes(target) + cpu_generic.legalize_passes(target)
        with target:
            return _SCHEDULES[self.kind](self, tvm.transform.Sequential(legal)(mod))


def _dlight(_: BuildRecipe, mod: ir.IRModule) -> ir.IRModule:
    return dlight.ApplyDefaultSchedule(dlight.cpu.GEMV(), dlight.cpu.Reduction())(mod)


def _tuned(recipe: BuildRecipe, mod: ir.IRModule) -> ir.IRModule:
    files = ("database_workload.json", "database_tuning_record.json")
    if missing := [name for name in files if not Path(recipe.database, name).is_file()]:
        raise RunError(
            f"{recipe.database!r} has no {missing[0]}: give the work_dir of "
            "tvm.s_tir.meta_schedule's tuning"
        )
    with ms.database.JSONDatabase(work_dir=recipe.database, allow_missing=False):
        return relax.transform.MetaScheduleApplyDatabase()(mod)


_SCHEDULES: Mapping[str, Callable[[BuildRecipe, ir.IRModule], ir.IRModule]] = {
    "default": lambda _, mod: mod,
    "dlight": _dlight,
    "tuned": _tuned,
}
BUILDS = (PLAIN, *_SCHEDULES)
"""The kinds of builds."""
AS_IT_IS = BuildRecipe()
"""No optimisation."""
