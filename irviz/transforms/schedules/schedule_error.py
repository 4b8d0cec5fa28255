"""Errors of schedules: an illegal step, as TVM explains it, and text that is not a schedule."""

from __future__ import annotations

import ast
import re

from irviz.errors import TransformError

_MESSAGE = re.compile(r"^Error message: ", re.MULTILINE)
_PATH = re.compile(r"^Access path: <root>(\S.*)$", re.MULTILINE)
_FUNCTION = re.compile(r"\.functions\[I\.GlobalVar\((\"(?:[^\"\\]|\\.)*\")\)\]")
_STEPS = re.compile(r"(?:\.(?:body|block|seq|init|then_case|else_case)|\[\d+\])*")
_MARK = re.compile(r"^\s*# ((?:tirx\.For|s_tir\.SBlock)#\d+)\n\s*(.*)$", re.MULTILINE)
_NAME = re.compile(r"for (\w+) in|with T\.sblock\((\"(?:[^\"\\]|\\.)*\")\)")


class IllegalStepError(TransformError):
    """A schedule step that TVM rejects; nothing was changed.

    `words` is TVM's explanation in one line, `details` its whole message, and `paths` are the
    access paths of the loops and blocks it is about, written like the ids of a loop nest.
    """

    def __init__(self, words: str, details: str = "", paths: tuple[str, ...] = ()) -> None:
        super().__init__(words, details, paths)
        self.words, self.details, self.paths = words, details, paths

    def __str__(self) -> str:
        return self.words


class ScheduleTraceError(TransformError):
    """A text that is not a schedule trace, or a part of one; `line` and `column` count from 1."""

    def __init__(self, words: str, line: int = 1, column: int = 1) -> None:
        super().__init__(words, line, column)
        self.words, self.line, self.column = words, line, column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.words}"


def refused(tree: ast.expr | ast.stmt, words: str) -> ScheduleTraceError:
    """Return an error that points to a part of a syntax tree."""
    return ScheduleTraceError(words, tree.lineno, tree.col_offset + 1)


def illegal_step(step: str, function: str, failure: Exception) -> IllegalStepError:
    """Return the error for a step (as Python) that failed in a PrimFunc."""
    message = str(failure).strip()
    words = explanation(message) or type(failure).__name__
    return IllegalStepError(
        f"{step} is not legal here: {words}", message, access_paths(message, function)
    )


def explanation(message: str) -> str:
    """Return the explanation in a schedule error, with its loops and blocks by name."""
    words = " ".join(_MESSAGE.split(message)[-1].split()).removeprefix("ScheduleError: ")
    for mark, line in _MARK.findall(message):  # such as tirx.For#0, and the line it stands for
        found = _NAME.match(line)
        if found is not None:
            name = repr(found[1] or ast.literal_eval(found[2]))
            words = name.join(re.split(rf"{re.escape(mark)}(?!\d)", words))
    return words


def access_paths(message: str, function: str) -> tuple[str, ...]:
    """Return the access paths in a schedule error that lie in this PrimFunc, each once."""
    found: dict[str, None] = {}
    for written in _PATH.findall(message.partition("\n@I.ir_module")[0]):
        head = _FUNCTION.match(written)
        if head is None or ast.literal_eval(head[1]) != function:
            continue
        way = written[head.end() :]
        steps = _STEPS.match(way)
        if steps is not None and steps[0]:
            found[steps[0].removeprefix(".")] = None
    return tuple(found)
