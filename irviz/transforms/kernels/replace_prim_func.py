"""Replace a PrimFunc of the module by one that the user has written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tvm import ir, tirx

from irviz.errors import TransformError
from irviz.ir.module_functions import prim_funcs, relax_functions
from irviz.transforms.kernels import change_calls
from irviz.transforms.kernels import signature as signatures
from irviz.transforms.kernels.call_targets import dps_calls
from irviz.transforms.python_script import PythonScript, source_of, tvmscript_source
from irviz.transforms.transform import Transform


@dataclass(frozen=True)
class UpdateFunction(Transform):
    """Replace the module's PrimFunc of this name."""

    name: str
    prim_func: tirx.PrimFunc

    @property
    def label(self) -> str:
        """The label of the stage it makes."""
        return f"update {self.name}"

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the new module; raise TransformError unless the PrimFunc fits all calls."""
        reason = update_obstacle(mod, self.name, self.prim_func)
        if reason:
            raise TransformError(reason)
        return change_calls.put_function(mod, self.name, self.prim_func)

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:  # noqa: ARG002
        """Write the PrimFunc and the statement that puts it into the module."""
        write_function(script, self.name, self.prim_func)


def update_obstacle(mod: ir.IRModule, name: str, prim_func: object) -> str:
    """Return why a PrimFunc cannot replace the module's PrimFunc of this name, "" when it can."""
    there = prim_funcs(mod)
    if not isinstance(prim_func, tirx.PrimFunc):
        return f"{prim_func!r} is not a PrimFunc: give one, such as a function under @T.prim_func"
    if name not in there:
        names = ", ".join(map(repr, there)) or "none"
        return f"the module has no PrimFunc {name!r}; its PrimFuncs are {names}: name one of these"
    for wanted, (function, node) in _call_signatures(mod, name).items():
        own = signatures.signature_of_prim_func(prim_func, len(wanted.outputs))
        if own is None:
            return f"the new {name!r} has parameters that are not buffers: give one without them"
        if not signatures.fits(own, wanted):
            return (
                f"the new {name!r} does not fit its call at {node!r} in {function!r}: its "
                f"signature is {own}, and the call has {wanted}"
            )
    return ""


def write_function(script: PythonScript, name: str, prim_func: tirx.PrimFunc) -> None:
    """Write a PrimFunc, as TVMScript where that is lossless, and put it into the module."""
    variable = "".join(char if char.isalnum() else "_" for char in f"new_{name}")
    script.define(source_of(change_calls.put_function), change_calls.IMPORTS)
    named = prim_func.with_attr("global_symbol", variable)
    expression = tvmscript_source(named) or script.embedded(prim_func)
    script.add(f"{variable} = {expression}", f"mod = put_function(mod, {name!r}, {variable})")


@lru_cache(maxsize=8)
def _call_signatures(mod: ir.IRModule, name: str) -> dict[signatures.Signature, tuple[str, str]]:
    """Return the signatures of the calls of a name, each with the first function and node.

    Calls whose arguments are not tensors of known shape have no signature, and are left out.
    """
    found: dict[signatures.Signature, tuple[str, str]] = {}
    for function_name, function in relax_functions(mod).items():
        for node, bound in dps_calls(function).items():
            wanted = signatures.signature_of_call(bound.call) if bound.callee == name else None
            if wanted is not None:
                found.setdefault(wanted, (function_name, str(node)))
    return found
