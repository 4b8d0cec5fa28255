"""The exercises of notebooks/integration.ipynb; checking them needs no PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from tvm import ir, relax, te

from irviz.course.check.answers import (
    WrongAnswerError,
    call_answer,
    exercise,
    expect_close,
    random_arrays,
    run,
)

_LAYERS = ((1, 3, 4), (2, 5, 3))
_SLOPES = (0.1, 0.5)


@exercise(
    "A linear layer",
    "A function of tensors x (n, k), w (m, k) and b (m,) that returns the tensor expression "
    "x @ w.T + b.",
)
def te_linear(answer: Callable[..., Any]) -> str:
    """Check a tensor expression of a linear layer."""
    for n, k, m in _LAYERS:
        arrays = random_arrays(0, x=(n, k), w=(m, k), b=(m,))
        inputs = [te.placeholder(one.shape, "float32", name) for name, one in arrays.items()]
        made = call_answer(answer, *inputs)
        if not isinstance(made, te.Tensor):
            raise WrongAnswerError(
                f"The answer returned {type(made).__name__}: {made!r}.",
                "te.compute(shape, lambda i, j: …) makes a tensor; return it.",
            )
        prim_func = call_answer(te.create_prim_func, [*inputs, made])
        expect_close(
            run(ir.IRModule({"linear": prim_func}), arrays, "linear"),
            arrays["x"] @ arrays["w"].T + arrays["b"],
            f"The layer of {k} inputs and {m} outputs",
            "w is (m, k): which of its axes is summed over?",
        )
    return "It computes x @ w.T + b for layers of any size."


@exercise(
    "A rule for LeakyReLU",
    "A rule(builder, operands, module) that emits max(x, slope · x), with the slope of the module.",
)
def leaky_relu_rule(answer: Callable[..., Any]) -> str:
    """Check a rule of the importer for torch.nn.LeakyReLU."""
    arrays = random_arrays(0, x=(2, 3))
    x = arrays["x"]
    for slope in _SLOPES:
        builder = relax.BlockBuilder()
        parameter = relax.Var("x", relax.TensorType(x.shape, "float32"))
        with builder.function("main", [parameter]):
            with builder.dataflow():
                layer = SimpleNamespace(negative_slope=slope)
                value = call_answer(answer, builder, [parameter], layer)
                if not isinstance(value, relax.Var):
                    raise WrongAnswerError(
                        f"The rule returned {type(value).__name__}: {value!r}.",
                        "builder.emit(…) and builder.emit_te(…) return a variable; return it.",
                    )
                result = builder.emit_output(value)
            builder.emit_func_output(result)
        expect_close(
            run(builder.get(), arrays),
            np.maximum(x, np.float32(slope) * x),
            f"With a slope of {slope}, the result",
            "module.negative_slope is what negative numbers are multiplied by.",
        )
    return f"It computes max(x, slope · x), for slopes of {' and '.join(map(str, _SLOPES))}."
