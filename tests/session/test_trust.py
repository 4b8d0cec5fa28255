"""What was opened is run only where the user said so, and then never in this process."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relax

import irviz
from irviz.session.open_session import add_file
from irviz.session.session_encoding import EncodingError, restore
from irviz.worker import sandbox
from irviz.worker.supervisor import RUNS, TRIES

pytestmark = pytest.mark.worker

X = np.ones((1, 2), "float32")


TELLING = tvm.script.from_source("""
@I.ir_module
class Telling:
    @T.prim_func(s_tir=True)
    def kernel(X: T.Buffer((1, 2), "float32"), Y: T.Buffer((1, 2), "float32")):
        for i in range(2):
            with T.sblock("Y"):
                vi = T.axis.spatial(2, i)
                T.evaluate(T.call_extern("int32", "mkdir", "ran", 511))
                Y[0, vi] = X[0, vi]

    @R.function
    def main(x: R.Tensor((1, 2), "float32")) -> R.Tensor((1, 2), "float32"):
        cls = Telling
        with R.dataflow():
            a = R.call_tir(cls.kernel, (R.const([[1.0, 2.0]]),), R.Tensor((1, 2), "float32"))
            b = R.call_tir(cls.kernel, (x,), R.Tensor((1, 2), "float32"))
            c = R.add(a, b)
            R.output(c)
        return c
""")
"""A module whose kernel makes a folder, in the current directory of the process that runs it."""


@pytest.fixture(scope="module")
def workers_folder(tmp_path_factory):
    """Return a new folder, in which the workers start."""
    folder, before = tmp_path_factory.mktemp("workers"), Path.cwd()
    os.chdir(folder)
    for worker in (RUNS, TRIES):
        worker.stop()
        worker.start()
    os.chdir(before)
    yield folder
    for worker in (RUNS, TRIES):
        worker.stop()


@pytest.fixture
def folder(workers_folder, monkeypatch):
    monkeypatch.chdir(workers_folder)
    ran(workers_folder)
    return workers_folder


@pytest.fixture
def opened(folder):
    (folder / "module.json").write_text(tvm.ir.save_json(TELLING))
    return irviz.load("module.json")


@pytest.fixture(autouse=True)
def _without_the_sandbox(monkeypatch):
    """Let nothing be confined, as where Linux has no Landlock; tests/runtime has the others."""
    monkeypatch.setenv(sandbox.VARIABLE, "0")


def ran(folder):
    """Tell whether code of the module ran, and forget it."""
    if (folder / "ran").exists():
        (folder / "ran").rmdir()
        return True
    return False


EVALUATES = {
    "a run": lambda session: session.run(X),
    "a trace": lambda session: session.with_inputs(X).trace(),
    "a value": lambda session: session.with_inputs(X).value("b"),
    "a comparison": lambda session: session.compare("0", "0", X),
    "a measurement": lambda session: session.measure(inputs=X),
    "a drawing of times": lambda session: session.with_inputs(X).draw_overlay("time"),
    "folding": lambda session: session.apply("FoldConstant"),
    "folding by an object": lambda session: session.apply(relax.transform.FoldConstant()),
    "folding in a sequence": lambda session: session.apply(
        tvm.transform.Sequential([relax.transform.FoldConstant()])
    ),
    "a pipeline by an object": lambda session: session.apply(relax.get_pipeline("zero")),
    "a pipeline": lambda session: session.apply("pipeline.zero"),
    "the pipeline of a target": lambda session: session.apply(
        "pipeline.default_for_target", target="llvm"
    ),
    "tuning": lambda session: session.apply(
        "MetaScheduleTuneTIR", work_dir="tuned", max_trials_global=1
    ),
}


@pytest.mark.build
@pytest.mark.parametrize(
    "what", ["a run", "folding", "a pipeline", "the pipeline of a target", "folding in a sequence"]
)
def test_ones_own_module_is_run_without_a_question(folder, what):
    EVALUATES[what](irviz.Session(TELLING))
    assert ran(folder)


@pytest.mark.parametrize("what", EVALUATES)
def test_what_runs_code_of_a_file_asks_first(folder, opened, what):
    with pytest.raises(irviz.UntrustedError, match=r"'module\.json'.*trust=True") as caught:
        EVALUATES[what](opened)
    assert caught.value.files == {"module.json"}
    assert not ran(folder)


@pytest.mark.parametrize("what", EVALUATES)
def test_stages_made_of_what_was_opened_ask_too(folder, opened, what):
    later = opened.apply("CanonicalizeBindings").rename("1", "my own")
    with pytest.raises(irviz.UntrustedError):
        EVALUATES[what](later)
    assert not ran(folder)


def test_a_dropped_file_asks_and_the_stages_beside_it_do_not(folder):
    session = irviz.Session(relax.transform.Normalize()(tvm.IRModule.from_expr(TELLING["main"])))
    session = add_file(session, "dropped.json", tvm.ir.save_json(TELLING).encode())
    with pytest.raises(irviz.UntrustedError, match=r"'dropped\.json'"):
        session.run(X)
    session.checkout("0").apply("FoldConstant")
    assert not ran(folder)


@pytest.mark.build
def test_once_it_is_trusted_it_runs_in_another_process(folder, opened):
    trusted = opened.trust()
    for session in (trusted, trusted.with_run_config(isolate=False)):
        session.run(X)
        assert ran(folder)
        folded = session.apply("FoldConstant")
        assert ran(folder)
        assert folded.current.error == ""
        assert "a" not in [str(node) for node in folded.graph().nodes]
    os.chdir("/")  # this process is elsewhere, and the workers are in the folder still
    for session in (trusted, trusted.with_run_config(isolate=False)):
        session.run(X)
        assert ran(folder)
        session.apply("FoldConstant")
        assert ran(folder)
    assert not ran(Path("/"))
    irviz.load(folder / "module.json", trust=True).run(X)
    assert ran(folder)


@pytest.mark.build
@pytest.mark.parametrize("name", ["default", "default_build"])
def test_pipelines_that_only_lower_neither_ask_nor_run(folder, opened, name):
    assert opened.apply(f"pipeline.{name}").current.error == ""
    assert not ran(folder)


@pytest.mark.build
def test_pass_objects_are_applied_to_what_is_trusted_in_another_process(folder, opened):
    folding = relax.transform.FoldConstant()
    for given in (folding, tvm.transform.Sequential([relax.transform.Normalize(), folding])):
        made = opened.trust().apply(given)
        assert ran(folder)
        assert made.current.error == ""
        assert "a" not in [str(node) for node in made.graph().nodes]


@pytest.mark.usefixtures("forgets_registrations")
def test_a_pass_of_ones_own_is_applied_by_name_to_what_was_opened(folder, opened):
    @irviz.register_pass("tidy")
    def tidy():
        @tvm.transform.module_pass(opt_level=0, name="tidy object")
        def run(mod, context):  # noqa: ARG001 - as TVM calls it
            return relax.transform.Normalize()(mod)

        return run

    pipelines = (tvm.transform.Sequential([tidy()], name=name) for name in ("mine", "FuseOps"))
    for given in (tidy(), *pipelines):
        with pytest.raises(irviz.TransformError, match=r"irviz\.register_pass"):
            opened.trust().apply(given)
    assert opened.apply("tidy").current.error == ""
    assert not ran(folder)


def test_writing_a_script_of_a_saved_session_applies_nothing_here(folder, opened):
    opened.trust().apply("FoldConstant").save("work.irviz")
    assert ran(folder)
    session = irviz.load("work.irviz")
    assert not ran(folder)
    with pytest.raises(irviz.UntrustedError, match=r"FoldConstant.*'work\.irviz'"):
        session.to_python()
    with pytest.raises(irviz.UntrustedError):
        session.replay(onto=TELLING)
    assert not ran(folder)
    assert "FoldConstant" in session.trust().to_python()


def test_a_session_names_no_place_on_the_disk(folder):
    session = irviz.Session(TELLING).apply("MetaScheduleApplyDatabase", work_dir=str(folder / "db"))
    session.save("work.irviz")
    assert irviz.load("work.irviz").stages[1].transform.label.startswith("MetaScheduleApply")
    shutil.rmtree("db")
    irviz.load("work.irviz", trust=True).replay(onto=TELLING)
    assert not Path("db").exists()
    call = {"name": "relax.MetaScheduleApplyDatabase", "arguments": {"work_dir": "db"}}
    with pytest.raises(EncodingError, match="work_dir names a place on the disk"):
        restore({"kind": "pass", **call})


LOOKS = {
    "a drawing": lambda session: session.draw(),
    "a text": lambda session: session.script(),
    "a script": lambda session: session.apply("LegalizeOps").to_python(),
    "memory": lambda session: session.draw_memory(),
    "buffers": lambda session: session.draw_destination_passing(planned=True),
    "a diff": lambda session: irviz.diff(session.current.module, TELLING),
    "passes": lambda session: session.apply("LegalizeOps").apply("FuseOps").apply("FuseTIR"),
    "a pass object of several": lambda session: session.apply(
        relax.transform.LiftTransformParams()
    ),
    "a step": lambda session: session.schedule("kernel", lambda sch: sch.get_sblock("Y")),
    "a replaced call": lambda session: session.swap("kernel", "env.relu"),
    "a replay": lambda session: session.apply("LegalizeOps").replay(onto=TELLING),
    "saving": lambda session: session.save("saved.irviz"),
}


@pytest.mark.parametrize("what", LOOKS)
def test_what_looks_or_transforms_neither_asks_nor_runs(folder, opened, what):
    LOOKS[what](opened)
    assert not ran(folder)
