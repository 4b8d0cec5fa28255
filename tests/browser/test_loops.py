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
    expect(loops.locator(".irviz-chosen-loop").first).to_contain_text("block C")
    loops.press("ArrowUp")
    expect(loops.locator(".irviz-chosen-loop").first).to_contain_text("for ax0 in 4")
    expect(loops.locator(".irviz-chosen", has_text="block C")).to_be_visible()
    loops.press("d")
    expect(viewer.root.get_by_role("region", name="Changes")).to_contain_text("1 loop unrolled")
    expect(loops.locator(".row.before.changed")).to_contain_text("for k in 128")
    expect(loops.locator(".row.after.changed")).to_contain_text("unrolled")
    gone_to = loops.locator(".row.after.irviz-of-change")
    expect(gone_to).to_have_count(0)
    loops.press("n")
    expect(gone_to.filter(has_text="unrolled")).to_be_visible()
    expect(gone_to.filter(has_text="param")).to_have_count(0)
    viewer.button("Graph", exact=True).click()
    for side in ("reference", "current"):
        expect(viewer.picture(side)).to_be_visible()
        expect(viewer.picture(side).locator(".irviz-mark-changed .irviz-outline")).to_have_count(1)
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


def test_the_functions_of_a_stage_without_the_shown_one_are_listed_with_their_changes(
    lab: Any,
) -> None:
    lab.do(
        "import tvm\n"
        "from irviz.course.mm_relu import MyModule as MatMulRelu, lecture_schedule\n"
        "def without_main(mod):\n"
        "    kept = {v: f for v, f in mod.functions.items() if v.name_hint != 'main'}\n"
        "    return tvm.IRModule(kept)\n"
        "both = tvm.IRModule({**MatMulRelu.functions, **MyModule.functions})\n"
        "session = irviz.Session(both).apply(without_main)"
        ".schedule('mm_relu', lecture_schedule).select_function('mm_relu')"
    )
    viewer = lab.show("session.checkout('0').select_function('main')")
    table = viewer.root.get_by_role("region", name="Functions of this stage")
    viewer.stage("without_main").click()
    expect(table).to_contain_text("None of these differs from stage 0.")
    expect(table).not_to_contain_text("unchanged")
    viewer.stage("split loop").click()
    expect(table.get_by_role("alert")).to_contain_text("has no function 'main'")
    rows = table.locator("tbody tr")
    expect(rows.first).to_contain_text("mm_relu")
    expect(rows.first).to_contain_text("1 loop split")
    expect(rows.nth(1)).to_contain_text("unchanged")
    rows.first.get_by_role("button").click()
    expect(viewer.root.get_by_role("application", name="loops of mm_relu")).to_be_visible()
