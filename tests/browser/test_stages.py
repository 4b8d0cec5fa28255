"""The rail of stages, with a kernel and without."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

PIPED = "piped()"


def names(viewer: Any) -> list[str]:
    return [str(one) for one in viewer.stages.locator(".irviz-stage-label").all_inner_texts()]


def levels(viewer: Any) -> list[str]:
    return [str(one.get_attribute("aria-level")) for one in viewer.stages.all()]


def test_stages_are_a_tree_with_the_passes_around_them(offline: Any) -> None:
    viewer = offline.show(PIPED)
    assert names(viewer)[:4] == ["initial module", "f_zero_pipeline", "sequential", "LegalizeOps"]
    assert levels(viewer)[:4] == ["1", "1", "2", "3"]
    heading = viewer.stages.filter(has_text="f_zero_pipeline")
    expect(heading).to_have_attribute("aria-expanded", "true")
    expect(viewer.current_stage).to_have_count(1)
    expect(viewer.stage("LegalizeOps").locator(".irviz-delta")).to_have_text("7")


def test_the_heading_of_a_pipeline_folds_with_a_click_and_with_keys(offline: Any) -> None:
    viewer = offline.show(PIPED)
    viewer.stages.first.click()
    expect(viewer.stages.first).to_have_attribute("aria-selected", "true")
    pipeline = viewer.stages.filter(has_text="f_zero_pipeline")
    pipeline.click()
    expect(pipeline).to_have_attribute("aria-expanded", "false")
    assert names(viewer) == ["initial module", "f_zero_pipeline"]
    expect(pipeline).to_contain_text("11")  # so many are hidden
    viewer.stages.first.click()
    press = offline.page.keyboard.press
    press("ArrowDown")
    expect(pipeline).to_be_focused()
    press("ArrowRight")
    expect(pipeline).to_have_attribute("aria-expanded", "true")
    press("ArrowLeft")
    expect(pipeline).to_have_attribute("aria-expanded", "false")
    press("Enter")
    expect(pipeline).to_have_attribute("aria-expanded", "true")
    expect(pipeline).to_be_focused()


def test_a_stage_that_is_shown_is_unfolded(offline: Any) -> None:
    viewer = offline.show(PIPED)
    viewer.stages.first.click()
    expect(viewer.current_stage).to_contain_text("initial")
    viewer.stages.filter(has_text="f_zero_pipeline").click()
    assert len(names(viewer)) == 2
    offline.page.keyboard.press("Alt+ArrowRight")
    expect(viewer.current_stage).to_contain_text("LegalizeOps")
    assert "FuseOps" in names(viewer)


def test_passes_that_changed_nothing_can_be_hidden(offline: Any) -> None:
    viewer = offline.show(PIPED)
    expect(viewer.stage("FoldConstant")).to_have_count(1)
    viewer.root.get_by_label("hide unchanged passes").check()
    expect(viewer.stage("FoldConstant")).to_have_count(0)
    expect(viewer.stage("LegalizeOps")).to_have_count(1)
    viewer.stage("FuseOps").click()
    expect(viewer.current_stage).to_contain_text("FuseOps")
    offline.page.keyboard.press("Alt+ArrowRight")  # past what is hidden
    expect(viewer.current_stage).to_contain_text("FuseTIRInner")


def test_stages_are_filtered_by_words(offline: Any) -> None:
    viewer = offline.show(PIPED)
    viewer.root.get_by_label("Filter stages").fill("fuse")
    expect(viewer.stage("FoldConstant")).to_have_count(0)
    assert {"FuseOps", "FuseTIRInner"} <= set(names(viewer))
    viewer.root.get_by_label("Filter stages").fill("")
    expect(viewer.stage("FoldConstant")).to_have_count(1)


def test_arrows_go_through_the_stages_from_wherever_the_focus_is(lab: Any) -> None:
    viewer = lab.show("fused")
    press = lab.page.keyboard.press
    viewer.stage("FuseOps").click()
    press("ArrowUp")
    expect(viewer.current_stage).to_contain_text("AnnotateTIROpPattern")
    press("End")
    expect(viewer.current_stage).to_contain_text("FuseTIR")
    viewer.click("lv")
    press("Alt+ArrowLeft")
    expect(viewer.current_stage).to_contain_text("FuseOps")
    press("Alt+ArrowRight")
    expect(viewer.current_stage).to_contain_text("FuseTIR")
    assert lab.value("explorer.session.current.id") == "4"


def test_keys_may_be_faster_than_the_kernel(lab: Any) -> None:
    viewer = lab.show("fused")
    viewer.picture().focus()
    for _ in range(3):
        lab.page.keyboard.press("Alt+ArrowLeft")
    expect(viewer.current_stage).to_contain_text("LegalizeOps")


def test_both_compared_stages_are_in_sight_in_the_list(offline: Any) -> None:
    viewer = offline.show(PIPED)
    offline.page.set_viewport_size({"width": 1280, "height": 460})
    stages = [viewer.root.locator(f"[data-stage='{number}']") for number in range(6)]
    viewer.stages.last.click()
    expect(stages[3]).not_to_be_in_viewport()
    while stages[3].get_attribute("aria-selected") != "true":
        offline.page.keyboard.press("Alt+ArrowLeft")
        offline.page.wait_for_timeout(50)
    expect(stages[2]).not_to_be_in_viewport(ratio=1)
    offline.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    for one in stages[2:4]:
        expect(one).to_be_in_viewport(ratio=1)


def test_what_a_step_added_is_emphasised(offline: Any) -> None:
    viewer = offline.show("fused.checkout('2')")
    viewer.picture().focus()
    offline.page.keyboard.press("Alt+ArrowRight")
    expect(viewer.current_stage).to_contain_text("FuseOps")
    expect(viewer.picture().locator(".irviz-mark-new .irviz-outline").first).to_be_attached()


def test_what_stays_in_the_next_stage_stays_in_its_place(offline: Any) -> None:
    viewer = offline.show("made_by(irviz.Session(stack(3)), 'LegalizeOps').checkout('0')")
    pane, zoom = viewer.picture().bounding_box(), viewer.zoom.inner_text()
    middle = pane["y"] + pane["height"] / 2
    boxes = {name: viewer.node(name).bounding_box() for name in ("lv", "lv1", "lv2", "lv3", "lv4")}
    nearest = min(
        boxes, key=lambda name: abs(boxes[name]["y"] + boxes[name]["height"] / 2 - middle)
    )
    viewer.picture().focus()
    offline.page.keyboard.press("Alt+ArrowRight")
    expect(viewer.current_stage).to_contain_text("LegalizeOps")
    assert viewer.zoom.inner_text() == zoom
    before, after = boxes[nearest], viewer.node(nearest).bounding_box()
    for start, length in (("x", "width"), ("y", "height")):
        moved = after[start] + after[length] / 2 - before[start] - before[length] / 2
        assert abs(moved) < 1, nearest


def test_a_stage_is_renamed_with_the_keyboard_and_its_name_is_text(lab: Any) -> None:
    viewer = lab.show("fused")
    viewer.stage("FuseOps").click()
    lab.page.keyboard.press("F2")  # while the kernel is asked for the stage
    field = viewer.root.get_by_label("Label of stage 3")
    expect(field).to_be_focused()
    field.fill("half a <b>la")
    lab.do("explorer.session = explorer.session.rename('1', 'other')")  # the rows come again
    expect(viewer.stage("other")).to_have_count(1)
    lab.page.keyboard.type("bel</b>")
    expect(field).to_have_value("half a <b>label</b>")
    lab.page.keyboard.press("Enter")
    expect(viewer.stage("half a <b>label</b>")).to_have_count(1)
    assert lab.value("explorer.session.current.label") == "half a <b>label</b>"


def test_a_stage_is_dropped_and_brought_back(lab: Any) -> None:
    viewer = lab.show("fused")
    viewer.stage("FuseOps").click()
    expect(viewer.current_stage).to_contain_text("FuseOps")
    viewer.button("Drop the shown stage").click()
    expect(viewer.stages).to_have_count(3)
    viewer.button("Undo").click()
    expect(viewer.stages).to_have_count(5)
    viewer.button("Redo").click()
    expect(viewer.stages).to_have_count(3)
    expect(viewer.button("Redo")).to_be_disabled()


def test_a_branch_is_joined_to_the_stage_that_it_was_made_from(offline: Any) -> None:
    """0 → 1 and 0 → 2: the lines lead from below 0 to both."""
    viewer = offline.show("mlp.apply('ToNonDataflow').checkout('0').apply('CanonicalizeBindings')")
    guides = viewer.stages.locator(".irviz-guides")
    assert guides.nth(0).locator("i").count() == 0
    for place in (1, 2):
        line = guides.nth(place).locator("i").last
        assert re.search("branch|end", line.get_attribute("class") or "")
        for part, side in (("::before", "Left"), ("::after", "Top")):
            width = f"one => getComputedStyle(one, '{part}').border{side}Width"
            assert line.evaluate(width) == "1px"
        expect(viewer.stages.nth(place)).to_have_attribute("title", re.compile("from stage 0"))


def test_the_functions_of_the_module_are_listed_and_one_is_shown(offline: Any) -> None:
    viewer = offline.show("mlp")
    functions = viewer.root.get_by_role("navigation", name="Functions")
    functions.get_by_role("button", name="relu0 PrimFunc").click()
    expect(functions.get_by_role("button", name="relu0")).to_have_attribute("aria-current", "true")
    crumbs = viewer.root.get_by_role("navigation", name="Where we are")
    expect(crumbs.get_by_role("button", name="relu0")).to_be_visible()


def test_the_menu_of_a_stage_is_opened_by_the_mouse_and_by_a_key(lab: Any) -> None:
    viewer = lab.show("fused")
    viewer.stage("LegalizeOps").click(button="right")
    expect(viewer.menu).to_have_accessible_name("Stage 1")
    viewer.choose("Compare the shown stage with this")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    viewer.current_stage.focus()
    lab.page.keyboard.press("Shift+F10")
    expect(viewer.menu).to_have_accessible_name("Stage 4")
    lab.page.keyboard.press("Escape")
    expect(viewer.menu).to_have_count(0)
    expect(viewer.current_stage).to_be_focused()


def test_keys_do_not_leak_into_the_notebook(lab: Any) -> None:
    viewer = lab.show("mlp")
    cells = lab.page.locator(".jp-Notebook .jp-Cell").count()
    for place in (
        lambda: viewer.stages.first.focus(),
        lambda: viewer.click("lv1"),
        lambda: viewer.root.get_by_role("tab", name="Node").focus(),
    ):
        place()
        for key in ("b", "a", "x", "m", "y", "Shift+Enter", "d"):
            lab.page.keyboard.press(key)
        viewer.tab("Results").get_by_role("button", name="Run").first.wait_for()
        assert lab.page.locator(".jp-Notebook .jp-Cell").count() == cells
