"""The stages beside the shown one are drawn while nothing else is to be done."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from irviz.explorer import actions
from irviz.explorer.reducer import reduce
from irviz.explorer.selectors import unchanged
from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.viewer_traits import viewer_data

_IDLE_SECONDS = 0.2
"""Stages are drawn when the reader has changed nothing for so long, and so long after another."""


class StagesAhead:
    """Draw the next stage and the one before, so that a step to them finds its picture made.

    What is drawn is kept where pictures are, so nothing is kept here. It takes place in the
    kernel's own thread, one stage at a time: a click waits for one picture at most, and that is
    often the one that it asks for. Without an event loop nobody steps, and nothing is drawn.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: asyncio.TimerHandle | None = None
        store.subscribe(self._follow)

    def leave(self) -> None:
        """Draw nothing more."""
        if self._waiting is not None:
            self._waiting.cancel()

    def _follow(self, state: State, before: State) -> None:
        if state is not before and unchanged(_looked_at(state), _looked_at(before)):
            return
        self.leave()
        if stages := neighbours(state):
            self._wait(stages)

    def _wait(self, stages: list[str]) -> None:
        with suppress(RuntimeError):
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(_IDLE_SECONDS, self._draw, stages)

    def _draw(self, stages: list[str]) -> None:
        first, *others = stages
        with suppress(Exception):  # it is said when the stage is gone to
            viewer_data(reduce(self._store.state, actions.Checkout(first)))
        if others:
            self._wait(others)


def neighbours(state: State) -> list[str]:
    """Return the stages that a step leads to: the next, the one before, and those that differ."""
    rows = stage_rows(state)
    at = next((place for place, row in enumerate(rows) if row["isShown"]), 0)
    beside = [rows[at + 1 :], rows[:at][::-1]]
    nearest = [row["id"] for side in beside for row in side[:1]]
    others = [next((row["id"] for row in side if not row["isSame"]), "") for side in beside]
    return [one for one in dict.fromkeys([*nearest, *others]) if one]


def _looked_at(state: State) -> tuple[object, ...]:
    tree, colours = state.session.tree, state.colour_by
    return tree, state.function, state.reference, state.view, state.has_script, colours
