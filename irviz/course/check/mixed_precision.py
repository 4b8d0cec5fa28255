"""The exercises of notebooks/mixed_precision.ipynb, on the MLP, which needs no PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import ir, relax

from irviz.course.check.answers import (
    WrongAnswerError,
    exercise,
    expressions,
    operators,
    run,
    transform,
)
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModuleHighLevel

_ROUNDING = 5e-3
"""The largest error that float16 explains, in units of the largest score."""


@exercise(
    "Half the memory only",
    "A pass after which the MLP has four constants of float16, all operators still compute in "
    "float32, and the scores are those of before but for rounding.",
)
def half_weights(answer: Callable[..., Any]) -> str:
    """Check a pass that stores the weights of the MLP in float16."""
    made = transform(answer, _bound_mlp())
    kept = [one.ty.dtype for one in expressions(made, ir.GenericConst)]
    if len(kept) != len(mlp_params()) or {*map(str, kept)} != {"float16"}:
        raise WrongAnswerError(
            f"The constants are {', '.join(map(str, kept)) or 'gone'}.",
            "visit_generic_const_ gets each constant; constant.value.numpy() is its array.",
        )
    for call in expressions(made, ir.Call):
        if call.op.name != "relax.astype" and str(call.ty.dtype) != "float32":
            raise WrongAnswerError(
                f"{call.op.name} computes in {call.ty.dtype}.",
                "What takes the place of a constant has to be float32: cast it back.",
            )
    return f"The weights take half the memory. {_expect_scores(made)}"


@exercise(
    "Exact sums",
    "A pass after which both matmul of the MLP take float16 and give float32, and the scores are "
    "those of before but for rounding.",
)
def exact_sums(answer: Callable[..., Any]) -> str:
    """Check a pass that casts the operands of products, but not their results."""
    made = transform(answer, _bound_mlp())
    products = [call for call in expressions(made, ir.Call) if call.op.name == "relax.matmul"]
    if len(products) != 2:
        raise WrongAnswerError(
            f"The module has {operators(made)['relax.matmul']} matmul.",
            "Leave the products in, and cast their operands.",
        )
    for call in products:
        given = [str(each.ty.dtype) for each in call.args]
        if given != ["float16", "float16"] or str(call.ty.dtype) != "float32":
            raise WrongAnswerError(
                f"A matmul takes {' and '.join(given)}, and gives {call.ty.dtype}.",
                "matmul has an out_dtype, and so has ToMixedPrecision.",
            )
    return f"Both products add up in float32. {_expect_scores(made)}"


def _bound_mlp() -> ir.IRModule:
    return relax.transform.BindParams("main", mlp_params())(MyModuleHighLevel)


def _expect_scores(module: ir.IRModule) -> str:
    """Return how far the scores of some digits are from those in float32."""
    image = {"x": digits().images[:1]}
    expected = run(_bound_mlp(), image)
    error = float(np.abs(run(module, image) - expected).max() / np.abs(expected).max())
    if not error <= _ROUNDING:
        raise WrongAnswerError(
            f"The scores of a digit differ by {error:.1%} of the largest.",
            f"Rounding to float16 explains {_ROUNDING:.1%}: are all weights in their place?",
        )
    return f"The scores of a digit differ by {error:.2%} of the largest."
