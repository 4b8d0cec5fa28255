"""The chapter's programs compute what NumPy and PyTorch compute."""

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

import irviz
from irviz.course import te_functions
from irviz.course.digits import digits
from irviz.course.torch_mlp import mlp_model

SIZE = 16
A, B = np.random.default_rng(0).standard_normal((2, SIZE, SIZE), np.float32)
INPUTS = {"A": A, "B": B}


@pytest.mark.build
@pytest.mark.worker
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (te_functions.matmul, A @ B),
        (te_functions.matmul_relu, np.maximum(A @ B, 0)),
        (te_functions.matmul_relu_module, np.maximum(A @ B, 0)),
    ],
)
def test_a_program_computes_what_numpy_does(program, expected):
    (found,) = irviz.load(program(SIZE), inputs=INPUTS).run().outputs
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-5)


def test_matrices_that_do_not_fit_have_no_product():
    shapes = [tvm.te.placeholder(shape) for shape in ((2, 3), (4, 2))]
    with pytest.raises(ValueError, match="the inner sizes must be equal"):
        te_functions.te_matmul(*shapes)


def test_a_built_module_calls_a_prim_func_for_each_expression():
    module = te_functions.matmul_relu_module(SIZE)
    kinds = {gvar.name_hint: type(function) for gvar, function in module.functions.items()}
    assert kinds == {
        "main": relax.Function,
        "te_matmul": tirx.PrimFunc,
        "te_relu": tirx.PrimFunc,
    }


@pytest.mark.torch
def test_the_shipped_weights_are_the_models():
    torch = pytest.importorskip("torch", reason="this needs PyTorch: pip install 'irviz[torch]'")
    scores = mlp_model()(torch.from_numpy(digits().images[:1]))
    assert scores.shape == (1, 10)
    assert np.argmax(scores.detach().numpy()) == digits().labels[0]
