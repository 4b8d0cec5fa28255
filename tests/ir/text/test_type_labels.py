"""Types have short labels."""

import pytest
from tvm import ir, relax, tirx

from irviz.ir.type_and_expression_labels import type_label

n = tirx.Var("n", "int64")


@pytest.mark.parametrize(
    ("type_", "label"),
    [
        (relax.TensorType([1, 128], "float32"), "Tensor[(1, 128)]"),
        (relax.TensorType([1, n], "float16"), "Tensor[(1, n), float16]"),
        (relax.TensorType([4], "int64"), "Tensor[(4,), int64]"),
        (relax.TensorType([], "float32"), "Tensor[()]"),
        (relax.TensorType([], "bool"), "Tensor[(), bool]"),
        (relax.TensorType(None, "float32", ndim=2), "Tensor[ndim=2]"),
        (relax.TensorType(None, "int8", ndim=2), "Tensor[ndim=2, int8]"),
        (relax.TensorType(None, "float32"), "Tensor"),
        (relax.TensorType([2, 3], None), "Tensor[(2, 3)]"),
        (relax.TensorType(relax.Var("s", relax.ShapeType(ndim=2)), "float32"), "Tensor[s]"),
        (relax.ShapeType([1, n]), "Shape[(1, n)]"),
        (relax.ShapeType(ndim=3), "Shape[ndim=3]"),
        (relax.ShapeType(), "Shape"),
        (relax.TupleType([]), "Tuple[]"),
        (relax.TupleType([relax.AnyType(), ir.PrimType("int64")]), "Tuple[Any, int64]"),
        (relax.TupleType([ir.PrimType("bool")] * 6), "Tuple[bool, bool, bool, bool, … +2]"),
        (relax.FuncType([], relax.AnyType()), "Function"),
        (ir.StringType(), "String"),
        (None, "?"),
    ],
)
def test_a_type_is_short(type_, label):
    assert type_label(type_) == label


def test_a_tensor_says_where_it_is_and_how_it_is_sharded(constructs):
    device = constructs.construct("devices")["main"].params[0].ty
    assert type_label(device) == "Tensor[(2,), llvm:0]"
    sharded = constructs.construct("sharded")["main"].params[0].ty
    assert type_label(sharded) == "DTensor[(4, 4), S[0] on mesh (2,)]"


def test_a_type_of_which_nothing_is_known_is_a_question():
    assert type_label(None) == type_label(ir.Type()) == "?"


def test_a_type_nested_too_deep_is_cut():
    deep = relax.TensorType([2], "float32")
    for _ in range(1500):
        deep = ir.TupleType([deep])
    assert type_label(deep).count("Tuple[") == 21
