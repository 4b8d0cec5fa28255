# ruff: noqa: F841, N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Passes that rearrange the operators of a function, or make new ones of them."""

import numpy as np
import pytest
from tvm.script import ir as I
from tvm.script import relax as R

from irviz.model.runs.run_result import Tolerance, Verdict, compare_runs

pytestmark = pytest.mark.worker


def random(*shape, dtype="float32"):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


@I.ir_module
class Checked:
    @R.function(pure=False)
    def main(x: R.Tensor((2, 3), "float32"), is_fine: R.Tensor((), "bool")):
        a = R.add(x, x)
        b = R.multiply(a, x)
        nothing = R.assert_op(is_fine)
        c = R.subtract(b, a)
        return c


@I.ir_module
class CheckedAfterDataflow:
    @R.function(pure=False)
    def main(x: R.Tensor((2, 3), "float32"), is_fine: R.Tensor((), "bool")):
        with R.dataflow():
            a = R.add(x, x)
            b = R.multiply(a, x)
            R.output(a, b)
        nothing = R.assert_op(is_fine)
        c = R.subtract(b, a)  # one binding is no block: the pass wants two
        return c


def test_convert_to_dataflow_makes_a_block_of_what_has_no_effects(makes):
    session = makes(Checked, "ConvertToDataflow", CheckedAfterDataflow)
    inputs = {"x": random(2, 3), "is_fine": np.array(True)}
    assert session.compare("1", "0", inputs).verdict is Verdict.EQUAL


@I.ir_module
class Unused:
    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            unused = R.exp(x)
            unused_too = R.negative(unused)
            y = R.add(x, x)
            R.output(y)
        return y

    @R.function(private=True)
    def not_called(x: R.Tensor((2, 2), "float32")):
        return x


@I.ir_module
class Used:
    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y


def test_dead_code_elimination_drops_what_nothing_uses(makes):
    session = makes(Unused, "DeadCodeElimination", Used)
    assert session.compare("1", "0").verdict is Verdict.EQUAL


@I.ir_module
class SaidTwice:
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.add(x, y)
            z = R.multiply(a, b)
            R.output(z)
        return z


@I.ir_module
class SaidOnce:
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = a  # left for DeadCodeElimination
            z = R.multiply(a, a)
            R.output(z)
        return z


def test_eliminate_common_subexpr_computes_the_same_thing_once(makes):
    session = makes(SaidTwice, "EliminateCommonSubexpr", SaidOnce)
    assert session.compare("1", "0").verdict is Verdict.EQUAL


@I.ir_module
class Linear:
    @R.function
    def main(
        x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 3), "float32"), b: R.Tensor((3,), "float32")
    ):
        with R.dataflow():
            product = R.matmul(x, w)
            y = R.add(product, b)
            R.output(y)
        return y


@I.ir_module
class HalfPrecisionProduct:
    @R.function
    def main(
        x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 3), "float32"), b: R.Tensor((3,), "float32")
    ):
        with R.dataflow():
            half_x = R.astype(x, "float16")
            half_w = R.astype(w, "float16")
            wide = R.matmul(half_x, half_w, out_dtype="float32")
            half_product = R.astype(wide, "float16")
            product = R.astype(half_product, "float32")
            y = R.add(product, b)
            R.output(y)
        return y


def test_to_mixed_precision_multiplies_in_half_precision(makes):
    session = makes(Linear, "ToMixedPrecision", HalfPrecisionProduct)
    inputs = {"x": random(2, 4), "w": random(4, 3), "b": random(3)}
    before, after = session.run(inputs, stage="0"), session.run(inputs, stage="1")
    # float16 keeps 11 bits: x, w and their product are each off by 2**-11 of themselves at most
    size = np.abs(inputs["x"]) @ np.abs(inputs["w"])
    limits = Tolerance(relative=0.0, absolute=float(4 * 2**-11 * size.max()))
    assert compare_runs(after, before, limits).verdict is Verdict.CLOSE
    assert compare_runs(after, before, Tolerance(1e-6, 1e-6)).verdict is Verdict.DIFFERENT


@I.ir_module
class Loss:
    @R.function
    def main(x: R.Tensor((2, 3), "float64"), w: R.Tensor((3, 2), "float64")):
        with R.dataflow():
            product = R.matmul(x, w)
            active = R.tanh(product)
            loss = R.sum(active)
            R.output(loss)
        return loss


@I.ir_module
class LossAndGradient:
    @R.function
    def main(x: R.Tensor((2, 3), "float64"), w: R.Tensor((3, 2), "float64")):
        with R.dataflow():
            product = R.matmul(x, w)
            active = R.tanh(product)
            loss = R.sum(active)
            R.output(loss)
        return loss

    @R.function
    def main_adjoint(x: R.Tensor((2, 3), "float64"), w: R.Tensor((3, 2), "float64")):
        with R.dataflow():
            product = R.matmul(x, w)
            active = R.tanh(product)
            loss = R.sum(active)
            # by the loss, from the last operator to the first; tanh' = 1 - tanh²
            by_loss = R.ones(R.shape([]), "float64")
            by_active = R.broadcast_to(by_loss, R.shape([2, 2]))
            square = R.multiply(active, active)
            slope = R.subtract(R.const(1.0, "float64"), square)
            by_product = R.multiply(by_active, slope)
            turned = R.permute_dims(x, axes=[1, 0])
            by_w = R.matmul(turned, by_product)
            by_w_out = by_w
            R.output(loss, by_w_out)
        return (loss, (by_w_out,))


def test_gradient_adds_a_function_that_agrees_with_central_differences(makes):
    session = makes(Loss, "Gradient", LossAndGradient, func_name="main", require_grads=["w"])
    inputs = {"x": random(2, 3, dtype="float64"), "w": random(3, 2, dtype="float64")}
    assert session.compare("1", "0", inputs).verdict is Verdict.EQUAL  # main is as it was
    loss, by_w = (
        output[0] for output in session.select_function("main_adjoint").run(inputs).outputs
    )
    x, w = inputs["x"], inputs["w"]
    np.testing.assert_allclose(loss, np.tanh(x @ w).sum(), rtol=1e-12)

    steps = 1e-6 * np.eye(w.size).reshape(w.size, *w.shape)  # of one element after the other
    differences = np.tanh(x @ (w + steps)) - np.tanh(x @ (w - steps))
    expected = differences.sum(axis=(1, 2)).reshape(w.shape) / 2e-6
    assert by_w.dtype == "float64"
    np.testing.assert_allclose(by_w, expected, rtol=1e-8, atol=1e-8)
