"""Load PyTorch's modules, traced graphs, exported programs and .pt2 files."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from irviz.errors import LoadError, RunError
from irviz.loaders.file_limits import one_line
from irviz.loaders.loaded_model import (
    Loaded,
    Missing,
    Params,
    computed_note,
    detach_weights,
    opaque_note,
)
from irviz.loaders.models.imported_layers import described
from irviz.loaders.models.torch_importer import ImportedProgram, Returned, import_program
from irviz.loaders.models.torch_opaque_calls import as_pairs, is_complex
from irviz.model.graph.graph import NodeId, grouped
from irviz.model.runs.execution_trace import Array
from irviz.model.runs.run_result import Origin, OriginRun, ValueRecorder
from irviz.worker.captured_output import StderrCapture, captured_stderr

if TYPE_CHECKING:
    import torch
    from torch.fx import Node

_OF_A_FAILED_IMPORT = "BlockBuilder destroyed with remaining blocks"
"""The messages that TVM may write after a failed import, even during the next one."""
_NO_CACHE = "give 'use_cache': False among the inputs, because a cache is not a tensor"
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
    imported, written = imported_program(program, missing)
    mod, weights = detach_weights(imported.module)
    params = {name: array.copy() for name, array in weights.items()}  # the model may be trained on
    examples = _by_name(mod, params, inputs or program.example_inputs)
    parts = imported.program, imported.nodes, imported.returned
    origin = None if imported.opaque else ProgramOrigin(*parts)
    notes, layers = notes_of(imported, written), {"main": imported.layers}
    return Loaded(mod, params, examples, notes=notes, origin=origin, layers=layers)


def imported_program(
    program: torch.export.ExportedProgram, missing: Missing
) -> tuple[ImportedProgram, str]:
    """Import a program; return it with what TVM wrote during that."""
    with quiet() as captured, load_errors("the exported program cannot be imported by TVM"):
        imported = import_program(program, missing)
    return imported, captured.text


def notes_of(imported: ImportedProgram, written: str) -> tuple[str, ...]:
    """Return notes on an import."""
    notes = []
    if imported.opaque:
        notes.append(opaque_note(imported.opaque))
    if imported.computed:
        notes.append(computed_note(imported.computed, "torch"))
    notes += imported.mended
    lines = [line for line in written.splitlines() if _OF_A_FAILED_IMPORT not in line]
    if lines:
        notes.append(f"TVM wrote while the model was imported: {' '.join(lines)}")
    return tuple(notes)


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
    return {name: _array(found[name]) for name in names}


def _array(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value
    if str(value.dtype) == "torch.bfloat16":  # which NumPy does not have itself
        import ml_dtypes
        import torch

        return value.detach().cpu().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return as_pairs(value.detach()).cpu().numpy()


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


# --- Run an exported program with torch, for comparison with the imported module -----------------


@dataclass(frozen=True, eq=False)
class ProgramOrigin(Origin):
    """A program in memory, whose weights may be replaced by arguments.

    `nodes` are those of its graph whose values are recorded, by the module's variables.
    """

    program: torch.export.ExportedProgram
    nodes: Mapping[str, Node]
    returned: Returned
    name = "torch"
    is_isolated = False

    def run(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Run the program's graph node by node; raise RunError, naming the node, if one fails."""
        import torch

        program, nodes = self.program, self.nodes
        ids = grouped((node.name, NodeId(variable)) for variable, node in nodes.items())
        recorder = ValueRecorder(budget)

        interpreter = torch.fx.Interpreter(program.graph_module)
        interpreter.extra_traceback = False  # it would follow the reason
        run_node = interpreter.run_node

        def recorded(node: Node) -> Any:
            try:
                value = run_node(node)
            except Exception as failure:
                raise RunError(f"{described(node)}: {one_line(failure)}") from failure
            for one in ids.get(node.name, ()):
                recorder.add(one, _arrays(value))
            return value

        interpreter.run_node = recorded
        with torch.no_grad():
            values = interpreter.run(*_arguments(program, arguments))
        specs = program.graph_signature.output_specs
        kinds = torch.export.graph_signature.OutputKind
        outputs = [
            array
            for value, spec in zip(values, specs, strict=True)
            if spec.kind in (kinds.USER_OUTPUT, kinds.LOSS_OUTPUT)
            for array in _arrays(value)
        ]
        labels = {NodeId(variable): described(node) for variable, node in nodes.items()}
        return OriginRun(tuple(outputs), recorder.trace("main"), labels)

    def value(self, outputs: Sequence[Array]) -> object:
        """Return outputs in the structure of what the program returns."""
        return self.returned.value(outputs)


def _arguments(
    program: torch.export.ExportedProgram, arguments: Mapping[str, Array]
) -> list[object]:
    """Return the values of the graph's placeholders; constants are in the program."""
    import torch

    targets = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs}
    found: list[object] = []
    for node in program.graph.find_nodes(op="placeholder"):
        target = targets.get(node.name)
        if node.name in arguments:
            given = _torch_tensor(arguments[node.name])
            is_paired = is_complex(node.meta.get("val"))
            found.append(torch.view_as_complex(given) if is_paired else given)
        elif target in program.state_dict:
            found.append(program.state_dict[target])
        else:
            found.append(program.constants.get(target, node.meta.get("val")))
    return found


def _torch_tensor(array: Array) -> torch.Tensor:
    import torch

    if array.dtype.name == "bfloat16":  # which NumPy does not have itself
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def _arrays(value: object) -> list[Array]:
    """Return the tensors of a node's value."""
    import torch
    from torch.utils import _pytree

    return [_array(one) for one in _pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]
