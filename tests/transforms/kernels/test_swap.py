# ruff: noqa: N803, N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""A call can call something else of the same signature, and go back again."""

import re
import subprocess
import sys

import numpy as np
import pytest
import tvm
from tvm import relax, tirx
from tvm.relax import dpl
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T
from tvm_ffi import structural_equal

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import (
    MODULES,
    MyModule,
    MyModuleMixture,
    MyModuleStatic,
    MyModuleTwoBlocks,
    MyModuleWithExternCall,
)
from irviz.errors import TransformError
from irviz.ir.function_graph import extract
from irviz.model.graph.graph import NodeId, NodeKind, Resolution
from irviz.runtime.run import CallInputs, run
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.export_python import PythonScript, UnwritableError
from irviz.transforms.kernels import library
from irviz.transforms.kernels.swap import Swap
from irviz.transforms.passes.pass_transform import named_pass
from irviz.transforms.stage import Stage

IMAGES, PARAMS = digits().images[:5], mlp_params()


@I.ir_module
class Nested:
    """One name twice, in a branch, and in a function inside of another."""

    @T.prim_func(s_tir=True)
    def relu(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), c: R.Tensor((), "bool")):
        cls = Nested

        @R.function
        def inner(a: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
            y = R.call_tir(cls.relu, (a,), R.Tensor((4, 8), "float32"))
            return y

        y = R.call_tir(cls.relu, (x,), R.Tensor((4, 8), "float32"))
        z = inner(y)
        if c:
            w = R.call_tir(cls.relu, (z,), R.Tensor((4, 8), "float32"))
            out = R.add(w, w)
        else:
            out = R.add(z, z)
        return out


def callees(mod):
    return [node.callee for node in extract(mod).nodes if node.callee]


def outputs(mod):
    return run(mod, inputs=CallInputs(inputs=IMAGES, params=PARAMS)).outputs[0]


# --- there and back ----------------------------------------------------------------------------


@pytest.mark.worker
def test_a_prim_func_becomes_a_library_call():
    swapped = Swap("relu0", "env.relu")(MyModuleStatic)
    node = extract(swapped)["lv1"]
    assert (node.kind, node.callee) == (NodeKind.CALL_DPS_PACKED, "env.relu")
    assert node.resolution is Resolution.LIBRARY
    assert callees(swapped) == ["linear0", "env.relu", "linear1"]
    np.testing.assert_allclose(outputs(swapped), outputs(MyModuleStatic), rtol=1e-4, atol=1e-4)


@pytest.mark.worker
def test_all_calls_are_swapped_or_only_one():
    everywhere = Swap("linear0", "env.linear")(MyModule)
    assert callees(everywhere) == ["env.linear", "relu0", "env.linear"]
    once = Swap("linear0", "env.linear", NodeId("out"))(MyModule)
    assert callees(once) == ["linear0", "relu0", "env.linear"]
    for mod in (everywhere, once):
        np.testing.assert_allclose(outputs(mod), outputs(MyModule), rtol=1e-4, atol=1e-4)


@pytest.mark.worker
def test_back_again_is_the_module_as_it_was():
    there = Swap("relu0", "env.relu")(MyModuleStatic)
    back = Swap("env.relu", "relu0")(there)
    assert structural_equal(back, MyModuleStatic)
    assert back.script() == MyModuleStatic.script()
    assert outputs(back).tobytes() == outputs(MyModuleStatic).tobytes()


@pytest.mark.worker
def test_a_prim_func_called_by_name_can_be_called_by_reference():
    swapped = Swap("linear0", "linear0")(MyModule)
    assert [extract(swapped)[n].kind for n in ("lv0", "out")] == [NodeKind.CALL_TIR] * 2
    assert outputs(swapped).tobytes() == outputs(MyModule).tobytes()


@pytest.mark.worker
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


@pytest.mark.worker
@pytest.mark.parametrize("name", [name for name in MODULES if name != "MyModuleHighLevel"])
def test_a_swapped_module_is_well_formed_and_passes_go_on(name):
    mod = MODULES[name]
    swapped = Swap(extract(mod)["lv0"].callee, "env.linear", NodeId("lv0"))(mod)
    assert relax.analysis.check_well_formed(swapped)
    assert not swapped["main"].body.ty.is_missing()
    for each in ("FoldConstant", "LegalizeOps", "ToNonDataflow"):
        assert apply_transform(Stage("0", swapped), named_pass(each), "1").error == ""


@pytest.mark.worker
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
            "'env.nowhere' cannot replace 'relu0' at 'lv1': no function of this name is "
            "registered; of the library 'env.relu', 'numpy.relu', ",
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
    with pytest.raises(TransformError, match="arguments that are not tensors of known shape"):
        Swap("times", "env.relu")(modules.Half)
    with pytest.raises(TransformError, match="it has parameters that are not buffers"):
        Swap("double", "times")(modules.Half)


def test_a_function_without_calls_says_so(modules):
    with pytest.raises(TransformError, match="it calls nothing: name one of these"):
        Swap("a", "env.relu")(modules.SameTwice)
    with pytest.raises(ValueError, match="no function 'main'; its Relax functions are 'first'"):
        Swap("a", "env.relu")(modules.TwoFunctions)


# --- which calls -------------------------------------------------------------------------------


def called(mod):
    return {node.id: node.callee for node in extract(mod).nodes if node.callee}


def test_a_pattern_of_names_means_all_calls_of_such_names():
    swapped = Swap("linear*", "env.linear")(MyModuleStatic)
    assert callees(swapped) == ["env.linear", "relu0", "env.linear"]
    once = Swap("env.*", "numpy.relu", NodeId("lv1"))(MyModuleMixture)
    assert callees(once) == ["linear0", "numpy.relu", "env.linear"]
    with pytest.raises(TransformError, match=re.escape("has no call of 'conv*'; by call_tir and")):
        Swap("conv*", "env.linear")(MyModuleStatic)
    with pytest.raises(TransformError, match=re.escape("has no call of '*.relu'")):
        Swap("*.relu", "env.relu")(MyModuleMixture)  # which is what it calls already


def test_a_name_with_a_star_in_it_is_first_of_all_a_name():
    x = relax.Var("x", R.Tensor((2,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        y = builder.emit(relax.call_dps_packed("env.*", x, x.ty))
        builder.emit_func_output(builder.emit(relax.call_dps_packed("env.tanh", y, x.ty)))
    assert callees(Swap("env.*", "env.relu")(builder.get())) == ["env.relu", "env.tanh"]


def test_a_pattern_of_relax_means_the_calls_that_match_it():
    relu = dpl.is_call_tir("relu0")
    after_relu = dpl.is_call_tir(
        "linear1", dpl.TuplePattern([relu, dpl.wildcard(), dpl.wildcard()])
    )
    swap = Swap("linear*", "env.linear", matching=after_relu)
    assert callees(swap(MyModuleStatic)) == ["linear0", "relu0", "env.linear"]
    assert swap.label == "swap linear* → env.linear where the pattern matches"
    nothing = Swap("linear0", "env.linear", matching=after_relu)
    with pytest.raises(TransformError, match="has no call of 'linear0' that the pattern matches"):
        nothing(MyModuleStatic)


@pytest.mark.worker
def test_calls_in_branches_and_inner_functions_are_swapped_too():
    before = called(Nested)
    everywhere = Swap("relu", "env.relu")(Nested)
    assert [called(everywhere)[node] for node in ("y", "y#2", "w")] == ["env.relu"] * 3
    for node in ("y", "y#2", "w"):
        once = Swap("relu", "env.relu", NodeId(node))(Nested)
        assert called(once) == before | {node: "env.relu"}
        assert relax.analysis.check_well_formed(once)
    assert structural_equal(Swap("env.relu", "relu")(everywhere), Nested)
    x = np.linspace(-1, 1, 32, dtype="float32").reshape(4, 8)
    inputs = {"x": x, "c": np.array(True)}
    lifted = [relax.transform.LambdaLift()(mod) for mod in (Nested, everywhere)]
    before, after = (run(mod, inputs=CallInputs(inputs=inputs)).outputs[0] for mod in lifted)
    assert before.tobytes() == after.tobytes()


def test_what_is_not_swapped_stays_the_same_object():
    swapped = Swap("relu", "env.relu", NodeId("y#2"))(Nested)
    before, after = Nested["main"].body, swapped["main"].body
    inner, _, called_inner, *_ = (binding.value for binding in before.blocks[0].bindings)
    same = [binding.value for binding in after.blocks[0].bindings]
    assert same[2].same_as(called_inner)
    assert same[0].same_as(inner)


# --- the reverse: from a library back into loops ------------------------------------------------


@pytest.mark.worker
def test_a_library_call_becomes_a_prim_func_one_for_all_calls_alike():
    swapped = Swap("env.linear", "topi.linear")(MyModuleWithExternCall)
    assert callees(swapped) == ["linear", "env.relu", "linear"]
    assert [node.kind for node in extract(swapped).nodes if node.callee == "linear"] == [
        NodeKind.CALL_TIR
    ] * 2
    assert isinstance(swapped["linear"], tirx.PrimFunc)
    assert relax.analysis.check_well_formed(swapped)
    both = Swap("env.relu", "topi.relu")(swapped)
    assert callees(both) == ["linear", "relu", "linear"]
    np.testing.assert_allclose(outputs(both), outputs(MyModule), rtol=1e-4, atol=1e-4)


@pytest.mark.worker
def test_calls_of_other_sizes_get_prim_funcs_of_their_own():
    static = Swap("linear*", "env.linear")(MyModuleStatic)
    swapped = Swap("env.linear", "topi.linear")(static)
    assert callees(swapped) == ["linear", "relu0", "linear_1"]
    shapes = [
        [list(map(int, p.ty.shape)) for p in swapped[n].params] for n in ("linear", "linear_1")
    ]
    assert shapes == [
        [[1, 784], [128, 784], [128], [1, 128]],
        [[1, 128], [10, 128], [10], [1, 10]],
    ]
    np.testing.assert_allclose(outputs(swapped), outputs(MyModuleStatic), rtol=1e-4, atol=1e-4)


def test_a_call_swapped_later_uses_the_prim_func_that_is_there():
    first = Swap("env.linear", "topi.linear", NodeId("lv0"))(MyModuleWithExternCall)
    assert callees(first) == ["linear", "env.relu", "env.linear"]
    second = Swap("env.linear", "topi.linear")(first)
    assert callees(second) == ["linear", "env.relu", "linear"]
    assert len(second.functions) == 2


def test_a_prim_func_can_be_made_anew_by_te():
    swapped = Swap("linear0", "topi.linear")(MyModuleTwoBlocks)
    assert [name for name in callees(swapped) if "linear" in name] == ["linear", "linear"]
    assert {gvar.name_hint for gvar in swapped.functions} >= {"linear0", "linear"}


def test_a_definition_that_does_not_fit_says_so():
    with pytest.raises(TransformError, match=re.escape("'topi.relu' cannot replace 'env.")):
        Swap("env.linear", "topi.relu")(MyModuleWithExternCall)


# --- as a script -------------------------------------------------------------------------------


def written(tmp_path, mod, *swaps):
    """Return the module that a script makes, run by itself, and the one that the swaps make."""
    script = PythonScript()
    script.begin(mod)
    now = mod
    for swap in swaps:
        after = swap(now)
        swap.write(script, now, after)
        now = after
    text, made = script.text(), tmp_path / "made.json"
    assert "irviz" not in text
    path = tmp_path / "script.py"
    path.write_text(f"{text}\nopen({str(made)!r}, 'w').write(tvm.ir.save_json(mod))\n", "utf-8")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tvm.ir.load_json(made.read_text("utf-8")), now


@pytest.mark.worker
def test_one_script_says_all_swaps_with_tvm_alone(tmp_path):
    made, wanted = written(
        tmp_path,
        MyModule,
        Swap("linear0", "env.linear", NodeId("out")),
        Swap("relu0", "env.relu"),
        Swap("env.linear", "linear0"),
        Swap("linear*", "numpy.linear"),
        Swap("numpy.linear", "topi.linear"),
        Swap("env.relu", "topi.relu", NodeId("lv1")),
    )
    assert callees(wanted) == ["linear", "relu", "linear"]
    assert structural_equal(made, wanted)


@pytest.mark.worker
def test_a_script_says_swaps_in_branches_and_inner_functions(tmp_path):
    made, wanted = written(
        tmp_path, Nested, Swap("relu", "env.relu", NodeId("y#2")), Swap("relu", "topi.tanh")
    )
    assert [called(wanted)[node] for node in ("y", "y#2", "w")] == ["tanh", "env.relu", "tanh"]
    assert structural_equal(made, wanted)


def test_what_names_cannot_say_is_not_written(modules):
    odd = modules.chain("x", "y", "z")  # no calls at all: nothing to say
    with pytest.raises(TransformError, match="it calls nothing"):
        Swap("a", "env.relu")(odd)
    x = relax.Var("x", R.Tensor((2,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        y = builder.emit(relax.call_dps_packed("env.tanh", x, x.ty), "y")
        other = builder.emit(relax.call_dps_packed("env.tanh", y, x.ty), "return")
        builder.emit_func_output(other)
    mod = builder.get()
    swap = Swap("env.tanh", "env.relu", NodeId("return#2"))
    assert callees(swap(mod)) == ["env.tanh", "env.relu"]
    with pytest.raises(UnwritableError, match="the names of variables do not say which calls"):
        swap.write(PythonScript(), mod, swap(mod))
