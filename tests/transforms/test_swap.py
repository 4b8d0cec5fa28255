"""A call can call something else of the same signature, and go back again."""

import re

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm_ffi import structural_equal

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES, MyModule, MyModuleStatic
from irviz.ir.extract import extract
from irviz.model.graph import NodeId, NodeKind, Resolution
from irviz.runtime.run import run
from irviz.transforms import library
from irviz.transforms.catalog import named_pass
from irviz.transforms.stage import Stage, TransformError, apply
from irviz.transforms.swap import Swap, candidates

IMAGES, PARAMS = digits().images[:5], mlp_params()


def callees(mod):
    return [node.callee for node in extract(mod).nodes if node.callee]


def outputs(mod):
    return run(mod, inputs=IMAGES, params=PARAMS).outputs[0]


# --- there and back ----------------------------------------------------------------------------


def test_a_prim_func_becomes_a_library_call():
    swapped = Swap("relu0", "env.relu")(MyModuleStatic)
    node = extract(swapped)["lv1"]
    assert (node.kind, node.callee) == (NodeKind.CALL_DPS_PACKED, "env.relu")
    assert node.resolution is Resolution.LIBRARY
    assert callees(swapped) == ["linear0", "env.relu", "linear1"]
    np.testing.assert_allclose(outputs(swapped), outputs(MyModuleStatic), rtol=1e-4, atol=1e-4)


def test_all_calls_are_swapped_or_only_one():
    everywhere = Swap("linear0", "env.linear")(MyModule)
    assert callees(everywhere) == ["env.linear", "relu0", "env.linear"]
    once = Swap("linear0", "env.linear", NodeId("out"))(MyModule)
    assert callees(once) == ["linear0", "relu0", "env.linear"]
    for mod in (everywhere, once):
        np.testing.assert_allclose(outputs(mod), outputs(MyModule), rtol=1e-4, atol=1e-4)


def test_back_again_is_the_module_as_it_was():
    there = Swap("relu0", "env.relu")(MyModuleStatic)
    back = Swap("env.relu", "relu0")(there)
    assert structural_equal(back, MyModuleStatic)
    assert back.script() == MyModuleStatic.script()
    assert outputs(back).tobytes() == outputs(MyModuleStatic).tobytes()


def test_a_prim_func_called_by_name_can_be_called_by_reference():
    swapped = Swap("linear0", "linear0")(MyModule)
    assert [extract(swapped)[n].kind for n in ("lv0", "out")] == [NodeKind.CALL_TIR] * 2
    assert outputs(swapped).tobytes() == outputs(MyModule).tobytes()


def test_two_outputs_go_to_a_library_and_back(modules):
    @library.register("test.split", "(n)->(n),(n)")
    def split(x, a, b):
        np.add(x, 1, out=a)
        b[:] = 2

    tvm.register_global_func(
        "test.split_raw", lambda *tensors: split(*map(np.from_dlpack, tensors)), override=True
    )
    there = Swap("split", "test.split_raw")(modules.TwoOutputs)
    assert extract(there)["both"].type_label == "Tuple[Tensor[(4,)], Tensor[(4,), int32]]"
    back = Swap("test.split_raw", "split")(there)
    assert structural_equal(back, modules.TwoOutputs)
    results = [run(mod).outputs for mod in (modules.TwoOutputs, there, back)]
    for a, b in results:
        assert (a.tobytes(), b.tobytes()) == (results[0][0].tobytes(), results[0][1].tobytes())


def test_the_given_module_stays_as_it_was():
    text = MyModuleStatic.script()
    Swap("relu0", "env.relu")(MyModuleStatic)
    assert MyModuleStatic.script() == text


def test_variables_stay_the_same_objects_so_that_stages_can_be_matched():
    before = MyModuleStatic["main"]
    after = Swap("relu0", "env.relu")(MyModuleStatic)["main"]
    pairs = zip(before.body.blocks[0].bindings, after.body.blocks[0].bindings, strict=True)
    assert all(old.var.same_as(new.var) for old, new in pairs)
    assert all(a.same_as(b) for a, b in zip(before.params, after.params, strict=True))


@pytest.mark.parametrize("name", [name for name in MODULES if name != "MyModuleHighLevel"])
def test_a_swapped_module_is_well_formed_and_passes_go_on(name):
    mod = MODULES[name]
    swapped = Swap(extract(mod)["lv0"].callee, "env.linear", NodeId("lv0"))(mod)
    assert relax.analysis.check_well_formed(swapped)
    assert not swapped["main"].body.ty.is_missing()
    for each in ("FoldConstant", "LegalizeOps", "ToNonDataflow"):
        assert apply(Stage("0", swapped), named_pass(each), "1").error == ""


def test_a_function_registered_past_irviz_is_taken_at_its_word():
    def relu(x, out):
        np.maximum(np.from_dlpack(x), 0, out=np.from_dlpack(out))

    tvm.register_global_func("test.raw_relu", relu, override=True)
    swapped = Swap("relu0", "test.raw_relu")(MyModuleStatic)
    np.testing.assert_allclose(outputs(swapped), outputs(MyModuleStatic), rtol=1e-4, atol=1e-4)


def test_the_stage_it_makes_says_what_was_swapped():
    assert Swap("relu0", "env.relu").label == "swap relu0 → env.relu"
    assert Swap("relu0", "env.relu", NodeId("lv1")).label == "swap relu0 → env.relu at lv1"


# --- what does not fit -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("swap", "words"),
    [
        (
            Swap("relu0", "env.nowhere"),
            "'env.nowhere' cannot take the place of 'relu0' at 'lv1': no function of this name is "
            "registered; the library has 'env.linear', 'env.relu'",
        ),
        (Swap("relu0", "env.nowhere"), "or register yours with @irviz.library.register"),
        (
            Swap("relu7", "env.relu"),
            "'main' has no call of 'relu7'; by call_tir and call_dps_packed it calls "
            "'linear0', 'relu0', 'linear1': name one of these",
        ),
        (
            Swap("relu0", "env.relu", NodeId("lv0")),
            "'lv0' calls 'linear0', not 'relu0'",
        ),
        (
            Swap("relu0", "env.relu", NodeId("nowhere")),
            "'main' has no call of 'relu0' at 'nowhere'; by call_tir",
        ),
        (
            Swap("relu0", "env.linear"),
            "its signature is (b,m),(n,m),(n)->(b,n) of float32, and the call has "
            "(1,128)->(1,128) of float32",
        ),
        (
            Swap("linear0", "linear1"),
            "its signature is (1,128),(10,128),(10)->(1,10) of float32, and the call has "
            "(1,784),(128,784),(128)->(1,128) of float32",
        ),
    ],
)
def test_a_misfit_says_what_is_there_and_what_is_wanted(swap, words):
    with pytest.raises(TransformError, match=re.escape(words)):
        swap(MyModuleStatic)


def test_another_dtype_does_not_fit(modules):
    with pytest.raises(
        TransformError,
        match=re.escape("(...)->(...) of float32, and the call has (1,4)->(1,4) of float16"),
    ):
        Swap("double", "env.relu")(modules.Half)


def test_a_fixed_size_does_not_fit_a_symbolic_one_but_the_other_way_round_it_does(modules):
    swapped = Swap("fixed", "any_size")(modules.StaticAndSymbolic)
    assert callees(swapped) == ["any_size", "any_size"]
    with pytest.raises(
        TransformError,
        match=re.escape("its signature is (4)->(4) of float32, and the call has (n)->(n)"),
    ):
        Swap("any_size", "fixed")(modules.StaticAndSymbolic)


def test_a_number_among_the_arguments_does_not_fit(modules):
    with pytest.raises(TransformError, match="arguments that are no tensors of known shape"):
        Swap("times", "env.relu")(modules.Half)
    with pytest.raises(TransformError, match="it has parameters that are no buffers"):
        Swap("double", "times")(modules.Half)


def test_a_function_without_calls_says_so(modules):
    with pytest.raises(TransformError, match="it calls nothing: name one of these"):
        Swap("a", "env.relu")(modules.SameTwice)
    with pytest.raises(ValueError, match="no function 'main'; its Relax functions are 'first'"):
        Swap("a", "env.relu")(modules.TwoFunctions)


# --- what could take a call's place ------------------------------------------------------------


def test_candidates_are_prim_funcs_and_kernels_with_why_they_do_not_fit():
    found = candidates(MyModuleStatic, "main", NodeId("lv1"))
    assert found["env.relu"] == ""
    assert found["linear0"].startswith("its signature is (1,784),(128,784),(128)->(1,128)")
    assert found["env.linear"].startswith("its signature is (b,m),(n,m),(n)->(b,n)")
    assert "relu0" not in found


@pytest.mark.parametrize("node", ["x", "nowhere", ""])
def test_what_is_no_such_call_has_no_candidates(node):
    assert candidates(MyModuleStatic, "main", NodeId(node)) == {}


def test_an_operator_has_no_candidates():
    assert candidates(MODULES["MyModuleHighLevel"], "main", NodeId("lv0")) == {}


@pytest.mark.parametrize("name", MODULES)
def test_every_candidate_that_fits_can_be_swapped_in(name):
    mod = MODULES[name]
    for node in extract(mod).nodes:
        for replacement, reason in candidates(mod, "main", node.id).items():
            swap = Swap(node.callee, replacement, node.id)
            if reason:
                with pytest.raises(TransformError, match=re.escape(reason)):
                    swap(mod)
            else:
                assert extract(swap(mod))[node.id].callee == replacement
