"""Import exported programs by TVM's importer, and name what it lacks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tvm import ir, relax, tirx

from irviz.errors import LoadError
from irviz.loaders.file_errors import one_line
from irviz.loaders.loaded_model import Missing
from irviz.loaders.models.imported_layers import torch_layers
from irviz.loaders.models.importer_defects import mend
from irviz.model.graph.infer_layers import LayersByNode

if TYPE_CHECKING:
    import torch
    from torch.fx import Node
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter


@dataclass(frozen=True, eq=False)
class ImportedProgram:
    """A module as TVM imports it, the program it was imported of, and the nodes of its variables.

    Attributes:
        program: The exported program, decomposed into the operators that the importer knows.
        nodes: The nodes of its graph, by the names of the module's variables.
        layers: The layers that its bindings come from.
        opaque: The calls that have no definition in TVM, described.
        mended: What TVM's importer got wrong and was replaced, in words.
    """

    module: ir.IRModule
    program: torch.export.ExportedProgram
    nodes: Mapping[str, Node]
    layers: LayersByNode
    opaque: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()


def import_program(
    program: torch.export.ExportedProgram, missing: Missing = "error"
) -> ImportedProgram:
    """Import an exported program; raise LoadError, which names the operator, layer and line."""
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    decomposed = _decomposed(program)
    importer = ExportedProgramImporter()
    converter = _Converter(importer, missing)
    lacking = {
        node.target.__name__: None
        for node in decomposed.graph.nodes
        if node.op == "call_function" and node.target.__name__ not in importer.convert_map
    }
    own = {
        "cumsum.default": partial(_cumsum, importer),
        "div.Tensor_mode": partial(_div, importer),
        "index.Tensor": partial(_index_tensor, importer),
    }
    known = {**lacking, **importer.convert_map, **own}
    importer.update_convert_map(
        {name: partial(converter, convert) for name, convert in known.items()}
    )
    module = importer.from_exported_program(
        decomposed,
        keep_params_as_input=True,
        unwrap_unit_return_tuple=True,
        no_bind_return_tuple=False,
        custom_convert_map=None,
    )
    nodes = {
        value.name: node for node, value in importer.env.items() if isinstance(value, relax.Var)
    }
    layers = torch_layers(module, importer.env)
    module, mended = mend(module)
    remarks = (*mended, *converter.remarks)
    return ImportedProgram(module, decomposed, nodes, layers, tuple(converter.opaque), remarks)


def described(node: Node) -> str:
    """Return what a node calls, in which layer and line, as in 'erfinv.default of layer mlp'."""
    words = str(getattr(node.target, "__name__", node.target))
    layers = list((node.meta.get("nn_module_stack") or {}).values())
    return words + place_words(layers, node.meta.get("stack_trace"))


def place_words(layers: Sequence[tuple[str, Any]], stack_trace: str | None) -> str:
    """Return the innermost layer, of (name, class), and the last line of a node's source."""
    words = ""
    if layers and layers[-1][0]:
        kind = str(getattr(layers[-1][1], "__name__", layers[-1][1])).rpartition(".")[2]
        words += f" of layer {layers[-1][0]} ({kind})"
    frames = re.findall(r'File "([^"\n]+)", line (\d+)', stack_trace or "")
    return f"{words}, {frames[-1][0]}, line {frames[-1][1]}" if frames else words


def _decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return the program in ATen's core operators, without inputs that are no tensors.

    Those are constants of its graph. Sparse tensors cannot be decomposed.
    """
    import torch

    weights = [*program.state_dict.values(), *program.constants.values()]
    if any(isinstance(one, torch.Tensor) and one.layout != torch.strided for one in weights):
        return program
    decomposed = program.run_decompositions()
    specs = decomposed.graph_signature.input_specs
    constant = torch.export.graph_signature.ConstantArgument
    specs[:] = [one for one in specs if not isinstance(one.arg, constant)]
    return decomposed


@dataclass
class _Converter:
    """Converts nodes, and remembers which have no definition, or another dtype than in torch."""

    importer: ExportedProgramImporter
    missing: Missing
    opaque: list[str] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)

    def __call__(self, convert: Callable[[Node], relax.Expr] | None, node: Node) -> relax.Expr:
        """Convert a node; raise LoadError where that is impossible and has to be."""
        reason, failure = "its importer has no such operator", None
        if convert is not None:
            try:
                converted = convert(node)
                self._compare_dtypes(node, converted)
                return converted
            except (LoadError, MemoryError):
                raise
            except Exception as raised:  # the importer raises errors of any class
                reason, failure = one_line(raised), raised
        if self.missing == "error":
            raise LoadError(
                f"TVM cannot import {described(node)}: {reason}; missing='opaque' opens the model "
                "with such calls as nodes without a definition"
            ) from failure
        self.opaque.append(described(node))
        return _opaque_call(self.importer, node)

    def _compare_dtypes(self, node: Node, converted: object) -> None:
        wanted = getattr(node.meta.get("val"), "dtype", None)
        if wanted is None or not isinstance(converted, relax.Var):
            return
        found = str(getattr(converted.ty, "dtype", "") or "")
        if found and found != (expected := self.importer._convert_data_type(wanted)):
            self.unlike.append(f"{described(node)}, which is {expected} in torch and {found} here")

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be known of dtypes."""
        if not self.unlike:
            return ()
        more = f" and {len(self.unlike) - 1} more" if len(self.unlike) > 1 else ""
        return (f"TVM imported another dtype for {self.unlike[0]}{more}",)


def _opaque_call(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Return a call of a function that does not exist, with the node's operands and type."""
    import torch

    value = node.meta.get("val")
    values = value if isinstance(value, list | tuple) else [value]
    if not values or not all(isinstance(one, torch.Tensor) for one in values):
        raise LoadError(f"{described(node)} returns no tensor, so it cannot be an opaque node")
    known = {
        str(size): size
        for operand in importer.env.values()
        if isinstance(operand, relax.Var) and isinstance(operand.ty, relax.TensorType)
        for size in operand.ty.shape or ()
    }
    types = [_tensor_type(importer, one, known, node) for one in values]
    operands = [
        importer.env[one]
        for one in node.all_input_nodes
        if isinstance(importer.env.get(one), relax.Expr)
    ]
    call = relax.call_dps_packed(
        f"torch.{node.target}", operands, types if isinstance(value, list | tuple) else types[0]
    )
    return importer.block_builder.emit(call)


def _tensor_type(
    importer: ExportedProgramImporter, tensor: Any, known: Mapping[str, Any], node: Node
) -> relax.TensorType:
    sizes = [size if isinstance(size, int) else known.get(str(size)) for size in tensor.shape]
    if None in sizes:
        raise LoadError(f"{described(node)} has a size that is not known, so it cannot be opaque")
    return relax.TensorType(sizes, importer._convert_data_type(tensor.dtype))


def _cumsum(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import a sum of bools or integers in torch's dtype: TVM's importer adds bools as bools."""
    source, axis = importer.env[node.args[0]], node.args[1]
    dtype = importer._convert_data_type(node.meta["val"].dtype)
    if str(source.ty.dtype) != dtype:
        source = importer.block_builder.emit(relax.op.astype(source, dtype))
    return importer.block_builder.emit(relax.op.cumsum(source, axis=axis, dtype=dtype))


def _div(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `x // 2` of integers: TVM's importer refuses a divisor of another size."""
    value, divisor = node.args
    if node.kwargs.get("rounding_mode") != "floor" or not isinstance(divisor, int | float):
        return importer._div(node)
    source = importer.env[value]
    number = relax.const(divisor, str(source.ty.dtype))
    return importer.block_builder.emit(relax.op.floor_divide(source, number))


def _index_tensor(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `x[:, rows, columns]` as torch defines it, also with negative indices.

    TVM's importer refuses or mixes up dimensions where some are not indexed, and reads outside of
    the operand at negative indices.
    """
    data, indices = importer.retrieve_args(node)
    emit = importer.block_builder.emit
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    if any(str(indices[axis].ty.dtype) == "bool" for axis in axes):
        raise ValueError("its result has as many elements as a mask selects, which is not known")
    if len(axes) == 1:
        return emit(relax.op.take(data, indices[axes[0]], axis=axes[0], mode="wrap"))
    sizes = list(data.ty.shape)
    found = [_not_negative(importer, indices[axis], sizes[axis]) for axis in axes]
    others = [axis for axis in range(len(sizes)) if axis not in axes]
    if axes[-1] >= len(axes):  # R.index_tensor takes the first dimensions
        data = emit(relax.op.permute_dims(data, axes + others))
    result = emit(relax.op.index_tensor(data, found))
    if axes[0] == 0 or axes[-1] - axes[0] >= len(axes):
        return result  # torch, too, puts the indexed dimensions first
    depth = result.ty.ndim - len(others)
    order = list(range(result.ty.ndim))
    before = order[depth : depth + axes[0]]
    return emit(relax.op.permute_dims(result, before + order[:depth] + order[depth + axes[0] :]))


def _not_negative(importer: ExportedProgramImporter, index: relax.Expr, size: Any) -> relax.Expr:
    """Return an index that counts from the start of a dimension; as it is if its size may vary."""
    if not isinstance(size, int | tirx.IntImm):
        return index
    return importer.block_builder.emit(
        relax.op.floor_mod(index, relax.const(int(size), str(index.ty.dtype)))
    )
