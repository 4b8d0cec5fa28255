"""Today's dialect is unchanged, older ones are rewritten, and the rest is noted."""

from __future__ import annotations

import cProfile
import importlib
import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import irviz
from irviz.course.mlp import MODULES
from irviz.loaders.file_limits import UPGRADE_LIMITS
from irviz.loaders.tvmscript.syntax_tree import RefusedError
from irviz.loaders.upgrade.renamed_symbols import GONE, MOVED, moved, operator_name
from irviz.loaders.upgrade.upgrade import upgrade, upgrade_cells

COURSE = sorted((Path(irviz.__file__).parent / "course").glob("*.py"))
OLD = """from tvm.script import tir as T, relax as R
import tvm

@tvm.script.ir_module
class M:
    @T.prim_func
    def f(A: T.Buffer[(4,), "float32"], B: T.Buffer[(4,), "float32"]):
        for i in range(4):
            with T.block("B"):  # a comment
                B[i] = A[i]

    @R.function
    def main(x: Tensor((4,), "float32")):
        y = R.call_tir(f, (x,), (4,), dtype="float32")
        return y
"""


def what(text):
    return [(note.line, note.what) for note in upgrade(text).notes]


def test_dialects_may_be_imported_from_the_parser():
    old = OLD.replace("from tvm.script import", "from tvm.script.parser import ir as I,")
    assert "\n@I.ir_module\n" in upgrade(old).text
    assert 'with T.sblock("B"):' in upgrade(old).text


# --- today's dialect ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", COURSE, ids=lambda path: path.name)
def test_a_file_in_todays_dialect_comes_back_as_it_is(path):
    text = path.read_text(encoding="utf-8")
    assert upgrade(text).text == text
    assert upgrade(text).notes == ()


@pytest.mark.parametrize("name", MODULES)
def test_what_tvm_prints_today_comes_back_as_it_is(name):
    text = MODULES[name].script(show_meta=True)
    assert upgrade(text).text == text
    assert upgrade(text).notes == ()


LINES = OLD.splitlines(keepends=True)


@given(st.lists(st.sampled_from(range(len(LINES))), unique=True).map(sorted))
def test_a_second_upgrade_changes_nothing(chosen):
    text = "".join(LINES[at] for at in chosen)
    try:
        once = upgrade(text)
    except RefusedError:
        return  # not every choice of lines is Python
    again = upgrade(once.text)
    assert again.text == once.text


@given(st.text(alphabet="ab(T.R)[]{}:=,\n\t #'\"\\@\0é", max_size=60))
def test_any_text_is_upgraded_or_refused_with_a_line(text):
    try:
        line = upgrade(text) and 1
    except RefusedError as failure:
        line = failure.line
    assert line >= 1


# --- rules that need a word of their own -------------------------------------------------------


def test_layout_and_comments_stay():
    new = upgrade(OLD).text
    assert '            with T.sblock("B"):  # a comment\n' in new
    assert new.startswith("from tvm.script import tirx as T, relax as R, ir as I\nimport tvm\n")
    assert "        cls = M\n        y = R.call_tir(cls.f, (x,), out_ty=" in new


def test_a_late_future_import_is_put_first_with_its_comment():
    text = '"""Doc."""\nimport tvm\n\n# why\nfrom __future__ import annotations\nx = 1\n'
    new = upgrade(text).text
    assert new == '"""Doc."""\n\n# why\nfrom __future__ import annotations\nimport tvm\nx = 1\n'
    compile(new, "cell", "exec")


def test_a_future_import_that_stands_first_stays_first():
    text = "from __future__ import annotations\nfrom tvm.script import tir as T\nimport tvm\n"
    extra = "same = tvm.ir.structural_equal(a, b)\n"
    new = upgrade(text + extra).text.splitlines()
    assert new[0] == "from __future__ import annotations"
    assert sorted(new[1:4]) == [
        "from tvm.script import tirx as T",
        "import tvm",
        "import tvm_ffi",
    ]


def test_names_that_a_script_gives_its_imports_stay():
    text = "from tvm import tir, nd\nfrom tvm.tir import Schedule as S, PrimFunc\nx = nd.array(y)\n"
    assert upgrade(text).text == (
        "from tvm import tirx as tir, runtime as nd\n"
        "from tvm.s_tir import Schedule as S\nfrom tvm.tirx import PrimFunc\nx = nd.tensor(y)\n"
    )


def test_a_name_that_means_something_else_is_left():
    text = "import torch\nfrom torch import Tensor\nT = 3\ntvm = torch\nT.block\ntvm.nd.array(1)\n"
    assert upgrade(text).text == text


def test_the_module_is_called_otherwise_where_cls_is_taken():
    text = OLD.replace("y =", "cls =").replace("return y", "return cls")
    assert "        cls2 = M\n        cls = R.call_tir(cls2.f" in upgrade(text).text


def test_constants_that_tvm_printed_have_the_name_they_have_today():
    text = "f(meta[relay.Constant][0], metadata['relax.expr.Constant'][1])\n"
    assert upgrade(text).text == (
        'f(metadata["ir.GenericConst"][0], metadata["ir.GenericConst"][1])\n'
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('dev = tvm.device("llvm", 0)', 'dev = tvm.device("cpu", 0)'),
        ('t = "llvm"\ndev = tvm.device(t, 0)', 't = "llvm"\ndev = tvm.device("cpu", 0)'),
        ('t = "cuda"\ndev = tvm.device(t, 0)', 't = "cuda"\ndev = tvm.device(t, 0)'),
        ("lib.imported_modules[0].get_source()", "lib.imports[0].inspect_source()"),
        ("sch.blockize(loop=i)", "sch.blockize(target=i)"),
        ("from tvm.contrib import utils, clang", "from tvm.support import utils, clang"),
        (
            'y = relax.call_tir(relax.extern("env.f"), (x,), (4,), dtype="int32")',
            'y = relax.call_dps_packed("env.f", (x,), out_ty=relax.TensorType((4,), "int32"))',
        ),
        ('relu = tvm.ir.Op.get("relax.relu")', 'relu = tvm.ir.Op.get("relax.nn.relu")'),
        (
            'p = is_op("relax.nn.dense")(x, w)',
            'p = is_op("relax.matmul")(x, is_op("relax.permute_dims")(w))',
        ),
    ],
)
def test_python_that_builds_and_matches_programs_is_rewritten(old, new):
    head = "import tvm\nfrom tvm import relax\nfrom tvm.relax.dpl import is_op\n"
    result = upgrade(f"{head}{old}\n")
    assert result.text == f"{head}{new}\n"
    assert result.notes == ()


def test_code_that_finds_dense_by_its_name_gets_the_operands_of_matmul():
    """The weight that it finds is permuted already."""
    text = """from tvm import relax, topi, ir
class Fuse:
    op = ir.Op.get("relax.nn.dense")
    def visit(self, call):
        return relax.op.nn.dense(*call.args[:0], call.args[0], call.args[1])
    def again(self, x, w):
        return relax.op.nn.dense(x, w)
def lower(bb, call):
    return bb.call_te(topi.nn.dense, *call.args)
table = {"relax.nn.dense": lower}
whole = relax.op.nn.dense(x, w)
"""
    new = upgrade(text)
    assert new.text.count("nn.dense") == 0
    assert "        return relax.op.matmul(x, w)\n" in new.text
    assert "bb.call_te(topi.matmul, *call.args)" in new.text
    assert "whole = relax.op.matmul(x, relax.op.permute_dims(w))" in new.text
    assert [note.line for note in new.notes] == [5]


def test_a_question_whether_there_is_an_expression_is_asked_of_none():
    text = """from tvm.relax.testing import nn
class Linear(nn.Module):
    def __init__(self, bias):
        self.flag = bias
        self.bias = nn.Parameter((4,), "float32") if bias else None
        if bias:
            self.bias = nn.Parameter((4,), "float32")
    def forward(self, x):
        if self.bias and self.flag:
            pass
        if self.flag:
            return x
        return x if self.bias else None
"""
    assert upgrade(text).text == text.replace("x if self.bias", "x if self.bias is not None")


# --- what is left, and said --------------------------------------------------------------------


def test_what_is_no_longer_part_of_tvm_is_left_and_said():
    text = "import tvm\nfrom tvm import relay, te\n\nsch = te.create_schedule(C.op)\n"
    assert upgrade(text).text == text
    assert what(text) == [(2, "tvm.relay"), (4, "te.create_schedule")]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("y = R.call_tir(cls.f, (x,), (4,))", "call_tir"),
        ("y = R.call_tir(*given)", "call_tir"),
        ('y = R.call_tir(cls.f, (x,), [(4,), (4,)], dtype=["int32"])', "call_tir"),
        ('y = R.call_tir(cls.f, (x,), (4,), dtype="int32", tir_vars=(n,))', "call_tir"),
        ('y = R.call_tir(nobody, (x,), R.Tensor((4,), "int32"))', "nobody"),
        ('x = relax.Var("x", (1, 2))', "relax.Var"),
        ('x = relax.Var("x", shape, kind_of(x))', "relax.Var"),
        ("y = relax.op.dense(x, w, units=10)", "dense"),
        ("n = R.match_shape(x, (n,))", "R.match_shape"),
    ],
)
def test_what_cannot_be_known_is_left_with_its_line_and_the_reason(line, word):
    text = f"import tvm\ncls = M\n{line}\n"
    new = upgrade(text)
    assert new.text == text
    (note,) = new.notes
    assert (note.line, note.what) == (3, word)
    assert len(note.why) > 20


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("import tvm.never_there", "tvm.never_there"),
        ("from tvm.relax import NeverThere", "tvm.relax.NeverThere"),
        ("x = relax.op.never_there(x)", "relax.op.never_there"),
        ("x = tvm.s_tir.Schedule.never_there", "tvm.s_tir.Schedule.never_there"),
        ("x = te.placeholder((4,), never=1)", "te.placeholder(never=…)"),
        ('op = tvm.ir.Op.get("relax.never_there")', "relax.never_there"),
        ('table = {"relax.nn.never_there": 1}', "relax.nn.never_there"),
    ],
)
def test_a_name_that_the_installed_tvm_lacks_is_said_with_the_line_in_its_cell(line, word):
    cells = ["import tvm\nfrom tvm import relax, te\n", f"x = 1\n{line}\n"]
    first, second = upgrade_cells(cells)
    assert first.notes == ()
    assert second.text == cells[1]
    assert [(note.line, note.what) for note in second.notes] == [(2, word)]


def test_a_program_that_a_function_runs_and_that_is_not_installed_is_said(tmp_path, monkeypatch):
    text = "from tvm.contrib import clang\ncode = clang.create_llvm(source)\n"
    monkeypatch.setenv("PATH", str(tmp_path))
    (note,) = upgrade(text).notes
    assert (note.line, note.what) == (2, "clang.create_llvm")

    (tmp_path / "clang").touch(mode=0o755)
    assert upgrade(text).notes == ()


@pytest.mark.parametrize(
    "line",
    [
        "x = tvm.runtime.tensor(y).never_known",
        "x = tvm.cpu(0).never_known",
        'options = {"relax.FuseOps.max_depth": 4}',
        'text = "relax.Not an operator"',
        "import tvm.__main__",
    ],
)
def test_what_cannot_be_told_without_running_it_gets_no_note(line):
    assert upgrade(f"import tvm\n{line}\n").notes == ()


def test_no_program_of_tvm_is_imported_to_look_a_name_up():
    upgrade("import tvm.exec.rpc_proxy\n")

    assert "tvm.exec.rpc_proxy" not in sys.modules


# --- hostile and broken text -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\ny = (\n", 2),
        ("x = 1\n" + "(" * 250 + ")" * 250, 2),
        ("-" * 50_000 + "1", 1),
        ("x = 1\n" + "[" * 100_000, 2),
        ("x = 1\n\n" + "a" + ".b" * (UPGRADE_LIMITS.depth + 5), 3),
        ("1" + "+1" * 5_000, 1),
        ("a = 1\0", 1),
        ("x" * 3_000_000, 1),
        (f"x = ({'a, ' * 100_000})", 1),
    ],
    ids=["broken", "brackets", "signs", "open brackets", "dots", "sums", "null", "long", "wide"],
)
def test_broken_and_hostile_text_is_refused_with_its_line(text, line):
    with pytest.raises(RefusedError) as refused:
        upgrade(text)
    assert refused.value.line == line
    assert len(str(refused.value)) < 200


def test_nothing_is_run(tmp_path):
    proof = tmp_path / "proof"
    text = f'{OLD}\nopen({str(proof)!r}, "w")\n@__import__("os").abort()\ndef f(): ...\n'
    assert "T.sblock" in upgrade(text).text
    assert not proof.exists()


# --- the table of names against the installed TVM ----------------------------------------------


def there(name):
    """Tell whether the installed TVM has a name, without loading what takes it a minute."""
    short = {"T": "tvm.script.tirx", "R": "tvm.script.relax", "I": "tvm.script.ir"}
    head, _, rest = name.partition(".")
    home, _, last = f"{short.get(head, head)}{rest and '.'}{rest}".rpartition(".")
    owner = found(home)
    return owner is not None and (hasattr(owner, last) or is_module(f"{home}.{last}"))


def found(name):
    """Return what has a dotted name, or nothing."""
    if not name or is_module(name):
        return importlib.import_module(name or "builtins")
    home, _, last = name.rpartition(".")
    return getattr(found(home), last, None)


def is_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


STILL_THERE = {"tvm.build", "tvm.script.ir_module"}


@pytest.mark.parametrize("name", MOVED)
def test_a_name_that_moved_is_where_the_table_says(name):
    assert there(MOVED[name])
    assert not there(name) or name in STILL_THERE


@pytest.mark.parametrize(
    ("name", "today"),
    [
        ("tvm.tir.Schedule", "tvm.s_tir.Schedule"),
        ("tvm.tir.PrimFunc", "tvm.tirx.PrimFunc"),
        (
            "tvm.tir.transform.LowerCrossThreadReduction",
            "tvm.s_tir.transform.LowerCrossThreadReduction",
        ),
        ("tvm.tir.transform.UnrollLoop", "tvm.tirx.transform.UnrollLoop"),
        ("tvm.tir.analysis.verify_gpu_code", "tvm.s_tir.analysis.verify_gpu_code"),
        ("tvm.contrib.utils.tempdir", "tvm.support.utils.tempdir"),
        ("tvm.relax.op.softmax", "tvm.relax.op.nn.softmax"),
        ("tvm.relax.op.add", "tvm.relax.op.add"),
        ("R.conv2d", "R.nn.conv2d"),
        ("R.add", "R.add"),
    ],
)
def test_a_name_is_looked_for_where_tvm_has_it_today(name, today):
    assert moved(name) == today
    assert there(today)


def test_operators_in_strings_are_named_as_tvm_names_them_today():
    names = ["relax.softmax", "relax.nn.dense", "relax.add", "relax.nothing"]
    today = ["relax.nn.softmax", "relax.matmul", "relax.add", "relax.nothing"]
    assert [operator_name(name) for name in names] == today


@pytest.mark.parametrize("name", GONE)
def test_a_name_that_is_gone_is_not_there(name):
    assert not there(name)


# --- time --------------------------------------------------------------------------------------

LONG = {
    "assignments of one name": lambda n: "import tvm\nx = 0\n" + "x = x\n" * n,
    "imports of one module": lambda n: "import tvm\n" * n + "tvm.nd.array(x)\n" * n,
    "names of one import": lambda n: (
        f"from tvm import {', '.join(f'a{i}' for i in range(n))}\na0.b\n" + "a1.b\n" * n
    ),
    "imports under other names": lambda n: "".join(
        f"import tvm as t{i}\nt{i}.nd.array(x)\n" for i in range(n)
    ),
    "functions of one class": lambda n: (
        "from tvm.script import relax as R, ir as I\n@I.ir_module\nclass M:\n"
        + "    @R.function\n    def f(x: Tensor((1,), 'float32')):\n        return x\n" * n
    ),
}


@pytest.mark.parametrize("kind", LONG)
def test_a_text_that_is_four_times_as_long_takes_four_times_as_long(kind):
    short, long = (calls_of(upgrade, LONG[kind](times)) for times in (40, 160))
    assert long < 5 * short


def calls_of(function, *arguments):
    """Return how many functions are called meanwhile, which is the same on every machine."""
    profile = cProfile.Profile()
    profile.runcall(function, *arguments)
    return sum(entry.callcount for entry in profile.getstats())


def test_strings_in_annotations_are_not_parsed():
    """libcst's parser ends the process when brackets are nested deeply."""
    text = f'import tvm\nx: "{"(" * 3000}" = tvm.nd.array(y)\n'
    assert upgrade(text).text == text.replace("tvm.nd.array", "tvm.runtime.tensor")


def test_imports_inside_functions_have_their_own_names():
    text = (
        "def f():\n    import tvm as t\n    return t.nd.array(x)\n"
        "def g():\n    import numpy as t\n    return t.nd.array(x)\n"
        "def h():\n    global t\n    return t.nd\n"
    )
    assert upgrade(text).text == text.replace("t.nd.array", "t.runtime.tensor", 1)
