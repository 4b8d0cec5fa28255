"""Replace a PrimFunc of the module by one that the user has written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import tvm
from tvm import ir, tirx

from irviz.ir.identity import relax_functions
from irviz.transforms.kernels import rebind
from irviz.transforms.kernels import signature as signatures
from irviz.transforms.kernels.replacements import calls, prim_funcs
from irviz.transforms.python import Script, embedded
from irviz.transforms.stage import TransformError
from irviz.transforms.tvmscript import prim_func_source


@dataclass(frozen=True)
class UpdateFunction:
    """Put a PrimFunc in the place of the one that the module has by this name."""

    name: str
    prim_func: tirx.PrimFunc
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The words of the stage it makes."""
        return f"update {self.name}"

    @property
    def tried_as(self) -> None:
        """Nothing: what could go wrong is checked first."""

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the module with it; raise TransformError unless it fits all calls of the name."""
        reason = obstacle(mod, self.name, self.prim_func)
        if reason:
            raise TransformError(reason)
        return rebind.with_function(mod, self.name, self.prim_func)

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:  # noqa: ARG002
        """Write the PrimFunc as TVMScript, and the statement that puts it into the module."""
        write_function(script, self.name, self.prim_func)


def obstacle(mod: ir.IRModule, name: str, prim_func: object) -> str:
    """Say why a PrimFunc cannot take the place of the module's one of this name, or ""."""
    there = prim_funcs(mod)
    if not isinstance(prim_func, tirx.PrimFunc):
        return f"{prim_func!r} is no PrimFunc: give one, such as a function under @T.prim_func"
    if name not in there:
        names = ", ".join(map(repr, there)) or "none"
        return f"the module has no PrimFunc {name!r}; its PrimFuncs are {names}: name one of these"
    for wanted, (function, node) in _wanted(mod, name).items():
        own = signatures.of_prim_func(prim_func, len(wanted.outputs))
        if own is None:
            return f"the new {name!r} has parameters that are no buffers: give one that has none"
        if not signatures.fits(own, wanted):
            return (
                f"the new {name!r} does not fit its call at {node!r} in {function!r}: its "
                f"signature is {own}, and the call has "
                f"{wanted}"
            )
    return ""


def write_function(script: Script, name: str, prim_func: tirx.PrimFunc) -> None:
    """Write a PrimFunc, as TVMScript where that says all of it, and put it into the module."""
    variable = "".join(char if char.isalnum() else "_" for char in f"new_{name}")
    script.define(rebind.with_function, rebind.NEEDS)
    expression = prim_func_source(prim_func, variable)
    if expression is None:
        expression = embedded(prim_func)
        script.add(needs=("import base64", "import zlib"))
    script.add(f"{variable} = {expression}")
    script.add(f"mod = with_function(mod, {name!r}, {variable})")


@lru_cache(maxsize=8)
def _wanted(mod: ir.IRModule, name: str) -> dict[signatures.Signature, tuple[str, str]]:
    """Return the signatures at the calls of a name, each with the first function and node.

    A call whose arguments are no tensors of known shape has none: what fits it is not known.
    """
    found: dict[signatures.Signature, tuple[str, str]] = {}
    for function_name, function in relax_functions(mod).items():
        for node, bound in calls(function).items():
            wanted = signatures.of_call(bound.call) if bound.callee == name else None
            if wanted is not None:
                found.setdefault(wanted, (function_name, str(node)))
    return found
