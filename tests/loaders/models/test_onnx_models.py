"""ONNX models open with their weights, compute the right values, and read no other files."""

import sys

import numpy as np
import pytest
import tvm_ffi

import irviz
from irviz.course.mlp import MyModule
from irviz.errors import LoadError, RunError
from irviz.loaders.load import load, load_content
from irviz.model.graph.graph import NodeKind
from irviz.session.open_session import add_file
from irviz.session.stage_cache import source_notes
from irviz.worker.shared_arrays import is_shared

pytestmark = pytest.mark.worker

onnx = pytest.importorskip(
    "onnx", reason="install onnx to test its importer: pip install 'irviz[onnx]'"
)
helper, numpy_helper = onnx.helper, onnx.numpy_helper

SOURCE = np.random.default_rng(0)
WEIGHT = SOURCE.normal(size=(4, 8)).astype("float32")
BIAS = SOURCE.normal(size=(8,)).astype("float32")


def model(rows="rows", operator="Relu"):
    """Return operator(x @ weight + bias) for a number of rows."""
    nodes = [
        helper.make_node("MatMul", ["x", "fc.weight"], ["product"]),
        helper.make_node("Add", ["product", "fc.bias"], ["sum"]),
        helper.make_node(operator, ["sum"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [rows, 4])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [rows, 8])],
        [numpy_helper.from_array(WEIGHT, "fc.weight"), numpy_helper.from_array(BIAS, "fc.bias")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def check(session, x):
    (output,) = session.run({"x": x}).outputs
    expected = np.maximum(x @ WEIGHT + BIAS, 0)
    np.testing.assert_allclose(output[0], expected, rtol=1e-5, atol=1e-5)


def refusal(path):
    with pytest.raises(LoadError) as caught:
        load(path)
    message = str(caught.value)
    assert repr(str(path)) in message
    assert "\n" not in message
    return message


@pytest.fixture
def outside(tmp_path):
    """Return the path of a model that keeps its weights in a file beside it."""
    path = tmp_path / "models" / "big.onnx"
    path.parent.mkdir()
    onnx.save(model(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return path


def in_another_file(folder, array, kind, **entries):
    """Save `x + w` with a weight in another file; return the path.

    Args:
        folder: The folder.
        array: The weight, of shape (8,).
        kind: Its type in ONNX.
        entries: What the model says of its place.
    """
    (folder / "weights.bin").write_bytes(bytes(100) + array.tobytes() + bytes(28))
    weight = onnx.TensorProto(name="w", data_type=kind, dims=[8])
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "weights.bin", **entries}.items():
        weight.external_data.add(key=key, value=str(value))
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "sum",
        [helper.make_tensor_value_info("x", kind, [8])],
        [helper.make_tensor_value_info("y", kind, [8])],
        [weight],
    )
    path = folder / "sum.onnx"
    path.write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
        ).SerializeToString()
    )
    return path


@pytest.mark.parametrize("offset", [128, 100, 101])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "bfloat16"])
def test_weights_in_another_file_are_read_from_where_the_model_says(tmp_path, offset, dtype):
    kind = getattr(
        onnx.TensorProto, {"float32": "FLOAT", "float64": "DOUBLE"}.get(dtype, dtype.upper())
    )
    array = np.arange(1, 9).astype(helper.tensor_dtype_to_np_dtype(kind))
    content = bytes(offset - 100) + array.tobytes()
    path = in_another_file(
        tmp_path, np.frombuffer(content, "uint8"), kind, offset=offset, length=array.nbytes
    )
    (weight,) = load(path).params.values()
    assert weight.dtype == array.dtype
    np.testing.assert_array_equal(weight.astype("float64"), array.astype("float64"))


@pytest.mark.parametrize(
    "entries", [{"offset": 128, "length": 28}, {"offset": 128}, {"offset": 4096}, {"length": 0}]
)
def test_weights_that_have_another_size_than_the_model_says_are_refused(tmp_path, entries):
    path = in_another_file(tmp_path, np.zeros(16, "float32"), onnx.TensorProto.FLOAT, **entries)
    refusal(path)


def test_without_a_length_a_weight_is_the_rest_of_its_file(tmp_path):
    array = np.arange(8).astype("float32")
    path = in_another_file(tmp_path, array, onnx.TensorProto.FLOAT, offset=128)
    (weight,) = load(path).params.values()
    np.testing.assert_array_equal(weight, [7, *[0] * 7])


def test_a_constant_in_a_node_may_have_the_name_of_a_weight(tmp_path):
    array = np.arange(1, 9).astype("float32")
    path = in_another_file(
        tmp_path,
        np.concatenate([np.zeros(7, "float32"), array]),  # at 128, and as many bytes more
        onnx.TensorProto.FLOAT,
        offset=128,
        length=32,
    )
    model = onnx.load(path, load_external_data=False)
    constant = onnx.TensorProto()
    constant.CopyFrom(model.graph.initializer[0])
    constant.external_data[1].value = "0"  # its offset
    model.graph.node[0].output[0] = "sum"
    model.graph.node.extend(
        [
            helper.make_node("Constant", [], ["c"], value=constant),
            helper.make_node("Mul", ["sum", "c"], ["y"]),
        ]
    )
    path.write_bytes(model.SerializeToString())
    loaded = load(path)
    (weight,) = loaded.params.values()
    np.testing.assert_array_equal(weight, array)
    (output,) = irviz.load(path, trust=True).run({"x": array}).outputs
    np.testing.assert_array_equal(output[0], np.zeros(8))


def redirect(path, location):
    """Let the model at a path want its weights from elsewhere."""
    moved = onnx.load(path, load_external_data=False)
    for tensor in moved.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    path.write_bytes(moved.SerializeToString())


@pytest.mark.parametrize("rows", ["rows", 3])
def test_a_file_opens_with_its_weights(tmp_path, rows):
    path = tmp_path / "layer.onnx"
    onnx.save(model(rows), path)
    session = irviz.load(path, trust=True)
    assert sorted(name.replace(".", "_") for name in session.call_inputs.params) == [
        "fc_bias",
        "fc_weight",
    ]
    check(session, SOURCE.normal(size=(3, 4)).astype("float32"))
    check(session.bind(), SOURCE.normal(size=(3, 4)).astype("float32"))


def test_a_model_in_memory_opens_too():
    check(irviz.load(model()), SOURCE.normal(size=(2, 4)).astype("float32"))


def test_a_file_is_known_by_its_content():
    assert len(load_content(model().SerializeToString(), "layer").params) == 2


def test_an_operator_that_tvm_lacks_is_named():
    with pytest.raises(LoadError, match=r"the ONNX model cannot be imported by TVM: .*Nonsense"):
        load(model(operator="Nonsense"))


def test_the_node_of_an_operator_that_tvm_lacks_is_named_and_may_be_opaque(tmp_path):
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["above"], "first"),
            helper.make_node(
                "LSTM", ["above", "w", "r"], ["y", "", "c"], "rnn/LSTM", hidden_size=2
            ),
        ],
        "rnn",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, 1, 4])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 1, 1, 2])],
        [
            numpy_helper.from_array(np.zeros((1, 8, 4), "float32"), "w"),
            numpy_helper.from_array(np.zeros((1, 8, 2), "float32"), "r"),
        ],
    )
    path = tmp_path / "rnn.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    assert "LSTM of node 'rnn/LSTM'" in refusal(path)
    with pytest.warns(UserWarning, match="does not know LSTM of node 'rnn/LSTM': ONNX's reference"):
        session = irviz.load(path, missing="opaque")
    assert "onnx.LSTM" in {node.callee for node in session.graph().nodes}
    assert session.draw().svg


def test_the_mask_of_a_dropout_has_bools():
    graph = helper.make_graph(
        [helper.make_node("Dropout", ["x"], ["y", "mask"])],
        "dropout",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])],
        [
            helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("mask", onnx.TensorProto.BOOL, [2, 3]),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    x = SOURCE.normal(size=(2, 3)).astype("float32")
    _, mask = irviz.load(made, inputs={"x": x}).run().outputs
    assert mask.dtype == bool
    assert mask.all()


def test_sizes_in_initializers_are_constants_and_not_parameters():
    """As parameters they are not known, and LLVM compiles what that gives for hours."""
    graph = helper.make_graph(
        [
            helper.make_node("Expand", ["x", "size"], ["wide"]),
            helper.make_node("Reshape", ["wide", "flat"], ["y"]),
        ],
        "wide",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2, 1, 3])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4, 6])],
        [
            numpy_helper.from_array(np.array([1, 2, 4, 3]), "size"),
            numpy_helper.from_array(np.array([4, 6]), "flat"),
        ],
    )
    x = SOURCE.normal(size=(1, 2, 1, 3)).astype("float32")
    session = irviz.load(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), inputs={"x": x}
    )
    assert [param.name for param in session.current.module["main"].params] == ["x"]
    assert {node.type_label for node in session.graph().nodes} >= {"Tensor[(1, 2, 4, 3)]"}
    assert str(session.run().origin).startswith("equals ONNX")


def test_the_functions_of_a_model_are_inlined(tmp_path):
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    gate = helper.make_function(
        "own",
        "Gate",
        ["a"],
        ["c"],
        [helper.make_node("Sigmoid", ["a"], ["s"]), helper.make_node("Mul", ["s", "a"], ["c"])],
        opsets[:1],
    )
    ends = [helper.make_tensor_value_info(one, onnx.TensorProto.FLOAT, [2]) for one in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Gate", ["x"], ["y"], domain="own")], "gated", ends[:1], ends[1:]
    )
    path = tmp_path / "gated.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=[gate]), path)
    x = np.array([-1, 2], "float32")
    result = irviz.load(path, inputs={"x": x}, trust=True).run()
    np.testing.assert_allclose(result.outputs[0][0], x / (1 + np.exp(-x)), rtol=1e-5)
    assert str(result.origin).startswith("equals ONNX")


def test_weights_beside_the_model_are_read(outside):
    check(irviz.load(outside, trust=True), SOURCE.normal(size=(2, 4)).astype("float32"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shares memory")
def test_large_weights_are_read_into_memory_that_every_process_maps(tmp_path):
    weight = SOURCE.normal(size=(200, 200)).astype("float32")
    ends = [helper.make_tensor_value_info(one, onnx.TensorProto.FLOAT, [1, 200]) for one in "xy"]
    node = helper.make_node("MatMul", ["x", "weight"], ["y"])
    graph = helper.make_graph(
        [node], "g", *([one] for one in ends), [numpy_helper.from_array(weight, "weight")]
    )
    path = tmp_path / "large.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    loaded = load(path)
    assert is_shared(loaded.params["weight"])
    session = irviz.load(path, trust=True)
    np.testing.assert_array_equal(session.call_inputs.params["weight"], weight)
    x = SOURCE.normal(size=(1, 200)).astype("float32")
    np.testing.assert_allclose(
        session.run({"x": x}).outputs[0][0], x @ weight, rtol=1e-3, atol=1e-4
    )


def test_weights_in_files_need_the_path_of_the_model(outside):
    with pytest.raises(LoadError, match=r"'weights\.bin'\): open it by its path"):
        load_content(outside.read_bytes(), "big.onnx")


@pytest.mark.parametrize("location", ["../weights.bin", "{root}/weights.bin", "C:\\weights.bin"])
def test_weights_elsewhere_are_not_read(outside, tmp_path, location):
    (outside.parent / "weights.bin").rename(tmp_path / "weights.bin")
    redirect(outside, location.format(root=tmp_path))
    assert "which is not in its folder, so they were not read" in refusal(outside)


def test_a_link_to_weights_elsewhere_is_not_followed(outside, tmp_path):
    (outside.parent / "weights.bin").rename(tmp_path / "weights.bin")
    (outside.parent / "weights.bin").symlink_to(tmp_path / "weights.bin")
    assert "which is not in its folder" in refusal(outside)


def test_weights_that_are_missing_or_cut_short_are_said(outside):
    weights = outside.parent / "weights.bin"
    weights.write_bytes(weights.read_bytes()[:40])
    assert "has weights that cannot be read from 'weights.bin'" in refusal(outside)
    weights.unlink()
    assert "its folder has no such file" in refusal(outside)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda whole: whole[: len(whole) // 2], "is not a complete ONNX model"),
        (lambda _: b"\x08\x0e", "is not an ONNX model: it has no graph"),
        (lambda _: b"\xff" * 100, "is not a complete ONNX model"),
        (lambda _: b"hello", "is not a complete ONNX model"),
        (lambda _: b"", "is not an ONNX model: it is empty"),
    ],
)
def test_what_is_no_model_is_said(tmp_path, content, words):
    path = tmp_path / "layer.onnx"
    path.write_bytes(content(model().SerializeToString()))
    assert words in refusal(path)


def test_an_old_version_is_said():
    old = model()
    old.ir_version = 2
    with pytest.raises(
        LoadError, match="of IR version 2, and the oldest that is read is 3: export"
    ):
        load(old)


def test_the_name_of_a_file_with_a_nul_is_a_sentence(outside):
    redirect(outside, "a\0b")
    assert r"wants weights from 'a\x00b', which is not a file name" in refusal(outside)


def test_weights_of_any_size_in_other_files_are_not_read(outside):
    with (outside.parent / "weights.bin").open("wb") as file:
        file.truncate(1 << 42)
    message = refusal(outside)
    assert "has weights of 4,398,046,511,104 bytes in 'weights.bin', and at most" in message


@pytest.mark.parametrize("size", [10**4, 10**9, 10**15])
def test_a_constant_that_is_far_larger_than_its_file_is_not_made(tmp_path, size):
    graph = helper.make_graph(
        [
            helper.make_node("ConstantOfShape", ["size"], ["filled"]),
            helper.make_node("Add", ["x", "filled"], ["y"]),
        ],
        "filled",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [size])],
        [numpy_helper.from_array(np.array([size]), "size")],
    )
    path = tmp_path / "filled.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    if size < 10**6:
        assert load(path).module
    else:
        refusal(path)


# --- against ONNX --------------------------------------------------------------------------------


@pytest.mark.parametrize("is_file", [True, False])
def test_the_first_run_is_compared_with_the_reference_evaluator(outside, is_file):
    x = SOURCE.normal(size=(2, 4)).astype("float32")
    session = irviz.load(outside if is_file else model(), inputs={"x": x}, trust=True)
    assert str(session.run().origin).startswith("equals ONNX's reference evaluator, max |Δ|")
    weights = {name: value * 2 for name, value in session.call_inputs.params.items()}
    assert str(session.with_params(weights).run().origin).startswith("equals ONNX")


def test_a_file_that_is_added_to_a_session_is_compared_too():
    x = SOURCE.normal(size=(2, 4)).astype("float32")
    session = irviz.Session(MyModule, inputs={"x": x}, isolate=False)
    added = add_file(session, "layer.onnx", model().SerializeToString()).trust()
    assert str(added.run().origin).startswith("equals ONNX's reference evaluator, max |Δ|")


def test_wrong_numbers_are_said_with_the_first_node_that_differs(monkeypatch):
    """TVM's importer is made to leave out a sum."""
    from tvm.relax.frontend.onnx import onnx_frontend

    monkeypatch.setattr(
        onnx_frontend.Add,
        "get_converter",
        lambda _: lambda bb, inputs, *_: bb.emit(inputs[0] * inputs[0]),
    )
    x = SOURCE.normal(size=(2, 4)).astype("float32")
    verdict = irviz.load(model(), inputs={"x": x}).run().origin
    assert verdict.is_different
    assert "first at lv1 (relax.multiply)" in str(verdict)
    assert "imported from Add sum" in str(verdict)


def test_a_file_that_has_changed_is_not_compared(outside):
    x = SOURCE.normal(size=(2, 4)).astype("float32")
    session = irviz.load(outside, inputs={"x": x}, trust=True)
    outside.write_bytes(b"another one")
    assert "has changed since it was opened" in str(session.run().origin)


def named(nodes):
    """Return a model of Relus, each with its name and what is noted beside it."""
    made = []
    for index, (name, notes) in enumerate(nodes):
        made.append(helper.make_node("Relu", [f"v{index}"], [f"v{index + 1}"], name=name))
        for key, value in notes.items():
            made[-1].metadata_props.add(key=f"pkg.torch.onnx.{key}", value=value)
    ends = [
        helper.make_tensor_value_info(f"v{at}", onnx.TensorProto.FLOAT, [4])
        for at in (0, len(made))
    ]
    graph = helper.make_graph(made, "layers", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_the_names_of_nodes_tell_their_layers():
    scopes = "['', 'layer1.0', 'layer1.0.conv1', 'relu']"
    kinds = "['a.Model', 'a.Block', 'torch.Conv2d', 'aten.relu']"
    session = irviz.load(
        named(
            [
                ("node_1", {"name_scopes": scopes, "class_hierarchy": kinds}),
                ("/layer1/layer1.0/relu/Relu", {}),
                ("Relu_7", {}),
                ("/fc/Relu", {}),
            ]
        )
    )
    nodes = [node for node in session.graph().nodes if node.callee]
    parts = [[tuple(part) for part in node.layers[0]] for node in nodes]
    assert parts[0] == [("layer1.0", "Block"), ("conv1", "Conv2d")]
    assert parts[1] == [("layer1", ""), ("0", ""), ("relu", "")]
    assert parts[2] == parts[3] == [("fc", "")]


def test_results_that_nobody_uses_are_of_the_layer_that_makes_them():
    own = [helper.make_tensor(name, onnx.TensorProto.FLOAT, [3], [1, 1, 1]) for name in "abcd"]
    nodes = [
        helper.make_node("BatchNormalization", ["x", *"abcd"], ["y"], "/bn1/BatchNormalization"),
        helper.make_node("Relu", ["y"], ["z"], "/act/Relu"),
    ]
    ends = [
        helper.make_tensor_value_info(one, onnx.TensorProto.FLOAT, [1, 3, 4, 4]) for one in "xz"
    ]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], own)
    session = irviz.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    items = [one for one in session.graph().nodes if one.kind is NodeKind.TUPLE_GET_ITEM]
    assert len(items) == 3
    assert {one.layers[0][0].name for one in items} == {"bn1"}


def test_a_node_tells_which_node_of_onnx_it_comes_from_and_which_output_it_makes():
    gemm = helper.make_node("Gemm", ["x", "w", "b"], ["y"], "/fc/Gemm")
    nodes = [gemm, helper.make_node("Relu", ["y"], ["z"])]
    ends = [helper.make_tensor_value_info(one, onnx.TensorProto.FLOAT, [2, 2]) for one in "xz"]
    own = [helper.make_tensor("w", onnx.TensorProto.FLOAT, [2, 2], [1] * 4)]
    own.append(helper.make_tensor("b", onnx.TensorProto.FLOAT, [2], [1] * 2))
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], own)
    session = irviz.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    notes = source_notes(session.current, "main")
    bound = [node for node in session.graph().nodes if node.callee]
    assert [notes[node.id] for node in bound] == ["Gemm /fc/Gemm", "Gemm /fc/Gemm → y", "Relu z"]
    first, last = (session.history(node.id) for node in (bound[0], bound[-1]))
    assert "Gemm /fc/Gemm" in str(first)
    assert "Relu z" in str(last)


def test_a_normalisation_in_a_dtype_that_tvm_lacks_is_computed_in_float32_and_that_is_said():
    dtype = onnx.TensorProto.BFLOAT16
    sizes = {"x": [2, 8], "scale": [8], "y": [2, 8]}
    x, scale, y = (
        helper.make_tensor_value_info(*one)
        for one in ((name, dtype, size) for name, size in sizes.items())
    )
    node = helper.make_node("LayerNormalization", ["x", "scale"], ["y"], axis=-1)
    graph = helper.make_graph([node], "normalised", [x, scale], [y])
    with pytest.warns(UserWarning, match="computed in float32"):
        session = irviz.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert session.run().outputs[0].dtype.name == "bfloat16"
    assert not session.run().origin.is_different


# --- nodes that TVM lacks -----------------------------------------------------------------------


def one_node(node, inputs, outputs, opset=18, **weights):
    """Return a model of a node between two of Relu, of x and y; shapes are given by name."""
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["above"]),
            node,
            helper.make_node("Relu", ["below"], ["y"]),
        ],
        "one",
        [helper.make_tensor_value_info(name, *each) for name, each in inputs.items()],
        [helper.make_tensor_value_info(name, *each) for name, each in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


FLOAT, INT = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
LSTM = one_node(
    helper.make_node("LSTM", ["above", "w", "r", "", "", "h"], ["below", "", ""], hidden_size=2),
    {"x": (FLOAT, [3, 1, 4])},
    {"y": (FLOAT, [3, 1, 1, 2])},
    w=SOURCE.normal(size=(1, 8, 4)).astype("float32"),
    r=SOURCE.normal(size=(1, 8, 2)).astype("float32"),
    h=np.ones((1, 1, 2), "float32"),
)
TOP = one_node(
    helper.make_node("TopK", ["above", "k"], ["below", "at"], axis=-1, largest=0),
    {"x": (FLOAT, ["rows", 4]), "k": (INT, [1])},
    {"y": (FLOAT, None), "at": (INT, None)},
)
X34 = SOURCE.normal(size=(3, 4)).astype("float32")


def equal_to_onnx(session):
    result = session.run()
    assert str(result.origin).startswith("equals ONNX's reference evaluator"), result.origin
    return result


@pytest.mark.filterwarnings("ignore:.*ONNX's reference evaluator computes it")
def test_onnx_computes_what_tvm_lacks_and_the_rest_of_the_model_is_traced_and_compared():
    with pytest.raises(LoadError, match=r"LSTM of node 'below'.*lets ONNX's reference evaluator c"):
        irviz.load(LSTM)
    session = irviz.load(LSTM, inputs={"x": X34.reshape(3, 1, 4)}, missing="opaque")
    assert equal_to_onnx(session).outputs[0].any()
    (node,) = (one for one in session.graph().nodes if one.callee == "onnx.LSTM")
    assert node.literals[0].text == (
        "'x0, x1, x2, None, None, x3, hidden_size=2, opset=18, outputs=[0]'"
    )
    later = session.apply("LegalizeOps").apply("FuseOps").apply("FuseTIR")
    assert later.compare("3", "0").verdict.value == "equal"
    assert len(session.trace().visits) >= 3


@pytest.mark.filterwarnings("ignore:.*ONNX's reference evaluator computes it")
def test_sizes_that_depend_on_numbers_are_those_that_onnx_gives(tmp_path):
    onnx.save(TOP, tmp_path / "top.onnx")
    session = irviz.load(
        tmp_path / "top.onnx", inputs={"x": X34, "k": np.array([2])}, missing="opaque"
    )
    confined = session.run()
    assert confined.is_confined or not irviz.worker.sandbox.can_confine()
    values, at = equal_to_onnx(session.trust()).outputs
    assert values.shape == at.shape == (1, 3, 2)
    np.testing.assert_array_equal(values, confined.outputs[0])
    session.save(tmp_path / "work.irviz")
    again = irviz.load(tmp_path / "work.irviz").with_inputs({"x": X34[:2], "k": np.array([3])})
    np.testing.assert_array_equal(again.run().outputs[0][0], np.sort(np.maximum(X34[:2], 0))[:, :3])


@pytest.mark.filterwarnings("ignore:.*ONNX's reference evaluator computes it")
def test_results_that_tvm_leaves_out_are_computed_by_onnx():
    pool = one_node(
        helper.make_node("MaxPool", ["above"], ["below", "at"], kernel_shape=[2], strides=[2]),
        {"x": (FLOAT, [1, 3, 4])},
        {"y": (FLOAT, [1, 3, 2]), "at": (INT, [1, 3, 2])},
    )
    session = irviz.load(pool, inputs={"x": X34[None]}, missing="opaque")
    assert [output.shape for output in equal_to_onnx(session).outputs] == [(1, 1, 3, 2)] * 2


@pytest.mark.filterwarnings("ignore:.*ONNX's reference evaluator computes it")
def test_a_result_of_unknown_rank_is_drawn_and_the_build_says_what_tvm_cannot_do_with_it():
    total = one_node(
        helper.make_node("ReduceL1", ["above", "axes"], ["below"], keepdims=0),
        {"x": (FLOAT, [3, 4]), "axes": (INT, [1])},
        {"y": (FLOAT, None)},
    )
    session = irviz.load(total, inputs={"x": X34, "axes": np.array([1])}, missing="opaque")
    assert session.draw().svg
    with pytest.raises(RunError, match=r"TVM has not lowered R\.nn\.relu"):
        session.run()


def test_nodes_of_other_domains_and_with_graphs_are_only_drawn():
    own = one_node(
        helper.make_node("Celu", ["above"], ["below"], domain="mine"),
        {"x": (FLOAT, [3, 4])},
        {"y": (FLOAT, [3, 4]), "below": (FLOAT, [3, 4])},
    )
    with pytest.raises(LoadError, match=r"Celu of node 'below'.* only draws it"):
        irviz.load(own)
    with pytest.warns(UserWarning, match="the model can be drawn, but not run"):
        session = irviz.load(own, inputs={"x": X34}, missing="opaque")
    assert "onnx.mine.Celu" in {node.callee for node in session.graph().nodes}
    with pytest.raises(RunError, match=r"onnx\.mine\.Celu.* which nothing defines"):
        session.run()


def test_a_node_whose_type_is_not_known_is_refused():
    node = helper.make_node("Mine", ["above"], ["below"], domain="mine")
    made = one_node(node, {"x": (FLOAT, [3])}, {"y": (FLOAT, [3])})
    with pytest.raises(LoadError, match="'below' is not known to be a tensor of numbers: give its"):
        irviz.load(made, missing="opaque")


def calling(callee, text):
    """Return a session of TVMScript that calls ONNX."""
    script = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = R.call_dps_packed("{callee}", (x, R.str("{text}")), out_ty=R.Tensor((2,), "float32"))
        return y
"""
    module = load_content(script.encode(), "module.py").module
    return irviz.load(module, inputs=np.array([-1, 2], "float32"))


@pytest.mark.parametrize(
    ("callee", "text", "words"),
    [
        ("onnx.Celu", "x0", r"ONNX's reference evaluator cannot compute onnx.Celu\('x0'\): .*is y"),
        ("onnx.Celu", "__import__('os'), opset=18, outputs=[0]", "ValueError"),
        ("onnx.Nonsense", "x0, opset=18, outputs=[0]", "cannot compute onnx.Nonsense"),
        ("onnx.Shape", "x0, opset=18, outputs=[0]", r"it gives \(1,\) for \(2,\)"),
        ("onnx.Loop", "x0, opset=18, outputs=[0]", "which nothing defines"),
    ],
)
def test_what_is_no_call_of_an_operator_of_onnx_is_refused(callee, text, words):
    right = calling("onnx.Celu", "x0, alpha=2.0, opset=18, outputs=[0]").run()
    np.testing.assert_allclose(right.outputs[0][0], [2 * np.expm1(-0.5), 2], rtol=1e-5)
    with pytest.raises(RunError, match=words):
        calling(callee, text).run()


def test_without_onnx_an_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "onnx"]:
        monkeypatch.setitem(sys.modules, name, None)
    session = calling("onnx.Selu", "x0, opset=18, outputs=[0]")
    session = irviz.Session(
        session.current.module, inputs=session.call_inputs.inputs, isolate=False
    )
    try:
        with pytest.raises(RunError, match=r"onnx\.Selu.*install irviz\[onnx\].*it is y"):
            session.run()
    finally:
        tvm_ffi.registry.remove_global_func("onnx.Selu")
