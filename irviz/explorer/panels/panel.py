"""A panel, a part of the page that is a function of the state, and the controls it is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import anywidget
import ipywidgets as widgets

from irviz.errors import IrvizError
from irviz.explorer.actions import Action, FieldName, Say, SetField
from irviz.explorer.state import State, unchanged
from irviz.explorer.store import Store
from irviz.explorer.viewer import STATIC
from irviz.explorer.viewer.schema import ChipTraits
from irviz.explorer.viewer.widget import synced_traits
from irviz.view.templating import escape


def field(
    kind: type[widgets.Widget],
    name: str,
    words: str = "",
    *,
    is_aligned: bool = False,
    **options: Any,
) -> Any:
    """Return a control with a CSS class and description, by default as wide as possible.

    The description is as wide as its text, or, if it `is_aligned`, as those of its neighbours.
    """
    style = {} if is_aligned else {"style": {"description_width": "initial"}}
    # a layout of its own: to hide one widget is not to hide another
    layout = widgets.Layout(width="auto")
    return classed(kind(description=words, layout=layout, **style, **options), name)


def checkbox(name: str, words: str = "", *, is_on: bool = False) -> Any:
    """Return a checkbox with a CSS class, and with its words behind it."""
    return field(widgets.Checkbox, name, words, value=is_on, indent=False)


def html(name: str) -> widgets.HTML:
    """Return an empty HTML widget with a CSS class."""
    return classed(widgets.HTML(), name)


def heading(text: str) -> widgets.HTML:
    """Return the heading of a part of a tab."""
    return widgets.HTML(f"<h3>{escape(text)}</h3>")


def classed(widget: widgets.Widget, name: str) -> Any:
    """Give a widget a CSS class, unless that is "", and return it."""
    return widget.add_class(name) if name else widget


def paragraph(text: str, kind: str = "", role: str = "") -> str:
    """Return text as an HTML paragraph with a class and a role; "" for no text."""
    marks = "".join(
        f' {name}="{value}"' for name, value in (("role", role), ("class", kind)) if value
    )
    return f"<p{marks}>{escape(text)}</p>" if text else ""


def show_if(widget: widgets.Widget, is_shown: bool) -> None:
    """Show a widget, or hide it and free its space."""
    widget.layout.display = "" if is_shown else "none"


def offer(
    dropdown: widgets.Dropdown | widgets.Select, options: Sequence[object], value: object
) -> None:
    """Set the options of a control and its value, if they differ."""
    wanted = tuple(options)
    # in one message: a reader who chose between two of them would lose the choice
    with dropdown.hold_sync():
        if tuple(dropdown.options) != wanted:
            dropdown.index = None
            dropdown.options = wanted
        if dropdown.value != value or (dropdown.index is None and value is not None):
            dropdown.value = value


class Chips(anywidget.AnyWidget, ChipTraits):
    """A choice of several names, each a button."""

    _esm = STATIC / "name_chips.js"

    locals().update(synced_traits(ChipTraits))

    def offer(self, names: Sequence[str], chosen: Collection[str]) -> None:
        """Set the options, and choose those of them that are in `chosen`."""
        with self.hold_sync():
            self.options = list(names)
            self.value = [name for name in names if name in chosen]


# --- Show the error of a field below it until the field changes -----------------------------------


_WRONG = "irviz-wrong"


class CheckedField(widgets.VBox):  # type: ignore[misc] # ipywidgets has no types
    """A control with an error message below it.

    The page (`viewer/src/forms/field_errors.ts`) marks the control for assistive technology and
    focuses it. `shown` may be the control with a button next to it.
    """

    def __init__(self, control: widgets.Widget, shown: widgets.Widget | None = None) -> None:
        self.control = control
        self._words = html("irviz-field-error")
        super().__init__([shown or control, self._words])
        self.add_class("irviz-checked-field")
        control.observe(lambda _: self.say(""), "value")

    @property
    def error(self) -> str:
        """The message, as HTML."""
        return str(self._words.value)

    def say(self, words: str) -> None:
        """Show an error message, which says what would be right; "" removes it."""
        self._words.value = paragraph(words, "irviz-error", "alert")
        if words:
            self.add_class(_WRONG)
        else:
            self.remove_class(_WRONG)


class FieldError(IrvizError, ValueError):
    """A field is empty or has an invalid value."""

    def __init__(self, field: CheckedField, words: object) -> None:
        super().__init__(str(words))
        self.field = field


# --- The base of all panels -----------------------------------------------------------------------


class Panel:
    """Shows parts of the state in `widget` and sends actions, independently of other panels.

    A panel has no state but its widgets, with what the user has not sent yet.
    """

    widget: widgets.Widget

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shown: tuple[object, ...] | None = None
        self._sets_traits = False

    @property
    def state(self) -> State:
        """The current state."""
        return self._store.state

    def _parts(self, state: State) -> tuple[object, ...]:
        """Return the parts of the state that the panel shows, by default all of it."""
        return (state,)

    def _show(self, state: State) -> None:
        """Set the traits of the widgets from a state."""

    def update(self, state: State, _: State | None = None) -> None:
        """Show a state, unless it differs from the last one only in other parts."""
        parts = self._parts(state)
        if self._shown is not None and unchanged(self._shown, parts):
            return
        self._shown = parts
        with self.setting_traits():
            self._show(state)

    @contextmanager
    def setting_traits(self) -> Iterator[None]:
        """Set traits inside the block, which are no changes of the user."""
        before, self._sets_traits = self._sets_traits, True
        try:
            yield
        finally:
            self._sets_traits = before

    def on_change(
        self, widget: widgets.Widget, act: Callable[[Any], Action | None], trait: str = "value"
    ) -> None:
        """Send what a function makes of each new value that the user gives a trait of a widget.

        An error is shown as that of a button.
        """

        def changed(change: Any) -> None:
            with self._store.runner.lock:  # another thread may be setting traits
                if not self._sets_traits:
                    self._act(partial(act, change.new))

        widget.observe(changed, trait)

    def button(
        self,
        text: str,
        tooltip: str,
        act: Action | Callable[[], Action | None],
        icon: str = "",
        name: str = "",
    ) -> widgets.Button:
        """Return a button as wide as its label that sends an action, or that of a function.

        Where the function raises an error, this is shown at the field, or else in the status bar.
        `name` is the button's CSS class.
        """
        layout = widgets.Layout(width="auto")
        made = widgets.Button(description=text, tooltip=tooltip, icon=icon, layout=layout)
        made.on_click(lambda _: self._act(act))
        return classed(made, name)

    def _act(self, act: Action | Callable[[], Action | None]) -> None:
        try:
            action = act if isinstance(act, Action) else act()
        except FieldError as failure:
            self.send(Say(""))  # what is said there is of something else
            failure.field.say(str(failure))
        except Exception as failure:  # whatever it is, the explorer lives on
            self.send(Say(str(failure), is_error=True))
        else:
            if action is not None:
                self.send(action)

    def sets(self, widget: widgets.Widget, name: FieldName) -> None:
        """Set a field of the state to each new value that the user gives a widget."""
        self.on_change(widget, partial(SetField, name))

    def send(self, action: Action) -> None:
        """Dispatch an action of the user."""
        self._store.dispatch(action)
