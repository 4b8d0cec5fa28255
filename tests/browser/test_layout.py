"""Where the parts are, how large they are, and how they look, in a real JupyterLab."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect


def brightness(element: Any) -> float:
    """How light it is, of what is behind the text: 0 for black, 1 for white."""
    found = element.evaluate(
        """one => {
            while (/rgba.*, 0\\)/.test(getComputedStyle(one).backgroundColor)) {
                one = one.firstElementChild;
            }
            const [r, g, b] = getComputedStyle(one).backgroundColor.match(/[\\d.]+/g).map(Number);
            return (r + g + b) / 3 / 255;
        }"""
    )
    return float(found)


@pytest.fixture
def viewer(lab: Any) -> Any:
    return lab.show("fused.checkout('0')")


@pytest.fixture
def resized(lab: Any) -> Iterator[Any]:
    """Give the window other sizes; at the end it has its own again."""
    yield lambda width, height=900: lab.page.set_viewport_size({"width": width, "height": height})
    lab.page.set_viewport_size({"width": 1400, "height": 900})


def narrowed(lab: Any, viewer: Any, width: int) -> None:
    """Give the cell's output this width."""
    viewer.root.evaluate("(one, px) => { one.parentElement.style.width = `${px}px` }", width)
    lab.page.wait_for_function(
        "([one, px]) => Math.abs(one.getBoundingClientRect().width - px) < 2",
        arg=[viewer.root.element_handle(), width],
    )


def test_no_click_changes_the_height_of_the_cell(lab: Any, viewer: Any) -> None:
    assert viewer.height() == pytest.approx(560, abs=2)
    viewer.click("lv2")
    expect(viewer.title).to_have_text("lv2")
    heights = [viewer.height()]
    for name in ("Transform", "Schedule", "Run", "Profile", "Save", "Node"):
        viewer.tab(name)
        heights.append(viewer.height())
    viewer.button("Split").click()
    heights.append(viewer.height())
    viewer.stage("FuseOps").click()
    expect(viewer.current_stage).to_contain_text("FuseOps")
    heights.append(viewer.height())
    viewer.picture().focus()
    lab.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    heights.append(viewer.height())
    assert set(heights) == {heights[0]}
    cell = viewer.root.evaluate(
        "one => one.closest('.jp-OutputArea-output').getBoundingClientRect().height"
    )
    assert cell < 640


def test_a_wide_cell_has_stages_graph_and_inspector_beside_each_other(
    lab: Any, viewer: Any
) -> None:
    narrowed(lab, viewer, 1100)
    rail = viewer.root.locator(".irviz-rail").bounding_box()
    graph = viewer.picture().bounding_box()
    side = viewer.inspector.bounding_box()
    assert rail["x"] + rail["width"] <= graph["x"]
    assert graph["x"] + graph["width"] <= side["x"]
    assert graph["width"] > 500


def test_in_a_cell_of_medium_width_the_inspector_is_a_drawer(lab: Any, viewer: Any) -> None:
    narrowed(lab, viewer, 900)
    expect(viewer.inspector).to_have_count(0)
    assert viewer.picture().bounding_box()["width"] > 850
    viewer.click("lv2")
    expect(viewer.title).to_have_text("lv2")
    graph, side = viewer.picture().bounding_box(), viewer.inspector.bounding_box()
    assert graph["width"] > 850  # the drawer lies over it
    assert side["x"] > graph["x"] + 400
    lab.page.keyboard.press("Escape")
    expect(viewer.inspector).to_have_count(0)
    viewer.picture().focus()
    lab.page.keyboard.press("i")
    expect(viewer.inspector).to_be_visible()


def test_in_a_narrow_cell_the_drawer_comes_from_below_and_sides_are_flipped(
    lab: Any, viewer: Any
) -> None:
    narrowed(lab, viewer, 600)
    viewer.click("lv2")
    graph, side = viewer.root.bounding_box(), viewer.inspector.bounding_box()
    assert side["width"] > 590
    assert side["y"] > graph["y"] + 200
    assert viewer.height() == pytest.approx(560, abs=2)
    lab.page.keyboard.press("Escape")
    viewer.stage("FuseOps").click()
    expect(viewer.current_stage).to_contain_text("FuseOps")
    viewer.picture().focus()
    lab.page.keyboard.press("d")
    caption = viewer.root.locator(".irviz-caption")
    expect(caption).to_have_count(1)
    expect(caption).to_contain_text("after")
    viewer.button("after").click()
    expect(caption).to_contain_text("before")
    expect(caption).to_contain_text("2 AnnotateTIROpPattern")


@pytest.mark.parametrize("width", [1200, 900, 600])
def test_nothing_is_wider_than_the_cell(lab: Any, viewer: Any, width: int) -> None:
    narrowed(lab, viewer, width)
    assert viewer.root.evaluate("one => one.scrollWidth <= one.clientWidth + 1")
    outside = viewer.root.evaluate(
        """one => [...one.querySelectorAll('.irviz-toolbar button, .irviz-body > *')]
            .filter(part => part.getClientRects().length)
            .filter(part => part.getBoundingClientRect().right
                > one.getBoundingClientRect().right + 1).map(part => part.outerHTML)"""
    )
    assert outside == []


def test_splitters_are_moved_with_keys_and_with_the_mouse(lab: Any, viewer: Any) -> None:
    rail = viewer.root.locator(".irviz-rail")
    splitter = viewer.root.get_by_role("separator", name="Width of the stages")
    before = rail.bounding_box()["width"]
    splitter.focus()
    for _ in range(2):
        lab.page.keyboard.press("ArrowRight")
    assert rail.bounding_box()["width"] == pytest.approx(before + 48, abs=2)
    expect(splitter).to_have_attribute("aria-valuenow", str(round(before + 48)))
    box = splitter.bounding_box()
    lab.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    lab.page.mouse.down()
    lab.page.mouse.move(box["x"] + box["width"] / 2 - 40, box["y"] + 100, steps=3)
    lab.page.mouse.up()
    assert rail.bounding_box()["width"] == pytest.approx(before + 8, abs=3)
    splitter.focus()
    lab.page.keyboard.press("Home")
    expect(splitter).to_have_attribute("aria-valuenow", "160")
    lab.page.keyboard.press("Enter")  # the usual width


def test_the_height_of_a_cell_is_changed_by_its_handle_alone(lab: Any, viewer: Any) -> None:
    handle = viewer.root.get_by_role("separator", name="Height", exact=True)
    handle.focus()
    lab.page.keyboard.press("ArrowDown")
    assert viewer.height() == pytest.approx(584, abs=2)
    lab.page.keyboard.press("Enter")
    assert viewer.height() == pytest.approx(560, abs=2)


def test_a_height_can_be_asked_for(lab: Any) -> None:
    cell = lab.run("irviz.explore(mlp, height=420)")
    viewer = type(lab.show("mlp"))(lab.page, cell)
    assert viewer.height() == pytest.approx(420, abs=2)


def test_full_screen_and_back(lab: Any, viewer: Any) -> None:
    viewer.picture().focus()
    lab.page.keyboard.press("f")
    lab.page.wait_for_function(
        "one => one.getBoundingClientRect().height >= window.innerHeight - 2",
        arg=viewer.root.element_handle(),
    )
    viewer.picture().focus()
    lab.page.keyboard.press("f")
    lab.page.wait_for_function(
        "one => one.getBoundingClientRect().height < 600", arg=viewer.root.element_handle()
    )


def test_large_type_for_a_projector(viewer: Any) -> None:
    label = viewer.stages.first.locator(".irviz-stage-label")
    size = "one => parseFloat(getComputedStyle(one).fontSize)"
    before = label.evaluate(size)
    viewer.button("More", exact=True).click()
    viewer.choose("Large type")
    assert label.evaluate(size) >= 1.2 * before


def test_no_text_of_the_viewer_is_smaller_than_11_px(viewer: Any) -> None:
    viewer.click("lv2")
    small = viewer.root.evaluate(
        """root => [...root.querySelectorAll('*')].filter(one => !one.closest('svg')
            && one.getClientRects().length
            && [...one.childNodes].some(part => part.nodeType === 3 && part.data.trim())
            && parseFloat(getComputedStyle(one).fontSize) < 11).map(one => one.outerHTML)"""
    )
    assert small == []


def test_the_keys_are_listed(lab: Any, viewer: Any) -> None:
    viewer.picture().focus()
    lab.page.keyboard.press("?")
    keys = viewer.root.get_by_role("dialog", name="Keys")
    expect(keys).to_be_visible()
    expect(keys).to_contain_text("compare with the stage before")
    lab.page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_the_theme_of_the_notebook_is_followed(lab: Any, viewer: Any) -> None:
    try:
        lab.theme("JupyterLab Dark")
        expect(viewer.root).to_have_attribute("data-theme", "dark")
        assert brightness(viewer.root) < 0.3
        assert lab.value("explorer.store.state.is_dark") is True
    finally:
        lab.theme("JupyterLab Light")
    expect(viewer.root).to_have_attribute("data-theme", "light")
    assert brightness(viewer.root) > 0.8
