"""Only the Python that defines modules is read from a notebook."""

import json

import pytest
import tvm
from tvm_ffi import structural_equal

from irviz.course.mm_relu import MyModule
from irviz.errors import LoadError
from irviz.loaders.load import load
from irviz.loaders.notebook_cells import python_of_notebook

pytestmark = pytest.mark.worker

IMPORTS = "from tvm.script import ir as I, relax as R, tirx as T\nimport numpy as np\n"
SOURCE = MyModule.script()
MODULE = SOURCE[SOURCE.index("@I.ir_module") :]


def named(name):
    return MODULE.replace("class Module", f"class {name}")


def notebook(*cells, kind="code"):
    made = [{"cell_type": kind, "source": cell, "metadata": {}, "outputs": []} for cell in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.fixture
def written(tmp_path):
    def write(*cells, name="lecture.ipynb"):
        path = tmp_path / name
        path.write_text(notebook(*cells), encoding="utf-8")
        return path

    return write


def test_the_module_of_a_cell_is_read_and_nothing_is_run(written, tmp_path):
    telltale = tmp_path / "ran"
    run = f"open({str(telltale)!r}, 'w').close()"
    path = written(IMPORTS, run, f"{MODULE}\n{run}\nMyModule.show()", f"!touch {telltale}")
    assert structural_equal(load(path).module, MyModule)
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_source_may_be_a_list_of_lines(written):
    assert structural_equal(load(written(MODULE.splitlines(True))).module, MyModule)


def test_each_module_can_be_asked_for_by_its_name(written):
    path = written(IMPORTS, named("First"), named("Second").replace("mm_relu", "other"))
    assert [g.name_hint for g in load(path, name="Second").module.functions] == ["other"]
    with pytest.raises(LoadError, match="defines 2 modules: name one of 'First', 'Second'"):
        load(path)
    with pytest.raises(LoadError, match="defines no 'Third': there is 'First', 'Second'"):
        load(path, name="Third")


def test_a_name_that_comes_again_is_another_module(written):
    path = written(named("Twice"), named("Twice").replace("mm_relu", "other"))
    assert [g.name_hint for g in load(path, name="Twice#2").module.functions] == ["other"]


def test_what_only_jupyter_understands_is_left_out():
    text = python_of_notebook(
        notebook(
            "%matplotlib inline\n!pip install x\nfiles = !ls\na = 1\na?",
            "%%bash\nrm -rf nothing",
            "%%time\nb = 2",
            "this is no Python",
            "c = 3",
        ),
        "n",
    )
    code = [line for line in text.split("\n") if line and not line.startswith("pass  # ")]
    assert code == ["a = 1", "b = 2", "c = 3"]


def test_a_notebook_of_format_3_is_read():
    sheet = {"cells": [{"cell_type": "code", "input": ["a = 1"]}, {"cell_type": "markdown"}]}
    assert python_of_notebook(json.dumps({"worksheets": [sheet], "nbformat": 3}), "n") == "a = 1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"nbformat": 4', "it is not JSON"),
        ("[" * 200_000, "it is not JSON"),
        ('{"nbformat": 4}', "it has no cells as Jupyter writes them"),
        ("[1]", "has no cell of Python"),
        ('{"nbformat": 4, "cells": [3]}', "it has no cells as Jupyter writes them"),
        ('{"nbformat": 4, "cells": [{"cell_type": "code", "source": 3}]}', "it has no cells"),
        (notebook("a = 1", kind="markdown"), "has no cell of Python"),
    ],
)
def test_what_is_no_notebook_says_so(tmp_path, text, words):
    path = tmp_path / "n.ipynb"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(LoadError) as caught:
        load(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(repr(str(path)))


def test_a_notebook_of_an_older_tvm_is_upgraded(written):
    old = MODULE.replace("T.sblock_alloc_buffer", "T.alloc_buffer").replace("T.sblock", "T.block")
    old = old.replace("T.prim_func(s_tir=True)", "T.prim_func")
    found = load(written("from tvm.script import ir as I\nfrom tvm.script import tir as T", old))
    assert structural_equal(found.module, MyModule)


def test_a_notebook_is_known_by_its_content(written):
    assert isinstance(load(written(MODULE, name="lecture.txt")).module, tvm.ir.IRModule)


def test_notes_are_of_the_module_that_is_asked_for(written):
    lone = (
        "@R.function\ndef lone(x: R.Tensor((1,), 'float32')):\n"
        "    y = R.call_tir(missing, (x,), (1,), dtype='float32')\n    return y"
    )
    old = (
        named("Old")
        .replace("T.sblock", "T.block")
        .replace("T.prim_func(s_tir=True)", "T.prim_func")
    )
    old = old.replace("T.block_alloc_buffer", "T.alloc_buffer")
    path = written("from tvm.script import ir as I, relax as R, tir as T", lone, old)
    assert load(path, name="Old").notes == ()
    with pytest.raises(LoadError, match="missing"):
        load(path, name="lone")
