"""A path of stages writes itself as a script with TVM alone, and is replayed on other modules."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm_ffi import structural_equal

from irviz.course.mlp import MODULES, MyModule, MyModuleStatic
from irviz.session.session import Session
from irviz.transforms.export_python import PythonScript, UnwritableError
from irviz.transforms.stage import to_script
from irviz.worker.supervisor import TRIES

pytestmark = pytest.mark.worker

RNG = np.random.default_rng(3)
PARAMS = {
    "w0": RNG.standard_normal((128, 784)).astype("float32"),
    "b0": RNG.standard_normal(128).astype("float32"),
    "w1": RNG.standard_normal((10, 128)).astype("float32"),
    "b1": RNG.standard_normal(10).astype("float32"),
}


def ran(script):
    """Return the module that a script leaves in `mod`, run by another process."""
    assert "irviz" not in script
    return tvm.ir.load_json(TRIES.call(_run, script))


def _run(script):
    names: dict[str, object] = {}
    exec(script, names)
    return tvm.ir.save_json(names["mod"])


def reproduces(session, **options):
    return structural_equal(ran(session.to_python(**options)), session.current.module)


@pytest.mark.parametrize("name", MODULES)
def test_a_script_makes_the_shown_stage_from_the_first(name):
    session = Session(MODULES[name], params=PARAMS)
    session = session.apply("LegalizeOps").bind().apply("FoldConstant").apply("FuseOps")
    assert reproduces(session)


def test_a_script_is_a_program_for_a_file_of_its_own(tmp_path):
    session = Session(MyModule, params=PARAMS).apply("LegalizeOps").bind()
    program, result = tmp_path / "program.py", tmp_path / "result.json"
    tail = f"\nopen({str(result)!r}, 'w').write(tvm.ir.save_json(mod))\n"
    program.write_text(session.to_python() + tail, encoding="utf-8")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = tvm.ir.load_json(result.read_text(encoding="utf-8"))
    assert structural_equal(made, session.current.module)


def test_a_script_says_the_module_in_tvmscript_and_the_stages_by_their_labels():
    session = Session(MyModuleStatic).apply("LegalizeOps").apply("FoldConstant")
    text = session.rename("2", "my words\nand more").to_python()
    assert "def linear0(" in text
    assert "\n# stage 1: LegalizeOps\nmod = relax.transform.LegalizeOps()(mod)\n" in text
    assert "# stage 2: my words\n# and more\n" in text


def test_only_what_led_to_the_stage_is_in_its_script():
    session = Session(MyModuleStatic).apply("ToNonDataflow")
    branch = session.checkout("0").apply("LegalizeOps")
    assert "ToNonDataflow" not in branch.to_python()
    assert "LegalizeOps" not in branch.to_python("1")
    assert structural_equal(ran(branch.to_python("1")), session.current.module)


def test_arrays_can_lie_in_a_file_beside_the_script(tmp_path):
    session = Session(MyModuleStatic, params=PARAMS).bind()
    text = session.to_python(arrays_file=tmp_path / "arrays.npz")
    assert len(text) < 10_000
    assert structural_equal(ran(text), session.current.module)
    assert [path.name for path in tmp_path.glob("*.npz")] == ["arrays.npz"]
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_small_arrays_are_written_out_with_numbers_that_are_none(tmp_path):
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    file = relax.Var("file", relax.TensorType((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, file]):
        builder.emit_func_output(builder.emit(relax.op.add(x, file)))
    special = np.array([np.nan, np.inf, -np.inf, 0.1], "float32")
    session = Session(builder.get(), params={"file": special}).bind()
    assert "np.array([np.nan, np.inf, -np.inf, 0.1" in session.to_python()
    assert reproduces(session)
    assert reproduces(session, arrays_file=tmp_path / "a.npz")


def test_the_same_name_bound_to_other_values_stays_apart():
    script = PythonScript()
    first = script.array("w0", np.zeros(3))
    assert script.array("w0", np.zeros(3)) == first
    assert script.array("w0", np.ones(3)) != first
    with pytest.raises(UnwritableError, match="dtype"):
        script.array("words", np.array(["a"]))


def test_a_pass_given_as_an_object_is_written_where_its_name_says_it_all():
    plain = Session(MyModuleStatic).apply(relax.transform.LegalizeOps())
    assert "relax.transform.LegalizeOps()" in plain.to_python()

    @tvm.transform.module_pass(opt_level=0, name="OnlyHere")
    def only_here(mod, context):  # noqa: ARG001 - as TVM calls it
        return relax.transform.ToNonDataflow()(mod)

    own = plain.apply(only_here).apply("CallTIRRewrite")
    text = own.to_python()
    assert "# stage 1: LegalizeOps" in text
    assert "OnlyHere was given as an object" in text
    assert "relax.transform.LegalizeOps()" not in text
    assert "CallTIRRewrite()(mod)" in text
    assert reproduces(own)


def test_a_step_that_holds_what_its_pass_does_not_take_is_left_out_with_a_word():
    """As one may that was read from a file."""

    class Wrong:
        def write(self, *_):
            raise TypeError("'a' is no number")

    session = Session(MyModuleStatic).apply("LegalizeOps").apply("ToNonDataflow")
    stages = session.stages[0], replace(session.stages[1], transform=Wrong()), session.stages[2]
    text = to_script(stages).text()
    assert "LegalizeOps cannot be written: TypeError: 'a' is no number" in text
    assert structural_equal(ran(text), session.current.module)


def test_a_stage_that_failed_is_not_in_the_script():
    session = Session(MyModule).apply(relax.transform.MergeCompositeFunctions())
    assert session.current.error
    session = session.apply("ToNonDataflow")
    assert "MergeCompositeFunctions" not in session.to_python()
    assert reproduces(session)


@pytest.mark.parametrize("name", ["os'''+'", "x()", "a b", "lambda", "é"])
def test_a_name_that_is_no_name_cannot_write_into_the_script(name):
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function(name, [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, x)))
    session = Session(builder.get(), function=name).apply("LegalizeOps")
    assert reproduces(session)


# --- replay -------------------------------------------------------------------------------------


def labels(session):
    return [(stage.id, stage.parent, stage.label) for stage in session.stages]


def test_a_path_is_replayed_on_another_module():
    session = Session(MyModuleStatic, params=PARAMS).bind().apply("ToNonDataflow")
    other = session.replay(onto=MyModule)
    assert labels(other)[1:] == labels(session)[1:]
    assert structural_equal(
        other.current.module,
        Session(MyModule, params=PARAMS).bind().apply("ToNonDataflow").current.module,
    )


def test_a_branch_is_replayed_behind_another_stage():
    session = Session(MyModuleStatic).apply("LegalizeOps").apply("ToNonDataflow")
    session = session.checkout("1").apply("FoldConstant")
    both = session.replay("2", onto="3")
    assert labels(both)[-1] == ("4", "3", "ToNonDataflow")
    assert both.current_id == "4"
    assert labels(both)[:-1] == labels(session)


def test_a_step_that_does_not_fit_says_so_and_the_others_go_on():
    session = Session(MyModuleStatic, params=PARAMS).bind().apply("ToNonDataflow")
    other = session.replay(onto=Session(MyModuleStatic, params=PARAMS).bind().current.module)
    assert "has no parameter 'w0'" in other.stages[1].error
    assert other.current.error == ""
    assert not structural_equal(other.current.module, other.stages[0].module)
