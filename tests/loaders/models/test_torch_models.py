"""PyTorch models open with their weights, compute what PyTorch computes, and run nothing."""

import dataclasses
import inspect
import io
import json
import logging
import pickle
import re
import warnings
import zipfile

import numpy as np
import pytest
from tvm import tirx

import irviz
from irviz.errors import LoadError, RunError
from irviz.loaders.file_limits import FileError
from irviz.loaders.load import load, load_content
from irviz.loaders.models import pt2_models, torch_models
from irviz.loaders.models.imported_layers import source_place
from irviz.loaders.models.pt2_models import plain_archive
from irviz.view.graph.node_labels import layers_label

torch = pytest.importorskip("torch", reason="this needs PyTorch: pip install 'irviz[torch]'")
nn = torch.nn

# of torch's own code, where the tests export
pytestmark = [
    pytest.mark.filterwarnings(r"ignore:`isinstance\(treespec, LeafSpec\)`:FutureWarning"),
    pytest.mark.torch,
]


class Layers(nn.Module):
    """A model with weights, with numbers that are no weights, and with two inputs."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)

    def forward(self, x, y):
        return torch.relu(self.norm(self.linear(x))) + y


def perceptron():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).eval()


X = torch.linspace(-1, 1, 4).reshape(1, 4)


def result(session):
    (output,) = session.run().outputs
    return output[0]


def close(found, expected):
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def saved():
    """Return the bytes of a .pt2 of the perceptron, for any number of rows."""
    rows = {0: torch.export.Dim("rows", min=2, max=64)}
    program = torch.export.export(perceptron(), (X.repeat(4, 1),), dynamic_shapes=(rows,))
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue()


# --- models in memory --------------------------------------------------------------------------


@pytest.mark.parametrize("given", [X, X.numpy(), (X,), [X], {"input": X}])
def test_a_module_is_exported_with_its_example_inputs(given):
    session = irviz.load(perceptron(), inputs=given)
    assert list(session.call_inputs.params) == ["p_0_weight", "p_0_bias", "p_2_weight", "p_2_bias"]
    assert list(session.call_inputs.inputs) == ["input"]
    close(result(session), perceptron()(X))


def test_weights_can_be_bound():
    session = irviz.load(perceptron(), inputs=X).bind()
    assert [param.name for param in session.current.module["main"].params] == ["input"]
    close(result(session), perceptron()(X))


def test_a_module_is_opened_for_evaluation_and_left_as_it_was():
    model = Layers()
    model.norm.eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    y = torch.ones(2, 3)
    session = irviz.load(model, inputs=(X.repeat(2, 1), y))
    assert (model.training, model.linear.training, model.norm.training) == (True, True, False)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert list(session.call_inputs.inputs) == ["x", "y"]
    close(result(session), model.eval()(X.repeat(2, 1), y))


def test_a_module_without_inputs_asks_for_them():
    with pytest.raises(LoadError, match=r"Sequential is a PyTorch model.*give example inputs"):
        load(perceptron())


def test_a_module_that_cannot_be_exported_says_so_in_a_sentence():
    class Printing(nn.Module):
        def forward(self, x):
            return x.nonexistent()

    with pytest.raises(
        LoadError, match=r"Printing cannot be exported by torch\.export: "
    ) as caught:
        load(Printing(), inputs=X)
    assert "\n" not in str(caught.value)


def test_inputs_that_do_not_fit_are_said():
    with pytest.raises(LoadError, match="Sequential cannot be exported"):
        load(perceptron(), inputs=torch.ones(1, 5))
    with pytest.raises(LoadError, match="is not an example input"):
        load(perceptron(), inputs="random")


@pytest.mark.parametrize("given", [X, (X,)])
def test_a_traced_module_is_imported_with_its_weights(given):
    session = irviz.load(torch.fx.symbolic_trace(perceptron()), inputs=given)
    assert sorted(session.call_inputs.params) == ["0.bias", "0.weight", "2.bias", "2.weight"]
    close(result(session), perceptron()(X))
    close(result(session.bind()), perceptron()(X))


class Difference(nn.Module):
    def forward(self, x, y):
        return x - 2 * y


def test_inputs_by_name_are_those_of_their_names():
    x, y = torch.ones(1, 3), torch.zeros(1, 3)
    for model in (Difference(), torch.fx.symbolic_trace(Difference())):
        for given in ({"y": y, "x": x}, {"x": x, "y": y}, (x, y)):
            close(result(irviz.load(model, inputs=given)), x)
    with pytest.raises(LoadError, match=r"were given; the model takes 'x', 'y'"):
        load(torch.fx.symbolic_trace(Difference()), inputs={"x": x})


def test_a_traced_module_needs_no_more_than_shapes():
    session = irviz.load(torch.fx.symbolic_trace(perceptron()), inputs=[((1, 4), "float32")])
    assert session.call_inputs.inputs is None
    assert result(session).shape == (1, 2)


def test_an_exported_program_has_its_inputs_with_it():
    program = torch.export.export(perceptron(), (X,))
    close(result(irviz.load(program)), perceptron()(X))


class Output(dict):
    """What transformers return: a class of their own, that torch takes apart."""


class Whole(nn.Module):
    """A model with a dict, an optional input and a flag, and with an output of its own class."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleDict({"mlp": perceptron()})

    def forward(self, batch, scale=None, flag=True):
        here = self.layers["mlp"](batch["x"]).softmax(-1)
        here = here if scale is None else here * scale
        return Output(scores=here[0] if flag else here, inputs=batch["x"] + 1)


@pytest.fixture(scope="module", autouse=True)
def registered():
    pytree = torch.utils._pytree
    pytree.register_pytree_node(
        Output,
        lambda one: (list(one.values()), list(one)),
        lambda values, keys: Output(zip(keys, values, strict=True)),
        serialized_type_name="their.Output",
    )
    yield
    pytree._deregister_pytree_node(Output)


def test_a_module_may_take_dicts_and_flags_and_return_an_object():
    x = X.repeat(3, 1)
    session = irviz.load(Whole(), inputs={"batch": {"x": x}, "scale": None, "flag": False})
    first, second = session.run().outputs
    close(first[0], perceptron()(x).softmax(-1))
    close(second[0], x + 1)


def test_a_pt2_file_may_return_an_object_whose_class_is_not_there(tmp_path):
    x = X.repeat(3, 1)
    program = torch.export.export(Whole(), ({"x": x},)).run_decompositions()
    assert any("_softmax" in str(node.target) for node in program.graph.nodes)
    torch.export.save(program, tmp_path / "model.pt2")
    session = irviz.load(tmp_path / "model.pt2", inputs={"batch_x": x.numpy()}, trust=True)
    close(session.run().outputs[0][0], perceptron()(x).softmax(-1)[0])


def test_the_last_row_of_a_tensor_is_the_last_row():
    """TVM's importer reads before the first one."""

    class Last(nn.Module):
        def forward(self, x):
            return x[-1] + x[:, -2].sum()

    x = torch.arange(12.0).reshape(3, 4)
    with pytest.warns(UserWarning, match=r"2× R\.take with a negative index .* mode='wrap' here"):
        session = irviz.load(Last(), inputs=x)
    close(result(session), Last()(x))


def test_bools_are_compared():
    """TVM cannot build its own comparison of them."""

    class Same(nn.Module):
        def forward(self, x):
            return (x > 0) == (x.flip(0) > 0), (x > 0) != (x.flip(0) > 0)

    x = torch.linspace(-1, 2, 6)
    with pytest.warns(UserWarning, match=r"2× R\.equal or R\.not_equal of bools"):
        session = irviz.load(Same(), inputs=x)
    for found, expected in zip(session.run().outputs, Same()(x), strict=True):
        np.testing.assert_array_equal(found[0], expected.numpy())


def test_bools_are_added_as_numbers():
    """TVM's importer adds them as bools."""

    class Places(nn.Module):
        def forward(self, x):
            return torch.cumsum(x > 0, -1)

    close(result(irviz.load(Places(), inputs=X)), Places()(X))


def test_integers_are_divided_by_a_number():
    """TVM's importer refuses this."""

    class Halves(nn.Module):
        def forward(self, x):
            return x // 2

    x = torch.arange(-3, 4)
    close(result(irviz.load(Halves(), inputs=x)), x // 2)


def test_tensors_are_indexed_by_tensors_in_any_dimension_also_from_the_end():
    """TVM's importer refuses some of these, and reads outside of the tensor at the others."""

    class Indexed(nn.Module):
        def forward(self, x, i, j):
            return x[:, i, j], x[:, i, :, j], x[i], x[j, i]

    inputs = (
        torch.arange(120.0).reshape(2, 3, 4, 5),
        torch.tensor([[0, -1], [1, -2]]),
        torch.tensor([-1, 1]),
    )
    outputs = irviz.load(Indexed(), inputs=inputs).run().outputs
    for found, expected in zip(outputs, Indexed()(*inputs), strict=True):
        np.testing.assert_array_equal(found[0], expected.numpy())


def test_sizes_may_be_dynamic():
    rows = torch.export.Dim("rows", min=2, max=9)
    session = irviz.load(perceptron(), inputs=X.repeat(3, 1), dynamic_shapes=({0: rows},))
    assert not isinstance(session.current.module["main"].params[0].ty.shape[0], tirx.IntImm)
    for count in (2, 5):
        x = X.repeat(count, 1)
        close(result(session.with_inputs({"input": x.numpy()})), perceptron()(x))


def scattered(x, i, reduce, has_self):
    index = i[:, None].expand(4, 6)
    return x[:3].scatter_reduce(0, index, x, reduce, include_self=has_self)


def with_columns(x, i):
    changed = x[None].clone()
    changed[:, :, i] = 2 * x[:, :4]
    return changed


LACKING = {
    "a sum by index": lambda x, i: torch.zeros(3, 6).index_add(0, i, x, alpha=2),
    "rows by index": lambda x, i: x.index_put((i,), torch.ones(6)),
    "columns by index": with_columns,
    "a scattered sum": lambda x, i: torch.zeros(3, 8).scatter_add(0, i[:, None].expand(4, 5), x),
    **{
        f"{reduce}, {has_self}": lambda x, i, how=(reduce, has_self): scattered(x, i, *how)
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for has_self in (True, False)
    },
    "variance and mean": lambda x, *_: torch.var_mean(x, 1),
    "standard deviation": lambda x, *_: torch.std_mean(x, correction=0),
    "product": lambda x, *_: x.prod(1),
    "minimum": lambda x, *_: x.min(1),
    "adaptive pooling": lambda x, *_: nn.functional.adaptive_max_pool2d(x[None], 2),
    "dilated pooling": lambda x, *_: nn.functional.max_pool2d(x[None], 2, dilation=2),
    "shifts": lambda _, i: (i << 2, (i + 9) >> 1, i >> i),
    "truncation": lambda _, i: torch.div(-3 - i, 2, rounding_mode="trunc"),
    "search": lambda x, *_: torch.searchsorted(x.sort()[0], x[:, :3], right=True),
    "distances": lambda x, *_: (torch.cdist(x, x + 1), torch.cdist(x, x + 1, p=3.0)),
    "histogram": lambda x, *_: torch.histc(x, 4, -1, 1),
    "hypotenuse": lambda x, *_: torch.hypot(x, x + 1),
    "sampling at a grid": lambda x, *_: nn.functional.grid_sample(
        x[None, None], torch.linspace(-1, 1, 12).reshape(1, 2, 3, 2), align_corners=False
    ),
    "linear interpolation": lambda x, *_: nn.functional.interpolate(x[None], 9, mode="linear"),
    "closeness": lambda x, *_: torch.isclose(x, x + 1e-9),
    "lower triangle": lambda x, *_: x[tuple(torch.tril_indices(4, 4))],
    "unfolded and folded": lambda x, *_: nn.functional.fold(
        nn.functional.unfold(x[None, None], 2), (4, 6), 2
    ),
}


@pytest.mark.filterwarnings("ignore:TVM imported 1× R.multiply of bools")
@pytest.mark.parametrize("name", LACKING)
def test_what_tvms_importer_lacks_or_gets_wrong_computes_what_torch_computes(name):
    class Called(nn.Module):
        def forward(self, x, i):
            return LACKING[name](x, i)

    torch.manual_seed(0)
    x, i = torch.randn(4, 6), torch.tensor([0, 2, 1, 2])
    outputs = irviz.load(Called(), inputs=(x, i)).run().outputs
    expected = torch.utils._pytree.tree_leaves(Called()(x, i))
    for found, wanted in zip(outputs, expected, strict=True):
        assert found.dtype.name == str(wanted.dtype).removeprefix("torch.")
        close(found[0].astype("float32"), wanted.float())


def test_what_tvm_would_import_with_another_shape_is_refused(monkeypatch):
    class Sampled(nn.Module):
        def forward(self, x, grid):
            return nn.functional.grid_sample(x, grid, align_corners=False)

    monkeypatch.setattr(torch_models, "own_operators", lambda *_: {})
    inputs = (torch.ones(1, 2, 4, 4), torch.zeros(1, 3, 3, 2))
    words = r"grid_sampler_2d.default, .*with the shape .*, and torch has \(1, 2, 3, 3\)"
    with pytest.raises(LoadError, match=words):
        irviz.load(Sampled(), inputs=inputs)


def test_indices_that_tvm_does_not_compute_and_checks_are_refused_by_name():
    class Pooled(nn.Module):
        def forward(self, x):
            return nn.functional.max_pool2d(x, 2, return_indices=True)

    class Inverted(nn.Module):
        def forward(self, x):
            return torch.inverse(x)

    class Printing(nn.Module):
        def forward(self, x):
            torch.ops.aten._print("x")
            return x + 1

    for model, shape, words in (
        (Pooled(), (1, 1, 4, 4), "max_pool2d_with_indices.*its indices are used"),
        (Inverted(), (2, 2), "linalg_inv_ex.default, .*test_torch_models.py, line"),
        (Printing(), (2,), "_print.default, .*test_torch_models.py, line .*it has an effect"),
    ):
        with pytest.raises(LoadError, match=words):
            irviz.load(model, inputs=(torch.ones(shape),))


class Layered(nn.Module):
    """A layer of each kind that TVM's importer gives float32, or refuses, in another dtype."""

    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.Flatten(), nn.ReLU()
        )
        self.rows = nn.Sequential(nn.Linear(16, 8), nn.LayerNorm(8), nn.GELU())
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.weight = nn.Parameter(torch.randn(8, 4) / 4)

    def forward(self, x):
        rows = self.rows(self.image(x))
        attended = self.attention(rows[None], rows[None], rows[None])[0][0]
        mixed = torch.cat([rows @ self.weight, attended.float()], -1)
        return rows @ self.weight, torch.softmax(mixed, -1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_model_of_any_floats_has_torchs_dtypes_and_values(dtype):
    floats = getattr(torch, dtype)
    torch.manual_seed(0)
    model, x = Layered().eval().to(floats), torch.randn(2, 3, 4, 4).to(floats)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        session = irviz.load(model, inputs=(x,))
    rounded = [str(one.message) for one in notes if "computed in float32" in str(one.message)]
    assert len(rounded) == 1
    outputs = session.run().outputs
    for output, expected in zip(outputs, model(x), strict=True):
        assert output.dtype.name == str(expected.dtype).removeprefix("torch.")
        limit = 1e-6 if dtype == "float64" else 8 * torch.finfo(floats).eps
        found = output[0].astype("float64")
        np.testing.assert_allclose(found, expected.double().detach(), rtol=limit, atol=limit)
    assert not session.run().origin.is_different


class Varying(nn.Module):
    """A model with what is made for the size of an input: positions, a mask, and a scale."""

    def __init__(self):
        super().__init__()
        self.register_buffer("places", torch.arange(16.0).reshape(1, 16))

    def forward(self, x, rows):
        count = x.shape[1]
        mask = torch.full((count, count), float("-inf")).triu(1)
        y = x + self.places[:, :count]
        z = y.clone()
        z[:, -1] = 0
        ends = torch.cat([y[:, :1], y], -1)
        return (
            torch.softmax(y[:, None] + mask, -1),
            z * count,
            y[rows, rows - 1],
            ends[:, 1:] - ends[:, :count],
            nn.functional.interpolate(y[:, None, None], scale_factor=2, mode="bilinear"),
        )


@pytest.mark.filterwarnings("ignore:TVM imported")
def test_a_model_for_sizes_that_may_vary_equals_torch_at_others():
    """TVM's importer loses the sizes of slices, and the indices that count from the end."""
    sizes = {0: torch.export.Dim("count", min=2), 1: torch.export.Dim("length", max=16)}
    rows = torch.tensor([-1, 0])
    session = irviz.load(Varying(), inputs=(torch.ones(3, 5), rows), dynamic_shapes=(sizes, None))
    for shape in ((3, 5), (2, 7)):
        x = torch.linspace(-1, 1, shape[0] * shape[1]).reshape(shape)
        outputs = session.with_inputs({"x": x.numpy(), "rows": rows.numpy()}).run().outputs
        for found, expected in zip(outputs, Varying()(x, rows), strict=True):
            close(found[0], expected)


def test_a_size_may_be_a_multiple_of_one_that_no_input_has(tmp_path):
    """TVM cannot solve it."""
    half = nn.Conv1d(2, 2, 3, stride=2, padding=1)
    model = nn.Sequential(half, nn.ConvTranspose1d(2, 2, 4, stride=2, padding=1)).eval()
    length = 4 * torch.export.Dim("quarter", min=2, max=9)
    program = torch.export.export(model, (torch.ones(1, 2, 8),), dynamic_shapes=({2: length},))
    torch.export.save(program, tmp_path / "model.pt2")
    session = irviz.load(tmp_path / "model.pt2", trust=True)
    for count in (8, 20):
        x = torch.linspace(-1, 1, 2 * count).reshape(1, 2, count)
        close(result(session.with_inputs({"input": x.numpy()})), model(x))
    with pytest.raises(RunError, match="match_cast"):
        session.with_inputs({"input": np.ones((1, 2, 9), "float32")}).run()


def test_numbers_are_computed_in_the_dtype_of_torch():
    """TVM's importer computes `x * 0.5` of integers in integers, and leaves factors out."""

    class Mixed(nn.Module):
        def forward(self, x, i):
            parts = (
                i * 0.5,
                i / 2,
                i == 0.5,
                1 - i / 3,
                (i > 0) + 1,
                i.exp(),
                torch.where(i > 0, i, 0.5),
            )
            others = (torch.sub(x, x, alpha=2), torch.selu(x), x.amax(1), torch.add(x, i, alpha=3))
            return (*parts, *others, nn.functional.interpolate(x[None], size=3))

    inputs = (torch.linspace(-2, 2, 8).reshape(2, 4), torch.arange(-4, 4).reshape(2, 4))
    outputs = irviz.load(Mixed(), inputs=inputs).run().outputs
    for found, expected in zip(outputs, Mixed()(*inputs), strict=True):
        close(found[0].astype("float32"), expected.float())


class Lacking(nn.Module):
    """A model with a layer that calls what TVM lacks."""

    class Layer(nn.Module):
        def forward(self, x):
            return torch.special.erfcx(x)

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([self.Layer()])

    def forward(self, x):
        return self.blocks[0](x) + 1


def test_an_operator_that_tvm_lacks_is_named_with_its_layer_and_line():
    words = (
        r"special_erfcx\.default of layer blocks\.0 \(Layer\), .*test_torch_models\.py, line \d+"
    )
    with pytest.raises(LoadError, match=rf"{words}: .*missing='opaque'"):
        load(Lacking(), inputs=X)


def test_an_unknown_way_to_treat_such_operators_is_refused():
    with pytest.raises(LoadError, match="missing='drop' is unknown"):
        irviz.load(Lacking(), inputs=X, missing="drop")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_tvm_cannot_build_in_half_precision_is_computed_in_float32(dtype):
    class Half(nn.Module):
        def forward(self, x):
            arcs = torch.asin(x / 4), torch.acos(x / 4), x.atan(), x.asinh(), x.sinh(), x.cosh()
            ordered = *x.sort(1, descending=True), *x.topk(2), *x.max(1), *x.min(0), x.argmax()
            return *arcs, *ordered, torch.atan2(x, x + 3), x.abs() ** 0.3, x.isnan(), x.prod(1)

    x = torch.linspace(-2, 2, 24).reshape(4, 6)[:, torch.tensor([3, 0, 5, 1, 4, 2])].to(dtype)
    with pytest.warns(UserWarning, match="computed in float32"):
        session = irviz.load(Half(), inputs=x)
    assert str(session.run().origin).startswith("equals torch")


def test_windows_of_a_size_that_may_vary_are_those_of_torch():
    class Windows(nn.Module):
        def forward(self, x):
            return x.unfold(1, 3, 1) * 2

    x, sizes = torch.arange(12.0).reshape(2, 6), {"x": {1: torch.export.Dim("n", min=5)}}
    with pytest.warns(UserWarning, match="torch computes it"):
        session = irviz.load(Windows(), inputs=x, dynamic_shapes=sizes, missing="opaque")
    for values in (x, torch.arange(16.0).reshape(2, 8)):
        close(result(session.with_inputs(values.numpy())), Windows()(values))


# --- what a model returns ------------------------------------------------------------------------


@dataclasses.dataclass
class Returned:
    logits: torch.Tensor
    loss: object = None
    hidden: tuple = ()


torch.export.register_dataclass(Returned, serialized_type_name="irviz_tests.Returned")


class Structured(nn.Module):
    """A model that returns objects, dicts, None and constants."""

    def forward(self, x):
        return {"of": Returned(x + 1, None, (x, [x * 2])), "none": None, "number": 2.5}


def test_a_run_gives_back_what_the_model_returns_in_its_own_structure(tmp_path):
    session = irviz.load(Structured(), inputs=X)
    for one in (session, session.apply("LegalizeOps")):
        value = one.run().value
        assert list(value) == ["of", "none", "number"]
        assert isinstance(value["of"], Returned)
        assert (value["of"].loss, value["none"], value["number"]) == (None, None, 2.5)
        close(value["of"].hidden[1][0], X * 2)
    assert str(session.run().origin).startswith("equals torch")
    path = tmp_path / "structured.pt2"
    torch.export.save(torch.export.export(Structured(), (X,)), path)
    value = irviz.load(path, inputs=X.numpy()).run().value
    assert value["none"] is None
    close(value["of"]["logits"], X + 1)  # classes are dicts, as a file must not name code
    tensor = irviz.load(perceptron(), inputs=X).run()
    np.testing.assert_array_equal(tensor.value, tensor.outputs[0][0])


# --- against torch -------------------------------------------------------------------------------


def test_the_first_run_of_a_module_is_compared_with_torch():
    session = irviz.load(perceptron(), inputs=X)
    verdict = session.run().origin
    assert not verdict.is_different
    assert str(verdict).startswith("equals torch, max |Δ| ")
    assert session.apply("LegalizeOps").run().origin is None


def test_a_node_that_torch_cannot_run_is_named():
    program = torch.export.export(nn.Embedding(3, 2), (torch.tensor([2]),))
    origin = load(program).origin
    words = r"embedding\.default.*: index out of range"
    with pytest.raises(RunError, match=words):
        origin.run({"input": np.array([3])}, 0)


def test_torch_computes_with_the_weights_that_the_session_has():
    session = irviz.load(perceptron(), inputs=X)
    weights = {name: value * 2 for name, value in session.call_inputs.params.items()}
    assert str(session.with_params(weights).run().origin).startswith("equals torch")


def test_wrong_numbers_are_said_with_the_first_node_that_differs(monkeypatch):

    monkeypatch.setattr(torch_models, "mend", lambda module: (module, ()))

    class Wrong(nn.Module):
        def forward(self, x):
            return torch.relu((x + 1)[-1] * 2)

    verdict = irviz.load(Wrong(), inputs=torch.full((3, 4), 1e9)).run().origin
    assert verdict.is_different
    words = (
        r"differs from torch, max \|Δ\| .*; first at lv1 \(relax\.take\): .*imported from select"
    )
    assert re.search(words, str(verdict))
    assert "TVM's importer or compiler is wrong" in str(verdict)


def test_a_pt2_file_is_compared_with_torch_in_the_worker_once_it_is_trusted(
    saved, tmp_path, monkeypatch
):
    monkeypatch.setenv("IRVIZ_SANDBOX", "0")
    path = tmp_path / "model.pt2"
    path.write_bytes(saved)
    session = irviz.load(path, inputs={"input": X.repeat(3, 1).numpy()})
    with pytest.raises(irviz.UntrustedError):
        session.run()
    assert str(session.trust().run().origin).startswith("equals torch")
    path.write_bytes(b"another one")
    again = session.trust().with_inputs({"input": X.repeat(2, 1).numpy()})
    assert "not compared with torch" in str(again.run().origin)
    assert "has changed since it was opened" in str(again.run().origin)


# --- .pt2 --------------------------------------------------------------------------------------


def test_a_pt2_file_runs_for_the_comparison_without_a_second_import(saved, monkeypatch):
    loaded = load_content(saved, "model.pt2")
    monkeypatch.delattr(pt2_models, "import_program")
    double = {name: value * 2 for name, value in loaded.params.items()}
    (once,), (twice,) = (
        loaded.origin.run({"input": X.numpy(), **params}, 0).outputs
        for params in (loaded.params, double)
    )
    close(once, perceptron()(X))
    assert not np.allclose(once, twice)


def test_a_pt2_file_opens_with_its_weights(saved, tmp_path):
    path = tmp_path / "model.pt2"
    path.write_bytes(saved)
    rows = X.repeat(3, 1)
    session = irviz.load(path, inputs={"input": rows.numpy()}, trust=True)
    assert len(session.call_inputs.params) == 4
    close(result(session), perceptron()(rows))


def test_a_pt2_file_is_known_by_its_content(saved):
    assert load_content(saved, "model").params.keys() == load_content(saved, "m.json").params.keys()


def test_layers_of_a_pt2_file_may_have_names_that_are_none_in_python(tmp_path):
    class Blocks(nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module("block1-0", perceptron())

        def forward(self, x):
            return getattr(self, "block1-0")(x)

    torch.export.save(torch.export.export(Blocks(), (X,)), tmp_path / "model.pt2")
    session = irviz.load(tmp_path / "model.pt2", inputs={"x": X.numpy()}, trust=True)
    close(result(session), perceptron()(X))


class Telltale:
    """What writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (exec, (f"open({str(self.path)!r}, 'w').close()",))


def changed(content, change):
    """Return an archive with the members, by their names below the root, as `change` left them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {n.partition("/")[2]: archive.read(n) for n in archive.namelist()}
    change(members)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, one in members.items():
            archive.writestr(f"root/{name}", one)
    return file.getvalue()


def in_json(name, change):
    """Return a change of a member that is JSON."""

    def apply(members):
        content = json.loads(members[name])
        change(content)
        members[name] = json.dumps(content).encode()

    return apply


def in_program(change):
    return in_json("models/model.json", change)


def in_node(key, value):
    return in_program(
        lambda program: program["graph_module"]["graph"]["nodes"][0].update({key: value})
    )


def test_pickles_that_are_not_needed_are_not_read(saved, tmp_path):
    """torch.export.load would read these, and without its safe unpickler when that refuses."""
    telltale = tmp_path / "ran"
    file = io.BytesIO()
    torch.save((Telltale(telltale),), file)

    def change(members):
        members["data/sample_inputs/model.pt"] = file.getvalue()
        members["data/aotinductor/model/wrapper.so"] = b"\x7fELF"
        members["extra/notes"] = pickle.dumps(Telltale(telltale))
        program = json.loads(members["models/model.json"])
        program["guards_code"] = [f"open({str(telltale)!r}, 'w')"]
        members["models/model.json"] = json.dumps(program).encode()

    found = load_content(changed(saved, change), "model.pt2")
    assert len(found.params) == 4
    assert not telltale.exists()


def test_torch_itself_would_run_what_is_left_out(saved, tmp_path):
    """So the test above would tell."""
    telltale = tmp_path / "ran"
    file = io.BytesIO()
    torch.save((Telltale(telltale),), file)
    hostile = changed(saved, lambda m: m.update({"data/sample_inputs/model.pt": file.getvalue()}))
    logging.disable()  # torch says so, and fails to
    try:
        torch.export.load(io.BytesIO(hostile))
    finally:
        logging.disable(logging.NOTSET)
    assert telltale.exists()


def first_size(program):
    return program["graph_module"]["graph"]["tensor_values"]["input"]["sizes"][0]["as_expr"]


def rename_input(program, name):
    text = json.dumps(program).replace('"name": "input"', f'"name": {json.dumps(name)}')
    program.update(json.loads(text))


CODE = "__import__('os').system('true')"
HOSTILE = {
    "weights that are a pickle": (
        in_json(
            "data/weights/model_weights_config.json",
            lambda c: c["config"]["0.weight"].update(use_pickle=True),
        ),
        "as a pickle, which may run anything",
    ),
    "weights in an old pickle": (
        lambda m: m.update(
            {"data/weights/model.pt": m.pop("data/weights/model_weights_config.json")}
        ),
        "keeps its weights in pickles",
    ),
    "an object of its own": (
        in_json(
            "data/constants/model_constants_config.json",
            lambda c: c["config"].update(
                a={"path_name": "opaque_obj_0", "use_pickle": False, "tensor_meta": {}}
            ),
        ),
        "holds a custom object ('opaque_obj_0')",
    ),
    "a path that leads out": (
        in_json(
            "data/weights/model_weights_config.json",
            lambda c: c["config"]["0.weight"].update(path_name="../../weight_0"),
        ),
        "so it was not read",
    ),
    "a size that is code": (
        in_program(lambda p: first_size(p).update(expr_str=CODE)),
        "where a size should be",
    ),
    "a size with an attribute": (
        in_program(lambda p: first_size(p).update(expr_str="Symbol('s0').__class__")),
        "where a size should be",
    ),
    "a size with code in quotes": (
        in_program(lambda p: first_size(p).update(expr_str=f"Symbol({CODE!r})")),
        "where a size should be",
    ),
    "a function of Python": (in_node("target", "torch.os.system"), "only operators of torch"),
    "a way into Python": (
        in_node("target", "torch.ops.aten.__class__.mro"),
        "only operators of torch.ops.aten",
    ),
    "an attribute that is no operator": (
        in_node("target", "torch.ops.aten._dir.append"),
        "only operators of torch.ops.aten",
    ),
    "an operator that opens files": (
        in_node("target", "torch.ops.aten.from_file.default"),
        "neither read files",
    ),
    "an operator that prints": (
        in_node("target", "torch.ops.aten._print.default"),
        "nor print",
    ),
    "a name that is code": (
        in_program(lambda p: rename_input(p, f"x={CODE}")),
        "where a name should be",
    ),
    "a key that is code": (
        in_program(lambda p: p["range_constraints"].update({CODE: {"min_val": 0, "max_val": 1}})),
        "where a size should be",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_could_run_is_refused(saved, case):
    change, words = HOSTILE[case]
    with pytest.raises(LoadError) as caught:
        load_content(changed(saved, change), "model.pt2")
    message = str(caught.value)
    assert message.startswith("'model.pt2' ")
    assert words in message
    assert "\n" not in message


def test_an_operator_that_is_refused_is_named_with_its_layer_and_line(saved):
    change = in_node("target", "torch.ops.mine.linear.default")
    words = (
        r"calls 'torch\.ops\.mine\.linear\.default' of layer 0 \(Linear\), .*linear\.py, line \d+"
    )
    with pytest.raises(LoadError, match=words):
        load_content(changed(saved, change), "model.pt2")


def test_texts_that_are_only_quoted_are_let_through(saved):
    argument = {"name": "mode", "arg": {"as_string": CODE}, "kind": 2}
    add = in_program(lambda p: p["graph_module"]["graph"]["nodes"][0]["inputs"].append(argument))
    plain_archive(changed(saved, add))


STRUCTURES = {
    "an enumeration, whose module torch imports": (
        "builtins.dict",
        '[{"__enum__": true, "fqn": "antigravity:fly", "name": "x"}]',
    ),
    "a factory, which torch imports": (
        "collections.defaultdict",
        '{"default_factory_module": "antigravity", "default_factory_name": "fly"}',
    ),
    "a class that is not registered": ("transformers.modeling_outputs.ModelOutput", '["logits"]'),
    "a dataclass with a field that is None": ("their.Output", '[["logits"], ["loss"]]'),
    "keys that are code": ("builtins.dict", json.dumps([f"x={CODE}"])),
    "a context that is no text": ("their.Output", 7),
}


def in_structure(kind, context):
    """Return a change of the structure that a program returns, which holds one tensor."""
    leaf = {"type": None, "context": None, "children_spec": []}
    outermost = {"type": kind, "context": context, "children_spec": [leaf]}
    spec = json.dumps([1, outermost])
    return in_program(
        lambda program: program["graph_module"]["module_call_graph"][0]["signature"].update(
            out_spec=spec
        )
    )


@pytest.mark.parametrize("case", STRUCTURES)
def test_classes_in_a_structure_are_neither_imported_nor_needed(saved, case):
    plain = plain_archive(changed(saved, in_structure(*STRUCTURES[case])))
    assert len(load_content(plain, "model.pt2").params) == 4
    for imported in (b"antigravity", b"their", b"transformers", b"__import__"):
        assert imported not in plain


def test_torch_itself_would_import_what_a_structure_names(saved):
    """So the test above would tell."""
    kind, context = STRUCTURES["an enumeration, whose module torch imports"]
    hostile = changed(saved, in_structure(kind, context.replace("antigravity", "no_such_module")))
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        torch.export.load(io.BytesIO(hostile))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x).relu()


def test_a_node_is_led_back_to_the_line_of_the_model_that_it_was_written_in(tmp_path):
    _, first = inspect.getsourcelines(Scaled.forward)
    path = tmp_path / "scaled.pt2"
    torch.export.save(torch.export.export(Scaled(), (torch.ones(1, 2),)), path)
    for loaded in (irviz.load(Scaled(), inputs=(torch.ones(1, 2),)), irviz.load(path)):
        lines = {str(loaded.history(one.id)) for one in loaded.graph().nodes if one.operator}
        assert all(f"test_torch_models.py, line {first + 1}" in one for one in lines)
        assert any("nn.relu" in one.callee for one in loaded.graph().nodes)


def test_a_model_in_a_folder_named_torch_is_no_part_of_torch():
    of_the_model = 'File "/home/torch/model.py", line 7, in forward'
    of_torch = 'File "/venv/lib/python3.11/site-packages/torch/nn/linear.py", line 9, in forward'
    assert source_place(f"{of_the_model}\n{of_torch}") == ("/home/torch/model.py", 7)


def test_layers_and_lines_of_nodes_are_kept_where_they_are_no_more_than_that(saved):
    trace = 'File "/a/model.py", line 7, in forward\n  x = y'
    whole = {"stack_trace": trace, "nn_module_stack": "key,layers.0,torch.nn.Linear"}
    kept = json.loads(members(plain_archive(changed(saved, in_node("metadata", whole)))))
    node = kept["graph_module"]["graph"]["nodes"][0]
    assert node["metadata"] == {**whole, "stack_trace": trace.splitlines()[0]}
    for hostile in (
        {"stack_trace": f'File "a\r{CODE}", line 7, in x'},
        {"nn_module_stack": f"a,{CODE},b"},
        {"source_fn_stack": "a,torch.os.system"},
        {"custom": "{}", "from_node": "[]"},
    ):
        kept = json.loads(members(plain_archive(changed(saved, in_node("metadata", hostile)))))
        assert kept["graph_module"]["graph"]["nodes"][0]["metadata"] == {}


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("model/models/model.json")


SAVE_IT = "torch.export.save"


@pytest.mark.parametrize(
    ("content", "words", "way"),
    [
        (lambda saved: saved[: len(saved) // 2], "is damaged or cut short", SAVE_IT),
        (lambda saved: saved[:-100], "is damaged or cut short", SAVE_IT),
        (
            lambda _: changed(archive_of(), lambda m: m.update({"w.npy": b""})),
            "is a zip archive, not a torch.export program",
            "give a model that is in it",
        ),
        (lambda _: scripted(), "is TorchScript, which is code", SAVE_IT),
        (lambda _: weights(), "is a pickle from torch.save", SAVE_IT),
    ],
)
def test_what_is_no_such_archive_is_said(saved, content, words, way):
    with pytest.raises(FileError) as caught:
        plain_archive(content(saved))
    assert words in str(caught.value)
    assert way in str(caught.value)


def archive_of(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def scripted():
    return archive_of(**{"m/code/__torch__.py": b"", "m/data.pkl": b""})


def weights():
    file = io.BytesIO()
    torch.save(perceptron().state_dict(), file)
    return file.getvalue()


def test_an_archive_that_unpacks_to_far_more_is_refused(saved):
    def change(members):
        members["extra/zeros"] = b"\0" * (1 << 27)

    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        members = {n.partition("/")[2]: archive.read(n) for n in archive.namelist()}
    change(members)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, one in members.items():
            archive.writestr(f"root/{name}", one)
    with pytest.raises(FileError, match=r"would be .* bytes unpacked"):
        plain_archive(file.getvalue())


def test_a_program_whose_numbers_do_not_fit_is_a_sentence(saved):
    cut = changed(saved, lambda m: m.update({"data/weights/weight_0": b"\0" * 16}))
    with pytest.raises(LoadError, match=r"'model\.pt2': it is damaged, or not from torch") as at:
        load_content(cut, "model.pt2")
    assert "\n" not in str(at.value)


class Block(nn.Module):
    """A layer in a list, which adds what it makes to what it is given."""

    def __init__(self):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, x):
        return x + self.fc(self.norm(x))


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(8)])
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def test_a_node_tells_the_module_that_it_comes_from():
    session = irviz.load(Stack().eval(), inputs=(X,))
    found = [layers_label(node) for node in session.graph().nodes if node.callee]
    assert found[0] == "blocks.0.norm"
    assert "blocks.7.fc" in found
    assert "blocks.3" in found  # the sum
    assert found[-1] == "head"
    assert "blocks.0–7 ×8 · Block" in session.draw().svg


def test_the_steps_of_a_layer_that_is_opened_by_itself_are_those_of_the_model():
    graph = irviz.load(nn.Linear(4, 3), inputs=X).graph()
    assert {node.layers for node in graph.nodes if node.callee} == {((),)}


def test_a_saved_program_tells_the_modules_too(tmp_path):
    torch.export.save(torch.export.export(Stack().eval(), (X,)), tmp_path / "stack.pt2")
    session = irviz.load(tmp_path / "stack.pt2")
    assert layers_label(session.graph()["lv"]) == "blocks.0.norm"


def test_the_running_statistics_of_a_normalisation_are_parameters_with_names():
    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64)).eval()
    model[1].running_mean.normal_()
    session = irviz.load(model, inputs=torch.ones(1, 3, 8, 8))
    names = [str(param.name) for param in session.current.module["main"].params]
    assert names[-2:] == ["b_1_running_mean", "b_1_running_var"]
    assert str(session.run().origin).startswith("equals torch")
