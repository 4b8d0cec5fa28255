"""The lecture's schedule of mm_relu by clicks on its loops, in a real JupyterLab."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

LECTURE = (  # what is clicked, the step, with what, the value that is written
    ((("Y", 1),), "split", "", "None, 4"),
    ((("Y", 2),), "reorder", "after k", ""),
    ((("C", None),), "reverse_compute_at", "at j_0 of Y", ""),
    ((("Y", 0),), "parallel", "", ""),
    ((("Y", 3),), "vectorize", "", ""),
    ((("Y", None), ("Y", 2)), "decompose_reduction", "", ""),
    ((("Y_update", 2),), "unroll", "", ""),
)


@pytest.fixture
def viewer(lab: Any) -> Any:
    """The explorer on mm_relu, with the loops in front."""
    lab.do("from irviz.course.mm_relu import MyModule as MatMulRelu, lecture_schedule")
    viewer = lab.show("MatMulRelu")
    expect(viewer.root.locator(".irviz-nests [data-loop]").first).to_be_visible()
    return viewer


def place(lab: Any, block: str, depth: int | None) -> str:
    """Return the id of a loop around a block, or of the block itself for no depth."""
    address = f"BlockAddress({block!r})" if depth is None else f"LoopAddress({block!r}, {depth})"
    return str(
        lab.value(
            "(lambda found: found[__import__('irviz.model.loop_nest', fromlist=['x'])."
            f"{address}])({{v: k for k, v in irviz.explorer.shown_schedule.loop_addresses("
            "explorer.store.state).items()})"
        )
    )


def choose(lab: Any, viewer: Any, *clicks: tuple[str, int | None]) -> Any:
    """Click on loops and blocks in the Loops view; return the steps that are offered."""
    for index, click in enumerate(clicks):
        row = viewer.root.locator(f".irviz-nests [data-loop='{place(lab, *click)}']").first
        row.click(modifiers=["Control"] if index else [])
    steps = viewer.root.get_by_role("region", name="Steps")
    expect(steps.get_by_role("listitem").first).to_be_visible()
    return steps


def do(lab: Any, viewer: Any, clicks: Any, step: str, target: str = "", value: str = "") -> None:
    steps = choose(lab, viewer, *clicks)
    button = lab.page.get_by_role("button", name=step, exact=True)
    offered = steps.get_by_role("listitem").filter(has=button)
    if target and offered.get_by_role("combobox").count():
        offered.get_by_role("combobox").first.select_option(target)
    if value:
        offered.get_by_role("textbox").first.fill(value)
    offered.get_by_role("button").click()


def test_the_lecture_is_done_by_clicks_and_each_step_is_measured(lab: Any, viewer: Any) -> None:
    form = viewer.root.get_by_role("tabpanel", name="Schedule")
    for number, (clicks, step, target, value) in enumerate(LECTURE, start=1):
        do(lab, viewer, clicks, step, target, value)
        expect(viewer.current_stage).to_contain_text(f"mm_relu: {step}")
        expect(viewer.stages).to_have_count(number + 1)
        expect(viewer.current_stage.locator(".irviz-stage-time")).to_contain_text("s")
        expect(form.locator(".irviz-schedule-time")).to_contain_text("as fast")
        expect(viewer.current_stage.locator(".irviz-stage-speed")).to_contain_text("×")
    trace = [rf"sch\.{step}\(.*" for _, step, _, _ in LECTURE]
    expect(form.locator(".irviz-trace textarea")).to_have_value(re.compile("\n".join(trace)))
    lab.do(
        "import tvm_ffi\n"
        "same = irviz.Session(MatMulRelu).schedule('mm_relu', lecture_schedule).current.module"
    )
    assert lab.value("bool(tvm_ffi.structural_equal(same, explorer.session.current.module))")


def test_what_is_not_legal_is_pale_and_says_why_in_one_line(lab: Any, viewer: Any) -> None:
    steps = choose(lab, viewer, ("Y", 2))
    expect(steps.get_by_role("status")).to_have_text("loop k extent 128 · reduction")
    refused = steps.get_by_role("listitem").filter(has_text="vectorize")
    expect(refused).to_have_attribute("title", re.compile("not a data parallel"))
    expect(refused.get_by_role("button")).to_have_count(0)


@pytest.fixture
def slow_choice(lab: Any, tmp_path: Path) -> Any:
    """A file until whose creation the kernel takes in no choice of a loop."""
    may_go_on = tmp_path / "go on"
    lab.do(
        "import pathlib, time\n"
        "import irviz.explorer.reducer as reducer\n"
        "quick = reducer.loop_choice\n"
        "def slow(*given, **options):\n"
        "    end = time.monotonic() + 30\n"
        f"    while not pathlib.Path({str(may_go_on)!r}).exists() and time.monotonic() < end:\n"
        "        time.sleep(0.01)\n"
        "    return quick(*given, **options)"
    )
    yield may_go_on
    may_go_on.touch()
    lab.do("reducer.loop_choice = quick")


def test_no_steps_of_other_loops_are_offered_until_the_kernel_knows_the_choice(
    lab: Any, viewer: Any, slow_choice: Path
) -> None:
    steps = choose(lab, viewer, ("Y", 0))
    other = viewer.root.locator(f".irviz-nests [data-loop='{place(lab, 'Y', 2)}']").first
    lab.do("reducer.loop_choice = slow")
    other.click()
    expect(other).to_have_class(re.compile("irviz-chosen-loop"))
    expect(steps.get_by_role("listitem")).to_have_count(0)
    expect(steps).to_contain_text("trying the steps")
    slow_choice.touch()
    expect(steps.get_by_role("status")).to_contain_text("loop k")
    expect(steps.get_by_role("button", name="split")).to_be_visible()


def test_a_value_that_tvm_rejects_is_told_marks_the_loop_and_changes_nothing(
    lab: Any, viewer: Any
) -> None:
    do(lab, viewer, (("Y", 2),), "rfactor", value="7")
    form = viewer.root.get_by_role("tabpanel", name="Schedule")
    expect(form.locator(".irviz-error").first).to_contain_text("factor_axis")
    assert lab.value("len(explorer.session.stages)") == 1
    expect(viewer.root.locator(".irviz-nests .irviz-chosen-loop")).to_contain_text("for k")


def test_a_step_is_chosen_with_keys_that_stay_in_the_viewer(lab: Any, viewer: Any) -> None:
    loops = viewer.root.get_by_role("application", name="loops of mm_relu")
    cells = lab.page.locator(".jp-Notebook .jp-Cell").count()
    choose(lab, viewer, ("Y", 0))
    loops.press("ArrowDown")
    steps = viewer.root.get_by_role("region", name="Steps")
    expect(steps.get_by_role("status")).to_contain_text("loop j")
    loops.press("Shift+ArrowDown")
    expect(steps.get_by_role("status")).to_contain_text("loop j, then loop k")
    loops.press("ArrowUp")
    expect(steps.get_by_role("status")).to_contain_text("loop j")
    expect(steps.get_by_role("button", name="split")).to_be_visible()
    loops.press("Enter")
    expect(steps.get_by_role("button", name="split")).to_be_focused()
    lab.page.keyboard.press("ArrowDown")
    expect(steps.get_by_role("button", name="reorder")).to_be_focused()
    lab.page.keyboard.press("Escape")
    expect(loops).to_be_focused()
    loops.press("Enter")
    lab.page.keyboard.press("Enter")
    expect(viewer.current_stage).to_contain_text("mm_relu: split")
    expect(loops).to_be_focused()
    loops.press("ArrowDown")
    expect(steps.get_by_role("status")).to_be_visible()
    loops.press("Escape")
    expect(steps.get_by_role("status")).to_have_count(0)
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == cells


def test_the_loops_of_a_called_prim_func_are_a_click_away(lab: Any) -> None:
    viewer = lab.show("mlp")
    form = viewer.tab("Schedule")
    form.get_by_role("button", name="Show its loops").click()
    expect(viewer.root.locator(".irviz-nests [data-loop]").first).to_be_visible()
