"""Kernels are registered with a signature, run on the VM's own memory, and can be replaced."""

import re

import numpy as np
import pytest
import tvm
from tvm import relax

from irviz.course.mlp import MyModuleStatic
from irviz.runtime.run import RunError, run
from irviz.transforms import library
from irviz.transforms.swap import Swap, candidates


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
    return run(builder.get(), inputs={"x": x}).outputs[0][0]


def test_the_library_has_the_courses_kernels():
    kernels = library.kernels()
    assert str(kernels["env.linear"].signature) == "(b,m),(n,m),(n)->(b,n)"
    assert str(kernels["env.relu"].signature) == "(...)->(...)"
    assert kernels["env.relu"].summary == "Compute max(x, 0), by NumPy."
    with pytest.raises(TypeError):
        kernels["env.other"] = kernels["env.relu"]


def test_the_courses_kernels_compute_what_they_say():
    x = np.array([[-1.0, 2.0]], "float32")
    assert run_relu("env.relu", x).tolist() == [[0, 2]]


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


@pytest.mark.parametrize("dtype", ["bool", "float16", "int64"])
def test_a_kernel_can_be_of_another_dtype(dtype):
    @library.register(f"test.copy_{dtype}", "(n)->(n)", dtype=dtype)
    def copy(x, out):
        out[:] = x

    x = np.array([0, 1], dtype)
    assert run_relu(f"test.copy_{dtype}", x).tobytes() == x.tobytes()
    assert library.kernels()[f"test.copy_{dtype}"].signature.inputs[0].dtype == dtype


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
    assert candidates(MyModuleStatic, "main", "lv1")["test.again"] == ""


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
    with pytest.raises(ValueError, match=re.escape("'(n->(n)' is no signature")):
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
