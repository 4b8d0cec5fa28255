"""The exercises on float16: a right answer, wrong ones that come near, and none."""

import pytest
import tvm
from tvm import relax

from irviz.course import check
from irviz.course.check import Mark

pytestmark = pytest.mark.worker


def store(scale=1, back="float32"):
    """Return a function that stores constants in float16, and casts them before they are used."""

    @relax.expr_functor.mutator
    class Mutator(relax.PyExprMutator):
        def visit_generic_const_(self, constant):
            halved = relax.const(constant.value.numpy() * scale, "float16")
            return self.builder_.emit(relax.op.astype(halved, back))

    return lambda mod: tvm.IRModule({"main": Mutator(mod).visit_expr(mod["main"])})


def test_weights_are_stored_in_half_and_used_in_full():
    assert check.half_weights(store()).mark is Mark.RIGHT
    assert "constants are float32" in check.half_weights(lambda mod: mod).given
    assert check.half_weights(store(back="float16")).mark is Mark.WRONG
    assert "of the largest" in check.half_weights(store(scale=1.1)).given


@relax.expr_functor.mutator
class HalfProducts(relax.PyExprMutator):
    """Cast the operands of the products with results of these sizes."""

    def __init__(self, mod, sizes):
        super().__init__(mod)
        self.sizes = sizes

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        name = getattr(call.op, "name", "")
        if name != "relax.matmul" or int(call.ty.shape.values[-1]) not in self.sizes:
            return call
        halves = [self.builder_.emit(relax.op.astype(each, "float16")) for each in call.args]
        return relax.op.matmul(*halves, out_dtype="float32")


def half_products(*sizes):
    def rewrite(mod):
        return tvm.IRModule({"main": HalfProducts(mod, sizes).visit_expr(mod["main"])})

    return rewrite


def test_sums_are_exact_and_the_operands_of_the_first_are_not():
    cast = relax.transform.ToMixedPrecision
    assert check.exact_sums(half_products(128)).mark is Mark.RIGHT
    assert "last layer takes float16" in check.exact_sums(cast(out_dtype="float32")).given
    assert "last layer takes float16" in check.exact_sums(half_products(10, 128)).given
    assert "first layer takes float32" in check.exact_sums(half_products(10)).given
    assert "gives float16" in check.exact_sums(cast(out_dtype="float16")).given
    assert "takes float32 and float32" in check.exact_sums(lambda mod: mod).given


@pytest.mark.parametrize("exercise", [check.half_weights, check.exact_sums])
def test_an_empty_answer_is_never_right(exercise):
    assert exercise(...).mark is exercise(None).mark is Mark.UNANSWERED
    for empty in (lambda mod: mod, lambda _: None, lambda _: tvm.IRModule(), 16):
        verdict = exercise(empty)
        assert verdict.mark is Mark.WRONG
        assert all((verdict.expected, verdict.given, verdict.hint))
