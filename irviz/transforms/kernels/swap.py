"""Swap the callee of calls: a PrimFunc for a library kernel, a kernel for a PrimFunc from TE."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType

import tvm
from tvm import ir, relax, tirx
from tvm.relax.dpl import DFPattern
from tvm_ffi import structural_equal, structural_map

from irviz.errors import TransformError
from irviz.ir.module_functions import prim_funcs, relax_function, relax_functions
from irviz.ir.node_ids import NodeIds, definitions
from irviz.ir.relax_calls import callee_name, is_destination_passing
from irviz.model.graph.graph import NodeId, grouped
from irviz.transforms.export_python import (
    PythonScript,
    UnwritableError,
    source_of,
    tvmscript_source,
)
from irviz.transforms.kernels import library
from irviz.transforms.kernels import signature as signatures
from irviz.transforms.stage import SavedAs, Transform
from irviz.units import first_names

_MOST_NAMES = 4
_MOST_KEPT = 8


class CallTargetKind(Enum):
    """What kind of callee a name stands for."""

    PRIM_FUNC = "PrimFunc"
    KERNEL = "kernel"
    DEFINITION = "definition"
    REGISTERED = "registered function"


@dataclass(frozen=True)
class CallTarget:
    """A callee by name; `function` is None for what was registered with TVM directly."""

    name: str
    kind: CallTargetKind
    function: tirx.PrimFunc | library.LibraryKernel | library.TEDefinition | None


@dataclass(frozen=True)
class BoundCall:
    """A call_tir or call_dps_packed, the variable it is bound to, and the name of its callee."""

    var: ir.Var
    call: ir.Call
    callee: str


@lru_cache(maxsize=_MOST_KEPT)
def dps_calls(function: relax.Function) -> Mapping[NodeId, BoundCall]:
    """Return the destination-passing calls of a Relax function, also in branches and closures."""
    names = NodeIds()
    found = {}
    for var, binding in definitions(function.params, function.body):
        node = names.define(var.name)
        if binding is not None and is_destination_passing(binding.value):
            callee = callee_name(binding.value.args[0])
            if callee:
                found[node] = BoundCall(var, binding.value, callee)
    return MappingProxyType(found)


def call_target(mod: ir.IRModule, name: str) -> CallTarget | None:
    """Look a name up: in the module, the library, the TE definitions, then TVM's registry."""
    function = prim_funcs(mod).get(name)
    if function is not None:
        return CallTarget(name, CallTargetKind.PRIM_FUNC, function)
    if name in library.kernels() and library.is_current(name):
        return CallTarget(name, CallTargetKind.KERNEL, library.kernels()[name])
    if name in library.definitions():
        return CallTarget(name, CallTargetKind.DEFINITION, library.definitions()[name])
    if tvm.get_global_func(name, allow_missing=True) is not None:
        return CallTarget(name, CallTargetKind.REGISTERED, None)
    return None


def call_targets(mod: ir.IRModule) -> dict[str, CallTarget]:
    """Return every possible callee of the module's calls, by name.

    PrimFuncs come first, then kernels in the order of registration, definitions, and the
    functions registered with TVM directly that the module calls.
    """
    called = {
        call.callee
        for function in relax_functions(mod).values()
        for call in dps_calls(function).values()
    }
    names = dict.fromkeys(
        [*prim_funcs(mod), *library.kernels(), *library.definitions(), *sorted(called)]
    )
    found = {name: call_target(mod, name) for name in names}
    targets = [target for target in found.values() if target is not None]
    kinds = list(CallTargetKind)
    return {target.name: target for target in sorted(targets, key=lambda t: kinds.index(t.kind))}


def misfit(mod: ir.IRModule, call: ir.Call, name: str) -> str:
    """Return why the callee of this name cannot replace that of a call, "" when it can."""
    found = signatures.signature_of_call(call)
    if found is None:
        return "the call has arguments that are not tensors of known shape"
    chosen = call_target(mod, name)
    if chosen is None:
        fitting = [k.name for k in library.kernels().values() if fits_any(k.signatures, found)]
        some = first_names(list(map(repr, fitting)), _MOST_NAMES)
        advice = f"of the library {some} would fit: name one of these, or" if some else "you can"
        return (
            "no function of this name is registered; "
            f"{advice} register yours with @irviz.library.register"
        )
    if chosen.function is None:
        return ""  # registered with TVM directly: its signature is unknown
    wanted = signatures_of(chosen.function, len(found.outputs))
    if not wanted:
        return "it has parameters that are not buffers"
    if not fits_any(wanted, found):
        *most, last = dict.fromkeys(_dtypes(each) for each in wanted)
        dtypes = f"{', '.join(most)} or {last}" if most else last
        return (
            f"its signature is {wanted[0]} of {dtypes}, "
            f"and the call has {found} of {_dtypes(found)}"
        )
    if isinstance(chosen.function, library.TEDefinition):
        try:
            library.prim_func_for_call(chosen.function, call)
        except library.NoPrimFuncError as failure:
            return str(failure)
    return ""


def signatures_of(
    function: tirx.PrimFunc | library.LibraryKernel | library.TEDefinition, outputs: int
) -> tuple[signatures.Signature, ...]:
    """Return the signatures of a callee with this many outputs, none if it takes no buffers."""
    if not isinstance(function, tirx.PrimFunc):
        return function.signatures
    own = signatures.signature_of_prim_func(function, outputs)
    return () if own is None else (own,)


def fits_any(wanted: tuple[signatures.Signature, ...], call: signatures.Signature) -> bool:
    """Tell whether a call fits one of the signatures."""
    return any(signatures.fits(each, call) for each in wanted)


def _dtypes(signature: signatures.Signature) -> str:
    return "/".join(sorted({tensor.dtype for tensor in signature.tensors}))


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
            mod = put_function(mod, name, prim_func)

        def change(var: ir.Var, value: ir.Expr) -> ir.Expr:
            return call_of(mod, value, by_var[var]) if var in by_var else value

        by_var = {found.var: name for found, name in changes.calls.values()}
        return map_function_bindings(mod, self.function, change)

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the PrimFuncs to add and the statements that change the calls."""
        changes = self._changes(before)
        groups = grouped(
            ((found.callee, name), str(node)) for node, (found, name) in changes.calls.items()
        )
        made = before
        for name, prim_func in changes.added.items():
            made = put_function(made, name, prim_func)
        lines = []
        there = dps_calls(relax_function(before, self.function))
        for (callee, name), nodes in groups.items():
            is_all = len(nodes) == sum(found.callee == callee for found in there.values())
            made = redirect_calls(made, self.function, callee, name, None if is_all else nodes)
            given = f"mod, {self.function!r}, {callee!r}, {name!r}"
            lines.append(f"mod = redirect_calls({given}{'' if is_all else f', {nodes!r}'})")
        if not structural_equal(made, after):
            raise UnwritableError(f"{self.label}: the names of variables do not say which calls")
        for name, prim_func in changes.added.items():
            write_function(script, name, prim_func)
        for function in _REDIRECT_CALLS_SOURCES:
            script.define(source_of(function), _SCRIPT_IMPORTS)
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
        names: dict[signatures.Signature | None, str] = {}
        for node, found in chosen.items():
            signature = signatures.signature_of_call(found.call)
            if signature not in names:
                reason = misfit(mod, found.call, self.replacement)
                if reason:
                    raise TransformError(
                        f"{self.replacement!r} cannot replace {found.callee!r} "
                        f"at {str(node)!r}: {reason}"
                    )
                names[signature] = self.replacement
                if definition is not None and isinstance(definition.function, library.TEDefinition):
                    made = library.prim_func_for_call(definition.function, found.call)
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


# --- Replace a PrimFunc of the module by one that the user has written ---------------------------


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
        return put_function(mod, self.name, self.prim_func)

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
    script.define(source_of(put_function), _SCRIPT_IMPORTS)
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


def map_function_bindings(
    mod: ir.IRModule, function: str, change: Callable[[ir.Var, ir.Expr], ir.Expr]
) -> ir.IRModule:
    """Return the module with `change(var, value)` applied to the bindings of a Relax function.

    Those in branches and inner functions are among them.
    """
    gvar = mod.get_global_var(function)
    old = mod[gvar]

    def changed(binding: relax.VarBinding) -> relax.VarBinding:
        value = change(binding.var, binding.value)
        return binding if value.same_as(binding.value) else relax.VarBinding(binding.var, value)

    new = structural_map(old.body, (relax.VarBinding, changed))
    # passes need the type of a normalized body
    body = relax.BlockBuilder(mod).normalize(new)
    functions = dict(mod.functions.items())
    functions[gvar] = relax.Function(old.params, body, old.ret_ty, old.is_pure, old.attrs)
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


def call_of(mod: ir.IRModule, call: ir.Call, name: str) -> ir.Call:
    """Return the call with another callee: a PrimFunc of the module, else a registered function."""
    arguments, out_type = call.args[1], call.ty_args[0]
    out_types = list(out_type.fields) if isinstance(out_type, ir.TupleType) else [out_type]
    for gvar, function in mod.functions.items():
        if gvar.name_hint == name and isinstance(function, tirx.PrimFunc):
            return relax.call_tir(gvar, arguments, out_types)
    return relax.call_dps_packed(name, arguments, out_types)


def named_variables(
    params: Sequence[ir.Var], body: ir.Expr, seen: dict[str, int]
) -> Iterator[tuple[str, ir.Var]]:
    """Yield the variables by name in program order: `x`, the second of that name as `x#2`."""
    defined = [(param, None) for param in params]
    for block in body.blocks if isinstance(body, relax.SeqExpr) else ():
        defined += [(binding.var, binding.value) for binding in block.bindings[:]]
    for var, value in defined:
        count = seen[var.name] = seen.get(var.name, 0) + 1
        yield (var.name if count == 1 else f"{var.name}#{count}"), var
        if isinstance(value, relax.If):
            yield from named_variables((), value.true_branch, seen)
            yield from named_variables((), value.false_branch, seen)
        elif isinstance(value, relax.Function):
            yield from named_variables(value.params, value.body, seen)
        elif isinstance(value, relax.SeqExpr):
            yield from named_variables((), value, seen)


def redirect_calls(
    mod: ir.IRModule,
    function: str,
    callee: str,
    replacement: str,
    at: Collection[str] | None = None,
) -> ir.IRModule:
    """Replace calls of `callee` in a Relax function by calls of `replacement`.

    `at` limits this to the calls bound to these variables, with `#2` for the second of a name.
    """
    main = mod[function]
    names = {var: name for name, var in named_variables(main.params, main.body, {})}

    def change(var: ir.Var, value: ir.Expr) -> ir.Expr:
        is_call = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
        if not is_call or value.op.name not in ("relax.call_tir", "relax.call_dps_packed"):
            return value
        called = value.args[0]
        is_global = isinstance(called, ir.GlobalVar)
        name = called.name_hint if is_global else getattr(called, "global_symbol", "")
        if name != callee or not (at is None or names[var] in at):
            return value
        return call_of(mod, value, replacement)

    return map_function_bindings(mod, function, change)


def put_function(mod: ir.IRModule, name: str, prim_func: tirx.PrimFunc) -> ir.IRModule:
    """Return the module with a PrimFunc of this name, added or replaced."""
    functions = dict(mod.functions.items())
    old = next((gvar for gvar in functions if gvar.name_hint == name), None)
    new = prim_func.with_attr("global_symbol", name)
    gvar = relax.BlockBuilder().add_func(new, name)  # this gives it the function's type
    if old is not None:
        if "global_symbol" not in functions[old].attrs.keys():  # noqa: SIM118 - no iterator
            new = new.without_attr("global_symbol")
        if structural_equal(old.ty, gvar.ty):
            gvar = old
        else:
            replace = (ir.GlobalVar, lambda found: gvar if found.same_as(old) else found)
            functions = {
                gvar if g.same_as(old) else g: structural_map(function, replace)
                for g, function in functions.items()
            }
    functions[gvar] = new
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


_SCRIPT_IMPORTS = (
    "from collections.abc import Callable, Collection, Iterator, Sequence",
    "from tvm import ir, relax, tirx",
    "from tvm_ffi import structural_equal, structural_map",
)
"""The imports that these functions need in a script."""

_REDIRECT_CALLS_SOURCES = (map_function_bindings, call_of, named_variables, redirect_calls)
"""`redirect_calls` and the functions it calls."""
