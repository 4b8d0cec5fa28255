"""Load PyTorch's modules, traced graphs and exported programs, as TVM imports them."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import getitem
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import ir, relax, tirx

from irviz.errors import LoadError, UnsupportedOperatorError
from irviz.gc_pause import gc_paused
from irviz.ir import framework_calls
from irviz.ir.tvmscript import with_source_lines
from irviz.loaders.file_limits import one_line
from irviz.loaders.loaded_model import (
    Loaded,
    Missing,
    Params,
    detach_weights,
    missing_advice,
    missing_notes,
)
from irviz.loaders.models.imported_layers import described, torch_places
from irviz.loaders.models.importer_workarounds import mend
from irviz.loaders.models.torch_converters import (
    OF_COMPLEX,
    has_complex,
    in_suitable_dtype,
    is_complex,
    keep_dtypes,
    own_operators,
    pair_complex_numbers,
    unsuited,
)
from irviz.loaders.models.torch_origin import ProgramOrigin, Returned, is_constant, torch_array
from irviz.units import first_names
from irviz.worker.captured_output import StderrCapture, captured_stderr

if TYPE_CHECKING:
    import torch
    from torch.fx import Node
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

_EXAMPLES = "give example inputs, as in irviz.load(model, inputs=(torch.ones(1, 784),))"


def from_module(
    model: torch.nn.Module, inputs: Any, dynamic_shapes: Any = None, missing: Missing = "error"
) -> Loaded:
    """Return a PyTorch module as TVM imports it, with its weights as parameters.

    torch.export exports the module in evaluation mode. A GraphModule of torch.fx is imported
    directly. Example inputs determine the shapes: a tensor or array, a sequence of them, or a dict
    by parameter of `forward`; for a GraphModule, pairs of shape and dtype too. Raises LoadError if
    the model cannot be imported.
    """
    import torch

    if inputs is None:
        raise LoadError(
            f"{type(model).__name__} is a PyTorch model, whose graph depends on inputs: {_EXAMPLES}"
        )
    if isinstance(model, torch.fx.GraphModule):
        return _from_graph_module(model, inputs)
    positional, named = _examples(inputs)
    with (
        quiet(),
        _evaluating(model),
        load_errors(f"{type(model).__name__} cannot be exported by torch.export"),
    ):
        program = torch.export.export(model, positional, named, dynamic_shapes=dynamic_shapes)
    return from_program(program, (positional, named), missing)


def from_program(
    program: torch.export.ExportedProgram, inputs: Any = None, missing: Missing = "error"
) -> Loaded:
    """Return an exported program as TVM imports it, with its weights as parameters.

    `inputs` are example inputs as (positional, named), by default those stored in the program.
    Raises LoadError if TVM cannot import it.
    """
    loaded = import_program(program, missing)
    params = {name: array.copy() for name, array in loaded.params.items()}  # it may be trained on
    examples = _by_name(loaded.module, params, inputs or program.example_inputs)
    return replace(loaded, params=params, inputs=examples)


def _from_graph_module(model: torch.fx.GraphModule, inputs: Any) -> Loaded:
    from tvm.relax.frontend.torch import from_fx

    examples = _in_order(inputs, [n.target for n in model.graph.nodes if n.op == "placeholder"])
    pairs = [_shape_and_dtype(example) for example in examples]
    with quiet(), load_errors(f"{type(model).__name__} cannot be imported by TVM"):
        mod = from_fx(model, pairs, keep_params_as_input=True, unwrap_unit_return_tuple=True)
    mod, params = detach_weights(mod)
    if any(_is_pair(example) for example in examples):
        return Loaded(mod, params)
    return Loaded(mod, params, _by_name(mod, params, (tuple(examples), {})))


def _examples(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return example inputs by position and by name, as torch.export takes them."""
    if isinstance(inputs, Mapping):
        return (), {str(name): _tensor(value) for name, value in inputs.items()}
    return tuple(_tensor(value) for value in _in_order(inputs)), {}


def _in_order(inputs: Any, names: Sequence[str] = ()) -> list[Any]:
    """Return inputs in the order of these names; raise LoadError if one is missing."""
    if isinstance(inputs, Mapping):
        if set(inputs) != set(names):
            listed = ", ".join(map(repr, names)) or "none"
            raise LoadError(f"inputs for {list(inputs)} were given; the model takes {listed}")
        return [inputs[name] for name in names]
    if isinstance(inputs, list | tuple) and not _is_pair(inputs):
        return list(inputs)
    return [inputs]


def _tensor(value: Any) -> Any:
    """Return an array as a PyTorch tensor, and any other value unchanged."""
    import torch

    if isinstance(value, str) or _is_pair(value):
        raise LoadError(f"{value!r} is not an example input: {_EXAMPLES}")
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def _is_pair(value: Any) -> bool:
    """Tell whether a value is a pair of shape and dtype."""
    return isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[1], str)


def _shape_and_dtype(example: Any) -> tuple[tuple[int, ...], str]:
    if _is_pair(example):
        return tuple(int(size) for size in example[0]), example[1]
    if not hasattr(example, "shape"):
        raise LoadError(
            f"{example!r} is not an example input: give a tensor, or a shape and a dtype, as in "
            "irviz.load(graph_module, inputs=[((1, 784), 'float32')])"
        )
    return tuple(example.shape), str(example.dtype).removeprefix("torch.")


def _by_name(mod: Any, params: Params, examples: Any) -> dict[str, Any] | None:
    """Return example inputs by the names of the parameters without weights, or None."""
    from torch.utils import _pytree

    if examples is None:
        return None
    names = [param.name for param in mod["main"].params if param.name not in params]
    positional, named = examples
    known = {name: value for name, value in named.items() if name in names}
    others = [value for name, value in named.items() if name not in names]
    leaves = [one for one in _pytree.tree_leaves((positional, others)) if hasattr(one, "shape")]
    left = [name for name in names if name not in known]
    if len(leaves) != len(left):  # numbers and flags are constants of the graph
        return None
    found = {**known, **dict(zip(left, leaves, strict=True))}
    return {name: torch_array(found[name]) for name in names}


@contextlib.contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Switch a model to evaluation mode, and restore the mode of each part."""
    before = [(part, part.training) for part in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for part, training in before:
            part.training = training


# --- Import programs with TVM's importer; report what it lacks, and mend what it gets wrong ------


_OF_A_FAILED_IMPORT = "BlockBuilder destroyed with remaining blocks"
"""The messages that TVM may write after a failed import, even during the next one."""
_NO_CACHE = "give 'use_cache': False among the inputs, because a cache is not a tensor"


def import_program(program: torch.export.ExportedProgram, missing: Missing = "error") -> Loaded:
    """Return an exported program as TVM imports it, with its weights as parameters.

    Its origin has the program as decomposed into the operators that the importer knows. Raises
    LoadError with operator, layer and line.
    """
    with quiet() as captured, load_errors("the exported program cannot be imported by TVM"):
        imported = _imported(program, missing)
    lines = [line for line in captured.text.splitlines() if _OF_A_FAILED_IMPORT not in line]
    if not lines:
        return imported
    written = f"TVM wrote while the model was imported: {' '.join(lines)}"
    return replace(imported, notes=(*imported.notes, written))


@gc_paused()  # a program has many small values: a tenth faster without collections
def _imported(program: torch.export.ExportedProgram, missing: Missing) -> Loaded:
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    importer = ExportedProgramImporter()
    own = own_operators(importer)
    decomposed = _decomposed(program, {*importer.convert_map, *own})
    converter = _Converter(importer, missing, DerivedSizes(importer, decomposed).cast_inputs)
    lacking = {
        node.target.__name__: None
        for node in _calls(decomposed)
        if node.target.__name__ not in importer.convert_map
    }
    effects = [one for one in decomposed.graph.nodes if "with_effects" in str(one.target)]
    if effects:
        raise LoadError(
            f"TVM cannot import {described(effects[0])}: it has an effect, such as a check"
        )
    known = {**lacking, **importer.convert_map, **own}
    pair_complex_numbers(importer, decomposed)
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
    layers, places = torch_places(module, importer.env)
    module = with_source_lines(module, places)
    module, mended = mend(module)
    notes = [*missing_notes(converter.opaque, converter.computed, "torch"), *mended]
    if converter.rounded:
        words = "computed in float32, as TVM lacks it in this dtype"
        notes.append(f"{words}: {first_names(converter.rounded, 1)}")
    origin = None if converter.opaque else ProgramOrigin(decomposed, nodes, Returned.of(program))
    return Loaded(*detach_weights(module), notes=tuple(notes), origin=origin, layers=layers)


@contextlib.contextmanager
def quiet() -> Iterator[StderrCapture]:
    """Suppress the warnings of torch's own code, and capture those of TVM's importer."""
    with warnings.catch_warnings(), captured_stderr() as captured:
        warnings.simplefilter("ignore")
        yield captured


@contextlib.contextmanager
def load_errors(failed: str) -> Iterator[None]:
    """Raise LoadError instead of errors of any class from torch and TVM."""
    try:
        yield
    except (LoadError, MemoryError):
        raise
    except Exception as failure:
        lines = [line for line in str(failure).splitlines() if line.strip()]
        told = 2 if lines and lines[0].startswith("Constraints violated") else 1
        words = " ".join(line.strip() for line in lines[:told]) or type(failure).__name__
        advice = "; " + _NO_CACHE if "DynamicCache" in words else ""
        raise LoadError(f"{failed}: {words}{advice}") from failure


def _decomposed(
    program: torch.export.ExportedProgram, known: Collection[str]
) -> torch.export.ExportedProgram:
    """Return the program in ATen's core operators, without inputs and outputs that are constants.

    Operators that are not `known` are decomposed further where torch can. Constant inputs are
    constants in its graph. Sparse tensors cannot be decomposed.
    """
    import torch

    weights = [*program.state_dict.values(), *program.constants.values()]
    if any(isinstance(one, torch.Tensor) and one.layout != torch.strided for one in weights):
        return program
    decomposed = _run_decompositions(program)
    for _ in range(_MOST_DECOMPOSITIONS):
        others = _decompositions(decomposed, known)
        if not others:
            break
        decomposed = decomposed.run_decompositions(
            {**torch.export.default_decompositions(), **others}
        )
    _drop_checks(decomposed)
    signature = decomposed.graph_signature
    inputs, outputs = signature.input_specs, signature.output_specs
    inputs[:] = [one for one in inputs if not is_constant(one)]
    for spec in inputs:  # TVM makes constants without names of buffers
        if spec.persistent and decomposed.state_dict[spec.target].is_floating_point():
            spec.kind = torch.export.graph_signature.InputKind.PARAMETER
    node = decomposed.graph.output_node()
    values = [one for one, spec in zip(node.args[0], outputs, strict=True) if not is_constant(spec)]
    if values:
        node.args = (tuple(values),)
        outputs[:] = [one for one in outputs if not is_constant(one)]
    return decomposed


def _drop_checks(program: torch.export.ExportedProgram) -> None:
    """Remove the checks that a matrix could be decomposed, with the tokens that order them."""
    import torch

    graph, signature = program.graph, program.graph_signature
    for node in list(graph.nodes):
        is_effect = "with_effects" in str(node.target)
        if is_effect and node.args[1] is torch.ops.aten._linalg_check_errors.default:
            for token in list(node.users):
                token.replace_all_uses_with(node.args[0])
                graph.erase_node(token)
            graph.erase_node(node)
    output = graph.output_node()
    for spec in [one for one in signature.input_specs if one.kind.name == "TOKEN"]:
        (token,) = (one for one in graph.nodes if one.name == spec.arg.name)
        if token in output.args[0] and list(token.users) == [output]:
            at = output.args[0].index(token)
            output.args = (output.args[0][:at] + output.args[0][at + 1 :],)
            del signature.output_specs[at]
            signature.input_specs.remove(spec)
            graph.erase_node(token)


_MOST_DECOMPOSITIONS = 4
"""A decomposition may consist of operators that are decomposed in their turn."""


def _decompositions(
    program: torch.export.ExportedProgram, known: Collection[str]
) -> dict[Any, Callable[..., Any]]:
    """Return torch's decompositions of the operators in a program that are not known.

    Elementwise operators only become a primitive of the same name, which is not known either.
    """
    import torch
    from torch._decomp import decomposition_table

    called = {node.target for node in _calls(program)}
    return {
        one: decomposition_table[one]
        for one in called
        if getattr(one, "__name__", "") not in known
        and one in decomposition_table
        and torch.Tag.pointwise not in one.tags
    }


def _calls(program: torch.export.ExportedProgram) -> Iterator[Node]:
    """Yield the nodes that call something, those in branches and loops too."""
    for module in program.graph_module.modules():
        graph = getattr(module, "graph", None)
        yield from (node for node in graph.nodes if node.op == "call_function") if graph else ()


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


def _other_shape(converted: Any, wanted: Any) -> str:
    """Describe how the shape of an imported tensor differs from torch's, "" if it does not."""
    shape, type_ = getattr(wanted, "shape", None), getattr(converted, "ty", None)
    if shape is None or is_complex(wanted) or not isinstance(type_, relax.TensorType):
        return ""
    if type_.ndim < 0 or type_.shape is None:
        return ""
    sizes = [int(one) if isinstance(one, int | tirx.IntImm) else None for one in type_.shape]
    expected = [one if isinstance(one, int) else None for one in shape]
    pairs = zip(sizes, expected, strict=False)
    is_equal = all(None in pair or pair[0] == pair[1] for pair in pairs)
    if is_equal and len(sizes) == len(expected):
        return ""
    return f"it imports it with the shape {tuple(type_.shape)}, and torch has {tuple(shape)}"


def _left_out(converted: Any, node: Node) -> str:
    """Say if a node was imported with the first of its results alone, and others are used."""
    is_first = isinstance(getattr(converted, "ty", None), relax.TensorType)
    if not is_first or not isinstance(node.meta.get("val"), list | tuple):
        return ""
    is_used = any(user.users and user.args[1:] != (0,) for user in node.users)
    return "it imports it with the first of its results alone" if is_used else ""


@dataclass
class _Converter:
    """Converts nodes to the dtypes that they have in torch, and notes those without a definition.

    Attributes:
        begin: Called before the first node.
        sizes: The sizes that may vary, by their names in torch.
        opaque, computed: Descriptions of the calls that nothing defines, and that torch computes.
        rounded: Those of the calls that are computed in float32 in place of another dtype.
    """

    importer: ExportedProgramImporter
    missing: Missing
    begin: Callable[[], None]
    sizes: dict[str, tirx.Expr] = field(default_factory=dict)
    opaque: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)
    rounded: list[str] = field(default_factory=list)
    is_begun: bool = False

    def __call__(self, convert: Callable[[Node], relax.Expr] | None, node: Node) -> relax.Expr:
        """Convert a node; raise LoadError if impossible and opaque calls are not allowed."""
        reason, failure = "its importer has no such operator", None
        if not self.is_begun:
            self.begin()
            keep_dtypes(self.importer.block_builder)
            self.is_begun = True
        self._learn_sizes(node.all_input_nodes)
        if has_complex(node) and node.target.__name__ not in OF_COMPLEX:
            convert, reason = None, "TVM has no complex numbers"
        elif words := unsuited(node):
            convert, reason = None, words
        if convert is not None:
            try:
                with in_suitable_dtype(self.importer, node, self.rounded):
                    converted = convert(node)
                reason = _other_shape(converted, node.meta.get("val"))
                if not (reason := reason or _left_out(converted, node)):
                    return self._cast(converted, node.meta.get("val"))
            except (LoadError, MemoryError):
                raise
            except Exception as raised:  # the importer raises errors of any class
                reason, failure = one_line(raised), raised
        by = framework_calls.computed_by(f"{framework_calls.PREFIX}{node.target}")
        if self.missing == "error":
            raise UnsupportedOperatorError(
                f"TVM cannot import {described(node)}: {reason}; {missing_advice(by)}"
            ) from failure
        (self.computed if by else self.opaque).append(described(node))
        return self._opaque_call(node)

    def _learn_sizes(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            type_ = getattr(self.importer.env.get(node), "ty", None)
            if isinstance(type_, relax.TensorType) and type_.shape is not None:
                shape = getattr(node.meta.get("val"), "shape", ())
                for wanted, size in zip(shape, type_.shape, strict=False):
                    if not isinstance(wanted, int):
                        self.sizes.setdefault(str(wanted), size)

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
        type_ = getattr(converted, "ty", None)
        if not isinstance(type_, relax.TensorType) or self._has_dtype(type_, wanted):
            return converted
        return emit(relax.op.astype(converted, self.importer._convert_data_type(wanted.dtype)))

    def _has_dtype(self, type_: Any, wanted: Any) -> bool:
        """Tell whether a tensor's type has the dtype of a tensor of torch; True for other types."""
        found, dtype = str(getattr(type_, "dtype", None) or ""), getattr(wanted, "dtype", None)
        return (
            not found
            or dtype is None
            or is_complex(wanted)
            or found == self.importer._convert_data_type(dtype)
        )

    def _opaque_call(self, node: Node) -> relax.Expr:
        """Return a call that torch computes, with the operands, other arguments and type of a node.

        An operator that is not ATen's becomes a call of a function that does not exist. Sizes that
        depend on numbers become new symbols, which are added to `sizes`.

        Raises LoadError for a node without tensors, and for a size that is not known.
        """
        value, name = node.meta.get("val"), f"{framework_calls.PREFIX}{node.target}"
        call = described(node)
        is_one = not isinstance(value, list | tuple)
        values = [value] if is_one else list(value)
        has_tensors = [hasattr(one, "dtype") for one in values if one is not None]
        if not has_tensors or not all(has_tensors) or node.target is getitem:
            raise LoadError(f"{call} returns no tensor, so it cannot be an opaque node")
        before = len(self.sizes)
        types = [self._type(one, node) for one in values]
        names, operands = dict[Any, str](), list[relax.Expr]()
        for one in node.all_input_nodes:
            found = self.importer.env.get(one)
            if isinstance(found, relax.Expr):
                is_pair = is_complex(one.meta.get("val"))
                letter = framework_calls.COMPLEX if is_pair else framework_calls.REAL
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
                raise LoadError(f"{call} cannot be an opaque node: {failure}") from failure
            operands.append(ir.StringImm(text))
        has_new_sizes = before != len(self.sizes)
        if has_new_sizes and not is_known:
            raise _unknown_size(node)
        builder = self.importer.block_builder
        given = types[0] if is_one else types
        return framework_calls.emitted_call(
            builder, name, operands, given, has_new_sizes=has_new_sizes
        )

    def _type(self, tensor: torch.Tensor | None, node: Node) -> relax.TensorType:
        """Return the type of a tensor; one that torch leaves out is empty."""
        if tensor is None:
            return relax.TensorType([0], "float32")
        shape = [self._size(one, node) for one in tensor.shape]
        dtype = tensor.dtype
        if dtype.is_complex:
            shape, dtype = [*shape, tirx.IntImm("int64", 2)], dtype.to_real()
        return relax.TensorType(shape, self.importer._convert_data_type(dtype))

    def _size(self, size: Any, node: Node) -> Any:
        if isinstance(size, int):
            return size
        if str(size) not in self.sizes:
            expr = size.node.expr
            _, found = self.importer._process_derived_symbol(expr, self.sizes)
            if found is None and not expr.is_Symbol:
                raise _unknown_size(node)
            self.sizes[str(size)] = tirx.Var(str(size), "int64") if found is None else found
        return self.sizes[str(size)]


def _unknown_size(node: Node) -> LoadError:
    return LoadError(f"{described(node)} has a size that is not known, so it cannot be opaque")


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
            node: [
                *(size if isinstance(size, int) else size.node.expr for size in value.shape),
                *([2] if is_complex(value) else []),
            ]
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
        return self._process(symbol, known)  # type: ignore[no-any-return]

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
