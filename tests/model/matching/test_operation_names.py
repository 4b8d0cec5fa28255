"""Types are compared as far as lowering keeps them."""

import pytest

from irviz.model.matching.operation_names import may_have_types


@pytest.mark.parametrize(
    ("other", "may"),
    [
        ("Tensor[(2, 3)]", True),
        ("Tensor[(2, 3), float16]", True),
        ("Tensor[(3, 2)]", True),
        ("Tensor", True),
        ("Tensor[(2, 4)]", False),
    ],
)
def test_one_value_may_have_types_of_other_dtypes_and_orders_and_of_unknown_shape(other, may):
    assert may_have_types("Tensor[(2, 3)]", other) == may_have_types(other, "Tensor[(2, 3)]") == may
