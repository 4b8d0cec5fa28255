"""What loading gives: a module, with the weights and the example inputs that came with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir

Params = Mapping[str, NDArray[Any]]


class LoadError(ValueError):
    """What holds no module; the message says what it is and what would be right."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """Hold a module, the arrays for its parameters by name, and what it is called with.

    `inputs` are arrays by the names of the other parameters, or None; `function` is the one to
    look at, "" for the module's own choice; `notes` say what was changed to read it.
    """

    module: ir.IRModule
    params: Params = field(default_factory=dict)
    inputs: Any = None
    function: str = ""
    notes: tuple[str, ...] = ()


def plain_array(tensor: tvm.runtime.Tensor) -> NDArray[Any]:
    """Return the numbers of a tensor of TVM's, as an array of their dtype."""
    return np.asarray(tensor.numpy())


def weights_aside(mod: ir.IRModule, function: str = "main") -> tuple[ir.IRModule, Params]:
    """Take the weights out of the attribute in which TVM's importers leave them, by name."""
    import tvm.relax.frontend as frontend

    bare, kept = frontend.detach_params(mod)
    params = bare[function].params
    count = int(bare[function].attrs.get("num_input", len(params)))
    weights = params[count:]
    tensors = kept.get(function, [])
    return bare, {
        param.name: plain_array(tensor) for param, tensor in zip(weights, tensors, strict=True)
    }
