"""Modules from `relax.frontend.nn` and `relax.testing` are read as the oracle reads them."""

import inspect

import numpy as np
import pytest
from tvm import relax, tirx
from tvm.relax import testing
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op, spec
from tvm.relax.frontend.nn.modules import Attention, Identity, TimestepEmbedding, Timesteps
from tvm.relax.testing import nn as testing_nn

from irviz.model.graph.graph import NodeKind, Resolution


def tensor(*shape, dtype="float32"):
    return spec.Tensor(list(shape), dtype)


def exported(module, *inputs, debug=False):
    """Return the IRModule of a module whose forward takes these."""
    names = list(inspect.signature(module.forward).parameters)
    taken = dict(zip(names, inputs, strict=False))
    return module.export_tvm(spec={"forward": taken}, debug=debug)[0]


# --- modules -----------------------------------------------------------------------------------


class Stack(nn.Module):
    """Layers in a ModuleList and a ModuleDict, printed between."""

    def __init__(self):
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.ends = nn.ModuleDict({"norm": nn.LayerNorm(4), "last": nn.Linear(4, 2)})

    def forward(self, x: nn.Tensor):
        for layer in self.layers:
            x = op.relu(layer(x))
        return self.ends["last"](self.ends["norm"](x))


class Cached(nn.Module):
    """A cache that grows, and is seen whole."""

    def __init__(self):
        self.cache = nn.KVCache(4, [2, 3])

    def forward(self, x: nn.Tensor, total: tirx.Var):
        self.cache.append(x)
        return self.cache.view(total)


class Talking(nn.Module):
    """A module that prints, which is an effect with a state of its own."""

    def forward(self, x: nn.Tensor):
        op.print_(x)
        return op.relu(x)


def subroutines():
    """Return a module whose layers each become a function of their own."""

    class Layer(nn.Module):  # TVM remembers its function by the class: a new one each time
        define_subroutine = True

        def __init__(self):
            self.weight = nn.Parameter((4, 4), "float32")

        def forward(self, x: nn.Tensor):
            return op.relu(op.matmul(x, self.weight))

    class Layers(nn.Module):
        def __init__(self):
            self.first, self.second = Layer(), Layer()

        def forward(self, x: nn.Tensor):
            return self.second(self.first(x))

    return exported(Layers(), tensor(2, 4))


MODULES = {
    "Linear": lambda: exported(nn.Linear(4, 3), tensor(2, 4)),
    "Linear of unknown size": lambda: exported(nn.Linear("m", 3, bias=False), tensor("n", "m")),
    "Linear of two dtypes": lambda: exported(nn.Linear(4, 3, out_dtype="float16"), tensor("n", 4)),
    "Conv1D": lambda: exported(nn.Conv1D(3, 4, 3, padding=1), tensor(1, 3, 8)),
    "Conv2D": lambda: exported(nn.Conv2D(3, 4, 3), tensor(1, 3, 8, 8)),
    "Conv3D": lambda: exported(nn.Conv3D(3, 4, [2, 2, 2]), tensor(1, 3, 4, 4, 4)),
    "ConvTranspose1D": lambda: exported(nn.ConvTranspose1D(3, 4, 3), tensor(1, 3, 8)),
    "LayerNorm": lambda: exported(nn.LayerNorm(8), tensor(2, 8)),
    "LayerNorm without weights": lambda: exported(
        nn.LayerNorm(8, elementwise_affine=False), tensor(2, 8)
    ),
    "RMSNorm": lambda: exported(nn.RMSNorm(8, -1), tensor(2, 8)),
    "GroupNorm": lambda: exported(nn.GroupNorm(2, 8), tensor(2, 8, 4)),
    "Embedding": lambda: exported(nn.Embedding(10, 4), tensor(2, 3, dtype="int32")),
    "TimestepEmbedding": lambda: exported(TimestepEmbedding(8, 16), tensor(1, 8)),
    "Timesteps": lambda: exported(Timesteps(8), tensor(2)),
    "Attention": lambda: exported(Attention(8, heads=2, dim_head=4), tensor(1, 3, 8)),
    "Attention to another": lambda: exported(
        Attention(8, cross_attention_dim=6, heads=2, dim_head=4, norm_num_groups=2),
        tensor(1, 3, 8),
        tensor(1, 5, 6),
    ),
    "ReLU": lambda: exported(nn.ReLU(), tensor(2)),
    "SiLU": lambda: exported(nn.SiLU(), tensor(2)),
    "GELU": lambda: exported(nn.GELU(), tensor(2)),
    "Identity": lambda: exported(Identity(), tensor(2)),
    "stack": lambda: exported(Stack(), tensor("batch", 4)),
    "cache": lambda: exported(Cached(), tensor(1, 2, 3), int),
    "cache with effects": lambda: exported(Cached(), tensor(1, 2, 3), int, debug=True),
    "printing": lambda: exported(Talking(), tensor(2), debug=True),
    "subroutines": subroutines,
}


@pytest.mark.parametrize("name", MODULES)
def test_every_nn_module_is_read(check, name):
    check(MODULES[name]())


def test_every_nn_module_there_is_has_its_turn():
    named = {name.partition(" ")[0] for name in MODULES} | {"IOEffect", "KVCache"}
    there = {
        name
        for name, each in vars(nn.modules).items()
        if inspect.isclass(each) and each.__module__ == nn.modules.__name__
    }
    assert there <= named


def test_a_cache_is_taken_and_given_back(check, constructs):
    graphs = check(MODULES["cache"]())
    assert set(graphs) == {"_initialize_effect", "forward"}
    forward = constructs.DescribedGraph(graphs["forward"])
    assert forward.all() == {
        "lv2": (
            "call_packed `vm.builtin.attention_kv_cache_append` by relax.call_inplace_packed"
            " -> library: cache 0, x 1"
        ),
        "lv3": (
            "call_packed `vm.builtin.attention_kv_cache_view` by relax.call_pure_packed"
            " -> library: lv2 0"
        ),
        "gv1": "tuple: lv3 0, lv2 1.0",
    }


def test_subroutines_are_functions_that_are_called(check):
    graphs = check(subroutines())
    forward = graphs["forward"]
    called = [node for node in forward.nodes if node.kind is NodeKind.CALL_FUNCTION]
    assert [node.callee for node in called] == ["layer", "layer"]
    assert {node.resolution for node in called} == {Resolution.FUNCTION}


# --- relax.testing -----------------------------------------------------------------------------


def perceptron():
    """Return the module of a network made of relax.testing.nn's layers."""
    model = testing_nn.Sequential(
        testing_nn.Linear(4, 8), testing_nn.ReLU(), testing_nn.Linear(8, 2), testing_nn.LogSoftmax()
    )
    builder = relax.BlockBuilder()
    with builder.function("main"):
        given = testing_nn.Placeholder([2, 4], name="x")
        with builder.dataflow():
            output = builder.emit_output(model(given))
        builder.emit_func_output(output, params=[given, *model.parameters()])
    return builder.get()


def checkpointed():
    """Return a module that says where values are to be computed again."""
    x = relax.Var("x", relax.TensorType([2, 4], "float32"))
    builder = relax.BlockBuilder()
    layers = [lambda y: builder.emit(relax.op.nn.relu(y)), lambda y: builder.emit(relax.op.exp(y))]
    with builder.function("main", [x]):
        with builder.dataflow():
            given = testing_nn.emit_checkpoint_sequential(layers * 2, 2, x)
            output = builder.emit_output(given)
        builder.emit_func_output(output)
    return builder.get()


def stacked(operator, **more):
    qkv = np.zeros((2, 3, 3 * 2 * 4), "float16")
    return testing.get_relax_stacked_attention_module(qkv, 2, 3, 2, 4, 4, operator, **more)


TESTING = {
    "matmul": lambda: testing.get_relax_matmul_module((2, 4), (4, 3), "float16"),
    "matmul and all after it": lambda: testing.get_relax_matmul_module(
        (4, 4),
        (4, 4),
        "float32",
        transposed_y=True,
        bias_shape=(4,),
        activation=relax.op.nn.relu,
        residual_bin_op=relax.op.add,
        residual_activation=relax.op.nn.gelu,
    ),
    "attention": lambda: testing.get_relax_attention_module(
        (1, 3, 2, 4), (1, 3, 2, 4), (1, 3, 2, 4), dtype="float16", bias_shape=(1, 2, 3, 3)
    ),
    "attention to what came before": lambda: testing.get_relax_attention_module(
        (1, 3, 2, 4),
        (1, 3, 2, 4),
        (1, 3, 2, 4),
        dtype="float16",
        qk_scale=0.5,
        causal_mask="TopLeft",
        window_size=2,
    ),
    "attention of one tensor that is split": lambda: stacked("split"),
    "attention of one tensor that is sliced": lambda: stacked("strided_slice", qk_scale=0.5),
    "perceptron": perceptron,
    "checkpointed": checkpointed,
}


@pytest.mark.parametrize("name", TESTING)
def test_every_testing_module_is_read(check, name):
    check(TESTING[name]())
