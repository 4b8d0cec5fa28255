"""What keys lead to, other stages and comparisons, is drawn before it is asked for."""

import asyncio
import threading

import pytest

from irviz.explorer.actions import Checkout, Compare
from irviz.explorer.background_actions import neighbours
from irviz.explorer.explorer import Explorer
from irviz.explorer.stage_pictures import compared, scene
from irviz.explorer.state import State
from irviz.session.session import Session
from irviz.session.shown_function import StageView
from irviz.session.stable_layout import SideView
from tests.event_loop import until
from tests.explorer.performed_actions import state_after

pytestmark = pytest.mark.worker


@pytest.fixture
def session(modules):
    session = Session(modules.EveryKind)
    for name in ("LegalizeOps", "CanonicalizeBindings", "FuseOps"):
        session = session.apply(name)
    return session


@pytest.fixture
def drawn(monkeypatch):
    """Returns the functions' graphs that were drawn, one by one, but not those of comparisons."""
    found, before = [], StageView.figure

    def figure(view, *given, **options):
        found.extend([view.whole] if not isinstance(view, SideView) else [])
        return before(view, *given, **options)

    monkeypatch.setattr(StageView, "figure", figure)
    return found


def is_drawing():
    return any(one.name == "irviz job" for one in threading.enumerate())


def test_a_step_finds_its_picture_drawn_once_nothing_else_was_to_be_done(session, drawn):
    async def kernel():
        explorer = Explorer(session.checkout("1"))
        assert len(drawn) == 1, "the first picture waits for no other"
        await until(lambda: len(drawn) == 3 and not is_drawing())
        explorer.dispatch(Checkout("2"))
        explorer.dispatch(Checkout("1"))
        explorer.dispatch(Checkout("0"))
        assert len(drawn) == 3
        assert explorer.scene["current"]["stage"] == "0"
        explorer.close()

    asyncio.run(kernel())


def test_the_comparison_with_the_parent_is_there_before_it_is_asked_for(session):
    async def kernel():
        explorer = Explorer(session.checkout("3"))
        wanted = state_after(session.checkout("3"), Compare("2"))
        await until(lambda: compared.is_known(wanted) and scene.is_known(wanted, "reference"))
        explorer.close()

    asyncio.run(kernel())


def test_a_pair_that_is_stepped_through_is_drawn_ahead_as_a_pair(session):
    async def kernel():
        explorer = Explorer(session.checkout("1"))
        explorer.dispatch(Compare("0"))
        wanted = state_after(session.checkout("2"), Compare("1"))
        await until(lambda: compared.is_known(wanted) and scene.is_known(wanted, "reference"))
        explorer.close()

    asyncio.run(kernel())


def test_nothing_is_drawn_ahead_where_nobody_steps(session, drawn):
    Explorer(session.checkout("1")).close()
    assert len(drawn) == 1


def test_what_a_step_leads_to_is_beside_the_shown_stage_and_the_next_that_differs(session):
    assert neighbours(State.of(session.checkout("1"))) == ["2", "0"]
    assert neighbours(State.of(session.checkout("0"))) == ["1"]
    assert neighbours(State.of(session.checkout("3"))) == ["2"]
