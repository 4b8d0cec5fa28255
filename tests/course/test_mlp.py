"""Every module of the chapter computes the same MLP as NumPy does."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm_ffi import structural_equal
from tvm_ffi.registry import remove_global_func

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES

IMAGES = 20
KERNELS = ("env.linear", "env.relu")


@pytest.fixture
def library():
    """Register kernels under the names the lecture gives its library, for one test."""
    before = {name: tvm.get_global_func(name, allow_missing=True) for name in KERNELS}

    def linear(x, w, b, out):
        result = np.from_dlpack(out)
        np.matmul(np.from_dlpack(x), np.from_dlpack(w).T, out=result)
        np.add(result, np.from_dlpack(b), out=result)

    def relu(x, out):
        np.maximum(np.from_dlpack(x), 0, out=np.from_dlpack(out))

    tvm.register_global_func("env.linear", linear, override=True)
    tvm.register_global_func("env.relu", relu, override=True)
    yield
    for name, function in before.items():
        if function is None:
            remove_global_func(name)
        else:
            tvm.register_global_func(name, function, override=True)


def numpy_mlp(x, w0, b0, w1, b1):
    return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1


@pytest.mark.build
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", MODULES)
def test_a_module_reads_digits_as_numpy_does(name):
    """Built and run on the VM, each image gets NumPy's ten scores and NumPy's digit."""
    params, images = mlp_params(), digits().images[:IMAGES]
    vm = relax.VirtualMachine(tvm.compile(MODULES[name], target="llvm"), tvm.cpu())
    weights = [tvm.runtime.tensor(params[key]) for key in ("w0", "b0", "w1", "b1")]
    for image in images:
        x = image.reshape(1, 784)
        scores = vm["main"](tvm.runtime.tensor(x), *weights).numpy()
        expected = numpy_mlp(x, **params)
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
        assert scores.argmax() == expected.argmax()


@pytest.mark.worker
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", MODULES)
def test_a_module_takes_its_parameters_by_name(name):
    """The shipped parameters bind to ``main``, which then wants only the image."""
    params, shipped = mlp_params(), digits()
    bound = relax.transform.BindParams(
        "main", {key: tvm.runtime.tensor(array) for key, array in params.items()}
    )(MODULES[name])
    assert [param.name for param in bound["main"].params] == ["x"]
    vm = relax.VirtualMachine(tvm.compile(bound, target="llvm"), tvm.cpu())
    scores = vm["main"](tvm.runtime.tensor(shipped.images[:1])).numpy()
    assert scores.argmax() == shipped.labels[0]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_well_formed(name):
    """TVM's own checks of a module pass before any pass has touched it."""
    assert relax.analysis.check_well_formed(MODULES[name])


@pytest.mark.parametrize("name", MODULES)
def test_a_module_survives_its_own_script(name):
    """The printed text reads back as the same module."""
    text = MODULES[name].script()
    assert structural_equal(tvm.script.from_source(text), MODULES[name])


def test_two_blocks_are_two_dataflow_blocks():
    """The chapter's example of two blocks has them, where the others have one."""
    dataflow_blocks = {
        name: sum(isinstance(block, relax.DataflowBlock) for block in module["main"].body.blocks)
        for name, module in MODULES.items()
    }
    assert dataflow_blocks.pop("MyModuleTwoBlocks") == 2
    assert set(dataflow_blocks.values()) == {1}


def test_modules_hold_the_functions_the_chapter_gives_them():
    """PrimFuncs are where the chapter writes them, and nowhere else."""
    assert {
        name: {var.name_hint for var in module.get_global_vars()} - {"main"}
        for name, module in MODULES.items()
    } == {
        "MyModule": {"relu0", "linear0"},
        "MyModuleStatic": {"relu0", "linear0", "linear1"},
        "MyModuleTwoBlocks": {"relu0", "linear0"},
        "MyModuleWithExternCall": set(),
        "MyModuleMixture": {"linear0"},
        "MyModuleHighLevel": set(),
    }
