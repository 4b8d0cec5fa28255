"""Load ONNX models."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm
from tvm import ir, relax, tirx

from irviz.errors import LoadError, UnsupportedOperatorError
from irviz.ir import framework_calls
from irviz.ir.parameter_values import shared_tensor
from irviz.ir.tvmscript import with_source_lines
from irviz.loaders.file_limits import MAX_BYTES, FileError, brief, file_errors, file_size, one_line
from irviz.loaders.loaded_model import (
    Loaded,
    Missing,
    OriginFile,
    detach_weights,
    missing_advice,
    missing_notes,
)
from irviz.loaders.models.imported_layers import onnx_places
from irviz.loaders.models.importer_workarounds import mend
from irviz.model.graph.graph import NodeId
from irviz.model.runs.execution_trace import Array
from irviz.model.runs.run_result import Origin, OriginRun, ValueRecorder
from irviz.units import first_names

if TYPE_CHECKING:
    import onnx
    from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

_OLDEST = 3
_MAX_MESSAGE = 2**31 - 1
"""Protobuf's limit on the size of a message, in bytes."""


def from_onnx_file(content: bytes, path: Path | None, missing: Missing = "error") -> Loaded:
    """Return the model in an ONNX file; raise LoadError for others. Runs in the worker.

    External weights are read from the folder of `path` and from nowhere else.
    """
    model = _model(content)
    weights = _external_weights(model, path and path.parent)
    loaded, variables = _imported(inlined(model), missing, weights)
    if not variables:
        return loaded
    return replace(loaded, origin=OnnxOrigin(OriginFile.of(content, path), variables))


def from_model(model: onnx.ModelProto, missing: Missing = "error") -> Loaded:
    """Return an ONNX model as TVM imports it, with its weights as parameters.

    Raises LoadError if TVM cannot import it.
    """
    loaded, variables = _imported(inlined(model), missing)
    if not variables or model.ByteSize() > _MAX_MESSAGE or external_locations(model):
        return loaded
    content = OriginFile.of(model.SerializeToString(), None)
    return replace(loaded, origin=OnnxOrigin(content, variables))


def _imported(
    model: onnx.ModelProto, missing: Missing, weights: Mapping[str, Array] | None = None
) -> tuple[Loaded, dict[str, str]]:
    """Return the imported model, and the names of its variables by the names of the ONNX values.

    Without an origin that can be run, there are no names. `weights` are the initializers whose
    values are not in the model, by name.
    """
    from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter

    importer = ONNXGraphImporter(None, "float32", keep_params_in_input=True, sanitize=True)
    opaque, computed = watch(importer, model, missing)
    _share_arrays(importer, weights or {})
    opsets = (one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # by onnx's checker and by the importer
        try:
            if model.ir_version < _OLDEST:
                raise ValueError(
                    f"it is of IR version {model.ir_version}, and the oldest that is read is "
                    f"{_OLDEST}: export it again, with a newer ONNX"
                )
            mod = importer.from_onnx(model.graph, next(opsets, 1))
        except MemoryError:
            raise
        except Exception as failure:  # the importer raises errors of any class
            kind = type(failure) if isinstance(failure, LoadError) else LoadError
            words = one_line(failure)
            raise kind(f"the ONNX model cannot be imported by TVM: {words}") from failure
    values = importer._nodes.items()  # where the importer keeps them
    variables = {name: value.name for name, value in values if isinstance(value, relax.Var)}
    layers, places = onnx_places(mod, model.graph, importer._nodes)
    mod, notes = mend(mod)
    mod = with_source_lines(mod, places)
    notes = (*missing_notes(opaque, computed, framework_calls.EVALUATOR), *notes)
    return Loaded(*detach_weights(mod), notes=notes, layers=layers), {} if opaque else variables


# --- Report the nodes that TVM's ONNX importer cannot convert, or import them as opaque calls ----


_ALIGNMENT = 64
"""Of the tensors of TVM."""
_WHOLE, _MOST_SIZES = ("int64", "int32"), 16


def watch(
    importer: ONNXGraphImporter, model: onnx.ModelProto, missing: Missing
) -> tuple[list[str], list[str]]:
    """Make an importer raise LoadError for a node that it cannot convert, or import it as opaque.

    It also imports sizes as constants. Return two lists that descriptions of opaque nodes are added
    to: those that nothing computes, and those that ONNX computes.
    """
    opaque, computed = list[str](), list[str]()
    sizes = dict[str, Any]()
    types = cache(lambda: _types(model))
    nodes, convert = _in_order(model.graph), importer._convert_operator

    def converted(name: str, inputs: Any, attributes: Any, opset: int) -> relax.Expr:
        node = next(nodes)
        try:
            made = _with_mask(importer, name, convert(name, inputs, attributes, opset))
            if (lacking := len(node.output) - _count(made)) > 0:
                raise ValueError(f"{lacking} of its {len(node.output)} results are left out")
            return made
        except MemoryError:
            raise
        except Exception as failure:  # the importer raises errors of any class
            by = framework_calls.computed_by(_callee(node))
            if missing == "error":
                reason = one_line(failure).rstrip(".")
                raise UnsupportedOperatorError(
                    f"{_described(node)}: {reason}; {missing_advice(by)}"
                ) from failure
        (computed if by else opaque).append(_described(node))
        return _opaque_call(importer, types(), sizes, node, inputs, opset)

    importer._convert_operator = converted
    _keep_sizes(importer)
    importer._check_for_unsupported_ops = lambda _: None  # which says neither node nor layer
    return opaque, computed


def _count(result: relax.Expr) -> int:
    if isinstance(result, relax.Tuple):
        return len(result.fields)
    return len(result.ty.fields) if isinstance(result.ty, relax.TupleType) else 1


def _with_mask(importer: ONNXGraphImporter, name: str, result: relax.Expr) -> relax.Expr:
    """Give a Dropout's mask the dtype that it has in ONNX."""
    if name != "Dropout" or not isinstance(result.ty, relax.TupleType):
        return result
    kept, mask = (importer.bb.emit(relax.TupleGetItem(result, at)) for at in range(2))
    return relax.Tuple([kept, importer.bb.emit(relax.op.astype(mask, "bool"))])


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


def _share_arrays(importer: ONNXGraphImporter, weights: Mapping[str, Array]) -> None:
    """Make an importer take initializers where they are mapped, as it would copy each twice."""
    parse = importer._parse_array

    def parsed(tensor: onnx.TensorProto) -> tvm.runtime.Tensor:
        is_mapped = tensor.data_location == tensor.EXTERNAL  # others may have its name
        found = weights.get(tensor.name) if is_mapped else None
        return parse(tensor) if found is None else shared_tensor(found.reshape(tuple(tensor.dims)))

    importer._parse_array = parsed


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


def _callee(node: onnx.NodeProto) -> str:
    is_own = node.domain in ("", "ai.onnx")
    return f"{framework_calls.ONNX_PREFIX}{'' if is_own else f'{node.domain}.'}{node.op_type}"


def _opaque_call(
    importer: ONNXGraphImporter,
    known: Mapping[str, onnx.TypeProto.Tensor],
    sizes: dict[str, tirx.Var],
    node: onnx.NodeProto,
    inputs: Sequence[relax.Expr | None],
    opset: int,
) -> relax.Expr:
    """Return a call that ONNX computes, or of a function that does not exist.

    Its results have the `known` types; new symbols in them are added to `sizes`. Raises LoadError
    for operands and results that are not tensors.
    """
    from onnx.helper import get_attribute_value

    outputs = [at for at, name in enumerate(node.output) if name]
    unknown = next((node.output[at] for at in outputs if node.output[at] not in known), None)
    if unknown is not None:
        raise LoadError(
            f"{_described(node)} cannot be an opaque call, as {unknown!r} is not known to be a "
            "tensor of numbers: give its type in the model's value_info"
        )
    if not all(isinstance(one, relax.Expr | None) for one in inputs):
        raise LoadError(f"{_described(node)} cannot be opaque, as an operand is not a tensor")
    for variable in importer._inputs.values():
        if isinstance(variable, relax.Var) and variable.ty.shape is not None:
            sizes |= {str(one): one for one in variable.ty.shape}
    before = len(sizes)
    types = [_tensor_type(known[node.output[at]], sizes) for at in outputs]
    operands = [one for one in inputs if one is not None]
    names = (f"{framework_calls.REAL}{number}" for number in range(len(operands)))
    callee = _callee(node)
    if framework_calls.computed_by(callee):
        named = {one.name: get_attribute_value(one) for one in node.attribute}
        named |= {"opset": opset, "outputs": outputs}
        try:
            text = framework_calls.written_arguments(
                inputs, named, lambda one: next(names) if isinstance(one, relax.Expr) else ""
            )
        except ValueError as failure:
            raise LoadError(f"{_described(node)} cannot be opaque: {failure}") from failure
        operands.append(ir.StringImm(text))
    made = framework_calls.emitted_call(
        importer.bb,
        callee,
        operands,
        types[0] if len(types) == 1 else types,
        has_new_sizes=before != len(sizes) or any(one.shape is None for one in types),
    )
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
    """Return the types of the tensors whose numbers TVM has, by name."""
    from onnx.shape_inference import infer_shapes

    graph = infer_shapes(model).graph
    return {
        one.name: one.type.tensor_type
        for one in (*graph.value_info, *graph.output)
        if one.type.tensor_type.elem_type not in (_UNDEFINED, _STRING)
    }


_UNDEFINED, _STRING = 0, 8


def _tensor_type(tensor: onnx.TypeProto.Tensor, sizes: dict[str, Any]) -> relax.TensorType:
    """Return a tensor's type; a size that is not known is a new symbol."""
    from onnx.helper import tensor_dtype_to_np_dtype

    dtype = str(tensor_dtype_to_np_dtype(tensor.elem_type))
    if not tensor.HasField("shape"):
        return relax.TensorType(dtype=dtype, ndim=-1)
    shape = []
    for one in tensor.shape.dim:
        name = one.dim_param or f"unknown_{len(sizes)}"
        if not one.HasField("dim_value") and name not in sizes:
            sizes[name] = tirx.Var(name, "int64")
        shape.append(one.dim_value if one.HasField("dim_value") else sizes[name])
    return relax.TensorType(shape, dtype)


# --- Run an ONNX model by ONNX's own reference evaluator, beside the imported module -------------


@dataclass(frozen=True, eq=False)
class OnnxOrigin(Origin):
    """An ONNX model, which is read again in the worker.

    `variables` are the names of the module's variables, by the names of the model's values.
    """

    file: OriginFile
    variables: Mapping[str, str]
    name = framework_calls.EVALUATOR
    is_isolated = True

    def run(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Run the model; raise RunError if its file has been changed."""
        from onnx.reference import ReferenceEvaluator

        model = _model(self.file.read())
        _external_weights(model, self.file.path and self.file.path.parent, is_mapped=False)
        model = inlined(model)
        weights = {tensor.name for tensor in model.graph.initializer}
        self._replace_weights(model, arguments)
        feeds = {
            one.name: arguments[self.variables[one.name]]
            for one in model.graph.input
            if one.name not in weights
        }
        found = dict(ReferenceEvaluator(model).run(None, feeds, intermediate=True))
        recorder, labels = ValueRecorder(budget), dict[NodeId, str]()
        for node in model.graph.node:
            for value in node.output:
                variable = self.variables.get(value)
                if variable is not None and isinstance(found.get(value), np.ndarray):
                    recorder.add(NodeId(variable), [found[value]])
                    labels[NodeId(variable)] = f"{node.op_type} {node.name or value}"
        outputs = tuple(np.asarray(found[one.name]) for one in model.graph.output)
        return OriginRun(outputs, recorder.trace("main"), labels)

    def _replace_weights(self, model: onnx.ModelProto, arguments: Mapping[str, Array]) -> None:
        from onnx import numpy_helper

        for tensor in model.graph.initializer:
            given = arguments.get(self.variables.get(tensor.name, ""))
            if given is not None and not np.array_equal(given, numpy_helper.to_array(tensor)):
                tensor.CopyFrom(numpy_helper.from_array(np.asarray(given), tensor.name))


# --- Read ONNX files, with external weights from the same folder ---------------------------------


_AGAIN = "save it again with onnx.save(model, path)"
NEEDED = "it needs ONNX: install irviz[onnx], as in pip install 'irviz[onnx]'"


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with calls of its own functions replaced by their nodes."""
    if not model.functions:
        return model
    from onnx.inliner import inline_local_functions

    try:
        return inline_local_functions(model, convert_version=True)
    except Exception:  # of a version that cannot be converted: the importer names the call
        return model


def external_bytes(content: bytes, folder: Path | None) -> int:
    """Return the size of the files with a model's external weights; raise LoadError as above."""
    return sum(map(file_size, _places(external_locations(_model(content)), folder)))


def _model(content: bytes) -> onnx.ModelProto:
    """Return the model in a file, without its external weights."""
    try:
        import onnx
    except ImportError:
        raise FileError(f"is an ONNX model: {NEEDED}") from None
    with file_errors("is not a complete ONNX model", _AGAIN):
        model = onnx.load_model_from_string(content)
    if not model.graph.node and not model.graph.output:
        raise FileError(
            "is not an ONNX model: it has no graph; write one with onnx.save(model, path)"
        )
    return model


def external_locations(model: onnx.ModelProto) -> list[str]:
    """Return the locations of external weights."""
    external = (one for one in _tensors(model.graph) if one.data_location == one.EXTERNAL)
    entries = ({each.key: each.value for each in one.external_data} for one in external)
    return sorted({str(known.get("location", "")) for known in entries})


def _external_weights(
    model: onnx.ModelProto, folder: Path | None, *, is_mapped: bool = True
) -> dict[str, Array]:
    """Read weights from other files, which must be in the model's folder.

    Where they may be mapped, initializers are returned as arrays in the mapped files, by name, and
    the model stays without them: they can take more than all that is done to open it.
    """
    from onnx.external_data_helper import load_external_data_for_tensor

    locations = external_locations(model)
    places = _places(locations, folder)
    total = sum(map(file_size, places))
    if total > MAX_BYTES:
        raise FileError(
            f"has weights of {total:,} bytes in {_brief(locations)}, and at most {MAX_BYTES:,} "
            "are read: give a smaller model"
        )
    if not locations:
        return {}
    files = dict(zip(locations, places, strict=True))
    mapped, found = dict[Path, Array](), dict[str, Array]()
    with file_errors(f"has weights that cannot be read from {_brief(locations)}", _AGAIN):
        most = len(model.graph.initializer) if is_mapped else 0
        for number, tensor in enumerate(_tensors(model.graph)):  # the initializers come first
            if tensor.data_location != tensor.EXTERNAL:
                continue
            array = _mapped(tensor, files, mapped) if number < most else None
            if array is None:
                load_external_data_for_tensor(tensor, str(folder))
            else:
                found[tensor.name] = array
    return found


def _mapped(
    tensor: onnx.TensorProto, files: Mapping[str, Path], mapped: dict[Path, Array]
) -> Array | None:
    """Return a tensor as an array in its mapped file, None if NumPy does not read it as it is."""
    from onnx.external_data_helper import ExternalDataInfo
    from onnx.helper import tensor_dtype_to_np_dtype

    info, dtype = ExternalDataInfo(tensor), tensor_dtype_to_np_dtype(tensor.data_type)
    file, size = files[info.location], prod(tensor.dims) * dtype.itemsize
    begin = info.offset or 0
    length = file_size(file) - begin if info.length is None else info.length
    if dtype.isbuiltin != 1 or dtype.hasobject or not 0 < size == length or begin % _ALIGNMENT:
        return None
    if file not in mapped:
        mapped[file] = np.memmap(file, np.uint8, "c")
    part = mapped[file][begin : begin + size]
    return part.view(np.ndarray).view(dtype) if part.size == size else None


def _places(locations: list[str], folder: Path | None) -> list[Path]:
    """Return the files at these locations; raise FileError unless they are in the folder."""
    if not locations:
        return []
    if folder is None:
        raise FileError(f"keeps weights in other files ({_brief(locations)}): open it by its path")
    home = folder.resolve()
    places = []
    for location in locations:
        if "\0" in location:
            raise FileError(
                f"wants weights from {brief(location)}, which is not a file name: {_AGAIN}"
            )
        parts = {*PurePosixPath(location).parts, *PureWindowsPath(location).parts}
        is_absolute = PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor
        place = home / location
        if is_absolute or ".." in parts or not place.resolve().is_relative_to(home):
            raise FileError(
                f"wants weights from {brief(location)}, which is not in its folder, so they were "
                f"not read: {_AGAIN}"
            )
        if not place.is_file():
            raise FileError(
                f"wants weights from {brief(location)}, and its folder has no such file: put it "
                "there"
            )
        places.append(place)
    return places


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor of a graph, and of the graphs inside its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from attribute.tensors
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)
            for inner in attribute.graphs:
                yield from _tensors(inner)


def _brief(locations: Sequence[str]) -> str:
    return first_names([*map(brief, locations)], 1)
