"""Pictures, sessions and scripts are given to the browser, which saves them."""

from __future__ import annotations

import asyncio
import io
import zipfile
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest

from irviz.course.digits import mlp_params
from irviz.course.mlp import MyModuleStatic
from irviz.explorer.actions import Cancel, Checkout, Compare, Save, Select
from irviz.explorer.downloads import Saved
from irviz.explorer.effects import Effects
from irviz.explorer.panels.save_panel import SavePanel
from irviz.explorer.state import Making
from irviz.session.session import Session

pytestmark = pytest.mark.worker


@pytest.fixture
def saving(desk_class):
    session = Session(MyModuleStatic, params=mlp_params()).bind()
    return desk_class(session, SavePanel, effects=Effects)


def given(saving, wanted=None):
    """Return the name and the content of the file that the browser is given."""
    if wanted is not None:
        saving.dispatch(Save(wanted))
    return saving.state.file.name, saving.state.file.content


def test_the_session_is_saved_with_or_without_params(saving, tmp_path):
    for has_params in (True, False):
        saving.find("irviz-save-params").value = has_params
        saving.press("Save session")
        name, content = given(saving)
        assert name == "session.irviz"
        (tmp_path / name).write_bytes(content)
        loaded = Session.load(tmp_path / name)
        assert [one.label for one in loaded.stages] == [one.label for one in saving.session.stages]
        assert bool(loaded.call_inputs.params) is has_params
    assert "session.irviz is ready" in saving.said


def test_the_session_is_saved_as_a_page_to_look_at(saving):
    saving.press("Save as HTML")
    name, content = given(saving)
    assert name == "session.html"
    assert content.startswith(b"<!doctype html>")
    assert saving.state.file.media_type == "text/html"


def test_the_page_hears_what_is_being_made_before_it_is_made(saving):
    told = []
    saving.store.subscribe(lambda state, _: told.append((state.making, state.file is not None)))

    async def save() -> None:
        saving.press("Save as HTML")
        assert told[-1] == (Making("session.html"), False)
        while saving.state.making:
            await asyncio.sleep(0.01)

    asyncio.run(save())
    assert told[-1] == (None, True)


def test_a_page_that_is_being_made_says_how_far_it_is_and_can_be_cancelled(desk_class):
    at_once = partial(Effects, told_seconds=0)
    saving = desk_class(Session(MyModuleStatic), SavePanel, effects=at_once)
    told = []
    saving.store.subscribe(lambda state, _: told.append(state.making and state.making.progress))

    async def cancel() -> None:
        saving.press("Save as HTML")
        while not saving.state.making.progress:
            await asyncio.sleep(0.01)
        saving.dispatch(Cancel())
        await asyncio.sleep(0.1)

    asyncio.run(cancel())
    assert next(filter(None, told)).startswith(("counting", "stage"))
    assert (saving.state.making, saving.state.file) == (None, None)
    assert "session.html is not made" in saving.said


def test_the_picture_of_the_current_stage_is_saved_in_the_chosen_format(saving):
    saving.dispatch(Checkout("0"))
    for kind, start in (
        ("svg", b"<svg"),
        ("pdf", b"%PDF"),
        ("png", b"\x89PNG"),
        ("dot", b"digraph"),
    ):
        saving.find("irviz-save-format").value = kind
        saving.press("Save picture")
        name, content = given(saving)
        assert name == f"main-0.{kind}"
        assert content.startswith(start)


def test_a_picture_of_an_opened_file_has_its_name(desk_class):
    saving = desk_class(
        Session(MyModuleStatic).from_file("models/mlp.onnx"), SavePanel, effects=Effects
    )
    saving.press("Save picture")
    name, _ = given(saving)
    assert name == "mlp-main-0.svg"


def test_a_title_stands_above_the_picture_and_moves_nothing_off_it(saving):
    plain = ElementTree.fromstring(given(saving, Saved("svg"))[1])
    wanted = Saved("svg", title="After <bind>", theme="dark")
    titled = ElementTree.fromstring(given(saving, wanted)[1])
    assert "After <bind>" in [one.text for one in titled.iter() if one.tag.endswith("text")]
    higher = float(titled.get("height")) - float(plain.get("height"))
    (moved,) = [one for one in titled if (one.get("transform") or "").startswith("translate(0 ")]
    assert moved.get("transform") == f"translate(0 {higher:.0f})"


def test_the_selected_node_has_a_frame_where_that_is_wanted(saving):
    saving.dispatch(Select("lv0"))
    assert b"highlight" not in given(saving, Saved("svg"))[1]
    root = ElementTree.fromstring(given(saving, Saved("svg", has_highlight=True))[1])
    framed = [one for one in root.iter() if any(c.get("class") == "highlight" for c in one)]
    assert [one.get("data-node") for one in framed] == ["lv0"]


def test_two_stages_are_saved_side_by_side_while_they_are_compared(saving):
    saving.dispatch(Compare("0"))
    name, content = given(saving, Saved("svg"))
    assert name == "main-0-1.svg"
    sides = [one.get("class") for one in ElementTree.fromstring(content).iter()]
    assert {"side before", "side after"} <= set(sides)
    saving.dispatch(Save(Saved("dot")))
    assert "'.dot'" in saving.said
    assert saving.state.message.is_error


def test_the_script_of_the_current_stage_comes_with_its_arrays(saving):
    saving.press("Save as Python")
    name, content = given(saving)
    assert name == "main-1.zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["main-1.py", "main-1.npz"]
        text = archive.read("main-1.py").decode()
        arrays = np.load(io.BytesIO(archive.read("main-1.npz")))
        assert {one.shape for one in arrays.values()} == {
            one.shape for one in mlp_params().values()
        }
    assert "np.load('main-1.npz')" in text


def test_a_script_without_arrays_is_one_file_and_can_be_copied(saving):
    saving.dispatch(Checkout("0"))
    saving.press("Save as Python")
    name, content = given(saving)
    assert name == "main-0.py"
    saving.press("Copy as Python")
    assert saving.state.clipboard.text == content.decode()
