"""The panel says what a node's value is, shows it in pictures, fetches the whole and saves it."""

from xml.etree import ElementTree

import ipywidgets as widgets
import numpy as np
import pytest

from irviz.app.value_panel import ValuePanel
from irviz.model.summary import summarise
from irviz.model.trace import Value

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


def value(*arrays, kept=True, text=""):
    taken = tuple(np.asarray(array) for array in arrays)
    return Value(tuple(map(summarise, taken)), taken if kept else (None,) * len(taken), text)


class Desk:
    """A panel, what it says, and what a reader sees and does."""

    def __init__(self, fetched=()):
        self.said = []
        self.fetched = fetched
        self.panel = ValuePanel(
            self.fetch, lambda words, is_error: self.said.append((words, is_error))
        )

    def fetch(self):
        if isinstance(self.fetched, Exception):
            raise self.fetched
        return self.fetched

    def all(self, widget=None):
        """Return all widgets that are not hidden."""
        widget = widget or self.panel.widget
        if widget.layout.display == "none":
            return []
        return [
            widget,
            *(one for child in getattr(widget, "children", ()) for one in self.all(child)),
        ]

    def one(self, kind, words):
        found = [one for one in self.all() if isinstance(one, kind) and words in one.description]
        return found[0] if found else None

    def press(self, words):
        self.one(widgets.Button, words).click()

    @property
    def text(self):
        return " ".join(one.value for one in self.all() if isinstance(one, widgets.HTML))

    @property
    def svg(self):
        (found,) = [o.value for o in self.all() if "irviz-value-picture" in o._dom_classes]
        return found

    @property
    def kinds(self):
        found = self.one(widgets.Dropdown, "picture")
        return found.options if found else ()


def test_a_value_is_told_in_numbers():
    desk = Desk()
    desk.panel.show(value(MATRIX), "lv0", words="relu of x")
    for words in ("lv0", "relu of x", "(3, 4)", "float32", "<dd>48</dd>", "<dd>11</dd>", "5.5"):
        assert words in desk.text
    assert "irviz-error" not in desk.text


def test_a_matrix_is_a_heat_map_first_and_a_histogram_when_asked():
    desk = Desk()
    desk.panel.show(value(MATRIX), "lv0")
    assert desk.kinds == ("heat map", "histogram")
    assert 'aria-label="heat map of lv0' in desk.svg
    desk.one(widgets.Dropdown, "picture").value = "histogram"
    assert 'aria-label="histogram of lv0' in desk.svg


def test_the_kind_of_picture_stays_from_node_to_node_where_it_fits():
    desk = Desk()
    desk.panel.show(value(MATRIX), "lv0")
    desk.one(widgets.Dropdown, "picture").value = "histogram"
    desk.panel.show(value(MATRIX + 1), "lv1")
    assert "histogram of lv1" in desk.svg
    desk.panel.show(value(np.float32(3)), "n")
    assert "histogram" not in desk.svg
    desk.panel.show(value(MATRIX), "lv0")
    assert "histogram of lv0" in desk.svg


def test_nan_and_infinity_are_warned_of_in_words_and_with_a_sign():
    desk = Desk()
    desk.panel.show(value([1.0, np.nan, np.nan, -np.inf]), "lv0")
    assert "⚠ 2 NaN and 1 Inf among 4 numbers" in desk.text
    assert "irviz-error" in desk.text
    assert "2 NaN" in desk.svg


def test_what_has_no_finite_number_has_no_histogram():
    desk = Desk()
    desk.panel.show(value(np.full((2, 2), np.nan)), "lv0")
    assert desk.kinds == ()
    assert "heat map" in desk.svg


def test_a_scalar_is_its_number():
    desk = Desk()
    desk.panel.show(value(np.float32(2.5)), "n")
    assert "scalar" in desk.text
    assert ">2.5<" in desk.svg


def test_what_is_no_tensor_is_text():
    desk = Desk()
    desk.panel.show(Value(text="shape <(n, 4)>"), "sh")
    assert "shape &lt;(n, 4)&gt;" in desk.text
    assert desk.svg == ""
    assert desk.one(widgets.Button, "Save") is None


def test_an_empty_tensor_has_facts_and_no_picture():
    desk = Desk()
    desk.panel.show(value(np.zeros((0, 4))), "lv0")
    assert "(0, 4)" in desk.text
    assert desk.svg == ""
    assert desk.one(widgets.Button, "Fetch") is None


def test_without_a_value_there_is_nothing_or_the_words_why():
    desk = Desk()
    desk.panel.show(value(MATRIX), "lv0")
    desk.panel.show(None, "")
    assert desk.all() == []
    desk.panel.show(None, "lv1", words="not reached: the other branch was taken")
    assert "the other branch was taken" in desk.text
    assert desk.svg == ""
    assert desk.one(widgets.Button, "Fetch") is None


def test_the_tensors_of_a_tuple_are_chosen_among():
    desk = Desk()
    desk.panel.show(value(MATRIX, np.array([5, 7], np.int8)), "tuple")
    chooser = desk.one(widgets.Dropdown, "tensor")
    assert len(chooser.options) == 2
    chooser.index = 1
    assert "int8" in desk.text
    assert "int8" in desk.svg
    desk.panel.show(value(MATRIX), "lv0")
    assert desk.one(widgets.Dropdown, "tensor") is None
    assert "float32" in desk.svg


def test_a_slice_of_more_dimensions_is_chosen_by_its_index():
    desk = Desk()
    desk.panel.show(value(np.arange(48.0).reshape(2, 1, 3, 2, 4)), "lv0")
    boxes = [one for one in desk.all() if isinstance(one, widgets.BoundedIntText)]
    assert [box.description for box in boxes] == ["index 0 (0 to 1)", "index 2 (0 to 2)"]
    boxes[0].value, boxes[1].value = 1, 2
    assert "the slice [1, 0, 2, :, :]" in desk.svg
    desk.panel.show(value(MATRIX), "lv1")
    assert desk.one(widgets.BoundedIntText, "index") is None


def test_images_behind_the_first_sixteen_can_be_reached():
    desk = Desk()
    desk.panel.show(value(np.random.default_rng(0).random((20, 64))), "x")
    desk.one(widgets.Dropdown, "picture").value = "images"
    assert ">15<" in desk.svg
    desk.one(widgets.BoundedIntText, "first image").value = 18
    assert ">19<" in desk.svg
    assert ">15<" not in desk.svg
    assert "images 18 to 19 of 20" in desk.svg


def test_what_was_not_kept_has_a_histogram_and_can_be_fetched():
    desk = Desk(fetched=(MATRIX,))
    desk.panel.show(value(MATRIX, kept=False), "lv0")
    assert "too large" in desk.text
    assert "histogram of lv0" in desk.svg
    desk.press("Fetch whole value")
    assert desk.kinds == ("heat map", "histogram")
    assert "heat map of lv0" in desk.svg
    assert "too large" not in desk.text
    assert desk.one(widgets.Button, "Fetch") is None
    assert desk.said == []


def test_what_was_fetched_stays_while_its_node_is_shown():
    whole = value(MATRIX, kept=False)
    desk = Desk(fetched=(MATRIX,))
    desk.panel.show(whole, "lv0")
    desk.press("Fetch whole value")
    desk.panel.show(whole, "lv0", words="again")
    assert "heat map" in desk.svg
    assert "again" in desk.text
    desk.panel.show(value(MATRIX, kept=False), "lv1")
    assert desk.one(widgets.Button, "Fetch") is not None


@pytest.mark.parametrize("failure", [ValueError("no <run>"), RuntimeError("the worker ended")])
def test_a_fetch_that_fails_says_why_and_changes_nothing(failure):
    desk = Desk(fetched=failure)
    desk.panel.show(value(MATRIX, kept=False), "lv0")
    before = desk.svg
    desk.press("Fetch whole value")
    assert desk.said == [(str(failure), True)]
    assert desk.svg == before


@pytest.mark.parametrize("fetched", [(MATRIX.T,), (), (MATRIX, MATRIX), (MATRIX.astype(int),)])
def test_a_fetch_of_something_else_is_refused(fetched):
    desk = Desk(fetched=fetched)
    desk.panel.show(value(MATRIX, kept=False), "lv0")
    desk.press("Fetch whole value")
    ((words, is_error),) = desk.said
    assert is_error
    assert "run the stage again" in words
    assert desk.one(widgets.Button, "Fetch") is not None


def test_a_fetch_that_ends_when_another_node_is_shown_is_not_shown_there():
    desk = Desk()
    desk.panel.show(value(MATRIX, kept=False), "lv0")

    def meanwhile():
        desk.panel.show(value(MATRIX, kept=False), "lv1")
        return (MATRIX,)

    desk.fetch = meanwhile
    desk.panel._fetch = meanwhile
    desk.press("Fetch whole value")
    assert "histogram of lv1" in desk.svg
    assert desk.said == []


def test_the_picture_is_saved_under_a_name_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    desk.panel.show(value(MATRIX), "lv3/y #2")
    assert desk.one(widgets.Text, "file").value == "lv3-y-2-heat-map.svg"
    desk.press("Save SVG")
    saved = tmp_path / "lv3-y-2-heat-map.svg"
    assert saved.read_text(encoding="utf-8") == desk.svg
    assert desk.said == [(f"saved {saved}", False)]
    ElementTree.parse(saved)


@pytest.mark.parametrize("name", ["picture.png", "nowhere/picture.svg"])
def test_a_name_that_cannot_be_written_is_told(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    desk = Desk()
    desk.panel.show(value(MATRIX), "lv0")
    desk.one(widgets.Text, "file").value = name
    desk.press("Save SVG")
    ((words, is_error),) = desk.said
    assert is_error
    assert repr(name) in words
    assert list(tmp_path.iterdir()) == []


def test_pictures_are_on_the_paper_of_the_theme():
    desk = Desk()
    desk.panel.show(value(MATRIX), "lv0")
    assert "#ffffff" in desk.svg
    desk.panel.theme = "dark"
    assert "#14171a" in desk.svg
    with pytest.raises(ValueError, match="no theme 'neon'"):
        desk.panel.theme = "neon"
    assert desk.panel.theme == "dark"


def test_a_name_with_markup_in_it_is_text():
    desk = Desk()
    desk.panel.show(value(MATRIX), "<b>&", words="<i>")
    assert "<b>" not in desk.text
    assert "<i>" not in desk.text
    ElementTree.fromstring(desk.svg)


def test_what_is_shown_already_is_not_drawn_again(monkeypatch):
    drawn = []
    desk = Desk()
    monkeypatch.setattr(desk.panel, "_draw", lambda: drawn.append(1))
    shown = value(MATRIX)
    desk.panel.show(shown, "lv0")
    desk.panel.show(shown, "lv0")
    assert len(drawn) == 1
