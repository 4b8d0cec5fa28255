# ruff: noqa: N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Passes that make parameters and sizes known, and compute ahead what then depends on no input."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from irviz.model.runs.run_result import Verdict
from irviz.transforms.bind_params import bind_params

pytestmark = pytest.mark.worker

W = np.array([1, -2, 3], "float32")


def random(*shape, dtype="float32"):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


@I.ir_module
class Affine:
    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"), w: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32")
    ):
        with R.dataflow():
            scaled = R.multiply(x, w)
            y = R.add(scaled, b)
            R.output(y)
        return y


@I.ir_module
class AffineWithWeight:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), b: R.Tensor((3,), "float32")):
        with R.dataflow():
            scaled = R.multiply(x, R.const([1.0, -2.0, 3.0], "float32"))
            y = R.add(scaled, b)
            R.output(y)
        return y


BINDINGS = {"TVM's": relax.transform.BindParams("main", {"w": W}), "irviz's": bind_params({"w": W})}


@pytest.mark.parametrize("whose", BINDINGS)
def test_bind_params_puts_a_constant_in_the_place_of_a_parameter(makes, whose):
    session = makes(Affine, BINDINGS[whose], AffineWithWeight)
    inputs = {"x": random(2, 3), "b": random(3)}
    before = session.run({**inputs, "w": W}, stage="0")
    after = session.run(inputs, stage="1")
    assert before.outputs[0].tobytes() == after.outputs[0].tobytes()
    np.testing.assert_allclose(after.outputs[0][0], inputs["x"] * W + inputs["b"], rtol=1e-6)


@I.ir_module
class AnySizes:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("m",), "float32")):
        n = T.int64()
        with R.dataflow():
            flat = R.reshape(x, R.shape([n * 2]))
            both = R.concat((flat, y))
            R.output(both)
        return both


@I.ir_module
class ThreeRows:
    @R.function
    def main(x: R.Tensor((3, 2), "float32"), y: R.Tensor(("m",), "float32")):
        with R.dataflow():
            flat = R.reshape(x, R.shape([6]))
            both = R.concat((flat, y))
            R.output(both)
        return both


def test_bind_symbolic_vars_makes_one_size_known_and_leaves_the_other(makes):
    session = makes(AnySizes, "BindSymbolicVars", ThreeRows, binding_map={"n": 3})
    inputs = {"x": random(3, 2), "y": random(5)}
    assert session.compare("1", "0", inputs).verdict is Verdict.EQUAL
    (joined,) = session.run(inputs).outputs
    assert joined[0].tolist() == [*inputs["x"].ravel(), *inputs["y"]]


@I.ir_module
class ConstantExpression:
    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            sum_ = R.add(R.const([[1.0, 2.0], [3.0, 4.0]], "float32"), R.const(1.0, "float32"))
            turned = R.permute_dims(sum_)
            y = R.multiply(x, turned)
            R.output(y)
        return y


@I.ir_module
class Folded:
    @R.function
    def main(x: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            y = R.multiply(x, R.const([[2.0, 4.0], [3.0, 5.0]], "float32"))
            R.output(y)
        return y


def test_fold_constant_computes_what_depends_on_constants_only(makes):
    session = makes(ConstantExpression, "FoldConstant", Folded)
    assert session.compare("1", "0").verdict is Verdict.EQUAL


@I.ir_module
class Linear:
    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"), w: R.Tensor((4, 3), "float32"), b: R.Tensor((4,), "float32")
    ):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            turned = R.permute_dims(w)
            product = R.matmul(x, turned)
            y = R.add(product, b)
            R.output(y)
        return y


@I.ir_module
class LinearOfPreparedParams:
    @R.function
    def main_transform_params(
        params: R.Tuple(R.Tensor((4, 3), "float32"), R.Tensor((4,), "float32")),
    ):
        R.func_attr({"num_input": 0})
        with R.dataflow():
            w = params[0]
            turned = R.permute_dims(w)
            b = params[1]
            prepared = (b, turned)
            R.output(prepared)
        return prepared

    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"),
        b: R.Tensor((4,), "float32"),
        turned: R.Tensor((3, 4), "float32"),
    ):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            product = R.matmul(x, turned)
            y = R.add(product, b)
            R.output(y)
        return y


def test_lift_transform_params_prepares_the_weights_in_a_function_of_its_own(makes):
    session = makes(Linear, "LiftTransformParams", LinearOfPreparedParams)
    x, w, b = random(2, 3), random(4, 3), random(4)
    machine = relax.VirtualMachine(tvm.compile(session.current.module, "llvm"), tvm.cpu())
    prepared = machine["main_transform_params"]([tvm.runtime.tensor(each) for each in (w, b)])
    before = session.run({"x": x, "w": w, "b": b}, stage="0")
    after = session.run({"x": x, "b": prepared[0].numpy(), "turned": prepared[1].numpy()})
    assert before.outputs[0].tobytes() == after.outputs[0].tobytes()
