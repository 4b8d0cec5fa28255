"""`%%tvmscript` opens a lecture's cell as it was pasted, and runs nothing of it."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from tvm import IRModule

from irviz.explorer import cell_magic
from irviz.explorer.explorer import Explorer

pytestmark = pytest.mark.worker

MODULE = """@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def relu(X: T.Buffer[(1, 4), "float32"], Y: T.Buffer[(1, 4), "float32"]):
        for i, j in T.grid(1, 4):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @R.function
    def main(x: Tensor((1, 4), "float32")):
        with R.dataflow():
            out = R.call_tir(relu, (x,), (1, 4), dtype="float32")
            R.output(out)
        return out
"""
KERNEL = MODULE.split("\n\n")[0] + "\n"


@pytest.fixture(scope="module")
def shell():
    """Return a shell that has loaded the extension as a notebook does."""
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "irviz")
    yield shell
    shell.history_manager.end_session()


@pytest.fixture
def run(shell, monkeypatch):
    """Return a function that runs the magic and gives what it displayed: HTML, and explorers."""

    def run_magic(line, cell):
        shown = []
        monkeypatch.setattr(cell_magic, "display", shown.append)
        shell.run_cell_magic("tvmscript", line, cell)
        return [getattr(each, "data", each) for each in shown]

    return run_magic


def test_a_lectures_cell_is_upgraded_named_and_opened(shell, run):
    told, explorer = run("", MODULE)
    module = shell.user_ns["MyModule"]
    assert isinstance(module, IRModule)
    assert sorted(var.name_hint for var in module.get_global_vars()) == ["main", "relu"]
    assert "<details><summary>" in told
    assert "lines upgraded" in told
    assert "-            with T.block(&#34;Y&#34;):" in told
    assert isinstance(explorer, Explorer)
    assert explorer.session.function == "main"


def test_a_module_goes_by_the_name_behind_the_magic(shell, run):
    run("mlp", MODULE)
    assert isinstance(shell.user_ns["mlp"], IRModule)


def test_of_two_modules_the_one_that_is_named_is_opened(shell, run):
    both = MODULE + MODULE.replace("MyModule", "Other")
    told, _ = run("MyModule", both)
    assert "MyModule, Other" in told
    assert isinstance(shell.user_ns["Other"], IRModule)
    with pytest.raises(UsageError, match="defines no 'third'"):
        run("third", both)


def test_other_python_is_left_out_and_said(run, tmp_path):
    proof = tmp_path / "proof"
    told, _ = run("", f"import os\nopen({str(proof)!r}, 'w')\n%matplotlib inline\n{MODULE}")
    assert "the Python at line 2, 3 was not run" in told
    assert not proof.exists()


def test_a_cell_in_todays_dialect_shows_no_changes(shell, run):
    told, _ = run("", shell.user_ns["MyModule"].script())
    assert "<details>" not in told


def test_kernels_alone_are_opened_too(run):
    told, explorer = run("", KERNEL)
    assert "MyModule" in told
    assert explorer.session.function == "relu"


@pytest.mark.parametrize(
    ("line", "cell", "words"),
    [
        ("", "x = 1\n", "has no TVMScript"),
        ("", "def f(a, ...):\n    pass\n", "line 1: it is left unchanged; this is not Python"),
        ("a b", MODULE, "is not a name"),
        ("", MODULE.replace("T.float32(0)", "__import__('os').abort()"), "the cell, line 8"),
        ("", MODULE.replace("call_tir(relu", "call_tir(nothing"), "nothing"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(run, line, cell, words):
    with pytest.raises(UsageError) as refused:
        run(line, cell)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_nothing_of_its_line_is_evaluated(shell, run):
    shell.user_ns["called"] = []
    shell.run_line_magic("pwd", "{called.append('by any other magic')}")
    assert shell.user_ns["called"] == ["by any other magic"]
    with pytest.raises(UsageError, match=r"'\{called.append\(1\)\}' is not a name"):
        run("{called.append(1)}", MODULE)
    assert shell.user_ns["called"] == ["by any other magic"]


@pytest.mark.parametrize("cell", ["%%bash\nls\n", "%%bash", "\n%%html\n<b>"])
def test_a_cell_of_another_language_is_refused_in_a_sentence(run, cell):
    with pytest.raises(UsageError, match=r"the cell starts with %%\w+: paste TVMScript alone"):
        run("", cell)
