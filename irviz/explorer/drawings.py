"""What the reader asks to see is drawn in a thread, and shown when its picture is there.

Meanwhile the kernel reads messages: a drawing can be cancelled, and a newer wish replaces it.
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
"""After so long it is told what is being drawn."""
_turn = threading.Lock()
"""Of two pictures that are drawn at once both would be late."""
_WAIT_SECONDS = 0.03
"""So long the kernel waits for a picture: with one that is there two threads take turns for longer.
"""
_CHOICES = (
    *(actions.Checkout, actions.Compare, actions.Focus),
    *(actions.ColourBy, actions.LookAround),
)
"""Actions that take the place of one of their kind whose picture is not there yet."""


class Drawings:
    """Do what the reader asks for when it is drawn.

    Until then all is as it was: no picture ever stands under another stage's name, and what is
    cancelled has changed nothing. Pictures are kept where they are derived, and not here.

    Attributes:
        thread: In which is drawn what was asked for last.
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
        """Whether something is drawn that the reader waits for."""
        return bool(self._asked)

    def leave(self) -> None:
        """Leave all as it is."""
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
        """Tell which stage is being drawn, "" for none."""
        shown = [self._store.state.stage_id] if self._asked else [""]
        moves = (actions.Checkout, actions.Reveal)
        chosen = [one.stage for one in self._asked if isinstance(one, moves) and one.stage]
        self._store.dispatch(actions.SetField("drawing", [*shown, *chosen][-1]))


def _drawn(state: State, wanted: actions.Show) -> Iterator[actions.Show]:
    draw(state, wanted)
    yield wanted


def draw(state: State, action: Action) -> None:
    """Draw what an action leads to, when nothing else is drawn any more."""
    with _turn:
        check_wanted()
        with suppress(Exception):  # it is said when it is shown
            viewer_data(reduce(state, action))
