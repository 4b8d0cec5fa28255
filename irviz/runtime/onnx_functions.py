"""Compute calls of ONNX's operators with its reference evaluator."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import tvm

from irviz.ir.framework_calls import read_arguments
from irviz.runtime.torch_functions import Compute


def onnx_function(operator: str) -> Compute:
    """Return what computes calls of an operator, or raises ValueError without ONNX."""
    with contextlib.suppress(ImportError):
        import onnx.reference.ops._op_list  # noqa: F401 - it imports every operator
    return partial(_computed, operator)


def _computed(
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
