# ruff: noqa: N803, N805, N806, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""From operators to PrimFuncs, and several of these to one. Each Expected is the next Before."""

import pytest
import tvm
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from irviz.model.runs.run_result import Verdict
from irviz.session.session import Session

pytestmark = pytest.mark.worker


@I.ir_module
class Operators:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            product = R.matmul(x, w)
            active = R.nn.relu(product)
            R.output(active)
        return active


@I.ir_module
class Legalized:
    @T.prim_func(private=True, s_tir=True)
    def matmul(
        X: T.Buffer((T.int64(2), T.int64(3)), "float32"),
        W: T.Buffer((T.int64(3), T.int64(4)), "float32"),
        Y: T.Buffer((T.int64(2), T.int64(4)), "float32"),
    ):
        T.func_attr({"tirx.noalias": True})
        for i, j, k in T.grid(T.int64(2), T.int64(4), T.int64(3)):
            with T.sblock("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vk, vj]

    @T.prim_func(private=True, s_tir=True)
    def relu(
        X: T.Buffer((T.int64(2), T.int64(4)), "float32"),
        Y: T.Buffer((T.int64(2), T.int64(4)), "float32"),
    ):
        T.func_attr({"tirx.noalias": True})
        for i, j in T.grid(T.int64(2), T.int64(4)):
            with T.sblock("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32")):
        cls = Legalized
        with R.dataflow():
            product = R.call_tir(cls.matmul, (x, w), R.Tensor((2, 4), "float32"))
            active = R.call_tir(cls.relu, (product,), R.Tensor((2, 4), "float32"))
            R.output(active)
        return active


@I.ir_module
class Annotated:
    @T.prim_func(private=True, s_tir=True)
    def matmul(
        X: T.Buffer((T.int64(2), T.int64(3)), "float32"),
        W: T.Buffer((T.int64(3), T.int64(4)), "float32"),
        Y: T.Buffer((T.int64(2), T.int64(4)), "float32"),
    ):
        T.func_attr({"tirx.noalias": True, "op_pattern": 4})  # element-wise ones may follow
        for i, j, k in T.grid(T.int64(2), T.int64(4), T.int64(3)):
            with T.sblock("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vk, vj]

    @T.prim_func(private=True, s_tir=True)
    def relu(
        X: T.Buffer((T.int64(2), T.int64(4)), "float32"),
        Y: T.Buffer((T.int64(2), T.int64(4)), "float32"),
    ):
        T.func_attr({"tirx.noalias": True, "op_pattern": 0})  # element-wise
        for i, j in T.grid(T.int64(2), T.int64(4)):
            with T.sblock("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32")):
        cls = Annotated
        with R.dataflow():
            product = R.call_tir(cls.matmul, (x, w), R.Tensor((2, 4), "float32"))
            active = R.call_tir(cls.relu, (product,), R.Tensor((2, 4), "float32"))
            R.output(active)
        return active


@I.ir_module
class Grouped:
    @T.prim_func(private=True, s_tir=True)
    def matmul(
        X: T.Buffer((T.int64(2), T.int64(3)), "float32"),
        W: T.Buffer((T.int64(3), T.int64(4)), "float32"),
        Y: T.Buffer((T.int64(2), T.int64(4)), "float32"),
    ):
        T.func_attr({"tirx.noalias": True, "op_pattern": 4})
        for i, j, k in T.grid(T.int64(2), T.int64(4), T.int64(3)):
            with T.sblock("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vk, vj]

    @T.prim_func(private=True, s_tir=True)
    def relu(
        X: T.Buffer((T.int64(2), T.int64(4)), "float32"),
        Y: T.Buffer((T.int64(2), T.int64(4)), "float32"),
    ):
        T.func_attr({"tirx.noalias": True, "op_pattern": 0})
        for i, j in T.grid(T.int64(2), T.int64(4)):
            with T.sblock("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @R.function(private=True)
    def fused_matmul_relu(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32")):
        R.func_attr({"Primitive": True})
        cls = Grouped
        with R.dataflow():
            product = R.call_tir(cls.matmul, (x, w), R.Tensor((2, 4), "float32"))
            active = R.call_tir(cls.relu, (product,), R.Tensor((2, 4), "float32"))
            R.output(active)
        return active

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32")):
        cls = Grouped
        with R.dataflow():
            active = cls.fused_matmul_relu(x, w)
            R.output(active)
        return active


@I.ir_module
class Fused:
    @T.prim_func(private=True, s_tir=True)
    def fused_matmul_relu(
        X: T.Buffer((T.int64(2), T.int64(3)), "float32"),
        W: T.Buffer((T.int64(3), T.int64(4)), "float32"),
        Z: T.Buffer((T.int64(2), T.int64(4)), "float32"),
    ):
        T.func_attr({"tirx.noalias": True})
        Y = T.sblock_alloc_buffer((T.int64(2), T.int64(4)), "float32")
        for i, j, k in T.grid(T.int64(2), T.int64(4), T.int64(3)):
            with T.sblock("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vk, vj]
        for i, j in T.grid(T.int64(2), T.int64(4)):
            with T.sblock("compute"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32")):
        cls = Fused
        with R.dataflow():
            active = R.call_tir(cls.fused_matmul_relu, (x, w), R.Tensor((2, 4), "float32"))
            R.output(active)
        return active


def test_legalize_ops_makes_a_prim_func_of_each_operator(makes):
    session = makes(Operators, "LegalizeOps", Legalized)
    assert session.compare("1", "0").verdict is Verdict.EQUAL


def test_annotate_tir_op_pattern_says_what_kind_each_prim_func_is(makes):
    session = makes(Legalized, "AnnotateTIROpPattern", Annotated)
    assert session.compare("1", "0").verdict is Verdict.EQUAL


def test_fuse_ops_groups_what_can_be_one_into_a_function(makes):
    session = makes(Annotated, "FuseOps", Grouped)
    assert session.compare("1", "0").verdict is Verdict.EQUAL


def test_fuse_tir_makes_one_prim_func_of_a_group(makes):
    session = makes(Grouped, "FuseTIR", Fused)
    assert session.compare("1", "0").verdict is Verdict.EQUAL


def test_the_four_in_a_row_make_one_prim_func_of_the_operators():
    session = Session(Operators)
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
        session = session.apply(name)
    tvm.ir.assert_structural_equal(session.current.module, Fused)
    assert session.compare("4", "0").verdict is Verdict.EQUAL
