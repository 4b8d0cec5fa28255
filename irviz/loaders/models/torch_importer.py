"""Import programs with TVM's importer; report what it lacks, and mend what it gets wrong."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import ir, relax, sym, tirx

from irviz.errors import LoadError
from irviz.ir.tvmscript import with_source_lines
from irviz.loaders.file_limits import one_line
from irviz.loaders.loaded_model import Missing
from irviz.loaders.models.imported_layers import source_place, torch_layers, torch_source_lines
from irviz.model.graph.layers import LayersByNode

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
        mended: Descriptions of the importer's errors that irviz corrected.
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
    rounded: list[str] = []
    known = {**lacking, **importer.convert_map, **own_operators(importer, rounded)}
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
    if rounded:
        more = f" and {len(rounded) - 1} more" if len(rounded) > 1 else ""
        mended += (f"computed in float32, as TVM lacks it in this dtype: {rounded[0]}{more}",)
    return ImportedProgram(module, decomposed, nodes, layers, tuple(converter.opaque), mended)


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
    """Converts nodes to the dtypes that they have in torch, and notes those without a definition.

    Attributes:
        begin: Called before the first node.
        sizes: The sizes that may vary, by their names in torch.
    """

    importer: ExportedProgramImporter
    missing: Missing
    begin: Callable[[], None]
    sizes: dict[str, tirx.Expr] = field(default_factory=dict)
    opaque: list[str] = field(default_factory=list)
    is_begun: bool = False

    def __call__(self, convert: Callable[[Node], relax.Expr] | None, node: Node) -> relax.Expr:
        """Convert a node; raise LoadError if impossible and opaque calls are not allowed."""
        reason, failure = "its importer has no such operator", None
        if not self.is_begun:
            self.begin()
            keep_dtypes(self.importer.block_builder)
            self.is_begun = True
        self._learn_sizes(node.all_input_nodes)
        if convert is not None:
            try:
                with in_torch_dtype(self.importer, node):
                    converted = convert(node)
                return self._cast(converted, node.meta.get("val"))
            except (LoadError, MemoryError):
                raise
            except Exception as raised:  # the importer raises errors of any class
                reason, failure = one_line(raised), raised
        if self.missing == "error":
            raise LoadError(
                f"TVM cannot import {described(node)}: {reason}; missing='opaque', or irviz "
                "open --missing opaque, opens the model with such calls as nodes without a "
                "definition"
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

    def _cast(self, converted: Any, wanted: Any) -> Any:
        """Return a node's value with the dtypes of torch's own trace."""
        emit = self.importer.block_builder.emit
        if isinstance(wanted, list | tuple):
            if not isinstance(getattr(converted, "ty", None), relax.TupleType):
                return converted
            given = range(min(len(wanted), len(converted.ty.fields)))
            if all(self._has_dtype(converted.ty.fields[at], wanted[at]) for at in given):
                return converted
            parts = [emit(relax.TupleGetItem(converted, at)) for at in given]
            cast = [self._cast(*pair) for pair in zip(parts, wanted, strict=False)]
            return emit(relax.Tuple(cast))
        if not isinstance(converted, relax.Var) or self._has_dtype(converted.ty, wanted):
            return converted
        return emit(relax.op.astype(converted, self.importer._convert_data_type(wanted.dtype)))

    def _has_dtype(self, type_: Any, wanted: Any) -> bool:
        """Tell whether a tensor's type has the dtype of a tensor of torch; True for other types."""
        found, dtype = str(getattr(type_, "dtype", None) or ""), getattr(wanted, "dtype", None)
        return not found or dtype is None or found == self.importer._convert_data_type(dtype)


# --- torch operators ---------------------------------------------------------------------------
#
# Converters for calls that TVM's importer refuses or imports with another meaning than torch's.


Convert = Callable[["Node"], relax.Expr]
_LAST = 2**63 - 1
"""The number that torch uses for the end of a dimension."""


def own_operators(importer: ExportedProgramImporter, rounded: list[str]) -> dict[str, Convert]:
    """Return converters for an importer, by the names of operators.

    Descriptions of the nodes that are computed in float32 in place of another dtype are added to
    `rounded`.
    """
    known = importer.convert_map
    importer._upsample_impl = partial(_upsample, importer)
    made: dict[str, Convert] = {
        "amax.default": partial(_reduce, importer, relax.op.max),
        "amin.default": partial(_reduce, importer, relax.op.min),
        "cumsum.default": partial(_cumsum, importer),
        "div.Tensor_mode": partial(_div, importer),
        "elu.default": partial(_elu, importer),
        "index.Tensor": partial(_index_tensor, importer),
        "slice.Tensor": partial(_slice, importer),
        "sym_float": lambda node: tirx.Cast("float64", importer.env[node.args[0]]),
        "_upsample_bilinear2d_aa.default": partial(_upsample_smoothed, importer),
    }
    for name in known:
        if (kind := _NORMALISED.match(name)) is not None:
            made[name] = partial(_normalised, importer, known[name], kind[1], rounded)
    for name, op in (("add.Tensor", relax.op.add), ("sub.Tensor", relax.op.subtract)):
        made[name] = partial(_scaled, importer, op, known[name])
    return made


class DerivedSizes:
    """Sizes of inputs that are expressions of symbols which are themselves no input's size.

    An example is 8*s0. TVM cannot solve for s0, so the importer gives the input a size n, and the
    first bindings cast it to n//8*8.
    """

    def __init__(
        self, importer: ExportedProgramImporter, program: torch.export.ExportedProgram
    ) -> None:
        specs = program.graph_signature.input_specs
        inputs = {spec.arg.name for spec in specs if "USER_INPUT" in spec.kind.name}
        self._importer, self._process = importer, importer._process_derived_symbol
        self._shapes: dict[Node, list[Any]] = {
            node: [size if isinstance(size, int) else size.node.expr for size in value.shape]
            for node in program.graph.find_nodes(op="placeholder")
            if node.name in inputs and hasattr(value := node.meta.get("val"), "shape")
        }
        self._given = {size for shape in self._shapes.values() for size in shape}
        importer._process_derived_symbol = self._processed

    def _is_derived(self, size: Any) -> bool:
        symbols: set[Any] = getattr(size, "free_symbols", set())
        return not symbols <= self._given

    def _processed(self, symbol: Any, known: dict[str, Any]) -> tuple[str, Any]:
        if self._is_derived(symbol):
            return "n_" + re.sub(r"\W+", "_", str(symbol)), None
        name, size = self._process(symbol, known)
        return name, size

    def cast_inputs(self) -> None:
        """Cast the inputs with such sizes."""
        importer = self._importer
        values = {node: importer.env[node] for node in self._shapes if node in importer.env}
        known: dict[str, Any] = {}
        for node, value in values.items():
            for wanted, found in zip(self._shapes[node], value.ty.shape, strict=True):
                if self._is_derived(wanted) and len(wanted.free_symbols) == 1:
                    known |= _solution(wanted, found)
        for node, value in values.items():
            sizes = [
                self._process(wanted, known)[1] if self._is_derived(wanted) else found
                for wanted, found in zip(self._shapes[node], value.ty.shape, strict=True)
            ]
            is_solved = all(size is not None for size in sizes)
            if is_solved and any(map(self._is_derived, self._shapes[node])):
                cast = relax.TensorType(sizes, value.ty.dtype)
                importer.env[node] = importer.block_builder.match_cast(value, cast)


def _solution(wanted: Any, found: tirx.Expr) -> dict[str, tirx.Expr]:
    """Return the symbol's value for which a size such as 8*s0 + 1 is `found`, {} if impossible."""
    (symbol,) = wanted.free_symbols
    factor = wanted.coeff(symbol)
    rest = wanted - factor * symbol
    if not (factor.is_Integer and rest.is_Integer):
        return {}
    return {str(symbol): tirx.floordiv(found - int(rest), int(factor))}


_OPTIONS = (
    *("strides", "padding", "output_padding", "dilation", "groups"),
    *("data_layout", "kernel_layout", "out_layout"),
)


def keep_dtypes(builder: relax.BlockBuilder) -> None:
    """Make a builder's products and convolutions give the dtype of their operands.

    TVM's importer asks for float32 whatever they have. Half precision is added up in float32 and
    rounded once, as torch does; float64 is computed in float64.
    """
    emit = builder.emit

    def emitted(expr: relax.Expr, name_hint: str = "") -> relax.Var:
        asked = getattr(getattr(expr, "attrs", None), "out_dtype", None)
        dtype = str(expr.args[0].ty.dtype) if str(asked) == "float32" else ""
        if dtype == "float64":
            name = expr.op.name.removeprefix("relax.").removeprefix("nn.")
            attrs = {one: getattr(expr.attrs, one) for one in _OPTIONS if hasattr(expr.attrs, one)}
            op = relax.op.matmul if name == "matmul" else getattr(relax.op.nn, name)
            return emit(op(*expr.args, **attrs, out_dtype=dtype), name_hint)
        if dtype in ("float16", "bfloat16"):
            return emit(relax.op.astype(emit(expr), dtype), name_hint)
        return emit(expr, name_hint)

    builder.emit = emitted


@contextlib.contextmanager
def in_torch_dtype(importer: ExportedProgramImporter, node: Node) -> Iterator[None]:
    """Cast a call's operands to the dtype in which torch computes it.

    TVM's importer computes `x * 0.5` in integers if `x` has integers.
    """
    dtype = _common_dtype(node)
    if dtype is None:
        yield
        return
    with _operands_in(importer, _operands(node), importer._convert_data_type(dtype)):
        yield


@contextlib.contextmanager
def _operands_in(
    importer: ExportedProgramImporter, operands: Sequence[Any], wanted: str
) -> Iterator[None]:
    """Give operands another dtype until the block ends."""
    changed: dict[Node, Any] = {}
    try:
        for operand in operands:
            before = importer.env.get(operand)
            is_tensor = isinstance(before, relax.Var | ir.GenericConst)
            if is_tensor and isinstance(before.ty, relax.TensorType):
                if str(before.ty.dtype) != wanted:
                    cast = importer.block_builder.emit(relax.op.astype(before, wanted))
                    importer.env[operand], changed[operand] = cast, before
            elif isinstance(before, tirx.Expr) and wanted != "int64":
                importer.env[operand] = tirx.Cast(wanted, before)
                changed[operand] = before
        yield
    finally:
        importer.env.update(changed)


_JOINED = ("cat", "stack")


def _operands(node: Node) -> list[Any]:
    """Return the operands that must share a dtype: nodes and numbers; none for other operators."""
    import torch

    name = str(getattr(node.target, "__name__", "")).partition(".")[0]
    if name in _JOINED:
        return list(node.args[0])
    if torch.Tag.pointwise not in getattr(node.target, "tags", ()) or name == "masked_fill":
        return []
    return list(node.args[1:3] if name == "where" else node.args[:2])


def _common_dtype(node: Node) -> torch.dtype | None:
    """Return the dtype in which an elementwise operator computes, None if any will do.

    For a predicate on a single value, such as isnan, it is that of the operand.
    """
    import torch

    value, operands = node.meta.get("val"), _operands(node)
    if not operands or not isinstance(value, torch.Tensor):
        return None
    if operands is not None and node.args[0] == operands:
        return value.dtype
    if value.dtype is not torch.bool:
        return value.dtype if value.dtype.is_floating_point or len(operands) == 2 else None
    values = [one.meta.get("val") if hasattr(one, "meta") else one for one in operands]
    plain = [one if isinstance(one, torch.Tensor | bool | int | float) else 1 for one in values]
    return torch.result_type(*plain) if len(plain) == 2 else None


def _reduce(importer: ExportedProgramImporter, reduce: Any, node: Node) -> relax.Expr:
    """Import `x.amax(dims, keepdim)`, which TVM's importer lacks."""
    source, *rest = node.args
    axes, keeps = (*rest, None, None)[:2]
    return importer.block_builder.emit(
        reduce(importer.env[source], list(axes or ()) or None, bool(keeps))
    )


def _cumsum(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import a cumulative sum of bools or integers in torch's dtype: TVM's adds bools as bools."""
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


def _scaled(importer: ExportedProgramImporter, op: Any, convert: Convert, node: Node) -> relax.Expr:
    """Import `torch.add(x, y, alpha=2)`: TVM's importer leaves out the factor."""
    if (alpha := node.kwargs.get("alpha", 1)) == 1:
        return convert(node)
    value, other = importer.retrieve_args(node)
    factor = relax.const(alpha, str(other.ty.dtype))
    return importer.block_builder.emit(op(value, relax.op.multiply(other, factor)))


def _elu(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import ELU with both factors, as in SELU: TVM's importer leaves out the second."""
    source, alpha, scale, within = (*node.args, 1.0, 1.0, 1.0)[:4]
    x, op = importer.env[source], relax.op
    number = partial(relax.const, dtype=str(x.ty.dtype))
    below = op.subtract(op.exp(op.multiply(op.minimum(x, number(0)), number(within))), number(1))
    both = op.add(op.nn.relu(x), op.multiply(number(alpha), below))
    return importer.block_builder.emit(op.multiply(both, number(scale)))


_NORMALISED = re.compile(r"(?:_?native_)?((?:layer|group|instance|rms|batch)_norm)")


def _normalised(
    importer: ExportedProgramImporter, convert: Convert, kind: str, rounded: list[str], node: Node
) -> relax.Expr:
    """Import a normalisation in float32 if TVM does not compute it in its dtype."""
    if str(importer.env[node.args[0]].ty.dtype) in _NORMALISATIONS[f"relax.nn.{kind}"]:
        return convert(node)
    rounded.append(described(node))
    operands = [one for one in node.args if hasattr(one, "meta")]
    with _operands_in(importer, operands, "float32"):
        return convert(node)


def _upsample(
    importer: ExportedProgramImporter,
    x: relax.Expr,
    size: Any,
    scale_factor: Any,
    method: str,
    align_corners: bool,
) -> relax.Expr:
    """Import `interpolate` with torch's sampling, also for dynamic sizes.

    TVM's importer rounds to other nearest positions than torch.
    """
    if size is None:
        factors = scale_factor if isinstance(scale_factor, list | tuple) else (scale_factor,) * 2
        size = [_times(one, factor) for one, factor in zip([*x.ty.shape][2:], factors, strict=True)]
    nearest = method == "nearest_neighbor"
    between = "align_corners" if align_corners else "half_pixel"
    return importer.block_builder.emit(
        relax.op.image.resize2d(
            x,
            tuple(importer._retrieve_args(list(size))),
            layout="NCHW",
            method=method,
            coordinate_transformation_mode="asymmetric" if nearest else between,
            rounding_method="floor" if nearest else "round",
            cubic_alpha=-0.75,
        )
    )


def _times(size: Any, factor: float) -> Any:
    if isinstance(size, int | tirx.IntImm):
        return int(int(size) * factor)
    if factor != int(factor):
        raise ValueError(f"a size that may vary is scaled by {factor}, which is not an integer")
    return size * int(factor)


def _upsample_smoothed(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import interpolation with antialias=True if that makes no difference."""
    source, result = node.args[0].meta["val"].shape, node.meta["val"].shape
    if any(not isinstance(to, int) or to < of for of, to in zip(source, result, strict=True)):
        raise ValueError("it makes an image smaller with antialias=True, which TVM cannot")
    return importer._upsample_bilinear2d_aa(node)


def _slice(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `x[start:end]` with the size that torch infers.

    TVM's importer gives it the minimum of two dynamic sizes, which it cannot prove equal to any
    other size.
    """
    args: list[Any] = [*node.args, *(None, 0, None, None)[len(node.args) :]]
    source, axis, start, end, *step = args
    before, after = source.meta["val"].shape, node.meta["val"].shape
    begin = 0 if start is None else start
    first, last = (getattr(one, "meta", {"val": one})["val"] for one in (begin, end))
    if begin != 0 and (last is None or (isinstance(last, int) and last >= _LAST)):
        end, last = importer.env[source].ty.shape[axis], before[axis]
    if step or last is None or str(last - first) != str(after[axis]):
        return importer._slice(node)
    limits = [[one] for one in importer._retrieve_args([axis % len(after), begin, end, 1])]
    return importer.block_builder.emit(
        relax.op.strided_slice(importer.env[source], *limits, assume_inbound=True)
    )


def _index_tensor(importer: ExportedProgramImporter, node: Node) -> relax.Expr:
    """Import `x[:, rows, columns]` with torch's meaning, also for negative indices.

    TVM's importer refuses or mixes up dimensions if some are not indexed, and reads out of bounds
    at negative indices.
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
    """Return an index that counts from the start of a dimension."""
    dtype = str(index.ty.dtype)
    if isinstance(size, int | tirx.IntImm):
        divisor = relax.const(int(size), dtype)
    else:
        divisor = relax.prim_value(size if dtype == "int64" else tirx.Cast(dtype, size))
    return importer.block_builder.emit(relax.op.floor_mod(index, divisor))


@dataclass(frozen=True)
class Trap:
    """A kind of call that does not compute what was meant.

    Attributes:
        words: The defect, and the replacement.
        applies: Whether a call is of this kind.
        mended: The call that computes what was meant.
    """

    words: str
    applies: Callable[[relax.Call], bool]
    mended: Callable[[relax.Call], relax.Expr]


def mend(module: ir.IRModule) -> tuple[ir.IRModule, tuple[str, ...]]:
    """Replace the calls of known traps; return the module and what was replaced, in words."""
    found: dict[str, int] = {}

    def look(expr: relax.Expr) -> None:
        trap = _trap_of(expr)
        if trap is not None:
            found[trap.words] = found.get(trap.words, 0) + 1

    functions = {
        variable: function
        for variable, function in module.functions.items()
        if isinstance(function, relax.Function)
    }
    for function in functions.values():
        relax.analysis.post_order_visit(function, look)
    if not found:
        return module, ()
    mender = _mender(module)
    for variable, function in functions.items():
        mender.builder_.update_func(variable, mender.visit_expr(function))
    return mender.builder_.get(), tuple(
        f"TVM imported {count}× {words}" for words, count in found.items()
    )


def _mender(module: ir.IRModule) -> relax.PyExprMutator:
    @relax.expr_functor.mutator
    class Mender(relax.PyExprMutator):  # type: ignore[misc] # TVM has no types
        def visit_call_(self, call: relax.Call) -> relax.Expr:
            visited = self.visit_expr_post_order(call)
            trap = _trap_of(visited)
            return visited if trap is None else self.builder_.normalize(trap.mended(visited))

    return Mender(module)


def _trap_of(expr: relax.Expr) -> Trap | None:
    if not isinstance(expr, relax.Call):
        return None
    return next((trap for trap in _TRAPS if trap.applies(expr)), None)


def _calls(call: relax.Call, *names: str) -> bool:
    return isinstance(call.op, ir.Op) and call.op.name in names


def _takes_negative(call: relax.Call) -> bool:
    if not _calls(call, "relax.take") or call.attrs.mode != "fast":
        return False
    index = call.args[1]
    return isinstance(index, ir.GenericConst) and bool(np.any(index.value.numpy() < 0))


def _compares_bools(call: relax.Call) -> bool:
    return _calls(call, "relax.equal", "relax.not_equal") and all(
        isinstance(one.ty, relax.TensorType) and str(one.ty.dtype) == "bool" for one in call.args
    )


def _as_xor(call: relax.Call) -> relax.Expr:
    differs = relax.op.logical_xor(*call.args)
    return differs if _calls(call, "relax.not_equal") else relax.op.logical_not(differs)


def _fills_not_finite(call: relax.Call) -> bool:
    return (
        _calls(call, "relax.full")
        and isinstance(call.args[1], ir.GenericConst)
        and not np.isfinite(call.args[1].value.numpy().astype("float64"))
    )


_NORMALISATIONS = {
    **dict.fromkeys(
        [f"relax.nn.{name}_norm" for name in ("layer", "group", "instance", "rms")],
        ("float32", "float16"),
    ),
    "relax.nn.batch_norm": ("float32", "float64"),
}
"""The dtypes in which TVM computes normalisations; it makes float32 of a batch_norm of float16."""


def _normalises_other_floats(call: relax.Call) -> bool:
    if not _calls(call, *_NORMALISATIONS) or not isinstance(call.args[0].ty, relax.TensorType):
        return False
    return str(call.args[0].ty.dtype) not in _NORMALISATIONS[call.op.name]


def _in_float32(call: relax.Call) -> relax.Expr:
    dtype = str(call.args[0].ty.dtype)
    args = [relax.op.astype(one, "float32") for one in call.args]
    made = relax.Call(call.op, args, call.attrs)
    if not isinstance(call.ty, relax.TupleType):
        return relax.op.astype(made, dtype)
    parts = range(len(call.ty.fields))
    return relax.Tuple([relax.op.astype(relax.TupleGetItem(made, at), dtype) for at in parts])


def _replaces_all(call: relax.Call) -> bool:
    if not _calls(call, "relax.slice_scatter") or call.args[0].ty.shape is None:
        return False
    start, end, step = call.args[2:5]
    size = call.args[0].ty.shape[call.attrs.axis]
    prove = sym.Analyzer().can_prove_equal
    return all(prove(*pair) for pair in ((start, 0), (end, size), (step, 1)))


_TRAPS = (
    Trap(
        "a normalisation in a dtype that TVM does not build: it is computed in float32 here",
        _normalises_other_floats,
        _in_float32,
    ),
    Trap(
        "R.take with a negative index and mode='fast', which reads outside of its operand: it is "
        "mode='wrap' here",
        _takes_negative,
        lambda call: relax.op.take(*call.args, axis=call.attrs.axis, mode="wrap"),
    ),
    Trap(
        "R.equal or R.not_equal of bools, which cannot be built for LLVM: it is R.logical_xor here",
        _compares_bools,
        _as_xor,
    ),
    Trap(
        "R.full with a number that is not finite, which cannot be lowered: it is R.broadcast_to "
        "here",
        _fills_not_finite,
        lambda call: relax.op.broadcast_to(call.args[1], call.args[0]),
    ),
    Trap(
        "R.slice_scatter of a whole tensor, which cannot be lowered where its size may vary: it is "
        "the tensor that is put there here",
        _replaces_all,
        lambda call: call.args[1],
    ),
)
