"""The exercises of notebooks/find_the_pass.ipynb."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Final

from tvm import IRModule, ir, relax
from tvm.relax.dpl import is_op, rewrite_call, wildcard

from irviz.course.check.check_answers import (
    RUN_SECONDS,
    WrongAnswerError,
    call_answer,
    exercise,
    expect_module,
    named,
)
from irviz.ir.module_functions import default_function
from irviz.session.bisect import bisect
from irviz.transforms.simpler_modules import count_bindings

_COUNTS = (1, 2, 7, 60)
"""Numbers of passes."""
_PATIENCE = 1000
"""The number of questions after which an answer is stopped."""
_MOST_BINDINGS = 2


_DECISIONS: Final[tuple[Callable[[int, int, int], bool], ...]] = (
    lambda low, middle, high: high - middle > middle - low,  # the larger part is left
    lambda *_: True,  # it is the last pass
    lambda *_: False,  # it is the first
)


class _Pipeline:
    """Passes of which one is wrong: it is chosen by the questions, so that none can look it up."""

    def __init__(self, count: int, decide: Callable[[int, int, int], bool]) -> None:
        self.asked: list[int] = []
        self._low, self._high, self._decide = 0, count, decide

    def holds(self, k: int) -> bool:
        """Return whether results are right after k passes; what was said before stays true."""
        if not isinstance(k, Integral):
            raise WrongAnswerError(
                f"holds was asked for {named(k)}, which is no whole number of passes.",
                "// divides whole numbers: (low + high) // 2.",
            )
        self.asked.append(int(k))
        if len(self.asked) > _PATIENCE:
            raise WrongAnswerError(
                f"holds was asked {len(self.asked)} times, and there is no end.",
                "Does each question leave fewer passes than before?",
            )
        if not self._low < k < self._high:
            return k <= self._low
        right = self._decide(self._low, k, self._high)
        if right:
            self._low = int(k)
        else:
            self._high = int(k)
        return right

    def wrong_pass(self, found: int) -> int | None:
        """Return a pass that can be the wrong one and was not found, or None if there is none."""
        candidates = range(self._low + 1, self._high + 1)
        return next((number for number in candidates if number != found), None)


@exercise(
    "A bisection of your own",
    "A function of the number of passes and of `holds`, which returns the number of the first pass "
    "that is wrong, counted from 1, and asks `holds` as seldom as can be.",
)
def first_wrong_pass(answer: Callable[[int, Callable[[int], bool]], int]) -> str:
    """Check a function that finds the wrong pass by a few questions."""
    for count in _COUNTS:
        most = (count - 1).bit_length()
        for decide in _DECISIONS:
            pipeline = _Pipeline(count, decide)
            found = call_answer(answer, count, pipeline.holds)
            if not isinstance(found, Integral):
                raise WrongAnswerError(
                    f"The answer gave {named(found)}, which is no whole number.",
                    "Return the number of the wrong pass, counted from 1.",
                )
            passes = f"{count} pass{'es' * (count > 1)}"
            wrong = pipeline.wrong_pass(int(found))
            if wrong is not None:
                raise WrongAnswerError(
                    f"Of {passes}, number {wrong} was wrong, and the answer gave {found}.",
                    "Keep two numbers: after the one all is well, after the other it is not. "
                    "Ask until they are neighbours.",
                )
            if len(pipeline.asked) > most:
                raise WrongAnswerError(
                    f"For {passes} holds was asked {len(pipeline.asked)} times: {pipeline.asked}.",
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
    if found.stage.error:
        raise WrongAnswerError(
            f"{found.stage.label} ends with an error, so nothing is computed after it.",
            "The passes rewrite main, and it has to be there: give a module that they can take.",
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
