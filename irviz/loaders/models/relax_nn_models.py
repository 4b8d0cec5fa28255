"""Load modules of `relax.frontend.nn`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import spec

from irviz.errors import LoadError
from irviz.loaders.file_limits import one_line
from irviz.loaders.loaded_model import Loaded

_SPEC = (
    "give the specs of its inputs, as in irviz.load(model, inputs={'forward': {'x': "
    "nn.spec.Tensor([1, 784], 'float32')}})"
)
_METHODS = "give a dict of specs for each method, as in inputs={'prefill': {…}, 'decode': {…}}"
_MODES = "$"
"""The key under which a spec says how weights are passed."""


def from_nn(model: nn.Module, inputs: Any) -> Loaded:
    """Return a `relax.frontend.nn` module as TVM exports it, with the weights that it has.

    `inputs` are specs or arrays for `forward`, in order or by name; or those of several methods, in
    a dict by method name; or a ModuleSpec. By default, the model's `get_default_spec`, as in
    mlc-llm, is used. Raises LoadError if the module cannot be exported.
    """
    if inputs is None and hasattr(model, "get_default_spec"):
        inputs = model.get_default_spec()
    if inputs is None:
        raise LoadError(f"{type(model).__name__} has no sizes of its own: {_SPEC}")
    if isinstance(inputs, spec.ModuleSpec):
        specs, method, parameters = inputs, inputs.method_names[0], dict[str, Any]()
    else:
        methods = _methods(model, inputs)
        specs = {
            method: {
                name: value if name == _MODES else _spec(name, value)
                for name, value in parameters.items()
            }
            for method, parameters in methods.items()
        }
        method, parameters = next(iter(methods.items()))
    try:
        mod, weights = model.export_tvm(specs, allow_extern=True)[:2]
    except Exception as failure:  # the model's own code raises anything
        reason = f"{type(model).__name__} cannot be exported by TVM: {one_line(failure)}"
        raise LoadError(reason) from failure
    params = {name: weight.data.numpy() for name, weight in weights if weight.data is not None}
    arrays = {n: value for n, value in parameters.items() if isinstance(value, np.ndarray)}
    return Loaded(mod, params, arrays if len(arrays) == len(parameters) else None, method)


def _methods(model: nn.Module, inputs: Any) -> dict[str, dict[str, Any]]:
    """Return the inputs of each method, by parameter."""
    if isinstance(inputs, Mapping):
        if all(isinstance(value, Mapping) for value in inputs.values()):
            return {str(method): dict(value) for method, value in inputs.items()}
        return {"forward": dict(inputs)}
    values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if not hasattr(model, "forward"):
        raise LoadError(f"{type(model).__name__} has no method 'forward': {_METHODS}")
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
    raise LoadError(f"{name!r} is {value!r}, which has no size: {_SPEC}")
