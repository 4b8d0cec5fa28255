"""The contents of a module are its functions and attributes."""

import pytest
from tvm import relax

from irviz.course.mlp import MyModule
from irviz.ir.module_functions import contents


def test_functions_are_there_by_name_with_their_kind():
    found = contents(MyModule).functions
    assert [(one.name, one.kind, one.is_private) for one in found] == [
        ("linear0", "PrimFunc", False),
        ("main", "Relax function", False),
        ("relu0", "PrimFunc", False),
    ]


def test_private_and_impure_functions_say_so(modules):
    kinds = {one.name: one.kind for one in contents(modules.TwoFunctions).functions}
    assert kinds == {"first": "Relax function, impure", "second": "Relax function"}
    mod = relax.transform.FuseOps()(
        relax.transform.AnnotateTIROpPattern()(relax.transform.LegalizeOps()(modules.stack(1)))
    )
    fused = [one for one in contents(mod).functions if one.name.startswith("fused")]
    assert fused
    assert all(one.is_private and ("Primitive", "True") in one.attributes for one in fused)


def test_attributes_of_the_module_are_there(constructs):
    assert ("device_num", "2") in contents(constructs.construct("sharded")).attributes


@pytest.mark.parametrize("name", ["python functions", "python functions by name"])
def test_python_functions_are_among_them_also_after_a_pass(constructs, name):
    mod = constructs.construct(name)
    python = [one.name for one in contents(mod).functions if one.kind == "Python function"]
    after = contents(relax.transform.Normalize()(mod)).functions
    assert [one.name for one in after if one.kind == "Python function"] == python


def test_every_construct_has_contents(constructs, construct):
    mod = constructs.construct(construct)
    assert len(contents(mod).functions) >= len(mod.functions)
