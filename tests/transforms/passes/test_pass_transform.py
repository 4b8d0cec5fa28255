# ruff: noqa: N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""A pass is called with plain arguments, which are looked up in the module it is applied to."""

import pickle
import re
import types

import cloudpickle
import numpy as np
import pytest
import tvm
from tvm import relax, s_tir, tirx
from tvm.script import ir as I
from tvm.script import relax as R
from tvm_ffi import structural_equal

from irviz.course.digits import mlp_params
from irviz.course.mlp import MODULES
from irviz.errors import TransformError
from irviz.session.session import Session
from irviz.transforms.apply_transform import apply_transform, try_transform
from irviz.transforms.passes.pass_transform import PassCall, named_pass
from irviz.transforms.stage import Stage
from irviz.worker.supervisor import TRIES

pytestmark = pytest.mark.worker

PARAMS = mlp_params()
STATIC, SYMBOLIC, HIGH = (MODULES[f"MyModule{name}"] for name in ("Static", "", "HighLevel"))


@I.ir_module
class Loss:
    @R.function
    def main(x: R.Tensor((3, 3), "float32"), w: R.Tensor((3, 3), "float32")):
        with R.dataflow():
            y = R.multiply(x, w)
            z = R.sum(y)
            R.output(z)
        return z


@I.ir_module
class OnDevices:
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("llvm", 1)]})

    @R.function
    def main(x: R.Tensor((3, 3), "float32", "llvm:0")):
        with R.dataflow():
            y = R.multiply(x, x)
            R.output(y)
        return y


WITH_INPUTS = tvm.IRModule({HIGH.get_global_var("main"): HIGH["main"].with_attr("num_input", 1)})
TOO_MANY = tvm.IRModule({HIGH.get_global_var("main"): HIGH["main"].with_attr("num_input", 9)})
LEGAL = relax.transform.LegalizeOps()(HIGH)


def legalize_add(builder, call):
    """Swap the operands of an addition."""
    return builder.call_te(tvm.topi.add, call.args[1], call.args[0])


def narrow(var):
    """Let every parameter be of any size."""
    return relax.TensorType(dtype="float32", ndim=2) if var.name == "x" else None


# --- looking up --------------------------------------------------------------------------------


def test_variables_are_given_by_name_and_found_in_the_function():
    session = Session(Loss).apply("Gradient", func_name="main", require_grads=["w"])
    expected = relax.transform.Gradient("main", Loss["main"].params[1])(Loss)
    tvm.ir.assert_structural_equal(session.current.module, expected)


def test_variables_functions_and_targets_can_be_given_as_objects_too():
    x, w = Loss["main"].params
    assert named_pass("Gradient", func_name="main", require_grads=[x, w]).arguments == {
        "func_name": "main",
        "require_grads": ("x", "w"),
    }
    gvar = Loss.get_global_var("main")
    assert named_pass("Gradient", func_name=gvar, require_grads=w).arguments == {
        "func_name": "main",
        "require_grads": ("w",),
    }
    given = named_pass("BindTarget", target=tvm.target.Target({"kind": "llvm", "num-cores": 4}))
    assert isinstance(given.arguments["target"], str)
    assert '"num-cores": 4' in given(STATIC).script()
    assert structural_equal(
        given(STATIC), named_pass("BindTarget", target={"kind": "llvm", "num-cores": 4})(STATIC)
    )


def test_a_call_is_of_no_module_and_can_be_applied_to_another():
    call = named_pass("BindSymbolicVars", binding_map={"n": 128})
    for name in ("MyModule", "MyModuleMixture"):
        assert 'w0: R.Tensor((128, m), dtype="float32")' in call(MODULES[name]).script()


def test_sizes_are_those_of_one_function_or_of_all():
    here = named_pass("BindSymbolicVars", binding_map={"n": 128}, func_name="main")
    assert structural_equal(
        here(SYMBOLIC), named_pass("BindSymbolicVars", binding_map={"n": 128})(SYMBOLIC)
    )


def test_params_become_constants_that_keep_their_names():
    stage = apply_transform(
        Stage("0", STATIC), named_pass("BindParams", func_name="main", params=PARAMS), "1"
    )
    assert stage.error == ""
    assert [param.name for param in stage.module["main"].params] == ["x"]
    assert sorted(stage.constant_names.values()) == sorted(PARAMS)
    assert stage.label == "BindParams(func_name='main', params={w0, b0, w1, b1})"


def test_the_values_of_params_are_those_of_now():
    array = np.zeros(10, "float32")
    call = named_pass("BindParams", func_name="main", params={"b1": array})
    array[:] = 1
    (tensor,) = call.constant_names
    assert tensor.numpy().sum() == 0


def test_patterns_are_given_by_the_beginning_of_their_names():
    fused = named_pass("FuseOpsByPattern", patterns="cublas")(HIGH)
    assert '"Composite": "cublas.matmul_transposed_bias' in fused.script()
    own = relax.transform.FusionPattern(
        "mine", relax.dpl.is_op("relax.add")(*[relax.dpl.wildcard()] * 2)
    )
    assert named_pass("FuseOpsByPattern", patterns=[own])(HIGH)


def test_a_device_is_given_by_its_target_and_number():
    assert named_pass("UpdateVDevice", new_vdevice="cuda:1", index=0).arguments["new_vdevice"] == (
        "cuda",
        1,
        "global",
    )
    made = relax.VDevice("llvm", 2, "local")
    _, number, scope = named_pass("UpdateVDevice", new_vdevice=made, index=0).arguments[
        "new_vdevice"
    ]
    assert (number, scope) == (2, "local")
    updated = named_pass("UpdateVDevice", new_vdevice="llvm:3", index=1)(OnDevices)
    assert [int(one.vdevice_id) for one in updated.global_infos["vdevice"]] == [0, 3]


def test_functions_can_be_given_where_for_all_or_for_some_can_be_said():
    for given in (True, ["main"]):
        lifted = named_pass("LiftTransformParams", shared_transform=given)(WITH_INPUTS)
        assert "def transform_params" in lifted.script()
    with pytest.raises(TransformError, match="no function 'other'"):
        named_pass("LiftTransformParams", shared_transform=["other"])(HIGH)


def test_a_callback_can_be_given_from_code():
    given = named_pass("LegalizeOps", customize_legalize_map={"relax.add": legalize_add})
    assert given.label == "LegalizeOps(customize_legalize_map={'relax.add': legalize_add})"
    assert not structural_equal(given(HIGH), named_pass("LegalizeOps")(HIGH))
    updated = Session(HIGH).apply("UpdateParamType", ty_func=narrow)
    assert updated.current.error == ""
    assert 'x: R.Tensor(dtype="float32", ndim=2)' in updated.current.module.script()


# --- what cannot be right ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("FuseOps", {"fuse_opt_level": "2"}, "fuse_opt_level of FuseOps is '2', and takes a whole"),
        ("FuseOps", {"fuse_opt_level": True}, "is True, and takes a whole number of 64 bits: "),
        ("FuseOps", {"fuse_opt_level": 2**63}, "is 9223372036854775808, and takes a whole number"),
        ("FuseOps", {"level": 2}, "no parameter 'level'; its parameters are 'fuse_opt_level'"),
        ("FoldConstant", {"level": 2}, "FoldConstant has no parameter 'level'; it takes none"),
        ("EliminateCommonSubexpr", {"call_only": 1}, "is 1, and takes true or false: give True"),
        ("TopologicalSort", {"order": "up"}, "one of 'depth-first', 'breadth-first': give one of"),
        ("IPCAllReduceRewrite", {"allreduce_strategy": True}, "is True, and takes one of 1, 2"),
        ("LegalizeOps", {"skip_ops": "relax.add"}, "takes a list of text or of whole numbers"),
        ("DeadCodeElimination", {"entry_functions": "main"}, "a list of names of functions: give"),
        ("BindTarget", {"target": 3}, "takes a target, such as 'llvm': give 'llvm', or a dict"),
        ("BindSymbolicVars", {"binding_map": {"n": -1}}, "takes sizes by the name of a symbolic"),
        ("BindSymbolicVars", {"binding_map": [1]}, "give {'n': 128}"),
        ("ConvertLayout", {"desired_layouts": {"relax.nn.conv2d": "NHWC"}}, "takes layouts by the"),
        ("BindParams", {"func_name": "main", "params": [1]}, "takes arrays by name: give {'w0'"),
        ("BindParams", {"func_name": "main", "params": {"x": "text"}}, "cannot become a tensor"),
        ("Gradient", {}, "needs func_name, the name of a Relax function: give it, as in session"),
        ("UpdateParamType", {}, "session.apply(relax.transform.UpdateParamType(ty_func))"),
        ("UpdateVDevice", {"new_vdevice": (1, 2)}, "is (1, 2), and takes a virtual device, such"),
        ("FuseOps", {"fuse_opt_level": None}, "is None, and takes a whole number"),
    ],
)
def test_an_argument_that_cannot_be_right_is_refused_before_anything(name, arguments, words):
    with pytest.raises(TransformError, match=re.escape(words)):
        named_pass(name, **arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("Gradient", {"func_name": "other"}, "no function 'other'; its Relax functions are 'main'"),
        ("Gradient", {"func_name": "relu0"}, "'relu0' is a PrimFunc, not a Relax function"),
        (
            "Gradient",
            {"func_name": "main", "require_grads": ["z"]},
            "'main' has no parameter 'z'; its parameters are 'x', 'w0', 'b0', 'w1', 'b1': give",
        ),
        (
            "DeadCodeElimination",
            {"entry_functions": ["other"]},
            "no function 'other'; its functions are 'linear0', 'linear1', 'main', 'relu0'",
        ),
        (
            "BindSymbolicVars",
            {"binding_map": {"n": 1}},
            "the module has no symbolic variable 'n'; those it has are none",
        ),
        (
            "BindTarget",
            {"target": "nonsense"},
            "'nonsense' is not a target: Target kind \"nonsense\" is not defined",
        ),
        ("FuseOpsByPattern", {"patterns": "mine"}, "no pattern is registered whose name begins"),
        (
            "BindParams",
            {"func_name": "main", "params": {"w0": np.zeros(3, "float32")}},
            "w0",
        ),
    ],
)
def test_what_the_module_does_not_have_makes_no_stage(name, arguments, words):
    session = Session(STATIC)
    with pytest.raises(ValueError, match=re.escape(words)):
        session.apply(name, **arguments)
    with pytest.raises(ValueError, match=re.escape(words)):
        apply_transform(session.current, named_pass(name, **arguments), "1", isolate=False)


def test_a_step_that_does_not_fit_another_module_says_so_when_it_is_replayed():
    session = Session(Loss).apply("Gradient", func_name="main", require_grads=["w"])
    replayed = session.replay(onto=STATIC)
    assert "'main' has no parameter 'w'" in replayed.current.error


# --- travelling --------------------------------------------------------------------------------

CALLS = {
    "plain": (HIGH, named_pass("FuseOps", fuse_opt_level=2)),
    "vars": (Loss, named_pass("Gradient", func_name="main", require_grads=["w"])),
    "params": (STATIC, named_pass("BindParams", func_name="main", params=PARAMS)),
    "dims": (SYMBOLIC, named_pass("BindSymbolicVars", binding_map={"n": 128})),
    "around": (LEGAL, named_pass("DefaultGPUSchedule", target="metal")),
    "annotated": (STATIC, named_pass("LowerIntrin")),
    "patterns": (HIGH, named_pass("FuseOpsByPattern", patterns="cublas")),
    "device": (OnDevices, named_pass("UpdateVDevice", new_vdevice="llvm:3", index=1)),
    "layouts": (HIGH, named_pass("ConvertLayout", desired_layouts={"relax.nn.conv2d": ["NHWC"]})),
    "names": (HIGH, named_pass("ToMixedPrecision", out_dtype="float16", fp16_input_names=["x"])),
    "choice": (HIGH, named_pass("TopologicalSort", order="breadth-first")),
    "pipeline": (HIGH, named_pass("zero", enable_warning=True)),
    "target": (HIGH, named_pass("default_for_target", target="llvm")),
    "code": (HIGH, named_pass("LegalizeOps", customize_legalize_map={"relax.add": legalize_add})),
    "callback": (HIGH, named_pass("UpdateParamType", ty_func=narrow)),
}


@pytest.mark.parametrize("which", CALLS)
def test_a_call_does_the_same_in_another_process(which):
    mod, transform = CALLS[which]
    sent = pickle.loads(cloudpickle.dumps(transform))
    assert isinstance(sent, PassCall)
    assert sent.label == transform.label
    outcome = try_transform(mod, transform, keep=True)
    assert (outcome.error, outcome.is_deadly) == ("", False)
    assert outcome.module is not None
    assert structural_equal(
        TRIES.call(_applied, cloudpickle.dumps((mod, transform))), transform(mod)
    )


def _applied(sent) -> tvm.IRModule:
    mod, transform = cloudpickle.loads(sent)
    return transform(mod)


def test_tuning_that_takes_as_long_as_it_likes_is_not_tried_first(tmp_path):
    arguments = {"work_dir": str(tmp_path), "max_trials_global": 8}
    assert named_pass("MetaScheduleTuneTIR", **arguments).tried_as is None
    arguments["max_trials_global"] = 0
    assert named_pass("MetaScheduleTuneTIR", **arguments).tried_as is not None


def test_tuning_without_trials_is_done_quickly(tmp_path):
    arguments = {"work_dir": str(tmp_path), "total_trials": 0, "target": "llvm"}
    tuned = Session(HIGH).apply("static_shape_tuning", **arguments)
    assert tuned.current.error == ""
    assert "depends on what was measured" in tuned.to_python()
    assert [path.name for path in tmp_path.iterdir()]


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("which", CALLS)
def test_a_call_is_written_with_tvm_alone(which):
    mod, transform = CALLS[which]
    made = Session(mod).apply(transform)
    assert made.current.error == ""
    text = made.to_python()
    assert "irviz" not in text
    assert f"stage 1: {transform.label}" in text
    namespace = types.ModuleType("script")
    exec(compile(text, "script", "exec"), vars(namespace))
    tvm.ir.assert_structural_equal(namespace.mod, made.current.module)
    assert "stands here" not in text


def test_variables_are_written_with_the_line_that_finds_them():
    text = Session(Loss).apply("Gradient", func_name="main", require_grads=["w"]).to_python()
    assert text.endswith(
        "params = {param.name: param for param in mod['main'].params}\n"
        "mod = relax.transform.Gradient(func_name='main', require_grads=[params['w']])(mod)\n"
    )


def test_a_target_is_written_around_the_call_or_before_it():
    session = Session(LEGAL)
    around = session.apply("DefaultGPUSchedule", target="metal").to_python()
    assert around.endswith(
        "with tvm.target.Target('metal'):\n    mod = s_tir.transform.DefaultGPUSchedule()(mod)\n"
    )
    before = session.apply("LowerIntrin").to_python()
    assert before.endswith(
        "mod = tirx.transform.BindTarget(tvm.target.Target('llvm', host='llvm'))(mod)\n"
        "mod = tirx.transform.LowerIntrin()(mod)\n"
    )


def test_a_pass_that_makes_something_else_each_time_is_not_written_as_a_call():
    session = Session(STATIC).apply("InstrumentProfileIntrinsics")
    assert session.current.error == ""
    assert "makes something else each time" in session.to_python()


def test_a_callback_without_source_is_not_written():
    text = Session(HIGH).apply("UpdateParamType", ty_func=lambda _: None)
    assert text.current.error == ""
    nothing = eval("lambda var: narrow(var)", globals())
    session = Session(HIGH).apply("UpdateParamType", ty_func=nothing)
    assert "is not a function that was defined by def" in session.to_python()


# --- passes that end a process -----------------------------------------------------------------


def test_a_pass_that_ends_the_worker_makes_a_stage_that_says_so_and_the_next_works(capfd):
    session = Session(TOO_MANY)
    text = session.current.module.script(show_meta=True)
    for deadly in ("LiftTransformParams", relax.transform.LiftTransformParams()):
        ended = session.apply(deadly)
        assert ended.current.error.startswith("CrashedError: it ended the process that tried it")
        assert ended.current.module is session.stages[0].module
        assert session.stages[0].module.script(show_meta=True) == text
        after = ended.apply("LegalizeOps")
        assert (after.current.error, after.current.parent) == ("", ended.current_id)
    assert [stage.id for stage in session.stages] == ["0"]
    assert capfd.readouterr().err == ""


def test_a_pass_that_ends_the_worker_does_so_in_a_preview_too():
    outcome = try_transform(STATIC, named_pass("NarrowDataType", target_bits=32), keep=True)
    assert outcome.is_deadly
    assert outcome.module is None
    lowered = s_tir.transform.LowerInitBlock()(STATIC)
    assert try_transform(lowered, named_pass("tirx.StmtSimplify"), keep=True).module
    assert tirx.transform.StmtSimplify()(lowered)
