"""Modules that were not made for irviz can be read, printed and drawn."""

import pytest
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.testing import attention, matmul
from tvm.relax.testing import nn as testing_nn

from irviz.ir.module_functions import relax_functions
from irviz.model.graph.graph import NodeKind
from irviz.session.session import Session
from irviz.transforms.passes.pass_call import named_pass


class Classifier(nn.Module):
    """Layers of several sorts, an embedding and a cache."""

    def __init__(self):
        self.first = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)
        self.second = nn.Linear(16, 4, bias=False)
        self.table = nn.Embedding(10, 8)
        self.cache = nn.KVCache(8, [4])

    def forward(self, x: nn.Tensor):
        halves = nn.op.split(self.norm(nn.op.relu(self.first(x))), 2, axis=1)
        scores = self.second(nn.op.concat(halves, dim=1))
        return scores, nn.op.softmax(scores)

    def embed(self, tokens: nn.Tensor):
        return self.table(tokens)


class Attention(nn.Module):
    """One head of attention, of symbolic length."""

    def __init__(self):
        self.qkv, self.out, self.norm = nn.Linear(8, 24), nn.Linear(8, 8), nn.RMSNorm(8, -1)

    def forward(self, x: nn.Tensor):
        q, k, v = nn.op.split(self.qkv(self.norm(x)), 3, axis=-1)
        weights = nn.op.softmax(nn.op.matmul(q, nn.op.permute_dims(k, [0, 2, 1])) / 8**0.5)
        return nn.op.add(x, self.out(nn.op.matmul(weights, v)))


def classifier():
    spec = {
        "forward": {"x": nn.spec.Tensor(("batch", 8), "float32")},
        "embed": {"tokens": nn.spec.Tensor(("batch",), "int32")},
    }
    return Classifier().export_tvm(spec, debug=True)[0]


def stacked_attention():
    layers = nn.ModuleList([Attention() for _ in range(8)])
    return layers.export_tvm({"forward": {"x": nn.spec.Tensor((1, "n", 8), "float32")}})[0]


def linear_of_testing():
    builder = relax.BlockBuilder()
    with builder.function("main"):
        model = testing_nn.Sequential(testing_nn.Linear(8, 4), testing_nn.ReLU())
        x = testing_nn.Placeholder((2, 8), name="x")
        with builder.dataflow():
            out = builder.emit_output(model(x))
        builder.emit_func_output(out, params=[x, *model.parameters()])
    return builder.get()


def attention_of_testing():
    shape = (2, 8, 2, 4)
    return attention.get_relax_attention_module(
        shape, shape, shape, dtype="float16", bias_shape=(2, 2, 8, 8), causal_mask="TopLeft"
    )


def matmul_of_testing():
    return matmul.get_relax_matmul_module(
        (4, 8), (8, 4), "float32", bias_shape=(4,), activation=relax.op.nn.relu
    )


FOREIGN = [
    classifier,
    stacked_attention,
    linear_of_testing,
    attention_of_testing,
    matmul_of_testing,
]


@pytest.mark.parametrize("make", FOREIGN, ids=lambda make: make.__name__)
@pytest.mark.parametrize("then", ["", "LegalizeOps", "FuseOps", "CallTIRRewrite", "VMShapeLower"])
def test_a_module_of_another_maker_is_read_printed_and_drawn(make, then):
    mod = make()
    if then:
        mod = named_pass("LegalizeOps")(mod)
        mod = named_pass("AnnotateTIROpPattern")(mod)
        mod = named_pass(then)(mod)
    for name, function in relax_functions(mod).items():
        session = Session(mod, function=name)
        graph = session.graph()
        bound = sum(len(block.bindings) for block in function.body.blocks)
        constants = sum(node.kind is NodeKind.CONSTANT for node in graph.nodes)
        assert len(graph.nodes) == len(function.params) + bound + constants
        assert session.script().functions[name] > 0
        picture = session.view().graph
        for direction in ("up", "down"):
            drawn = session.draw(direction=direction).svg
            assert drawn.count('<g class="edge') == len(picture.edges) + len(picture.outputs)
            assert drawn.count('<g class="node') == len(picture.nodes) + 1
