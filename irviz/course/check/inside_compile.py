"""The exercises of notebooks/inside_compile.ipynb."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tvm import ir

from irviz.course.check.answers import (
    WrongAnswerError,
    exercise,
    expect_close,
    expect_module,
    operators,
    run,
    transform,
)
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModuleHighLevel
from irviz.ir.module_functions import prim_funcs

_CALL_TIR = "relax.call_tir"


@exercise(
    "The last pure program",
    "The module of the MLP in which all seven operators are call_tir of PrimFuncs, and nothing "
    "has been allocated yet.",
)
def pure_calls(answer: ir.IRModule) -> str:
    """Check a module of the recording, or any other that says the same."""
    found = operators(expect_module(answer), "main")
    if found != Counter({_CALL_TIR: 7}):
        raise WrongAnswerError(
            f"main has {_named(found)}.",
            "Which pass turns operators into call_tir, and which takes call_tir away?",
        )
    _expect_scores(answer)
    return "main has seven call_tir, each of a PrimFunc, and computes what the MLP computes."


@exercise(
    "A pipeline of your own",
    "A pass that lowers the MLP to at most four call_tir of PrimFuncs, and leaves no operator.",
)
def fused_pipeline(answer: Callable[..., Any]) -> str:
    """Check a pass that lowers the MLP and fuses its layers."""
    made = transform(answer, MyModuleHighLevel)
    found = operators(made, "main")
    if set(found) != {_CALL_TIR}:
        raise WrongAnswerError(
            f"main has {_named(found)}.",
            "LegalizeOps makes call_tir; FuseTIR makes one PrimFunc of a fused function.",
        )
    if found[_CALL_TIR] > 4:
        raise WrongAnswerError(
            f"main has {_named(found)}.",
            "FuseOps fuses only what AnnotateTIROpPattern has looked at before.",
        )
    _expect_scores(made)
    return f"main has {_named(found)}, and computes what the MLP computes."


def _expect_scores(module: ir.IRModule) -> None:
    if not prim_funcs(module):
        raise WrongAnswerError(
            "The module has no PrimFunc.", "A call of a PrimFunc needs it in the same module."
        )
    arrays = {"x": digits().images[:1], **mlp_params()}
    expect_close(
        run(module, arrays),
        run(MyModuleHighLevel, arrays),
        "main",
        "Compare stages in a session: first_difference names the node.",
    )


def _named(found: Counter[str]) -> str:
    """Return operators with their counts, for a sentence."""
    counts = (f"{count} {name or 'calls of the runtime'}" for name, count in found.items())
    return ", ".join(counts).replace("GlobalVar", "calls of functions") or "no call at all"
