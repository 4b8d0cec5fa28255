"""The result of loading: a module, with its weights and its example inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray
from tvm import ir

from irviz.errors import RunError
from irviz.ir.parameter_values import tensor_array
from irviz.model.graph.layers import LayersByNode
from irviz.model.runs.run_result import Origin
from irviz.units import first_names

Params = Mapping[str, NDArray[Any]]
Missing = Literal["error", "opaque"]
"""What to do with calls that TVM's importer does not support: raise, or import them undefined."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """A module, with everything that was loaded with it.

    Attributes:
        params: Arrays for its parameters, by name.
        inputs: Arrays for the other parameters, by name, or None.
        function: The function to show first, or "" for the module's default.
        notes: Changes made to read the file, and what TVM wrote during that.
        origin: The model that the module was imported from, None if it cannot be run.
        layers: The layers that bindings come from, by function.
    """

    module: ir.IRModule
    params: Params = field(default_factory=dict)
    inputs: Any = None
    function: str = ""
    notes: tuple[str, ...] = ()
    origin: Origin | None = None
    layers: Mapping[str, LayersByNode] = field(default_factory=dict)


def detach_weights(mod: ir.IRModule) -> tuple[ir.IRModule, Params]:
    """Split a module from the weights that TVM's importers keep in an attribute of `main`.

    The arrays share the importer's memory, which for PyTorch is that of the model's tensors.
    """
    import tvm.relax.frontend as frontend

    bare, kept = frontend.detach_params(mod)
    params = bare["main"].params
    count = int(bare["main"].attrs.get("num_input", len(params)))
    weights = params[count:]
    tensors = kept.get("main", [])
    arrays = {
        param.name: tensor_array(tensor) for param, tensor in zip(weights, tensors, strict=True)
    }
    for array in arrays.values():
        array.flags.writeable = False  # a worker and its parent share what cannot be written
    return bare, arrays


def missing_notes(opaque: Sequence[str], computed: Sequence[str], by: str) -> list[str]:
    """Return notes on calls without a definition, and on those that `by`, a framework, computes."""
    effects = (opaque, "the model can be drawn, but not run"), (computed, f"{by} computes it")
    return [
        f"TVM does not know {first_names(calls, 1)}: {effect}" for calls, effect in effects if calls
    ]


def missing_advice(by: str) -> str:
    """Return what an error advises for a call that TVM lacks, and `by`, if not "", computes."""
    effect = f"lets {by} compute it" if by else "only draws it"
    return f"missing='opaque', or irviz open --missing opaque, {effect}"


# --- The file that a module was imported from, to be read again when the original is run ---------


@dataclass(frozen=True)
class OriginFile:
    """A file, as its path and a hash of its content, or the content itself if there is no path."""

    path: Path | None
    digest: bytes
    content: bytes = b""

    @classmethod
    def of(cls, content: bytes, path: Path | None) -> OriginFile:
        """Return the file at a path, or the content if there is no path."""
        return cls(path, hashlib.sha256(content).digest()) if path else cls(None, b"", content)

    def read(self) -> bytes:
        """Return the content; raise RunError if the file has been changed."""
        if self.path is None:
            return self.content
        content = self.path.read_bytes()
        if hashlib.sha256(content).digest() != self.digest:
            raise RunError(f"{str(self.path)!r} has changed since it was opened")
        return content
