"""The panel says what a node's value is, shows it in pictures, fetches the whole and saves it."""

import threading
from functools import partial
from xml.etree import ElementTree

import ipywidgets as widgets
import numpy as np
import pytest
from tvm import relax

from irviz.explorer.actions import Report, Say, Select, SetField
from irviz.explorer.effects import Effects
from irviz.explorer.panels.node_value_panel import ValuePanel, _cost_words
from irviz.explorer.selected_node import selected_value
from irviz.explorer.state import RunKey, ValueKey
from irviz.model.graph.graph import NodeId
from irviz.model.runs.array_diff import summarise
from irviz.model.runs.execution_trace import NodeValue, NodeVisit, Trace
from irviz.model.runs.run_result import RunResult
from irviz.session.session import Session
from irviz.view.graph.graphviz_engine import ENGINE
from tests.event_loop import LONG, in_kernel, until

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


def value(*arrays, kept=True, text=""):
    taken = tuple(np.asarray(array) for array in arrays)
    return NodeValue(tuple(map(summarise, taken)), taken if kept else (None,) * len(taken), text)


def module():
    """Return a module with a node of each name that a test gives a value."""
    names = ("lv0", "lv1", "n", "sh", "tuple", "x", "lv3 y #2", "<b>&")
    params = [relax.Var(name, relax.TensorType([2], "float32")) for name in names]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(params[0], "out"))
    return builder.get()


def key(value):
    """Return the key of the run for the whole of a value."""
    return ValueKey("main", "0", NodeId("lv0"), 0, value)


@pytest.fixture
def shown(desk_class):
    """Returns a panel that shows the values that nodes are given, and what is fetched."""

    class Shown(desk_class):
        def __init__(self, fetched=(), engine=ENGINE):
            panel = partial(ValuePanel, engine=engine)
            super().__init__(Session(module()), panel, effects=Effects)
            self.fetched = fetched

        def show(self, value, label, case=0):
            """Let a run have recorded this value of a node, and select that."""
            visits = {} if value is None else {NodeId(label): NodeVisit(value)}
            trace = Trace("main", visits, 1.0, 1.0, 1.0, case)
            result = RunResult((np.zeros((1, 2)),), 1.0, trace=trace)
            self.dispatch(Report(RunKey("main", "0", case, 0), result))
            self.dispatch(Select(label))

        def fetch(self):
            """Press the button, and let the run for the value end."""
            value = selected_value(self.state).value
            assert self.button("Fetch whole value") is not None
            self.dispatch(Report(key(value), self.fetched))

        @property
        def svg(self):
            return self.html("irviz-value-picture")

        @property
        def seen(self):
            return list(self.all(visible=True))

        def one(self, kind, words):
            seen = (one for one in self.seen if isinstance(one, kind))
            return next((one for one in seen if words in one.description), None)

        @property
        def kinds(self):
            found = self.one(widgets.Dropdown, "picture")
            return found.options if found else ()

    return Shown


def test_a_value_is_told_in_numbers(shown):
    desk = shown()
    desk.show(value(MATRIX), "lv0")
    for words in ("lv0", "input 0", "(3, 4)", "float32", "<dd>48</dd>", "<dd>11</dd>", "5.5"):
        assert words in desk.html()
    assert "irviz-error" not in desk.html()


def test_a_matrix_is_a_heat_map_first_and_a_histogram_when_asked(shown):
    desk = shown()
    desk.show(value(MATRIX), "lv0")
    assert desk.kinds == ("heat map", "histogram")
    assert 'aria-label="heat map of lv0' in desk.svg
    desk.one(widgets.Dropdown, "picture").value = "histogram"
    assert 'aria-label="histogram of lv0' in desk.svg


def test_the_kind_of_picture_stays_from_node_to_node_where_it_fits(shown):
    desk = shown()
    desk.show(value(MATRIX), "lv0")
    desk.one(widgets.Dropdown, "picture").value = "histogram"
    desk.show(value(MATRIX + 1), "lv1")
    assert "histogram of lv1" in desk.svg
    desk.show(value(np.float32(3)), "n")
    assert "histogram" not in desk.svg
    desk.show(value(MATRIX), "lv0")
    assert "histogram of lv0" in desk.svg


def test_nan_and_infinity_are_warned_of_in_words_and_with_a_sign(shown):
    desk = shown()
    desk.show(value([1.0, np.nan, np.nan, -np.inf]), "lv0")
    assert "⚠ 2 NaN and 1 Inf among 4 numbers" in desk.html()
    assert "irviz-error" in desk.html()
    assert "2 NaN" in desk.svg


def test_what_has_no_finite_number_has_no_histogram(shown):
    desk = shown()
    desk.show(value(np.full((2, 2), np.nan)), "lv0")
    assert desk.kinds == ()
    assert "heat map" in desk.svg


def test_a_scalar_is_its_number(shown):
    desk = shown()
    desk.show(value(np.float32(2.5)), "n")
    assert "scalar" in desk.html()
    assert ">2.5<" in desk.svg


def test_what_is_no_tensor_is_text(shown):
    desk = shown()
    desk.show(NodeValue(text="shape <(n, 4)>"), "sh")
    assert "shape &lt;(n, 4)&gt;" in desk.html()
    assert desk.svg == ""
    assert desk.one(widgets.Button, "Save") is None


def test_an_empty_tensor_has_facts_and_no_picture(shown):
    desk = shown()
    desk.show(value(np.zeros((0, 4))), "lv0")
    assert "(0, 4)" in desk.html()
    assert desk.svg == ""
    assert desk.one(widgets.Button, "Fetch") is None


def test_without_a_value_there_is_nothing_or_the_words_why(shown):
    desk = shown()
    desk.show(value(MATRIX), "lv0")
    desk.show(None, "")
    assert desk.seen == []
    desk.show(None, "lv1")
    assert "input 0: it was not reached" in desk.html()
    assert desk.svg == ""
    assert desk.one(widgets.Button, "Fetch") is None


def test_the_tensors_of_a_tuple_are_chosen_among(shown):
    desk = shown()
    desk.show(value(MATRIX, np.array([5, 7], np.int8)), "tuple")
    chooser = desk.one(widgets.Dropdown, "tensor")
    assert len(chooser.options) == 2
    chooser.index = 1
    assert "int8" in desk.html()
    assert "int8" in desk.svg
    desk.show(value(MATRIX), "lv0")
    assert desk.one(widgets.Dropdown, "tensor") is None
    assert "float32" in desk.svg


def test_a_slice_of_more_dimensions_is_chosen_by_its_index(shown):
    desk = shown()
    desk.show(value(np.arange(48.0).reshape(2, 1, 3, 2, 4)), "lv0")
    boxes = [one for one in desk.seen if isinstance(one, widgets.BoundedIntText)]
    assert [box.description for box in boxes] == ["index 0 (0 to 1)", "index 2 (0 to 2)"]
    boxes[0].value, boxes[1].value = 1, 2
    assert "the slice [1, 0, 2, :, :]" in desk.svg
    desk.show(value(MATRIX), "lv1")
    assert desk.one(widgets.BoundedIntText, "index") is None


def test_images_behind_the_first_sixteen_can_be_reached(shown):
    desk = shown()
    desk.show(value(np.random.default_rng(0).random((20, 256))), "x")
    desk.one(widgets.Dropdown, "picture").value = "images"
    assert ">15<" in desk.svg
    desk.one(widgets.BoundedIntText, "first image").value = 18
    assert ">19<" in desk.svg
    assert ">15<" not in desk.svg
    assert "images 18 to 19 of 20" in desk.svg


def test_what_was_not_kept_has_a_histogram_and_can_be_fetched(shown):
    desk = shown(fetched=(MATRIX,))
    desk.show(value(MATRIX, kept=False), "lv0")
    assert "too large" in desk.html()
    assert "histogram of lv0" in desk.svg
    desk.fetch()
    assert desk.kinds == ("heat map", "histogram")
    assert "heat map of lv0" in desk.svg
    assert "too large" not in desk.html()
    assert desk.one(widgets.Button, "Fetch") is None
    assert desk.said == ""


def test_what_was_fetched_stays_while_its_node_is_shown(shown):
    whole = value(MATRIX, kept=False)
    desk = shown(fetched=(MATRIX,))
    desk.show(whole, "lv0")
    desk.fetch()
    desk.show(whole, "lv0", case=1)
    assert "heat map" in desk.svg
    assert "input 1" in desk.html()
    desk.show(value(MATRIX, kept=False), "lv1")
    assert desk.one(widgets.Button, "Fetch") is not None


@pytest.mark.parametrize("failure", [ValueError("no <run>"), RuntimeError("the worker ended")])
def test_a_fetch_that_fails_says_why_and_changes_nothing(shown, failure):
    desk = shown(fetched=failure)
    desk.show(value(MATRIX, kept=False), "lv0")
    before = desk.svg
    desk.fetch()
    assert (desk.said, desk.state.message.is_error) == (str(failure), True)
    assert desk.svg == before


@pytest.mark.parametrize("fetched", [(MATRIX.T,), (), (MATRIX, MATRIX), (MATRIX.astype(int),)])
def test_a_fetch_of_something_else_is_refused(shown, fetched):
    desk = shown(fetched=fetched)
    desk.show(value(MATRIX, kept=False), "lv0")
    desk.fetch()
    words = desk.said
    assert desk.state.message.is_error
    assert "run the stage again" in words
    assert desk.one(widgets.Button, "Fetch") is not None


def test_a_fetch_that_ends_when_another_node_is_shown_is_not_shown_there(shown):
    desk, first = shown(), value(MATRIX, kept=False)
    desk.show(first, "lv0")
    desk.show(value(MATRIX, kept=False), "lv1")
    desk.dispatch(Report(key(first), (MATRIX,)))
    assert "histogram of lv1" in desk.svg
    assert desk.said == ""


def test_the_picture_is_saved_under_a_name_of_its_own(shown):
    desk = shown()
    desk.show(value(MATRIX), "lv3 y #2")
    desk.press("Save SVG")
    assert desk.state.file.name == "lv3-y-2-heat-map.svg"
    assert desk.state.file.content.decode() == desk.svg
    ElementTree.fromstring(desk.state.file.content)


def test_pictures_are_on_the_paper_of_the_theme(shown):
    desk = shown()
    desk.show(value(MATRIX), "lv0")
    assert "#ffffff" in desk.svg
    desk.dispatch(SetField("is_dark", True))
    assert "#14171a" in desk.svg


def test_a_name_with_markup_in_it_is_text(shown):
    desk = shown()
    desk.show(value(MATRIX), "<b>&")
    assert "<b>" not in desk.html()
    assert "&lt;b&gt;&amp;" in desk.html()
    ElementTree.fromstring(desk.svg)


def test_what_is_shown_already_is_not_drawn_again(shown):
    engine = Engine()
    desk, given = shown(engine=engine), value(MATRIX)
    desk.show(given, "lv0")
    desk.show(given, "lv0", case=1)
    desk.dispatch(Say("something else"))
    assert engine.calls == 1


def test_the_kernel_answers_while_a_picture_is_drawn(shown):
    engine, given = Engine(), [value(MATRIX), value(MATRIX + 1)]

    @in_kernel
    async def _():
        desk = shown(engine=engine)
        engine.may_end.clear()
        desk.show(given[0], "lv0")
        desk.show(given[1], "lv1")
        assert desk.svg == ""
        engine.may_end.set()
        await until(lambda: desk.svg)
        assert "lv1" in desk.svg


class Engine:
    """Draws in this process, once it may, and counts the pictures."""

    def __init__(self):
        self.calls, self.may_end = 0, threading.Event()
        self.may_end.set()

    def call(self, draw, **_):
        self.calls += 1
        assert self.may_end.wait(LONG)
        return draw()


def test_what_recording_cost_is_compared_with_a_call_that_was_recorded_too():
    trace = Trace("main", {}, seconds=0.5, untraced=7.0, cost=3.4)
    words = _cost_words(trace)
    assert "500 ms" in words
    assert "3.4 s" in words
    assert "7" not in words
