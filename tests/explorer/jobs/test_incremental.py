"""What becomes known bit by bit is shown so, and the kernel does other things meanwhile."""

import asyncio
import threading

import pytest

from irviz.explorer.jobs.incremental import Incremental
from tests.event_loop import LONG, until


class Steps:
    """Steps that are taken one by one, each when it is let go on."""

    def __init__(self, *values):
        self.values, self.gates = values, [threading.Event() for _ in values]
        self.threads = []

    def __iter__(self):
        for value, gate in zip(self.values, self.gates, strict=True):
            self.threads.append(threading.current_thread())
            assert gate.wait(LONG)
            yield value


def opened(*values):
    """Return steps that nothing holds up."""
    steps = Steps(*values)
    for gate in steps.gates:
        gate.set()
    return steps


def test_without_a_kernel_all_steps_are_taken_at_once():
    shown = []
    Incremental(shown.append).follow(iter(opened(1, 2, 3)))
    assert shown == [1, 2, 3]


def test_in_a_kernel_only_the_first_step_is_waited_for():
    steps, shown, threads = Steps("first", "second"), [], []

    def show(value):
        shown.append(value)
        threads.append(threading.current_thread())

    async def kernel():
        steps.gates[0].set()
        Incremental(show).follow(iter(steps))
        assert shown == ["first"]
        steps.gates[1].set()
        await until(lambda: shown == ["first", "second"])

    asyncio.run(kernel())
    assert set(threads) == {threading.main_thread()}
    assert steps.threads[1] is not threading.main_thread()


@pytest.mark.parametrize("asks", [True, False])
def test_what_nobody_wants_any_more_is_not_shown(asks):
    old, shown = Steps("old", "late", "never"), []

    async def kernel():
        stepwise = Incremental(shown.append)
        old.gates[0].set()
        stepwise.follow(iter(old))
        if asks:
            stepwise.follow(iter(opened("new", "newer")))
            await until(lambda: "newer" in shown)
        else:
            stepwise.leave()
        old.gates[1].set()
        old.gates[2].set()
        await until(lambda: not [one for one in threading.enumerate() if one.name == NAME])
        await asyncio.sleep(0)

    asyncio.run(kernel())
    assert shown == ["old", *(["new", "newer"] if asks else [])]


NAME = "irviz steps"


def test_what_a_step_raises_is_told_by_the_loop():
    def steps():
        yield 1
        raise ValueError("in a step")

    told = []

    async def kernel():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        Incremental(lambda _: None).follow(steps())
        await until(lambda: told)

    asyncio.run(kernel())
    assert str(told[0]["exception"]) == "in a step"


def test_steps_for_later_are_taken_beside_a_kernel_and_nowhere_else():
    shown = []
    Incremental(shown.append).follow_later(iter(opened(1, 2)))
    assert shown == []

    async def kernel():
        Incremental(shown.append).follow_later(iter(opened(1, 2)))
        assert shown == []
        await until(lambda: shown == [1, 2])

    asyncio.run(kernel())
