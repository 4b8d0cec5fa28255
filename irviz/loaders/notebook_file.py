"""Read the Python in a notebook's cells as one text. Nothing in it is run."""

from __future__ import annotations

import json

from irviz.errors import LoadError
from irviz.loaders.file_limits import TVMSCRIPT_LIMITS
from irviz.loaders.tvmscript.syntax_tree import RefusedError, parse_tree
from irviz.loaders.upgrade.cells import mask_magics


def python_of_notebook(text: str, name: str) -> str:
    """Return the Python in a notebook's code cells, with `pass` in place of magics.

    Raises LoadError if the text is not a notebook or contains no Python.
    """
    cells = _code_cells(text, name)
    length = sum(map(len, cells))
    limit = TVMSCRIPT_LIMITS.characters
    if length > limit:
        raise LoadError(f"{name} has {length:,} characters of code: up to {limit:,} are read")
    masked = [mask_magics(cell).removesuffix("\n") for cell in cells]
    python = [cell for cell in masked if _is_python(cell)]
    if not any(cell.strip() for cell in python):
        raise LoadError(f"{name} has no cell of Python: give a notebook that defines modules")
    return "\n\n".join(python) + "\n"


def _code_cells(text: str, name: str) -> list[str]:
    """Return the sources of the code cells of a notebook in format 3 or 4."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as failure:
        raise LoadError(f"{name} is not a notebook: it is not JSON ({failure})") from None
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
