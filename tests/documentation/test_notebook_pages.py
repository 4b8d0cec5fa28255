"""A notebook's page has its text, its code, its outputs and its pictures."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from docs.notebook_pages import COURSE, FOLDER, as_page, execute

nbformat = pytest.importorskip("nbformat", reason="install irviz[dev]")

ROWS = "".join(f"<tr><td>{one}</td></tr>" for one in range(2))


def notebook(*outputs: dict[str, Any]) -> Any:
    v4 = nbformat.v4
    cell = v4.new_code_cell("draw()", id="drawn", execution_count=1)
    cell.outputs = [v4.new_output(**one) for one in outputs]
    return v4.new_notebook(cells=[v4.new_markdown_cell("# A title\n\nSome words."), cell])


def displayed(**data: str) -> dict[str, Any]:
    names = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html", "plain": "text/plain"}
    names["widget"] = "application/vnd.jupyter.widget-view+json"
    return {
        "output_type": "display_data",
        "data": {names[name]: content for name, content in data.items()},
    }


def test_the_course_has_every_notebook() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {*COURSE}


def test_a_page_begins_with_how_to_run_the_notebook() -> None:
    page = as_page("mlp", notebook())
    assert page.title == "A title"
    assert page.markdown.startswith("# A title\n\n!!! tip")
    assert '<a href="mlp.ipynb" download>' in page.markdown
    assert 'pip install ".[notebook]"\n    jupyter lab notebooks/mlp.ipynb' in page.markdown
    assert "Some words.\n\n```python\ndraw()\n```" in page.markdown


def test_pictures_are_files_beside_the_page() -> None:
    svg = '<svg class="irviz" aria-label="graph of f[0]"></svg>'
    png = base64.b64encode(b"png").decode()
    page = as_page("mlp", notebook(displayed(svg=svg, plain="a"), displayed(png=png, plain="b")))
    assert page.pictures == {"mlp-drawn-0.svg": svg.encode(), "mlp-drawn-1.png": b"png"}
    assert "![graph of f(0)](mlp-drawn-0.svg)" in page.markdown
    assert "](mlp-drawn-1.png)" in page.markdown


def test_a_widget_is_shown_by_its_picture_without_a_kernel() -> None:
    still = displayed(svg='<svg class="irviz"></svg>', html="<figure></figure>", plain="stages")
    page = as_page("mlp", notebook(displayed(widget="{}", plain="<Explorer>"), still))
    assert list(page.pictures) == ["mlp-drawn-1.svg"]
    assert "<Explorer>" not in page.markdown
    assert "<figure>" not in page.markdown
    assert "this cell shows the explorer" in page.markdown


def test_tables_are_tables_and_text_stays_text() -> None:
    stream = {"output_type": "stream", "name": "stdout", "text": "<b> & ~~~~\n"}
    page = as_page("mlp", notebook(displayed(html=f"<table>{ROWS}</table>", plain="rows"), stream))
    assert f'<div class="output" markdown="0"><table>{ROWS}</table></div>' in page.markdown
    assert "~~~~~ {.text .output}\n<b> & ~~~~\n~~~~~" in page.markdown


@pytest.mark.worker
def test_a_notebook_is_executed_where_irviz_is_found_and_a_failing_cell_is_told(
    tmp_path: Path,
) -> None:
    """tests/notebooks makes a page of one of the course."""
    import nbclient  # which takes seconds

    path = tmp_path / "own.ipynb"
    given = notebook()
    given.cells[1].source = "import irviz\nfrom pathlib import Path\nprint(*Path().iterdir())"
    nbformat.write(given, path)
    page = as_page("own", execute(path))
    assert "~~~~ {.text .output}\n\n~~~~" in page.markdown  # in a folder of its own
    assert "without PyTorch" not in page.markdown
    given.cells[1].source = "1 / 0"
    nbformat.write(given, path)
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        execute(path)


def test_a_notebook_that_stopped_says_why() -> None:
    stopped = notebook()
    stopped.cells[1].execution_count = None
    assert "built without PyTorch" in as_page("mlp", stopped).markdown
