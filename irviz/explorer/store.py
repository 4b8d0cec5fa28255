"""The store: the explorer's state, which only actions change."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from irviz.explorer.actions import Action, Changed, Say
from irviz.explorer.reducer import reduce
from irviz.explorer.selectors import same_results
from irviz.explorer.state import State

Subscriber = Callable[[State, State], None]
"""Called with the state and the previous one."""
Listener = Callable[[Action, State], None]
"""Called with an action and the state after it."""
Deferral = Callable[[Action, State], bool]
"""Called with an action; returns whether it will be performed later, by an action `Changed`."""

_log = logging.getLogger(__name__)


class Store:
    """Holds the state, changes it by actions, and notifies subscribers.

    An action dispatched while another is being handled waits for its turn. An exception in a
    subscriber is shown in the status bar, and the other subscribers are still called.

    Attributes:
        state: The current state.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self._subscribers: list[Subscriber] = []
        self._listeners: list[Listener] = []
        self._defer: Deferral = lambda _action, _state: False
        self._waiting: deque[Action] = deque()
        self._is_busy = False

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call a function now, and after each action that changes the state."""
        self._subscribers.append(subscriber)
        self._call(subscriber, self.state, self.state)

    def listen(self, listener: Listener) -> None:
        """Call a function after every action and its subscribers."""
        self._listeners.append(listener)

    def defer(self, deferral: Deferral) -> None:
        """Ask a function of each action whether to perform it later."""
        self._defer = deferral

    def dispatch(self, action: Action) -> None:
        """Change the state by an action, and notify subscribers and listeners."""
        self._waiting.append(action)
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._waiting:
                self._do(self._waiting.popleft())
        finally:
            self._is_busy = False

    def close(self) -> None:
        """Stop notifying anyone."""
        self._subscribers, self._listeners = [], []

    def _do(self, action: Action) -> None:
        if self._defer(action, self.state):
            return
        before, self.state = self.state, reduce(self.state, action)
        state = self.state
        if state is not before:
            with same_results():
                for subscriber in self._subscribers:
                    self._call(subscriber, state, before)
        done = action.wanted if isinstance(action, Changed) else action
        for listener in self._listeners:
            listener(done, state)

    def _call(self, subscriber: Subscriber, state: State, before: State) -> None:
        try:
            subscriber(state, before)
        except Exception as failure:
            _log.exception("a part of the explorer could not be shown")
            words = str(failure) or type(failure).__name__
            self._waiting.append(Say(words, is_error=True))
