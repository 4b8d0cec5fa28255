# ruff: noqa: N803, N806, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""A PrimFunc of the module is replaced by one that the user has written, and told apart from it."""

import re
import subprocess
import sys

import numpy as np
import pytest
import tvm
from tvm import relax, tirx
from tvm.script import tirx as T
from tvm_ffi import structural_equal

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule, MyModuleHighLevel, MyModuleStatic
from irviz.errors import TransformError
from irviz.ir.function_graph import extract
from irviz.runtime.run import CallInputs, run
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.export_python import PythonScript
from irviz.transforms.kernels.candidates import Equivalence, equivalence
from irviz.transforms.kernels.swap import Swap, UpdateFunction, update_obstacle
from irviz.transforms.passes.pass_transform import named_pass
from irviz.transforms.stage import Stage, Transform

IMAGES, PARAMS = digits().images[:5], mlp_params()


@T.prim_func(s_tir=True)
def by_rows(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
    m, n = T.int64(), T.int64()
    X = T.match_buffer(x, (1, m), "float32")
    W = T.match_buffer(w, (n, m), "float32")
    B = T.match_buffer(b, (n,), "float32")
    Z = T.match_buffer(z, (1, n), "float32")
    for j in T.serial(n):
        with T.sblock("bias"):
            vj = T.axis.spatial(n, j)
            Z[0, vj] = B[vj]
        for k in T.serial(m):
            with T.sblock("sum"):
                vj, vk = T.axis.remap("SR", [j, k])
                Z[0, vj] = Z[0, vj] + X[0, vk] * W[vj, vk]


@T.prim_func(s_tir=True)
def leaky(X: T.Buffer((1, 128), "float32"), Y: T.Buffer((1, 128), "float32")):
    for i, j in T.grid(1, 128):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.max(X[vi, vj], X[vi, vj] * T.float32(0.1))


@T.prim_func(s_tir=True)
def scaled(X: T.Buffer((1, 128), "float32"), k: T.float32, Y: T.Buffer((1, 128), "float32")):
    for i, j in T.grid(1, 128):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * k


def outputs(mod):
    return run(mod, inputs=CallInputs(inputs=IMAGES, params=PARAMS)).outputs[0]


def functions(mod):
    return {gvar.name_hint: function for gvar, function in mod.functions.items()}


# --- what becomes of the module ----------------------------------------------------------------


@pytest.mark.worker
def test_all_its_calls_lead_to_the_new_one():
    updated = UpdateFunction("linear0", by_rows)(MyModule)
    assert structural_equal(updated["linear0"], by_rows.with_attr("global_symbol", "linear0"))
    assert relax.analysis.check_well_formed(updated)
    np.testing.assert_allclose(outputs(updated), outputs(MyModule), rtol=1e-4, atol=1e-4)
    other = UpdateFunction("relu0", leaky)(MyModuleStatic)
    assert not np.allclose(outputs(other), outputs(MyModuleStatic), rtol=1e-3, atol=1e-3)
    assert [node.callee for node in extract(other).nodes if node.callee] == [
        "linear0",
        "relu0",
        "linear1",
    ]


def test_the_rest_stays_as_it_was_and_in_its_place():
    updated = UpdateFunction("relu0", leaky)(MyModuleStatic)
    assert list(functions(updated)) == list(functions(MyModuleStatic))
    for name in ("linear0", "linear1", "main"):
        assert structural_equal(updated[name], MyModuleStatic[name])
    assert not structural_equal(MyModuleStatic["relu0"], updated["relu0"])
    before, after = MyModuleStatic["main"], updated["main"]
    assert all(a.same_as(b) for a, b in zip(before.params, after.params, strict=True))


def test_back_again_is_the_module_as_it_was():
    there = UpdateFunction("relu0", leaky)(MyModuleStatic)
    back = UpdateFunction("relu0", MyModuleStatic["relu0"])(there)
    assert structural_equal(back, MyModuleStatic)
    assert back.script() == MyModuleStatic.script()


@pytest.mark.worker
def test_a_function_of_other_sizes_has_its_own_type_so_that_passes_go_on():
    static = Swap("linear0", "linear0")(MyModule)  # by reference
    updated = UpdateFunction("linear0", by_rows)(static)
    for each in ("FoldConstant", "LegalizeOps", "FuseTIR", "ToNonDataflow"):
        assert apply_transform(Stage("0", updated), named_pass(each), "1").error == ""
    symbolic = UpdateFunction("linear0", by_rows)(MyModuleStatic)
    (gvar,) = (g for g in symbolic.functions if g.name_hint == "linear0")
    assert "m" in str(gvar.ty)
    assert relax.analysis.check_well_formed(symbolic)
    np.testing.assert_allclose(outputs(symbolic), outputs(MyModuleStatic), rtol=1e-4, atol=1e-4)


def test_a_private_function_stays_private():
    mod = relax.transform.LegalizeOps()(MyModuleHighLevel)
    private = mod["relu"]
    assert "global_symbol" not in private.attrs.keys()  # noqa: SIM118 - no iterator
    new = leaky.with_attr("global_symbol", "anything")
    updated = UpdateFunction("relu", new)(mod)
    assert "global_symbol" not in updated["relu"].attrs.keys()  # noqa: SIM118
    assert relax.analysis.check_well_formed(updated)


def test_it_is_a_transform_with_a_label_that_needs_no_trial():
    update = UpdateFunction("linear0", by_rows)
    assert isinstance(update, Transform)
    assert (update.label, update.tried_as, update.constant_names) == ("update linear0", None, {})
    stage = apply_transform(Stage("0", MyModule), update, "1")
    assert (stage.label, stage.error) == ("update linear0", "")


# --- what does not fit -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mod", "name", "prim_func", "words"),
    [
        (
            MyModuleStatic,
            "linear7",
            leaky,
            "the module has no PrimFunc 'linear7'; its PrimFuncs are 'linear0', 'linear1', 'relu0'",
        ),
        (MyModuleStatic, "main", leaky, "the module has no PrimFunc 'main'; its PrimFuncs are"),
        (MyModuleHighLevel, "a", leaky, "its PrimFuncs are none"),
        (MyModuleStatic, "relu0", len, "is not a PrimFunc: give one, such as a function under @T."),
        (
            MyModuleStatic,
            "linear0",
            leaky,
            "the new 'linear0' does not fit its call at 'lv0' in 'main': its signature is "
            "(1,128)->(1,128), and the call has (1,784),(128,784),(128)->(1,128)",
        ),
        (
            MyModule,
            "relu0",
            leaky,
            "the new 'relu0' does not fit its call at 'lv1' in 'main': its signature is "
            "(1,128)->(1,128), and the call has (1,n)->(1,n)",
        ),
        (MyModuleStatic, "relu0", scaled, "the new 'relu0' has parameters that are not buffers"),
    ],
)
def test_what_does_not_fit_all_calls_is_refused(mod, name, prim_func, words):
    with pytest.raises(TransformError, match=re.escape(words)):
        UpdateFunction(name, prim_func)(mod)
    assert words in update_obstacle(mod, name, prim_func)


def test_what_nothing_calls_can_be_replaced_by_anything():
    unused = Swap("relu0", "env.relu")(MyModuleStatic)
    assert update_obstacle(unused, "relu0", by_rows) == ""
    assert relax.analysis.check_well_formed(UpdateFunction("relu0", by_rows)(unused))


# --- whether it computes the same --------------------------------------------------------------


def test_a_call_with_a_number_among_its_arguments_is_not_tried(modules):
    found = equivalence(modules.Half, "times", modules.Half["double"])
    assert found.reason == ("not tried: the call has arguments that are not tensors of known shape")


@pytest.mark.worker
def test_it_is_told_whether_the_new_one_computes_the_same():
    assert equivalence(MyModule, "linear0", by_rows).verdict is Equivalence.CLOSE
    assert equivalence(MyModuleStatic, "relu0", leaky).verdict is Equivalence.DIFFERENT
    assert "max |Δ|" in equivalence(MyModuleStatic, "relu0", leaky).reason
    assert equivalence(MyModule, "linear0", MyModule["linear0"]).verdict is Equivalence.EQUAL
    unused = Swap("relu0", "env.relu")(MyModuleStatic)
    assert equivalence(unused, "relu0", leaky).reason == (
        "not tried: nothing calls 'relu0' by call_tir or call_dps_packed"
    )


# --- as a script -------------------------------------------------------------------------------


@pytest.mark.worker
def test_a_script_says_it_with_tvm_alone(tmp_path):
    script = PythonScript()
    script.begin(MyModuleStatic)
    now = MyModuleStatic
    noted = leaky.with_attr("global_symbol", "a b").with_attr("note", tirx.IntImm("int32", 3))
    for update in (
        UpdateFunction("linear0", by_rows),
        UpdateFunction("relu0", leaky),
        UpdateFunction("relu0", noted),
    ):
        after = update(now)
        update.write(script, now, after)
        now = after
    text, made = script.text(), tmp_path / "made.json"
    assert "irviz" not in text
    path = tmp_path / "script.py"
    path.write_text(f"{text}\nopen({str(made)!r}, 'w').write(tvm.ir.save_json(mod))\n", "utf-8")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert structural_equal(tvm.ir.load_json(made.read_text("utf-8")), now)


def test_what_tvmscript_cannot_say_is_embedded():
    script = PythonScript()
    imported = leaky.with_attr("weird", tvm.runtime.tensor(np.zeros(3, "float32")))
    update = UpdateFunction("relu0", imported)
    update.write(script, MyModuleStatic, update(MyModuleStatic))
    assert "new_relu0 = tvm.ir.load_json(" in script.text()
    assert "import zlib" in script.text()
