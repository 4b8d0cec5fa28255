"""Let PyTorch and ONNX compute calls of their operators, such as those that TVM lacks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm

from irviz.errors import RunError, error_summary
from irviz.ir.framework_calls import (
    CANNOT,
    COMPLEX,
    ONNX_PREFIX,
    OperatorName,
    called_operator,
    computed_by,
    read_arguments,
)
from irviz.runtime.registered_functions import register_unobserved

if TYPE_CHECKING:
    import torch

Compute = Callable[[Sequence[Any], str, Sequence[Any]], object]
"""Computes a call from its operands, the text of its arguments, and destinations.

Without destinations it returns its results. It raises an error of any class.
"""


def register_framework_functions(callees: Iterable[str]) -> None:
    """Register functions that compute the calls of those names that mean an operator.

    A name that is registered already is left as it is. Here the framework is imported, which a
    confined process cannot do.
    """
    for name in callees:
        if computed_by(name) and tvm.get_global_func(name, allow_missing=True) is None:
            operator = called_operator(name)
            function = (
                torch_function(operator) if operator else onnx_function(name[len(ONNX_PREFIX) :])
            )
            register_unobserved(name, _calling(name, function))


def _calling(name: str, function: Compute) -> Callable[..., object]:
    """Return a function of operands, a text that says how to call an operator, and destinations.

    It raises RunError for all that goes wrong.
    """

    def call(*arguments: Any) -> object:
        texts = [at for at, one in enumerate(arguments) if isinstance(one, str)]
        at = texts[0] if texts else len(arguments)
        text, destinations = arguments[at : at + 1], arguments[at + 1 :]
        try:
            if not text:
                raise ValueError("it has no text of its arguments")
            return function(arguments[:at], text[0], destinations)
        except Exception as failure:
            said = f"{name}({', '.join(map(repr, text))})"
            reason = error_summary(failure)
            raise RunError(f"{computed_by(name)} {CANNOT} {said}: {reason}") from failure

    return call


# --- PyTorch's operators ---------------------------------------------------------------------


def torch_function(operator: OperatorName) -> Compute:
    """Return what computes calls of an operator, or raises ValueError if torch lacks it."""
    with contextlib.suppress(ValueError):  # which each call raises
        _torch_operator(operator)
        _torch_constants()
    return partial(_computed_by_torch, operator)


@cache
def _torch_operator(operator: OperatorName) -> Any:
    """Return an operator; raise ValueError if there is none, or if it writes to its arguments."""
    try:
        import torch
    except ImportError:
        raise ValueError(
            "PyTorch is not installed: install irviz[torch], as in pip install 'irviz[torch]'"
        ) from None
    found = getattr(getattr(torch.ops.aten, operator.name, None), operator.overload, None)
    if not isinstance(found, torch._ops.OpOverload) or found.namespace != "aten":
        raise ValueError(f"torch {torch.__version__} has no such operator")
    if found._schema.is_mutable:
        raise ValueError("it writes to its arguments")
    return found


@cache
def _torch_constants() -> dict[str, Any]:
    import torch

    kinds = torch.dtype, torch.layout, torch.memory_format
    return {str(one): one for one in vars(torch).values() if isinstance(one, kinds)}


def _computed_by_torch(
    operator: OperatorName, operands: Sequence[Any], text: str, destinations: Sequence[Any]
) -> object:
    function = _torch_operator(operator)
    import torch

    def operand(letter: str, number: int) -> Any:
        given = operands[number]
        if not isinstance(given, tvm.runtime.Tensor):
            return given
        tensor = torch.from_dlpack(given)
        return torch.view_as_complex(tensor) if letter == COMPLEX else tensor

    args, named = read_arguments(text, operand, _torch_constants())
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


# --- ONNX's operators, by its reference evaluator --------------------------------------------


def onnx_function(operator: str) -> Compute:
    """Return what computes calls of an operator, or raises ValueError without ONNX."""
    with contextlib.suppress(ImportError):
        import onnx.reference.ops._op_list  # noqa: F401 - it imports every operator
    return partial(_computed_by_onnx, operator)


def _computed_by_onnx(
    operator: str, operands: Sequence[Any], text: str, destinations: Sequence[Any]
) -> object:
    """Compute a call, whose text has the version of the `opset` and the `outputs` by number too."""
    try:
        from onnx import helper
        from onnx.reference import ReferenceEvaluator
    except ImportError:
        raise ValueError(
            "ONNX is not installed: install irviz[onnx], as in pip install 'irviz[onnx]'"
        ) from None
    used = dict[str, Any]()

    def operand(letter: str, number: int) -> str:
        used[f"{letter}{number}"] = operands[number].numpy()
        return f"{letter}{number}"

    args, attributes = read_arguments(text, operand, {})
    opset, outputs = attributes.pop("opset"), attributes.pop("outputs")
    names = [f"y{at}" if at in outputs else "" for at in range(max(outputs) + 1)]
    types = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in used.items()
    ]
    results = [helper.make_empty_tensor_value_info(f"y{at}") for at in outputs]
    node = helper.make_node(operator, [one or "" for one in args], names, **attributes)
    graph = helper.make_graph([node], "call", types, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    found = [np.asarray(one) for one in ReferenceEvaluator(model).run(None, used)]
    if not destinations:
        made = [tvm.runtime.tensor(one) for one in found]
        return made[0] if len(made) == 1 else made
    for result, destination in zip(found, destinations, strict=True):
        if result.shape != tuple(destination.shape):  # others might be broadcast
            raise ValueError(f"it gives {result.shape} for {tuple(destination.shape)}")
        destination.copyfrom(result)
    return None
