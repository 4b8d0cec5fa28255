"""Sizes and attributes have short labels."""

import pytest
from tvm import ir, relax, tirx

from irviz.ir.type_and_expression_labels import attributes, dim_label, shape_label

n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (tirx.IntImm("int64", 128), "128"),
        (n, "n"),
        (n * 2, "n * 2"),
        ((n + 1) // 4 * -3, "(n + 1) // 4 * -3"),
        (tirx.max(n, 1), "T.max(n, 1)"),
        (tirx.Var("k", "int32") + 1, "k + 1"),
        (n * m, "n * m"),
    ],
)
def test_a_size_is_an_expression_of_names_and_numbers(value, label):
    assert dim_label(value) == label


def test_a_shape_reads_as_a_tuple_of_python():
    assert shape_label([]) == "()"
    assert shape_label([n]) == "(n,)"
    assert shape_label([tirx.IntImm("int64", 1), n * 2]) == "(1, n * 2)"


# --- attributes --------------------------------------------------------------------------------

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


def test_an_expression_of_a_number_of_a_dataflow_block_has_its_name():
    number = relax.DataflowVar("number", ir.PrimType("int64"))
    assert dim_label(number * 2 + number) == "number * 2 + number"
