"""Print the current stage, and draw those next to it, during idle time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Never

from irviz.explorer import actions
from irviz.explorer.drawings import Drawings, draw
from irviz.explorer.script_data import printed
from irviz.explorer.selectors import unchanged
from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.state import State
from irviz.explorer.store import Store

_IDLE_SECONDS = 0.2
"""Stages are drawn after this much idle time, and this long after one another."""


class StagesAhead:
    """Prints the current stage, and draws the next and the previous one, in advance.

    Texts and pictures are cached where they are derived, not here. The requests of the user take
    precedence.
    Without an event loop nothing is drawn.
    """

    def __init__(self, store: Store, drawings: Drawings) -> None:
        self._store, self._drawings = store, drawings
        self._waiting: asyncio.TimerHandle | None = None
        store.subscribe(self._follow)

    def leave(self) -> None:
        """Stop drawing."""
        if self._waiting is not None:
            self._waiting.cancel()

    def _follow(self, state: State, before: State) -> None:
        if state is not before and unchanged(_looked_at(state), _looked_at(before)):
            return
        self.leave()
        with suppress(RuntimeError):
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(_IDLE_SECONDS, self._draw, neighbours(state))

    def _draw(self, stages: list[str]) -> None:
        if not self._drawings.is_busy:
            self._drawings.thread.follow_later(_drawn(self._store.state, stages))


def _drawn(state: State, stages: list[str]) -> Iterator[Never]:
    """Print and draw stages for the caches; yield nothing of use."""
    yield from ()
    printed(state.stage)
    for stage in stages:
        draw(state, actions.Checkout(stage))
        time.sleep(_IDLE_SECONDS)


def neighbours(state: State) -> list[str]:
    """Return the stages that a step leads to: next, previous, and those that differ."""
    rows = stage_rows(state)
    at = next((place for place, row in enumerate(rows) if row["isShown"]), 0)
    beside = [rows[at + 1 :], rows[:at][::-1]]
    nearest = [row["id"] for side in beside for row in side[:1]]
    others = [next((row["id"] for row in side if not row["isSame"]), "") for side in beside]
    return [one for one in dict.fromkeys([*nearest, *others]) if one]


def _looked_at(state: State) -> tuple[object, ...]:
    tree, colours = state.session.tree, state.colour_by
    return tree, state.function, state.reference, state.view, state.has_script, colours
