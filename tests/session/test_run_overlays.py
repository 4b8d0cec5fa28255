"""A trace is seen on the graph: where the time goes, what is large, where a NaN comes from."""

import re

import numpy as np
import pytest

from irviz.course.mlp import MODULES
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import NodeId, inlined_id
from irviz.model.runs.array_diff import summarise
from irviz.model.runs.execution_trace import NodeValue, NodeVisit, Trace
from irviz.session.run_overlays import (
    difference_overlay,
    dimmed_places,
    size_overlay,
    time_overlay,
    value_overlay,
)
from irviz.session.shown_function import ViewState, stage_view
from irviz.transforms.stage import Stage
from irviz.view.theme import THEMES, page_css


@pytest.fixture(scope="module")
def mlp():
    return stage_view(Stage("0", MODULES["MyModuleStatic"]), "main")


@pytest.fixture(scope="module")
def called(modules):
    """Return a way to look at a module that calls a function, and has an If."""
    stage = Stage("0", modules.EveryKind)
    return lambda *opened: stage_view(stage, "main", ViewState(Expansion(opened=opened)))


def closed(found):
    """Return the same picture with its first block closed, and the block's id."""
    block = next(region.id for region in found.graph.regions if region.id)
    stage = Stage("0", MODULES["MyModuleStatic"])
    return stage_view(stage, "main", ViewState(Expansion(closed=frozenset([block])))), block


def visit(values, seconds=None):
    array = np.asarray(values, "float32")
    return NodeVisit(NodeValue((summarise(array),), (array,)), seconds)


def trace(visits, seconds=0.0):
    given = {NodeId(one): found for one, found in visits.items()}
    return Trace("main", given, seconds or sum(v.seconds or 0 for v in given.values()), 0, 0)


# --- time --------------------------------------------------------------------------------------


def test_time_is_told_as_a_part_of_the_call(mlp):
    of = trace({"x": visit(1), "lv0": visit(1, 3e-4), "lv1": visit(1, 1e-4), "out": visit(1, 0.0)})
    overlay = time_overlay(of, mlp)
    assert overlay.title == "time of each node, of 400 µs"
    assert (overlay.low, overlay.high) == ("0 %", "75 %")
    assert {one: mark.text for one, mark in overlay.marks.items()} == {
        "lv0": "300 µs · 75 %",
        "lv1": "100 µs · 25 %",
        "out": "0 s",
    }
    shares = [overlay.marks[NodeId(one)].share for one in ("lv0", "lv1", "out")]
    assert shares == pytest.approx([1, 1 / 3, 0])


def test_what_takes_no_time_of_its_own_and_what_was_not_reached_have_no_mark(mlp):
    assert set(time_overlay(trace({"x": visit(1), "lv0": visit(1, 1e-3)}), mlp).marks) == {"lv0"}


def test_a_group_has_the_time_of_all_it_holds(mlp):
    found, block = closed(mlp)
    of = trace({"lv0": visit(1, 1e-3), "lv1": visit(1, 2e-3), "out": visit(1, 1e-3)})
    overlay = time_overlay(of, found)
    assert overlay.marks[NodeId(block)].text == "4 ms · 100 %"


def test_a_closed_call_has_the_time_of_what_it_does(called):
    of = trace(
        {"called": visit(1), inlined_id("called", "y"): visit(1, 2e-3), "alias": visit(1, 2e-3)}
    )
    assert time_overlay(of, called()).marks[NodeId("called")].text == "2 ms · 50 %"
    opened = time_overlay(of, called("called")).marks
    assert opened[inlined_id("called", "y")].text == "2 ms · 50 %"
    assert "called" not in opened


def test_little_time_is_not_said_to_be_none(mlp):
    of = trace({"lv0": visit(1, 1e-8), "lv1": visit(1, 1e-3)})
    assert time_overlay(of, mlp).marks[NodeId("lv0")].text == "10 ns"


@pytest.mark.parametrize("make", [time_overlay, size_overlay, value_overlay])
def test_a_trace_without_anything_gives_an_overlay_without_marks(mlp, make):
    overlay = make(trace({}), mlp)
    assert dict(overlay.marks) == {}
    assert "legend" in mlp.figure(overlay=overlay).svg


# --- size --------------------------------------------------------------------------------------


def test_sizes_within_two_decades_are_linear(mlp):
    of = trace({"x": visit(np.zeros(250)), "lv0": visit(np.zeros(500))})
    overlay = size_overlay(of, mlp)
    assert overlay.title == "size of each value"
    assert (overlay.low, overlay.high) == ("0 B", "1.95 KiB")
    assert overlay.marks[NodeId("x")].share == pytest.approx(0.5)
    assert overlay.marks[NodeId("x")].text == "1000 B"


def test_sizes_of_more_decades_are_logarithmic_and_the_legend_says_so(mlp):
    of = trace({"x": visit([0]), "lv0": visit(np.zeros(10**3)), "lv1": visit(np.zeros(10**6))})
    overlay = size_overlay(of, mlp)
    assert overlay.title == "size of each value, log scale"
    assert (overlay.low, overlay.high) == ("4 B", "3.81 MiB")
    shares = [overlay.marks[NodeId(one)].share for one in ("x", "lv0", "lv1")]
    assert shares == pytest.approx([0, 0.5, 1])


def test_a_group_has_the_bytes_of_all_its_values_and_text_has_none(mlp):
    found, block = closed(mlp)
    of = trace({"x": NodeVisit(NodeValue(text="(2, 3)")), "lv0": visit([1, 2]), "lv1": visit([1])})
    marks = size_overlay(of, found).marks
    assert {one: mark.text for one, mark in marks.items()} == {block: "12 B"}


# --- values ------------------------------------------------------------------------------------


def test_the_largest_value_counts_with_its_sign_left_out(mlp):
    of = trace({"x": visit([1, -4]), "lv0": visit([2])})
    marks = value_overlay(of, mlp).marks
    assert (marks[NodeId("x")].text, marks[NodeId("x")].share) == ("4", 1)
    assert (marks[NodeId("lv0")].text, marks[NodeId("lv0")].share) == ("2", 0.5)
    assert not any(mark.is_flagged for mark in marks.values())


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.42, "0.42"), (1.23e-6, "1.2e-6"), (3.14e12, "3.1e12"), (1234, "1234"), (0, "0")],
)
def test_numbers_are_short(mlp, value, words):
    assert value_overlay(trace({"x": visit(value)}), mlp).marks[NodeId("x")].text == words


def test_the_first_node_that_is_not_finite_stands_out_from_all(mlp):
    nan, inf = float("nan"), float("inf")
    of = trace(
        {"x": visit(5), "lv0": visit([1, nan, inf]), "lv1": visit([nan, nan]), "out": visit(1)}
    )
    overlay = value_overlay(of, mlp)
    first, then = overlay.marks[NodeId("lv0")], overlay.marks[NodeId("lv1")]
    assert (first.text, first.is_flagged, first.is_first) == ("1 NaN, 1 Inf · first", True, True)
    assert (then.text, then.is_flagged, then.is_first) == ("2 NaN", True, False)
    assert first.share == 1
    assert not overlay.marks[NodeId("out")].is_flagged
    assert overlay.flag == "NaN or Inf"


def test_a_nan_in_a_group_or_a_closed_call_is_warned_of_there(mlp, called):
    found, block = closed(mlp)
    of = trace({"lv0": visit(1), "lv1": visit(float("nan")), "out": visit(1)})
    assert value_overlay(of, found).marks[NodeId(block)].is_first
    inside = trace(
        {"first": visit(1), inlined_id("called", "y"): visit(np.nan), "called": visit(1)}
    )
    marks = value_overlay(inside, called()).marks
    assert marks[NodeId("called")].is_first
    assert value_overlay(inside, called("called")).marks[inlined_id("called", "y")].is_first


def test_an_empty_tensor_has_no_largest_value(mlp):
    assert value_overlay(trace({"x": visit([])}), mlp).marks == {}


# --- differences -------------------------------------------------------------------------------

DIFFERENCES = {NodeId("x"): 0.0, NodeId("lv0"): 1e-6, NodeId("lv1"): 1e-2}


def test_differences_are_told_with_where_the_stages_part(mlp):
    overlay = difference_overlay(DIFFERENCES, mlp, ["lv0"])
    marks = overlay.marks
    assert overlay.title == "largest |Δ| of each value, log scale"
    assert (overlay.low, overlay.high) == ("0 … 1e-6", "0.01")
    assert [marks[one].text for one in DIFFERENCES] == ["0", "1e-6 · first", "0.01"]
    assert [marks[one].share for one in DIFFERENCES] == pytest.approx([0, 0, 1])
    assert [one for one, mark in marks.items() if mark.is_flagged] == ["lv0"]
    assert overlay.flag == "first difference"


def test_a_difference_that_is_no_number_is_warned_of(mlp):
    overlay = difference_overlay({**DIFFERENCES, NodeId("out"): float("nan")}, mlp)
    mark = overlay.marks[NodeId("out")]
    assert (mark.text, mark.share, mark.is_flagged) == ("not finite", 1.0, True)
    assert overlay.flag == "not finite"


def test_a_group_has_the_largest_difference_in_it_and_no_number_beats_all(mlp):
    found, block = closed(mlp)
    assert difference_overlay(DIFFERENCES, found).marks[NodeId(block)].text == "0.01"
    worse = {**DIFFERENCES, NodeId("out"): float("nan")}
    assert difference_overlay(worse, mlp, ["lv0"]).flag == "first difference, or not finite"
    assert difference_overlay(worse, found, ["lv1"]).marks[NodeId(block)].is_first
    assert difference_overlay(worse, found).marks[NodeId(block)].text == "not finite"


def test_equal_stages_have_marks_without_a_tint(mlp):
    overlay = difference_overlay({NodeId("x"): 0.0, NodeId("lv0"): 0.0}, mlp)
    assert {mark.share for mark in overlay.marks.values()} == {0.0}
    assert (overlay.low, overlay.high) == ("0", "0")


def test_a_place_is_pale_where_all_it_shows_is_equal(mlp):
    equal = [NodeId("x"), NodeId("lv0")]
    assert dimmed_places(equal, DIFFERENCES, mlp) == ["x", "lv0"]
    found, _ = closed(mlp)
    assert dimmed_places(equal, DIFFERENCES, found) == ["x"], "the block holds lv1, too"


def test_the_colours_of_a_page_are_those_that_its_style_sheet_has(mlp):
    overlay = difference_overlay(DIFFERENCES, mlp, ["lv0"])
    svg = mlp.figure("page", overlay=overlay).svg
    named = set(re.findall(r"var\((--irviz-[\w-]+)\)", svg))
    assert {f"--irviz-picture-{name}" for name in ("tint-low", "tint-high", "flag")} <= named
    light, dark = (
        dict(re.findall(r"(--[\w-]+): (#\w+);", one)) for one in page_css().split("}")[:2]
    )
    for theme, css in (("course", light), ("dark", dark)):
        assert named <= css.keys()
        colours = [
            css[f"--irviz-picture-{name}"] for name in ("tint-low", "tint-high", "text", "flag")
        ]
        assert colours == [*THEMES[theme].tints, THEMES[theme].text, THEMES[theme].flag]


def test_a_picture_draws_what_it_is_told(mlp):
    overlay = difference_overlay(DIFFERENCES, mlp, ["lv0"])
    told = mlp.figure("dark", overlay=overlay, dimmed=["x"])
    assert ">1e-6 · first</text>" in told.svg
    assert told.svg.count("dimmed") == 4  # its node, value, word and the edge that leaves it
    assert told.places == mlp.figure("dark").places
