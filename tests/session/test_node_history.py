"""A node's history leads from the first module to what the last pass made of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tvm

import irviz
from irviz.course import mlp_high_level
from irviz.course.mlp import MyModuleHighLevel
from irviz.errors import NotFoundError
from irviz.model.diff.diff_result import ChangeKind
from irviz.session.session import Session


@pytest.fixture(scope="module")
def compiled() -> Session:
    """Every stage of the compilation of the lecture's network."""
    with irviz.record() as recording:
        tvm.compile(MyModuleHighLevel, "llvm")
    return recording.session().with_inputs("random")


@pytest.fixture(scope="module")
def fused() -> Session:
    session = Session(MyModuleHighLevel, isolate=False)
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
        session = session.apply(name)
    return session


@pytest.mark.build
@pytest.mark.parametrize("has_casts", [False, True], ids=["the lecture's", "with casts"])
def test_no_operator_is_gone_from_a_compiled_module(has_casts, compiled, diff_by_values) -> None:
    session = compiled
    if has_casts:
        mod = diff_by_values.lowered(diff_by_values.random_operators(5, 12), "ToMixedPrecision")
        with irviz.record() as recording:
            tvm.compile(mod, "llvm")
        session = recording.session()
    first = irviz.graph(session.stage("0").module)
    operators = [node.id for node in first.nodes if node.callee]
    gone = [one for one in operators if not session.history(one, stage="0").steps[-1].nodes]
    assert (len(operators) > 5, gone) == (True, [])


def test_a_node_is_followed_to_the_call_that_it_was_fused_into(fused: Session) -> None:
    found = fused.history("lv1", stage="0")
    assert [(step.stage.label, step.nodes) for step in found.changes] == [
        ("initial module", ("lv1",)),
        ("LegalizeOps", ("lv1",)),
        ("FuseOps", ("lv",)),
        ("FuseTIR", ("lv",)),
    ]
    assert found.changes[2].changes == (ChangeKind.FUSED,)
    assert "operator lowered to a PrimFunc: relax.add → add" in repr(found)


def test_a_call_is_led_back_to_all_that_was_fused_into_it(fused: Session) -> None:
    first = fused.history("lv").steps[0]
    assert (first.stage.id, first.nodes) == ("0", ("lv0", "lv1", "lv2"))
    text = Path(mlp_high_level.__file__).read_text("utf-8").splitlines()
    (written,) = (at for at, one in enumerate(text, start=1) if "lv1 = " in one)
    assert first.words == f"mlp_high_level.py, lines {written - 1}, {written}, {written + 1}"


def test_a_history_is_drawn_with_a_frame_for_each_stage_that_changed_the_node(
    fused: Session,
) -> None:
    graph = fused.history("lv").graph
    assert [one.name.split()[0] for one in graph.regions] == ["0", "1", "3", "4"]
    edges = {(edge.source, edge.target) for edge in graph.edges}
    assert edges == {
        *((f"0/{one}", f"1/{one}") for one in ("lv0", "lv1", "lv2")),
        *((f"1/{one}", "3/lv") for one in ("lv0", "lv1", "lv2")),
        ("3/lv", "4/lv"),
    }


@pytest.mark.build
def test_every_tensor_of_the_last_stage_is_led_back_to_the_operator_that_it_was_made_for(
    compiled: Session,
) -> None:
    graph = compiled.graph("17")
    allocated = [node for node in graph.nodes if node.callee == "relax.vm.alloc_tensor"]
    operators = {"w0_t", "lv0", "lv1", "lv2", "w1_t", "lv3", "out"}
    found = {node.id: compiled.history(node.id, stage="17").steps[0] for node in allocated}
    assert {step.stage.id for step in found.values()} == {"0"}
    assert {one for step in found.values() for one in step.nodes} == operators
    for node in allocated:
        (origin,) = found[node.id].nodes
        assert node.type_label == compiled.graph("0")[origin].type_label


@pytest.mark.build
@pytest.mark.worker
def test_a_value_has_the_numbers_of_the_value_that_it_is_led_back_to(compiled: Session) -> None:
    first, lowered = compiled.trace("0"), compiled.trace("12")
    compared = 0
    for node in ("w0_t", "lv0", "lv1", "lv2", "w1_t", "lv3", "out"):
        (origin,) = compiled.history(node, stage="12").steps[0].nodes
        pairs = zip(first[origin].value.arrays, lowered[node].value.arrays, strict=True)
        for before, after in pairs:
            np.testing.assert_allclose(np.asarray(before), np.asarray(after), rtol=1e-5)
            compared += 1
    assert compared == 7


@pytest.mark.build
def test_what_is_gone_or_new_is_said(compiled: Session) -> None:
    gone = compiled.history("lv1", stage="0")
    assert ChangeKind.REMOVED in gone.changes[-2].changes  # its variable, by KillAfterLastUse
    new = compiled.history("storage1", stage="12").steps[0]
    assert (new.stage.label, new.changes) == ("StaticPlanBlockMemory", (ChangeKind.ADDED,))


def test_a_node_that_is_not_there_is_refused(fused: Session) -> None:
    with pytest.raises(NotFoundError, match="stage 4 has no node 'lv1' in 'main'"):
        fused.history("lv1")


# --- blame -------------------------------------------------------------------------------------


def test_a_recording_has_the_blame_of_its_last_relax_function() -> None:
    mod = MyModuleHighLevel
    with irviz.record() as recording:
        for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
            mod = getattr(tvm.relax.transform, name)()(mod)
        del mod["main"]
        tvm.tirx.transform.StmtSimplify()(
            mod
        )  # as the passes of a compilation that come after Relax
    stages = {line.text.strip().partition(" =")[0]: line.stage for line in recording.blame().lines}
    assert stages["lv"].label == "FuseTIRInner"


@pytest.mark.build
def test_each_line_has_the_pass_that_changed_it_last(compiled: Session) -> None:
    lines = {line.text.strip(): line.stage for line in compiled.blame("12").lines}
    by_start = {
        text.partition(":")[0]: stage.label for text, stage in lines.items() if stage is not None
    }
    assert by_start["lv1"] == "CallTIRRewrite"
    assert by_start["alloc2"] == "StaticPlanBlockMemory"
    assert by_start["storage_1"] == "LowerAllocTensor"
    assert by_start["for ax0, ax1 in T.grid(T.int64(1), T.int64(10))"] == "LegalizeOps"
    assert lines["return out"] is None


def test_what_no_pass_changed_is_of_the_first_stage(fused: Session) -> None:
    stages = fused.checkout("1").blame().nodes
    assert {node: stage.id for node, stage in stages.items() if stage.id == "0"} == dict.fromkeys(
        ("x", "w0", "b0", "w1", "b1"), "0"
    )
    assert {stages[node].id for node in ("lv0", "lv1", "out")} == {"1"}


def test_blame_is_printed_with_a_column_of_passes_each_where_it_begins(fused: Session) -> None:
    column = [line.partition(" │")[0].strip() for line in repr(fused.blame("3")).splitlines()]
    # PrimFuncs, which got an attribute, functions of fused calls, and main
    assert set(column) == {"", "1 LegalizeOps", "2 AnnotateTIROpPattern", "3 FuseOps"}
    assert column.count("2 AnnotateTIROpPattern") == 7  # PrimFuncs
