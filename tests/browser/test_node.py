"""What is known of a node, with a kernel and without."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect


@pytest.fixture
def viewer(offline: Any) -> Any:
    viewer = offline.show("mlp")
    viewer.click("lv1")
    expect(viewer.title).to_have_text("lv1")
    return viewer


@pytest.fixture
def live(lab: Any) -> Any:
    """The same with a kernel."""
    viewer = lab.show("mlp")
    viewer.click("lv1")
    expect(viewer.title).to_have_text("lv1")
    return viewer


def test_a_node_says_what_it_is(viewer: Any) -> None:
    expect(viewer.fact("kind")).to_contain_text("call_dps_packed")
    expect(viewer.fact("leads to")).to_contain_text("a PrimFunc of this module")
    code = viewer.inspector.locator(".irviz-section-code")
    expect(code).to_contain_text('lv1 = R.call_dps_packed("relu0", (lv0,)')
    expect(code).to_contain_text("T.max(X[vi, vj], T.float32(0.0))")
    expect(code).to_contain_text("for j in n")


def test_operands_users_and_functions_are_links(viewer: Any) -> None:
    viewer.fact("arguments").get_by_role("button", name="linear0 lv0", exact=True).click()
    expect(viewer.title).to_have_text("lv0")
    viewer.fact("used by").get_by_role("button", name="relu0 lv1", exact=True).click()
    expect(viewer.title).to_have_text("lv1")
    viewer.fact("callee").get_by_role("button", name="relu0", exact=True).click()
    crumbs = viewer.root.get_by_role("navigation", name="Where we are")
    expect(crumbs.get_by_role("button", name="relu0")).to_be_visible()


def test_every_fact_can_be_copied(lab: Any, live: Any) -> None:
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    live.fact("leads to").hover()
    live.button("Copy leads to").click()
    copied = "() => navigator.clipboard.readText()"
    assert lab.page.evaluate(copied) == "a PrimFunc of this module"
    live.button("Copy the name").click()
    lab.page.wait_for_function("async () => await navigator.clipboard.readText() === 'lv1'")


def test_the_name_and_the_actions_stay_when_the_facts_are_scrolled(lab: Any, live: Any) -> None:
    expect(live.inspector.locator(".irviz-section-code")).to_contain_text("for j in n")
    pane = live.inspector.locator("[role=tabpanel]:not([hidden])")
    head = live.inspector.locator(".irviz-node-head").first
    before = head.bounding_box()
    live.inspector.locator("summary", has_text="Code").hover()
    lab.page.mouse.wheel(0, 2000)
    lab.page.wait_for_function(
        "one => [one, ...one.querySelectorAll('*')].some(part => part.scrollTop > 20)",
        arg=pane.element_handle(),
    )
    assert abs(head.bounding_box()["y"] - before["y"]) < 2
    assert live.node("lv1").is_visible()


def test_with_no_node_the_module_is_described(offline: Any) -> None:
    viewer = offline.show("mlp")
    expect(viewer.title).to_have_text("IRModule")
    expect(viewer.inspector).to_contain_text("1 Relax function · 2 PrimFuncs")
    expect(viewer.inspector).to_contain_text("click a node")


def test_the_tabs_are_reached_with_arrows(lab: Any, live: Any) -> None:
    live.root.get_by_role("tab", name="Node").focus()
    lab.page.keyboard.press("ArrowRight")
    expect(live.root.get_by_role("tab", name="Transform")).to_be_focused()
    expect(live.root.get_by_role("tabpanel", name="Transform")).to_be_visible()
    expect(live.root.get_by_role("tabpanel", name="Node")).to_be_hidden()
