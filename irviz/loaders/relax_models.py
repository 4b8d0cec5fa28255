"""What TVM has in Python: functions, and modules of `relax.frontend.nn` -> IRModule."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm import ir, relax, tirx
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import spec

from irviz.loaders.loaded import Loaded, LoadError, plain_array

_SPEC = (
    "give what it takes, as in irviz.load(model, inputs={'forward': {'x': "
    "nn.spec.Tensor([1, 784], 'float32')}})"
)


def from_function(function: relax.Function | tirx.PrimFunc) -> Loaded:
    """Return a module of one function, under its global symbol, or as "main"."""
    attributes = function.attrs or {}
    name = str(attributes["global_symbol"]) if "global_symbol" in attributes else "main"
    public = function.with_attr("global_symbol", name)
    return Loaded(ir.IRModule({ir.GlobalVar(name): public}), function=name)


def from_nn(model: nn.Module, inputs: Any) -> Loaded:
    """Return a module of `relax.frontend.nn` as it exports itself, with the weights it has.

    `inputs` are the specs of a method's parameters by name, those of several methods by theirs,
    or arrays, in order or by name, for `forward`. Raises LoadError for what cannot be exported.
    """
    if inputs is None:
        raise LoadError(f"{type(model).__name__} is a model without sizes: {_SPEC}")
    given = _methods(model, inputs)
    specs = {
        method: {name: _spec(name, value) for name, value in parameters.items()}
        for method, parameters in given.items()
    }
    try:
        mod, weights = model.export_tvm(specs)[:2]
    except Exception as failure:  # whatever the model's own code raises
        words = " ".join(str(failure).split())[:500] or type(failure).__name__
        raise LoadError(f"{type(model).__name__} cannot be exported by TVM: {words}") from failure
    method, parameters = next(iter(given.items()))
    params = {name: plain_array(weight.data) for name, weight in weights if weight.data is not None}
    arrays = {n: value for n, value in parameters.items() if isinstance(value, np.ndarray)}
    return Loaded(mod, params, arrays if len(arrays) == len(parameters) else None, method)


def _methods(model: nn.Module, inputs: Any) -> dict[str, dict[str, Any]]:
    """Return what is given for the parameters of each method, by name."""
    if isinstance(inputs, Mapping):
        if all(isinstance(value, Mapping) for value in inputs.values()):
            return {str(method): dict(value) for method, value in inputs.items()}
        return {"forward": dict(inputs)}
    values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    names = list(inspect.signature(model.forward).parameters)
    if len(values) > len(names):
        raise LoadError(
            f"{len(values)} inputs were given, and {type(model).__name__}.forward takes "
            f"{', '.join(names) or 'none'}: {_SPEC}"
        )
    return {"forward": dict(zip(names, values, strict=False))}


def _spec(name: str, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return spec.Tensor(list(value.shape), str(value.dtype))
    if isinstance(value, spec.Tensor | spec.Tuple | spec.Object) or value is int:
        return value
    raise LoadError(f"{name!r} is {value!r}, from which no size is known: {_SPEC}")
