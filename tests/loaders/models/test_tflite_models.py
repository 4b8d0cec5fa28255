"""TensorFlow Lite models open with their layers and compute the right values."""

import numpy as np
import pytest

import irviz
from irviz.errors import LoadError

pytestmark = pytest.mark.worker

tflite = pytest.importorskip(
    "tflite", reason="install tflite to test its importer: pip install 'irviz[tflite]'"
)

SOURCE = np.random.default_rng(0)
WEIGHT = SOURCE.normal(size=(8, 4)).astype("float32")
BIAS = SOURCE.normal(size=8).astype("float32")
DENSE, RELU, SHAPE = (
    getattr(tflite.BuiltinOperator, name) for name in ("FULLY_CONNECTED", "RELU", "SHAPE")
)


def model(
    operators=((DENSE, (0, 1, 2), 3), (RELU, (3,), 4)),
    names=("x", "w", "b", "net/dense/MatMul;net/dense/BiasAdd", "net/act/Relu"),
):
    """Return the file of relu(x @ weight.T + bias), or of other operators on the same tensors."""
    import flatbuffers

    builder = flatbuffers.Builder(0)

    def vector(kind, field, values, prepend="UOffsetTRelative"):
        getattr(tflite, f"{kind}Start{field}Vector")(builder, len(values))
        for value in reversed(values):
            getattr(builder, f"Prepend{prepend}")(value)
        return builder.EndVector()

    def table(kind, **fields):
        getattr(tflite, f"{kind}Start")(builder)
        for field, value in fields.items():
            getattr(tflite, f"{kind}Add{field}")(builder, value)
        return getattr(tflite, f"{kind}End")(builder)

    constants = {1: WEIGHT, 2: BIAS}
    buffers = [table("Buffer")]
    tensors = []
    for at, name in enumerate(names):
        shape = constants[at].shape if at in constants else (1, 4 if at == 0 else 8)
        if at in constants:
            data = builder.CreateByteVector(constants[at].tobytes())
            buffers.append(table("Buffer", Data=data))
        tensor = {
            "Shape": vector("Tensor", "Shape", shape, "Int32"),
            "Type": tflite.TensorType.FLOAT32,
            "Buffer": len(buffers) - 1 if at in constants else 0,
            "Name": builder.CreateString(name),
        }
        tensors.append(table("Tensor", **tensor))
    codes = [
        table("OperatorCode", DeprecatedBuiltinCode=code, BuiltinCode=code, Version=1)
        for code, _, _ in operators
    ]
    options = table("FullyConnectedOptions")
    steps = []
    for at, (code, inputs, output) in enumerate(operators):
        operator = {
            "OpcodeIndex": at,
            "Inputs": vector("Operator", "Inputs", inputs, "Int32"),
            "Outputs": vector("Operator", "Outputs", [output], "Int32"),
        }
        if code == DENSE:
            operator["BuiltinOptionsType"] = tflite.BuiltinOptions.FullyConnectedOptions
            operator["BuiltinOptions"] = options
        steps.append(table("Operator", **operator))
    graph = table(
        "SubGraph",
        Tensors=vector("SubGraph", "Tensors", tensors),
        Inputs=vector("SubGraph", "Inputs", [0], "Int32"),
        Outputs=vector("SubGraph", "Outputs", [operators[-1][2]], "Int32"),
        Operators=vector("SubGraph", "Operators", steps),
    )
    made = table(
        "Model",
        Version=3,
        OperatorCodes=vector("Model", "OperatorCodes", codes),
        Subgraphs=vector("Model", "Subgraphs", [graph]),
        Buffers=vector("Model", "Buffers", buffers),
    )
    builder.Finish(made, b"TFL3")
    return bytes(builder.Output())


def load(tmp_path, content, name="m.tflite"):
    (tmp_path / name).write_bytes(content)
    return irviz.load(tmp_path / name)


@pytest.mark.build
@pytest.mark.parametrize("name", ["m.tflite", "downloaded"])
def test_a_file_of_any_name_computes_what_its_operators_say(tmp_path, name):
    session = load(tmp_path, model(), name)
    x = SOURCE.normal(size=(1, 1, 4)).astype("float32")
    (output,) = session.run({"x": x}).outputs
    expected = np.maximum(x[0] @ WEIGHT.T + BIAS, 0)
    np.testing.assert_allclose(output[0], expected, rtol=1e-5, atol=1e-5)


def test_the_names_of_tensors_tell_the_layers(tmp_path):
    nodes = [node for node in load(tmp_path, model()).graph().nodes if node.callee]
    layers = {str(node.callee): [part.name for part in node.layers[0]] for node in nodes}
    assert layers["relax.add"] == ["net", "dense"]
    assert layers["relax.nn.relu"] == ["net", "act"]


def refusal(tmp_path, content):
    with pytest.raises(LoadError) as caught:
        load(tmp_path, content)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_tvm_cannot_import_is_said_with_the_way_out(tmp_path):
    sizes = refusal(tmp_path, model([(SHAPE, (0,), 3), (tflite.BuiltinOperator.CALL, (3,), 4)]))
    assert "cannot be imported by TVM" in sizes
    assert sizes.endswith("convert it with a fixed batch size")
    other = refusal(tmp_path, model([(tflite.BuiltinOperator.CALL, (0,), 3)]))
    assert "fixed batch size" not in other


@pytest.mark.parametrize("keep", [8, 100, 300])
def test_a_file_that_is_cut_short_is_said(tmp_path, keep):
    assert "is not a complete TensorFlow Lite model" in refusal(tmp_path, model()[:keep])
