"""The forms that act, in the drawer of the viewer: bind, pass, swap, run, save."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

LECTURE = "irviz.Session(MyModule, params=params, inputs=images, labels=labels)"


@pytest.fixture
def viewer(lab: Any) -> Any:
    """The course's module with its parameters and ten digits."""
    return lab.show(LECTURE)


def saved(lab: Any, button: Any) -> Any:
    """Press a button that lets the browser save a file; return the download."""
    with lab.page.expect_download() as found:
        button.click()
    return found.value


def test_bind_swap_run_compare(viewer: Any) -> None:
    viewer.tab("Transform").get_by_role("button", name="Bind parameters").click()
    expect(viewer.stage("BindParams")).to_contain_text("= equal")
    expect(viewer.stages.first).to_contain_text("reference")
    expect(viewer.node("w0")).to_have_count(0)
    assert viewer.picture().locator("svg.irviz:not(.irviz-marks) .node.constant").count() == 4

    viewer.tab("Node")
    viewer.click("lv1")
    form = viewer.root.get_by_role("tabpanel", name="Node")
    expect(form).to_contain_text("that fit compute the same")
    offered = form.locator(".irviz-swap-to option").all_inner_texts()
    assert offered[0] == "env.relu"
    assert {"numpy.relu", "topi.relu"} <= set(offered)
    assert "numpy.tanh" not in offered
    form.get_by_role("button", name=re.compile(r"Replace$")).first.click()
    swapped = viewer.stage("swap relu0 → env.relu")
    expect(swapped).to_contain_text("= equal")
    expect(viewer.node("lv1")).to_contain_text("env.relu")

    run = viewer.tab("Results")
    expect(run).to_contain_text("predicted class")
    expect(swapped).to_have_attribute("title", re.compile("of 10 right"))

    viewer.stages.first.hover()
    viewer.stages.first.locator(".irviz-pin").first.click()
    expect(viewer.root.locator(".irviz-verdict")).to_contain_text("equal")
    expect(viewer.node("lv1", "reference")).to_contain_text("relu0")
    expect(viewer.node("w0", "reference")).to_be_visible()


def test_a_letter_does_what_it_stands_for_where_a_button_of_a_form_has_the_focus(
    lab: Any, viewer: Any
) -> None:
    viewer.tab("Transform").get_by_role("button", name="Bind parameters").focus()
    lab.page.keyboard.press("?")
    expect(lab.page.get_by_role("dialog")).to_be_visible()


def test_passes_that_fit_the_stage_are_offered_first(viewer: Any) -> None:
    form = viewer.tab("Transform")
    expect(form.locator(".irviz-pass-group select")).to_have_value("suggested for this stage")
    offered = form.get_by_role("listbox", name="Passes").get_by_role("option")
    expect(offered.first).to_be_visible()
    expect(offered.filter(has_text="CSE")).to_have_count(0)
    assert offered.count() < 40
    form.locator(".irviz-pass-name input").fill("vectorize")
    expect(offered.first).to_contain_text("Vectorize")  # words are looked for in all passes


def test_enter_takes_the_first_pass_that_fits_however_fast_and_arrows_another(
    lab: Any, viewer: Any
) -> None:
    form = viewer.tab("Transform")
    name = form.get_by_role("combobox", name="Pass")
    cards = form.get_by_role("listbox", name="Passes").get_by_role("option")
    name.fill("fuse")
    name.press("Enter")
    expect(name).to_have_value("FuseOps")
    expect(cards).to_have_count(1)  # the others make room for its form
    expect(cards).to_contain_text("This pass groups bindings")
    expect(cards).to_have_attribute("aria-selected", "true")
    expect(form.locator(".irviz-pass-fuse_opt_level")).to_be_visible()
    name.fill("fuse")
    expect(cards.nth(1)).to_contain_text("FuseTIR")
    name.press("ArrowDown")
    name.press("Enter")
    expect(name).to_have_value("FuseTIR")
    form.get_by_role("button", name="Apply pass").click()
    expect(viewer.current_stage).to_contain_text("FuseTIR")
    assert lab.value("len(explorer.session.stages)") == 2


def test_parameters_to_bind_are_chosen_one_by_one_or_all_at_once(lab: Any, viewer: Any) -> None:
    form = viewer.tab("Transform")
    names = form.get_by_role("group", name="parameters to bind")
    names.get_by_role("button", name="none").click()
    form.get_by_role("button", name="Bind parameters").click()
    expect(form.locator(".irviz-error")).to_contain_text("no parameter is chosen")
    names.get_by_role("button", name="w1").click()
    expect(names.get_by_role("button", name="w1")).to_have_attribute("aria-pressed", "true")
    expect(form.locator(".irviz-error")).to_have_count(0)
    form.get_by_role("button", name="Bind parameters").click()
    expect(viewer.current_stage).to_contain_text("BindParams w1")
    lab.expect_value("len(explorer.session.current.module['main'].params)", 4)


def test_a_pass_is_tried_before_it_is_applied(lab: Any, viewer: Any) -> None:
    lab.do("explorer.session = irviz.Session(MyModuleHighLevel)")
    form = viewer.tab("Transform")
    form.locator(".irviz-pass-name input").fill("LegalizeOps")
    form.get_by_role("button", name="Preview").click()
    expect(form.locator(".irviz-pass-preview")).to_contain_text("it would change")
    assert lab.value("len(explorer.session.stages)") == 1
    form.get_by_role("button", name="Apply pass").click()
    expect(viewer.current_stage).to_contain_text("LegalizeOps")
    assert lab.value("len(explorer.session.stages)") == 2


def test_a_pass_that_fails_leaves_a_stage_with_its_error_and_the_rest_alive(
    lab: Any, viewer: Any
) -> None:
    form = viewer.tab("Transform")
    name = form.locator(".irviz-pass-name input")
    button = form.get_by_role("button", name="Apply pass")
    name.fill("MergeCompositeFunctions")
    button.click()
    expect(viewer.current_stage).to_contain_text("failed")
    expect(viewer.said).to_contain_text("MergeCompositeFunctions failed")
    viewer.stages.first.click()
    expect(viewer.stages.first).to_have_attribute("aria-selected", "true")
    name.fill("CanonicalizeBindings")
    button.click()
    expect(viewer.current_stage).to_contain_text("= equal")
    assert lab.value("len(explorer.session.stages)") == 3


def test_a_pass_that_is_none_is_said_at_its_field_which_gets_the_focus(viewer: Any) -> None:
    form = viewer.tab("Transform")
    name = form.locator(".irviz-pass-name input")
    name.fill("NoSuchPass")
    form.get_by_role("button", name="Apply pass").click()
    expect(name).to_be_focused()
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(name).to_have_accessible_description(re.compile("no pass has 'NoSuchPass'"))
    expect(viewer.said).to_have_text("")
    name.fill("FuseOps")
    expect(name).not_to_have_attribute("aria-invalid", "true")
    expect(form.locator(".irviz-error")).to_have_count(0)


def test_a_branch_is_replayed_behind_another_stage(lab: Any) -> None:
    viewer = lab.show("made_by(mlp, 'LegalizeOps').checkout('0').apply('ToNonDataflow')")
    form = viewer.tab("Transform")
    form.locator(".irviz-replay-on select").select_option(label="1  LegalizeOps")
    form.get_by_role("button", name="Replay").click()
    expect(viewer.stages).to_have_count(4)
    assert lab.value("explorer.session.lineage()") == ["0", "1", "3"]


def test_the_browser_saves_the_picture_with_a_title(lab: Any, viewer: Any) -> None:
    viewer.click("lv1")
    form = viewer.tab("Save")
    form.locator(".irviz-save-title input").fill("relu & <b>friends</b>")
    form.locator(".irviz-save-title input").press("Tab")
    download = saved(lab, form.get_by_role("button", name="Save picture"))
    assert download.suggested_filename == "main-0.svg"
    drawn = ElementTree.parse(download.path()).getroot()
    assert "relu & <b>friends</b>" in "".join(drawn.itertext())
    assert drawn.find(".//*[@data-node='lv1']") is not None


def test_the_browser_saves_two_stages_side_by_side(lab: Any) -> None:
    viewer = lab.show("fused")
    viewer.picture().focus()
    lab.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    form = viewer.tab("Save")
    for kind, begins in (("PDF", b"%PDF"), ("PNG", b"\x89PNG")):
        form.locator(".irviz-save-format select").select_option(kind)
        download = saved(lab, form.get_by_role("button", name="Save picture"))
        assert download.suggested_filename == f"main-3-4.{kind.lower()}"
        assert download.path().read_bytes().startswith(begins)


def test_the_shown_stage_is_copied_and_saved_as_a_script(lab: Any) -> None:
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    viewer = lab.show("mlp.apply('ToNonDataflow')")
    form = viewer.tab("Save")
    form.get_by_role("button", name="Copy as Python").click()
    expect(viewer.root).to_contain_text("lines of Python")
    copied = lab.page.evaluate("() => navigator.clipboard.readText()")
    assert copied == lab.value("explorer.session.to_python()")
    assert "mod = relax.transform.ToNonDataflow()(mod)" in copied
    download = saved(lab, form.get_by_role("button", name="Save as Python"))
    assert download.path().read_text(encoding="utf-8") == copied


def test_a_saved_session_opens_again_with_its_stages(lab: Any) -> None:
    viewer = lab.show("fused")
    form = viewer.tab("Save")
    download = saved(lab, form.get_by_role("button", name="Save session"))
    assert download.suggested_filename == "session.irviz"
    labels = "[s.label for s in irviz.Session.load({!r}).stages]"
    assert lab.value(labels.format(str(download.path()))) == lab.value(
        "[s.label for s in fused.stages]"
    )
