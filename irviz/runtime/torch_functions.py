"""Compute calls of PyTorch's operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tvm

from irviz.ir.framework_calls import COMPLEX, OperatorName, read_arguments

if TYPE_CHECKING:
    import torch

Compute = Callable[[Sequence[Any], str, Sequence[Any]], object]
"""Computes a call from its operands, the text of its arguments, and destinations.

Without destinations it returns its results. It raises an error of any class.
"""


def torch_function(operator: OperatorName) -> Compute:
    """Return what computes calls of an operator, or raises ValueError if torch lacks it."""
    function, why = _operator(operator)
    constants = {} if function is None else _constants()

    def compute(operands: Sequence[Any], text: str, destinations: Sequence[Any]) -> object:
        if function is None:
            raise ValueError(why)
        return _called(function, operands, text, destinations, constants)

    return compute


def _operator(operator: OperatorName) -> tuple[Any, str]:
    """Return an operator, or None and why there is none."""
    try:
        import torch
    except ImportError:
        return (
            None,
            "PyTorch is not installed: install irviz[torch], as in pip install 'irviz[torch]'",
        )
    found = getattr(getattr(torch.ops.aten, operator.name, None), operator.overload, None)
    if not isinstance(found, torch._ops.OpOverload) or found.namespace != "aten":
        return None, f"torch {torch.__version__} has no such operator"
    if found._schema.is_mutable:
        return None, "it writes to its arguments"
    return found, ""


def _constants() -> dict[str, Any]:
    import torch

    kinds = torch.dtype, torch.layout, torch.memory_format
    return {str(one): one for one in vars(torch).values() if isinstance(one, kinds)}


def _called(
    function: Callable[..., Any],
    operands: Sequence[Any],
    text: str,
    destinations: Sequence[Any],
    constants: Mapping[str, Any],
) -> object:
    import torch

    def operand(letter: str, number: int) -> Any:
        given = operands[number]
        if not isinstance(given, tvm.runtime.Tensor):
            return given
        tensor = torch.from_dlpack(given)
        return torch.view_as_complex(tensor) if letter == COMPLEX else tensor

    args, named = read_arguments(text, operand, constants)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a fork has none of the threads that its parent's torch started
    try:
        with torch.no_grad():
            results = _tensors(function(*args, **named))
            if not destinations:
                made = [tvm.runtime.from_dlpack(one.clone().contiguous()) for one in results]
                return made[0] if len(made) == 1 else made
            for result, destination in zip(results, destinations, strict=True):
                place = torch.from_dlpack(destination)
                if not result.numel():  # left out by torch, as nobody asked for it
                    place.zero_()
                elif place.shape == result.shape:  # others would be broadcast
                    place.copy_(result)
                else:
                    raise ValueError(f"it gives {tuple(result.shape)} for {tuple(place.shape)}")
    finally:
        torch.set_num_threads(threads)
    return None


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors of a result, complex numbers as pairs, and None as an empty one."""
    import torch

    values = value if isinstance(value, list | tuple) else [value]
    given = [torch.empty(0) if one is None else one for one in values]
    return [torch.view_as_real(one.resolve_conj()) if one.is_complex() else one for one in given]
