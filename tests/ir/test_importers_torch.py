"""Modules imported from `torch.export` are read as the oracle reads them."""

import pytest

from irviz.model.graph.graph import NodeKind

torch = pytest.importorskip("torch", reason="this needs PyTorch: pip install 'irviz[torch]'")
# which raises an ImportError where torch is missing
from tvm.relax.frontend.torch import from_exported_program, from_fx  # noqa: E402

nn = torch.nn

pytestmark = [
    pytest.mark.torch,
    # of torch's own code, which TVM's importer runs
    pytest.mark.filterwarnings(
        r"ignore:`isinstance\(treespec, LeafSpec\)` is deprecated:FutureWarning"
    ),
    # the recurrent layers keep their weights in a list beside the parameters
    pytest.mark.filterwarnings(r"ignore:The tensor attributes? self\.\S+_flat_weights:UserWarning"),
]


class Recurrent(nn.Module):
    """A recurrent layer, which gives its states beside its outputs."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer(4, 5, batch_first=True)

    def forward(self, x):
        return self.layer(x)


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)


class Sizes(nn.Module):
    """Sizes that depend on one which is not known."""

    def forward(self, x):
        return torch.relu(x.reshape(x.shape[0] * 2, -1)), x.new_zeros(x.shape[0], 3)


class Choice(nn.Module):
    """Control flow that depends on the values."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))


class Many(nn.Module):
    """Outputs in dictionaries and tuples."""

    def forward(self, x, y):
        return {"sum": x + y, "all": (x.max(dim=1), torch.topk(y, 2)), "one": x[0, 1:]}


class Counting(nn.Module):
    """A buffer that a call changes, and a tensor that is no parameter."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.table = torch.ones(4)

    def forward(self, x):
        self.seen.add_(x.sum(0))
        return x + self.seen + self.table


def perceptron():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 2),
    )


def transformer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def embedding():
    return nn.Sequential(nn.Embedding(10, 4), nn.LayerNorm(4), nn.GELU(), nn.Softmax(-1))


WORDS = torch.tensor([[1, 2, 3], [4, 5, 6]])
MODELS = {
    "perceptron": (perceptron, (torch.ones(2, 4),)),
    "convolutional": (convolutional, (torch.ones(1, 1, 8, 8),)),
    "transformer": (transformer, (torch.ones(1, 3, 8),)),
    "LSTM": (lambda: Recurrent(nn.LSTM), (torch.ones(1, 3, 4),)),
    "GRU": (lambda: Recurrent(nn.GRU), (torch.ones(1, 3, 4),)),
    "RNN": (lambda: Recurrent(nn.RNN), (torch.ones(1, 3, 4),)),
    "attention": (SelfAttention, (torch.ones(1, 3, 8),)),
    "embedding": (embedding, (WORDS,)),
    "choice": (Choice, (torch.ones(2, 4),)),
    "many outputs": (Many, (torch.ones(2, 4), torch.ones(2, 4))),
    "buffer": (Counting, (torch.ones(2, 4),)),
}


def imported(model, inputs, sizes=None, *, keep=False):
    program = torch.export.export(model.eval(), inputs, dynamic_shapes=sizes)
    return from_exported_program(program, keep_params_as_input=keep, unwrap_unit_return_tuple=keep)


@pytest.mark.parametrize("keep", [False, True], ids=["constants", "parameters"])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_read(check, name, keep):
    make, inputs = MODELS[name]
    check(imported(make(), inputs, keep=keep))


@pytest.mark.parametrize("model", [perceptron, Sizes], ids=["perceptron", "sizes"])
def test_models_of_unknown_sizes_are_read(check, model):
    batch = torch.export.Dim("batch", min=2, max=64)
    graph = check(imported(model(), (torch.ones(4, 4),), ({0: batch},)))["main"]
    (given,) = (node for node in graph.nodes if node.kind is NodeKind.PARAM)
    assert not str(given.type_label).startswith("Tensor[(4,")


@pytest.mark.parametrize("name", ["perceptron", "convolutional", "embedding"])
def test_traced_models_are_read(check, name):
    make, inputs = MODELS[name]
    dtype = str(inputs[0].dtype).removeprefix("torch.")
    traced = torch.fx.symbolic_trace(make().eval())
    check(from_fx(traced, [(list(inputs[0].shape), dtype)]))


def test_a_model_is_read_after_lowering(check, constructs):
    make, inputs = MODELS["transformer"]
    mod = imported(make(), inputs, keep=True)
    for pipeline in ("fused", "planned", "lowered"):
        check(constructs.PIPELINES[pipeline](mod))


def test_a_weight_is_a_constant_or_a_parameter(check):
    make, inputs = MODELS["perceptron"]
    bound = check(imported(make(), inputs))["main"]
    assert [node.kind for node in bound.nodes].count(NodeKind.CONSTANT) == 4
    kept = check(imported(make(), inputs, keep=True))["main"]
    assert [node.kind for node in kept.nodes].count(NodeKind.PARAM) == 5


def test_weights_that_a_function_keeps_aside_are_not_written_out(check):
    make, inputs = MODELS["perceptron"]
    attributes = dict(check(imported(make(), inputs, keep=True))["main"].attributes)
    assert attributes["num_input"] == "1"
    assert len(attributes["params"]) < 200


def test_control_flow_is_an_if_that_calls_functions(check):
    make, inputs = MODELS["choice"]
    graphs = check(imported(make(), inputs))
    assert len(graphs) == 3
    (choice,) = (node for node in graphs["main"].nodes if node.kind is NodeKind.IF)
    called = [n.callee for n in graphs["main"].nodes if n.kind is NodeKind.CALL_FUNCTION]
    assert sorted(called) == sorted(set(graphs) - {"main"})
    assert choice.is_pure
    assert len(graphs["main"].entering[choice.id]) == 3
