"""The exercises of notebooks/graph_optimisation.ipynb."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from tvm import ir, relax, te

from irviz.course.check.answers import (
    WrongAnswerError,
    exercise,
    expect_close,
    operators,
    random_arrays,
    run,
    transform,
)
from irviz.course.digits import digits, mlp_params
from irviz.ir.module_functions import relax_functions

_OPS: Final = relax.op

_SUMS: Final[dict[str, Callable[..., Any]]] = {
    "x * y + z": lambda op, x, y, z: op.add(op.multiply(x, y), z),
    "z + x * y": lambda op, x, y, z: op.add(z, op.multiply(x, y)),
    "x * y + y * z": lambda op, x, y, z: op.add(op.multiply(x, y), op.multiply(y, z)),
    "(x + y) * z": lambda op, x, y, z: op.multiply(op.add(x, y), z),
}
"""Each written once, for Relax's operators and for NumPy's functions."""


@exercise(
    "Either operand",
    "A pass that makes one ewise_fma of a multiplication and an addition, whichever operand of "
    "the addition the product is, and leaves everything else as it is.",
)
def multiply_add(answer: Callable[..., Any]) -> str:
    """Check a pass that fuses x * y + z and z + x * y."""
    arrays = random_arrays(0, x=(3, 4), y=(3, 4), z=(3, 4))
    for text, build in _SUMS.items():
        made = transform(answer, _module(lambda *inputs, build=build: build(_OPS, *inputs), arrays))
        lowered = relax.transform.LegalizeOps({"relax.ewise_fma": _lower_fma})(made)
        expect_close(
            run(lowered, arrays),
            build(np, *arrays.values()),
            f"After the pass, {text}",
            "ewise_fma(a, b, c) is a * b + c: which variable belongs in which place?",
        )
        found = operators(made, "main")
        wanted = 0 if text.startswith("(") else 1
        if found["relax.ewise_fma"] != wanted:
            raise WrongAnswerError(
                f"{text} became {found['relax.ewise_fma']} ewise_fma and has "
                f"{found['relax.add']} add.",
                "Look up the value of each operand: the product can be args[0] or args[1]."
                if wanted
                else "Only an addition of a product may be rewritten.",
            )
    return "All sums of a product are one ewise_fma, and all results are as before."


@exercise(
    "Only where nobody else needs it",
    "A pass that fuses a linear layer with its ReLU, but computes no product twice where the "
    "product is used outside too.",
)
def fuse_unless_shared(answer: Callable[..., Any]) -> str:
    """Check a pass that fuses linear layers with ReLU, unless a value inside has other users."""
    from irviz.course.mlp import MyModuleHighLevel

    arrays = {"x": digits().images[:1], **mlp_params()}
    for name, module in {
        "the MLP": MyModuleHighLevel,
        "the network with a shared product": _module(_shared_product, arrays),
    }.items():
        made = transform(answer, module)
        expect_close(
            run(made, arrays), run(module, arrays), f"After the pass, {name}",
            "Compare stages in a session: first_difference names the node.",
        )  # fmt: skip
        before, after = (operators(each)["relax.matmul"] for each in (module, made))
        if after > before:
            raise WrongAnswerError(
                f"{name} has {after} matmul, and had {before}.",
                "relax.analysis.udchain(block) has the users of each variable: are all inside?",
            )
        layer = {"relax.permute_dims", "relax.matmul", "relax.add", "relax.nn.relu"}
        found = [operators(made, each) for each in relax_functions(made) if each != "main"]
        if name == "the MLP" and Counter(layer) not in found:
            inside = "; ".join(", ".join(sorted(each.elements())) for each in found)
            raise WrongAnswerError(
                f"In {name}, the functions beside main have: {inside or 'nothing'}.",
                "Its first layer is to be one function: nothing in it is used outside.",
            )
    return "The MLP's first layer is one call, and the shared product is computed once."


def _module(build: Callable[..., relax.Expr], arrays: dict[str, Any]) -> ir.IRModule:
    """Return a module with a `main` of parameters like these arrays."""
    builder = relax.BlockBuilder()
    parameters = [
        relax.Var(name, relax.TensorType(array.shape, str(array.dtype)))
        for name, array in arrays.items()
    ]
    with builder.function("main", parameters):
        with builder.dataflow():
            result = builder.emit_output(builder.normalize(build(*parameters)))
        builder.emit_func_output(result)
    return builder.get()


def _shared_product(
    x: relax.Var, w0: relax.Var, b0: relax.Var, w1: relax.Var, b1: relax.Var
) -> relax.Expr:
    """Return the MLP with x @ w0.T added once more after the ReLU."""
    product = _OPS.matmul(x, _OPS.permute_dims(w0))
    hidden = _OPS.add(_OPS.nn.relu(_OPS.add(product, b0)), product)
    return _OPS.add(_OPS.matmul(hidden, _OPS.permute_dims(w1)), b1)


def _lower_fma(builder: relax.BlockBuilder, call: ir.Call) -> relax.Expr:
    def fma(a: te.Tensor, b: te.Tensor, c: te.Tensor) -> te.Tensor:
        return te.compute(a.shape, lambda *place: a(*place) * b(*place) + c(*place))

    return builder.call_te(fma, *call.args)
