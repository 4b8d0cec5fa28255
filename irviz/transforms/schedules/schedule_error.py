"""Why a step of a schedule is not legal: TVM's own words, and what in the loop nest they mean."""

from __future__ import annotations

import ast
import re

from irviz.transforms.stage import TransformError

_MESSAGE = re.compile(r"^Error message: ", re.MULTILINE)
_PATH = re.compile(r"^Access path: <root>(\S.*)$", re.MULTILINE)
_FUNCTION = re.compile(r"\.functions\[I\.GlobalVar\((\"(?:[^\"\\]|\\.)*\")\)\]")
_STEPS = re.compile(r"(?:\.(?:body|block|seq|init|then_case|else_case)|\[\d+\])*")
_MARK = re.compile(r"^\s*# ((?:tirx\.For|s_tir\.SBlock)#\d+)\n\s*(.*)$", re.MULTILINE)
_NAME = re.compile(r"for (\w+) in|with T\.sblock\((\"(?:[^\"\\]|\\.)*\")\)")


class IllegalStepError(TransformError):
    """A step of a schedule that TVM does not allow; nothing was changed.

    `words` are TVM's explanation in a line, `details` all that it said, `paths` the ways from
    the PrimFunc to what it means, as the ids of a loop nest are written.
    """

    def __init__(self, words: str, details: str = "", paths: tuple[str, ...] = ()) -> None:
        super().__init__(words, details, paths)
        self.words, self.details, self.paths = words, details, paths

    def __str__(self) -> str:
        """Return the words."""
        return self.words


def illegal_step(step: str, function: str, failure: Exception) -> IllegalStepError:
    """Return the error for a step, given as its line of Python, that failed in a PrimFunc."""
    said = str(failure).strip()
    words = explanation(said) or type(failure).__name__
    return IllegalStepError(f"{step} is not legal here: {words}", said, paths(said, function))


def explanation(said: str) -> str:
    """Return the sentence of what a schedule said, with the names of its loops and blocks."""
    found = _MESSAGE.split(said)
    words = found[-1] if len(found) > 1 else said
    words = " ".join(words.split()).removeprefix("ScheduleError: ")
    for mark, name in _marked(said).items():
        words = name.join(re.split(rf"{re.escape(mark)}(?!\d)", words))
    return words


def paths(said: str, function: str) -> tuple[str, ...]:
    """Return the ways from a PrimFunc to what a schedule's error means, each once.

    What is not written as TVM writes such a way is left out.
    """
    found: dict[str, None] = {}
    for written in _PATH.findall(said.partition("\n@I.ir_module")[0]):
        head = _FUNCTION.match(written)
        if head is None or ast.literal_eval(head[1]) != function:
            continue
        way = written[head.end() :]
        steps = _STEPS.match(way)
        if steps is not None and steps[0]:
            found[steps[0].removeprefix(".")] = None
    return tuple(found)


def _marked(said: str) -> dict[str, str]:
    """Return what the marks of an error, such as tirx.For#0, stand for."""
    names = {}
    for mark, line in _MARK.findall(said):
        found = _NAME.match(line)
        if found is not None:
            names[mark] = repr(found[1] or ast.literal_eval(found[2]))
    return names
