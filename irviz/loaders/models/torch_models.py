"""Load PyTorch's modules, traced graphs, exported programs and .pt2 files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from irviz.errors import LoadError
from irviz.loaders.loaded_model import Loaded, Missing, Params, detach_weights
from irviz.loaders.models.torch_importer import import_program, load_errors, quiet
from irviz.loaders.models.torch_origin import torch_array

if TYPE_CHECKING:
    import torch

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
