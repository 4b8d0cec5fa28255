"""A text is admitted only if parsing it can do nothing but build a module."""

import contextlib
import importlib.util
import itertools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import tvm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tvm import ir

from irviz.course.mlp import MODULES
from irviz.loaders.tvmscript.admission import RefusedError, admit
from irviz.loaders.tvmscript.allowed_names import ATTRIBUTES, FUNCTIONS, METHODS, TYPES, may_call

_SPEC = importlib.util.spec_from_file_location(
    "irviz_test_attacks", Path(__file__).with_name("attacks.py")
)
attacks = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(attacks)
ATTACKS = attacks.ATTACKS


# --- what does more is refused -----------------------------------------------------------------


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_where_it_stands_and_does_nothing(name, tmp_path):
    mark = tmp_path / "mark"
    text = ATTACKS[name].replace("MARK", str(mark))
    environment, known = dict(os.environ), set(vars(tvm))
    with pytest.raises(RefusedError) as caught:
        admit(text, "a.py")
    refusal = caught.value
    assert str(refusal) == f"a.py, line {refusal.line}, column {refusal.column}: {refusal.reason}"
    assert 1 <= refusal.line <= text.count("\n") + 1
    assert 1 <= refusal.column <= len(text.split("\n")[refusal.line - 1]) + 1
    assert not mark.exists()
    assert dict(os.environ) == environment
    assert set(vars(tvm)) == known


@pytest.mark.worker
def test_every_attack_works_where_nothing_is_refused(tmp_path):
    """The collection bites: this is what `tvm.script.from_source` does with it."""
    program = """
import json, sys, tvm
for text in json.load(sys.stdin):
    try:
        tvm.script.from_source(text)
    except BaseException:
        pass
"""
    texts = [
        text.replace("MARK", str(tmp_path / str(i))) for i, text in enumerate(ATTACKS.values())
    ]
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        input=json.dumps(texts).encode(),
        stderr=subprocess.DEVNULL,
        check=True,
        cwd=sys.prefix,
    )
    without = [name for i, name in enumerate(ATTACKS) if not (tmp_path / str(i)).exists()]
    assert without == []
    assert len(ATTACKS) > 100


def test_the_reason_names_what_is_refused_and_where():
    text = "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Tensor((__import__('os'),))):"
    with pytest.raises(RefusedError) as caught:
        admit(text + " pass", "lecture.py")
    assert str(caught.value) == (
        "lecture.py, line 4, column 24: a call of __import__ is refused: TVMScript calls only "
        "functions of T, R and I and of the text itself"
    )
    assert (caught.value.line, caught.value.column) == (4, 24)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.line, again.column) == (str(caught.value), 4, 24)


def test_columns_count_characters():
    text = attacks.tirx('T.func_attr({"é線": open("MARK")})')
    with pytest.raises(RefusedError) as caught:
        admit(text)
    (line,) = (line for line in text.split("\n") if "open" in line)
    assert caught.value.column == line.index("open") + 1


# --- what TVM prints is admitted ---------------------------------------------------------------


def without_future(text):
    """Return a text without an import that TVM prints from Python 3.12 on, and irviz leaves out."""
    return text.replace("from __future__ import annotations", "", 1)


def check(value, *, metas=(False, True)):
    """Check that what TVM prints of a value is admitted, unless TVM reads it no more itself."""
    for show_meta in metas:
        try:
            text = value.script(show_meta=show_meta)
        except Exception:  # what TVM does not print needs no admission
            continue
        try:
            assert admit(text).text == without_future(text)
        except RefusedError:
            with pytest.raises(Exception):  # noqa: B017, PT011 - TVM raises what it likes
                tvm.script.from_source(text)


@pytest.mark.build
@pytest.mark.parametrize("name", MODULES)
def test_the_modules_of_the_course_are_admitted_and_so_is_what_passes_make_of_them(name):
    mod = MODULES[name]
    check(mod)
    stages = []

    @tvm.ir.instrument.pass_instrument
    class Watch:
        def run_after_pass(self, mod, info):  # noqa: ARG002 - as TVM calls it
            stages.append(mod)

    with tvm.transform.PassContext(instruments=[Watch()]):
        tvm.compile(mod, target="llvm")
    assert len(stages) > 50
    for stage in {stage.script(): stage for stage in stages}.values():
        check(stage, metas=[False])


def test_every_construct_is_admitted(constructs, construct):
    check(constructs.construct(construct))


def test_small_modules_are_admitted(modules):
    for value in vars(modules).values():
        if isinstance(value, ir.IRModule):
            check(value)


@given(data=st.data())
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
def test_random_modules_are_admitted(modules, constructs, data):
    check(data.draw(modules.programs()))
    check(data.draw(constructs.random_modules()))


def test_a_size_in_brackets_is_known_in_its_own_function():
    text = """@I.ir_module
class Module:
    @R.function
    def other[max](x: R.Tensor((max, "max + 1"))):
        return R.reshape(x, R.shape([max + 1, max]))

    @R.function
    def main(x: R.Tensor(("n",))):
        return R.reshape(x, R.shape([SIZE]))
"""
    if sys.version_info >= (3, 12):  # older Pythons have no such brackets
        assert admit(text.replace("SIZE", "n"))
    with pytest.raises(RefusedError, match=r"line 9|Python 3\.12"):
        admit(text.replace("SIZE", "max"))


def test_a_text_by_hand_keeps_its_layout_and_loses_its_imports():
    text = '''"""A lecture."""
import tvm
from tvm.script import ir as I, relax as R
from tvm.script import (
    tirx as T,
)
from __future__ import annotations
n = TypeVar("n")

# two of them
@T.prim_func(private=True, s_tir=True)
def double(a: T.handle, input: T.int32):
    "doubles"
    X = T.match_buffer(a, (n,), "float32")
    for i in range(4):  # a loop
        with T.sblock("X"):
            vi = T.axis.spatial(4, i)
            X[vi] = X[vi] * T.Cast("float32", input) + T.float32("inf")


@I.ir_module
class Module:
    I.module_attrs({"a": 1})

    @R.function
    def main(x: R.Tensor(("n", "n * 2 + 1"), "float32"), max: R.Prim("int64")):
        cls = Module
        with R.dataflow():
            sum = R.add(x, x)
            kept = (sum, x)[0]
            R.output(sum)
        if max > 3:
            y = sum
        else:
            y = R.layout_transform(x, index_map=T.index_map(lambda i, j: (j, i)))
        z = R.reshape(R.split(y, 2)[0], R.shape([k + 1 for k in range(3)]))
        again = cls.main(sum, max)
        return again
'''
    admitted = admit(text)
    assert [(one.name, one.lines) for one in admitted.definitions] == [
        ("double", range(11, 19)),
        ("Module", range(21, 39)),
    ]
    before, after = text.split("\n"), admitted.text.split("\n")
    assert len(after) == len(before)
    assert [i for i, line in enumerate(before) if line != after[i]] == [1, 2, 3, 4, 5, 6]
    assert admitted.only(admitted.definitions[0]).split("\n")[20:38] == [""] * 18


def test_other_ends_of_lines_and_a_mark_before_the_text_are_read():
    text = without_future(MODULES["MyModule"].script())
    for other in ("\ufeff" + text, text.replace("\n", "\r\n"), text.replace("\n", "\r")):
        assert admit(other).text == text


# --- the list ----------------------------------------------------------------------------------


def _named(root, path):
    from tvm.script import parser
    from tvm.tirx.layout import Axis
    from tvm.tirx.script import tile

    dialects = {"I": parser.ir, "R": parser.relax, "T": parser.tirx, "Tx": tile, "Axis": Axis}
    found = dialects[root]
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("root", FUNCTIONS)
def test_what_is_listed_is_there_and_is_no_module(root):
    for path in FUNCTIONS[root] | TYPES.get(root, frozenset()):
        assert not isinstance(_named(root, path), type(os)), f"{root}.{path}"


@pytest.mark.parametrize("root", FUNCTIONS)
def test_no_function_hands_back_text_that_it_is_given(root):
    """Else a variable could hold it, and a shape would evaluate it."""
    said = "said by the text"
    given = [(), (said,), (said, said), (said, said, said), ([said],), ({said: said},), (0, said)]
    for path, arguments in itertools.product(sorted(FUNCTIONS[root]), given):
        try:
            answer = _named(root, path)(*arguments)
        except Exception:  # most take no text, or none outside of a function
            continue
        assert not isinstance(answer, str | list | tuple | dict), f"{root}.{path}"
        for name in ATTRIBUTES:
            found = None
            with contextlib.suppress(Exception):
                found = getattr(answer, name, None)
            assert not isinstance(found, str), f"{root}.{path}"


def test_what_runs_python_or_reaches_modules_is_in_no_list():
    for root in FUNCTIONS:
        for path in ("inline", "macro", "jit", "pyfunc", "meta_var", "call_kernel", "emit_te"):
            assert not may_call(root, path)
    assert not may_call("T", "float32.__class__")
    assert not {name for name in ATTRIBUTES | METHODS if name.startswith("_")}
    assert not ATTRIBUTES & {"ty", "dtype", "name", "name_hint", "scope"}, "these are text"
