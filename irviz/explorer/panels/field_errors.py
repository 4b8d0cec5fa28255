"""Show the error of a field below it until the field changes."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.errors import IrvizError
from irviz.explorer.panels.form_controls import html, paragraph

_WRONG = "irviz-wrong"


class CheckedField(widgets.VBox):  # type: ignore[misc] # ipywidgets has no types
    """A control with an error message below it.

    The page (`viewer/src/field_errors.ts`) marks the control for assistive technology and focuses
    it.

    Args:
        control: The control; a new value removes the message.
        shown: The widget to show, such as the control with a button next to it; by default the
            control.
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
