"""A module is written as TVMScript where that says all, and says nothing but that."""

import tvm
from tvm import ir
from tvm_ffi import structural_equal

from irviz.course.mlp import MyModule
from irviz.transforms.export_python import tvmscript_source


def test_a_module_is_the_expression_that_reads_it():
    source = tvmscript_source(MyModule)
    assert structural_equal(eval(source, {"tvm": tvm}), MyModule)


def test_a_prim_func_is_the_expression_that_reads_it():
    function = MyModule["linear0"].with_attr("global_symbol", "linear0")
    assert structural_equal(eval(tvmscript_source(function), {"tvm": tvm}), function)


def test_names_that_would_do_something_are_not_written(tmp_path):
    """Names come from a module, and a module may come from a file."""
    mark = tmp_path / "mark"
    for name in (f"a(x=open({str(mark)!r}, 'w'))", "a\n    @open", "__getattr__"):
        mod = ir.IRModule({ir.GlobalVar(name): MyModule["linear0"]})
        assert tvmscript_source(mod) is None
    assert not mark.exists()
