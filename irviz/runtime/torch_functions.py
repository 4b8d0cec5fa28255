"""Let PyTorch compute the calls of its operators in a module, such as those that TVM lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tvm

from irviz.errors import RunError, error_summary
from irviz.ir.torch_calls import COMPLEX, OperatorName, called_operator, read_arguments
from irviz.runtime.registrations import register_unobserved

if TYPE_CHECKING:
    import torch


def register_torch_functions(callees: Iterable[str]) -> None:
    """Register functions that call torch's operators under those of the names that mean one.

    A name that is registered already is left as it is. Here torch is imported, which a confined
    process cannot do.
    """
    for name in callees:
        operator = called_operator(name)
        if operator is not None and tvm.get_global_func(name, allow_missing=True) is None:
            register_unobserved(name, _calling(name, operator))


def _calling(name: str, operator: OperatorName) -> Callable[..., object]:
    """Return a function of operands, a text that says how to call the operator, and destinations.

    Without destinations it returns its results. It raises RunError for anything else, and for an
    operator that torch lacks.
    """
    function, why = _operator(operator)
    constants = {} if function is None else _constants()

    def call(*arguments: Any) -> object:
        texts = [at for at, one in enumerate(arguments) if isinstance(one, str)]
        at = texts[0] if texts else len(arguments)
        text, destinations = arguments[at : at + 1], arguments[at + 1 :]
        try:
            if function is None or not text:
                raise ValueError(why or "it has no text of its arguments")
            return _called(function, arguments[:at], text[0], destinations, constants)
        except Exception as failure:
            said = f"{name}({', '.join(map(repr, text))})"
            raise RunError(f"torch cannot compute {said}: {error_summary(failure)}") from failure

    return call


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
