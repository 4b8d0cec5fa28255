"""What is wrong with a field is said below it, until the field changes."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.errors import IrvizError
from irviz.explorer.panels.form_controls import html, paragraph

_WRONG = "irviz-wrong"


class CheckedField(widgets.VBox):  # type: ignore[misc] # ipywidgets has no types
    """A control, and below it what is wrong with its value.

    The page (`viewer/src/field_errors.ts`) marks the control for assistive technology and lets it
    have the focus.

    Args:
        control: The control, whose next value takes the words away.
        shown: What is shown of it, with a button beside it for example; by default itself.
    """

    def __init__(self, control: widgets.Widget, shown: widgets.Widget | None = None) -> None:
        self.control = control
        self._words = html("irviz-field-error")
        super().__init__([shown or control, self._words])
        self.add_class("irviz-checked-field")
        control.observe(lambda _: self.say(""), "value")

    @property
    def error(self) -> str:
        """What is said below it, as HTML."""
        return str(self._words.value)

    def say(self, words: str) -> None:
        """Say what is wrong with the value, which one would be right, or with "" nothing."""
        self._words.value = paragraph(words, "irviz-error", "alert")
        if words:
            self.add_class(_WRONG)
        else:
            self.remove_class(_WRONG)


class FieldError(IrvizError, ValueError):
    """A field that is empty or wrong."""

    def __init__(self, field: CheckedField, words: object) -> None:
        super().__init__(str(words))
        self.field = field
