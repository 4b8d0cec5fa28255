"""TVMScript becomes modules when it is TVMScript and TVM reads it; else a sentence says why."""

import os
import time

import pytest
import tvm
from tvm_ffi import structural_equal

from irviz.course.mlp import MODULES, MyModule
from irviz.ir.admission import RefusedError
from irviz.loaders import tvmscript
from irviz.loaders.loaded import LoadError
from irviz.loaders.tvmscript import load_tvmscript, modules_of

TEXT = MyModule.script()
BY_HAND = """# by hand
from tvm.script import ir as I, relax as R, tirx as T


@T.prim_func(private=True, s_tir=True)
def double(input: T.Buffer(("n", 4), "float32"), max: T.int32):
    for i in range(4):
        with T.sblock("b"):
            vi = T.axis.spatial(4, i)
            input[0, vi] = T.Cast("float32", max)


@R.function
def twice(x: R.Tensor(("n", "n + 1"), "float32")):
    sum = R.add(x, x)
    return sum


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.add(x, x)
        return y
"""


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(content, name="mod.py"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refusal(source, error=LoadError, **options):
    """Return the one sentence that a text is refused with."""
    with pytest.raises(error) as caught:
        load_tvmscript(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert "Traceback" not in message
    assert len(message) < 1000
    return message


# --- what is read ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_what_tvm_prints_comes_back(name):
    text = MODULES[name].script(show_meta=True)
    assert structural_equal(load_tvmscript(text), tvm.script.from_source(text))


@pytest.mark.parametrize("name", ["mod.py", "-o é 線"])
def test_a_file_is_read_by_its_name(written, name, monkeypatch):
    path = written(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode(), name)
    monkeypatch.chdir(path.parent)
    for source in (path, str(path), name):
        assert structural_equal(load_tvmscript(source), MyModule)


def test_several_definitions_of_a_text_are_modules_each():
    mods = modules_of(BY_HAND)
    assert list(mods) == ["double", "twice", "Module"]
    assert [[gvar.name_hint for gvar in mod.get_global_vars()] for mod in mods.values()] == [
        ["double"],
        ["twice"],
        ["main"],
    ]
    for name, mod in mods.items():
        assert structural_equal(load_tvmscript(BY_HAND, name), mod)


def test_a_text_without_several_names_one():
    assert refusal(BY_HAND) == (
        "<text> defines 'double', 'twice', 'Module': say which of them, or use modules_of"
    )
    assert refusal(BY_HAND, which="main") == (
        "<text> defines no 'main': there is 'double', 'twice', 'Module'"
    )
    assert "defines no module: write `@I.ir_module`" in refusal("# nothing\n")
    assert "defines 'Module' twice" in refusal(BY_HAND.replace("twice", "Module"))


# --- what is not -------------------------------------------------------------------------------


def test_what_is_no_tvmscript_is_refused_before_tvm_sees_it(written, monkeypatch, tmp_path):
    monkeypatch.setattr(tvmscript, "_module", lambda *_: pytest.fail("TVM saw it"))
    mark = tmp_path / "mark"
    path = written(BY_HAND.replace("(4,)", f"(__import__('os').mkdir({str(mark)!r}) or 4,)"))
    said = refusal(path, RefusedError)
    assert said.startswith(f"{path}, line 22, column 27: a call of __import__ is refused")
    assert not mark.exists()


def test_what_tvm_does_not_read_is_said_with_its_place():
    said = refusal(BY_HAND.replace("return y", "return z"), which="Module")
    assert said == "<text>, line 24, column 9: TVM does not read this: Undefined variable: z"


def test_where_python_has_a_name_there_is_nothing_when_tvm_reads():
    """Also what the admission would let through finds neither Python's names nor TVM's."""
    for name in ("open", "exit", "__import__", "breakpoint"):
        text = BY_HAND.replace("(4,)", f"({name}(),)")
        with pytest.raises(Exception, match=r"not callable|Undefined variable"):
            tvmscript._read(text[text.index("@I.ir_module") :], "Module")
    for way in ("tvm.base", "relax.parser", "tirx.tile"):
        text = BY_HAND.replace("(4,)", f"({way}.os,)")
        with pytest.raises(Exception, match=r"attribute|Undefined variable"):
            tvmscript._read(text[text.index("@I.ir_module") :], "Module")


def test_reading_that_does_not_end_is_stopped():
    body = "\n".join(f"    x{i + 1} = (x{i}, x{i})" for i in range(60))
    text = f"@T.prim_func(s_tir=True)\ndef f(n: T.int32):\n    x0 = (n, n)\n{body}\n"
    began = time.monotonic()
    said = refusal(text, seconds=3)
    assert "was not read within 3 s" in said or "takes all memory" in said
    assert time.monotonic() - began < 60
    assert load_tvmscript(TEXT), "the next text is read"


def test_reading_that_ends_the_process_ends_only_the_other(monkeypatch):
    monkeypatch.setattr(tvmscript, "_try", _die)
    assert refusal(TEXT) == "<text> is refused: reading 'Module' crashes TVM"


def _die(*_):
    os._exit(1)


def test_files_that_are_none_are_named(written, tmp_path):
    assert refusal(tmp_path / "none").endswith("check the name")
    assert refusal(tmp_path).endswith("is a directory: name a file in it")
    assert refusal(written(b"\xff\xfe\x00")).endswith("it is no text in UTF-8")
    assert "may not be read" in refusal("a\0b")
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").endswith("is no regular file: name one")


def test_a_file_that_is_too_large_is_not_read(written, monkeypatch):
    monkeypatch.setattr(tvmscript, "MAX_TEXT", 10)
    assert refusal(written("#" * 41)).endswith("is too large: up to 10 characters are read")
