"""Calls that torch itself computes, as TVM lacks their operators, and complex numbers as pairs."""

from __future__ import annotations

from operator import getitem
from typing import TYPE_CHECKING, Any

from tvm import ir, relax, tirx

from irviz.errors import LoadError
from irviz.ir import framework_calls
from irviz.loaders.models.imported_layers import described

if TYPE_CHECKING:
    import torch
    from torch.fx import Node
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter


def opaque_call(
    importer: ExportedProgramImporter, node: Node, sizes: dict[str, tirx.Expr]
) -> relax.Expr:
    """Return a call that torch computes, with the operands, other arguments and type of a node.

    An operator that is not ATen's becomes a call of a function that does not exist. Sizes that
    depend on numbers become new symbols, which are added to the known `sizes`.

    Raises LoadError for a node without tensors, and for a size that is not known.
    """
    value, name = node.meta.get("val"), f"{framework_calls.PREFIX}{node.target}"
    is_one = not isinstance(value, list | tuple)
    values = [value] if is_one else list(value)
    has_tensors = [hasattr(one, "dtype") for one in values if one is not None]
    if not has_tensors or not all(has_tensors) or node.target is getitem:
        raise LoadError(f"{described(node)} returns no tensor, so it cannot be an opaque node")
    before = len(sizes)
    types = [_type(importer, one, node, sizes) for one in values]
    names, operands = dict[Any, str](), list[relax.Expr]()
    for one in node.all_input_nodes:
        found = importer.env.get(one)
        if isinstance(found, relax.Expr):
            letter = (
                framework_calls.COMPLEX if is_complex(one.meta.get("val")) else framework_calls.REAL
            )
            names[one] = f"{letter}{len(operands)}"
            operands.append(found)
        else:  # a number
            names[one] = repr(found)
    is_known = framework_calls.called_operator(name) is not None
    if is_known:
        try:
            text = framework_calls.written_arguments(
                node.args, node.kwargs, lambda one: names[one] if hasattr(one, "meta") else ""
            )
        except ValueError as failure:
            raise LoadError(f"{described(node)} cannot be an opaque node: {failure}") from failure
        operands.append(ir.StringImm(text))
    has_new_sizes = before != len(sizes)
    if has_new_sizes and not is_known:
        raise _unknown_size(node)
    builder = importer.block_builder
    given = types[0] if is_one else types
    return framework_calls.emitted_call(builder, name, operands, given, has_new_sizes=has_new_sizes)


def _type(
    importer: ExportedProgramImporter,
    tensor: torch.Tensor | None,
    node: Node,
    sizes: dict[str, tirx.Expr],
) -> relax.TensorType:
    """Return the type of a tensor; one that torch leaves out is empty."""
    if tensor is None:
        return relax.TensorType([0], "float32")
    shape = [_size(importer, one, node, sizes) for one in tensor.shape]
    dtype = tensor.dtype
    if dtype.is_complex:
        shape, dtype = [*shape, tirx.IntImm("int64", 2)], dtype.to_real()
    return relax.TensorType(shape, importer._convert_data_type(dtype))


def _size(
    importer: ExportedProgramImporter, size: Any, node: Node, sizes: dict[str, tirx.Expr]
) -> Any:
    if isinstance(size, int):
        return size
    if str(size) not in sizes:
        expr = size.node.expr
        _, found = importer._process_derived_symbol(expr, sizes)
        if found is None and not expr.is_Symbol:
            raise _unknown_size(node)
        sizes[str(size)] = tirx.Var(str(size), "int64") if found is None else found
    return sizes[str(size)]


def _unknown_size(node: Node) -> LoadError:
    return LoadError(f"{described(node)} has a size that is not known, so it cannot be opaque")


# --- Complex numbers, which TVM lacks, as pairs of numbers in a last dimension of their own ------


OF_COMPLEX = ("complex.default", "view_as_complex.default", "view_as_real.default", "getitem")
"""The operators whose converters are right for pairs; torch computes all others."""


def is_complex(value: Any) -> bool:
    """Tell whether a value is a tensor of complex numbers."""
    return hasattr(value, "is_complex") and bool(value.is_complex())


def has_complex(node: Node) -> bool:
    """Tell whether a node takes or gives complex numbers."""
    values = [one.meta.get("val") for one in (node, *node.all_input_nodes)]
    flat = [part for one in values for part in (one if isinstance(one, list | tuple) else [one])]
    return any(map(is_complex, flat))


def pair_complex_numbers(
    importer: ExportedProgramImporter, program: torch.export.ExportedProgram
) -> None:
    """Make an importer give inputs and weights of complex numbers the type of pairs of numbers."""
    import torch

    create, convert = importer.create_input_vars, importer._convert_pytorch_tensor_to_tvm
    type_of = importer._convert_data_type
    paired = {
        node.name
        for node in program.graph.find_nodes(op="placeholder")
        if is_complex(node.meta.get("val"))
    }

    def created(program: torch.export.ExportedProgram) -> Any:
        *variables, ranges = create(program)
        for named in variables:
            for name in named.keys() & paired:
                type_ = named[name].ty
                pairs = relax.TensorType([*type_.shape, 2], type_.dtype)
                named[name] = relax.Var(named[name].name, pairs)
        return *variables, ranges

    def real(dtype: Any) -> Any:
        is_dtype = isinstance(dtype, torch.dtype) and dtype.is_complex
        return type_of(dtype.to_real() if is_dtype else dtype)

    if paired:
        importer.create_input_vars, importer._convert_data_type = created, real
        importer._convert_pytorch_tensor_to_tvm = lambda one: convert(as_pairs(one))


def as_pairs(tensor: torch.Tensor) -> torch.Tensor:
    """Return complex numbers as pairs of numbers, and any other tensor unchanged."""
    import torch

    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
