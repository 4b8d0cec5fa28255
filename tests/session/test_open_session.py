"""What people have opens as a session, and a dropped file as another beginning of one."""

import numpy as np
import pytest
import tvm
from tvm_ffi import structural_equal

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES, MyModule
from irviz.errors import LoadError
from irviz.explorer.actions import OpenFile, Run, Trust
from irviz.explorer.explorer import Explorer
from irviz.session.open_session import add_file
from irviz.worker.sandbox import VARIABLE

pytestmark = pytest.mark.worker

IMAGES = digits().images[:3]
TEXT = MODULES["MyModuleStatic"].script().encode()


@pytest.fixture
def session():
    return irviz.Session(MyModule, params=mlp_params(), inputs=IMAGES).bind()


def test_a_module_and_its_arrays_become_a_session():
    session = irviz.load(MyModule, params=mlp_params(), inputs=IMAGES)
    assert session.run().outputs[0].shape == (3, 1, 10)


def test_the_arrays_may_be_in_a_file(tmp_path):
    np.savez(tmp_path / "weights.npz", **mlp_params())
    session = irviz.load(MyModule, params=tmp_path / "weights.npz", inputs=IMAGES)
    outputs = irviz.load(MyModule, params=mlp_params(), inputs=IMAGES).run().outputs
    np.testing.assert_array_equal(session.run().outputs[0], outputs[0])


def test_a_dropped_file_is_another_beginning_and_no_stage_is_lost(session):
    opened = add_file(session, "mlp.py", TEXT)
    assert [stage.id for stage in opened.stages] == ["0", "1", "2"]
    assert opened.current.label == "opened mlp.py"
    assert opened.current.parent is None
    assert structural_equal(opened.current.module, MODULES["MyModuleStatic"])
    assert opened.stages[:2] == session.stages
    assert opened.undo().stages == session.stages
    result = opened.trust().compare("2", "0")
    assert result.verdict.value in ("equal", "within tolerance")


def test_steps_go_on_from_there(session):
    opened = add_file(session, "mlp.py", TEXT).bind()
    assert opened.lineage() == ("2", "3")
    assert "linear0" in opened.to_python()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.py", b"import os\nos.system('true')"),
        ("a.png", b"\x89PNG\r\n\x1a\n"),
        ("a.json", b"{"),
        ("a.py", b""),
        ("a.onnx", bytes(100)),
    ],
)
def test_what_cannot_be_opened_changes_nothing(session, name, content):
    explorer = Explorer(session)
    explorer.dispatch(OpenFile(name, content))
    assert explorer.session.stages == session.stages
    assert explorer.store.state.message.is_error
    with pytest.raises(LoadError):
        add_file(session, name, content)


def test_the_explorer_shows_what_was_dropped_and_runs_it_when_it_is_told_to(session, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")  # as where nothing can be confined
    explorer = Explorer(session)
    explorer.dispatch(OpenFile("mlp.py", TEXT))
    assert explorer.session.current_id == "2"
    assert "2" not in explorer.results  # to open a file runs nothing that is in it
    explorer.run()
    assert "2" not in explorer.results  # it asks first
    explorer.dispatch(Trust(Run(), frozenset({"mlp.py"})))
    assert explorer.results["2"].outputs[0].shape == (3, 1, 10)
    np.testing.assert_allclose(
        explorer.results["2"].outputs[0], explorer.results["0"].outputs[0], rtol=1e-4
    )


def test_what_is_dropped_after_a_run_is_not_run_before_it_is_told_to(session):
    explorer = Explorer(session)
    explorer.run()
    explorer.dispatch(OpenFile("mlp.py", TEXT))
    assert "0" in explorer.results
    assert "2" not in explorer.results


def test_tvms_json_can_be_dropped_too(session):
    opened = add_file(session, "m.json", tvm.ir.save_json(MyModule).encode())
    assert structural_equal(opened.current.module, MyModule)


def test_a_file_is_opened_without_a_run_of_what_is_in_it(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")  # as where nothing can be confined
    path = tmp_path / "mlp.py"
    path.write_bytes(TEXT)
    explorer = irviz.explore(path, params=mlp_params(), inputs=IMAGES)
    explorer.session = explorer.session.bind()
    explorer.run()
    assert explorer.results == {}
    explorer.session = explorer.session.trust()
    explorer.run()
    assert set(explorer.results) == {"0", "1"}


def test_a_saved_session_is_loaded_with_all_its_stages(session, tmp_path):
    path = session.save(tmp_path / "work.irviz")
    again = irviz.load(path)
    assert [stage.label for stage in again.stages] == [stage.label for stage in session.stages]
    assert structural_equal(again.current.module, session.current.module)


def test_the_stage_of_a_file_whose_name_is_too_long_is_refused_in_words():
    with pytest.raises(LoadError, match="File name too long"):
        irviz.load(f"{'x' * 300}.irviz#1")
