"""What the reader asks to see is drawn beside the kernel, and shown when its picture is there."""

import asyncio
import threading

import pytest

from irviz.session.session import Session
from irviz.session.shown_function import StageView
from tests.event_loop import LONG, until

pytestmark = pytest.mark.worker


@pytest.fixture
def explorer(opened, modules):
    """Three stages, of which the first is shown."""
    session = Session(modules.EveryKind).apply("LegalizeOps").apply("FuseOps")
    return opened(session.checkout("0"))


@pytest.fixture
def gate(monkeypatch):
    """Pictures are not drawn on before it is set."""
    found, before = threading.Event(), StageView.figure

    def figure(view, *given, **options):
        assert threading.current_thread() is not threading.main_thread(), "the kernel is held up"
        assert found.wait(LONG)
        return before(view, *given, **options)

    monkeypatch.setattr(StageView, "figure", figure)
    return found


def shown(explorer):
    """Return the stage that is shown, by its picture and by its row."""
    (row,) = [row["id"] for row in explorer.rows if row["isShown"]]
    return explorer.canvas.data["stage"], row


def test_the_old_picture_stays_with_its_own_name_until_the_new_one_is_there(explorer, gate):
    async def kernel():
        explorer.choose("1")
        await until(lambda: explorer.status["drawing"] == "1")
        assert shown(explorer) == ("0", "0")
        gate.set()
        await until(lambda: shown(explorer) == ("1", "1"))
        assert explorer.status["drawing"] == ""

    asyncio.run(kernel())


def test_a_newer_choice_takes_the_place_of_one_that_is_still_drawn(explorer, gate):
    seen = []

    async def kernel():
        explorer.explorer.store.subscribe(lambda state, _: seen.append(state.stage_id))
        explorer.choose("1")
        await until(lambda: explorer.status["drawing"] == "1")
        explorer.compare("0")
        explorer.choose("2")
        gate.set()
        await until(lambda: shown(explorer) == ("2", "2"))
        assert explorer.other.data["stage"] == "0"

    asyncio.run(kernel())
    assert "1" not in seen


@pytest.mark.parametrize("by", ["cancel", "a transform"])
def test_a_drawing_that_is_cancelled_or_out_of_date_changes_nothing(explorer, gate, by):
    async def kernel():
        explorer.choose("1")
        await until(lambda: explorer.status["drawing"] == "1")
        if by == "cancel":
            explorer.cancel()
        else:
            explorer.explorer.session = explorer.explorer.session.rename("2", "mine")
        assert explorer.status["drawing"] == ""
        gate.set()
        await until(lambda: not [one for one in threading.enumerate() if one.name == NAME])
        await asyncio.sleep(0)
        assert shown(explorer) == ("0", "0")

    asyncio.run(kernel())


NAME = "irviz job"
