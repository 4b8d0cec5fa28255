"""Each stage says how much it changed, however many stages there are."""

import asyncio
import time

import pytest

from irviz.explorer import change_counts, effects
from irviz.explorer.change_counts import change_count, iter_change_counts
from irviz.explorer.explorer import Explorer
from irviz.explorer.html_file import last, record_in_steps
from irviz.explorer.state import State
from irviz.session.session import Session

pytestmark = pytest.mark.worker

LONG = 20
"""Seconds after which a test has failed."""


@pytest.fixture
def session(modules, monkeypatch):
    """Returns a session of more stages than are counted at once."""
    monkeypatch.setattr(change_counts, "_MOST_STAGES_AT_ONCE", 2)
    session = Session(modules.EveryKind).apply("LegalizeOps")
    return session.apply("FuseOps")


def counts(state):
    return [change_count(state, stage) for stage in state.session.stages]


def test_changes_of_many_stages_are_not_counted_before_their_first_picture(session):
    assert counts(State.of(session)) == [-1, -1, -1]


def test_what_is_counted_later_is_what_is_counted_at_once_of_few_stages(session, monkeypatch):
    state = State.of(session)
    later = {}
    for found in iter_change_counts(state):
        later |= found
    monkeypatch.setattr(change_counts, "_MOST_STAGES_AT_ONCE", 3)
    stages = session.stages
    assert [later[stage, "main"] for stage in stages[1:]] == counts(state)[1:]
    assert all(count > 0 for count in later.values())


def test_in_a_kernel_the_rows_get_their_changes_while_nothing_is_asked_for(session, monkeypatch):
    monkeypatch.setattr(effects, "_IDLE_SECONDS", 0.05)

    async def kernel():
        explorer = Explorer(session)
        first = [row["changes"] for row in explorer.rows]
        deadline = time.monotonic() + LONG
        while -1 in [row["changes"] for row in explorer.rows[1:]]:
            assert time.monotonic() < deadline, "it takes too long"
            await asyncio.sleep(0.01)
        explorer.close()
        return first, [row["changes"] for row in explorer.rows]

    first, last = asyncio.run(kernel())
    assert first == [-1, -1, -1]
    assert all(count > 0 for count in last[1:])


def test_a_stage_that_lacks_the_function_counts_the_functions_that_differ(modules):
    session = Session(modules.EveryKind).apply("LegalizeOps").apply("FuseOps")
    state = State.of(session.select_function("fused"))
    lowered = session.stages[1]
    added = set(session.checkout("1").functions) - set(session.checkout("0").functions)
    assert change_count(state, lowered) == len(added | {"main", "twice"})


def test_a_saved_file_has_the_changes_of_all_stages(session):
    rows = last(record_in_steps(State.of(session)))["traits"]["rows"]
    assert [row["changes"] > 0 for row in rows] == [False, True, True]
