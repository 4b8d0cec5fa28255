"""The store: the explorer's state, which only actions change."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from irviz.errors import error_summary, message_of
from irviz.explorer import actions
from irviz.explorer.background_actions import SLOW, change_name, changed_session, draw
from irviz.explorer.background_runner import CHANGE, RUN, Job, Line, Runner, was_cancelled
from irviz.explorer.reducer import reduce
from irviz.explorer.state import State
from irviz.session.session import Session

Subscriber = Callable[[State, State], None]
"""Called with the state and the previous one."""
Listener = Callable[[actions.Action, State], None]
"""Called with an action and the state after it."""

_log = logging.getLogger(__name__)
_WAIT_SECONDS = 0.015
"""How long the kernel waits: for a quick pass, switching threads would take longer."""


class Store:
    """Holds the state, changes it by actions, and notifies subscribers.

    An action dispatched while another is being handled waits for its turn. An action that
    transforms or opens a module is done by the runner, in the order in which they were asked for,
    each on the stage that was shown when it was asked for; the state changes when the result is
    there. An exception in a subscriber is shown in the status bar, and the other subscribers are
    still called. Actions may come from several threads.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.runner = Runner(self._tell, self._complain)
        self._subscribers: list[Subscriber] = []
        self._listeners: list[Listener] = []
        self._waiting: deque[actions.Action] = deque()
        self._is_busy = False

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call a function now, and after each action that changes the state."""
        self._subscribers.append(subscriber)
        self._call(subscriber, self.state, self.state)

    def listen(self, listener: Listener) -> None:
        """Call a function after every action and its subscribers."""
        self._listeners.append(listener)

    def dispatch(self, action: actions.Action) -> None:
        """Change the state by an action, and notify subscribers and listeners."""
        with self.runner.lock:
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
        """Cancel everything, and stop notifying anyone."""
        self.runner.close()
        self._subscribers, self._listeners = [], []

    def _do(self, action: actions.Action) -> None:
        match action:
            case actions.Cancel():
                self._cancel_changes()
            case actions.Changed(wanted, old, _, stage_id) if old is not self.state.session:
                self._change(wanted, stage_id, first=True)  # it has changed since
                return
            case _ if isinstance(action, SLOW):
                self._change(action, self.state.stage_id)
                return
        before, self.state = self.state, reduce(self.state, action)
        state = self.state
        if state is not before:
            for subscriber in self._subscribers:
                self._call(subscriber, state, before)
        done = action.wanted if isinstance(action, actions.Changed) else action
        for listener in self._listeners:
            listener(done, state)

    def _call(self, subscriber: Subscriber, state: State, before: State) -> None:
        try:
            subscriber(state, before)
        except Exception as failure:
            _log.exception("a part of the explorer could not be shown")
            self._waiting.append(actions.Say(message_of(failure), is_error=True))

    # --- slow work -----------------------------------------------------------------------------

    def _change(self, wanted: actions.Action, stage_id: str, *, first: bool = False) -> None:
        """Transform or open a module, and then dispatch the result."""
        work = partial(self._changed, wanted, stage_id)
        name = change_name(wanted)
        self.runner.queue(CHANGE, object(), name, work, self._take, wait=_WAIT_SECONDS, first=first)

    def _changed(self, wanted: actions.Action, stage_id: str, job: Job) -> actions.Changed:
        """Return the result, whose pictures are drawn by then."""
        state = self.state
        result: Session | Exception
        try:
            at = state.session
            at = at if state.stage_id == stage_id else at.checkout(stage_id)
            result = changed_session(at, wanted)
        except Exception as failure:  # told where it is shown
            result = failure
        change = actions.Changed(wanted, state.session, result, stage_id)
        if self.state.session is state.session:
            draw(partial(reduce, state, change), job.check)
        return change

    def _take(self, answer: object) -> None:
        if isinstance(answer, actions.Changed):
            self.dispatch(answer)
        elif isinstance(answer, Exception) and not was_cancelled(answer):
            self._complain(answer)

    def _cancel_changes(self) -> None:
        pending = self.runner.pending(CHANGE)
        if pending:
            self.runner.cancel(CHANGE)
            self.dispatch(actions.Say(f"{pending[0].name} was cancelled"))

    def _tell(self, line: Line) -> None:
        """Show what a line does."""
        if line is RUN:
            self.dispatch(actions.SetField("jobs", self.runner.jobs(RUN)))
        else:
            names = [job.name for job in self.runner.pending(CHANGE)]
            self.dispatch(actions.SetField("applying", next(iter(names), "")))

    def _complain(self, failure: Exception) -> None:
        self.dispatch(actions.Say(error_summary(failure), is_error=True))
