"""What computes the same as what a call calls, found by trying it on sample inputs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

import tvm_ffi
from tvm import ir, tirx

from irviz.ir.identity import function_named, relax_function, relax_functions
from irviz.model.graph import NodeId
from irviz.transforms.kernels import sizes
from irviz.transforms.kernels.attempts import Finding, Runnable, Samples, Verdict, tried
from irviz.transforms.kernels.definitions import Definition, NoPrimFuncError, made_for, made_of
from irviz.transforms.kernels.library import Kernel
from irviz.transforms.kernels.replacements import (
    Kind,
    Replacement,
    calls,
    fits_any,
    misfit,
    prim_funcs,
    replacement,
    replacements,
)
from irviz.transforms.kernels.sample import count, smaller
from irviz.transforms.kernels.signature import Signature, of_call, of_prim_func

_MOST_NUMBERS = 20_000_000
"""How many numbers a call may read and write that is tried at its own sizes."""
_MOST_STEPS = 200_000_000
_MANY_NUMBERS, _MANY_STEPS = 2**20, 20_000_000
"""What has more than that is tried on fewer inputs."""
_MOST_KNOWN = 4096

_ORDER = {
    **dict.fromkeys((Verdict.EQUAL, Verdict.CLOSE), 0),
    Verdict.UNTRIED: 1,
    Verdict.DIFFERENT: 2,
    Verdict.FAILED: 3,
    Verdict.MISFIT: 4,
}

_PENDING = Finding(Verdict.UNTRIED, "not tried yet")

_known: OrderedDict[tuple[Hashable, ...], Finding] = OrderedDict()
_asking = Lock()
"""Held while something is looked up in what is known, or found out."""


@dataclass(frozen=True)
class Candidate:
    """What might take a callee's place: `reason` says what the verdict rests on."""

    name: str
    kind: Kind
    verdict: Verdict
    reason: str

    @property
    def computes_the_same(self) -> bool:
        """Whether it gave what the callee gave, on all sample inputs."""
        return self.verdict in (Verdict.EQUAL, Verdict.CLOSE)

    @property
    def is_pending(self) -> bool:
        """Whether it is still to be tried."""
        return self.reason == _PENDING.reason


def candidates(mod: ir.IRModule, function: str, node: NodeId) -> tuple[Candidate, ...]:
    """Return what might take the place of a node's callee: first what computes the same.

    Empty when the node is no call_tir or call_dps_packed. Raises NoFunctionError when the module
    has no Relax function of this name.
    """
    last: tuple[Candidate, ...] = ()
    for now in tries(mod, function, node):
        last = now
    return last


def tries(mod: ir.IRModule, function: str, node: NodeId) -> Iterator[tuple[Candidate, ...]]:
    """Yield the candidates as they become known: by their signatures, then tried part by part."""
    here = calls(relax_function(mod, function)).get(node)
    if here is None:
        return
    others = {name: each for name, each in replacements(mod).items() if name != here.callee}
    callee = replacement(mod, here.callee)
    named = callee.function.definition if callee and isinstance(callee.function, Kernel) else ""
    reasons = {name: misfit(mod, here.call, name) for name in others}
    findings = {
        name: Finding(Verdict.MISFIT, reason) if reason else _PENDING
        for name, reason in reasons.items()
    }
    fitting = [each for name, each in others.items() if not reasons[name]]
    if fitting:
        trial = _Trial(mod, here.call, here.callee)
        is_late = [each for each in fitting if each.kind is Kind.DEFINITION]
        for part in ([each for each in fitting if each not in is_late], is_late):
            yield _ordered(others, findings, named)
            findings |= trial.of(part)
    yield _ordered(others, findings, named)


def equivalence(mod: ir.IRModule, name: str, prim_func: tirx.PrimFunc) -> Finding:
    """Tell whether a PrimFunc computes what the module's PrimFunc of this name does.

    They are tried as the first call of it would call them.
    """
    for function in relax_functions(mod).values():
        for found in calls(function).values():
            if found.callee == name:
                other = Replacement("it", Kind.PRIM_FUNC, prim_func)
                return _Trial(mod, found.call, name).of([other])["it"]
    return Finding(
        Verdict.UNTRIED, f"not tried: nothing calls {name!r} by call_tir or call_dps_packed"
    )


_Computes: TypeAlias = tirx.PrimFunc | Kernel


class _Trial:
    """A call, and what is tried in the place of what it calls."""

    def __init__(self, mod: ir.IRModule, call: ir.Call, callee: str) -> None:
        self._call = call
        found = replacement(mod, callee)
        is_known = of_call(call) is not None
        own = sizes.of_call(call, prim_funcs(mod).get(callee)) if is_known else None
        self._signatures: tuple[Signature, ...] = ()
        if own is not None:
            self._signatures = (own, smaller(own, _fixed(found)))
        self._obstacle = ""
        if found is None:
            is_there = function_named(mod, callee) is not None
            what = "is a Relax function" if is_there else "is not registered"
            self._obstacle = f"{callee!r} {what}"
        elif not isinstance(found.function, tirx.PrimFunc | Kernel):
            self._obstacle = f"{callee!r} was registered past irviz"
        elif not is_known:
            self._obstacle = "the call has arguments that are no tensors of known shape"
        elif own is None:
            self._obstacle = "no sizes were found for the symbolic dimensions"
        else:
            self._callee = found.function

    def of(self, others: Iterable[Replacement]) -> dict[str, Finding]:
        """Return what is known of the others, or is found out now."""
        findings: dict[str, Finding] = {}
        asked: dict[Samples, dict[str, _Computes]] = {}
        for other in others:
            if self._obstacle or other.function is None:
                findings[other.name] = _untried(self._obstacle or "it was registered past irviz")
                continue
            placed = self._placed(other.function)
            if placed is None:
                findings[other.name] = _untried("too much to do here; swap it and compare stages")
            else:
                asked.setdefault(placed[0], {})[other.name] = placed[1]
        for samples, chosen in asked.items():
            with _asking:
                findings |= self._found(samples, chosen)
        return findings

    def _found(self, samples: Samples, chosen: Mapping[str, _Computes]) -> dict[str, Finding]:
        asked = _fingerprint(self._callee)
        keys = {name: (samples, asked, _fingerprint(one)) for name, one in chosen.items()}
        new = {name: one for name, one in chosen.items() if keys[name] not in _known}
        if new:
            here = {name for name, one in new.items() if _is_framework(one)}
            found = tried(
                samples,
                _runs(self._callee),
                {name: _runs(one) for name, one in new.items() if name not in here},
                {name: _runs(one) for name, one in new.items() if name in here},
            )
            _known.update((keys[name], finding) for name, finding in found.items())
        given = {name: _known[key] for name, key in keys.items()}
        while len(_known) > _MOST_KNOWN:
            _known.popitem(last=False)
        return given

    def _placed(self, other: _Computes | Definition) -> tuple[Samples, _Computes] | None:
        """Return what to try, at the call's own sizes, or at small ones where that is much."""
        for signature in self._signatures:
            found = self._at(other, signature)
            if found is None:
                continue
            both = [one for one in (self._callee, found) if isinstance(one, tirx.PrimFunc)]
            work = max((sizes.steps(one, signature) for one in both), default=0)
            numbers = count(signature)
            if work <= _MOST_STEPS and numbers <= _MOST_NUMBERS:
                return Samples(signature, work > _MANY_STEPS or numbers > _MANY_NUMBERS), found
        return None

    def _at(self, other: _Computes | Definition, signature: Signature) -> _Computes | None:
        """Return what computes the other at these sizes, if both can be called with them."""
        is_own = signature is self._signatures[0]
        if not is_own and not _takes(self._callee, signature):
            return None
        if isinstance(other, Definition):
            try:
                if is_own:
                    return made_for(other, self._call)
                return made_of(other, sizes.types_of(signature), signature)
            except NoPrimFuncError:
                return None
        return other if is_own or _takes(other, signature) else None


def _fixed(found: Replacement | None) -> set[str]:
    """Return the sizes that a PrimFunc has in numbers."""
    prim_func = None if found is None else found.function
    own = of_prim_func(prim_func, 0) if isinstance(prim_func, tirx.PrimFunc) else None
    return set() if own is None else {dim for tensor in own.inputs for dim in tensor.dims}


def _takes(function: _Computes, signature: Signature) -> bool:
    if isinstance(function, Kernel):
        return fits_any(function.signatures, signature)
    own = of_prim_func(function, len(signature.outputs))
    return own is not None and fits_any((own,), signature)


def _fingerprint(function: _Computes) -> Hashable:
    """Return what is another for whatever computes something else."""
    if isinstance(function, Kernel):
        return function  # one that is registered again is another
    return tvm_ffi.structural_hash(function.without_attr("global_symbol"))


def _runs(function: _Computes) -> Runnable:
    return function.function if isinstance(function, Kernel) else function


def _is_framework(function: _Computes) -> bool:
    return isinstance(function, Kernel) and function.is_framework


def _ordered(
    others: Mapping[str, Replacement], findings: Mapping[str, Finding], first: str
) -> tuple[Candidate, ...]:
    found = [
        Candidate(name, other.kind, findings[name].verdict, findings[name].reason)
        for name, other in others.items()
    ]
    kinds = list(Kind)
    return tuple(
        sorted(found, key=lambda c: (_ORDER[c.verdict], kinds.index(c.kind), c.name != first))
    )


def _untried(obstacle: str) -> Finding:
    return Finding(Verdict.UNTRIED, f"not tried: {obstacle}")
