"""BindParams turns parameters into constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import ir, relax

from irviz.errors import TransformError
from irviz.ir.module_functions import relax_function
from irviz.ir.parameter_values import TypeMismatchError, check_tensor, shared_tensor, tensor_array
from irviz.transforms.export_python import PythonScript
from irviz.transforms.stage import SavedAs, Transform
from irviz.worker.shared_arrays import is_shared, writable

_MOST_NAMED = 8
"""The most parameters that a label names: a transformer has hundreds."""


@dataclass(frozen=True)
class BindParams(Transform):
    """Bind parameters of one function, by name, to constants."""

    saved_as = SavedAs("bind", {"params": dict, "function": str})

    params: Mapping[str, tvm.runtime.Tensor]
    function: str = "main"

    def __post_init__(self) -> None:
        """Check that there are tensors: a file may say otherwise."""
        if not all(isinstance(one, tvm.runtime.Tensor) for one in self.params.values()):
            raise TransformError("its params are not all tensors")

    @property
    def label(self) -> str:
        """The label of the stage it makes."""
        many = f"{len(self.params)} parameters"
        return f"BindParams {many if len(self.params) > _MOST_NAMED else ', '.join(self.params)}"

    # TVM's pass puts the given tensor itself into the module, so the identity of a tensor tells
    # which parameter was bound
    @property
    def constant_names(self) -> Mapping[tvm.runtime.Tensor, str]:
        """The parameters' names by the tensors that replace them."""
        return {tensor: name for name, tensor in self.params.items()}

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:  # noqa: ARG002
        """Write the pass, with the arrays by name."""
        arrays = {name: script.array(name, value.numpy()) for name, value in self.params.items()}
        items = ", ".join(f"{name!r}: {expression}" for name, expression in arrays.items())
        script.add(
            f"mod = relax.transform.BindParams({self.function!r}, {{{items}}})(mod)",
            needs=("from tvm import relax",),
        )

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the module with the parameters bound; raise TransformError if one does not fit."""
        params = {param.name: param for param in relax_function(mod, self.function).params}
        unknown = [name for name in self.params if name not in params]
        if unknown or not self.params:
            there = ", ".join(map(repr, params)) or "none"
            what = f"no parameter {unknown[0]!r}" if unknown else "nothing to bind"
            raise TransformError(
                f"{self.function!r} has {what}; its parameters are {there}: name some of these"
            )
        dims: dict[str, int] = {}
        try:
            for name, tensor in self.params.items():
                check_tensor(name, tensor_array(tensor), params[name].ty, dims)
        except TypeMismatchError as misfit:
            raise TransformError(str(misfit)) from misfit
        return relax.transform.BindParams(self.function, dict(self.params))(mod)


def bind_params(params: Mapping[str, np.ndarray], function: str = "main") -> BindParams:
    """Return the transform that binds these arrays; their values are shared, or copied now.

    Raises TransformError for an array that TVM cannot convert to a tensor.
    """
    tensors = {}
    for name, array in params.items():
        try:
            is_kept = isinstance(array, np.ndarray) and is_shared(array)
            make = shared_tensor if is_kept else tvm.runtime.tensor
            tensors[name] = make(writable(array) if is_kept else np.asarray(array))
        except (TypeError, ValueError) as failure:  # noqa: PERF203 - the error names the array
            raise TransformError(
                f"{name!r} cannot become a tensor: {failure}; give an array of numbers, as in "
                f"numpy.asarray({name}, dtype='float32')"
            ) from failure
    return BindParams(tensors, function)
