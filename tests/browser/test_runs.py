"""Runs in a real JupyterLab: watched, cancelled, survived, coloured, looked into."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

OPEN = """
import irviz, numpy as np
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule

@irviz.library.register("env.relu_and_a_half", "(...)->(...)")
def relu_and_a_half(x, out):
    np.maximum(x, 0, out=out)
    out += 0.5

held_out = digits()
session = irviz.Session(
    MyModule, params=mlp_params(), inputs=held_out.images[:50], labels=held_out.labels[:50]
)
"""

ENDLESS = """
import time, irviz
from irviz.transforms.kernels import library

@irviz.library.register("env.endless", "(...)->(...)")
def endless(x, out):
    while True:
        time.sleep(0.05)
"""

CRASHING = """
import irviz, numpy as np
from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module
class Crashing:
    @T.prim_func(s_tir=True)
    def far_away(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = X[vi + 1000000000]

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Crashing
        y = R.nn.relu(x)
        z = R.call_tir(cls.far_away, (y,), R.Tensor((4,), "float32"))
        return z

explorer = irviz.explore(Crashing)
explorer
"""


def opened(lab: Any, session: str) -> Any:
    """Open the explorer on what an expression makes of `session`."""
    lab.run(OPEN)
    cell = lab.run(f"explorer = irviz.explore({session})\nexplorer")
    cell.locator(".irviz-canvas svg.irviz").first.wait_for()
    return cell


def tab(cell: Any, name: str) -> None:
    cell.locator(".irviz-tabs").get_by_role("tab", name=name, exact=True).click()


def press(cell: Any, name: str) -> None:
    cell.locator("button:visible", has_text=re.compile(f"^{re.escape(name)}$")).click()


def stage(cell: Any, number: int) -> Any:
    return cell.locator(".irviz-stage > button").nth(number)


def badge(cell: Any, number: int, words: str) -> Any:
    return cell.locator(".irviz-stages .irviz-badge").nth(number).get_by_text(words)


def node(cell: Any, name: str) -> Any:
    return cell.locator(".irviz-canvas").first.locator(f".node[data-node='{name}']")


@pytest.fixture
def endless(lab: Any) -> Iterator[Any]:
    """The explorer on a stage whose run never ends; nothing of it is left behind."""
    lab.run(ENDLESS)
    yield opened(lab, "session.swap('relu0', 'env.endless')")
    lab.run(
        "del library._kernels['env.endless']\nexplorer.dispatch(irviz.explorer.actions.Cancel())"
    )


def test_a_run_that_never_ends_is_watched_and_cancelled_and_the_next_one_works(
    lab: Any, endless: Any
) -> None:
    cell = endless
    tab(cell, "Run")
    press(cell, "Run")
    badge(cell, 1, "running").wait_for()
    doing = cell.locator(".irviz-doing")
    doing.get_by_text("stage 1: running input 1 of 50").wait_for()
    below, pictures = doing.bounding_box(), cell.locator(".irviz-panes").bounding_box()
    assert below["y"] >= pictures["y"] + pictures["height"]
    stage(cell, 0).click()  # the kernel does other things meanwhile
    cell.locator(".irviz-caption", has_text="stage 0: given").wait_for()
    badge(cell, 0, "reference").wait_for()
    assert doing.is_visible()
    press(cell, "Cancel")
    doing.wait_for(state="hidden")
    badge(cell, 1, "not run").wait_for()
    press(cell, "Run")
    cell.locator(".irviz-scores").wait_for()
    doing.wait_for(state="hidden")
    assert lab.value("[list(explorer.results), explorer.run_errors]") == [["0"], {}]


def test_a_run_that_crashes_its_process_is_a_stage_that_failed_with_the_reason(lab: Any) -> None:
    cell = lab.run(CRASHING)
    cell.locator(".irviz-canvas svg.irviz").first.wait_for()
    tab(cell, "Run")
    press(cell, "Run")
    badge(cell, 0, "failed").wait_for()
    reason = cell.locator(".irviz-tabs .irviz-error", has_text="it ended the process")
    reason.wait_for()
    assert "SIGSEGV" in reason.inner_text()
    node(cell, "y").click()
    tab(cell, "Node")
    cell.locator(".irviz-details h4", has_text="y").wait_for()
    lab.run('explorer.session = explorer.session.apply("ToNonDataflow")')
    badge(cell, 1, "failed").wait_for()  # in a new process


def test_where_two_stages_part_is_found_and_what_is_equal_before_is_pale(lab: Any) -> None:
    cell = opened(lab, "session.bind().swap('relu0', 'env.relu_and_a_half')")
    press(cell, "First difference")
    cell.locator(".irviz-message", has_text="stages 2 and 0 differ first at lv1").wait_for()
    cell.locator(".irviz-canvas .node.pale[data-node='lv0']").wait_for()
    parted = node(cell, "lv1").get_attribute("class")
    assert "selected" in parted
    assert "pale" not in parted
    press(cell, "Show all alike")
    cell.locator(".irviz-canvas .pale").first.wait_for(state="detached")


def test_colours_values_and_their_pictures_are_shown_in_the_colours_of_the_page(lab: Any) -> None:
    cell = opened(lab, "session")
    cell.locator(".irviz-colour-by select").select_option(label="time")
    cell.locator(".irviz-canvas .legend").wait_for()
    words = cell.locator(".irviz-canvas .word")
    assert words.count() >= 3
    assert "%" in " ".join(words.all_text_contents())
    tab(cell, "Node")
    node(cell, "lv1").click()
    facts = cell.locator(".irviz-value")
    facts.get_by_text("of the call").wait_for()
    picture = cell.locator(".irviz-value-picture svg")
    light = picture.evaluate(BRIGHTNESS)
    drawn = picture.evaluate("svg => svg.outerHTML")
    try:
        lab.theme("JupyterLab Dark")
        lab.page.wait_for_function(
            "([cell, old]) => { const svg = cell.querySelector('.irviz-value-picture svg');"
            " return svg && svg.outerHTML !== old; }",
            arg=[cell.element_handle(), drawn],
        )
        assert picture.evaluate(BRIGHTNESS) < 0.3 < 0.7 < light
    finally:
        lab.theme("JupyterLab Light")


BRIGHTNESS = """svg => {
    const paper = svg.querySelector('g path');
    const [r, g, b] = getComputedStyle(paper).fill.match(/[\\d.]+/g).map(Number);
    return (r + g + b) / 3 / 255;
}"""


@pytest.mark.parametrize("name", ["Measure with the first", "Measure all"])
def test_stages_are_measured_beside_each_other(lab: Any, name: str) -> None:
    cell = opened(lab, "session.bind().checkout('0')")
    tab(cell, "Profile")
    cell.locator(".irviz-tabs button:visible", has_text=name).click()
    cell.locator(".irviz-doing", has_text="measuring").wait_for()
    rows = cell.locator(".irviz-times tbody tr")
    rows.first.wait_for()
    assert rows.count() == (2 if name == "Measure all" else 1)
