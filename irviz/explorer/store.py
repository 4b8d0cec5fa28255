"""The explorer's state, and the one way to change it: actions."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from irviz.explorer.actions import Action, Say
from irviz.explorer.reducer import reduce
from irviz.explorer.state import State

Subscriber = Callable[[State, State], None]
"""Is called with the state and the one before."""
Listener = Callable[[Action, State], None]
"""Is called with an action and the state after it."""

_log = logging.getLogger(__name__)


class Store:
    """Hold the state; let actions change it, and subscribers follow.

    An action that is dispatched while another one is dealt with waits for its turn. What a
    subscriber raises is said in the status bar, and the others are called all the same.

    Attributes:
        state: The current state.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self._subscribers: list[Subscriber] = []
        self._listeners: list[Listener] = []
        self._waiting: deque[Action] = deque()
        self._is_busy = False

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call a function now, and once behind each action that changed the state."""
        self._subscribers.append(subscriber)
        self._call(subscriber, self.state, self.state)

    def listen(self, listener: Listener) -> None:
        """Call a function behind every action, when the subscribers were called."""
        self._listeners.append(listener)

    def dispatch(self, action: Action) -> None:
        """Change the state by an action, and tell whoever follows it."""
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
        """Tell nobody of what is dispatched from now on."""
        self._subscribers, self._listeners = [], []

    def _do(self, action: Action) -> None:
        before, self.state = self.state, reduce(self.state, action)
        state = self.state
        if state is not before:
            for subscriber in self._subscribers:
                self._call(subscriber, state, before)
        for listener in self._listeners:
            listener(action, state)

    def _call(self, subscriber: Subscriber, state: State, before: State) -> None:
        try:
            subscriber(state, before)
        except Exception as failure:
            _log.exception("a part of the explorer could not be shown")
            words = str(failure) or type(failure).__name__
            self._waiting.append(Say(words, is_error=True))
