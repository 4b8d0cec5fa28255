"""Attributes of a call are text, in TVM's order, without those that are not set."""

from tvm import ir, relax, tirx

from irviz.ir.attributes import attributes

x = relax.Var("x", relax.TensorType([4, 4], "float32"))


def test_set_attributes_come_in_order_and_unset_ones_not_at_all():
    assert attributes(relax.op.matmul(x, x).attrs) == ()
    assert attributes(relax.op.matmul(x, x, out_dtype="float16").attrs) == (
        ("out_dtype", "float16"),
    )
    assert attributes(relax.op.split(x, 2, axis=1).attrs) == (
        ("indices_or_sections", "2"),
        ("axis", "1"),
    )


def test_a_call_may_have_no_attributes():
    assert attributes(None) == ()


def test_an_attribute_with_sizes_in_it_is_short():
    n = tirx.Var("n", "int64")
    assert attributes(ir.make_node("ir.DictAttrs", size=n * 2)) == (("size", "n * 2"),)


def test_a_dictionary_of_attributes_is_read_too():
    assert attributes(ir.make_node("ir.DictAttrs", name="a", count=3)) == (
        ("name", "a"),
        ("count", "3"),
    )
