"""Derive in advance what the viewer will show, so that the kernel finds it in the caches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

from irviz.explorer.script_data import block_lines, scripts
from irviz.explorer.selectors import (
    compared,
    found_nodes,
    history,
    node_source,
    scene,
    view_or_none,
)
from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.state import Side, State
from irviz.explorer.viewer_traits import viewer_data

_turn = threading.Lock()
"""Held while a picture is drawn: two at once would both be late."""


def draw(make: Callable[[], State], check: Callable[[], None]) -> State:
    """Make a state, and draw its pictures and texts.

    Args:
        check: Called between the steps; raises an exception if nobody waits for them any more.
    """
    with _turn:
        check()
        after = make()
        with suppress(Exception):  # it is said when it is shown
            for _ in _iter_drawn(after):
                check()
    return after


def _iter_drawn(state: State) -> Iterator[object]:
    sides: tuple[Side, ...] = ("current", "reference") if state.reference else ("current",)
    yield compared(state)
    for side in sides:
        yield view_or_none(state, side)
        yield scene(state, side)
    for one in (scripts, block_lines, node_source, history, found_nodes):
        yield one(state)
    yield viewer_data(state)


def neighbours(state: State) -> list[str]:
    """Return the stages that a step leads to: next, previous, and those that differ."""
    rows = stage_rows(state)
    at = next((place for place, row in enumerate(rows) if row["isShown"]), 0)
    beside = [rows[at + 1 :], rows[:at][::-1]]
    nearest = [row["id"] for side in beside for row in side[:1]]
    others = [next((row["id"] for row in side if not row["isSame"]), "") for side in beside]
    return [one for one in dict.fromkeys([*nearest, *others]) if one]
