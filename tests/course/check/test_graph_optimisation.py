"""The exercises on rewriting graphs: a right answer, wrong ones that come near, and none."""

import pytest
from tvm import IRModule, relax
from tvm.relax import dpl
from tvm.relax.dpl import is_op, wildcard

from irviz.course import check
from irviz.course.check import Mark
from tests.course.check.notebook_cells import define

pytestmark = pytest.mark.worker


@pytest.fixture(scope="module")
def notebook():
    """Return what the notebook defines: its passes are wrong answers."""
    return define(
        "graph_optimisation",
        "setup",
        "fma-mutator",
        "fma-pass",
        "patterns-defined",
        "fuser",
        "linear-function",
    )


def use_fma(*orders):
    """Return a function that rewrites sums to ewise_fma of their operands in these orders."""
    a, b, c = wildcard(), wildcard(), wildcard()
    product = is_op("relax.multiply")(a, b)

    def rewrite(mod):
        function = mod["main"]
        for order in orders:
            operands = [{"a": a, "b": b, "c": c}[name] for name in order]
            function = dpl.rewrite_call(
                is_op("relax.add")(product, c),  # whichever operand the product is
                lambda _, found, operands=operands: relax.op.ewise_fma(*map(found.get, operands)),
                function,
            )
        return IRModule({"main": relax.analysis.remove_all_unused(function)})

    return rewrite


def test_a_sum_of_a_product_is_fused_on_either_side(notebook):
    assert check.multiply_add(use_fma("abc")).mark is Mark.RIGHT
    assert "z + x * y became 0 ewise_fma" in check.multiply_add(notebook["UseFma"]()).given
    assert "other values" in check.multiply_add(use_fma("acb")).given


def fuse(*names):
    """Return TVM's pass that fuses these patterns, and looks at who uses the values inside."""
    x, w, b = wildcard(), wildcard(), wildcard()
    linear = is_op("relax.add")(is_op("relax.matmul")(x, is_op("relax.permute_dims")(w)), b)
    patterns = {"linear_relu": is_op("relax.nn.relu")(linear), "linear": linear}
    return relax.transform.FuseOpsByPattern([(name, patterns[name]) for name in names])


def test_a_layer_is_fused_unless_its_product_is_shared(notebook):
    assert check.fuse_unless_shared(fuse("linear_relu", "linear")).mark is Mark.RIGHT
    assert check.fuse_unless_shared(fuse("linear_relu")).mark is Mark.RIGHT
    assert "functions beside main have: relax.add" in check.fuse_unless_shared(fuse("linear")).given
    assert "3 matmul" in check.fuse_unless_shared(notebook["FuseLinear"]()).given


@pytest.mark.parametrize("exercise", [check.multiply_add, check.fuse_unless_shared])
def test_an_empty_answer_is_never_right(exercise):
    assert exercise(...).mark is exercise(None).mark is Mark.UNANSWERED
    for empty in (lambda mod: mod, lambda _: None, lambda _: IRModule(), 5, ""):
        verdict = exercise(empty)
        assert verdict.mark is Mark.WRONG
        assert all((verdict.expected, verdict.given, verdict.hint))
