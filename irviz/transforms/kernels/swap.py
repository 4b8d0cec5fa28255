"""Swap the callee of calls: a PrimFunc for a library kernel, a kernel for a PrimFunc from TE."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

from tvm import ir, relax, tirx
from tvm.relax.dpl import DFPattern
from tvm_ffi import structural_equal

from irviz.errors import TransformError
from irviz.ir.module_functions import prim_funcs, relax_function, relax_functions
from irviz.model.graph.graph import NodeId
from irviz.transforms.kernels import change_calls
from irviz.transforms.kernels import signature as signatures
from irviz.transforms.kernels.call_targets import BoundCall, call_target, dps_calls, misfit
from irviz.transforms.kernels.signature import Signature, signature_of_call
from irviz.transforms.kernels.te_definitions import TEDefinition, prim_func_for_call
from irviz.transforms.python_script import (
    PythonScript,
    UnwritableError,
    source_of,
    tvmscript_source,
)
from irviz.transforms.transform import SavedAs, Transform


@dataclass(frozen=True)
class Swap(Transform):
    """Replace calls of `callee` by calls of `replacement`.

    Attributes:
        callee: A name, or a pattern of names such as "linear*".
        replacement: A PrimFunc of the module, a registered function, or a TE definition, from
            which one PrimFunc is created per call signature.
        node: Only the call at this node; all calls by default.
        function: The Relax function.
        matching: Only the calls that match this pattern of `tvm.relax.dpl`.
    """

    saved_as = SavedAs(
        "swap", {"callee": str, "replacement": str, "node": str | None, "function": str}
    )

    callee: str
    replacement: str
    node: NodeId | None = None
    function: str = "main"
    matching: DFPattern | None = None

    @property
    def label(self) -> str:
        """The label of the stage it makes."""
        where = f" at {self.node}" if self.node else ""
        where += " where the pattern matches" if self.matching is not None else ""
        return f"swap {self.callee} → {self.replacement}{where}"

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the module with the calls changed; raise TransformError when one does not fit."""
        changes = self._changes(mod)
        for name, prim_func in changes.added.items():
            mod = change_calls.put_function(mod, name, prim_func)

        def change(var: ir.Var, value: ir.Expr) -> ir.Expr:
            return change_calls.call_of(mod, value, by_var[var]) if var in by_var else value

        by_var = {found.var: name for found, name in changes.calls.values()}
        return change_calls.map_function_bindings(mod, self.function, change)

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the PrimFuncs to add and the statements that change the calls."""
        changes = self._changes(before)
        groups: dict[tuple[str, str], list[str]] = {}
        for node, (found, name) in changes.calls.items():
            groups.setdefault((found.callee, name), []).append(str(node))
        made = before
        for name, prim_func in changes.added.items():
            made = change_calls.put_function(made, name, prim_func)
        lines = []
        there = dps_calls(relax_function(before, self.function))
        for (callee, name), nodes in groups.items():
            is_all = len(nodes) == sum(found.callee == callee for found in there.values())
            made = change_calls.redirect_calls(
                made, self.function, callee, name, None if is_all else nodes
            )
            given = f"mod, {self.function!r}, {callee!r}, {name!r}"
            lines.append(f"mod = redirect_calls({given}{'' if is_all else f', {nodes!r}'})")
        if not structural_equal(made, after):
            raise UnwritableError(f"{self.label}: the names of variables do not say which calls")
        for name, prim_func in changes.added.items():
            write_function(script, name, prim_func)
        for function in change_calls.REDIRECT_CALLS_SOURCES:
            script.define(source_of(function), change_calls.IMPORTS)
        script.add(*lines)

    def _changes(self, mod: ir.IRModule) -> _Changes:
        """Return the new callee of each call; raise TransformError when one does not fit."""
        function = relax_function(mod, self.function)
        there = dps_calls(function)
        chosen = self._chosen(function, there)
        if not chosen:
            raise TransformError(self._not_called(there))
        changes = _Changes()
        definition = call_target(mod, self.replacement)
        names: dict[Signature | None, str] = {}
        for node, found in chosen.items():
            signature = signature_of_call(found.call)
            if signature not in names:
                reason = misfit(mod, found.call, self.replacement)
                if reason:
                    raise TransformError(
                        f"{self.replacement!r} cannot replace {found.callee!r} "
                        f"at {str(node)!r}: {reason}"
                    )
                names[signature] = self.replacement
                if definition is not None and isinstance(definition.function, TEDefinition):
                    made = prim_func_for_call(definition.function, found.call)
                    names[signature] = changes.add(mod, made, self.replacement)
            changes.calls[node] = (found, names[signature])
        return changes

    def _chosen(
        self, function: relax.Function, there: Mapping[NodeId, BoundCall]
    ) -> dict[NodeId, BoundCall]:
        is_name = any(found.callee == self.callee for found in there.values())
        values = {} if self.matching is None else relax.analysis.get_var2val(function)
        chosen = {}
        for node, found in there.items():
            is_meant = found.callee == self.callee or (
                not is_name
                and found.callee != self.replacement
                and fnmatchcase(found.callee, self.callee)
            )
            if is_meant and self.matching is not None:
                is_meant = self.matching.match(found.call, values)
            if is_meant and self.node in (None, node):
                chosen[node] = found
        return chosen

    def _not_called(self, there: Mapping[NodeId, BoundCall]) -> str:
        if self.node is not None and self.node in there and self.matching is None:
            return f"{str(self.node)!r} calls {there[self.node].callee!r}, not {self.callee!r}"
        names = ", ".join(map(repr, dict.fromkeys(found.callee for found in there.values())))
        where = f" at {str(self.node)!r}" if self.node else ""
        where += " that the pattern matches" if self.matching is not None else ""
        return (
            f"{self.function!r} has no call of {self.callee!r}{where}; "
            f"by call_tir and call_dps_packed it calls {names or 'nothing'}: name one of these"
        )


@dataclass(frozen=True)
class _Changes:
    """The new callee of each call, by node, and the PrimFuncs to add for that."""

    calls: dict[NodeId, tuple[BoundCall, str]] = field(default_factory=dict)
    added: dict[str, tirx.PrimFunc] = field(default_factory=dict)

    def add(self, mod: ir.IRModule, made: tirx.PrimFunc, name: str) -> str:
        """Return the name of an equal PrimFunc, or add this one under a free name."""
        for there, prim_func in {**prim_funcs(mod), **self.added}.items():
            if structural_equal(_nameless(prim_func), _nameless(made)):
                return there
        base = name.rpartition(".")[2]
        taken = {gvar.name_hint for gvar in mod.functions} | self.added.keys()
        names = itertools.chain([base], (f"{base}_{count}" for count in itertools.count(1)))
        free = next(each for each in names if each not in taken)
        self.added[free] = made
        return free


def _nameless(prim_func: tirx.PrimFunc) -> tirx.PrimFunc:
    return prim_func.without_attr("global_symbol")


# --- replace prim func -------------------------------------------------------------------------
#
# Replace a PrimFunc of the module by one that the user has written.


@dataclass(frozen=True)
class UpdateFunction(Transform):
    """Replace the module's PrimFunc of this name."""

    saved_as = SavedAs("update", {"name": str, "prim_func": tirx.PrimFunc})

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
