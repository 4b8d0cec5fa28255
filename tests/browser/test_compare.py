"""Two stages beside each other, with a kernel and without."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

FUSING = "fused.checkout('3')"
LEGIBLE = re.compile(r"^([89]\d|1\d\d) %")
"""The words of a zoom at which text can be read."""


@pytest.fixture
def viewer(offline: Any) -> Any:
    """FuseOps, compared with the stage before."""
    viewer = offline.show(FUSING)
    viewer.picture().focus()
    offline.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    return viewer


@pytest.fixture
def live(lab: Any) -> Any:
    """FuseOps, compared with LegalizeOps."""
    viewer = lab.show(FUSING)
    viewer.stage("LegalizeOps").hover()
    viewer.stage("LegalizeOps").locator(".irviz-pin").first.click()
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    return viewer


def changes(viewer: Any) -> Any:
    return viewer.root.get_by_role("region", name="Changes")


def test_before_is_left_of_after_and_both_are_equally_large(viewer: Any) -> None:
    captions = viewer.root.locator(".irviz-caption")
    expect(captions.first).to_contain_text("before")
    expect(captions.first).to_contain_text("2 AnnotateTIROpPattern")
    expect(captions.last).to_contain_text("after")
    expect(captions.last).to_contain_text("3 FuseOps")
    expect(viewer.root.locator(".irviz-crumb-stage")).to_have_count(0)
    left, right = (viewer.picture(side).bounding_box() for side in ("reference", "current"))
    assert left["x"] + left["width"] <= right["x"]
    assert left["y"] == right["y"]
    assert left["height"] == right["height"]
    assert abs(left["width"] - right["width"]) < 4


def test_in_a_cell_the_row_of_buttons_hides_nothing_of_what_is_fitted(live: Any) -> None:
    buttons = live.root.get_by_role("group", name="Zoom").bounding_box()
    for _ in range(2):  # as far as text can be read, and all of it
        live.button("Fit").click()
        for side in ("reference", "current"):
            lowest = (
                live.picture(side)
                .locator("svg.irviz:not(.irviz-marks) .node")
                .evaluate_all(
                    "all => Math.max(...all.map(one => one.getBoundingClientRect().bottom))"
                )
            )
            assert lowest <= buttons["y"]


def test_what_stays_is_in_the_same_place_on_both_sides(viewer: Any) -> None:
    for name in ("x", "w0", "b1"):
        left = viewer.node(name, "reference").bounding_box()
        right = viewer.node(name).bounding_box()
        panes = [viewer.picture(side).bounding_box() for side in ("reference", "current")]
        assert abs((left["x"] - panes[0]["x"]) - (right["x"] - panes[1]["x"])) < 2
        assert abs(left["y"] - right["y"]) < 2


def test_both_pictures_are_zoomed_and_moved_together(viewer: Any) -> None:
    viewer.button("Zoom in").click()
    transforms = viewer.root.locator(".irviz-canvas-layer").evaluate_all(
        "all => all.map(one => one.style.transform)"
    )
    assert len(transforms) == 2
    assert transforms[0] == transforms[1]


@pytest.fixture
def planned(offline: Any) -> Any:
    """The comparison of a large module with its plan of memory, whose storages come first."""
    passes = "'LegalizeOps', 'CallTIRRewrite', 'StaticPlanBlockMemory'"
    viewer = offline.show(f"made_by(irviz.Session(chain(60)), {passes})")
    viewer.picture().focus()
    offline.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    viewer.picture().focus()
    offline.page.keyboard.press("0")
    expect(viewer.root.locator(".irviz-zoom-percent")).to_have_text(re.compile(r"^\d %|^[1-4]\d %"))
    return viewer


def test_both_pictures_begin_at_the_same_place(offline: Any, planned: Any) -> None:
    offline.page.keyboard.press("0")  # as much as can be read
    expect(planned.root.locator(".irviz-zoom-percent")).to_have_text(LEGIBLE)
    transforms = planned.root.locator(".irviz-canvas-layer").evaluate_all(
        "all => all.map(one => one.style.transform)"
    )
    assert transforms[0] == transforms[1]


def test_a_change_is_gone_to_where_all_is_seen_from_afar(offline: Any, planned: Any) -> None:
    offline.page.keyboard.press("n")
    expect(changes(planned)).to_contain_text("1 of")
    expect(planned.root.locator(".irviz-zoom-percent")).to_have_text(LEGIBLE)


def test_fit_leaves_the_change_that_was_gone_to(offline: Any, planned: Any) -> None:
    percent = planned.root.locator(".irviz-zoom-percent")
    for key in "0nn":
        offline.page.keyboard.press(key)
        expect(percent).to_have_text(LEGIBLE)
    offline.page.keyboard.press("0")
    expect(percent).not_to_have_text(LEGIBLE)


def test_what_became_one_is_said_and_gone_to_with_keys(offline: Any, viewer: Any) -> None:
    bar = changes(viewer)
    expect(bar).to_contain_text("5 → 2 fused")
    expect(bar).to_contain_text("2 places")
    viewer.picture().focus()
    offline.page.keyboard.press("n")
    expect(bar).to_contain_text("1 of 2")
    expect(bar).to_contain_text("lv0, lv1, lv2 → lv")
    for side, count in (("reference", 3), ("current", 1)):
        pulses = viewer.picture(side).locator(".irviz-mark-pulse .irviz-outline")
        expect(pulses).to_have_count(count)
    offline.page.keyboard.press("n")
    expect(bar).to_contain_text("2 of 2")
    offline.page.keyboard.press("n")
    expect(bar).to_contain_text("1 of 2")
    offline.page.keyboard.press("p")
    expect(bar).to_contain_text("2 of 2")


def test_a_key_for_changes_says_where_they_are_when_nothing_is_compared(offline: Any) -> None:
    viewer = offline.show("fused")
    viewer.picture().focus()
    offline.page.keyboard.press("n")
    expect(viewer.root.get_by_role("status")).to_contain_text("d compares")


def test_what_is_selected_is_selected_on_both_sides(viewer: Any) -> None:
    viewer.click("lv")
    expect(viewer.marked("selected", "reference")).to_have_count(3)
    expect(changes(viewer)).to_contain_text("1 of 2")
    viewer.click("w0", "reference")
    expect(viewer.marked("selected")).to_have_count(1)
    assert viewer.marked("selected").get_attribute("data-node") == "w0"


def test_what_is_pointed_at_is_seen_on_both_sides(viewer: Any) -> None:
    viewer.node("lv1", "reference").hover()
    expect(viewer.picture().locator(".irviz-mark-near [data-node='lv']").first).to_be_attached()


def test_the_sides_are_swapped_and_the_comparison_ended(live: Any) -> None:
    live.button("Swap A and B").click()
    captions = live.root.locator(".irviz-caption")
    expect(captions.first).to_contain_text("3 FuseOps")
    expect(captions.last).to_contain_text("1 LegalizeOps")
    live.button("End the comparison").click()
    expect(captions).to_have_count(1)


def test_a_stage_to_compare_with_is_chosen_from_a_menu(live: Any) -> None:
    live.root.locator(".irviz-compare [title^='A, before']").click()
    live.choose("0  initial module")
    expect(live.root.locator(".irviz-caption").first).to_contain_text("0 initial module")


def test_the_other_side_can_be_shown_by_its_pin(live: Any) -> None:
    row = live.stage("FuseTIR")
    row.hover()
    row.locator(".irviz-pin").last.click()
    expect(live.root.locator(".irviz-caption").last).to_contain_text("4 FuseTIR")
    expect(live.root.locator(".irviz-caption").first).to_contain_text("1 LegalizeOps")


def test_the_texts_of_both_stages_are_beside_each_other_and_in_step(viewer: Any) -> None:
    viewer.button("Split").click()
    expect(viewer.script.locator(".cm-editor")).to_have_count(2)
    expect(viewer.script).to_contain_text("A before 2 AnnotateTIROpPattern")
    expect(viewer.script).to_contain_text("B after 3 FuseOps")
    differences = viewer.script.get_by_role("status")
    expect(differences).to_contain_text("difference")
    viewer.script.get_by_role("button", name="Next difference").click()
    expect(differences).to_contain_text("1 of")


PAIRS = """() => {
    const [before, after] = [...document.querySelectorAll('.cm-editor')].map(text => new Map(
        [...text.querySelectorAll('.cm-line')].map(
            line => [line.textContent.trim(), line.getBoundingClientRect().toJSON()]
        ).filter(([words]) => words.startsWith('lv'))
    ));
    return [...before].flatMap(([words, one]) => after.has(words) ? [[one, after.get(words)]] : []);
}"""
ARE_ALIGNED = f"""() => {{
    const pairs = ({PAIRS})();
    return pairs.length > 10 && pairs.every(([one, other]) => Math.abs(one.top - other.top) < 2);
}}"""


def test_lines_that_are_indented_otherwise_stand_beside_each_other(offline: Any) -> None:
    viewer = offline.show("made_by(irviz.Session(stack(12)), 'LegalizeOps', 'ToNonDataflow')")
    viewer.picture().focus()
    offline.page.keyboard.press("d")
    viewer.button("Text").click()
    expect(viewer.script.locator(".cm-editor")).to_have_count(2)
    wrapped = 0
    for width in range(1600, 1440, -40):
        offline.page.set_viewport_size({"width": width, "height": 900})
        offline.page.wait_for_function(ARE_ALIGNED)
        pairs = offline.page.evaluate(PAIRS)
        wrapped += sum(one["height"] != other["height"] for one, other in pairs)
    assert wrapped, "no line is wrapped otherwise than its other"


FAR = "softmax30"
"""A function far below what is first seen of a text."""
LINES_OF_IT = """name => [...document.querySelectorAll('.irviz-script .cm-editor')].map(one =>
    [...one.querySelectorAll('.cm-line')].filter(line => line.textContent.includes(`def ${name}(`))
        .map(line => line.getBoundingClientRect().top
            - one.closest('.irviz-script-body').getBoundingClientRect().top)[0] ?? -1)"""


def test_a_function_far_below_is_in_sight_in_both_texts_and_at_one_height(lab: Any) -> None:
    passes = "'LegalizeOps', 'LowerInitBlock', 'ConvertBlocksToOpaque', 'LowerOpaqueBlock'"
    viewer = lab.show(f"made_by(irviz.Session(many_softmax(40)), {passes})")
    viewer.root.get_by_role("navigation", name="Functions").get_by_text(FAR, exact=True).click()
    loops = viewer.root.get_by_role("application", name=f"loops of {FAR}")
    loops.press("d")
    for layout in ("Text", "Split"):
        viewer.button(layout, exact=True).click()
        expect(viewer.script.locator(".cm-editor")).to_have_count(2)
        body = viewer.script.locator(".irviz-script-body").bounding_box()
        lab.page.wait_for_timeout(1000)  # nothing says when all heights are known
        mine, theirs = lab.page.evaluate(LINES_OF_IT, FAR)
        assert abs(mine - theirs) <= 2
        assert 0 <= mine < body["height"]


MEETING = """picture => {
    const box = one => one.getBoundingClientRect();
    const all = what => [...picture.querySelectorAll(`svg.irviz:not(.irviz-marks) ${what}`)];
    const names = all('.node .name').map(box);
    const marks = all('.change > rect:not(.shape)').map(box).filter(one => one.width);
    const meets = (one, other) => one.left < other.right && other.left < one.right &&
        one.top < other.bottom && other.top < one.bottom;
    const boxes = all('rect.shape').map(box);
    const isIn = (one, other) => other.left <= one.left && one.right <= other.right;
    const crossing = names.filter(one => boxes.some(b => meets(one, b) && !isIn(one, b)));
    const meeting = names.filter(one => marks.some(m => meets(one, m)));
    return [names.length, marks.length, meeting.length, crossing.length];
}"""


def test_names_that_are_enlarged_from_afar_leave_room_for_the_marks_of_changes(
    offline: Any,
) -> None:
    """From so far that the marks could not be read the outlines alone tell what changed."""
    viewer = offline.show("made_by(irviz.Session(chain(2, [pooled])), 'LegalizeOps')")
    viewer.picture().focus()
    offline.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    for percent, distance in ((65, "middle"), (50, "far")):
        while viewer.percent >= percent:
            offline.page.keyboard.press("-")
        expect(viewer.picture()).to_have_attribute("data-distance", distance)
        names, marks, meeting, crossing = viewer.picture().evaluate(MEETING)
        assert names > 0
        assert (marks > 0) == (distance == "middle")
        assert (meeting, crossing) == (0, 0), f"at {viewer.percent} %"


def test_the_stages_leave_both_graphs_room_until_they_are_pointed_at_anew(offline: Any) -> None:
    viewer = offline.show("fused.checkout('0')")
    rail = viewer.root.locator(".irviz-rail")
    viewer.stage("FuseOps").click()  # the pointer stays there
    expect(viewer.current_stage).to_contain_text("FuseOps")
    offline.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    left = viewer.picture("reference").bounding_box()
    stages = rail.bounding_box()
    assert stages["x"] + stages["width"] <= left["x"] + 1
    row = viewer.stage("FuseOps")
    name, pin = row.locator(".irviz-stage-label"), row.locator(".irviz-pin[data-pinned]")
    assert name.bounding_box()["width"] > 30
    assert pin.bounding_box()["x"] + 18 < stages["x"] + stages["width"]
    viewer.picture().hover()
    rail.hover()
    offline.page.wait_for_function(
        "([rail, width]) => rail.getBoundingClientRect().width > width",
        arg=[rail.element_handle(), 1.4 * stages["width"]],
    )
    viewer.stage("LegalizeOps").click()  # the pointer stays there, and what was chosen is seen
    expect(viewer.current_stage).to_contain_text("LegalizeOps")
    offline.page.wait_for_function(
        "([rail, width]) => rail.getBoundingClientRect().width <= width",
        arg=[rail.element_handle(), stages["width"]],
    )


def test_a_long_signature_that_stays_does_not_hide_what_differs_below_it(offline: Any) -> None:
    viewer = offline.show("made_by(irviz.Session(stack(30)), 'LegalizeOps')")
    viewer.picture().focus()
    offline.page.keyboard.press("d")
    viewer.button("Text").click()
    lines = viewer.script.locator(".cm-merge-b .cm-line")
    signature, row = lines.filter(has_text="def main"), lines.filter(has_text="R.dataflow")
    height = row.bounding_box()["height"]
    assert signature.bounding_box()["height"] < 2.5 * height
    viewer.button("Only differences").click()
    expect(row).to_have_count(1)
    assert signature.bounding_box()["height"] > 8 * height
