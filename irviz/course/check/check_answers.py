"""Verdicts on answers: apply them to modules, count what these contain, and run them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from textwrap import fill, shorten
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import IrvizError
from irviz.ir.loop_nest_reader import loop_nest
from irviz.ir.module_functions import relax_functions
from irviz.model.loop_nest import AxisKind, Block, Loop, blocks_in_loops
from irviz.model.matching.block_matching import WORD
from irviz.model.runs.array_diff import compare_arrays
from irviz.session.session import Session

Arrays = Mapping[str, NDArray[Any]]

RUN_SECONDS = 20
"""The time after which the module of an answer is stopped."""

_SHORT = 60
"""The most characters of a value that a sentence repeats: a module would fill the page."""
_LONGEST = 220
"""The most characters that say what an answer gave: a refused step of a schedule needs most."""


def call_answer(answer: Callable[..., Any], *arguments: object) -> Any:
    """Call an answer; raise WrongAnswerError if it cannot be called or raises.

    Errors of irviz pass through unchanged, because they say more.
    """
    expect_callable(answer)
    try:
        return answer(*arguments)
    except IrvizError:
        raise
    except (Exception, SystemExit) as failure:
        first = shorten(str(failure).strip().partition("\n")[0], 2 * _SHORT, placeholder=" …")
        raise WrongAnswerError(
            f"The answer raised {type(failure).__name__}{first and ': '}{first}",
            "Call it yourself, in a cell of its own, to see the whole traceback.",
        ) from failure


def expect_callable(answer: object) -> None:
    """Raise WrongAnswerError unless an answer can be called from Python, and is no class."""
    if isinstance(answer, type):
        raise WrongAnswerError(
            f"The answer is {named(answer)}.", "A class is no pass or function: call it to get one."
        )
    if not callable(answer) or isinstance(answer, ir.BaseFunc):
        raise WrongAnswerError(
            f"The answer is {named(answer)}.", "It has to be something to call, such as a function."
        )


def named(value: object) -> str:
    """Name the type of a value, with the value itself if that is one short line that tells it."""
    if value is None or isinstance(value, type):
        return f"the class {value.__name__}" if value else "None"
    text, kind = "", type(value).__name__
    with suppress(Exception):  # a class of the answer can fail here
        text = repr(value)
    tells = 0 < len(text) <= _SHORT and "\n" not in text and " at 0x" not in text
    return f"{kind}: {text}" if tells else kind


def transform(answer: Callable[..., Any], module: ir.IRModule) -> ir.IRModule:
    """Return what an answer, a pass or a function, makes of a module; it may change its copy."""
    made = call_answer(answer, ir.IRModule(dict(module.functions), module.attrs))
    return expect_module(made, "gave", "It has to give an IRModule: is a return missing?")


def expect_module(
    made: object,
    verb: str = "is",
    hint: str = "It has to be an IRModule: a session has it as session.current.module.",
) -> ir.IRModule:
    """Return what an answer is or gave; raise WrongAnswerError unless it is a sound IRModule."""
    if not isinstance(made, ir.IRModule):
        raise WrongAnswerError(f"The answer {verb} {named(made)}.", hint)
    if not relax.analysis.check_well_formed(made):
        raise WrongAnswerError(
            f"The answer {verb} a module that is not well-formed.",
            "Draw it: does each variable come before its uses, and in the same dataflow block?",
        )
    return made


def operators(module: ir.IRModule, function: str = "") -> Counter[str]:
    """Count calls by operator, in one Relax function or in all; other calls by `GlobalVar`."""
    return Counter(operator(call) for call in expressions(module, ir.Call, function))


def operator(call: ir.Call) -> str:
    """Return the name of what is called: "GlobalVar" for a function, "" for a packed function."""
    return "GlobalVar" if isinstance(call.op, ir.GlobalVar) else getattr(call.op, "name", "")


def expressions(module: ir.IRModule, kind: type[Any], function: str = "") -> list[Any]:
    """Return the expressions of a class in one Relax function or in all."""
    found: list[Any] = []

    def visit(expr: ir.Expr) -> None:
        if isinstance(expr, kind):
            found.append(expr)

    for name, each in relax_functions(module).items():
        if function in ("", name):
            relax.analysis.post_order_visit(each, visit)
    return found


def run(module: ir.IRModule, inputs: Arrays, function: str = "main") -> NDArray[Any]:
    """Run a function of a module, in the worker, and return its output."""
    session = Session(module, function=function, inputs=dict(inputs), seconds=RUN_SECONDS)
    outputs = session.run().outputs
    if len(outputs) != 1:
        raise WrongAnswerError(
            f"{function} gives {len(outputs) or 'no'} array{'s' * (len(outputs) > 1)}.",
            "It has to give one: all other arrays are only read.",
        )
    output: NDArray[Any] = outputs[0][0]
    return output


def expect_close(found: NDArray[Any], expected: NDArray[Any], what: str, hint: str) -> None:
    """Raise WrongAnswerError unless two arrays have one type and are close by irviz's tolerance."""
    if found.shape != expected.shape:
        raise WrongAnswerError(
            f"{what} has the shape {found.shape}; {expected.shape} was expected.", hint
        )
    if found.dtype != expected.dtype:
        raise WrongAnswerError(f"{what} is {found.dtype}; {expected.dtype} was expected.", hint)
    difference = compare_arrays(found, expected)
    if difference.past:
        raise WrongAnswerError(
            f"{what} has other values: the largest difference is {difference.max_abs:.3g}.", hint
        )


def random_arrays(seed: int, **shapes: Sequence[int]) -> dict[str, NDArray[np.float32]]:
    """Return normal float32 numbers, of both signs, by name."""
    generator = np.random.default_rng(seed)
    return {
        name: generator.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()
    }


# --- The verdict on an answer to an exercise, and how a function that checks answers gives it ----


class Mark(Enum):
    """The result of an exercise."""

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
            given = shorten(given, _LONGEST, placeholder=" …")
            return Verdict(name, Mark.WRONG, expected=expected, given=given, hint=hint)

        return checked

    return decorate


# --- The blocks of a PrimFunc and their loops ----------------------------------------------------


class BlockWithLoops(NamedTuple):
    """A block, and the loops around it, from outside."""

    block: Block
    loops: tuple[Loop, ...]

    def axes(self, loop: Loop) -> list[str]:
        """Return the names of the block's axes that a loop runs over."""
        bound = {axis.name: WORD.findall(axis.binding) for axis in self.block.axes}
        return [name for name, variables in bound.items() if loop.variable in variables]


def block_of_sums(prim_func: tirx.PrimFunc) -> BlockWithLoops:
    """Return the block with a reduction axis."""
    found = [
        nest
        for nest in blocks_with_loops(prim_func)
        if any(axis.kind is AxisKind.REDUCTION for axis in nest.block.axes)
    ]
    if len(found) != 1:
        raise WrongAnswerError(
            f"There are {len(found)} blocks that add to a sum.",
            "Leave the sums in one block: rfactor is not needed here.",
        )
    return found[0]


def blocks_with_loops(prim_func: tirx.PrimFunc) -> list[BlockWithLoops]:
    """Return the blocks with axes, and the loops around them."""
    found = blocks_in_loops(loop_nest(prim_func, "main").body)
    nests = [BlockWithLoops(block, loops) for block, loops in found if block.axes]
    names = Counter(nest.block.name for nest in nests)
    for name, count in names.items():
        if count > 1:
            raise WrongAnswerError(
                f"{count} blocks are named {name}.",
                "A schedule finds a block by a name of its own.",
            )
    return nests
