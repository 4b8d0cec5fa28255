"""Runs in a real JupyterLab: watched, cancelled, survived, coloured, looked into."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

DIGITS = "irviz.Session(MyModule, params=params, inputs=images, labels=labels)"
ENDLESS = """
import time
from irviz.transforms.kernels import library

@irviz.library.register("env.endless", "(...)->(...)")
def endless(x, out):
    while True:
        time.sleep(0.05)
"""
HALF_MORE = """
@irviz.library.register("env.relu_and_a_half", "(...)->(...)")
def relu_and_a_half(x, out):
    np.maximum(x, 0, out=out)
    out += 0.5
"""
CRASHING = """
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
"""


@pytest.fixture
def endless(lab: Any) -> Iterator[Any]:
    """The explorer on a stage whose run never ends; nothing of it is left behind."""
    lab.do(ENDLESS)
    yield lab.show(f"{DIGITS}.swap('relu0', 'env.endless')")
    lab.do("del library.KERNELS_BY_NAME['env.endless']\nexplorer.dispatch(actions.Cancel())")


def test_a_run_that_never_ends_is_watched_and_cancelled_and_the_next_one_works(
    lab: Any, endless: Any
) -> None:
    viewer = endless
    viewer.button("Run", exact=True).first.click()
    job = viewer.root.locator(".irviz-job")
    expect(job).to_contain_text("running input 1 of 10")
    expect(viewer.stages.nth(1)).to_contain_text("running")
    viewer.stages.first.click()  # the kernel does other things meanwhile
    expect(viewer.current_stage).to_contain_text("initial module")
    expect(job).to_be_visible()
    expect(viewer.button("Cancel")).to_contain_text(
        re.compile(r"[1-9]\d* s")
    )  # as long as it lasts
    viewer.button("Cancel").click()
    expect(job).to_have_count(0)
    expect(viewer.stages.nth(1)).to_have_attribute("title", re.compile("not run"))
    viewer.button("Run", exact=True).first.click()
    expect(viewer.tab("Results")).to_contain_text("predicted class")
    assert lab.value("[list(explorer.results), explorer.run_errors]") == [["0"], {}]


def test_what_a_run_gave_is_said_below_run_until_it_is_closed_or_read_in_the_form(lab: Any) -> None:
    viewer = lab.show(DIGITS)
    run, card = viewer.button("Run", exact=True).first, viewer.root.locator(".irviz-answer-card")
    run.click()
    expect(card).to_contain_text(re.compile(r"✓ ran · \d+ of 10 right · \d"))
    card.get_by_role("button", name="Close").click()
    expect(card).to_have_count(0)
    run.click()
    expect(card).to_be_visible()
    expect(viewer.tab("Results").locator(".irviz-answer p")).to_contain_text("of 10 right")
    expect(card).to_have_count(0)


def test_a_run_that_crashes_its_process_is_a_stage_that_failed_with_the_reason(lab: Any) -> None:
    lab.run(CRASHING)
    viewer = lab.show("Crashing")
    viewer.button("Run", exact=True).first.click()
    expect(viewer.stages.first).to_contain_text("failed")
    reason = viewer.tab("Results").locator(".irviz-error").filter(has_text="it ended the process")
    expect(reason.first).to_contain_text("SIGSEGV")
    viewer.click("y")
    viewer.tab("Node")
    expect(viewer.title).to_have_text("y")
    lab.do('explorer.session = explorer.session.apply("ToNonDataflow")')
    expect(viewer.stages.nth(1)).to_contain_text("failed")  # in a new process


def test_where_two_stages_part_is_found_and_what_is_equal_before_is_pale(lab: Any) -> None:
    lab.do(HALF_MORE)
    viewer = lab.show(f"{DIGITS}.bind().swap('relu0', 'env.relu_and_a_half')")
    viewer.picture().focus()
    lab.page.keyboard.press("d")
    expect(viewer.root.locator(".irviz-caption")).to_have_count(2)
    first_difference = viewer.root.locator("[title^='Compare the values of this stage']")
    first_difference.click()
    expect(viewer.said).to_contain_text("differ first at lv1")
    finding = viewer.root.locator(".irviz-finding")
    expect(finding).to_contain_text("differ first at lv1")
    expect(viewer.marked("selected").first).to_have_attribute("data-node", "lv1")
    pale = viewer.picture().locator("svg.irviz:not(.irviz-marks) .irviz-pale")
    expect(pale.first).to_be_attached()
    finding.get_by_role("button", name="Close").click()
    expect(finding).to_have_count(0)
    expect(pale.first).to_be_attached()
    first_difference.click()
    expect(pale).to_have_count(0)


def test_nodes_are_coloured_by_their_time(lab: Any) -> None:
    viewer = lab.show(DIGITS)
    viewer.root.locator("[title='What nodes are coloured by']").click()
    viewer.choose("time")
    words = viewer.picture().locator("svg.irviz:not(.irviz-marks) .word")
    expect(words.nth(2)).to_be_attached()
    assert "%" in " ".join(words.all_text_contents())


BRIGHTNESS = """svg => {
    const paper = svg.querySelector('g path');
    const [r, g, b] = getComputedStyle(paper).fill.match(/[\\d.]+/g).map(Number);
    return (r + g + b) / 3 / 255;
}"""


def test_values_and_their_pictures_are_shown_in_the_colours_of_the_page(lab: Any) -> None:
    viewer = lab.show(DIGITS)
    viewer.click("lv1")
    viewer.button("Record values").click()
    panel = viewer.root.get_by_role("tabpanel", name="Node")
    expect(panel.locator(".irviz-value")).to_contain_text("of the call")
    picture = panel.locator(".irviz-value-picture svg")
    light = picture.evaluate(BRIGHTNESS)
    drawn = picture.evaluate("svg => svg.outerHTML")
    viewer.node("lv1").hover()
    expect(viewer.root.get_by_role("tooltip")).to_contain_text("float32")
    try:
        lab.theme("JupyterLab Dark")
        lab.page.wait_for_function(
            "([root, old]) => { const svg = root.querySelector('.irviz-value-picture svg');"
            " return svg && svg.outerHTML !== old; }",
            arg=[viewer.root.element_handle(), drawn],
        )
        assert picture.evaluate(BRIGHTNESS) < 0.3 < 0.7 < light
    finally:
        lab.theme("JupyterLab Light")


def test_stages_are_measured_beside_each_other(lab: Any) -> None:
    viewer = lab.show(f"{DIGITS}.bind().checkout('0')")
    form = viewer.tab("Profile")
    for name, rows in (("Measure with the first", 1), ("Measure all", 2)):
        form.get_by_role("button", name=name).click()
        expect(form.locator(".irviz-times tbody tr")).to_have_count(rows)
        expect(viewer.root.locator(".irviz-job")).to_have_count(0)
