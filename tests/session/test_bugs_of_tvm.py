"""A bisection finds the passes of this TVM that are wrong for a module, and blames no other one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from tvm import IRModule, relax
from tvm.relax import op

import irviz

pytestmark = [pytest.mark.worker, pytest.mark.build]

Emit = Callable[[relax.Expr], relax.Var]


class Bug(NamedTuple):
    """What a pass is wrong for: the shapes of the parameters, the body, and how it fails."""

    wrong: object
    shapes: list[tuple[int, ...]]
    body: Callable[..., relax.Expr]
    words: str


def constant(*shape: int) -> relax.Constant:
    return relax.const(np.random.default_rng(len(shape)).random(shape, "float32"))


def batch_norm(emit: Emit, x: relax.Var) -> relax.Expr:
    convolved = emit(op.nn.conv2d(x, constant(4, 4, 3, 3)))
    numbers = [constant(4) for _ in range(4)]
    return relax.TupleGetItem(
        emit(op.nn.batch_norm(convolved, *numbers, axis=1, scale=False, training=False)), 0
    )


def parallel(emit: Emit, x: relax.Var, *pairs: relax.Var) -> relax.Expr:
    weights, biases = pairs[::2], pairs[1::2]
    return relax.Tuple(
        [
            emit(op.add(emit(op.matmul(x, weight)), bias))
            for weight, bias in zip(weights, biases, strict=True)
        ]
    )


def sum_of_two_ranks(emit: Emit, x: relax.Var, weight: relax.Var, bias: relax.Var) -> relax.Expr:
    return op.matmul(x, emit(op.add(weight, bias)))


def half_that_is_read_again(emit: Emit, x: relax.Var) -> relax.Expr:
    halves = emit(op.split(emit(op.add(x, x)), 2))
    first = emit(relax.TupleGetItem(halves, 0))
    return op.add(emit(op.nn.relu(first)), relax.TupleGetItem(halves, 0))


def after_convolution(then: Callable[[relax.Var], relax.Expr]) -> Callable[..., relax.Expr]:
    return lambda emit, x, kernel: then(emit(op.nn.conv2d(x, kernel)))


LAYOUT = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})
IMAGE = [(1, 4, 6, 6), (4, 4, 3, 3)]
BUGS = {
    "a folded batch norm without a scale is scaled": Bug(
        "FoldBatchnormToConv2D", [(1, 4, 6, 6)], batch_norm, "different"
    ),
    "biases of one number do not fit the product of two": Bug(
        "CombineParallelMatmul", [(2, 4), (4, 3), (1,), (4, 3), (1,)], parallel, "ValueError"
    ),
    "a vector that is added to a matrix is no matrix": Bug(
        "ExpandMatmulOfSum", [(2, 4), (4, 4), (4,)], sum_of_two_ranks, "ValueError"
    ),
    "a field of a tuple is overwritten and read again": Bug(
        "DataflowUseInplaceCalls", [(4, 4)], half_that_is_read_again, "different"
    ),
    "elements are repeated in the order of the other layout": Bug(
        LAYOUT, IMAGE, after_convolution(lambda x: op.repeat(x, 2)), "different"
    ),
    "tensors are stacked in no layout": Bug(
        LAYOUT, IMAGE, after_convolution(lambda x: op.stack([x, x], 1)), "IndexError"
    ),
    "the tuple of a dropout has no layout": Bug(
        LAYOUT, IMAGE, after_convolution(op.nn.dropout), "InternalError"
    ),
}


def module_of(bug: Bug) -> IRModule:
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"x{number}", relax.TensorType(shape, "float32"))
        for number, shape in enumerate(bug.shapes)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(bug.body(builder.emit, *params))
        builder.emit_func_output(result)
    return builder.get()


@pytest.mark.parametrize("name", BUGS)
def test_the_pass_of_tvm_that_is_wrong_is_found(name: str) -> None:
    bug = BUGS[name]
    mod, around = module_of(bug), ["CanonicalizeBindings", "DeadCodeElimination"]
    found = irviz.bisect(mod, [*around, bug.wrong, *around])
    assert found.stage is not None
    assert found.stage.id == "3"
    assert bug.words in found.words
    right = ["ConvertToDataflow", "FoldConstant", "LegalizeOps", "ToNonDataflow"]
    assert irviz.bisect(mod, [*around, *right]).stage is None
