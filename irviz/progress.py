"""Show the progress of what takes longer than a second, in a terminal or a notebook."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import closing
from typing import Any, TypeVar

_QUIET_SECONDS = 1.0
"""How long nothing is shown."""
_EVERY_SECONDS = 0.1

Value = TypeVar("Value")


class Progress:
    """Counts steps, with words for the current one; the bar disappears at the end."""

    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit = what, unit
        self._count, self._next = 0, time.monotonic() + _QUIET_SECONDS
        self._bar: Any = None

    def step(self, words: str = "") -> None:
        """Count a step, and show it if the last one shown was some time ago."""
        self._count += 1
        now = time.monotonic()
        if now < self._next or threading.current_thread() is not threading.main_thread():
            return
        self._next = now + _EVERY_SECONDS
        if self._bar is None:
            self._bar = _new_bar(desc=self._what, unit=f" {self._unit}")
        self._bar.set_postfix_str(words, refresh=False)
        self._bar.update(self._count - self._bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()


def with_progress(steps: Generator[str, None, Value], what: str = "") -> Value:
    """Take all steps, show their words, and return the final result."""
    with closing(Progress(what, "steps")) as shown:
        try:
            while True:
                shown.step(next(steps))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _new_bar(**options: object) -> Any:
    from tqdm.asyncio import tqdm as terminal_bar
    from tqdm.auto import tqdm  # imported only where something takes long

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # without a thread that watches it

    # a file or a pipe gets no bar; the output of a notebook says that it is no terminal
    disable = None if tqdm is terminal_bar else False
    words = "{desc}: {n_fmt}{unit}, {elapsed}{postfix}"
    return Bar(bar_format=words, leave=False, disable=disable, mininterval=0, **options)
