"""TVM's parser can do little even with a text that should not have been admitted."""

import importlib.util
import os
from pathlib import Path

import pytest
import tvm

from irviz.loaders.tvmscript.admission_recheck import audit_text
from irviz.loaders.tvmscript.names_and_scopes import SourceText
from irviz.loaders.tvmscript.read_modules import parse_admitted
from irviz.loaders.tvmscript.syntax_tree import RefusedError

_SPEC = importlib.util.spec_from_file_location(
    "irviz_test_attacks", Path(__file__).with_name("attacks.py")
)
attacks = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(attacks)

PASSED_OVER = [
    "an attribute that is set to the module",
    "an attribute that is set to the module, in a kernel",
    "the bound of a list, compared",
    "the bound of a list, chosen",
    "the bound of a list, or another",
    "the bound of a list, indexed",
]


@pytest.mark.parametrize(
    "name", [*PASSED_OVER, "a comment behind a size in quotes", "sizes in quotes put together"]
)
def test_a_text_that_nobody_checked_finds_nothing_of_python(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception):  # noqa: B017, PT011 - TVM raises what it likes
        parse_admitted(attacks.ATTACKS[name])
    assert not (tmp_path / "MARK").exists()


@pytest.mark.parametrize("name", PASSED_OVER)
def test_what_a_first_look_passes_over_a_second_one_finds(name):
    text = attacks.ATTACKS[name]
    with pytest.raises(RefusedError, match="a call of open is refused: it is a builtin of Python"):
        audit_text(SourceText(text, "a.py"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("y = ().__class__", "__class__ is refused: it is private"),
        ("y = __builtins__", "the name __builtins__ is refused"),
        ("y = x.mro()", "a call of mro is refused: no value has such a method"),
        ("y = (x, x)[0]()", "a call of an expression is refused"),
        ("y = T.ptx['ld.__class__']()", "a call of an expression is refused"),
        ("y = T.ptx.ld.__class__", "__class__ is refused: it is private"),
        ("y = T.cuda.__activemask.__globals__", "__globals__ is refused: it is private"),
        ("y = Axis.get", "Axis.get is refused: TVMScript does not need it"),
        ("y = Tx.functools", "Tx.functools is refused: TVMScript does not need it"),
        ("T.tile.fill(x, T.bool)", "a type in attributes is refused"),
        ("y = R.parser", "R.parser is refused: TVMScript does not need it"),
    ],
)
def test_a_second_look_needs_not_know_what_a_part_is_for(line, words):
    text = attacks.relax(line)
    with pytest.raises(RefusedError, match=words):
        audit_text(SourceText(text, "a.py"))


@pytest.mark.worker
def test_no_program_of_this_machine_is_asked_about_a_target(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("hipcc", "rocminfo"):
        program = folder / name
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/MARK\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    before = tvm.get_global_func("tvm_callback_rocm_get_arch")
    found = parse_admitted(attacks.tirx('T.func_attr({"target": T.target({"kind": "rocm"})})'))
    assert "rocm" in str(found["main"].attrs["target"])
    assert not (tmp_path / "MARK").exists()
    assert tvm.get_global_func("tvm_callback_rocm_get_arch") is not None
    assert before is not None
    tvm.target.Target({"kind": "rocm"})
    assert (tmp_path / "MARK").exists()  # elsewhere TVM asks as before


def test_tvm_has_pythons_functions_again_when_a_text_was_read():
    with pytest.raises(Exception):  # noqa: B017, PT011 - TVM raises what it likes
        parse_admitted("this is no TVMScript")
    found = tvm.script.from_source(attacks.relax(shape="len((1, 2, 3, 4))"))
    assert found["main"].params[0].ty.shape[0] == 4
