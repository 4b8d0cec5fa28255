"""Report the nodes that TVM's ONNX importer cannot convert, or import them as opaque calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from tvm import relax

from irviz.errors import LoadError
from irviz.loaders.file_errors import one_line
from irviz.loaders.loaded_model import Missing

if TYPE_CHECKING:
    import onnx
    from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter


_WHOLE, _MOST_SIZES = ("int64", "int32"), 16


def watch(importer: ONNXGraphImporter, model: onnx.ModelProto, missing: Missing) -> list[str]:
    """Make an importer raise LoadError for a node that it cannot convert, or import it as opaque.

    It also imports sizes as constants. Return a list that descriptions of opaque nodes are added
    to.
    """
    opaque: list[str] = []
    nodes, convert = _in_order(model.graph), importer._convert_operator

    def converted(name: str, inputs: Any, attributes: Any, opset: int) -> relax.Expr:
        node = next(nodes)
        try:
            return convert(name, inputs, attributes, opset)
        except MemoryError:
            raise
        except Exception as failure:  # the importer raises errors of any class
            if missing == "error":
                raise LoadError(
                    f"{_described(node)}: {one_line(failure).rstrip('.')}; "
                    "missing='opaque' opens the model with such nodes as calls without a definition"
                ) from failure
        opaque.append(_described(node))
        return _opaque_call(importer, model, node, inputs)

    importer._convert_operator = converted
    _keep_sizes(importer)
    importer._check_for_unsupported_ops = lambda _: None  # which says neither node nor layer
    return opaque


def _keep_sizes(importer: ONNXGraphImporter) -> None:
    """Make an importer turn initializers of few integers into constants instead of parameters.

    They are sizes and indices. The value of a parameter is unknown, and the code that TVM generates
    for unknown sizes takes LLVM hours to compile.
    """
    parse = importer._parse_graph_initializers

    def parsed(graph: onnx.GraphProto) -> None:
        parse(graph)
        for tensor in graph.initializer:
            name = tensor.name.removeprefix("onnx::")
            array = importer._params[name][1]
            if str(array.dtype) in _WHOLE and prod(tensor.dims) <= _MOST_SIZES:
                del importer._params[name]
                importer._nodes[tensor.name] = relax.const(array)

    importer._parse_graph_initializers = parsed


def _in_order(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes in the order in which the importer converts them."""
    for node in graph.node:
        if node.op_type != "If":
            yield node
            continue
        branches = {one.name: one.g for one in node.attribute}
        yield from _in_order(branches["then_branch"])
        yield from _in_order(branches["else_branch"])


def _described(node: onnx.NodeProto) -> str:
    return f"{node.op_type} of node {node.name or node.output[0]!r}"


def _opaque_call(
    importer: ONNXGraphImporter, model: onnx.ModelProto, node: onnx.NodeProto, inputs: Any
) -> relax.Expr:
    """Return a call of a function that does not exist, with the node's operands and types."""
    known = _types(model)
    missing = [name for name in node.output if name and name not in known]
    if missing:
        raise LoadError(
            f"{_described(node)} cannot be an opaque call, as the type of {missing[0]!r} is not "
            "known: give its shape in the model's value_info"
        )
    sizes = {
        str(size): size
        for variable in importer._inputs.values()
        if isinstance(variable, relax.Var) and variable.ty.shape is not None
        for size in variable.ty.shape
    }
    types = [_tensor_type(known[name], sizes, node) for name in node.output if name]
    operands = [one for one in inputs if isinstance(one, relax.Expr)]
    call = relax.call_dps_packed(
        f"onnx.{node.op_type}", operands, types[0] if len(types) == 1 else types
    )
    made = importer.bb.emit(call)
    if len(types) == len(node.output):
        return made
    parts = iter(range(len(types)))  # outputs that are left out are nothing
    return relax.Tuple(
        [
            (importer.bb.emit(relax.TupleGetItem(made, next(parts))) if len(types) > 1 else made)
            if name
            else relax.Tuple([])
            for name in node.output
        ]
    )


def _types(model: onnx.ModelProto) -> Mapping[str, onnx.TypeProto.Tensor]:
    from onnx.shape_inference import infer_shapes

    graph = infer_shapes(model).graph
    return {
        one.name: one.type.tensor_type
        for one in (*graph.value_info, *graph.output)
        if one.type.HasField("tensor_type") and one.type.tensor_type.HasField("shape")
    }


def _tensor_type(
    tensor: onnx.TypeProto.Tensor, sizes: Mapping[str, Any], node: onnx.NodeProto
) -> relax.TensorType:
    from onnx.helper import tensor_dtype_to_np_dtype

    shape = [
        one.dim_value if one.HasField("dim_value") else sizes.get(one.dim_param)
        for one in tensor.shape.dim
    ]
    if None in shape:
        raise LoadError(f"{_described(node)} has a size that is not known, so it cannot be opaque")
    return relax.TensorType(shape, str(tensor_dtype_to_np_dtype(tensor.elem_type)))
