"""Each stage says how much it changed, however many stages there are."""

import asyncio
import time
from dataclasses import replace

import pytest

from irviz.explorer.explorer import Explorer
from irviz.explorer.save_html import record_in_steps
from irviz.explorer.stage_rows import FEW_NODES, change_count, iter_change_counts
from irviz.explorer.state import State
from irviz.progress import with_progress
from irviz.session.session import Session

pytestmark = pytest.mark.worker

LONG = 20
"""Seconds after which a test has failed."""


@pytest.fixture
def session(modules):
    return Session(modules.EveryKind).apply("LegalizeOps").apply("FuseOps")


def counts(state):
    return [change_count(state, stage) for stage in state.session.stages]


def counted(state, **options):
    found = {}
    for some in iter_change_counts(state, **options):
        found |= some
    return replace(state, changes=found)


def test_rows_say_what_was_counted_and_count_nothing(session):
    state = State.of(session)
    assert counts(state) == [-1, -1, -1]
    assert all(count > 0 for count in counts(counted(state))[1:])


def test_what_is_counted_at_once_is_what_is_counted_later_but_of_small_functions(session):
    state = State.of(session)
    assert counts(counted(state, most=FEW_NODES)) == counts(counted(state))
    few = counted(state, most=1)
    assert counts(few) == [-1, -1, -1]
    assert counts(counted(few)) == counts(counted(state))


def test_the_changes_of_a_few_stages_are_there_at_once(opened, session):
    assert [row["changes"] > 0 for row in opened(session).rows] == [False, True, True]


def test_in_a_kernel_the_rows_get_their_changes_while_nothing_is_asked_for(modules):
    session = Session(modules.stack(FEW_NODES // 5)).apply("ToMixedPrecision").apply("LegalizeOps")
    assert len(session.graph().nodes) > FEW_NODES  # which is not counted at once

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
    state = counted(State.of(session.select_function("fused")))
    lowered = session.stages[1]
    added = set(session.checkout("1").functions) - set(session.checkout("0").functions)
    assert change_count(state, lowered) == len(added | {"main", "twice"})


def test_a_saved_file_has_the_changes_of_all_stages(session):
    rows = with_progress(record_in_steps(State.of(session)))["traits"]["rows"]
    assert [row["changes"] > 0 for row in rows] == [False, True, True]
