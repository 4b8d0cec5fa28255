"""Read the TVMScript in a notebook's cell, in the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import ir

import irviz.ir.module_json  # noqa: F401 - modules in answers
from irviz.errors import LoadError
from irviz.loaders.file_limits import check_result, memory_for
from irviz.loaders.tvmscript.find_definitions import CellDefinitions, tvmscript_definitions
from irviz.loaders.tvmscript.read_modules import modules_of
from irviz.loaders.upgrade.cells import mask_magics, upgrade_cells
from irviz.loaders.upgrade.code_files import MEMORY_RATIO
from irviz.loaders.upgrade.upgrade_result import Upgraded, unified_diff

CELL = "the cell"
"""The cell's name in errors."""


@dataclass(frozen=True)
class CellModules:
    """The modules of a cell by name, its upgraded text with the diff, and its definitions."""

    modules: Mapping[str, ir.IRModule]
    upgraded: Upgraded
    diff: str
    script: CellDefinitions


def read_cell(cell: str) -> CellModules:
    """Upgrade a cell and read its modules; raise LoadError if it has none or they are refused."""
    with memory_for(len(cell), MEMORY_RATIO):
        (upgraded,) = upgrade_cells([cell])
        for note in upgraded.notes:
            if note.what == CELL:
                raise LoadError(f"{CELL}, line {note.line}: {note.why}")
            if note.what.startswith("%%"):
                raise LoadError(f"{CELL} starts with {note.what}: paste TVMScript alone")
        script = tvmscript_definitions(mask_magics(upgraded.text), CELL)
        if not script.names:
            raise LoadError(f"{CELL} has no TVMScript: paste a class below @tvm.script.ir_module")
        modules = modules_of(script.text, CELL, script.imported)
        found = CellModules(modules, upgraded, unified_diff(cell, upgraded.text, "cell"), script)
        check_result(found, len(cell))
        return found
