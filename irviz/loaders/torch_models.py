"""What PyTorch has: modules, traced graphs, exported programs, .pt2 files -> IRModule, weights."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from irviz.loaders.loaded import Loaded, LoadError, Params, weights_aside
from irviz.loaders.pt2_archive import UnsafeError, plain_archive
from irviz.worker.noise import caught_noise
from irviz.worker.pool import TRIES, WorkerError

if TYPE_CHECKING:
    import torch

NEEDED = "PyTorch is needed for it: install irviz[torch], as in pip install 'irviz[torch]'"
SECONDS = 300.0
"""How long a file may take to be read."""
MEMORY = 8 << 30
_EXAMPLES = "give example inputs, as in irviz.load(model, inputs=(torch.ones(1, 784),))"


def from_module(model: torch.nn.Module, inputs: Any) -> Loaded:
    """Return a torch module as TVM imports it, with its weights as parameters.

    `inputs` are example inputs, whose shapes it is for: a tensor or array, a sequence of them, or
    a dict by the names of `forward`'s parameters. A GraphModule of torch.fx is imported as it is,
    and its inputs may be pairs of shape and dtype; any other module is exported by torch.export,
    for evaluation and not for training. Raises LoadError for what cannot be imported.
    """
    import torch

    if inputs is None:
        raise LoadError(
            f"{_named(model)} is a model of torch, whose graph depends on its inputs: {_EXAMPLES}"
        )
    if isinstance(model, torch.fx.GraphModule):
        return _from_traced(model, inputs)
    positional, named = _examples(inputs)
    with _quiet(), _evaluating(model), _told(f"{_named(model)} cannot be exported by torch.export"):
        program = torch.export.export(model, positional, named)
    return from_program(program, (positional, named))


def from_program(program: torch.export.ExportedProgram, inputs: Any = None) -> Loaded:
    """Return an exported program as TVM imports it, with its weights as parameters.

    `inputs` are the example inputs, as (positional, named); those that the program keeps are used
    where there are none. Raises LoadError for what TVM cannot import.
    """
    from tvm.relax.frontend.torch import from_exported_program

    with _quiet(), _told("the exported program cannot be imported by TVM"):
        mod = from_exported_program(
            program, keep_params_as_input=True, unwrap_unit_return_tuple=True
        )
    mod, params = weights_aside(mod)
    return Loaded(mod, params, _by_name(mod, params, inputs or program.example_inputs))


def from_pt2(content: bytes, name: str) -> Loaded:
    """Return the program in a .pt2 file of this name; nothing in the file is run.

    What torch would run as it reads such a file is left out first, or the file refused; then
    another process reads it. Raises LoadError.
    """
    try:
        archive = plain_archive(content)
    except UnsafeError as failure:
        raise LoadError(f"{name!r} {failure}") from failure
    try:
        return TRIES.call(_read_pt2, archive, seconds=SECONDS, memory=MEMORY)
    except LoadError as failure:
        raise LoadError(f"{name!r}: {failure}") from failure
    except WorkerError as failure:
        raise LoadError(f"{name!r} could not be read: {failure}") from failure


def _read_pt2(archive: bytes) -> Loaded:
    """Read a plain archive; the worker calls this."""
    try:
        import torch
    except ImportError:
        raise LoadError(NEEDED) from None
    with _quiet(), _told(f"it is damaged, or of another torch than {torch.__version__}"):
        program = torch.export.load(BytesIO(archive))
    return from_program(program)


def _from_traced(model: torch.fx.GraphModule, inputs: Any) -> Loaded:
    from tvm.relax.frontend.torch import from_fx

    examples = _in_order(inputs, [n.target for n in model.graph.nodes if n.op == "placeholder"])
    pairs = [_shape_and_dtype(example) for example in examples]
    with _quiet(), _told(f"{_named(model)} cannot be imported by TVM"):
        mod = from_fx(model, pairs, keep_params_as_input=True, unwrap_unit_return_tuple=True)
    mod, params = weights_aside(mod)
    if any(_is_pair(example) for example in examples):
        return Loaded(mod, params)
    return Loaded(mod, params, _by_name(mod, params, (tuple(examples), {})))


def _examples(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return example inputs by position and by name, as torch has them."""
    if isinstance(inputs, Mapping):
        return (), {str(name): _tensor(value) for name, value in inputs.items()}
    return tuple(_tensor(value) for value in _in_order(inputs)), {}


def _in_order(inputs: Any, names: Sequence[str] = ()) -> list[Any]:
    """Return inputs in the order of these names; raise LoadError where one is missing."""
    if isinstance(inputs, Mapping):
        if set(inputs) != set(names):
            there = ", ".join(map(repr, names)) or "none"
            raise LoadError(f"inputs for {list(inputs)} were given; the model takes {there}")
        return [inputs[name] for name in names]
    if isinstance(inputs, list | tuple) and not _is_pair(inputs):
        return list(inputs)
    return [inputs]


def _tensor(value: Any) -> Any:
    """Return an array as a tensor of torch; what is none stays what it is."""
    import torch

    if isinstance(value, str) or _is_pair(value):
        raise LoadError(f"{value!r} is no example input: {_EXAMPLES}")
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def _is_pair(value: Any) -> bool:
    """Return whether this is a shape and a dtype."""
    return isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[1], str)


def _shape_and_dtype(example: Any) -> tuple[tuple[int, ...], str]:
    if _is_pair(example):
        return tuple(int(size) for size in example[0]), example[1]
    if not hasattr(example, "shape"):
        raise LoadError(
            f"{example!r} is no example input: give a tensor, or a shape and a dtype, as in "
            "irviz.load(graph_module, inputs=[((1, 784), 'float32')])"
        )
    return tuple(example.shape), str(example.dtype).removeprefix("torch.")


def _by_name(mod: Any, params: Params, examples: Any) -> dict[str, Any] | None:
    """Return example inputs by the names of the parameters that are no weights, if they fit."""
    from torch.utils import _pytree

    if examples is None:
        return None
    names = [param.name for param in mod["main"].params if param.name not in params]
    positional, named = examples
    known = {name: value for name, value in named.items() if name in names}
    others = [value for name, value in named.items() if name not in names]
    leaves = [one for one in _pytree.tree_leaves((positional, others)) if hasattr(one, "shape")]
    left = [name for name in names if name not in known]
    if len(leaves) != len(left):  # numbers and flags became part of the graph
        return None
    found = {**known, **dict(zip(left, leaves, strict=True))}
    return {name: _array(found[name]) for name in names}


def _array(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()


def _named(model: torch.nn.Module) -> str:
    return type(model).__name__


@contextlib.contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Have the model in evaluation mode meanwhile, and each part as it was afterwards."""
    before = [(part, part.training) for part in model.modules()]
    try:
        model.eval()
        yield
    finally:
        for part, training in before:
            part.training = training


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Have no warnings meanwhile: they are of torch's own code, and of TVM's importer."""
    with warnings.catch_warnings(), caught_noise():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn what torch and TVM raise, which can be anything, into a LoadError in one sentence."""
    try:
        yield
    except LoadError:
        raise
    except Exception as failure:
        lines = [line for line in str(failure).splitlines() if line.strip()]
        words = lines[0].strip() if lines else type(failure).__name__
        raise LoadError(f"{what}: {words}") from failure
