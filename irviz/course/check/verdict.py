"""The verdict on an answer to an exercise, and how a function that checks answers gives it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from textwrap import fill

from irviz.errors import IrvizError


class Mark(Enum):
    """What became of an exercise."""

    RIGHT = "right"
    WRONG = "not right yet"
    UNANSWERED = "not answered yet"


@dataclass(frozen=True)
class Verdict:
    """The mark of an answer, and what to tell the reader.

    Attributes:
        right: What the answer achieved, "" unless it is right.
        expected: What the exercise wants, "" if the answer is right.
        given: What the answer did instead, "" unless it is wrong.
        hint: Where to look next, "" unless the answer is wrong.
    """

    exercise: str
    mark: Mark
    right: str = ""
    expected: str = ""
    given: str = ""
    hint: str = ""

    def __bool__(self) -> bool:
        return self.mark is Mark.RIGHT

    def __repr__(self) -> str:
        sign = {Mark.RIGHT: "✓", Mark.WRONG: "✗", Mark.UNANSWERED: "○"}[self.mark]
        lines = [f"{sign} {self.exercise}: {self.mark.value}"]
        if self.right:
            lines.append(fill(self.right, 88, initial_indent="  ", subsequent_indent="  "))
        for name in ("expected", "given", "hint"):
            if text := getattr(self, name):
                first = f"  {name:9} "
                lines.append(fill(text, 88, initial_indent=first, subsequent_indent=" " * 12))
        return "\n".join(lines)


class WrongAnswerError(IrvizError):
    """An answer that is wrong, with what was expected, what was given, and a hint."""

    def __init__(self, given: str, hint: str) -> None:
        super().__init__(f"{given} {hint}")
        self.given = given
        self.hint = hint


def exercise(name: str, expected: str) -> Callable[[Callable[..., str]], Callable[..., Verdict]]:
    """Make a function that checks an answer return a `Verdict`.

    The function gets the answer, which is neither None nor `...`, and returns what the answer
    achieved. It raises WrongAnswerError if the answer is wrong; any other error of irviz, such as
    that of a module that cannot be run, also makes it wrong.
    """

    def decorate(check: Callable[..., str]) -> Callable[..., Verdict]:
        @functools.wraps(check)
        def checked(answer: object) -> Verdict:
            if answer is None or answer is ...:
                return Verdict(name, Mark.UNANSWERED, expected=expected)
            try:
                return Verdict(name, Mark.RIGHT, right=check(answer))
            except WrongAnswerError as wrong:
                given, hint = wrong.given, wrong.hint
            except IrvizError as failure:
                given, hint = str(failure), "The message is TVM's or irviz's own; begin there."
            return Verdict(name, Mark.WRONG, expected=expected, given=given, hint=hint)

        return checked

    return decorate
