"""What is said of a function that a stage lacks."""

from dataclasses import replace

import pytest
from tvm import IRModule

from irviz.course.mlp import MyModuleHighLevel
from irviz.session import stage_diff as module
from irviz.session.session import Session
from irviz.session.stage_diff import is_lost, lost_function

PASSES = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR", "DeadCodeElimination")


@pytest.fixture(scope="module")
def fused():
    session = Session(MyModuleHighLevel, isolate=False)
    for name in PASSES:
        session = session.apply(name)
    return session


def test_a_function_that_was_fused_is_in_the_function_that_computes_it(fused):
    words, instead = lost_function(fused.tree, fused.current, "relu")
    assert words == (
        "This stage has no function 'relu': stage 4 (FuseTIR) removed it. "
        "What it computed is in 'fused_matmul_add_relu'."
    )
    assert instead == ("fused_matmul_add_relu",)


def test_a_function_with_another_name_is_the_one_with_the_same_body(fused):
    before = fused.stages[1]
    functions = {g.name_hint: f for g, f in before.module.functions_items()}
    functions["activation"] = functions.pop("relu").with_attr("global_symbol", "activation")
    renamed = replace(before, id="9", parent=before.id, module=IRModule(functions))
    tree = replace(fused.tree, stages=(*fused.stages[:2], renamed))
    assert lost_function(tree, renamed, "relu").instead == ("activation",)


def test_a_stage_before_the_one_that_makes_a_function_names_that(fused):
    words, instead = lost_function(fused.tree, fused.stages[0], "fused_matmul_add_relu")
    assert words.endswith("stage 3 (FuseOps) makes it.")
    assert instead == ("main",)


def test_only_what_a_stage_of_the_same_module_has_is_lost(fused):
    assert is_lost(fused.tree, fused.current, "matmul")
    assert not is_lost(fused.tree, fused.current, "main")
    assert not is_lost(fused.tree, fused.current, "nothing")


def test_a_lost_function_can_be_chosen_and_an_unknown_one_changes_nothing(fused):
    assert fused.select_available_function("matmul").function == "matmul"
    assert fused.select_available_function("nothing").function == "main"


def test_the_stages_behind_it_need_no_comparison_of_their_own(fused, monkeypatch):
    lost_function(fused.tree, fused.stages[4], "relu")
    monkeypatch.setattr(module, "diff_modules", lambda *_: pytest.fail("it was compared again"))
    words, _ = lost_function(fused.tree, fused.stages[5], "relu")
    assert "What it computed is in 'fused_matmul_add_relu'." in words
