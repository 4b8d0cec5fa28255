"""Transform and open modules in a thread; the state changes when they are there.

Meanwhile the kernel handles messages, such as one that cancels.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from irviz.explorer import actions
from irviz.explorer.actions import Action
from irviz.explorer.drawings import draw
from irviz.explorer.jobs.incremental import Incremental, check_wanted
from irviz.explorer.reducer import changed_session
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.session.session import Session
from irviz.worker.supervisor import TRIES

_SLOW = (actions.Apply, actions.ReplaySchedule, actions.ReplayBranch, actions.OpenFile)
_WAIT_SECONDS = 0.015
"""How long the kernel waits: for a quick pass, switching threads would take longer."""
_turn = threading.Lock()
"""Held while a change is made: all explorers of a kernel share one worker process."""


class SlowChanges:
    """Performs actions that transform or open a module, in the order in which they were asked for.

    A transform applies to the stage that was shown when it was asked for.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[tuple[Action, str]] = deque()
        self._thread: Incremental[actions.Changed] = Incremental(self._show)
        self._has_turn = False
        store.defer(self._take)
        store.listen(self._perform)

    def leave(self) -> None:
        """Drop the actions that are not done."""
        if self._waiting:
            self._waiting.clear()
            self._thread.leave()
            if self._has_turn:
                TRIES.cancel()

    def _take(self, action: Action, state: State) -> bool:
        if not isinstance(action, _SLOW):
            return False
        self._waiting.append((action, state.stage_id))
        if len(self._waiting) == 1:
            self._next()
        return True

    def _perform(self, action: Action, _state: State) -> None:
        if isinstance(action, actions.Cancel) and self._waiting:
            words = f"{_name(self._waiting[0][0])} was cancelled"
            self.leave()
            self._tell()
            self._store.dispatch(actions.Say(words))

    def _next(self) -> None:
        self._tell()
        steps = self._changed(*self._waiting[0], self._store.state)
        self._thread.follow(steps, at_once=0, wait=_WAIT_SECONDS)

    def _changed(self, action: Action, stage_id: str, state: State) -> Iterator[actions.Changed]:
        """Make the change, and draw what it leads to."""
        result: Session | Exception
        with _turn:
            self._has_turn = True
            try:
                check_wanted()
                session = state.session
                at = session if state.stage_id == stage_id else session.checkout(stage_id)
                result = changed_session(at, action)
            except Exception as failure:  # told where it is shown
                result = failure
            finally:
                self._has_turn = False
        change = actions.Changed(action, state.session, result)
        draw(state, change)
        yield change

    def _show(self, change: actions.Changed) -> None:
        if self._store.state.session is not change.before:  # it has changed since
            self._next()
            return
        self._waiting.popleft()
        self._tell()
        self._store.dispatch(change)
        if self._waiting:
            self._next()

    def _tell(self) -> None:
        name = _name(self._waiting[0][0]) if self._waiting else ""
        self._store.dispatch(actions.SetField("applying", name))


def _name(action: Action) -> str:
    """Return what the status bar calls an action that is not done yet."""
    match action:
        case actions.Apply(transform):
            return f"applying {transform.label}"
        case actions.OpenFile(name, _):
            return f"opening {name}"
    return "replaying"
