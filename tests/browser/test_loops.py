"""The loops of a PrimFunc, alone and in comparison, live and in a saved page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

SCHEDULED = (
    "irviz.Session(__import__('irviz.course.mm_relu', fromlist=['x']).MyModule)"
    ".schedule('mm_relu', __import__('irviz.course.mm_relu', fromlist=['x']).lecture_schedule)"
)


@pytest.fixture(params=["offline", "lab"])
def where(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def test_a_prim_func_is_shown_by_its_loops_and_compared_row_by_row(where: Any) -> None:
    viewer = where.show(SCHEDULED)
    loops = viewer.root.get_by_role("application", name="loops of mm_relu")
    expect(loops.locator(".row", has_text="for j_0 in 32")).to_be_visible()
    loops.locator(".row", has_text="block C").click()
    expect(viewer.title).to_have_text("C")
    expect(loops.locator(".irviz-chosen", has_text="block C")).to_be_visible()
    loops.press("ArrowUp")
    expect(loops.locator(".irviz-chosen", has_text="block Y_update")).to_be_visible()
    loops.press("d")
    expect(viewer.root.get_by_role("region", name="Changes")).to_contain_text("1 loop unrolled")
    expect(loops.locator(".row.before.changed")).to_contain_text("for k in 128")
    expect(loops.locator(".row.after.changed")).to_contain_text("unrolled")
    viewer.button("Graph", exact=True).click()
    expect(viewer.picture()).to_be_visible()
    viewer.button("Loops", exact=True).click()
    expect(loops.locator(".row.after.changed")).to_be_visible()


def test_loops_are_shown_of_a_prim_func_until_its_graph_is_chosen(offline: Any) -> None:
    viewer = offline.show("mlp")
    functions = viewer.root.get_by_role("navigation", name="Functions")
    expect(viewer.root.get_by_role("button", name="Loops")).to_be_disabled()
    functions.get_by_role("button", name="relu0 PrimFunc").click()
    loops = viewer.root.locator(".irviz-nests")
    expect(loops.locator(".row", has_text=re.compile("block"))).to_be_visible()
    functions.get_by_role("button", name=re.compile("^main")).click()
    expect(viewer.picture()).to_be_visible()
    expect(loops).to_have_count(0)
    functions.get_by_role("button", name="relu0 PrimFunc").click()
    expect(loops).to_be_visible()
