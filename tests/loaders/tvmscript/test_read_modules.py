"""TVMScript becomes modules if it is admitted and TVM reads it; otherwise a sentence says why."""

import pytest
import tvm
from tvm_ffi import structural_equal

from irviz.course.mlp import MODULES, MyModule
from irviz.errors import LoadError
from irviz.loaders.file_limits import FileError, read_in_worker
from irviz.loaders.load import load_content, read_content
from irviz.loaders.tvmscript.read_modules import modules_of, parse_admitted
from irviz.loaders.tvmscript.syntax_tree import RefusedError

pytestmark = pytest.mark.worker

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


def only(text, **options):
    """Return the only module of a text."""
    (module,) = modules_of(text, **options).values()
    return module


def refusal(text, error=LoadError, **options):
    """Return the one sentence that a text is refused with."""
    with pytest.raises(error) as caught:
        modules_of(text, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert "Traceback" not in message
    assert len(message) < 1000
    return message


# --- what is read ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_what_tvm_prints_comes_back(name):
    text = MODULES[name].script(show_meta=True)
    assert structural_equal(only(text), tvm.script.from_source(text))


def test_a_byte_order_mark_and_other_line_ends_change_nothing():
    text = "\ufeff" + TEXT.replace("\n", "\r\n")
    assert structural_equal(only(text), MyModule)


def test_several_definitions_of_a_text_are_modules_each():
    mods = modules_of(BY_HAND)
    assert list(mods) == ["double", "twice", "Module"]
    assert [[gvar.name_hint for gvar in mod.get_global_vars()] for mod in mods.values()] == [
        ["double"],
        ["twice"],
        ["main"],
    ]


def test_a_text_without_modules_or_with_one_name_twice_is_refused():
    assert "defines no module: write `@I.ir_module`" in refusal("# nothing\n")
    assert "defines 'Module' twice" in refusal(BY_HAND.replace("twice", "Module"))


# --- what is not -------------------------------------------------------------------------------


def test_hostile_text_is_refused_before_tvm_sees_it(tmp_path):
    mark = tmp_path / "mark"
    text = BY_HAND.replace("(4,)", f"(__import__('os').mkdir({str(mark)!r}) or 4,)")
    message = refusal(text, RefusedError, name="mod.py")
    assert message.startswith("mod.py, line 22, column 27: a call of __import__ is refused")
    assert not mark.exists()


def test_what_tvm_does_not_read_has_its_place():
    message = refusal(BY_HAND.replace("return y", "return z"))
    assert message == "<text>, line 24, column 9: TVM does not read this: Undefined variable: z"


def test_tvm_finds_neither_builtins_nor_its_own_modules_when_it_parses():
    """The parser is isolated also from text that admission would have missed."""
    for name in ("open", "exit", "__import__", "breakpoint"):
        text = BY_HAND.replace("(4,)", f"({name}(),)")
        with pytest.raises(Exception, match=r"not callable|Undefined variable"):
            parse_admitted(text[text.index("@I.ir_module") :])
    for path in ("tvm.base", "relax.parser", "tirx.tile"):
        text = BY_HAND.replace("(4,)", f"({path}.os,)")
        with pytest.raises(Exception, match=r"attribute|Undefined variable"):
            parse_admitted(text[text.index("@I.ir_module") :])


def test_reading_that_does_not_end_is_stopped():
    body = "\n".join(f"    x{i + 1} = (x{i}, x{i})" for i in range(60))
    text = f"@T.prim_func(s_tir=True)\ndef f(n: T.int32):\n    x0 = (n, n)\n{body}\n"
    with pytest.raises(FileError, match=r"takes longer than 1 s|bytes of memory"):
        read_in_worker(read_content, text.encode(), "f.py", seconds=1)
    assert load_content(TEXT.encode(), "mod.py"), "the next text is read"


UNDEFINED = """
@T.prim_func(check_well_formed=False)
def undefined():
    A = T.decl_buffer((1,), data=T.handle("float32"))
    T.evaluate(A[0])
"""


def test_what_is_not_well_formed_is_read_where_its_decorator_says_so():
    expected = tvm.script.from_source(UNDEFINED, check_well_formed=False)
    assert structural_equal(only(UNDEFINED)["undefined"], expected, map_free_vars=True)
    assert "not well-formed" in refusal(UNDEFINED.replace("False", "True"))
    assert "not well-formed" in refusal(UNDEFINED.replace("(check_well_formed=False)", ""))
