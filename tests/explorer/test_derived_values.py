"""What is derived from a state is computed once, also where two threads want it."""

import threading
from dataclasses import replace

import pytest

from irviz.course.mlp import MyModule
from irviz.explorer.state import State, derived
from irviz.session.session import Session


@pytest.fixture
def state():
    return State.of(Session(MyModule))


def test_a_thread_waits_for_what_another_one_computes(state):
    begun, go, computed = threading.Event(), threading.Event(), []

    @derived(lambda state: (state.function,))
    def slow(state):
        computed.append(state)
        begun.set()
        go.wait(10)
        return object()

    found = []
    threads = [
        threading.Thread(target=lambda one: found.append(slow(one)), args=(one,))
        for one in (state, replace(state, search="x"))
    ]
    threads[0].start()
    assert begun.wait(10)
    threads[1].start()
    go.set()
    for one in threads:
        one.join(10)
    assert len(computed) == 1
    assert found[0] is found[1]


def test_nothing_waits_for_what_is_derived_of_other_parts(state):
    begun, go = threading.Event(), threading.Event()

    @derived(lambda state: (state.search,))
    def found(state):
        if state.search == "slow":
            begun.set()
            go.wait(10)
        return state.search

    thread = threading.Thread(target=found, args=(replace(state, search="slow"),))
    thread.start()
    assert begun.wait(10)
    assert found(replace(state, search="fast")) == "fast"
    assert thread.is_alive()
    go.set()
    thread.join(10)
