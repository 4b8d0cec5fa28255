"""The exercises on compiling: a right answer, wrong ones that come near, and none."""

import pytest
import tvm
from tvm import relax

from irviz.course import check
from irviz.course.check import Mark
from irviz.course.mlp import MyModuleHighLevel, MyModuleStatic
from irviz.transforms.recording import record_passes

pytestmark = pytest.mark.worker


@pytest.fixture(scope="module")
def modules():
    """Return the modules after the passes of a compilation, by name."""
    with record_passes() as recording:
        tvm.compile(MyModuleHighLevel, target="llvm")
    return {stage.label: stage.module for stage in recording.stages()}


def test_the_last_pure_program_is_found_by_what_main_calls(modules):
    assert check.pure_calls(modules["LegalizeOps"]).mark is Mark.RIGHT
    assert check.pure_calls(modules["RemovePurityChecking"]).mark is Mark.RIGHT
    assert "2 relax.matmul" in check.pure_calls(MyModuleHighLevel).given
    assert "7 relax.builtin.alloc_tensor" in check.pure_calls(modules["CallTIRRewrite"]).given
    assert "3 relax.call_tir" in check.pure_calls(MyModuleStatic).given
    assert "no call" in check.pure_calls(tvm.IRModule()).given


def pipeline(*names):
    return tvm.transform.Sequential([getattr(relax.transform, name)() for name in names])


def test_a_pipeline_has_to_lower_and_to_fuse():
    full = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")
    assert check.fused_pipeline(pipeline(*full)).mark is Mark.RIGHT
    assert "7 relax.call_tir" in check.fused_pipeline(pipeline("LegalizeOps", "FuseOps")).given
    assert "calls of functions" in check.fused_pipeline(pipeline(*full[:3])).given


@pytest.mark.parametrize("exercise", [check.pure_calls, check.fused_pipeline])
def test_an_empty_answer_is_never_right(exercise):
    assert exercise(...).mark is exercise(None).mark is Mark.UNANSWERED
    for empty in (lambda mod: mod, lambda _: None, tvm.IRModule(), "LegalizeOps"):
        verdict = exercise(empty)
        assert verdict.mark is Mark.WRONG
        assert all((verdict.expected, verdict.given, verdict.hint))
