"""The exercises on making modules: a right answer, wrong ones that come near, and none."""

import pytest
from tvm import relax, te

from irviz.course import check
from irviz.course.check import Mark
from irviz.course.te_functions import te_matmul

pytestmark = pytest.mark.worker


def linear(x, w, b):
    k = te.reduce_axis((0, x.shape[1]), name="k")
    product = te.compute(
        (x.shape[0], w.shape[0]), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="product"
    )
    return te.compute(product.shape, lambda i, j: product[i, j] + b[j], name="linear")


def without_bias(x, w, b):
    return linear(x, w, te.compute(b.shape, lambda _: te.const(0, "float32")))


def test_a_linear_layer_is_x_times_w_transposed_and_a_bias():
    assert check.te_linear(linear).mark is Mark.RIGHT
    assert "raised" in check.te_linear(lambda x, w, b: te_matmul(x, w)).given  # noqa: ARG005
    assert check.te_linear(without_bias).mark is Mark.WRONG


def leaky(slope=None):
    def rule(builder, operands, module):
        scaled = builder.emit(
            relax.op.multiply(operands[0], relax.const(slope or module.negative_slope, "float32"))
        )
        return builder.emit(relax.op.maximum(operands[0], scaled))

    return rule


def test_a_rule_uses_the_slope_of_the_module():
    assert check.leaky_relu_rule(leaky()).mark is Mark.RIGHT
    assert "With a slope of 0.5" in check.leaky_relu_rule(leaky(0.1)).given
    assert (
        "other values"
        in check.leaky_relu_rule(
            lambda builder, operands, _: builder.emit(relax.op.nn.relu(operands[0]))
        ).given
    )


@pytest.mark.parametrize("exercise", [check.te_linear, check.leaky_relu_rule])
def test_an_empty_answer_is_never_right(exercise):
    assert exercise(...).mark is exercise(None).mark is Mark.UNANSWERED
    for empty in (lambda *_: None, lambda *given: given[0], lambda: None, 3):
        verdict = exercise(empty)
        assert verdict.mark is Mark.WRONG
        assert all((verdict.expected, verdict.given, verdict.hint))
