"""What takes long is done beside the kernel, one job after another, and can be cancelled."""

import asyncio
import threading
import time

import pytest

from irviz.errors import CancelledRunError, RunError
from irviz.explorer.jobs import job_queue
from irviz.explorer.jobs.job_queue import JobQueue, was_cancelled
from irviz.worker.supervisor import CancelledError, CrashedError
from tests.event_loop import LONG, until


class Desk:
    """A background, and what came of what was asked of it."""

    def __init__(self):
        self.cancels, self.failures, self.log, self.threads = 0, [], [], set()
        self.end = threading.Event()
        """What a job that can be cancelled waits for: the other process that is ended."""
        self.background = JobQueue(self.cancel, self.changed, self.failures.append)

    def cancel(self):
        self.cancels += 1
        self.end.set()

    def changed(self):
        self.threads.add(threading.current_thread())
        self.log.append((self.background.jobs.name, self.background.jobs.progress))

    def do(self, name, job, done=None):
        answers = []

        def keep(answer):
            self.threads.add(threading.current_thread())
            answers.append(answer)

        self.background.do(name, name, job, done or keep)
        return answers

    async def idle(self):
        await until(lambda: not self.background.jobs.name)


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
        order.append(("second", desk.background.jobs.name, answer))

    desk.do("a", lambda _: 1, lambda answer: desk.do("b", lambda _: answer + 1, second))
    assert order == [("second", "", 2)]
    assert [name for name, _ in desk.log if name] == ["a", "b"]


def test_ctrl_c_ends_the_job_and_leaves_nothing_under_way():
    desk = Desk()

    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.do("a", interrupted)
    assert desk.background.jobs.name == ""
    assert not job_queue._turn.locked()
    assert desk.do("b", lambda _: "fine") == ["fine"]


# --- in a kernel -------------------------------------------------------------------------------


def test_in_a_kernel_the_call_returns_at_once_and_the_loop_goes_on():
    async def kernel():
        desk, gate = Desk(), Gate()
        answers = desk.do("a", gate)
        assert answers == []
        assert desk.background.jobs.name == "a"
        await until(
            lambda: desk.background.jobs.progress == "working"
        )  # the loop does other things
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
        assert desk.background.jobs.waiting == 5
        await desk.idle()
        assert order == [(number, (number,)) for number in range(6)]
        assert desk.background.jobs.waiting == 0

    asyncio.run(kernel())


def test_the_same_job_is_not_asked_for_twice_while_it_is_under_way_or_waits():
    async def kernel():
        desk, first, second = Desk(), Gate(), Gate()
        for _ in range(5):
            desk.do("a", first)
            desk.do("b", second)
        assert desk.background.jobs.keys == {"a", "b"}
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

        def changed():
            raise RuntimeError("no widget")

        background = JobQueue(lambda: None, changed, failures.append)
        answers = []
        background.do("a", "a", lambda on_progress: on_progress("x") or 7, answers.append)
        await until(lambda: answers)
        assert answers == [7]
        assert {str(one) for one in failures} == {"no widget"}

    asyncio.run(kernel())


# --- cancelled ---------------------------------------------------------------------------------


def test_to_cancel_ends_the_job_and_forgets_those_that_wait():
    async def kernel():
        desk, waited = Desk(), []

        def cancellable(_):
            assert desk.end.wait(LONG)
            raise CrashedError("its process ended")

        answers = desk.do("a", cancellable)
        desk.do("b", lambda _: waited.append("b"))
        desk.do("c", lambda _: waited.append("c"))
        await asyncio.sleep(0.02)
        desk.background.cancel()
        assert desk.cancels == 1
        assert desk.background.jobs.progress == "cancelling"
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
        desk.background.cancel()
        gate.open.set()
        await desk.idle()
        assert was_cancelled(*answers)

    asyncio.run(kernel())


def test_a_job_that_is_cancelled_can_be_asked_for_again_before_it_has_ended():
    async def kernel():
        desk, gate = Desk(), Gate()
        first = desk.do("a", gate)
        await until(gate.entered.is_set)
        desk.background.cancel()
        second = desk.do("a", lambda _: "new inputs")
        gate.open.set()
        await until(lambda: second)
        assert was_cancelled(*first)
        assert second == ["new inputs"]

    asyncio.run(kernel())


def test_what_is_cancelled_before_the_other_process_was_called_ends_as_soon_as_it_tells_something():
    async def kernel():
        desk, prepared, ended = Desk(), threading.Event(), []

        def job(on_progress):
            assert prepared.wait(LONG)
            desk.end.clear()  # what was cancelled until here was no call of this job's
            on_progress("running")
            ended.append(desk.end.wait(LONG))

        answers = desk.do("a", job)
        await asyncio.sleep(0.02)
        desk.background.cancel()
        prepared.set()
        await desk.idle()
        assert was_cancelled(*answers)
        assert ended == [True]

    asyncio.run(kernel())


def test_to_cancel_when_nothing_is_under_way_does_nothing():
    desk = Desk()
    desk.background.cancel()
    assert desk.cancels == 0
    assert desk.do("a", lambda _: 1) == [1]


def test_it_is_known_whether_an_answer_says_cancelled_by_whomever():
    assert was_cancelled(CancelledError("it was cancelled"))
    assert was_cancelled(CancelledRunError("'main' was cancelled"))
    assert not was_cancelled(RunError("'main' failed"))
    assert not was_cancelled(None)


# --- two explorers, and a kernel that ends -----------------------------------------------------


def test_jobs_of_two_explorers_wait_for_each_other_and_say_so():
    async def kernel():
        one, two, gate = Desk(), Desk(), Gate()
        one.do("a", gate)
        await until(gate.entered.is_set)
        answers = two.do("b", lambda _: "b")
        await until(lambda: "another explorer" in two.background.jobs.progress)
        assert answers == []
        assert job_queue._turn.locked()
        gate.open.set()
        await until(lambda: answers)
        assert answers == ["b"]
        await one.idle()
        assert not job_queue._turn.locked()

    asyncio.run(kernel())


def test_to_cancel_in_one_explorer_leaves_the_job_of_another_alone():
    async def kernel():
        one, two, gate = Desk(), Desk(), Gate()
        answers = one.do("a", gate)
        await until(gate.entered.is_set)
        others = two.do("b", lambda _: "b")
        await until(lambda: two.background.jobs.progress)
        two.background.cancel()
        await two.idle()
        assert two.cancels == 0  # there is one other process, and it works for the first
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
    while job_queue._turn.locked() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert desk.do("c", lambda _: "c") == ["c"]  # the kernel is gone: at once
    assert desk.background.jobs.waiting == 0
