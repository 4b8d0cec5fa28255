"""Swap what a call calls: a PrimFunc for a library kernel, and back again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import tvm
from tvm import ir, relax, tirx

from irviz.ir.callee import callee_name, is_destination_passing
from irviz.ir.identity import bindings, identify, relax_function
from irviz.model.graph import NodeId
from irviz.transforms import signature as signatures
from irviz.transforms.library import kernels
from irviz.transforms.python import Script, UnwritableError
from irviz.transforms.stage import TransformError


@dataclass(frozen=True)
class Swap:
    """Let calls of `callee` call `replacement`: all of them, or the one at `node`."""

    callee: str
    replacement: str
    node: NodeId | None = None
    function: str = "main"
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The words of the stage it makes."""
        where = f" at {self.node}" if self.node else ""
        return f"swap {self.callee} → {self.replacement}{where}"

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the module with the calls changed; raise TransformError when one cannot be."""
        function = relax_function(mod, self.function)
        ids = identify(function)
        calls = {
            binding.var: binding.value
            for _, binding in bindings(function)
            if callee_of(binding.value) == self.callee and self.node in (None, ids[binding.var])
        }
        if not calls:
            raise TransformError(self._not_called(function, ids))
        new = {}
        for var, call in calls.items():
            reason = misfit(mod, call, self.replacement)
            if reason:
                raise TransformError(
                    f"{self.replacement!r} cannot take the place of {self.callee!r} "
                    f"at {str(ids[var])!r}: {reason}"
                )
            new[var] = _calling(mod, call, self.replacement)
        return _with_values(mod, self.function, new)

    @property
    def tried_as(self) -> None:
        """Nothing: what could go wrong is checked first."""

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:  # noqa: ARG002
        """Write the statements that change the calls."""
        raise UnwritableError("not yet")

    def _not_called(self, function: relax.Function, ids: Mapping[ir.Var, NodeId]) -> str:
        called = {
            ids[binding.var]: callee
            for _, binding in bindings(function)
            if (callee := callee_of(binding.value))
        }
        if self.node is not None and self.node in called:
            return f"{str(self.node)!r} calls {called[self.node]!r}, not {self.callee!r}"
        there = ", ".join(map(repr, dict.fromkeys(called.values()))) or "nothing"
        where = f" at {str(self.node)!r}" if self.node else ""
        return (
            f"{self.function!r} has no call of {self.callee!r}{where}; "
            f"by call_tir and call_dps_packed it calls {there}: name one of these"
        )


def callee_of(value: ir.Expr) -> str:
    """Return the name that a call_tir or call_dps_packed calls, or "" for any other value."""
    return callee_name(value.args[0]) if is_destination_passing(value) else ""


def candidates(mod: ir.IRModule, function: str, node: NodeId) -> dict[str, str]:
    """Return what could take the place of a node's callee, each with why it cannot, or "".

    The dict is empty when the node is no call_tir or call_dps_packed.
    """
    source = relax_function(mod, function)
    ids = identify(source)
    for _, binding in bindings(source):
        if ids[binding.var] == node and (here := callee_of(binding.value)):
            names = dict.fromkeys([*_prim_funcs(mod), *kernels()])
            return {name: misfit(mod, binding.value, name) for name in names if name != here}
    return {}


def misfit(mod: ir.IRModule, call: ir.Call, replacement: str) -> str:
    """Say why the function cannot take the callee's place in this call, or "" when it can."""
    found = signatures.of_call(call)
    if found is None:
        return "the call has arguments that are no tensors of known shape"
    prim_funcs = _prim_funcs(mod)
    if replacement in prim_funcs:
        wanted = signatures.of_prim_func(prim_funcs[replacement][1], len(found.outputs))
        if wanted is None:
            return "it has parameters that are no buffers"
    elif replacement in kernels():
        wanted = kernels()[replacement].signature
    elif tvm.get_global_func(replacement, allow_missing=True) is not None:
        return ""  # registered past irviz: its signature is not known here
    else:
        there = ", ".join(map(repr, kernels()))
        return (
            f"no function of this name is registered; the library has {there}: "
            "name one of these, or register yours with @irviz.library.register"
        )
    if signatures.fits(wanted, found):
        return ""
    return f"its signature is {_with_dtypes(wanted)}, and the call has {_with_dtypes(found)}"


def _with_dtypes(signature: signatures.Signature) -> str:
    dtypes = {tensor.dtype for tensor in (*signature.inputs, *signature.outputs)}
    return f"{signature} of {'/'.join(sorted(dtypes))}"


def _prim_funcs(mod: ir.IRModule) -> dict[str, tuple[ir.GlobalVar, tirx.PrimFunc]]:
    return {
        gvar.name_hint: (gvar, function)
        for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint)
        if isinstance(function, tirx.PrimFunc)
    }


def _calling(mod: ir.IRModule, call: ir.Call, replacement: str) -> ir.Call:
    prim_func = _prim_funcs(mod).get(replacement)
    arguments, out_type = call.args[1], call.ty_args[0]
    out_types = list(out_type.fields) if isinstance(out_type, ir.TupleType) else [out_type]
    if prim_func is not None:
        new = relax.call_tir(prim_func[0], arguments, out_types)
    else:
        new = relax.call_dps_packed(replacement, arguments, out_types)
    return relax.BlockBuilder(mod).normalize(new)


def _with_values(mod: ir.IRModule, name: str, values: Mapping[ir.Var, ir.Expr]) -> ir.IRModule:
    """Return the module with the values of some variables of a function replaced."""
    function = relax_function(mod, name)
    blocks = []
    for block in function.body.blocks:
        new = [
            relax.VarBinding(binding.var, values[binding.var]) if binding.var in values else binding
            for binding in block.bindings
        ]
        is_dataflow = isinstance(block, relax.DataflowBlock)
        blocks.append(relax.DataflowBlock(new) if is_dataflow else relax.BindingBlock(new))
    # normalized, because passes read the type of a body
    body = relax.BlockBuilder(mod).normalize(relax.SeqExpr(blocks, function.body.body))
    changed = relax.Function(
        function.params, body, function.ret_ty, function.is_pure, function.attrs
    )
    functions = dict(mod.functions.items())
    functions[mod.get_global_var(name)] = changed
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)
