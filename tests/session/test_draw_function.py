"""Modules that were not made for irviz can be read, printed and drawn."""

import json

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.testing import attention, matmul
from tvm.relax.testing import nn as testing_nn

import irviz
from irviz.course.mlp import MyModule
from irviz.errors import PrintError
from irviz.ir.module_functions import relax_functions
from irviz.model.diff.aligned_stage_graphs import side_graphs
from irviz.model.diff.union_graph import union_graph
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import NodeKind
from irviz.session.session import Session
from irviz.session.shown_function import ViewState
from irviz.transforms.passes.pass_transform import named_pass
from irviz.view.graph.node_labels import lines


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


class Linears(nn.Module):
    """Linear layers one after the other; the last one has the weight of the first too."""

    def __init__(self, rows=6):
        self.first, self.second, self.third = (nn.Linear(8, 8) for _ in range(3))
        self.last = nn.Linear(8, rows, bias=False)

    def forward(self, x: nn.Tensor):
        x = nn.op.matmul(self.third(self.second(self.first(x))), self.first.weight)
        return self.last(x)


def linears(rows=6):
    spec = {"forward": {"x": nn.spec.Tensor((2, 8), "float32")}}
    return Linears(rows).export_tvm(spec)[0]


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


def opened(session):
    """Return the view of a function with all of its layers expanded."""
    view, choices = session.view(), Expansion()
    while closed := [one.id for one in view.graph.nodes if one.kind is NodeKind.GROUP]:
        for one in closed:
            choices = choices.open(one)
        view = session.view(state=ViewState(choices))
    return view, choices


def weight_lines(node):
    return lines(node)[-len(node.weights) :] if node.weights else []


def lines_of(graph):
    return [line for node in graph.nodes for line in weight_lines(node)]


def test_a_weight_is_a_line_in_the_operator_that_alone_uses_it():
    session = Session(linears(), function="forward")
    view, choices = opened(session)
    params = [node.id for node in view.graph.nodes if node.kind is NodeKind.PARAM]
    assert params == ["x", "first.weight"]  # which two operators use
    assert sorted(lines_of(view.graph)) == 3 * ["bias (8,)"] + [
        "weight (6, 8)",
        "weight (8, 8)",
        "weight (8, 8)",
    ]
    assert ">weight (6, 8)<" in view.figure().svg
    chosen = session.view(state=ViewState(choices.open("last.weight")))
    assert chosen.graph["last.weight"].kind is NodeKind.PARAM
    assert "weight (6, 8)" not in lines_of(chosen.graph)


def scaled_by_constants(count):
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 8), "float32"))
    with builder.function("main", [x]):
        value = x
        for number in range(count):
            value = builder.emit(relax.op.add(value, relax.const(np.full(8, number, "float32"))))
        builder.emit_func_output(value)
    return builder.get()


def test_many_constants_are_weights_and_so_lines_in_the_operators_that_use_them():
    view, choices = opened(Session(scaled_by_constants(40)))
    assert set(lines_of(view.graph)) == {"const (8,)"}
    assert all(node.kind is not NodeKind.CONSTANT for node in view.graph.nodes)
    constant = next(node.weights[0].id for node in view.graph.nodes if node.weights)
    chosen = Session(scaled_by_constants(40)).view(state=ViewState(choices.open(constant)))
    assert chosen.graph[constant].kind is NodeKind.CONSTANT


def test_a_few_constants_are_nodes():
    view, _ = opened(Session(scaled_by_constants(4)))
    assert not lines_of(view.graph)
    assert sum(node.kind is NodeKind.CONSTANT for node in view.graph.nodes) == 4


def test_a_weight_that_differs_is_drawn_on_both_sides():
    def drawn(after):
        (found,) = irviz.diff(linears(), after, "forward").functions
        union = union_graph(found.graphs, (found.nodes,))
        layers = Expansion(opened=("layer:first", "layer:second", "layer:third", "layer:last"))
        return [set(side.graph.index) for side in side_graphs(union, layers).sides]

    for before, after in (drawn(linears(rows=5)), drawn(linears())):
        assert before == after
        assert "add" in before
        assert "second.weight" not in before
    assert "last.weight" in drawn(linears(rows=5))[0]
    assert "last.weight" not in drawn(linears())[0]


def test_the_weights_of_a_call_are_arguments_once_it_is_expanded():
    mod = linears()
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps"):
        mod = named_pass(name)(mod)
    session = Session(mod, function="forward")
    view, choices = opened(session)
    call = next(node for node in view.graph.nodes if node.kind is NodeKind.CALL_FUNCTION)
    assert call.weights
    inside = session.view(state=ViewState(choices.open(call.id)))
    assert not inside.graph[call.id].weights
    assert len(inside.graph.nodes) > len(view.graph.nodes) + len(call.weights)


def test_a_function_that_tvm_cannot_print_is_drawn_and_compared():
    tree = json.loads(tvm.ir.save_json(MyModule))
    nodes = tree["nodes"]
    variables = [node["data"] for node in nodes if node["type"] == "ir.Var"]
    data = next(one for one in variables if nodes[one["ty"]]["type"] == "tirx.BufferType")
    data["ty"] = next(i for i, node in enumerate(nodes) if node["type"] == "ir.PrimType")
    module = tvm.ir.load_json(json.dumps(tree))
    session = Session(module, function="relu0")
    with pytest.raises(PrintError, match="TVM does not print this module: Cannot treat"):
        session.script()
    assert '"node' in session.draw().svg
    difference = irviz.diff(MyModule, module, function="relu0")
    assert "buffer X: shape: (1, n) → none" in str(difference)
