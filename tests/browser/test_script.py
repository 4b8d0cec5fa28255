"""The TVMScript beside the graph, with a kernel and without."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect


def with_text(viewer: Any) -> Any:
    """Show the text below the graph."""
    viewer.button("Split").click()
    expect(viewer.script.locator(".cm-line").first).to_be_visible()
    return viewer


@pytest.fixture
def viewer(offline: Any) -> Any:
    """The lecture's module, with its text below its graph."""
    return with_text(offline.show("mlp"))


@pytest.fixture
def live(lab: Any) -> Any:
    """The same with a kernel."""
    return with_text(lab.show("mlp"))


def line(viewer: Any, words: str) -> Any:
    return viewer.script.locator(".cm-line").filter(has_text=words).first


def test_the_function_that_is_drawn_is_the_one_that_is_read(viewer: Any) -> None:
    expect(line(viewer, "def main(")).to_be_in_viewport()
    expect(viewer.script.get_by_label("Function")).to_have_value("main")


def test_a_node_leads_to_its_line(viewer: Any) -> None:
    viewer.click("lv1")
    marked = viewer.script.locator(".cm-line.irviz-script-selected")
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text("lv1 = ")
    expect(marked).to_be_in_viewport()


def test_a_line_leads_to_its_node(lab: Any, live: Any) -> None:
    line(live, "lv1 = ").get_by_text("lv1", exact=False).first.click()
    expect(live.title).to_have_text("lv1")
    assert live.marked("selected").first.get_attribute("data-node") == "lv1"
    lab.expect_value("explorer.selected", "lv1")


def test_the_line_that_is_pointed_at_is_pointed_at_in_the_graph(viewer: Any) -> None:
    line(viewer, "lv0 = ").hover()
    near = viewer.picture().locator(".irviz-mark-near [data-node='lv0']")
    expect(near.first).to_be_attached()


def test_a_function_is_gone_to(viewer: Any) -> None:
    viewer.script.get_by_label("Function").select_option("relu0")
    expect(line(viewer, "def relu0(")).to_be_in_viewport()
    expect(line(viewer, "T.max(")).to_be_in_viewport()  # with its loop nest


def test_the_text_is_searched_and_the_keys_stay_in_it(lab: Any, live: Any) -> None:
    cells = lab.page.locator(".jp-Notebook .jp-Cell").count()
    line(live, "lv1 = ").click()
    lab.page.keyboard.press("Control+f")
    field = live.script.locator(".cm-search input[name=search]")
    expect(field).to_be_focused()
    field.fill("sblock")
    lab.page.keyboard.press("Enter")
    expect(live.script.locator(".cm-searchMatch").first).to_be_attached()
    lab.page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    for key in "dxbm":
        lab.page.keyboard.press(key)
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == cells
    assert "lv1 = " in line(live, "lv1 = ").inner_text()  # it is read, not written


def test_the_text_alone_fills_the_middle(viewer: Any) -> None:
    viewer.button("Text", exact=True).click()
    expect(viewer.root.locator(".irviz-canvas")).to_have_count(0)
    expect(line(viewer, "def main(")).to_be_in_viewport()
    viewer.button("Graph", exact=True).click()
    expect(viewer.script).to_have_count(0)
    expect(viewer.node("lv1")).to_be_visible()


def test_another_stage_brings_its_text(offline: Any) -> None:
    viewer = offline.show("fused.checkout('0')")
    viewer.button("Split").click()
    expect(line(viewer, "R.matmul")).to_be_visible()
    viewer.stage("LegalizeOps").click()
    expect(viewer.script).to_contain_text("1 LegalizeOps")
    expect(line(viewer, "R.call_tir")).to_be_visible()
