"""Each of the chapter's ways of making a module computes what PyTorch computes."""

import numpy as np
import pytest
import tvm
from tvm import relax, tirx
from tvm_ffi import structural_equal

from irviz.course import mm_relu_emit_te, te_functions
from irviz.course.digits import digits
from irviz.course.from_fx import from_fx, operator_modules, topi_modules
from irviz.course.from_fx import te_functions as te_rules
from irviz.course.torch_mlp import matmul_relu_model, mlp_model

torch = pytest.importorskip("torch", reason="this needs PyTorch: pip install 'irviz[torch]'")

pytestmark = pytest.mark.torch

SIZE = 16
WAYS = {"TOPI": topi_modules, "operators": operator_modules}


@pytest.fixture(scope="module")
def matrices():
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(SIZE, SIZE, generator=generator) for _ in range(2)]


@pytest.fixture(scope="module")
def mlp():
    return mlp_model()


def tensor(x):
    return tvm.runtime.tensor(x.numpy())


def called(function, inputs, *shapes):
    """Build a PrimFunc, call it with arrays and room for these shapes, and return what is there."""
    made = [tvm.runtime.empty(shape, "float32") for shape in shapes]
    tvm.compile(function, target="llvm")(*map(tensor, inputs), *made)
    return [torch.from_dlpack(one) for one in made]


def run(module, *inputs):
    vm = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    return torch.from_dlpack(vm["main"](*map(tensor, inputs)))


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def rooms(function):
    """Return the buffers that a PrimFunc makes for itself."""
    return [buffer.name for buffer in function.body.block.alloc_buffers]


# --- tensor expressions ------------------------------------------------------------------------


def test_a_product_is_that_of_pytorch(matrices):
    a, b = matrices
    (found,) = called(te_functions.matmul(SIZE), matrices, (SIZE, SIZE))
    close(found, a @ b)


@pytest.mark.parametrize("shape", [(10,), (10, 20), (2, 3, 4)])
def test_one_expression_of_relu_serves_all_shapes(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    (found,) = called(te_functions.relu(*shape), [x], shape)
    close(found, torch.relu(x))
    assert found.min() == 0


def test_the_fused_function_has_a_buffer_for_the_product(matrices):
    a, b = matrices
    function = te_functions.matmul_relu(SIZE)
    assert len(function.params) == 3
    assert rooms(function) == ["matmul"]
    (found,) = called(function, matrices, (SIZE, SIZE))
    close(found, torch.relu(a @ b))


def test_a_product_that_is_passed_is_left_with_the_caller(matrices):
    a, b = matrices
    function = te_functions.matmul_relu_passed(SIZE)
    assert len(function.params) == 4
    assert rooms(function) == []
    product, found = called(function, matrices, (SIZE, SIZE), (SIZE, SIZE))
    close(product, a @ b)
    close(found, torch.relu(a @ b))


def test_matrices_that_do_not_fit_have_no_product():
    shapes = [tvm.te.placeholder(shape) for shape in ((2, 3), (4, 2))]
    with pytest.raises(ValueError, match="the inner sizes must be equal"):
        te_functions.te_matmul(*shapes)


# --- a BlockBuilder ----------------------------------------------------------------------------


def test_a_built_module_calls_a_prim_func_for_each_expression(matrices):
    a, b = matrices
    module = mm_relu_emit_te.built(SIZE)
    assert relax.analysis.check_well_formed(module)
    kinds = {gvar.name_hint: type(function) for gvar, function in module.functions.items()}
    assert kinds == {
        "main": relax.Function,
        "te_matmul": tirx.PrimFunc,
        "te_relu": tirx.PrimFunc,
    }
    close(run(module, a, b), torch.relu(a @ b))


def test_parameters_may_be_given_first_or_last():
    assert structural_equal(
        mm_relu_emit_te.built(SIZE), mm_relu_emit_te.built(SIZE, parameters_first=True), True
    )


# --- the hand-written importer -----------------------------------------------------------------


def test_functions_become_the_chapters_own_expressions():
    model = matmul_relu_model(SIZE)
    module = from_fx(torch.fx.symbolic_trace(model), [(1, SIZE)], te_rules(), {})
    assert relax.analysis.check_well_formed(module)
    x = torch.randn(1, SIZE, generator=torch.Generator().manual_seed(2))
    close(run(module, x), model(x).detach())


@pytest.mark.parametrize("way", WAYS)
def test_the_mlp_reads_digits_as_pytorch_does(mlp, way):
    module = from_fx(torch.fx.symbolic_trace(mlp), [(1, 784)], {}, WAYS[way]())
    assert relax.analysis.check_well_formed(module)
    shipped = digits()
    for image in torch.from_numpy(shipped.images[:5]):
        expected = mlp(image.reshape(1, 784)).detach()
        found = run(module, image.reshape(1, 784))
        close(found, expected)
        assert found.argmax() == expected.argmax()


def test_topi_gives_prim_funcs_and_operators_give_none(mlp):
    counts = {
        way: sum(isinstance(one, tirx.PrimFunc) for one in module.functions.values())
        for way, module in (
            (way, from_fx(torch.fx.symbolic_trace(mlp), [(1, 784)], {}, rules()))
            for way, rules in WAYS.items()
        )
    }
    assert counts == {"TOPI": 5, "operators": 0}


@pytest.mark.parametrize("way", WAYS)
def test_a_layer_without_a_bias_needs_none(way):
    model = torch.nn.Sequential(torch.nn.Linear(4, 3, bias=False))
    module = from_fx(torch.fx.symbolic_trace(model), [(1, 4)], {}, WAYS[way]())
    close(run(module, torch.ones(1, 4)), model(torch.ones(1, 4)).detach())


def test_a_node_without_a_rule_is_named():
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Sigmoid()))
    with pytest.raises(ValueError, match=r"no rule for .*call_module"):
        from_fx(traced, [(1, 4)], {}, topi_modules())


def test_the_shipped_weights_are_the_models(mlp):
    image = digits().images[:1]
    assert mlp(torch.from_numpy(image)).shape == (1, 10)
    assert np.argmax(mlp(torch.from_numpy(image)).detach().numpy()) == digits().labels[0]
