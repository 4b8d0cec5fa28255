"""What a diff says of functions beside their bodies, and of what texts do not show."""

import pytest
import tvm
from tvm import relax

import irviz
from irviz.model.diff.diff_result import Aspect

TENSOR = relax.TensorType([4, 4], "float32")


def square(dtype="float32", rows=4):
    return relax.TensorType([rows, 4], dtype)


def exponential(returned=TENSOR, *, is_public=True, is_pure=True):
    x = relax.Var("x", TENSOR)
    y = relax.Var("y", TENSOR)
    block = relax.BindingBlock([relax.VarBinding(y, relax.op.exp(x))])
    function = relax.Function([x], relax.SeqExpr([block], y), returned, is_pure)
    if is_public:
        function = function.with_attr("global_symbol", "main")
    return tvm.IRModule({"main": function})


def said(before, after):
    (main,) = irviz.diff(before, after).functions
    assert not main.changed_nodes
    return list(map(str, main.differences))


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (square("float16"), "dtype of the result: float32 → float16"),
        (square(rows=5), "shape of the result: (4, 4) → (5, 4)"),
        (relax.TensorType(None, "float32", ndim=2), "shape of the result: (4, 4) → ndim=2"),
    ],
)
def test_another_result_type_is_a_difference(returned, words):
    assert said(exponential(), exponential(returned)) == [words]


def test_another_field_of_a_tuple_that_is_returned_is_a_difference():
    def pair(dtype):
        x = relax.Var("x", TENSOR)
        returned = tvm.ir.TupleType([TENSOR, square(dtype)])
        function = relax.Function([x], relax.Tuple([x, x]), returned)
        return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})

    assert [one.partition(":")[0] for one in said(pair("float32"), pair("int8"))] == [
        "type of the result"
    ]


def test_a_function_that_becomes_public_is_a_difference():
    private, public = exponential(is_public=False), exponential()
    assert said(private, public) == ["visibility: private → public"]
    assert said(public, private) == ["visibility: public → private"]


def test_a_function_that_becomes_impure_is_a_difference():
    assert said(exponential(), exponential(is_pure=False)) == [
        "kind of function: Function → Function, impure"
    ]


def difference(one, two):
    """Return the parameters and the result of `one - two`, for names in this order."""
    names = {name: relax.Var(name, TENSOR) for name in (one, two)}
    result = relax.Var("result", TENSOR)
    value = relax.op.subtract(names[one], names[two])
    block = relax.BindingBlock([relax.VarBinding(result, value)])
    return names, relax.SeqExpr([block], result)


def subtraction(params, operands):
    names, body = difference(*operands)
    function = relax.Function([names[one] for one in params], body, TENSOR)
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


def test_parameters_may_have_each_others_names():
    assert not irviz.diff(subtraction("ab", "ab"), subtraction("ba", "ba"))
    assert not irviz.diff(subtraction("ab", "ab"), subtraction("bc", "bc"))


def test_parameters_that_are_exchanged_are_a_difference_of_order():
    (main,) = irviz.diff(subtraction("ab", "ab"), subtraction("ba", "ab")).functions
    assert {one.aspect for each in main.nodes for one in each.differences} == {Aspect.ORDER}


def test_sizes_may_have_each_others_names():
    def sized(one, two):
        text = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("{one}", "{two}"), "float32")):
        {one}, {two} = T.int64(), T.int64()
        y = R.reshape(x, R.shape([{one} * {two}, {two}, {one}, 1]))
        z = R.reshape(y, R.shape([{one}, {two} * 2]))
        return z
"""
        return tvm.script.from_source(text)

    assert not irviz.diff(sized("n", "m"), sized("m", "n"))


def packed(*arguments):
    x = relax.Var("x", TENSOR)
    builder = relax.BlockBuilder()
    with builder.function("main", [x], pure=False):
        call = relax.Call(relax.ExternFunc("env.f"), [x, *arguments], ty_args=[TENSOR])
        builder.emit_func_output(builder.emit(call, "y"))
    return builder.get()


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (relax.const(2.0, "float32"), relax.const(2.0, "float64"), "float32(2.0) → float64(2.0)"),
        (tvm.tirx.IntImm("int64", 2), tvm.tirx.IntImm("int32", 2), "int64(2) → int32(2)"),
    ],
)
def test_the_dtype_of_a_number_is_told_where_its_text_is_the_same(before, after, words):
    (main,) = irviz.diff(packed(before), packed(after)).functions
    (node,) = main.changed_nodes
    assert list(map(str, node.differences)) == [f"operand 1: {words}"]


def test_other_types_that_a_call_is_given_are_a_difference():
    def called(given):
        x, y = relax.Var("x", TENSOR), relax.Var("y", relax.TensorType(dtype="float32"))
        call = relax.Call(relax.ExternFunc("env.f"), [x], ty_args=[given])
        block = relax.BindingBlock([relax.VarBinding(y, call)])
        function = relax.Function([x], relax.SeqExpr([block], y), y.ty, is_pure=False)
        return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})

    (main,) = irviz.diff(called(square()), called(square(rows=5))).functions
    (node,) = main.changed_nodes
    assert list(map(str, node.differences)) == [
        "attribute ty_args: Tensor[(4, 4)] → Tensor[(5, 4)]"
    ]


def test_a_private_function_may_have_another_name_wherever_it_is_named():
    def closed(name):
        text = f"""
@I.ir_module
class Module:
    @R.function(private=True)
    def {name}(a: R.Tensor((2,), "float32"), b: R.Tensor((2,), "float32")):
        c = R.add(a, b)
        return c

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        cls = Module
        closure = R.make_closure(cls.{name}, (x,))
        called = cls.{name}(x, x)
        return (closure, called)
"""
        return tvm.script.from_source(text)

    assert not irviz.diff(closed("inner"), closed("hidden"))
