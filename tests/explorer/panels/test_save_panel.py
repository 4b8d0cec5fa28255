"""The stage, the session and the script are saved under the names that are written."""

from xml.etree import ElementTree

import pytest

from irviz.course.digits import mlp_params
from irviz.course.mlp import MyModuleStatic
from irviz.explorer.actions import Checkout
from irviz.explorer.effects import Effects
from irviz.explorer.panels.save_panel import PythonPanel, SavePanel
from irviz.session.session import Session

pytestmark = pytest.mark.worker


@pytest.fixture
def saving(desk_class):
    session = Session(MyModuleStatic, params=mlp_params()).bind()
    return desk_class(session, SavePanel, PythonPanel, effects=Effects)


def test_the_session_is_saved_with_or_without_params(saving, tmp_path):
    path = tmp_path / "work.irviz"
    saving.find("irviz-save-session-path").value = str(path)
    saving.find("irviz-save-params").value = False
    saving.press("Save session")
    assert saving.said == f"saved {path}; Session.load opens it"
    loaded = Session.load(path)
    assert [stage.label for stage in loaded.stages] == [
        stage.label for stage in saving.session.stages
    ]
    assert loaded.call_inputs.params == {}
    saving.find("irviz-save-session-path").value = str(tmp_path)
    saving.press("Save session")
    assert "cannot be written" in saving.said
    assert saving.state.message.is_error


def test_the_picture_of_the_current_stage_is_saved(saving, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert saving.find("irviz-save-path").value == "main-1.svg"
    saving.dispatch(Checkout("0"))
    saving.press("Save SVG")
    assert saving.said == f"saved {tmp_path / 'main-0.svg'}"
    ElementTree.parse(tmp_path / "main-0.svg")


def test_the_script_of_the_current_stage_is_saved_and_copied(saving, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saving.press("Save as Python")
    assert saving.said == f"saved {tmp_path / 'main-1.py'}"
    text = (tmp_path / "main-1.py").read_text(encoding="utf-8")
    assert "BindParams" in text
    (copy,) = [one for one in saving.all() if hasattr(one, "serial")]
    copy._handle_custom_msg({"action": "CopyScript"}, [])
    assert (copy.text, copy.serial) == (text, 1)
    assert "lines of Python; its arrays are in main-1.npz" in saving.said
    saving.find("irviz-python-path").value = "steps.txt"
    saving.press("Save as Python")
    assert "'steps.txt' is no name for a script: give one ending in .py" in saving.said
