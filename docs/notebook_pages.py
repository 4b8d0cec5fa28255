"""The notebooks as pages: executed when the pages are built, with their outputs."""

from __future__ import annotations

import base64
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
COURSE = (
    "tensor_abstraction",
    "tensor_program",
    "end_to_end",
    "integration",
    "graph_optimisation",
    "inside_compile",
    "mixed_precision",
    "find_the_pass",
)
"""The notebooks in the order of the course."""
CELL_SECONDS = 300
_HAS_TORCH = importlib.util.find_spec("torch") is not None
_WIDGET = "application/vnd.jupyter.widget-view+json"
_LABEL = re.compile(r'aria-label="([^"]*)"')


@dataclass
class NotebookPage:
    """A notebook as Markdown, with its pictures by the names of their files."""

    title: str
    markdown: str
    pictures: dict[str, bytes] = field(default_factory=dict)


def execute(path: Path) -> Any:
    """Run a notebook and return it with its outputs, up to where it needs PyTorch if there is none.

    Raises:
        CellExecutionError: A cell fails.
    """
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=CELL_SECONDS, extra_arguments=["--log-level=ERROR"]
    )
    try:
        with TemporaryDirectory() as folder:
            client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=folder)
    except nbclient.exceptions.CellExecutionError:
        if _HAS_TORCH or not needs_torch(path):
            raise
    return notebook


def needs_torch(path: Path) -> bool:
    """Return whether a notebook stops without PyTorch."""
    return "import torch" in path.read_text(encoding="utf-8")


def as_page(name: str, notebook: Any) -> NotebookPage:
    """Return an executed notebook as a page, with a note below its title on how to run it."""
    heading, _, rest = notebook.cells[0].source.partition("\n")
    page = NotebookPage(heading.removeprefix("# "), "")
    parts = [heading, _note(name, notebook), rest]
    for cell in notebook.cells[1:]:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts += [f"```python\n{cell.source}\n```", *_outputs(name, cell, page)]
    page.markdown = "\n\n".join(parts) + "\n"
    return page


def _note(name: str, notebook: Any) -> str:
    extras = "notebook,torch" if "import torch" in str(notebook.cells) else "notebook"
    lines = [
        '!!! tip "Run it yourself"',
        f'    <a href="{name}.ipynb" download>Download the notebook</a>, and in a clone of the',
        "    repository:",
        "",
        "    ```",
        f'    pip install ".[{extras}]"',
        f"    jupyter lab notebooks/{name}.ipynb",
        "    ```",
    ]
    if not all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code"):
        lines += ["", "    This page was built without PyTorch, so some cells have no outputs."]
    return "\n".join(lines)


def _outputs(name: str, cell: Any, page: NotebookPage) -> Iterator[str]:
    """Return the outputs of a cell as Markdown, and add its pictures to the page."""
    for number, output in enumerate(cell.outputs):
        data = output.get("data", {})
        if output.output_type == "stream":
            yield fenced(output.text)
        elif "image/svg+xml" in data:
            svg = data["image/svg+xml"]
            yield _picture(page, f"{name}-{cell.id}-{number}.svg", svg.encode(), _label(svg))
        elif "image/png" in data:
            content = base64.b64decode(data["image/png"])
            yield _picture(page, f"{name}-{cell.id}-{number}.png", content, "what the cell draws")
        elif _WIDGET in data:
            yield "In JupyterLab, this cell shows the explorer. Its picture without a kernel:"
        elif "text/html" in data:
            yield f'<div class="output" markdown="0">{data["text/html"]}</div>'
        elif "text/plain" in data:
            yield fenced(data["text/plain"])


def _picture(page: NotebookPage, file: str, content: bytes, label: str) -> str:
    page.pictures[file] = content
    return f"![{label}]({file})"


def _label(svg: str) -> str:
    found = _LABEL.search(svg)
    return found[1].replace("[", "(").replace("]", ")") if found else "what the cell draws"


def fenced(text: str) -> str:
    """Return what a program printed as a block of Markdown, whatever is in it."""
    longest = max(map(len, re.findall("~+", text)), default=0)
    fence = "~" * max(4, longest + 1)
    return f"{fence} {{.text .output}}\n{text.rstrip()}\n{fence}"
