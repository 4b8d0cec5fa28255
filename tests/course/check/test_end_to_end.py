"""The exercises on the MLP: a right answer, wrong ones that come near, and none."""

import pytest
import tvm
from tvm import te, tirx
from tvm.script import from_source

from irviz.course import check
from irviz.course.check import Mark
from irviz.course.mlp import MyModule, MyModuleMixture
from irviz.course.mlp_symbolic import calling

pytestmark = pytest.mark.worker


def activation(slope, size=None):
    n = size or tirx.Var("n", "int64")
    x = te.placeholder((1, n), "float32", "X")
    leaky = te.compute(
        x.shape, lambda i, j: te.max(x[i, j], tirx.const(slope, "float32") * x[i, j]), "Y"
    )
    return te.create_prim_func([x, leaky])


def test_a_leaky_relu_keeps_a_tenth_of_negative_numbers():
    assert check.leaky_relu(activation(0.1)).mark is Mark.RIGHT
    assert "other values" in check.leaky_relu(MyModule["relu0"]).given
    assert check.leaky_relu(activation(0.1, size=128)).mark is Mark.WRONG


def test_only_the_first_layer_is_left_to_the_library():
    assert check.other_mixture(calling("env.linear", "relu0", "linear0")).mark is Mark.RIGHT
    assert "env.relu (library)" in check.other_mixture(MyModuleMixture).given
    zero = calling("env.linear", "relu0", "linear0")
    zero["linear0"] = from_source(ZERO)
    assert "other values" in check.other_mixture(zero).given


ZERO = """
@T.prim_func(s_tir=True)
def linear0(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
    m, n = T.int64(), T.int64()
    X = T.match_buffer(x, (1, m), "float32")
    W = T.match_buffer(w, (n, m), "float32")
    B = T.match_buffer(b, (n,), "float32")
    Z = T.match_buffer(z, (1, n), "float32")
    for i, j in T.grid(1, n):
        with T.sblock("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = B[vj]
"""


@pytest.mark.parametrize("exercise", [check.leaky_relu, check.other_mixture])
def test_an_empty_answer_is_never_right(exercise):
    assert exercise(...).mark is exercise(None).mark is Mark.UNANSWERED
    for empty in (MyModule, tvm.IRModule(), lambda: None, ""):
        verdict = exercise(empty)
        assert verdict.mark is Mark.WRONG
        assert all((verdict.expected, verdict.given, verdict.hint))
