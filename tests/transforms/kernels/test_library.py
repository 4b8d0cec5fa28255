"""Kernels are registered with a signature, run on the VM's own memory, and can be replaced."""

import re
import subprocess
import sys

import numpy as np
import pytest
import tvm
from tvm import relax

from irviz.course.mlp import MyModuleStatic
from irviz.errors import RunError
from irviz.runtime.run import CallInputs, RunConfig, run
from irviz.transforms.kernels import library
from irviz.transforms.kernels.candidates import iter_candidates
from irviz.transforms.kernels.library import OPERATORS
from irviz.transforms.kernels.swap import Swap


@pytest.fixture
def argument_lists():
    """Keep what a kernel was called with."""
    return []


def run_relu(kernel, x):
    """Run a module that calls the kernel and nothing else."""
    var = relax.Var("x", relax.TensorType(x.shape, str(x.dtype)))
    builder = relax.BlockBuilder()
    with builder.function("main", [var]):
        builder.emit_func_output(builder.emit(relax.call_dps_packed(kernel, var, var.ty)))
    given, here = (
        CallInputs(inputs={"x": x}),
        RunConfig(isolate=False),
    )  # so that a kernel can tell of it
    return run(builder.get(), inputs=given, config=here).outputs[0][0]


def test_the_library_has_the_courses_kernels():
    kernels = library.kernels()
    assert str(kernels["env.linear"].signature) == "(b,m),(n,m),(n)->(b,n)"
    assert str(kernels["env.relu"].signature) == "(...)->(...)"
    assert kernels["env.relu"].summary == "Compute max(x, 0), by NumPy."
    with pytest.raises(TypeError):
        kernels["env.other"] = kernels["env.relu"]


@pytest.mark.worker
def test_the_courses_kernels_compute_what_they_say():
    x = np.array([[-1.0, 2.0]], "float32")
    assert run_relu("env.relu", x).tolist() == [[0, 2]]


@pytest.mark.worker
def test_a_kernel_gets_arrays_inputs_first_and_writes_into_the_last(argument_lists):
    @library.register("test.spy", "(n)->(n)")
    def spy(x, out):
        """Add one.

        And tell of it.
        """
        argument_lists.append((type(x), type(out), x.dtype, out.shape))
        np.add(x, 1, out=out)

    assert run_relu("test.spy", np.array([1, 2], "float32")).tolist() == [2, 3]
    assert argument_lists == [(np.ndarray, np.ndarray, np.dtype("float32"), (2,))]
    assert library.kernels()["test.spy"].summary == "Add one."


def test_the_decorated_function_stays_as_it_is():
    @library.register("test.plain", "(n)->(n)")
    def plain(x, out):
        out[:] = x

    out = np.zeros(2)
    plain(np.ones(2), out)
    assert out.tolist() == [1, 1]
    assert library.kernels()["test.plain"].summary == ""


@pytest.mark.worker
@pytest.mark.parametrize("dtype", ["bool", "float16", "int64"])
def test_a_kernel_can_be_of_another_dtype(dtype):
    @library.register(f"test.copy_{dtype}", "(n)->(n)", dtype=dtype)
    def copy(x, out):
        out[:] = x

    x = np.array([0, 1], dtype)
    assert run_relu(f"test.copy_{dtype}", x).tobytes() == x.tobytes()
    assert library.kernels()[f"test.copy_{dtype}"].signature.inputs[0].dtype == dtype


@pytest.mark.worker
def test_registering_again_replaces_even_in_what_has_been_built():
    @library.register("test.again", "(n)->(n)")
    def first(_, out):
        out[:] = 1

    swapped = Swap("relu0", "test.again")
    with pytest.raises(ValueError, match=re.escape("its signature is (n)->(n)")):
        swapped(MyModuleStatic)

    @library.register("test.again", "(...)->(...)")
    def second(_, out):
        out[:] = 2

    mod = swapped(MyModuleStatic)
    before = run(mod).outputs[0]

    @library.register("test.again", "(...)->(...)")
    def third(_, out):
        out[:] = 0

    assert not np.allclose(run(mod).outputs[0], before)
    *_, tried = iter_candidates(MyModuleStatic, "main", "lv1")
    (found,) = (c for c in tried if c.name == "test.again")
    assert not found.computes_the_same


@pytest.mark.worker
@pytest.mark.parametrize("failure", [KeyError("no\nkey"), ValueError(""), AssertionError()])
def test_a_kernel_that_raises_is_a_run_that_failed(failure):
    @library.register("test.raises", "(n)->(n)")
    def raises(*_):
        raise failure

    with pytest.raises(RunError, match=f"'main' failed as it ran: {type(failure).__name__}"):
        run_relu("test.raises", np.zeros(2, "float32"))


def test_a_kernel_with_too_few_parameters_is_refused_before_anything_is_registered():
    wrong = "'test.few' takes (x), and its signature (n)->(n) has 2 tensors"
    with pytest.raises(ValueError, match=re.escape(wrong)):

        @library.register("test.few", "(n)->(n)")
        def few(x):
            """Take one."""

    assert "test.few" not in library.kernels()
    assert tvm.get_global_func("test.few", allow_missing=True) is None


def test_a_wrong_signature_is_refused_before_anything_is_registered():
    with pytest.raises(ValueError, match=re.escape("'(n->(n)' is not a signature")):
        library.register("test.wrong", "(n->(n)")
    assert "test.wrong" not in library.kernels()
    assert tvm.get_global_func("test.wrong", allow_missing=True) is None


@pytest.mark.parametrize("name", ["vm.builtin.shape_of", "relax.mine", "ir.mine", "runtime.mine"])
def test_the_namespaces_of_tvm_are_refused(name):
    with pytest.raises(ValueError, match="would hide a function of TVM's own: choose a name such"):
        library.register(name, "(n)->(n)")


@pytest.mark.parametrize("name", ["topi.add", "target.build.llvm", "device_api.cpu"])
def test_a_registered_function_that_is_no_kernel_is_not_replaced(name):
    with pytest.raises(ValueError, match=f"{name!r} is registered already, and not as a kernel"):
        library.register(name, "(n)->(n)")


# --- several dtypes ----------------------------------------------------------------------------


@pytest.mark.worker
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_a_kernel_can_be_of_several_dtypes(dtype):
    @library.register("test.twice", "(n)->(n)", ("float32", "float64", "int32"))
    def twice(x, out):
        np.add(x, x, out=out)

    kernel = library.kernels()["test.twice"]
    assert [str(each.inputs[0].dtype) for each in kernel.signatures] == [
        "float32",
        "float64",
        "int32",
    ]
    assert kernel.signature is kernel.signatures[0]
    assert run_relu("test.twice", np.array([1, -2], dtype)).tolist() == [2, -4]


def test_no_dtype_at_all_is_refused():
    with pytest.raises(ValueError, match=re.escape("'(n)->(n)' is for no dtype at all: give one")):
        library.register("test.none", "(n)->(n)", ())


def test_a_kernel_can_name_what_computes_the_same_in_te():
    @library.register("test.named", "(...)->(...)", definition="topi.relu")
    def named(x, out):
        np.maximum(x, 0, out=out)

    assert library.kernels()["test.named"].definition == "topi.relu"
    assert library.kernels()["env.linear"].definition == "topi.linear"


# --- what is always there ----------------------------------------------------------------------


def test_the_names_of_numpys_kernels_are_tvms_too():
    names = [op.name for op in OPERATORS if op.numpy is not None]
    assert len(set(names)) == len(names) >= 24
    for name in names:
        kernel = library.kernels()[f"numpy.{name}"]
        assert kernel.summary.endswith(".")
        assert kernel.definition in library.definitions()
        assert library.is_current(kernel.name)


def test_a_kernel_that_was_registered_over_is_not_current():
    @library.register("env.test_current", "(n)->(n)")
    def kernel(x, out):
        out[:] = x

    assert library.is_current("env.test_current")
    tvm.register_global_func("env.test_current", lambda *_: None, override=True)
    assert not library.is_current("env.test_current")
    library.register("env.test_current", "(n)->(n)")(kernel)
    assert library.is_current("env.test_current")
    assert not library.is_current("env.nowhere")


def fresh(code):
    """Return what a fresh Python prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.worker
def test_without_pytorch_there_are_the_other_kernels():
    names = fresh(
        "import sys; sys.modules['torch'] = None\n"  # how Python says: there is none
        "import irviz; print(*irviz.library.kernels())"
    )
    assert names[:2] == ["env.linear", "env.relu"]
    assert {"numpy.linear", "numpy.relu"} <= set(names)
    assert not [name for name in names if name.startswith("torch.")]


@pytest.mark.worker
def test_kernels_of_pytorch_load_it_when_they_are_called(tmp_path):
    stand_in = tmp_path / "torch.py"
    stand_in.write_text("print('loaded')\n")
    said = fresh(
        "import sys; sys.modules['torch'] = None\n"
        "import tvm; del sys.modules['torch']\n"  # TVM itself loads it
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import irviz\n"
        "relu = irviz.library.kernels()['torch.relu'].function\n"
        "print('imported')\n"
        "try:\n    relu(1, 2)\nexcept AttributeError:\n    print('called')"
    )
    assert said == ["imported", "loaded", "called"]


@pytest.mark.torch
def test_kernels_of_pytorch_write_into_the_same_memory():
    x = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
    assert library.kernels()["torch.relu"].is_framework
    np.testing.assert_array_equal(run_relu("torch.relu", x), np.maximum(x, 0))
