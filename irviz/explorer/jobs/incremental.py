"""What becomes known bit by bit is shown so, and the kernel does other things meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

from irviz.explorer.jobs.job_queue import soon

Value = TypeVar("Value")


class Incremental(Generic[Value]):
    """Takes the steps of what was asked for last, in a thread where a kernel's event loop runs.

    The first step is taken at once, and all of them where there is no loop. What a step gave is
    passed on in the kernel's own thread, and only as long as nothing else is asked for.
    """

    def __init__(self, shown: Callable[[Value], None]) -> None:
        self._shown = shown
        self._wanted: Iterator[Value] = iter(())

    def follow(self, steps: Iterator[Value]) -> None:
        """Pass on what these steps give, and nothing more of those before them."""
        self._wanted = steps
        for value in islice(steps, 1):
            self._shown(value)
        if not self._begin(steps):  # no kernel: nothing else is to be done meanwhile
            for value in steps:
                self._shown(value)

    def follow_later(self, steps: Iterator[Value]) -> None:
        """Do as `follow`, but take no step at once, and none where there is no loop."""
        self._wanted = steps
        self._begin(steps)

    def leave(self) -> None:
        """Pass on nothing more."""
        self._wanted = iter(())

    def _begin(self, steps: Iterator[Value]) -> bool:
        """Take the steps in a thread, if there is a loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        work = threading.Thread(
            target=self._go_on, args=(loop, steps), name="irviz steps", daemon=True
        )
        work.start()
        return True

    def _go_on(self, loop: asyncio.AbstractEventLoop, steps: Iterator[Value]) -> None:
        try:
            for value in steps:
                soon(loop, self._pass_on, steps, value)
                if self._wanted is not steps:
                    return
        except Exception as failure:  # told by the loop, as what its own calls raise
            soon(loop, _raise, failure)

    def _pass_on(self, steps: Iterator[Value], value: Value) -> None:
        if self._wanted is steps:
            self._shown(value)


def _raise(failure: Exception) -> None:
    raise failure
