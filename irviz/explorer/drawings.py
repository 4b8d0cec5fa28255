"""Draw requested pictures in a thread, and show them when they are ready.

Meanwhile the kernel handles messages: a drawing can be cancelled, and a newer request replaces it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress

from irviz.explorer import actions
from irviz.explorer.actions import Action
from irviz.explorer.jobs.incremental import Incremental, check_wanted
from irviz.explorer.reducer import reduce
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.viewer_traits import viewer_data

_TOLD_SECONDS = 0.3
"""After this long, the status bar says what is being drawn."""
_turn = threading.Lock()
"""Held while a picture is drawn: two at once would both be late."""
_WAIT_SECONDS = 0.015
"""How long the kernel waits for a picture: with a cached one, switching threads would take longer.
"""
_CHOICES = (
    *(actions.Checkout, actions.Compare, actions.Focus),
    *(actions.ColourBy, actions.LookAround),
)
"""Actions that replace a pending one of the same kind."""


class Drawings:
    """Performs actions once their pictures are drawn.

    Until then nothing changes: no picture ever appears under another stage's name, and a cancelled
    action has no effect. Pictures are cached where they are derived, not here.

    Attributes:
        thread: The thread that draws for the latest request.
    """

    def __init__(self, store: Store) -> None:
        self.thread: Incremental[actions.Show] = Incremental(self._show)
        self._store = store
        self._asked: tuple[Action, ...] = ()
        self._telling: asyncio.TimerHandle | None = None
        store.subscribe(self._follow)
        store.listen(self._perform)

    @property
    def is_busy(self) -> bool:
        """Whether a picture that the user waits for is being drawn."""
        return bool(self._asked)

    def leave(self) -> None:
        """Drop the pending action."""
        self.thread.leave()
        self._end()

    def _perform(self, action: Action, state: State) -> None:
        match action:
            case actions.Look(wanted):
                self._ask(wanted, state)
            case actions.Cancel() if self._asked:
                self.leave()

    def _follow(self, state: State, before: State) -> None:
        if self._asked and state.session is not before.session:  # by something newer
            self.leave()

    def _ask(self, wanted: Action, state: State) -> None:
        is_choice = isinstance(wanted, _CHOICES)
        kept = [one for one in self._asked if not (is_choice and type(one) is type(wanted))]
        self._asked = (*kept, wanted)
        if state.drawing:
            self._tell()
        elif self._telling is None:
            with suppress(RuntimeError):  # no kernel: nobody looks meanwhile
                loop = asyncio.get_running_loop()
                self._telling = loop.call_later(_TOLD_SECONDS, self._tell)
        steps = _drawn(state, actions.Show(self._asked))
        self.thread.follow(steps, at_once=0, wait=_WAIT_SECONDS)

    def _show(self, drawn: actions.Show) -> None:
        self._asked = ()
        self._store.dispatch(drawn)
        self._end()

    def _end(self) -> None:
        self._asked = ()
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        self._tell()

    def _tell(self) -> None:
        """Report which stage is being drawn, "" for none."""
        shown = [self._store.state.stage_id] if self._asked else [""]
        moves = (actions.Checkout, actions.Reveal)
        chosen = [one.stage for one in self._asked if isinstance(one, moves) and one.stage]
        self._store.dispatch(actions.SetField("drawing", [*shown, *chosen][-1]))


def _drawn(state: State, wanted: actions.Show) -> Iterator[actions.Show]:
    draw(state, wanted)
    yield wanted


def draw(state: State, action: Action) -> None:
    """Draw the pictures that an action leads to, after any other drawing has ended."""
    with _turn:
        check_wanted()
        with suppress(Exception):  # it is said when it is shown
            viewer_data(reduce(state, action))
