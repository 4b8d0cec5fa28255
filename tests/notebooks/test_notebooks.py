"""Each notebook runs from top to bottom without a complaint, and is stored as it was written."""

from __future__ import annotations

import asyncio
import functools
import os
from pathlib import Path

import pytest

from docs.notebook_pages import as_page

FOLDER = Path(__file__).parents[2] / "notebooks"
FILES = sorted(FOLDER.rglob("*"))
NOTEBOOKS = [path for path in FILES if path.suffix == ".ipynb" and path.parent == FOLDER]
NEED_TORCH = [path for path in NOTEBOOKS if "import torch" in path.read_text()]
RUNNABLE = [
    pytest.param(path, id=path.stem, marks=pytest.mark.torch if path in NEED_TORCH else ())
    for path in NOTEBOOKS
]
CELL_SECONDS = 120

END_TO_END = (
    "NumPy loops",
    "NumPy loops through call_dps",
    "MyModule by TVM's own calls",
    "MyModule",
    "MyModuleStatic",
    "MyModuleTwoBlocks",
    "MyModuleWithExternCall",
    "MyModuleWithExternCall by env.einsum_linear",
    "MyModuleMixture",
    "MyModuleMixture with bound parameters",
    "stage 0 (initial module)",
    "stage 1 (BindParams w0, b0, w1, b1)",
    "stage 2 (swap relu0 → env.relu)",
    "stage 3 (swap linear0 → env.linear)",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a notebook, once, in a directory of its own; a failing cell raises."""

    @functools.cache
    def ran(path):
        place = tmp_path_factory.mktemp(path.stem)
        return execute(path, place), place

    return ran


def execute(path, place, **variables):
    import nbclient  # which takes seconds, as nbformat does
    import nbformat

    # A kernel that sees pytest's variable keeps what C++ writes to stderr out of the outputs.
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=CELL_SECONDS, resources={"metadata": {"path": str(place)}}
    )
    environment["IPYTHONDIR"] = str(place.with_suffix(".ipython"))
    environment |= variables
    return asyncio.run(client.async_execute(env=environment))  # which closes this thread's loop


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def streams(notebook, name):
    """Return what cells wrote to a stream, by cell id."""
    written = {}
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == name:
                written[cell.id] = written.get(cell.id, "") + output.text
    return written


def test_there_are_notebooks():
    assert FOLDER / "end_to_end.ipynb" in NOTEBOOKS


@pytest.mark.worker
@pytest.mark.parametrize("path", RUNNABLE)
def test_a_notebook_runs_without_a_complaint(path, run):
    """No cell fails or writes to stderr, and each has run, in order."""
    notebook, _ = run(path)
    assert streams(notebook, "stderr") == {}
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))


@pytest.mark.worker
@pytest.mark.parametrize("path", RUNNABLE)
def test_a_notebook_leaves_no_files(path, run):
    """Nothing beside the notebook, nothing in the directory it ran in."""
    _, place = run(path)
    assert list(place.iterdir()) == []
    assert sorted(FOLDER.rglob("*")) == FILES


@pytest.mark.worker  # with the others: it loads what checks notebooks, for seconds
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_clean(path):
    """No outputs, no counts, no widget state; cell ids are there, once each, and short."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) >= (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "widgets" not in notebook.metadata
    for cell in code_cells(notebook):
        assert cell.outputs == [], cell.id
        assert cell.execution_count is None, cell.id
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert max(map(len, ids)) <= 24


@pytest.mark.worker
@pytest.mark.parametrize("path", RUNNABLE)
def test_a_notebook_ends_with_two_exercises_that_nobody_has_answered(path, run):
    notebook, _ = run(path)
    verdicts = [
        output.data["text/plain"].splitlines()[0]
        for cell in code_cells(notebook)
        for output in cell.outputs
        if "check." in cell.source
    ]
    assert len(verdicts) == 2
    assert all(verdict.endswith(": not answered yet") for verdict in verdicts)


@pytest.mark.worker
def test_every_version_of_the_chapter_reads_as_numpy_does(run):
    """The chapter says so itself, one line for each version; a version that differs fails."""
    notebook, _ = run(FOLDER / "end_to_end.ipynb")
    lines = "".join(streams(notebook, "stdout").values()).splitlines()
    checked = [line.partition(": reads a ")[0] for line in lines if line.endswith("as NumPy does")]
    assert checked == list(END_TO_END)


@pytest.mark.worker
def test_the_chapter_draws_each_module(run):
    """Modules, the session's end and the mistake are pictures; the explorer has a still one."""
    notebook, _ = run(FOLDER / "end_to_end.ipynb")
    pictures = {
        cell.id: [output.get("data", {}).get("image/svg+xml") for output in cell.outputs]
        for cell in code_cells(notebook)
    }
    drawn = {cell: [*filter(None, found)] for cell, found in pictures.items() if any(found)}
    assert list(drawn) == [
        "static-draw",
        "symbolic-draw",
        "two-blocks",
        "extern-draw",
        "own-kernel-registered",
        "mixture-draw",
        "bind-draw",
        "whole-session",
        "mistake-found",
        "mistake-histogram",
        "explorer",
    ]
    assert all(svg.startswith("<svg") for pictures in drawn.values() for svg in pictures)
    assert drawn["two-blocks"][0].count('class="block dataflow"') == 2
    assert drawn["bind-draw"][0].count('class="node constant"') == 4


@pytest.mark.worker
def test_a_notebook_becomes_a_page_with_its_pictures_and_the_explorer(run):
    notebook, _ = run(FOLDER / "graph_optimisation.ipynb")
    page = as_page("graph_optimisation", notebook)
    assert len(page.pictures) == 9
    assert "graph_optimisation-explore-1.svg" in page.pictures
    assert "without PyTorch" not in page.markdown


@pytest.mark.worker
@pytest.mark.parametrize("path", NEED_TORCH, ids=lambda path: path.stem)
def test_without_torch_a_notebook_stops_with_a_sentence_where_it_needs_it(path, tmp_path_factory):
    import nbclient

    hidden = tmp_path_factory.mktemp("hidden")
    (hidden / "torch.py").write_text("raise ModuleNotFoundError('there is none')")
    with pytest.raises(nbclient.exceptions.CellExecutionError) as stopped:
        execute(path, tmp_path_factory.mktemp("place"), PYTHONPATH=str(hidden))
    _, sentence = stopped.value.evalue.split(" notebook ")
    assert (stopped.value.ename, sentence) == (
        "SystemExit",
        "needs PyTorch: pip install 'irviz[torch]'",
    )
    assert ("check.te_linear" in path.read_text()) is ("symbolic_trace" in str(stopped.value))
