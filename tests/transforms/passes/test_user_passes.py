# ruff: noqa: N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""The user's own passes and rewrites stand in the catalog, are tried apart, and are written."""

import re
import sys
import threading
import types
from typing import Literal

import cloudpickle
import pytest
import tvm
from tvm import relax
from tvm.relax.dpl import PatternContext, is_op, wildcard
from tvm.script import ir as I
from tvm.script import relax as R
from tvm_ffi import structural_equal

from irviz.course.mlp import MODULES
from irviz.errors import TransformError
from irviz.session.session import Session
from irviz.transforms.apply_transform import TrialOutcome, try_transform
from irviz.transforms.passes.catalog import catalog, find, register_pass, register_rewrite, search
from irviz.transforms.passes.parameters import ParameterKind
from irviz.transforms.passes.pass_transform import as_transform, named_pass
from irviz.transforms.passes.pattern_rewrite import Rewrite
from irviz.transforms.stage import Transform

pytestmark = [pytest.mark.worker, pytest.mark.usefixtures("forgets_registrations")]

HIGH = MODULES["MyModuleHighLevel"]
LEVEL = 1
STEPS = [relax.transform.FoldConstant]


@I.ir_module
class Twice:
    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            a = R.add(x, x)
            b = R.add(a, a)
            R.output(b)
        return b

    @R.function
    def other(x: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            a = R.add(x, x)
            R.output(a)
        return a


@I.ir_module
class AddToMultiply:
    @R.function
    def pattern(x: R.Tensor((2, 2), "float32")):
        y = R.add(x, x)
        return y

    @R.function
    def replacement(x: R.Tensor((2, 2), "float32")):
        y = R.multiply(x, R.const(2.0, "float32"))
        return y


@register_pass("mine")
def mine(level: int = 2, order: Literal["up", "down"] = "up") -> tvm.transform.Pass:
    """Legalize, then fuse.

    Parameters
    ----------
    level : int
        How much.
    """
    if order == "down":
        level = min(level, 0)
    return tvm.transform.Sequential([legalize(), relax.transform.FuseOps(level)], name="mine")


def legalize():
    return relax.transform.LegalizeOps(skip_ops=["relax.nn.relu"] if LEVEL else None)


@register_rewrite("double")
def double():
    """Write x + x as 2 * x."""
    x = wildcard()

    def rewriter(_, matched):
        return relax.op.multiply(matched[x], relax.const(2.0, "float32"))

    return is_op("relax.add")(x, x), rewriter


def joined():
    """Write two additions in a row as one multiplication."""
    with PatternContext() as context:
        x = wildcard()
        first = is_op("relax.add")(x, x)
        second = is_op("relax.add")(first, first)

    def rewriter(matched, _):
        return {matched[second]: relax.op.multiply(matched[x], relax.const(4.0, "float32"))}

    return context, rewriter


def uses_what_a_script_lacks():
    return STEPS[0]()


def says_nothing_of_use():
    return 3


def written(session):
    """Return the module that the session's script makes."""
    text = session.to_python()
    assert "irviz" not in text
    assert "register" not in text
    assert "stands here" not in text, text
    script = types.ModuleType("script")
    exec(compile(text, "script", "exec"), vars(script))
    return script.mod


# --- in the catalog ----------------------------------------------------------------------------


def test_a_function_that_returns_a_pass_becomes_an_entry():
    entry = find("mine")
    assert (entry.group, entry.full_name, entry.label) == ("yours", "yours.mine", "mine")
    assert entry.summary == "Legalize, then fuse."
    assert [(one.name, one.kind, one.summary) for one in entry.parameters] == [
        ("level", ParameterKind.INT, "How much."),
        ("order", ParameterKind.CHOICE, ""),
    ]
    assert entry in search("legalize fuse")
    assert entry in catalog()
    assert mine.__name__ == "mine"


def test_registering_a_name_again_replaces_the_pass():
    @register_pass("mine")
    def other():
        """Do something else."""

    assert find("mine").summary == "Do something else."
    assert [entry.name for entry in catalog()].count("mine") == 1


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_pass_needs_a_name(name):
    with pytest.raises(ValueError, match="a pass needs a name"):
        register_pass(name)
    with pytest.raises(ValueError, match="a pass needs a name"):
        register_rewrite(name, double)


def test_the_name_of_one_of_tvms_passes_stays_that_passs():
    register_pass("FoldConstant")(legalize)
    assert find("FoldConstant").namespace == "relax"
    assert find("yours.FoldConstant").make is legalize


def test_it_is_applied_by_its_name_and_arguments():
    session = Session(HIGH).apply("mine", level=0)
    assert (session.current.error, session.current.label) == ("", "mine(level=0)")
    expected = tvm.transform.Sequential([legalize(), relax.transform.FuseOps(0)])(HIGH)
    tvm.ir.assert_structural_equal(session.current.module, expected)
    with pytest.raises(TransformError, match="order of mine is 'left', and takes one of 'up'"):
        session.apply("mine", order="left")


def test_it_can_be_tried():
    call = named_pass("mine")
    outcome = try_transform(HIGH, call, keep=True)
    assert outcome.error == ""
    assert structural_equal(outcome.module, call(HIGH))


@pytest.fixture
def only_here(monkeypatch):
    """Return a module that the worker cannot import, as one of the user's folder."""
    module = types.ModuleType("only_here")
    source = """
from tvm import relax

def of_a_folder(level: int = 0):
    return relax.transform.LegalizeOps()

def transform(mod):
    return mod
"""
    exec(source, vars(module))
    monkeypatch.setitem(sys.modules, "only_here", module)
    return module


def test_a_function_of_the_users_folder_arrives_in_the_worker(only_here):
    register_pass("of a folder")(only_here.of_a_folder)
    before = set(cloudpickle.list_registry_pickle_by_value())
    assert try_transform(HIGH, named_pass("of a folder"), keep=True).module
    assert cloudpickle.list_registry_pickle_by_value() == before


def test_what_does_not_arrive_is_not_tried(only_here):
    assert try_transform(HIGH, only_here.transform, keep=True) == TrialOutcome()


def test_one_that_cannot_be_sent_is_applied_all_the_same():
    lock = threading.Lock()

    @register_pass("holding")
    def holding():
        """Hold what cannot be pickled."""
        with lock:
            return relax.transform.LegalizeOps()

    assert try_transform(HIGH, named_pass("holding"), keep=True).module is None
    stage = Session(HIGH).apply("holding").current
    assert stage.error == ""
    assert structural_equal(stage.module, relax.transform.LegalizeOps()(HIGH))


def test_one_that_returns_no_pass_says_so():
    register_pass("useless")(says_nothing_of_use)
    with pytest.raises(TransformError, match=r"useless returned 3, where a tvm\.transform\.Pass"):
        Session(HIGH).apply("useless")


def test_one_that_takes_what_no_form_can_give_is_for_code():
    @register_pass("with_callback")
    def with_callback(check):
        """Ask."""
        return relax.transform.CombineParallelMatmul(check)

    entry = find("with_callback")
    assert "session.apply(with_callback(check))" in entry.code_only
    assert Session(HIGH).apply("with_callback", check=lambda *_: True).current.error == ""


# --- rewrites ----------------------------------------------------------------------------------


def test_a_rewrite_is_applied_everywhere_or_in_one_function():
    everywhere = Session(Twice).apply("double").current.module
    assert everywhere.script().count("R.multiply") == 3
    here = Session(Twice).apply("double", function="other").current
    assert here.label == "double(function='other')"
    assert here.module["main"].script().count("R.add") == 2
    assert here.module["other"].script().count("R.add") == 0
    with pytest.raises(ValueError, match="no function 'nowhere'"):
        Session(Twice).apply("double", function="nowhere")


def test_a_rewrite_can_be_tried():
    call = named_pass("double")
    made = try_transform(Twice, call, keep=True).module
    assert structural_equal(made, call(Twice))
    assert not structural_equal(made, Twice)


def test_a_pattern_of_bindings_is_rewritten_too():
    rewrite = Rewrite("joined", joined, function="main")
    assert isinstance(rewrite, Transform)
    assert as_transform(rewrite) is rewrite
    session = Session(Twice).apply(rewrite)
    assert (session.current.error, session.current.label) == ("", "joined in main")
    assert "R.const(4" in session.current.module["main"].script()
    assert try_transform(Twice, rewrite).error == ""


def test_a_pattern_can_be_given_as_an_object_or_as_a_module():
    x = wildcard()
    by_object = register_rewrite(
        "by object",
        is_op("relax.add")(x, x),
        lambda _, matched: relax.op.multiply(matched[x], relax.const(2.0, "float32")),
    )
    by_module = register_rewrite("by module", AddToMultiply)
    wanted = named_pass("double")(Twice)
    assert structural_equal(by_object(Twice), wanted)
    assert by_module(Twice).script().count("R.multiply") == 3
    assert by_object.tried_as is None
    for name, made in (("by object", wanted), ("by module", by_module(Twice))):
        assert structural_equal(Session(Twice).apply(name).current.module, made)


def test_a_rewriter_that_fails_makes_a_stage_with_its_error():
    def failing():
        def rewriter(*_):
            raise KeyError("what it likes")

        return is_op("relax.add")(wildcard(), wildcard()), rewriter

    session = Session(Twice).apply(Rewrite("failing", failing))
    assert "what it likes" in session.current.error
    assert session.current.module is Twice


@pytest.mark.parametrize(
    ("pattern", "rewriter", "words"),
    [
        (3, None, "3 is not a pattern: give one of tvm.relax.dpl"),
        (wildcard(), None, "the pattern of 'wrong' needs a rewriter, and None was given"),
        (double, print, "the pattern of 'wrong' brings its own rewriter"),
    ],
)
def test_what_is_no_rewrite_is_refused(pattern, rewriter, words):
    with pytest.raises(TransformError, match=re.escape(words)):
        Rewrite("wrong", pattern, rewriter)


def test_a_function_that_gives_no_pattern_is_refused_when_it_is_applied():
    with pytest.raises(TransformError, match=r"wrong returned 3, where \(pattern, rewriter\)"):
        Rewrite("wrong", says_nothing_of_use)(Twice)


# --- writing -----------------------------------------------------------------------------------


def test_a_pass_is_written_with_its_source_and_what_that_uses():
    session = Session(HIGH).apply("mine", level=0, order="down")
    assert structural_equal(written(session), session.current.module)
    text = session.to_python()
    assert "LEVEL = 1\n" in text
    assert text.index("def legalize()") < text.index("def mine(")
    assert "mod = mine(level=0, order='down')(mod)" in text


@pytest.mark.parametrize("arguments", [{}, {"function": "main"}])
def test_a_rewrite_is_written_with_the_function_that_builds_it(arguments):
    session = Session(Twice).apply("double", **arguments)
    assert structural_equal(written(session), session.current.module)
    assert "pattern, rewriter = double()\n" in session.to_python()


def test_rewrites_of_bindings_and_of_modules_are_written():
    for rewrite in (Rewrite("joined", joined), Rewrite("of a module", AddToMultiply)):
        session = Session(Twice).apply(rewrite)
        assert structural_equal(written(session), session.current.module)


def test_one_that_uses_what_a_script_lacks_leaves_the_module_in_its_place():
    register_pass("lacking")(uses_what_a_script_lacks)
    text = Session(Twice).apply("lacking").apply("double").to_python()
    assert "uses STEPS, which a script does not have" in text
    x = wildcard()
    rewriter = lambda _, matched: relax.op.multiply(matched[x], matched[x])  # noqa: E731
    by_object = Rewrite("by object", is_op("relax.add")(x, x), rewriter)
    text = Session(Twice).apply(by_object).apply("double").to_python()
    assert "the pattern of by object was given as an object" in text
    assert "stands here" in text
    within = Session(Twice).apply(_inner(3.0)).to_python()
    assert "uses factor of the function that it was defined in" in within


def _inner(factor):
    def build():
        x = wildcard()

        def rewriter(_, matched):
            return relax.op.multiply(matched[x], relax.const(factor, "float32"))

        return is_op("relax.add")(x, x), rewriter

    return Rewrite("inner", build)


def test_two_functions_of_one_name_are_not_mixed_up():
    """A cell that was run again defines another function under the name."""

    def second():
        x = wildcard()

        def rewriter(_, matched):
            return relax.op.subtract(matched[x], matched[x])

        return is_op("relax.multiply")(x, wildcard()), rewriter

    second.__name__ = "double"
    session = Session(Twice).apply("double").apply(Rewrite("another", second))
    text = session.to_python()
    assert "the script uses the name double" in text
    script = types.ModuleType("script")
    exec(compile(text, "script", "exec"), vars(script))
    assert structural_equal(script.mod, session.current.module)
