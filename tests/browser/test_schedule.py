"""The lecture's schedule of mm_relu by clicks on its loops, in a real JupyterLab."""

from __future__ import annotations

import re
from typing import Any

import pytest

OPEN = """
import irviz
from irviz.course.mm_relu import MyModule
explorer = irviz.explore(MyModule)
explorer
"""

LECTURE = (  # what is clicked, the step, what is written
    ((("Y", 1),), "split", {"factors": "None, 4"}),
    ((("Y", 1), ("Y", 3), ("Y", 2)), "reorder", {}),
    ((("C", None), ("Y", 1)), "reverse_compute_at", {}),
    ((("Y", 0),), "parallel", {}),
    ((("Y", 3),), "vectorize", {}),
    ((("Y", None), ("Y", 2)), "decompose_reduction", {}),
    ((("Y_update", 2),), "unroll", {}),
)


@pytest.fixture
def explorer(lab: Any) -> Any:
    """The explorer on mm_relu, with the loops in front."""
    cell = lab.run(OPEN)
    cell.get_by_role("tab", name="Schedule", exact=True).click()
    cell.locator(".irviz-nest [data-choice]").first.wait_for()
    return cell


def place(lab: Any, block: str, depth: int | None) -> str:
    """Return the id of a loop around a block, or of the block itself for no depth."""
    address = f"BlockAddress({block!r})" if depth is None else f"LoopAddress({block!r}, {depth})"
    return str(
        lab.value(
            "(lambda found: found[__import__('irviz.model.loops', fromlist=['x'])."
            f"{address}])({{v: k for k, v in irviz.explorer.view_model.loop_addresses("
            "explorer.store.state).items()})"
        )
    )


def do(lab: Any, cell: Any, clicks: Any, step: str, fields: dict[str, str]) -> None:
    # loops are looked up first: each look adds a cell
    places = [place(lab, *click) for click in clicks]
    for index, found in enumerate(places):
        choice = cell.locator(f".irviz-nest [data-choice='{found}']")
        choice.click(modifiers=["Control"] if index else [])
    select = cell.locator(".irviz-schedule-primitive select")
    # what fits has its group behind its name, and comes when the kernel has heard of the clicks
    option = select.locator("option").filter(has_text=re.compile(rf"^{step}\s\("))
    option.first.wait_for(state="attached")
    select.select_option(label=option.first.text_content())
    for name, words in fields.items():
        field = cell.locator(".irviz-step-form .widget-text", has_text=name).locator("input")
        field.fill(words)
        field.press("Tab")
    cell.locator("button.irviz-schedule-apply:enabled").click()


def test_the_lecture_is_done_by_clicks_and_each_step_is_measured(lab: Any, explorer: Any) -> None:
    for number, (clicks, step, fields) in enumerate(LECTURE, start=1):
        do(lab, explorer, clicks, step, fields)
        explorer.locator(".irviz-stage > button", has_text=f"{number}  mm_relu: {step}").wait_for()
        explorer.locator(".irviz-schedule-time", has_text="as fast").wait_for()
    trace = explorer.locator(".irviz-trace textarea").input_value()
    assert [line.partition("(")[0] for line in trace.splitlines()] == [
        f"sch.{step}" for _, step, _ in LECTURE
    ]
    by_code = """
from irviz.course.mm_relu import lecture_schedule
import tvm_ffi
same = irviz.Session(MyModule).schedule("mm_relu", lecture_schedule).current.module
"""
    lab.run(by_code)
    assert lab.value("bool(tvm_ffi.structural_equal(same, explorer.session.current.module))")


def test_an_illegal_step_marks_the_loop_and_changes_nothing(lab: Any, explorer: Any) -> None:
    do(lab, explorer, (("Y", 2),), "parallel", {})
    explorer.locator(".irviz-nest .irviz-loops-marked").first.wait_for()
    assert lab.value("len(explorer.session.stages)") == 1
    assert "block" in explorer.locator(".irviz-schedule .irviz-error").first.inner_text()
