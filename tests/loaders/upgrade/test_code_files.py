"""The code in scripts, notebooks and chapters is upgraded, and everything else is unchanged."""

from __future__ import annotations

import json

import pytest

from irviz.loaders.upgrade.upgrade import upgrade_cells, upgrade_document

IMPORT = "from tvm.script import tir as T\nimport tvm\n"
NEW_IMPORT = "from tvm.script import tirx as T\nimport tvm\n"


def notebook(*sources, **more):
    cells = [
        {"cell_type": "code", "execution_count": 3, "metadata": {"a": 1}, "outputs": [{"x": "é"}]}
        | {"source": source}
        for source in sources
    ]
    return {"cells": cells, "metadata": {"kernelspec": {}}, "nbformat": 4} | more


def test_a_notebooks_code_is_upgraded_and_the_rest_stays():
    old = notebook(IMPORT.splitlines(keepends=True), ["x = tvm.nd.array(a)"], "%matplotlib inline")
    old["cells"].append({"cell_type": "markdown", "metadata": {}, "source": ["tvm.nd.array"]})
    text = json.dumps(old, indent=1, ensure_ascii=False) + "\n"
    new = upgrade_document(text, "a.ipynb")
    expected = text.replace("tir as T", "tirx as T").replace(
        "x = tvm.nd.array", "x = tvm.runtime.tensor"
    )
    assert new.text == expected
    assert new.notes == ()


@pytest.mark.parametrize("indent", [None, 1, 2, 4])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_notebooks_json_keeps_its_layout(indent, end):
    text = json.dumps(notebook("x = tvm.nd.array(a)"), indent=indent) + end
    new = upgrade_document(text, "a.ipynb")
    assert new.text == text.replace("tvm.nd.array", "tvm.runtime.tensor")


def test_a_note_of_a_notebook_names_the_cell_and_its_line():
    text = json.dumps(notebook(IMPORT, "\nfrom tvm import relay\n"))
    (note,) = upgrade_document(text, "a.ipynb").notes
    assert str(note).startswith("cell 2, line 2: tvm.relay: ")


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": 1}', '{"cells": [1]}', "[" * 100_000])
def test_what_is_no_notebook_is_refused(text):
    with pytest.raises(ValueError, match="notebook"):
        upgrade_document(text, "a.ipynb")


def test_an_import_in_one_cell_serves_the_others():
    old = ["from tvm import nd as arrays\n", "x = arrays.array(y)"]
    new = [each.text for each in upgrade_cells(old)]
    assert new == ["from tvm import runtime as arrays\n", "x = arrays.tensor(y)"]


@pytest.mark.parametrize(
    "kept",
    [
        "!wget https://a/b.pkl",
        "%matplotlib inline",
        "files = !ls",
        "%%time",
        "tvm.nd?",
        "!pip install \\\n    tvm",
    ],
)
def test_lines_of_a_notebook_that_are_not_python_stay(kept):
    (new,) = upgrade_cells([f"# first\n{kept}\nif 1:\n    !ls\n    x = tvm.nd.array(y)\n"])
    assert new.text == f"# first\n{kept}\nif 1:\n    !ls\n    x = tvm.runtime.tensor(y)\n"
    assert new.notes == ()


def test_a_cell_in_another_language_is_left():
    (new,) = upgrade_cells(["%%bash\ntvm.nd.array\n"])
    assert new.text == "%%bash\ntvm.nd.array\n"
    assert [note.what for note in new.notes] == ["%%bash"]


def test_a_broken_cell_is_left_and_the_others_are_upgraded():
    first, second = upgrade_cells(["def f(a, ...):\n    tvm.nd.array\n", "tvm.nd.array(a)"])
    assert (first.text, [note.line for note in first.notes]) == (
        "def f(a, ...):\n    tvm.nd.array\n",
        [1],
    )
    assert second.text == "tvm.runtime.tensor(a)"


def test_a_chapters_prose_and_other_code_stay():
    text = (
        "tvm.nd.array\n\n```bash\ntvm.nd.array\n```\n\n  ```{.python .input n=1}\n"
        "  x = tvm.nd.array(a)\n  \n  y = 1\n  ```\n\n"
        "```\ntvm.nd.array(b)\n```\n```\n[[1 2]]\n```\n"
    )
    new = upgrade_document(text, "a.md")
    assert new.text == text.replace("x = tvm.nd.array", "x = tvm.runtime.tensor").replace(
        "tvm.nd.array(b)", "tvm.runtime.tensor(b)"
    )
    assert new.notes == ()


def test_a_note_of_a_chapter_has_the_files_line():
    text = "one\n\n```python\n\nfrom tvm import relay\n```\n"
    (note,) = upgrade_document(text, "a.md").notes
    assert str(note).startswith("line 5: tvm.relay: ")


@pytest.mark.parametrize("name", ["a.rst", "a.txt"])
def test_code_below_a_directive_is_upgraded(name):
    text = (
        "~~~~\n\n.. code:: python\n   :linenos:\n\n    x = tvm.nd.array(a)\n    \n    y\n\nprose\n"
    )
    new = upgrade_document(text, name)
    assert new.text == text.replace("tvm.nd.array", "tvm.runtime.tensor")


def test_a_script_keeps_its_lines_for_the_notebook():
    text = f"{IMPORT}%time\nx = tvm.nd.array(a)"
    assert upgrade_document(text, "a.py").text == (f"{NEW_IMPORT}%time\nx = tvm.runtime.tensor(a)")


def test_a_broken_script_is_refused_with_its_line():
    with pytest.raises(ValueError, match="line 2: this is not Python"):
        upgrade_document("x = 1\ny = (\n", "a.py")


def test_a_text_without_code_says_so():
    (note,) = upgrade_document("prose\n", "a.md").notes
    assert "no code" in note.why


def test_other_files_are_refused():
    with pytest.raises(ValueError, match=r"'a\.c' is not a file with code"):
        upgrade_document("x", "a.c")
