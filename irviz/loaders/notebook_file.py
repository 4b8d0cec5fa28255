"""A notebook -> the Python in its cells, as one text. Nothing in it is run."""

from __future__ import annotations

import json
import re

from irviz.ir.refusal import RefusedError
from irviz.ir.text_limits import MAX_TEXT, parsed
from irviz.loaders.loaded import LoadError

_MAGIC = re.compile(r"\s*[!%?]|.*\?\s*$|\s*\w+\s*=\s*[!%]")
_CELL_MAGICS = ("%%time", "%%timeit", "%%capture", "%%prun")


def python_of(text: str, name: str) -> str:
    """Return the Python of a notebook's cells, without what only Jupyter understands.

    A cell that is no Python, nor a part of it, is left out. Raises LoadError for what is no
    notebook, or has no Python in it.
    """
    cells = _cells(text, name)
    length = sum(map(len, cells))
    if length > MAX_TEXT:
        raise LoadError(f"{name} has {length:,} characters of code: up to {MAX_TEXT:,} are read")
    cells = [_without_magics(cell) for cell in cells]
    python = [cell for cell in cells if _is_python(cell)]
    if not any(cell.strip() for cell in python):
        raise LoadError(f"{name} has no cell of Python: give a notebook that defines modules")
    return "\n\n".join(python) + "\n"


def _cells(text: str, name: str) -> list[str]:
    """Return the sources of the code cells, of a notebook of format 3 or 4."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as failure:
        raise LoadError(f"{name} is not a notebook: it is no JSON ({failure})") from None
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


def _without_magics(cell: str) -> str:
    """Return a cell with its magics as empty lines; none of a cell in another language."""
    lines = cell.splitlines()
    if lines and lines[0].startswith("%%") and not lines[0].startswith(_CELL_MAGICS):
        return ""
    return "\n".join("" if _MAGIC.match(line) else line for line in lines)


def _is_python(cell: str) -> bool:
    try:
        parsed(cell, "")
    except RefusedError:
        return False
    return True
