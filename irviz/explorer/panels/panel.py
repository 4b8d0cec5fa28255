"""The base of all panels: a part of the page that is a function of the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from irviz.explorer.actions import Action, FieldName, Say, SetField
from irviz.explorer.panels.form_controls import FieldError, ReadersChanges, button
from irviz.explorer.state import State, unchanged
from irviz.explorer.store import Store


class Panel(ABC):
    """Shows parts of the state in `widget` and sends actions, independently of other panels.

    A panel has no state but its widgets, with what the user has not sent yet.
    """

    widget: widgets.Widget

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shown: tuple[object, ...] | None = None
        self.changes = ReadersChanges()

    @property
    def state(self) -> State:
        """The current state."""
        return self._store.state

    def _parts(self, state: State) -> tuple[object, ...]:
        """Return the parts of the state that the panel shows, by default all of it."""
        return (state,)

    @abstractmethod
    def _show(self, state: State) -> None:
        """Set the traits of the widgets from a state."""

    def update(self, state: State, _: State | None = None) -> None:
        """Show a state, unless it differs from the last one only in other parts."""
        parts = self._parts(state)
        if self._shown is not None and unchanged(self._shown, parts):
            return
        self._shown = parts
        with self.changes.paused():
            self._show(state)

    def on_change(
        self, widget: widgets.Widget, act: Callable[[Any], None], trait: str = "value"
    ) -> None:
        """Call a function with each new value that the user gives a trait of a widget."""
        widget.observe(self.changes.to(act), trait)

    def button(
        self,
        text: str,
        tooltip: str,
        act: Action | Callable[[], object],
        icon: str = "",
        name: str = "",
    ) -> widgets.Button:
        """Return a button that sends an action, or calls a function; `name` is its CSS class."""
        call = (lambda: self.send(act)) if isinstance(act, Action) else act
        return button(text, tooltip, call, icon, name)

    def sets(self, widget: widgets.Widget, name: FieldName, trait: str = "value") -> None:
        """Set a field of the state to each new value that the user gives a trait."""
        self.on_change(widget, lambda value: self.send(SetField(name, value)), trait)

    def send(self, action: Action) -> None:
        """Dispatch an action of the user."""
        self._store.dispatch(action)

    def try_to_send(self, make: Callable[[], Action]) -> None:
        """Send an action, or show why there is none, at the field or else in the status bar."""
        try:
            action = make()
        except FieldError as failure:
            self.send(Say(""))  # what is said there is of something else
            failure.field.say(str(failure))
        except Exception as failure:  # whatever it is, the explorer lives on
            self.send(Say(str(failure), is_error=True))
        else:
            self.send(action)
