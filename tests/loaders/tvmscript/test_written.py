"""What people write by hand is admitted: one text for each construct, in `written.txt`."""

import ast
import re
import warnings
from pathlib import Path

import pytest
import tvm
from tvm_ffi import structural_equal

import irviz
from irviz.loaders.tvmscript.admission import RefusedError, admit
from irviz.loaders.tvmscript.read_modules import parse_admitted

_NAMED = Path(__file__).with_name("written.txt").read_text(encoding="utf-8").split("# === ")[1:]
_LOADED = (ast.Load, type(None))  # constants have no context
WRITTEN = {name: text for name, _, text in (one.partition("\n") for one in _NAMED)}


def read_by_tvm(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that TVM will drop
        return tvm.script.from_source(text)


def read_here(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parse_admitted(admit(text).text)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_by_hand_is_read_as_tvm_reads_it_and_so_is_its_printed_form(name):
    known = read_by_tvm(WRITTEN[name])
    assert structural_equal(read_here(WRITTEN[name]), known)
    printed = known.script(show_meta=True)
    try:
        again = read_by_tvm(printed)
    except Exception:  # TVM does not read all that it prints
        return
    assert structural_equal(read_here(printed), again)


@pytest.mark.parametrize("hostile", ['open("MARK", "w")', "R.add.__globals__", "tvm.base", "exec"])
def test_a_hostile_expression_is_refused_wherever_it_stands(hostile):
    """Each text gets it at one place, and the texts together at places of all kinds."""
    for index, (name, text) in enumerate(WRITTEN.items()):
        tree = ast.parse(text)
        places = [
            (node, field, value)
            for node in ast.walk(tree)
            for field, value in ast.iter_fields(node)
            if isinstance(value, ast.expr) and isinstance(getattr(value, "ctx", None), _LOADED)
        ]
        if not places:
            continue
        node, field, _ = places[index * 7 % len(places)]
        setattr(node, field, ast.parse(hostile, mode="eval").body)
        assert _is_refused(ast.unparse(tree)), name


def _is_refused(text):
    try:
        admit(text)
    except RefusedError:
        return True
    return False


# --- what is not read --------------------------------------------------------------------------

_PRIM_FUNC = '@T.prim_func\ndef main(A: T.Buffer((16,), "float32"), n: T.int32):\n    '
_FUNCTION = '@R.function\ndef main(x: R.Tensor((4, 4), "float32")):\n    '
NOT_READ = {
    "`*` before an argument": (
        "for i, j in T.grid(*(2, 2)):\n        T.evaluate(i)",
        "a PrimFunc",
    ),
    "an argument or a name": ("for i, *js in T.grid(2, 2):\n        T.evaluate(i)", "a PrimFunc"),
    "functions of Python": ("A[0] = T.float32(max(3, 4))", "a PrimFunc"),
    "formatted strings": ('T.evaluate(T.call_extern("int32", f"x{1}"))', "a PrimFunc"),
    "arithmetic with strings": ('T.evaluate(T.call_extern("int32", "a" + "b"))', "a PrimFunc"),
    "`T.meta_var`": ("x = T.meta_var(n)\n    T.evaluate(x)", "a PrimFunc"),
    "`T.SMEMPool`": ("pool = T.SMEMPool()", "a PrimFunc"),
    "65 extents": (
        f"B = T.alloc_local((1,), layout=T.TileLayout(T.S[{'1, ' * 64}1]))\n    T.evaluate(B[0])",
        "a PrimFunc",
    ),
    "`**`": ("y = x ** x\n    return y", "a function"),
    "R.emit": ("y = R.emit(R.add(x, x))\n    return y", "a function"),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_what_tvm_reads_and_irviz_refuses_is_named_in_the_documentation(name):
    body, kind = NOT_READ[name]
    text = (_PRIM_FUNC if kind == "a PrimFunc" else _FUNCTION) + body + "\n"
    assert read_by_tvm(text)
    with pytest.raises(RefusedError):
        admit(text)
    page = Path(__file__).parents[3].joinpath("docs/models.md").read_text(encoding="utf-8")
    limits = re.search(r"## What is not read\n(.*?)\n## ", page, re.S)[1]
    assert name in " ".join(limits.split())


@pytest.mark.worker
def test_a_module_of_several_functions_is_opened_at_the_first_or_the_chosen_one(tmp_path):
    path = tmp_path / "several.py"
    path.write_text(WRITTEN["a function without main"], encoding="utf-8")
    assert irviz.load(path).function == "first"
    assert irviz.load(path, function="second").function == "second"
