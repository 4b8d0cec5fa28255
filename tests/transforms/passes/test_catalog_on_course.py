"""Every entry of the catalog, on every module of the course: a new stage, or one that says why.

Of TVM 0.27's passes NarrowDataType ends the process on each of the course's modules that has a
PrimFunc with blocks: it is for lowered ones.
"""

import numpy as np
import pytest

from irviz.course.digits import mlp_params
from irviz.course.mlp import MODULES
from irviz.session.session import Session
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.passes.arguments import symbolic_names
from irviz.transforms.passes.catalog import catalog
from irviz.transforms.passes.parameters import ParameterKind
from irviz.transforms.passes.pass_call import named_pass
from irviz.transforms.passes.pass_facts import TRIALS
from irviz.transforms.stage import Stage

PARAMS = mlp_params()
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


@pytest.mark.worker
@pytest.mark.parametrize("name", MODULES)
def test_every_entry_makes_a_stage_of_every_module(name, tmp_path, capfd):
    mod = MODULES[name]
    given = Stage("0", mod)
    text = mod.script(show_meta=True)
    (tmp_path / "file").write_text("")
    entries = [entry for entry in catalog() if not entry.code_only]
    errors, said = {}, 0
    for entry in entries:
        call = named_pass(entry.full_name, **filled(entry, mod, tmp_path))
        stage = apply_transform(given, call, "1")
        assert mod.script(show_meta=True) == text, entry.full_name
        assert (stage.parent, stage.label) == ("0", call.label)
        if stage.error:
            assert stage.module is mod, entry.full_name
            errors[entry.full_name] = stage.error
        else:
            assert stage.module.script(), entry.full_name
        said += bool(stage.stderr)
    ended = {full_name for full_name, error in errors.items() if "CrashedError" in error}
    assert ended <= ENDS_THE_PROCESS
    assert len(errors) < len(entries) / 4
    assert said > 0
    assert capfd.readouterr() == ("", "")


def test_what_is_for_code_is_left_out_by_being_for_code():
    left_out = [entry.name for entry in catalog() if entry.code_only]
    assert left_out == [
        *("AlterOpImpl", "AttachExternModules", "SplitCallTIRByPattern", "UpdateParamType"),
        *("Apply", "Filter"),
    ]
    assert len(catalog()) - len(left_out) > 135


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
