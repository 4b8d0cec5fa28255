"""Where the parts are, how large they are, and how they look, with a kernel and without."""

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
def viewer(offline: Any) -> Any:
    return offline.show("fused.checkout('0')")


@pytest.fixture
def live(lab: Any) -> Any:
    """The same with a kernel."""
    return lab.show("fused.checkout('0')")


@pytest.fixture
def resized(lab: Any) -> Iterator[Any]:
    """Give the window other sizes; at the end it has its own again."""
    yield lambda width, height=900: lab.page.set_viewport_size({"width": width, "height": height})
    lab.page.set_viewport_size({"width": 1400, "height": 900})


def narrowed(offline: Any, width: int) -> None:
    """Give the viewer this width."""
    offline.page.set_viewport_size({"width": width, "height": 620})


@pytest.mark.parametrize("width", [1400, 1000])
def test_in_a_cell_what_is_around_the_graph_takes_at_most_a_fifth(
    lab: Any, live: Any, resized: Any, width: int
) -> None:
    resized(width)
    for captions in (1, 2):
        expect(live.root.locator(".irviz-caption")).to_have_count(captions)
        graph = live.root.locator(".irviz-canvas").first.bounding_box()
        assert graph["height"] >= 0.8 * live.height()
        live.stage("FuseOps").click()
        expect(live.current_stage).to_contain_text("FuseOps")
        live.picture().focus()
        lab.page.keyboard.press("d")


def test_no_click_changes_the_height_of_the_cell(lab: Any, live: Any) -> None:
    assert live.height() == pytest.approx(560, abs=2)
    live.click("lv2")
    expect(live.title).to_have_text("lv2")
    heights = [live.height()]
    for name in ("Transform", "Schedule", "Results", "Profile", "Save", "Node"):
        live.tab(name)
        heights.append(live.height())
    live.button("Split").click()
    heights.append(live.height())
    live.stage("FuseOps").click()
    expect(live.current_stage).to_contain_text("FuseOps")
    heights.append(live.height())
    live.picture().focus()
    lab.page.keyboard.press("d")
    expect(live.root.locator(".irviz-caption")).to_have_count(2)
    heights.append(live.height())
    assert set(heights) == {heights[0]}
    cell = live.root.evaluate(
        "one => one.closest('.jp-OutputArea-output').getBoundingClientRect().height"
    )
    assert cell < 640


def test_a_wide_cell_has_stages_graph_and_inspector_beside_each_other(
    offline: Any, viewer: Any
) -> None:
    narrowed(offline, 1100)
    rail = viewer.root.locator(".irviz-rail").bounding_box()
    graph = viewer.picture().bounding_box()
    side = viewer.inspector.bounding_box()
    assert rail["x"] + rail["width"] <= graph["x"]
    assert graph["x"] + graph["width"] <= side["x"]
    assert graph["width"] > 500


@pytest.mark.parametrize("width", [1068, 900])
def test_in_a_cell_of_medium_width_the_inspector_is_a_drawer_beside_the_graph(
    offline: Any, viewer: Any, width: int
) -> None:
    narrowed(offline, width)
    expect(viewer.inspector).to_have_count(0)
    assert viewer.picture().bounding_box()["width"] > width - 50
    viewer.click("lv2")
    expect(viewer.title).to_have_text("lv2")
    graph, side = viewer.picture().bounding_box(), viewer.inspector.bounding_box()
    assert graph["x"] + graph["width"] <= side["x"]
    assert graph["width"] > 450
    offline.page.keyboard.press("Escape")
    expect(viewer.inspector).to_have_count(0)
    viewer.picture().focus()
    offline.page.keyboard.press("i")
    expect(viewer.inspector).to_be_visible()


def test_in_a_narrow_cell_the_drawer_comes_from_below_and_a_comparison_is_stacked(
    offline: Any, viewer: Any
) -> None:
    narrowed(offline, 600)
    viewer.click("lv2")
    graph, side = viewer.root.bounding_box(), viewer.inspector.bounding_box()
    assert side["width"] > 590
    assert side["y"] > graph["y"] + 200
    offline.page.keyboard.press("Escape")
    viewer.stage("FuseOps").click()
    expect(viewer.current_stage).to_contain_text("FuseOps")
    viewer.picture().focus()
    offline.page.keyboard.press("d")
    sides = viewer.root.locator(".irviz-picture")
    expect(sides).to_have_count(2)
    expect(sides.first).to_contain_text("2 AnnotateTIROpPattern")
    above, below = (sides.nth(at).bounding_box() for at in range(2))
    assert above["y"] + above["height"] <= below["y"] + 1
    assert min(above["width"], below["width"]) > 590
    assert abs(above["height"] - below["height"]) < 30


def test_after_a_comparison_the_picture_is_as_it_was(lab: Any, live: Any, resized: Any) -> None:
    resized(880)
    live.stage("FuseOps").click()
    expect(live.current_stage).to_contain_text("FuseOps")
    expect(live.node("w1")).to_be_in_viewport(ratio=1)
    zoom = live.zoom.inner_text()
    live.picture().focus()
    sides = live.root.locator(".irviz-picture")
    for count in (2, 1):
        lab.page.keyboard.press("d")
        expect(sides).to_have_count(count)
    expect(live.zoom).to_have_text(zoom)
    expect(live.node("w1")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("width", [1200, 900, 600])
def test_nothing_is_wider_than_the_cell(offline: Any, viewer: Any, width: int) -> None:
    narrowed(offline, width)
    assert viewer.root.evaluate("one => one.scrollWidth <= one.clientWidth + 1")
    outside = viewer.root.evaluate(
        """one => [...one.querySelectorAll('.irviz-toolbar button, .irviz-body > *')]
            .filter(part => part.getClientRects().length)
            .filter(part => part.getBoundingClientRect().right
                > one.getBoundingClientRect().right + 1).map(part => part.outerHTML)"""
    )
    assert outside == []


def test_splitters_are_moved_with_keys_and_with_the_mouse(offline: Any, viewer: Any) -> None:
    rail = viewer.root.locator(".irviz-rail")
    splitter = viewer.root.get_by_role("separator", name="Width of the stages")
    before = rail.bounding_box()["width"]
    splitter.focus()
    for _ in range(2):
        offline.page.keyboard.press("ArrowRight")
    assert rail.bounding_box()["width"] == pytest.approx(before + 48, abs=2)
    expect(splitter).to_have_attribute("aria-valuenow", str(round(before + 48)))
    box = splitter.bounding_box()
    offline.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    offline.page.mouse.down()
    offline.page.mouse.move(box["x"] + box["width"] / 2 - 40, box["y"] + 100, steps=3)
    offline.page.mouse.up()
    assert rail.bounding_box()["width"] == pytest.approx(before + 8, abs=3)
    splitter.focus()
    offline.page.keyboard.press("Home")
    expect(splitter).to_have_attribute("aria-valuenow", "160")
    offline.page.keyboard.press("Enter")  # the usual width


def test_the_height_of_a_cell_is_changed_by_its_handle_alone(lab: Any, live: Any) -> None:
    handle = live.root.get_by_role("separator", name="Height", exact=True)
    handle.focus()
    lab.page.keyboard.press("ArrowDown")
    assert live.height() == pytest.approx(584, abs=2)
    lab.page.keyboard.press("Enter")
    assert live.height() == pytest.approx(560, abs=2)


def test_a_height_can_be_asked_for(lab: Any) -> None:
    cell = lab.run("irviz.explore(mlp, height=420)")
    viewer = type(lab.show("mlp"))(lab.page, cell)
    assert viewer.height() == pytest.approx(420, abs=2)


def test_full_screen_and_back(lab: Any, live: Any) -> None:
    live.picture().focus()
    lab.page.keyboard.press("f")
    lab.page.wait_for_function(
        "one => one.getBoundingClientRect().height >= window.innerHeight - 2",
        arg=live.root.element_handle(),
    )
    live.picture().focus()
    lab.page.keyboard.press("f")
    lab.page.wait_for_function(
        "one => one.getBoundingClientRect().height < 600", arg=live.root.element_handle()
    )


def test_large_type_for_a_projector(live: Any) -> None:
    label = live.stages.first.locator(".irviz-stage-label")
    size = "one => parseFloat(getComputedStyle(one).fontSize)"
    before = label.evaluate(size)
    live.button("More", exact=True).click()
    live.choose("Large type")
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


def test_the_keys_are_listed(offline: Any, viewer: Any) -> None:
    viewer.picture().focus()
    offline.page.keyboard.press("?")
    keys = viewer.root.get_by_role("dialog", name="Keys")
    expect(keys).to_be_visible()
    expect(keys).to_contain_text("compare with the stage before")
    offline.page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_the_theme_of_the_notebook_is_followed(lab: Any, live: Any) -> None:
    try:
        lab.theme("JupyterLab Dark")
        expect(live.root).to_have_attribute("data-theme", "dark")
        assert brightness(live.root) < 0.3
        lab.expect_value("explorer.store.state.is_dark", True)
    finally:
        lab.theme("JupyterLab Light")
    expect(live.root).to_have_attribute("data-theme", "light")
    assert brightness(live.root) > 0.8
