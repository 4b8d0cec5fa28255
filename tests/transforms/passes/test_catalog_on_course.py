"""Every entry of the catalog makes a stage: on the course's modules, and on one that it is for.

Of TVM 0.27's passes NarrowDataType ends the process on each of the course's modules that has a
PrimFunc with blocks: it is for lowered ones.
"""

import numpy as np
import pytest
from tvm import relax
from tvm_ffi import structural_equal

from irviz.course.digits import mlp_params
from irviz.course.mlp import MODULES
from irviz.ir.function_graph import extract
from irviz.session.session import Session
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.passes.catalog import TargetUse, catalog
from irviz.transforms.passes.parameters import ParameterKind, symbolic_names
from irviz.transforms.passes.pass_metadata import TRIALS
from irviz.transforms.passes.pass_transform import named_pass
from irviz.transforms.recording import record_passes
from irviz.transforms.stage import Stage

PARAMS = mlp_params()
FROM_FORMS = [entry for entry in catalog() if not entry.code_only]
ENDS_THE_PROCESS = {"tirx.NarrowDataType"}


def filled(entry, mod, folder):
    """Return what a form would give: the defaults, and for what has none what the module has."""
    found = {}
    for one in entry.parameters:
        if one.name in TRIALS:
            found[one.name] = 0
        elif one.name == "work_dir":
            # a folder where none can be: before it tunes TVM reads its tensor intrinsics, for 20 s
            found[one.name] = str(folder / ("file/no" if "Tune" in entry.name else "logs"))
        elif one.is_required:
            found[one.name] = _value(one, mod)
    return found


def _value(parameter, mod):
    match parameter.kind:
        case ParameterKind.FUNCTION:
            return "main"
        case ParameterKind.PARAMS:
            return {} if parameter.first == () else PARAMS
        case ParameterKind.DIMS:
            return dict.fromkeys(symbolic_names(mod), 128)
        case ParameterKind.LAYOUTS:
            return {"relax.nn.conv2d": ["NHWC", "OHWI"]}
        case ParameterKind.CHOICE:
            return parameter.choices[0]
    assert parameter.first is not None, f"a form would begin {parameter.name} with nothing"
    return parameter.first


def check_graphs(mod, entry):
    for gvar, function in mod.functions.items():
        if isinstance(function, relax.Function):
            graph = extract(mod, gvar.name_hint)
            known = {node.id for node in graph.nodes}
            assert len(known) == len(graph.nodes), entry
            assert {end for e in graph.edges for end in (e.source, e.target)} <= known, entry
            assert set(graph.outputs) <= known, entry


@pytest.mark.worker
@pytest.mark.parametrize("name", MODULES)
def test_every_entry_makes_a_stage_of_every_module_which_is_read(name, tmp_path, capfd):
    mod = MODULES[name]
    given = Stage("0", mod)
    text = mod.script(show_meta=True)
    (tmp_path / "file").write_text("")
    errors, said = {}, 0
    for entry in FROM_FORMS:
        call = named_pass(entry.full_name, **filled(entry, mod, tmp_path))
        stage = apply_transform(given, call, "1")
        assert mod.script(show_meta=True) == text, entry.full_name
        assert (stage.parent, stage.label) == ("0", call.label)
        if stage.error:
            assert stage.module is mod, entry.full_name
            errors[entry.full_name] = stage.error
        else:
            assert stage.module.script(), entry.full_name
            check_graphs(stage.module, entry.full_name)
        said += bool(stage.stderr)
    ended = {full_name for full_name, error in errors.items() if "CrashedError" in error}
    assert ended <= ENDS_THE_PROCESS
    assert len(errors) < len(FROM_FORMS) / 4
    assert said > 0
    assert capfd.readouterr() == ("", "")


def test_what_is_for_code_is_left_out_by_being_for_code():
    left_out = [entry.name for entry in catalog() if entry.code_only]
    assert left_out == [
        *("AlterOpImpl", "AttachExternModules", "SplitCallTIRByPattern", "UpdateParamType"),
        *("Apply", "Filter"),
    ]
    assert len(FROM_FORMS) > 135


IS_FOR = {
    "made closures": ("AttachGlobalSymbol", "InlinePrivateFunctions", "LowerRuntimeBuiltin"),
    "capturing functions": ("LambdaLift",),
    "bundled parameters": ("BundleModelParams", "LiftTransformParams"),
    "tuples": ("CanonicalizeBindings", "MergeCompositeFunctions"),
    "primitives": ("ComputePrimValue",),
    "devices": ("RealizeVDevice", "UpdateVDevice"),
    "sharded": ("LowerGPUIPCAllocStorage", "MetaScheduleApplyDatabase", "RewriteDataflowReshape"),
    "sizes": ("DecomposeOpsForInference", "DecomposeOpsForTraining"),
    "a scalar used and returned": ("FastMathTransform",),
    "a returned constant": ("EliminateCommonSubexpr", "FuseOps", "Normalize"),
    "trained": ("TopologicalSort",),
    "call_tir": ("tirx.FlattenBuffer",),
}
"""The constructs that some passes change; for the others there are modules of the course."""
ELSEWHERE = {"Gradient"}  # test_pass_call.py applies it to a loss
NEW_EACH_TIME = {"s_tir.InstrumentProfileIntrinsics"}  # it counts the loops of all modules so far


@pytest.mark.worker
@pytest.mark.parametrize(
    "entry",
    [entry for entry in FROM_FORMS if not entry.is_measured and entry.name not in ELSEWHERE],
    ids=lambda entry: entry.full_name,
)
def test_a_pass_applies_to_a_module_that_it_is_for_and_is_recorded(entry, constructs, tmp_path):
    special = [name for name, names in IS_FOR.items() if entry.label in names]
    modules = [constructs.construct(name) for name in special] or [
        *(MODULES[f"MyModule{name}"] for name in ("TwoBlocks", "HighLevel", "Static"))
    ]
    sessions = [
        Session(mod).apply(entry.full_name, **filled(entry, mod, tmp_path)) for mod in modules
    ]
    fits = [session for session in sessions if not session.current.error]
    assert fits, sessions[0].current.error
    for session in fits:
        before, after = session.stages
        assert (after.id, after.parent, session.current) == ("1", "0", after)
        if special and entry.name != "UpdateVDevice":
            assert not structural_equal(after.module, before.module)
        if is_plain(entry):
            with record_passes() as recording:
                expected = entry.make()(before.module)
            assert structural_equal(after.module, expected)
            assert structural_equal(recording.stages()[-1].module, expected)


def is_plain(entry):
    """Tell whether a pass without arguments and target gives the same module each time."""
    if entry.full_name in NEW_EACH_TIME or entry.namespace == "pipeline":
        return False
    required = [one for one in entry.parameters if one.is_required]
    return not required and entry.needs_target is TargetUse.NONE


@pytest.mark.worker
def test_a_pass_that_ends_the_process_leaves_the_session_as_it_was_and_the_next_works():
    session = Session(MODULES["MyModuleStatic"], params=PARAMS)
    before = session.run({"x": np.ones((1, 784), "float32")})
    ended = session.apply("NarrowDataType", target_bits=32)
    assert ended.current.error == ("CrashedError: it ended the process that tried it (SIGSEGV)"), (
        "a kernel that read this is alive"
    )
    assert ended.current.module is session.current.module
    assert [stage.label for stage in ended.stages] == [
        "initial module",
        "tirx.NarrowDataType(target_bits=32)",
    ]
    again = ended.bind().apply("FoldConstant")
    assert again.current.error == ""
    after = ended.run({"x": np.ones((1, 784), "float32")})
    assert before.outputs[0].tobytes() == after.outputs[0].tobytes()
