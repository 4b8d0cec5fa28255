"""The exercises of notebooks/find_the_pass.ipynb."""

from __future__ import annotations

from collections.abc import Callable

from tvm import ir

from irviz.course.check.answers import RUN_SECONDS, call_answer, expect_module
from irviz.course.check.verdict import WrongAnswerError, exercise
from irviz.course.planted_bugs import OTHER_PIPELINE
from irviz.ir.module_functions import default_function
from irviz.session.bisect import bisect
from irviz.transforms.kept_bindings import count_bindings

_PIPELINES = ((1, (1,)), (2, (1, 2)), (7, (1, 4, 7)), (60, (1, 17, 41, 60)))
"""Numbers of passes, and which of them may be the wrong one."""
_MOST_BINDINGS = 2


@exercise(
    "A bisection of your own",
    "A function of the number of passes and of `holds`, which returns the number of the first pass "
    "that is wrong, counted from 1, and asks `holds` as seldom as can be.",
)
def first_wrong_pass(answer: Callable[[int, Callable[[int], bool]], int]) -> str:
    """Check a function that finds the wrong pass by a few questions."""
    for count, wrong_passes in _PIPELINES:
        most = (count - 1).bit_length()
        for wrong in wrong_passes:
            asked: list[int] = []

            def holds(passes: int, asked: list[int] = asked, wrong: int = wrong) -> bool:
                asked.append(passes)
                return passes < wrong

            found = call_answer(answer, count, holds)
            if found != wrong:
                raise WrongAnswerError(
                    f"Of {count} passes, number {wrong} was wrong, and the answer gave {found!r}.",
                    "Keep two numbers: after the one all is well, after the other it is not.",
                )
            if len(asked) > most:
                raise WrongAnswerError(
                    f"For {count} passes holds was asked {len(asked)} times: {asked}.",
                    "It holds after 0 passes and fails after all; ask for the middle of the rest.",
                )
    return "It finds the pass each time, of 60 passes with at most 6 questions."


@exercise(
    "The smallest program",
    "A module of at most two bindings that computes something else after OTHER_PIPELINE.",
)
def small_program(answer: ir.IRModule) -> str:
    """Check a module that shows the bug of the other pipeline."""
    module = expect_module(answer)
    function = default_function(module)
    bindings = count_bindings(module, function)
    if bindings > _MOST_BINDINGS:
        raise WrongAnswerError(
            f"{function} has {bindings} bindings.",
            "irviz.reduce leaves out what the bug does not need.",
        )
    found = bisect(module, OTHER_PIPELINE, function=function, seconds=RUN_SECONDS)
    if found.stage is None:
        raise WrongAnswerError(
            "After the passes it computes what it did before.",
            "Which operators does the wrong pass look for? A bisection has a diff.",
        )
    return f"{found.stage.label} is found, with {bindings} bindings: {found.words}."
