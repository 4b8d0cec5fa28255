"""Run some cells of a notebook in this process, for what they define."""

import json
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"


def define(notebook: str, *ids: str) -> dict[str, Any]:
    """Return the variables that the cells with these ids define, one after the other."""
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text())["cells"]
    sources = {cell["id"]: "".join(cell["source"]) for cell in cells}
    variables: dict[str, Any] = {}
    for cell in ids:
        exec(sources[cell], variables)
    return variables
