"""The state after actions of a reader, for tests of what is shown then."""

from irviz.explorer.actions import Action
from irviz.explorer.background_actions import perform
from irviz.explorer.state import State
from irviz.session.session import Session


def state_after(session: Session, *done: Action) -> State:
    """Return the state of a session when this was done, none of which may be refused."""
    state = State.of(session)
    for action in done:
        state = perform(state, action)
        assert state.failure is None, state.failure
    return state
