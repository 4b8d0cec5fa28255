"""Let PyTorch and ONNX compute calls of their operators, such as those that TVM lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tvm

from irviz.errors import RunError, error_summary
from irviz.ir.framework_calls import CANNOT, ONNX_PREFIX, called_operator, computed_by
from irviz.runtime.onnx_functions import onnx_function
from irviz.runtime.registrations import register_unobserved
from irviz.runtime.torch_functions import Compute, torch_function


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
