"""Import exported programs with TVM's importer, and report what it does not support."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tvm import ir, relax, tirx

from irviz.errors import LoadError
from irviz.ir.source_lines import with_source_lines
from irviz.loaders.file_errors import one_line
from irviz.loaders.loaded_model import Missing
from irviz.loaders.models.imported_layers import source_place, torch_layers, torch_source_lines
from irviz.loaders.models.importer_defects import mend
from irviz.loaders.models.torch_operators import DerivedSizes, in_torch_dtype, own_operators
from irviz.model.graph.infer_layers import LayersByNode

if TYPE_CHECKING:
    import torch
    from torch.fx import Node
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter


@dataclass(frozen=True, eq=False)
class ImportedProgram:
    """A module as TVM imports it, with its program and the nodes of its variables.

    Attributes:
        program: The exported program, decomposed into the operators that the importer knows.
        nodes: The nodes of its graph, by the names of the module's variables.
        layers: The layers that its bindings come from.
        opaque: Descriptions of the calls that have no definition in TVM.
        mended: Descriptions of what TVM's importer got wrong and irviz corrected.
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
    """Import an exported program; raise LoadError with operator, layer and line."""
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    decomposed = _decomposed(program)
    importer = ExportedProgramImporter()
    converter = _Converter(importer, missing, DerivedSizes(importer, decomposed).cast_inputs)
    lacking = {
        node.target.__name__: None
        for node in decomposed.graph.nodes
        if node.op == "call_function" and node.target.__name__ not in importer.convert_map
    }
    known = {**lacking, **importer.convert_map, **own_operators(importer)}
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
    module = with_source_lines(module, "main", torch_source_lines(module, importer.env))
    module, mended = mend(module)
    remarks = (*mended, *converter.remarks)
    return ImportedProgram(module, decomposed, nodes, layers, tuple(converter.opaque), remarks)


def described(node: Node) -> str:
    """Describe a node by what it calls, its layer and line, as in 'erfinv.default of layer mlp'."""
    words = str(getattr(node.target, "__name__", node.target))
    layers = list((node.meta.get("nn_module_stack") or {}).values())
    return words + place_words(layers, node.meta.get("stack_trace"))


def place_words(layers: Sequence[tuple[str, Any]], stack_trace: str | None) -> str:
    """Describe a node by its innermost layer, given as (name, class), and its source line."""
    words = ""
    if layers and layers[-1][0]:
        kind = str(getattr(layers[-1][1], "__name__", layers[-1][1])).rpartition(".")[2]
        words += f" of layer {layers[-1][0]} ({kind})"
    place = source_place(stack_trace)
    return words if place is None else f"{words}, {place[0]}, line {place[1]}"


def _decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Return the program in ATen's core operators, without inputs that are not tensors.

    Such inputs are constants in its graph. Sparse tensors cannot be decomposed.
    """
    import torch

    weights = [*program.state_dict.values(), *program.constants.values()]
    if any(isinstance(one, torch.Tensor) and one.layout != torch.strided for one in weights):
        return program
    decomposed = _run_decompositions(program)
    specs = decomposed.graph_signature.input_specs
    constant = torch.export.graph_signature.ConstantArgument
    specs[:] = [one for one in specs if not isinstance(one.arg, constant)]
    return decomposed


def _run_decompositions(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """Decompose a program, turning views into copies where torch requires it."""
    import torch

    aten = torch.ops.aten
    try:
        return program.run_decompositions()
    except ValueError:  # what attention returns there has other strides than in the program
        views = program.graph.find_nodes(op="call_function", target=aten.view.default)
        for node in views:
            node.target = aten.reshape.default
        try:
            return program.run_decompositions()
        finally:
            for node in views:
                node.target = aten.view.default


@dataclass
class _Converter:
    """Converts nodes, and notes those without a definition or with another dtype than in torch.

    Attributes:
        begin: Called before the first node.
        sizes: The sizes that may vary, by their names in torch.
    """

    importer: ExportedProgramImporter
    missing: Missing
    begin: Callable[[], None]
    sizes: dict[str, tirx.Expr] = field(default_factory=dict)
    opaque: list[str] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)
    is_begun: bool = False

    def __call__(self, convert: Callable[[Node], relax.Expr] | None, node: Node) -> relax.Expr:
        """Convert a node; raise LoadError if impossible and opaque calls are not allowed."""
        reason, failure = "its importer has no such operator", None
        if not self.is_begun:
            self.begin()
            self.is_begun = True
        self._learn_sizes(node.all_input_nodes)
        if convert is not None:
            try:
                with in_torch_dtype(self.importer, node):
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
        return self._opaque_call(node)

    def _learn_sizes(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            type_ = getattr(self.importer.env.get(node), "ty", None)
            if isinstance(type_, relax.TensorType) and type_.shape is not None:
                shape = getattr(node.meta.get("val"), "shape", ())
                for wanted, size in zip(shape, type_.shape, strict=False):
                    if not isinstance(wanted, int):
                        self.sizes.setdefault(str(wanted), size)

    def _opaque_call(self, node: Node) -> relax.Expr:
        """Return a call of a function that does not exist, with the node's operands and type."""
        import torch

        value = node.meta.get("val")
        values = value if isinstance(value, list | tuple) else [value]
        if not values or not all(isinstance(one, torch.Tensor) for one in values):
            raise LoadError(f"{described(node)} returns no tensor, so it cannot be an opaque node")
        types = [self._tensor_type(one, node) for one in values]
        env = self.importer.env
        operands = [
            env[one] for one in node.all_input_nodes if isinstance(env.get(one), relax.Expr)
        ]
        call = relax.call_dps_packed(
            f"torch.{node.target}", operands, types if isinstance(value, list | tuple) else types[0]
        )
        return self.importer.block_builder.emit(call)

    def _tensor_type(self, tensor: Any, node: Node) -> relax.TensorType:
        sizes = [one if isinstance(one, int) else self.sizes.get(str(one)) for one in tensor.shape]
        if any(size is None for size in sizes):
            raise LoadError(
                f"{described(node)} has a size that is not known, so it cannot be opaque"
            )
        return relax.TensorType(sizes, self.importer._convert_data_type(tensor.dtype))

    def _compare_dtypes(self, node: Node, converted: object) -> None:
        wanted = getattr(node.meta.get("val"), "dtype", None)
        if wanted is None or not isinstance(converted, relax.Var):
            return
        found = str(getattr(converted.ty, "dtype", "") or "")
        if found and found != (expected := self.importer._convert_data_type(wanted)):
            self.unlike.append(f"{described(node)}, which is {expected} in torch and {found} here")

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on dtypes that differ from torch."""
        if not self.unlike:
            return ()
        more = f" and {len(self.unlike) - 1} more" if len(self.unlike) > 1 else ""
        return (f"TVM imported another dtype for {self.unlike[0]}{more}",)
