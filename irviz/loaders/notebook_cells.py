"""Read the cells of a notebook: all of a file's as one text, or one that is run, in the worker."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tvm import ir

from irviz.errors import LoadError
from irviz.loaders.file_limits import TVMSCRIPT_LIMITS, UPGRADE_LIMITS, limits_for
from irviz.loaders.tvmscript.allowed_names import imported_names
from irviz.loaders.tvmscript.read_modules import modules_of
from irviz.loaders.tvmscript.syntax_tree import (
    RefusedError,
    definitions,
    only_lines,
    parse_tree,
)
from irviz.loaders.upgrade import upgrade

CELL = "the cell"
"""The cell's name in errors."""


def python_of_notebook(text: str, name: str) -> str:
    """Return the Python in a notebook's code cells, with `pass` in place of magics.

    Raises LoadError if the text is not a notebook or contains no Python.
    """
    cells = _code_cells(text, name)
    length = sum(map(len, cells))
    limit = TVMSCRIPT_LIMITS.characters
    if length > limit:
        raise LoadError(f"{name} has {length:,} characters of code: up to {limit:,} are read")
    masked = [upgrade.mask_magics(cell).removesuffix("\n") for cell in cells]
    python = [cell for cell in masked if _is_python(cell)]
    if not any(cell.strip() for cell in python):
        raise LoadError(f"{name} has no cell of Python: give a notebook that defines modules")
    return "\n\n".join(python) + "\n"


def _code_cells(text: str, name: str) -> list[str]:
    """Return the sources of the code cells of a notebook in format 3 or 4."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as failure:
        raise LoadError(
            f"{name} is not a notebook: it is not JSON ({failure}); save it again"
        ) from None
    sheets = content.get("worksheets", [content]) if isinstance(content, dict) else None
    try:
        return [
            "".join(cell.get("source", cell.get("input", "")))
            for sheet in sheets or ()
            for cell in sheet["cells"]
            if cell["cell_type"] == "code"
        ]
    except (KeyError, TypeError, AttributeError):
        raise LoadError(
            f"{name} is not a notebook: it has no cells as Jupyter writes them; save it again"
        ) from None


def _is_python(cell: str) -> bool:
    try:
        parse_tree(cell, "")
    except RefusedError:
        return False
    return True


@dataclass(frozen=True)
class CellModules:
    """The modules of a cell by name, and its upgraded text with the diff.

    `others` are the lines, from 1, of its statements that are not TVMScript, apart from imports.
    """

    modules: Mapping[str, ir.IRModule]
    upgraded: upgrade.Upgraded
    diff: str
    others: tuple[int, ...]


def read_cell(cell: str) -> CellModules:
    """Upgrade a cell and read its modules; raise LoadError if it has none or they are refused."""
    with limits_for(len(cell), upgrade.MEMORY_RATIO):
        (upgraded,) = upgrade.upgrade_cells([cell])
        for note in upgraded.notes:
            if note.what == CELL:
                raise LoadError(f"{CELL}, line {note.line}: {note.why}")
            if note.what.startswith("%%"):
                raise LoadError(f"{CELL} starts with {note.what}: paste TVMScript alone")
        text = upgrade.mask_magics(upgraded.text)
        tree = parse_tree(text, CELL, UPGRADE_LIMITS)
        kept = {line for one in definitions(tree) for line in one.lines}
        if not kept:
            raise LoadError(f"{CELL} has no TVMScript: paste a class below @tvm.script.ir_module")
        modules = modules_of(only_lines(text, kept), CELL, imported_names(tree))
        diff = upgrade.unified_diff(cell, upgraded.text, "cell")
        return CellModules(modules, upgraded, diff, _other_lines(tree, kept))


def _other_lines(tree: ast.Module, kept: Collection[int]) -> tuple[int, ...]:
    return tuple(
        node.lineno
        for node in tree.body
        if node.lineno not in kept
        and not isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    )
