"""Why a text is not read."""

from __future__ import annotations


class RefusedError(ValueError):
    """A text, or a part of it, is nothing that TVMScript needs.

    `line` and `column` say where it stands, counted from 1; `reason` says what is refused and why.
    """

    def __init__(self, name: str, line: int, column: int, reason: str) -> None:
        super().__init__(f"{name}, line {line}, column {column}: {reason}")
        self.name, self.line, self.column, self.reason = name, line, column, reason

    def __reduce__(self) -> tuple[type[RefusedError], tuple[str, int, int, str]]:
        return RefusedError, (self.name, self.line, self.column, self.reason)
