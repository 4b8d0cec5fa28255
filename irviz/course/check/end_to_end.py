"""The exercises of notebooks/end_to_end.ipynb."""

from __future__ import annotations

import numpy as np
from tvm import ir, tirx

from irviz.course.check.answers import (
    WrongAnswerError,
    exercise,
    expect_close,
    expect_module,
    random_arrays,
)
from irviz.course.digits import digits, mlp_params
from irviz.model.graph.graph import Resolution
from irviz.session.session import Session

_SIZES = (128, 7)


@exercise(
    "Another activation",
    "A PrimFunc of X and Y, of the shape (1, n) for any n, that writes max(x, 0.1x).",
)
def leaky_relu(answer: tirx.PrimFunc) -> str:
    """Check a PrimFunc that computes a leaky ReLU."""
    if not isinstance(answer, tirx.PrimFunc):
        raise WrongAnswerError(
            f"The answer is {type(answer).__name__}: {answer!r}.",
            "relu0 of MyModule is a PrimFunc to begin with: MyModule['relu0'].",
        )
    module = ir.IRModule({"leaky_relu": answer})
    for size in _SIZES:
        (x,) = random_arrays(size, x=(1, size)).values()
        name = answer.params[0].name
        outputs = Session(module, function="leaky_relu", inputs={name: x}).run().outputs
        expect_close(
            outputs[0][0],
            np.maximum(x, np.float32(0.1) * x),
            f"Y, for n = {size},",
            "Negative numbers are not 0 now, but a tenth of what they were.",
        )
    return f"It computes max(x, 0.1x), for n = {' and n = '.join(map(str, _SIZES))}."


@exercise(
    "The other mixture",
    "A module whose main calls the library's env.linear for the first layer, and PrimFuncs of the "
    "module for the ReLU and the last layer.",
)
def other_mixture(answer: ir.IRModule) -> str:
    """Check a module that leaves the first layer of the MLP to the library."""
    images = digits().images[:8]
    session = Session(expect_module(answer), params=mlp_params(), inputs=images)
    calls = [node for node in session.graph().nodes if node.callee]
    found = [node.resolution for node in calls]
    if found != [Resolution.LIBRARY, Resolution.PRIM_FUNC, Resolution.PRIM_FUNC]:
        words = ", ".join(
            f"{node.callee} ({node.resolution.value.replace('_', ' ')})"
            for node in calls
            if node.resolution
        )
        raise WrongAnswerError(
            f"main calls {words or 'nothing'}.",
            "MyModuleMixture has it the other way round: exchange the names of its callees.",
        )
    w0, b0, w1, b1 = mlp_params().values()
    expect_close(
        session.run().outputs[0][:, 0],
        np.maximum(images @ w0.T + b0, 0) @ w1.T + b1,
        "main",
        "Do all three calls get the parameters that they got before?",
    )
    return "main calls env.linear and two PrimFuncs, and computes what the MLP computes."
