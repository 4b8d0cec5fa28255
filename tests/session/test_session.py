"""A session is an immutable tree of stages: every verb gives a new one, the old stays as it is."""

import dataclasses
import re

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm_ffi import structural_equal

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES, MyModule, MyModuleStatic
from irviz.errors import InputError, TransformError
from irviz.ir.module_functions import relax_functions
from irviz.model.graph.graph import NodeKind
from irviz.model.runs.run_result import Verdict
from irviz.session.run_stages import input_of_case
from irviz.session.session import Session
from irviz.transforms.passes.catalog import catalog

pytestmark = pytest.mark.worker

PARAMS, DIGITS = mlp_params(), digits()


def session(**facts):
    return Session(
        MyModuleStatic, params=PARAMS, inputs=DIGITS.images[:20], labels=DIGITS.labels[:20], **facts
    )


def names(stages):
    return [(stage.id, stage.parent, stage.label) for stage in stages]


# --- stages ------------------------------------------------------------------------------------


def test_it_begins_with_the_module_as_given():
    begun = session()
    assert names(begun.stages) == [("0", None, "initial module")]
    assert begun.current.module is MyModuleStatic
    assert begun.function == "main"


def test_each_verb_gives_a_new_session_that_shows_the_new_stage():
    begun = session()
    done = begun.bind().swap("relu0", "env.relu").apply(relax.transform.FoldConstant())
    assert names(done.stages) == [
        ("0", None, "initial module"),
        ("1", "0", "BindParams w0, b0, w1, b1"),
        ("2", "1", "swap relu0 → env.relu"),
        ("3", "2", "FoldConstant"),
    ]
    assert done.current_id == "3"
    assert names(begun.stages) == [("0", None, "initial module")]
    assert begun.current_id == "0"


def test_a_verb_starts_from_the_current_stage():
    tree = session().bind().checkout("0").swap("relu0", "env.relu").checkout("1")
    assert names(tree.stages)[1:] == [
        ("1", "0", "BindParams w0, b0, w1, b1"),
        ("2", "0", "swap relu0 → env.relu"),
    ]
    assert names(tree.swap("relu0", "env.relu").stages)[-1] == ("3", "1", "swap relu0 → env.relu")


def test_nothing_of_a_session_can_be_set():
    begun = session()
    with pytest.raises(dataclasses.FrozenInstanceError):
        begun.current_id = "1"
    with pytest.raises(AttributeError):
        begun.stages.append(None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        begun.current.label = "other"


def test_what_the_caller_does_to_its_dict_afterwards_changes_nothing():
    params = dict(PARAMS)
    begun = Session(MyModuleStatic, params=params)
    params.clear()
    assert list(begun.unbound_params) == ["w0", "b0", "w1", "b1"]


def test_a_pass_that_fails_is_a_stage_and_the_session_goes_on():
    failed = Session(MyModule).apply(relax.transform.MergeCompositeFunctions())
    assert failed.current.error.startswith("InternalError: ")
    assert failed.graph() == failed.graph("0")
    on = failed.apply(relax.transform.FoldConstant())
    assert names(on.stages)[-1] == ("2", "1", "FoldConstant")
    assert on.current.error == ""


def test_what_is_refused_leaves_the_session_as_it_was():
    begun = session()
    for refused in (
        lambda: begun.swap("relu0", "env.nowhere"),
        lambda: begun.bind({"w7": np.zeros(1)}),
        lambda: begun.apply("LegaliseOps"),
        lambda: begun.apply(relax.transform.LegalizeOps),
        lambda: begun.drop("0"),
        lambda: begun.rename("0", " "),
        begun.undo,
        begun.redo,
        lambda: begun.checkout("7"),
        lambda: begun.select_function("other"),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            refused()
    assert names(begun.stages) == [("0", None, "initial module")]


@pytest.mark.parametrize("stage", ["1", "", 7, "main"])
def test_an_unknown_stage_is_named_with_those_there_are(stage):
    words = f"there is no stage {str(stage)!r}; the stages are '0'"
    for verb in ("checkout", "stage", "graph", "draw", "script"):
        with pytest.raises(ValueError, match=re.escape(words)):
            getattr(session(), verb)(stage)


# --- functions ---------------------------------------------------------------------------------


def test_the_function_is_main_or_the_first_or_is_asked_for(modules):
    assert Session(modules.EveryKind).function == "main"
    assert Session(modules.chain("x", "y", function="only")).function == "only"
    assert Session(modules.TwoFunctions).function == "first"
    assert Session(modules.TwoFunctions, function="second").function == "second"


def test_another_function_can_be_looked_at(modules):
    begun = Session(modules.EveryKind)
    assert begun.functions[:2] == ("main", "twice")
    assert [node.id for node in begun.select_function("twice").graph().nodes] == ["x", "y"]
    assert begun.function == "main"


@pytest.mark.parametrize("other", [None, "main", object, MyModuleStatic["main"], {}])
def test_what_is_no_module_is_refused(other):
    with pytest.raises(ValueError, match=r"is not a tvm\.IRModule: give one, such as a class"):
        Session(other)


# --- binding -----------------------------------------------------------------------------------


def test_some_parameters_can_be_bound_and_then_the_rest():
    partly = session().bind({"w0": PARAMS["w0"]})
    assert list(partly.unbound_params) == ["b0", "w1", "b1"]
    assert list(partly.bind().unbound_params) == []
    constants = [n for n in partly.bind().graph().nodes if n.kind is NodeKind.CONSTANT]
    assert sorted(node.name for node in constants) == ["b0", "b1", "w0", "w1"]


def test_nothing_left_to_bind_says_what_can_be_given():
    words = "no parameter of 'main' is left that the session has an array for: give arrays by name"
    for nothing in (session().bind(), Session(MyModuleStatic)):
        with pytest.raises(TransformError, match=words):
            nothing.bind()


# --- pictures and text -------------------------------------------------------------------------


def test_any_stage_can_be_read_and_drawn():
    done = session().bind().swap("relu0", "env.relu")
    assert done.graph("0").nodes[0].id == "x"
    assert done.draw() != done.draw("0")
    assert done.draw("0") == irviz.draw(MyModuleStatic)
    assert done.graph("0") == irviz.graph(MyModuleStatic)
    assert 'R.call_dps_packed("env.relu"' in done.script().text
    assert "env.relu" not in done.script("1").text


def test_themes_and_directions_are_passed_on():
    begun = session()
    assert len({begun.draw(theme=t).svg for t in ("course", "dark")}) == 2
    assert len({begun.draw(direction=d).svg for d in ("up", "down")}) == 2
    with pytest.raises(ValueError, match="no theme 'neon'"):
        irviz.draw(MyModuleStatic, theme="neon")
    with pytest.raises(ValueError, match="no direction 'left'"):
        irviz.draw(MyModuleStatic, direction="left")
    with pytest.raises(ValueError, match="no function 'other'"):
        irviz.draw(MyModuleStatic, "other")
    with pytest.raises(ValueError, match="is not a model"):
        irviz.graph(3)
    with pytest.raises(ValueError, match="is compiled, and no IRModule can be read from it"):
        irviz.load(tvm.runtime.Executable(None))


@pytest.mark.parametrize("name", MODULES)
def test_every_stage_of_every_pass_can_be_drawn(name):
    begun = Session(MODULES[name])
    for entry in catalog():
        if entry.group != "relax" or any(one.is_required for one in entry.parameters):
            continue
        after = begun.apply(entry.name)
        for function in relax_functions(after.current.module):
            focused = after.select_function(function)
            assert focused.draw().svg.startswith("<svg"), entry.name
            assert focused.script().functions[function] > 0


# --- runs --------------------------------------------------------------------------------------


def test_the_main_job_gives_equal_results():
    done = session().bind().swap("relu0", "env.relu")
    result = done.run()
    assert result.cases == 20
    assert result.correct == done.run(stage="0").correct
    for stage in ("1", "2"):
        found = done.compare(stage, "0")
        assert found.verdict in (Verdict.EQUAL, Verdict.CLOSE)
        assert (found.same_classes, found.cases) == (20, 20)
        assert found.max_abs_diff < 1e-4


def test_other_inputs_have_no_labels():
    result = session().run(DIGITS.images[:3])
    assert (result.cases, result.labels, result.correct) == (3, None, None)
    assert session().compare("0", "0", DIGITS.images[:3]).cases == 3


def test_without_inputs_they_are_made_up():
    begun = Session(MyModuleStatic, params=PARAMS)
    assert begun.run().cases == 1
    assert begun.compare("0", "0").verdict is Verdict.EQUAL


def test_bad_inputs_are_refused_and_the_session_lives():
    begun = session()
    with pytest.raises(ValueError, match=re.escape("'x' has shape (1, 3), the function wants")):
        begun.run(np.zeros((1, 3), "float32"))
    with pytest.raises(InputError, match="the function has no parameter 'y'"):
        begun.run({"x": DIGITS.images, "y": DIGITS.images})
    assert begun.run().cases == 20


@pytest.mark.parametrize(
    ("inputs", "shape"),
    [
        (DIGITS.images[:3], (784,)),
        ({"x": DIGITS.images[:3]}, (784,)),
        (None, None),
        ({"x": DIGITS.images, "y": DIGITS.images}, None),
        (np.zeros(3), None),
    ],
)
def test_the_input_of_a_case_is_known_where_there_is_one(inputs, shape):
    found = input_of_case(inputs, 1)
    assert (None if found is None else found.shape) == shape


def test_a_report_has_a_row_for_each_stage():
    done = session().bind().swap("relu0", "env.relu").apply(relax.transform.LegalizeOps())
    heads, *rows = str(done.report()).splitlines()
    assert re.split("  +", heads)[:3] == ["stage", "made by", "classes right"]
    assert [re.split("  +", row)[:2] for row in rows] == [
        ["0", "initial module"],
        ["1", "BindParams w0, b0, w1, b1"],
        ["2", "swap relu0 → env.relu"],
        ["3", "LegalizeOps"],
    ]
    assert {re.split("  +", row)[2] for row in rows} == {f"{done.run().correct} of 20"}


def test_a_report_sets_every_stage_against_the_first():
    done = session().swap("linear0", "env.linear").bind()
    _, first, *others = str(done.report()).splitlines()
    assert re.split("  +", first)[3:5] == ["0.0e+00", "equal"]
    for row in others:
        assert re.split("  +", row)[3] != "0.0e+00"
        assert re.split("  +", row)[4] == "within tolerance"


def test_a_report_says_why_stages_cannot_be_run():
    begun = Session(MyModuleStatic, params=PARAMS, inputs=np.zeros((1, 3), "float32"))
    rows = str(begun.bind().report()).splitlines()[1:]
    assert len(rows) == 2
    assert all("failed: 'x' has shape (1, 3), the function wants (1, 784)" in row for row in rows)


def test_a_report_says_which_stage_failed():
    failed = Session(MyModule, params=PARAMS).apply(relax.transform.MergeCompositeFunctions())
    report = failed.report()
    _, _, row = str(report).splitlines()
    assert "failed: InternalError: " in row
    assert "<td>failed: InternalError" in report._repr_html_()


def test_a_session_says_what_it_holds():
    done = session().swap("relu0", "env.relu").checkout("0")
    assert (
        repr(done) == "<Session of 'main': 0 initial module, 1 swap relu0 → env.relu; current: 0>"
    )


def test_the_given_module_is_never_changed():
    text = MyModuleStatic.script(show_meta=True)
    done = session().bind().swap("relu0", "env.relu").apply(relax.transform.CallTIRRewrite())
    done.run()
    assert MyModuleStatic.script(show_meta=True) == text
    assert structural_equal(done.stage("0").module, MyModuleStatic)
