"""The memory of a stage is shown when it is asked for, and what cannot be shown is said."""

import pytest

from irviz.course.mlp import MODULES
from irviz.explorer.actions import SetField, SetSession
from irviz.explorer.effects import Effects
from irviz.explorer.panels import profile_panel
from irviz.explorer.panels.profile_panel import MemoryPanel, facts_html
from irviz.model.runs.memory_timeline import MemoryStep, MemoryUse, Storage
from irviz.session.session import Session

pytestmark = pytest.mark.worker


@pytest.fixture
def memory(desk_class):
    """Returns a session's stage in the panel, and what it says."""

    class Memory(desk_class):
        def __init__(self, mod, function="main", sizes=None):
            session = Session(mod, function=function, sizes=sizes)
            super().__init__(session, MemoryPanel, effects=Effects)
            self.dispatch(SetField("runs_new_stages", False))

    return Memory


def test_nothing_is_computed_before_it_is_asked_for(memory, monkeypatch):
    monkeypatch.setattr(profile_panel, "memory_use", lambda *_: pytest.fail("nobody asked"))
    monkeypatch.setattr(
        profile_panel, "destination_passing", lambda *_: pytest.fail("nobody asked")
    )
    desk = memory(MODULES["MyModuleHighLevel"])
    assert desk.panel.use is None
    assert "svg" not in desk.html()


def test_a_press_shows_the_peak_the_storages_and_the_chart(memory):
    desk = memory(MODULES["MyModuleHighLevel"])
    desk.press("Show memory")
    assert desk.panel.use.peak == 401920
    assert "392 KiB at step 1, matmul, which makes lv0" in desk.html()
    assert "5 for 7 buffers" in desk.html()
    assert "<svg" in desk.html()


def test_sizes_are_asked_for_and_taken_as_they_are_written(memory):
    desk = memory(MODULES["MyModule"], sizes={"n": 64})
    field = desk.button("sizes")
    assert field.value == "m=8, n=64, k=8"
    field.value = "n=256, m=784, k=10"
    desk.press("Show memory")
    assert desk.panel.use.peak == 2048


@pytest.mark.parametrize("written", ["n", "n=many", "=4"])
def test_sizes_that_cannot_be_read_are_refused(memory, written):
    desk = memory(MODULES["MyModule"])
    desk.button("sizes").value = written
    desk.press("Show memory")
    words = f"{written!r} is not a size: write sizes such as n=128"
    assert words in desk.error_at("irviz-memory-sizes")
    desk.button("sizes").value = "n=4"
    assert desk.error_at("irviz-memory-sizes") == ""
    assert desk.panel.use is None


def test_errors_are_words_and_are_escaped(memory, modules):
    desk = memory(modules.Closure)
    desk.press("Show memory")
    assert 'role="alert"' in desk.html()
    assert "LambdaLift" in desk.html()
    desk.press("Destination-passing view")
    assert "LambdaLift" not in desk.html()  # what is written is known before TVM fails
    assert "<svg" in desk.html()


def test_the_buffers_are_drawn_when_that_is_asked_for(memory):
    desk = memory(MODULES["MyModuleStatic"])
    desk.press("Destination-passing view")
    assert 'class="edge write"' in desk.html()
    assert "storage 1" not in desk.html()
    desk.button("with the storages of the plan").value = True
    desk.press("Destination-passing view")
    assert "512 B · storage 1" in desk.html()


def test_both_pictures_are_saved(memory):
    desk = memory(MODULES["MyModuleStatic"])
    desk.press("Show memory")
    desk.press("Destination-passing view")
    for kind in ("memory", "buffers"):
        desk.find(f"irviz-{kind}-save").click()
        assert desk.state.file.name == f"main-0-{kind}.svg"
        assert desk.state.file.content.decode() in desk.html(f"irviz-{kind}-picture")


def test_another_stage_takes_away_what_was_shown_and_the_same_keeps_it(memory):
    desk = memory(MODULES["MyModuleHighLevel"])
    desk.press("Show memory")
    desk.dispatch(SetSession(desk.session.rename("0", "another name")))
    assert desk.panel.use is not None
    desk.dispatch(SetSession(desk.session.apply("LegalizeOps")))
    assert desk.panel.use is None
    assert "svg" not in desk.html()


def test_a_prim_func_is_said_to_have_none(memory):
    desk = memory(MODULES["MyModuleStatic"], "linear0")
    assert "linear0 is a PrimFunc" in desk.html()


def test_what_is_wrong_and_what_is_not_counted_is_told_escaped():
    use = MemoryUse(
        "main",
        (MemoryStep("<f>"),),
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
