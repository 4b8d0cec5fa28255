"""The memory of a stage is shown when it is asked for, and what cannot be shown is said."""

import ipywidgets as widgets
import pytest

from irviz.app import memory_panel
from irviz.app.memory_panel import MemoryPanel, facts_html
from irviz.app.session import Session
from irviz.course.mlp import MODULES
from irviz.model.memory import MemoryUse, Step, Storage


class Desk:
    """A session's stage in the panel, and what it says."""

    def __init__(self, mod, function="main", sizes=None):
        self.said = []
        self.panel = MemoryPanel(lambda words, is_error: self.said.append((words, is_error)))
        self.session = Session(mod)
        self.panel.show(self.session.shown, function, sizes)

    def _all(self, widget=None):
        widget = widget or self.panel.widget
        yield widget
        for child in getattr(widget, "children", ()):
            yield from self._all(child)

    def press(self, words):
        for one in self._all():
            if isinstance(one, widgets.Button) and one.description == words:
                one.click()
                return
        raise AssertionError(words)

    def fields(self, words):
        return [one for one in self._all() if getattr(one, "description", None) == words]

    @property
    def text(self):
        return "".join(one.value for one in self._all() if isinstance(one, widgets.HTML))


def test_nothing_is_computed_before_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(memory_panel, "memory_use", lambda *_: pytest.fail("nobody asked"))
    monkeypatch.setattr(memory_panel, "destination_passing", lambda *_: pytest.fail("nobody asked"))
    desk = Desk(MODULES["MyModuleHighLevel"])
    assert desk.panel.use is None
    assert "svg" not in desk.text


def test_a_press_shows_the_peak_the_storages_and_the_chart():
    desk = Desk(MODULES["MyModuleHighLevel"])
    desk.press("Show memory")
    assert desk.panel.use.peak == 401920
    assert "392 KiB at step 1, matmul, which makes lv0" in desk.text
    assert "5 for 7 buffers" in desk.text
    assert "<svg" in desk.text


def test_sizes_are_asked_for_and_taken_as_they_are_written():
    desk = Desk(MODULES["MyModule"], sizes={"n": 64})
    (field,) = desk.fields("sizes")
    assert field.value == "m=128, n=64, k=128"
    field.value = "n=256, m=784, k=10"
    desk.press("Show memory")
    assert desk.panel.use.peak == 2048


@pytest.mark.parametrize("written", ["n", "n=many", "=4"])
def test_sizes_that_cannot_be_read_are_refused(written):
    desk = Desk(MODULES["MyModule"])
    desk.fields("sizes")[0].value = written
    desk.press("Show memory")
    assert "is no size: write sizes such as n=128" in desk.text
    assert desk.panel.use is None


def test_errors_are_words_and_are_escaped(modules):
    desk = Desk(modules.Closure)
    desk.press("Show memory")
    assert 'role="alert"' in desk.text
    assert "LambdaLift" in desk.text
    desk.press("Destination-passing view")
    assert "LambdaLift" not in desk.text  # what is written is known before TVM fails
    assert "<svg" in desk.text


def test_the_buffers_are_drawn_when_that_is_asked_for():
    desk = Desk(MODULES["MyModuleStatic"])
    desk.press("Destination-passing view")
    assert 'class="edge write"' in desk.text
    assert "storage 1" not in desk.text
    desk.fields("with the storages of the plan")[0].value = True
    desk.press("Destination-passing view")
    assert "512 B · storage 1" in desk.text


def test_both_pictures_are_saved(tmp_path):
    desk = Desk(MODULES["MyModuleStatic"])
    desk.press("Show memory")
    desk.press("Destination-passing view")
    chart, buffers = desk.panel.chart, desk.panel.buffers
    for shown, name in ((chart, "chart.svg"), (buffers, "buffers.svg")):
        field, button = shown.widget.children[1].children
        field.value = str(tmp_path / name)
        button.click()
        assert (tmp_path / name).read_text(encoding="utf-8") == shown.picture.svg
    assert [is_error for _, is_error in desk.said] == [False, False]
    field.value = str(tmp_path / "buffers.png")
    button.click()
    assert desk.said[-1][1] is True


def test_another_stage_takes_away_what_was_shown_and_the_same_keeps_it():
    desk = Desk(MODULES["MyModuleHighLevel"])
    desk.press("Show memory")
    desk.panel.show(desk.session.shown, "main")
    assert desk.panel.use is not None
    desk.panel.show(desk.session.apply("LegalizeOps").shown, "main")
    assert desk.panel.use is None
    assert "svg" not in desk.text


def test_a_prim_func_is_said_to_have_none():
    desk = Desk(MODULES["MyModuleStatic"], "linear0")
    assert "linear0 is a PrimFunc" in desk.text


def test_what_is_wrong_and_what_is_not_counted_is_told_escaped():
    use = MemoryUse(
        "main",
        (Step("<f>"),),
        (8,),
        (Storage("s", 8, 0, 1),),
        (),
        16,
        unseen=tuple(f"<g{n}>" for n in range(9)),
        warnings=("<w>",),
    )
    html = facts_html(use)
    assert "8 B at step 0, &lt;f&gt;" in html
    assert "16 B, 2.0× the peak" in html
    assert "&lt;g5&gt;, 3 more allocate" in html
    assert '<p role="alert" class="irviz-error">&lt;w&gt;</p>' in html
