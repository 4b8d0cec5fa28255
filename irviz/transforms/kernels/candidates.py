"""Candidates for a call: callees that compute the same, found by running them on samples."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TypeAlias

import tvm_ffi
from tvm import ir, tirx

from irviz.ir.module_functions import function_named, prim_funcs, relax_function, relax_functions
from irviz.model.graph.graph import NodeId
from irviz.transforms.kernels.call_targets import (
    BoundCall,
    CallTarget,
    CallTargetKind,
    call_target,
    call_targets,
    dps_calls,
    fits_any,
    misfit,
    signatures_of,
)
from irviz.transforms.kernels.equivalence_on_samples import (
    Equivalence,
    EquivalenceResult,
    Runnable,
    compare_on_samples,
)
from irviz.transforms.kernels.library import LibraryKernel
from irviz.transforms.kernels.samples import (
    SampleSpec,
    element_count,
    input_types,
    sample_signature,
    statement_count,
    with_small_sizes,
)
from irviz.transforms.kernels.signature import Signature, signature_of_call
from irviz.transforms.kernels.te_definitions import (
    NoPrimFuncError,
    TEDefinition,
    create_prim_func,
    prim_func_for_call,
)

_MOST_NUMBERS = 20_000_000
"""Calls that read and write more elements than this are tried at small sizes."""
_MOST_STEPS = 200_000_000
_MANY_NUMBERS, _MANY_STEPS = 2**20, 20_000_000
"""Calls with more than this are tried on fewer inputs."""
_MOST_CACHED = 4096
_MOST_CALLS = 32

_PENDING = EquivalenceResult(Equivalence.UNTRIED, "not tried yet")

_results: OrderedDict[tuple[Hashable, ...], EquivalenceResult] = OrderedDict()
_lock = Lock()
"""Held while `_results` is read or filled, which may take as long as a trial."""


@dataclass(frozen=True)
class Candidate:
    """A possible replacement of a callee, with a verdict and the reason for it."""

    name: str
    kind: CallTargetKind
    verdict: Equivalence
    reason: str

    @property
    def computes_the_same(self) -> bool:
        """Whether it returned what the callee returned, on all sample inputs."""
        return self.verdict in (Equivalence.EQUAL, Equivalence.CLOSE)

    @property
    def is_pending(self) -> bool:
        """Whether it has not been tried yet."""
        return self.reason == _PENDING.reason


_tried: OrderedDict[
    tuple[ir.IRModule, str, NodeId], tuple[Mapping[str, CallTarget], tuple[Candidate, ...]]
] = OrderedDict()
"""The candidates of recent calls, and the functions that they were chosen from."""
_tried_lock = Lock()


def candidates(mod: ir.IRModule, function: str, node: NodeId) -> tuple[Candidate, ...]:
    """Return the possible replacements of a node's callee, those that compute the same first.

    Returns none for a node that is not a call_tir or call_dps_packed. Raises NoFunctionError when
    the module has no Relax function of this name.
    """
    return [(), *iter_candidates(mod, function, node)][-1]


def iter_candidates(
    mod: ir.IRModule, function: str, node: NodeId
) -> Iterator[tuple[Candidate, ...]]:
    """Yield the candidates repeatedly: first matched by signature, then with more of them tried.

    Candidates of a recent call are cached and yielded once, as long as the same functions exist:
    users stepping through stages return to the same call.
    """
    here = dps_calls(relax_function(mod, function)).get(node)
    if here is None:
        return
    targets, call = call_targets(mod), (mod, function, node)
    with _tried_lock:
        known = _tried.get(call)
    if known is not None and known[0] == targets:
        yield known[1]
        return
    for found in _iter_candidates(mod, here, targets):
        yield found
    with _tried_lock:
        _tried[call] = targets, found
        while len(_tried) > _MOST_CALLS:
            _tried.popitem(last=False)


def _iter_candidates(
    mod: ir.IRModule, here: BoundCall, targets: Mapping[str, CallTarget]
) -> Iterator[tuple[Candidate, ...]]:
    others = {name: each for name, each in targets.items() if name != here.callee}
    callee = call_target(mod, here.callee)
    named = (
        callee.function.definition if callee and isinstance(callee.function, LibraryKernel) else ""
    )
    reasons = {name: misfit(mod, here.call, name) for name in others}
    findings = {
        name: EquivalenceResult(Equivalence.MISFIT, reason) if reason else _PENDING
        for name, reason in reasons.items()
    }
    fitting = [each for name, each in others.items() if not reasons[name]]
    if fitting:
        trial = _CallTrial(mod, here.call, here.callee)
        is_late = [each for each in fitting if each.kind is CallTargetKind.DEFINITION]
        for part in ([each for each in fitting if each not in is_late], is_late):
            yield _ordered(others, findings, named)
            findings |= trial.of(part)
    yield _ordered(others, findings, named)


def equivalence(mod: ir.IRModule, name: str, prim_func: tirx.PrimFunc) -> EquivalenceResult:
    """Compare a PrimFunc with that of this name in the module, on the shapes of its first call."""
    for function in relax_functions(mod).values():
        for found in dps_calls(function).values():
            if found.callee == name:
                other = CallTarget("it", CallTargetKind.PRIM_FUNC, prim_func)
                return _CallTrial(mod, found.call, name).of([other])["it"]
    return EquivalenceResult(
        Equivalence.UNTRIED, f"not tried: nothing calls {name!r} by call_tir or call_dps_packed"
    )


_Callable: TypeAlias = tirx.PrimFunc | LibraryKernel


class _CallTrial:
    """Tries replacements of the callee of one call."""

    def __init__(self, mod: ir.IRModule, call: ir.Call, callee: str) -> None:
        self._call = call
        self._signatures: tuple[Signature, ...] = ()
        self._obstacle = ""
        found = call_target(mod, callee)
        prim_func = prim_funcs(mod).get(callee)
        if found is None:
            is_there = function_named(mod, callee) is not None
            what = "is a Relax function" if is_there else "is not registered"
            self._obstacle = f"{callee!r} {what}"
        elif not isinstance(found.function, tirx.PrimFunc | LibraryKernel):
            self._obstacle = f"{callee!r} was registered with TVM directly"
        elif signature_of_call(call) is None:
            self._obstacle = "the call has arguments that are not tensors of known shape"
        elif (own := sample_signature(call, prim_func)) is None:
            self._obstacle = "no sizes were found for the symbolic dimensions"
        else:
            self._callee = found.function
            fixed = signatures_of(prim_func, 0) if prim_func is not None else ()
            kept = {dim for each in fixed for tensor in each.inputs for dim in tensor.dims}
            self._signatures = (own, with_small_sizes(own, kept))

    def of(self, others: Iterable[CallTarget]) -> dict[str, EquivalenceResult]:
        """Return the results for these candidates, cached or new."""
        findings: dict[str, EquivalenceResult] = {}
        asked: dict[SampleSpec, dict[str, _Callable]] = {}
        for other in others:
            if self._obstacle or other.function is None:
                findings[other.name] = _untried(
                    self._obstacle or "it was registered with TVM directly"
                )
                continue
            placed = self._samples_for(other.function)
            if placed is None:
                findings[other.name] = _untried("too much to do here; swap it and compare stages")
            else:
                asked.setdefault(placed[0], {})[other.name] = placed[1]
        for samples, chosen in asked.items():
            with _lock:
                findings |= self._results_of(samples, chosen)
        return findings

    def _results_of(
        self, samples: SampleSpec, chosen: Mapping[str, _Callable]
    ) -> dict[str, EquivalenceResult]:
        asked = _fingerprint(self._callee)
        keys = {name: (samples, asked, _fingerprint(one)) for name, one in chosen.items()}
        new = {name: one for name, one in chosen.items() if keys[name] not in _results}
        if new:
            here = {
                name
                for name, one in new.items()
                if isinstance(one, LibraryKernel) and one.is_framework
            }
            found = compare_on_samples(
                samples,
                _runs(self._callee),
                {name: _runs(one) for name, one in new.items() if name not in here},
                {name: _runs(one) for name, one in new.items() if name in here},
            )
            _results.update((keys[name], finding) for name, finding in found.items())
        given = {name: _results[key] for name, key in keys.items()}
        while len(_results) > _MOST_CACHED:
            _results.popitem(last=False)
        return given

    def _samples_for(self, other: _Callable | TEDefinition) -> tuple[SampleSpec, _Callable] | None:
        """Return samples and the function to run on them, at small sizes if the call is large."""
        for signature in self._signatures:
            found = self._at(other, signature)
            if found is None:
                continue
            both = [one for one in (self._callee, found) if isinstance(one, tirx.PrimFunc)]
            work = max((statement_count(one, signature) for one in both), default=0)
            numbers = element_count(signature)
            if work <= _MOST_STEPS and numbers <= _MOST_NUMBERS:
                return SampleSpec(signature, work > _MANY_STEPS or numbers > _MANY_NUMBERS), found
        return None

    def _at(self, other: _Callable | TEDefinition, signature: Signature) -> _Callable | None:
        """Return the other as a function for these sizes, None if one of the two rejects them."""
        is_own = signature is self._signatures[0]
        if not is_own and not _takes(self._callee, signature):
            return None
        if isinstance(other, TEDefinition):
            try:
                if is_own:
                    return prim_func_for_call(other, self._call)
                return create_prim_func(other, input_types(signature), signature)
            except NoPrimFuncError:
                return None
        return other if is_own or _takes(other, signature) else None


def _takes(function: _Callable, signature: Signature) -> bool:
    return fits_any(signatures_of(function, len(signature.outputs)), signature)


def _fingerprint(function: _Callable) -> Hashable:
    """Return a key that differs for functions that compute different things."""
    if isinstance(function, LibraryKernel):
        return function  # registering a kernel again makes a new object
    return tvm_ffi.structural_hash(function.without_attr("global_symbol"))


def _runs(function: _Callable) -> Runnable:
    return function.function if isinstance(function, LibraryKernel) else function


def _ordered(
    others: Mapping[str, CallTarget], findings: Mapping[str, EquivalenceResult], first: str
) -> tuple[Candidate, ...]:
    found = [
        Candidate(name, other.kind, findings[name].verdict, findings[name].reason)
        for name, other in others.items()
    ]
    verdicts, kinds = list(Equivalence), list(CallTargetKind)

    def order(one: Candidate) -> tuple[object, ...]:
        rank = 0 if one.computes_the_same else verdicts.index(one.verdict)
        return rank, kinds.index(one.kind), one.name != first

    return tuple(sorted(found, key=order))


def _untried(obstacle: str) -> EquivalenceResult:
    return EquivalenceResult(Equivalence.UNTRIED, f"not tried: {obstacle}")
