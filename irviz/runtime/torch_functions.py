"""Let PyTorch compute the calls of its operators in a module, such as those that TVM lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import tvm

from irviz.errors import RunError
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
            function = _raising(name) if _torch() is None else _calling(name, operator)
            register_unobserved(name, function)


@lru_cache(maxsize=1)
def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _raising(name: str) -> Callable[..., object]:
    def call(*_: object) -> object:
        raise RunError(
            f"{name!r} is computed by PyTorch, which is not installed here: install irviz[torch], "
            "as in pip install 'irviz[torch]'"
        )

    return call


def _calling(name: str, operator: OperatorName) -> Callable[..., object]:
    """Return a function of operands, a text, and destinations, None of which are returned.

    Without destinations it returns its results.
    """
    import torch

    function = getattr(getattr(torch.ops.aten, operator.name, None), operator.overload, None)
    is_operator = isinstance(function, torch._ops.OpOverload) and function.namespace == "aten"
    if not is_operator or function._schema.is_mutable:
        return partial(_refuse, name)
    constants = {
        str(one): one
        for one in vars(torch).values()
        if isinstance(one, torch.dtype | torch.layout | torch.memory_format)
    }

    def call(*arguments: Any) -> object:
        at = next((at for at, one in enumerate(arguments) if isinstance(one, str)), None)
        if at is None:
            raise RunError(f"{name!r} was called without a text of its arguments")
        operands, text, destinations = arguments[:at], arguments[at], arguments[at + 1 :]

        def operand(letter: str, number: int) -> Any:
            given = operands[number]
            if not isinstance(given, tvm.runtime.Tensor):
                return given
            tensor = torch.from_dlpack(given)
            return torch.view_as_complex(tensor) if letter == COMPLEX else tensor

        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # a fork has none of the threads that its parent's torch started
        try:
            with torch.no_grad():
                args, named = read_arguments(text, operand, constants)
                results = _tensors(function(*args, **named))
                if not destinations:
                    made = [tvm.runtime.from_dlpack(one.clone().contiguous()) for one in results]
                    return made[0] if len(made) == 1 else made
                for result, place in zip(results, destinations, strict=True):
                    if result is not None:
                        torch.from_dlpack(place).copy_(result)
                return None
        except Exception as failure:
            raise RunError(f"{name}({text}): {failure}") from failure
        finally:
            torch.set_num_threads(threads)

    return call


def _refuse(name: str, *_: object) -> object:
    raise RunError(f"{name!r} is no operator of this PyTorch that irviz calls")


def _tensors(value: Any) -> list[torch.Tensor | None]:
    """Return the tensors of a result, complex ones as pairs of numbers."""
    import torch

    values = value if isinstance(value, list | tuple) else [value]
    return [
        torch.view_as_real(one.resolve_conj()) if one is not None and one.is_complex() else one
        for one in values
    ]
