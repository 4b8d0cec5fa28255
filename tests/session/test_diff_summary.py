# ruff: noqa: N803, N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""A diff says in a line what changed: nothing, so many bindings, so many functions."""

import pytest
import tvm
from tvm import ir, relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T
from tvm_ffi import structural_equal

from irviz.course.mlp import MODULES
from irviz.session.stage_diff import diff_modules
from irviz.transforms.passes.catalog import catalog
from irviz.transforms.passes.pass_transform import named_pass
from irviz.transforms.stage import Stage
from irviz.worker.captured_output import captured_stderr

STATIC, HIGH = MODULES["MyModuleStatic"], MODULES["MyModuleHighLevel"]


@I.ir_module
class Given:
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            a = R.add(x, w)
            b = R.multiply(a, w)
            c = R.add(b, a)
            R.output(c)
        return c


@I.ir_module
class Renamed:
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            first = R.add(x, w)
            second = R.multiply(first, w)
            c = R.subtract(second, first)
            R.output(c)
        return c


@I.ir_module
class Replaced:
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            a = R.add(x, w)
            other = R.divide(a, w)
            c = R.add(other, a)
            R.output(c)
        return c


@I.ir_module
class Shorter:
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            a = R.add(x, w)
            c = R.add(a, a)
            R.output(c)
        return c


@I.ir_module
class Branches:
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), c: R.Tensor((), "bool")):
        if c:
            y = R.add(x, x)
            z = R.multiply(y, x)
        else:
            z = R.subtract(x, x)
        return z


@I.ir_module
class OtherBranch:
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), c: R.Tensor((), "bool")):
        if c:
            y = R.add(x, x)
            z = R.multiply(y, y)
        else:
            z = R.subtract(x, x)
        return z


@I.ir_module
class Kernel:
    @T.prim_func(s_tir=True)
    def scale(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)


def summary(before, after):
    return diff_modules(Stage("0", before), Stage("1", after)).summary


@pytest.mark.parametrize("name", ["MyModule", "MyModuleHighLevel", "MyModuleMixture"])
def test_nothing_is_said_exactly_when_nothing_changes(name):
    mod = MODULES[name]
    seen = 0
    for entry in catalog():
        if any(one.is_required for one in entry.parameters) or entry.is_measured:
            continue
        with captured_stderr():
            try:
                after = named_pass(entry.full_name)(mod)
            except Exception:
                continue
        assert (summary(mod, after) == "nothing") == structural_equal(mod, after), entry.full_name
        seen += 1
    assert seen > 80


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (Given, Given, "nothing"),
        (Given, Renamed, "1 binding; 1 function changed (main)"),
        (Given, Replaced, "1 binding; 1 function changed (main)"),
        (Given, Shorter, "2 bindings; 1 function changed (main)"),
        (Shorter, Given, "2 bindings; 1 function changed (main)"),
        (Branches, OtherBranch, "1 binding; 1 function changed (main)"),
        (Given, Kernel, "1 function added (scale); 1 function removed (main)"),
    ],
    ids=["same", "renamed", "replaced", "shorter", "longer", "branch", "another"],
)
def test_bindings_are_counted_once_whatever_they_are_called(before, after, words):
    assert summary(before, after) == words


def test_the_words_are_those_of_a_person():
    assert summary(HIGH, named_pass("LegalizeOps")(HIGH)) == (
        "7 bindings; 1 function changed (main); 7 functions added (add, add1, matmul, matmul1, …)"
    )
    assert summary(STATIC, named_pass("LowerInitBlock")(STATIC)) == (
        "2 bindings; 3 functions changed (main, linear0, linear1)"
    )


def test_a_constant_in_the_place_of_a_parameter_changes_no_binding():
    bound = relax.transform.BindParams("main", {"w": tvm.runtime.empty((2, 2), "float32")})(Given)
    assert summary(Given, bound) == "1 function changed (main)"


def test_sizes_that_become_known_change_the_bindings_that_have_them():
    mod = MODULES["MyModule"]
    known = relax.transform.BindSymbolicVars({"n": 128})(mod)
    assert summary(mod, known) == "2 bindings; 1 function changed (main)"


def test_attributes_of_a_module_count():
    assert summary(Given, Given.with_attr("level", 3)) == "attributes of the module"
    devices = ir.IRModule(Given.functions, global_infos={"vdevice": [relax.VDevice("llvm")]})
    assert summary(Given, devices) == "attributes of the module"
