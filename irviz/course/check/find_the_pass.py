"""The exercises of notebooks/find_the_pass.ipynb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tvm import IRModule, ir, relax
from tvm.relax.dpl import is_op, rewrite_call, wildcard

from irviz.course.check.answers import (
    RUN_SECONDS,
    WrongAnswerError,
    call_answer,
    exercise,
    expect_module,
)
from irviz.ir.module_functions import default_function
from irviz.session.bisect import bisect
from irviz.transforms.simpler_modules import count_bindings

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


# --- Each pass stands for itself, so that a script can have it -----------------------------------


def hoist_activations(mod: IRModule) -> IRModule:
    """Move each ReLU before the bias; this is wrong, as a bias can be negative."""
    a, b = wildcard(), wildcard()
    main = rewrite_call(
        is_op("relax.nn.relu")(is_op("relax.add")(a, b)),
        lambda _, found: relax.op.add(relax.op.nn.relu(found[a]), found[b]),
        mod["main"],
    )
    return IRModule({**mod.functions, mod.get_global_var("main"): main}, mod.attrs)


def drop_activations(mod: IRModule) -> IRModule:
    """Drop the ReLU of each sum; this is wrong, as a sum can be negative."""
    a, b = wildcard(), wildcard()
    main = rewrite_call(
        is_op("relax.nn.relu")(is_op("relax.add")(a, b)),
        lambda _, found: relax.op.add(found[a], found[b]),
        mod["main"],
    )
    return IRModule({**mod.functions, mod.get_global_var("main"): main}, mod.attrs)


PIPELINE: Final = (
    "CanonicalizeBindings",
    "EliminateCommonSubexpr",
    hoist_activations,
    "DeadCodeElimination",
    "FoldConstant",
    "LegalizeOps",
    "AnnotateTIROpPattern",
    "FuseOps",
    "FuseTIR",
)
"""The passes of the notebook."""

OTHER_PIPELINE: Final = ("Normalize", "CanonicalizeBindings", drop_activations, "LegalizeOps")
"""The passes of its second exercise."""
