"""A transform makes a new stage and leaves the old; a failing one is a stage with its error."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

from irviz.course.mlp import MyModule, MyModuleStatic
from irviz.errors import TransformError
from irviz.transforms.apply_transform import apply_transform, try_transform
from irviz.transforms.bind_params import bind_params
from irviz.transforms.kernels.swap import Swap
from irviz.transforms.passes.catalog import register_pass
from irviz.transforms.passes.pass_transform import TVMPass, as_transform, named_pass
from irviz.transforms.stage import Stage, Transform

GIVEN = Stage("0", MyModuleStatic)


@pytest.mark.worker
def test_a_stage_says_how_it_came_to_be():
    stage = apply_transform(GIVEN, as_transform(relax.transform.LegalizeOps()), "1")
    assert (stage.id, stage.parent, stage.label, stage.error) == ("1", "0", "LegalizeOps", "")
    assert isinstance(stage.transform, TVMPass)
    assert (GIVEN.label, GIVEN.parent, GIVEN.transform) == ("initial module", None, None)


@pytest.mark.worker
def test_a_pass_that_fails_is_a_stage_with_its_error_and_the_module_as_before():
    failing = relax.transform.MergeCompositeFunctions()
    stage = apply_transform(Stage("3", MyModule), as_transform(failing), "4")
    assert stage.module is MyModule
    assert stage.error.startswith("InternalError: ")
    assert "ExternFunc" in stage.error
    assert (stage.id, stage.parent, stage.label) == ("4", "3", "MergeCompositeFunctions")


def test_a_pass_that_wants_a_target_gets_this_machines_and_says_so():
    x = relax.Var("x", relax.TensorType([2], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.cumsum(x, 0)))
    given = Stage("0", builder.get())
    pass_ = relax.backend.DispatchSortScan()
    stage = apply_transform(given, as_transform(pass_), "1", isolate=False)
    assert "call_tir" in stage.module.script()
    assert stage.stderr.endswith("wants a target and none was given: it ran for llvm")
    with tvm.target.Target("llvm"):
        assert "wants a" not in apply_transform(given, as_transform(pass_), "1").stderr


def test_a_pass_that_fails_with_a_word_about_targets_is_run_once():
    ran = []

    @tvm.transform.module_pass(opt_level=0, name="Misses")
    def misses(mod, context):  # noqa: ARG001 - as TVM calls it
        ran.append(mod)
        raise ValueError("the target of this jump is missing")

    stage = apply_transform(GIVEN, as_transform(misses), "1", isolate=False)
    assert "the target of this jump" in stage.error
    assert len(ran) == 1


def test_a_pass_written_in_python_may_raise_what_it_likes():
    @tvm.transform.module_pass(opt_level=0, name="Raises")
    def raises(mod, context):  # noqa: ARG001 - as TVM calls it
        raise KeyError("what it likes")

    stage = apply_transform(GIVEN, as_transform(raises), "1")
    assert stage.module is MyModuleStatic
    assert "what it likes" in stage.error
    assert stage.label == "Raises"


@pytest.mark.worker
@pytest.mark.usefixtures("forgets_registrations")
def test_what_fails_in_the_worker_alone_is_applied_here():
    name = "irviz.test.only_here"
    tvm.register_global_func(name, lambda mod: mod.with_attr("changed", 1))

    def of_this_process():
        work = tvm.get_global_func(name)
        return tvm.transform.module_pass(lambda mod, _: work(mod), opt_level=0, name="here")

    register_pass("of this process")(of_this_process)
    try:
        assert (
            "Cannot find global function"
            in try_transform(MyModuleStatic, named_pass("of this process")).error
        )
        stage = apply_transform(GIVEN, named_pass("of this process"), "1")
        assert (stage.error, stage.module.attrs["changed"]) == ("", 1)
    finally:
        tvm_ffi.registry.remove_global_func(name)


def test_a_transform_that_refuses_makes_no_stage():
    with pytest.raises(TransformError):
        apply_transform(GIVEN, Swap("nowhere", "env.relu"), "1")
    with pytest.raises(ValueError, match="no function 'other'"):
        apply_transform(GIVEN, bind_params({"w0": np.zeros(1)}, "other"), "1")


def test_names_of_constants_are_handed_down():
    bound = apply_transform(GIVEN, bind_params({"b1": np.zeros(10, "float32")}), "1")
    swapped = apply_transform(bound, Swap("relu0", "env.relu"), "2")
    again = apply_transform(swapped, bind_params({"b0": np.zeros(128, "float32")}), "3")
    assert sorted(again.constant_names.values()) == ["b0", "b1"]
    assert GIVEN.constant_names == {}


def test_transforms_and_passes_are_both_taken():
    swap = Swap("relu0", "env.relu")
    assert as_transform(swap) is swap
    assert isinstance(swap, Transform)
    assert as_transform(relax.transform.FoldConstant()).label == "FoldConstant"
    pipeline = tvm.transform.Sequential([relax.transform.FoldConstant()], name="mine")
    assert as_transform(pipeline).label == "mine"


def test_a_function_is_a_pass_and_what_is_no_module_is_an_error():
    made = apply_transform(GIVEN, as_transform(lambda mod: mod), "1", isolate=False)
    assert (made.label, made.error) == ("<lambda>", "")
    wrong = apply_transform(GIVEN, as_transform(lambda _: None), "1", isolate=False)
    assert wrong.error.startswith("TypeError: <lambda> returned NoneType, not an IRModule")


@pytest.mark.parametrize("other", [None, relax.transform.LegalizeOps, 3])
def test_what_is_no_transform_is_refused_with_what_is(other):
    with pytest.raises(
        TransformError, match=r"is not a transform: give a tvm\.transform\.Pass such"
    ):
        as_transform(other)
