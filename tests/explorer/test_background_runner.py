"""Slow work is done beside the kernel: in order or the newest, with progress, until cancelled."""

import asyncio
import threading
import time

import pytest

from irviz.errors import CancelledRunError, RunError
from irviz.explorer.background_runner import Line, Runner, in_steps, was_cancelled
from irviz.worker.supervisor import CancelledError, CrashedError
from tests.event_loop import LONG, until


class Process:
    """The process that the jobs of a line use, and wait for until it is ended."""

    def __init__(self):
        self.cancels, self.end = 0, threading.Event()

    def cancel(self):
        self.cancels += 1
        self.end.set()


class Desk:
    """A runner with one line, and what came of what was asked of it."""

    def __init__(self, line=None):
        self.failures, self.log, self.threads = [], [], set()
        self.process = Process()
        self.line = line or Line(self.process)
        self.runner = Runner(self.changed, self.failures.append)

    @property
    def jobs(self):
        return self.runner.jobs(self.line)

    def cancel(self):
        self.runner.cancel(self.line)

    def changed(self, line):
        assert line is self.line
        self.threads.add(threading.current_thread())
        self.log.append((self.jobs.name, self.jobs.progress))

    def do(self, name, job, done=None):
        answers = []

        def keep(answer):
            self.threads.add(threading.current_thread())
            answers.append(answer)

        self.runner.queue(self.line, name, name, lambda made: job(made.tell), done or keep)
        return answers

    async def idle(self):
        await until(lambda: not self.jobs.name)


class Gate:
    """A job that lasts until it is let go on; `entered` says that it began."""

    def __init__(self, answer="done", words="working"):
        self.entered, self.open = threading.Event(), threading.Event()
        self.answer, self.words, self.calls = answer, words, 0

    def __call__(self, on_progress):
        self.calls += 1
        self.entered.set()
        on_progress(self.words)
        assert self.open.wait(LONG)
        return self.answer


# --- without a kernel --------------------------------------------------------------------------


def test_without_a_kernel_a_job_is_done_at_once():
    desk = Desk()
    assert desk.do("a", lambda on_progress: on_progress("half") or 42) == [42]
    assert desk.log == [("a", ""), ("a", "half"), ("", "")]
    assert desk.threads == {threading.main_thread()}


def test_without_a_kernel_what_a_job_raises_is_its_answer():
    (answer,) = Desk().do("a", lambda _: 1 / 0)
    assert isinstance(answer, ZeroDivisionError)


def test_a_job_that_is_asked_for_by_the_end_of_another_follows_it():
    desk, order = Desk(), []

    def second(answer):
        order.append(("second", desk.jobs.name, answer))

    desk.do("a", lambda _: 1, lambda answer: desk.do("b", lambda _: answer + 1, second))
    assert order == [("second", "", 2)]
    assert [name for name, _ in desk.log if name] == ["a", "b"]


def test_ctrl_c_ends_the_job_and_leaves_nothing_under_way():
    desk = Desk()

    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.do("a", interrupted)
    assert desk.jobs.name == ""
    assert not desk.line.turn.locked()
    assert desk.do("b", lambda _: "fine") == ["fine"]


# --- in a kernel -------------------------------------------------------------------------------


def test_in_a_kernel_the_call_returns_at_once_and_the_loop_goes_on():
    async def kernel():
        desk, gate = Desk(), Gate()
        answers = desk.do("a", gate)
        assert answers == []
        assert desk.jobs.name == "a"
        await until(lambda: desk.jobs.progress == "working")  # the loop does other things
        gate.open.set()
        await desk.idle()
        assert answers == ["done"]

    asyncio.run(kernel())


def test_what_is_told_and_done_happens_in_the_kernels_thread_and_the_job_in_another():
    async def kernel():
        desk, threads = Desk(), []
        desk.do(
            "a", lambda on_progress: (on_progress("x"), threads.append(threading.current_thread()))
        )
        await desk.idle()
        assert ("a", "x") in desk.log
        assert desk.threads == {threading.main_thread()}
        assert threading.main_thread() not in threads

    asyncio.run(kernel())


def test_jobs_are_done_in_order_and_one_at_a_time():
    async def kernel():
        desk, order, together = Desk(), [], []

        def job(number):
            def do(_):
                together.append(number)
                time.sleep(0.005)
                order.append((number, tuple(together)))
                together.remove(number)

            return do

        for number in range(6):
            desk.do(str(number), job(number))
        assert desk.jobs.waiting == 5
        await desk.idle()
        assert order == [(number, (number,)) for number in range(6)]
        assert desk.jobs.waiting == 0

    asyncio.run(kernel())


def test_the_same_job_is_not_asked_for_twice_while_it_is_under_way_or_waits():
    async def kernel():
        desk, first, second = Desk(), Gate(), Gate()
        for _ in range(5):
            desk.do("a", first)
            desk.do("b", second)
        assert desk.jobs.keys == {"a", "b"}
        first.open.set()
        second.open.set()
        await desk.idle()
        assert (first.calls, second.calls) == (1, 1)
        desk.do("a", first)
        await desk.idle()
        assert first.calls == 2

    asyncio.run(kernel())


def test_what_a_job_raises_is_its_answer_and_the_next_one_is_done():
    async def kernel():
        desk = Desk()

        def ends_its_thread(_):
            raise SystemExit(3)

        first = desk.do("a", lambda _: 1 / 0)
        second = desk.do("b", ends_its_thread)
        third = desk.do("c", lambda _: "fine")
        await until(lambda: third)
        assert [type(one) for one in (*first, *second)] == [ZeroDivisionError, SystemExit]
        assert third == ["fine"]

    asyncio.run(kernel())


def test_what_is_raised_as_an_answer_is_shown_is_told_and_the_next_job_is_done():
    async def kernel():
        desk = Desk()

        def broken(answer):
            raise ValueError(f"cannot show {answer}")

        desk.do("a", lambda _: 1, broken)
        answers = desk.do("b", lambda _: 2)
        await until(lambda: answers)
        assert [str(one) for one in desk.failures] == ["cannot show 1"]
        await desk.idle()
        assert desk.log[-1] == ("", "")

    asyncio.run(kernel())


def test_what_is_raised_as_a_word_is_shown_is_told_and_the_job_goes_on():
    async def kernel():
        failures = []

        def changed(_):
            raise RuntimeError("no widget")

        runner, answers = Runner(changed, failures.append), []
        line = Line(Process())
        runner.queue(line, "a", "a", lambda job: job.tell("x") or 7, answers.append)
        await until(lambda: answers)
        assert answers == [7]
        assert {str(one) for one in failures} == {"no widget"}

    asyncio.run(kernel())


# --- cancelled ---------------------------------------------------------------------------------


def test_to_cancel_ends_the_job_and_forgets_those_that_wait():
    async def kernel():
        desk, waited = Desk(), []

        def cancellable(_):
            assert desk.process.end.wait(LONG)
            raise CrashedError("its process ended")

        answers = desk.do("a", cancellable)
        desk.do("b", lambda _: waited.append("b"))
        desk.do("c", lambda _: waited.append("c"))
        await asyncio.sleep(0.02)
        desk.cancel()
        assert desk.process.cancels == 1
        assert desk.jobs.progress == "cancelling"
        await desk.idle()
        assert was_cancelled(*answers)
        assert waited == []
        assert desk.do("d", lambda _: None) == []
        await desk.idle()

    asyncio.run(kernel())


def test_an_answer_that_comes_after_it_was_cancelled_is_none():
    async def kernel():
        desk, gate = Desk(), Gate("too late")
        answers = desk.do("a", gate)
        await until(gate.entered.is_set)
        desk.cancel()
        gate.open.set()
        await desk.idle()
        assert was_cancelled(*answers)

    asyncio.run(kernel())


def test_a_job_that_is_cancelled_can_be_asked_for_again_before_it_has_ended():
    async def kernel():
        desk, gate = Desk(), Gate()
        first = desk.do("a", gate)
        await until(gate.entered.is_set)
        desk.cancel()
        second = desk.do("a", lambda _: "new inputs")
        gate.open.set()
        await until(lambda: second)
        assert was_cancelled(*first)
        assert second == ["new inputs"]

    asyncio.run(kernel())


def test_what_is_cancelled_before_the_other_process_was_called_ends_as_soon_as_it_tells_something():
    async def kernel():
        desk, prepared, called = Desk(), threading.Event(), []

        def job(on_progress):
            assert prepared.wait(LONG)
            on_progress("running")
            called.append("the other process")

        answers = desk.do("a", job)
        await asyncio.sleep(0.02)
        desk.cancel()
        prepared.set()
        await desk.idle()
        assert was_cancelled(*answers)
        assert called == []

    asyncio.run(kernel())


def test_to_cancel_when_nothing_is_under_way_does_nothing():
    desk = Desk()
    desk.cancel()
    assert desk.process.cancels == 0
    assert desk.do("a", lambda _: 1) == [1]


def test_it_is_known_whether_an_answer_says_cancelled_by_whomever():
    assert was_cancelled(CancelledError("it was cancelled"))
    assert was_cancelled(CancelledRunError("'main' was cancelled"))
    assert not was_cancelled(RunError("'main' failed"))
    assert not was_cancelled(None)


# --- two explorers, and a kernel that ends -----------------------------------------------------


def test_jobs_of_two_explorers_wait_for_each_other_and_say_so():
    async def kernel():
        one, gate = Desk(), Gate()
        two = Desk(one.line)
        one.do("a", gate)
        await until(gate.entered.is_set)
        answers = two.do("b", lambda _: "b")
        await until(lambda: "another explorer" in two.jobs.progress)
        assert answers == []
        assert one.line.turn.locked()
        gate.open.set()
        await until(lambda: answers)
        assert answers == ["b"]
        await one.idle()
        assert not one.line.turn.locked()

    asyncio.run(kernel())


def test_to_cancel_in_one_explorer_leaves_the_job_of_another_alone():
    async def kernel():
        one, gate = Desk(), Gate()
        two = Desk(one.line)
        answers = one.do("a", gate)
        await until(gate.entered.is_set)
        others = two.do("b", lambda _: "b")
        await until(lambda: two.jobs.progress)
        two.cancel()
        await two.idle()
        assert one.process.cancels == 0  # there is one other process, and it works for the first
        assert was_cancelled(*others)
        gate.open.set()
        await one.idle()
        assert answers == ["done"]

    asyncio.run(kernel())


def test_a_loop_that_was_closed_meanwhile_leaves_nothing_under_way():
    desk, gate = Desk(), Gate()

    async def kernel():
        desk.do("a", gate)
        desk.do("b", lambda _: None)
        await until(gate.entered.is_set)

    asyncio.run(kernel())
    gate.open.set()
    deadline = time.monotonic() + LONG
    while desk.line.turn.locked() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert desk.do("c", lambda _: "c") == ["c"]  # the kernel is gone: at once
    assert desk.jobs.waiting == 0


# --- the newest job of a key -------------------------------------------------------------------


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


def newest(desk, steps, told, **options):
    desk.runner.replace("key", in_steps(iter(steps)), told=told.append, **options)


def test_without_a_kernel_all_steps_are_taken_at_once():
    told = []
    newest(Desk(), opened(1, 2, 3), told)
    assert told == [1, 2, 3]


def test_in_a_kernel_steps_are_taken_in_a_thread_and_told_in_the_kernels():
    steps, threads = Steps("first", "second"), []

    async def kernel():
        desk, told = Desk(), []
        work = in_steps(iter(steps))
        desk.runner.replace(
            "key", work, told=lambda value: (told.append(value), threads.append(here()))
        )
        assert told == []
        steps.gates[0].set()
        await until(lambda: told == ["first"])
        steps.gates[1].set()
        await until(lambda: told == ["first", "second"])

    asyncio.run(kernel())
    assert set(threads) == {threading.main_thread()}
    assert threading.main_thread() not in steps.threads


def here():
    return threading.current_thread()


@pytest.mark.parametrize("by", ["a newer one", "dropping it"])
def test_what_nobody_wants_any_more_is_not_told_and_holds_up_nothing(by):
    old, told, done = Steps("old", "late", "never"), [], []

    async def kernel():
        desk = Desk()
        old.gates[0].set()
        desk.runner.replace("key", in_steps(iter(old)), done.append, told.append)
        await until(lambda: told == ["old"])
        if by == "a newer one":
            newest(desk, opened("new", "newer"), told)
            await until(lambda: "newer" in told)
        else:
            desk.runner.drop("key")
        old.gates[1].set()
        await until(lambda: not [one for one in threading.enumerate() if one.name == NAME])
        await asyncio.sleep(0)

    asyncio.run(kernel())
    assert told == ["old", *(["new", "newer"] if by == "a newer one" else [])]
    assert done == []
    assert len(old.threads) == 2, "no further step is taken"


NAME = "irviz job"


@pytest.mark.parametrize("is_kernel", [True, False])
def test_what_a_step_raises_is_told_after_what_it_gave(is_kernel):
    def steps():
        yield 1
        raise ValueError("in a step")

    desk, told = Desk(), []

    async def kernel():
        newest(desk, steps(), told)
        await until(lambda: desk.failures)

    if is_kernel:
        asyncio.run(kernel())
    else:
        newest(desk, steps(), told)
    assert [str(one) for one in desk.failures] == ["in a step"]
    assert told == [1]


def test_work_for_later_is_done_beside_a_kernel_and_nowhere_else():
    told = []
    newest(Desk(), opened(1, 2), told, delay=0.0)
    assert told == []

    async def kernel():
        desk = Desk()
        newest(desk, opened("replaced"), told, delay=0.0)
        newest(desk, opened(1, 2), told, delay=0.0)
        assert told == []
        await until(lambda: told == [1, 2])

    asyncio.run(kernel())
    assert told == [1, 2]


def test_a_runner_that_is_closed_tells_nothing_more():
    async def kernel():
        desk, gate, steps, told = Desk(), Gate(), Steps(1), []
        newest(desk, steps, told)
        answers = desk.do("a", gate)
        await until(gate.entered.is_set)
        desk.runner.close()
        gate.open.set()
        steps.gates[0].set()
        await until(lambda: answers)
        assert was_cancelled(*answers)
        assert told == []

    asyncio.run(kernel())
