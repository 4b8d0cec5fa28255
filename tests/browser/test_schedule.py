"""The lecture's schedule of mm_relu by clicks on its loops, in a real JupyterLab."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

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
def viewer(lab: Any) -> Any:
    """The explorer on mm_relu, with the loops in front."""
    lab.do("from irviz.course.mm_relu import MyModule as MatMulRelu, lecture_schedule")
    viewer = lab.show("MatMulRelu")
    expect(viewer.tab("Schedule").locator("[data-choice]").first).to_be_visible()
    return viewer


def place(lab: Any, block: str, depth: int | None) -> str:
    """Return the id of a loop around a block, or of the block itself for no depth."""
    address = f"BlockAddress({block!r})" if depth is None else f"LoopAddress({block!r}, {depth})"
    return str(
        lab.value(
            "(lambda found: found[__import__('irviz.model.loop_nest', fromlist=['x'])."
            f"{address}])({{v: k for k, v in irviz.explorer.schedules.loop_addresses("
            "explorer.store.state).items()})"
        )
    )


def do(lab: Any, viewer: Any, clicks: Any, step: str, fields: dict[str, str]) -> None:
    form = viewer.root.get_by_role("tabpanel", name="Schedule")
    for index, click in enumerate(clicks):
        choice = form.locator(f".irviz-nest [data-choice='{place(lab, *click)}']")
        choice.click(modifiers=["Control"] if index else [])
    lab.do("")  # each click brings other primitives: the last one's are there
    select = form.locator(".irviz-schedule-primitive select")
    option = select.locator("option").filter(has_text=re.compile(rf"^{step}\s\("))
    select.select_option(label=option.first.text_content())
    lab.do("")  # its fields are there
    for name, words in fields.items():
        field = form.locator(".irviz-step-form .widget-text", has_text=name).locator("input")
        field.fill(words)
        field.press("Tab")
    form.locator("button.irviz-schedule-apply:enabled").click()


def test_the_lecture_is_done_by_clicks_and_each_step_is_measured(lab: Any, viewer: Any) -> None:
    form = viewer.root.get_by_role("tabpanel", name="Schedule")
    for number, (clicks, step, fields) in enumerate(LECTURE, start=1):
        do(lab, viewer, clicks, step, fields)
        expect(viewer.current_stage).to_contain_text(f"mm_relu: {step}")
        expect(viewer.stages).to_have_count(number + 1)
        expect(viewer.current_stage.locator(".irviz-stage-time")).to_contain_text("s")
        expect(form.locator(".irviz-schedule-time")).to_contain_text("as fast")
    trace = [rf"sch\.{step}\(.*" for _, step, _ in LECTURE]
    expect(form.locator(".irviz-trace textarea")).to_have_value(re.compile("\n".join(trace)))
    lab.do(
        "import tvm_ffi\n"
        "same = irviz.Session(MatMulRelu).schedule('mm_relu', lecture_schedule).current.module"
    )
    assert lab.value("bool(tvm_ffi.structural_equal(same, explorer.session.current.module))")


def test_an_illegal_step_marks_the_loop_and_changes_nothing(lab: Any, viewer: Any) -> None:
    do(lab, viewer, (("Y", 2),), "parallel", {})
    form = viewer.root.get_by_role("tabpanel", name="Schedule")
    expect(form.locator(".irviz-nest .irviz-loops-marked").first).to_be_attached()
    expect(form.locator(".irviz-error").first).to_contain_text("block")
    assert lab.value("len(explorer.session.stages)") == 1


def test_loops_are_chosen_with_keys_that_stay_in_the_form(lab: Any, viewer: Any) -> None:
    form = viewer.root.get_by_role("tabpanel", name="Schedule")
    cells = lab.page.locator(".jp-Notebook .jp-Cell").count()
    loops = form.locator(".irviz-nest [data-choice]")
    loops.first.focus()
    lab.page.keyboard.press("ArrowDown")
    expect(loops.nth(1)).to_be_focused()
    lab.page.keyboard.press("Enter")
    expect(loops.nth(1)).to_have_attribute("aria-pressed", "true")
    lab.page.keyboard.press("d")
    lab.page.keyboard.press("b")
    expect(form).not_to_contain_text("chosen: nothing")
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == cells
