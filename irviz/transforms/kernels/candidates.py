"""Candidates for a call: callees that compute the same, found by running them on samples."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from threading import Lock
from typing import NamedTuple, TypeAlias, TypeVar

import cloudpickle
import numpy as np
import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from irviz.errors import RunError, error_summary
from irviz.ir.module_functions import function_named, prim_funcs, relax_function, relax_functions
from irviz.limits import CANDIDATES_SECONDS
from irviz.model.graph.graph import NodeId
from irviz.model.runs.array_diff import compare_arrays, kernel_tolerance, largest_number
from irviz.runtime.build_module import build_prim_funcs
from irviz.runtime.kernel_cache import compiled, is_closed
from irviz.transforms.kernels import swap
from irviz.transforms.kernels.library import (
    LibraryKernel,
    NoPrimFuncError,
    TEDefinition,
    create_prim_func,
    prim_func_for_call,
)
from irviz.transforms.kernels.signature import (
    Array,
    SampleSpec,
    Signature,
    UnknownDtypeError,
    element_count,
    sample_signature,
    signature_of_call,
    statement_count,
    with_small_sizes,
)
from irviz.units import beginning
from irviz.worker.supervisor import TRIES, WorkerError

# --- Compare functions with each other on sample inputs, in the worker ---------------------------


Value = TypeVar("Value")
Result = TypeVar("Result")
Runnable: TypeAlias = tirx.PrimFunc | Callable[..., None]
"""A function of tensors or arrays: inputs first, then the outputs to write into."""

_FAILED = "it failed on sample inputs"
_TARGET = tvm.target.Target("llvm")
_MOST_CHARACTERS = 200


class Equivalence(Enum):
    """The verdict of a comparison; the best come first."""

    EQUAL = "equal"
    CLOSE = "equal within rounding"
    UNTRIED = "not tried"
    DIFFERENT = "computes something else"
    FAILED = "failed"
    MISFIT = "does not fit"


@dataclass(frozen=True)
class EquivalenceResult:
    """A verdict and the reason for it."""

    verdict: Equivalence
    reason: str


class _Answer(NamedTuple):
    """The callee's outputs for each sample, or why there are none, and the verdicts."""

    obstacle: str
    references: list[list[Array]]
    verdicts: dict[str, EquivalenceResult]


def compare_on_samples(
    samples: SampleSpec,
    callee: Runnable,
    candidates: Mapping[str, Runnable],
    here: Mapping[str, Runnable],
    seconds: float = CANDIDATES_SECONDS,
) -> dict[str, EquivalenceResult]:
    """Compare candidates with the callee on sample inputs, in the worker.

    When the worker crashes or times out, each candidate is run again by itself, in half of the
    time, to find the one at fault. Those in `here` run in this process, because they cannot be sent
    to the worker.
    """
    names = [*candidates, *here]
    try:
        reference = cloudpickle.dumps(callee)
    except Exception as failure:  # a function may refer to objects that cannot be pickled
        return dict.fromkeys(names, _never_tried(_failure_text("it cannot be sent", failure)))
    sent, found = _each(
        candidates, cloudpickle.dumps, "it cannot be sent to the process that tries"
    )

    def ask(some: Mapping[str, bytes], limit: float) -> _Answer:
        return TRIES.call(_answer, samples, reference, some, bool(here), seconds=limit)

    try:
        given = ask(sent, seconds)
    except WorkerError:
        try:
            given = ask({}, seconds / 2)
        except WorkerError as failure:
            return found | dict.fromkeys([*sent, *here], _never_tried(str(failure)))
        for name, one in sent.items():
            try:
                alone = ask({name: one}, seconds / 2)
            except WorkerError as failure:  # noqa: PERF203 - each is asked for by itself
                found[name] = EquivalenceResult(Equivalence.FAILED, str(failure))
            else:
                found[name] = alone.verdicts.get(name) or _never_tried(alone.obstacle)
    if given.obstacle:
        return found | dict.fromkeys([*sent, *here], _never_tried(given.obstacle))
    local = {name: _judged(kernel, samples, given.references) for name, kernel in here.items()}
    return found | given.verdicts | local


def _each(
    values: Mapping[str, Value], function: Callable[[Value], Result], otherwise: str
) -> tuple[dict[str, Result], dict[str, EquivalenceResult]]:
    """Apply a function to each value; return the results, and a FAILED verdict for each failure."""
    made, found = {}, {}
    for name, value in values.items():
        try:
            made[name] = function(value)
        except Exception as failure:  # noqa: PERF203 - a function may refer to anything
            found[name] = EquivalenceResult(Equivalence.FAILED, _failure_text(otherwise, failure))
    return made, found


def _answer(
    samples: SampleSpec, callee: bytes, candidates: Mapping[str, bytes], with_references: bool
) -> _Answer:
    """Compare the candidates that were sent. Runs in the worker."""
    # the worker may be unable to import the module of a function
    loaded, verdicts = _each(candidates, cloudpickle.loads, "it cannot be read where it is tried")
    try:
        reference = cloudpickle.loads(callee)
        closed = {
            name: one
            for name, one in {"": reference, **loaded}.items()
            if isinstance(one, tirx.PrimFunc) and is_closed(one)
        }
        with contextlib.suppress(Exception):  # all at once, unless one of them does not compile
            compiled(closed, _TARGET)
        run, references = _array_function(reference), list[list[Array]]()
        for inputs, outputs in samples.draw():
            run(*inputs, *outputs)
            references.append(outputs)
    except Exception as failure:  # TVM's C++ code or the user's kernel may raise anything
        is_unknown = isinstance(failure, UnknownDtypeError)
        words = str(failure) if is_unknown else _failure_text(_FAILED, failure)
        return _Answer(words, [], {})
    if not any(
        output.size == 0 or np.isfinite(output.astype(np.float64)).any()
        for outputs in references
        for output in outputs
    ):
        return _Answer("on sample inputs it gives no finite number", [], {})
    for name, candidate in loaded.items():
        verdicts[name] = _judged(candidate, samples, references)
    return _Answer("", references if with_references else [], verdicts)


def _judged(
    candidate: Runnable, samples: SampleSpec, references: list[list[Array]]
) -> EquivalenceResult:
    """Compare a candidate's outputs with the references, for every sample."""
    is_equal, largest, top, words = True, 0.0, 0.0, ""
    run = None
    for (inputs, outputs), wanted in zip(samples.draw(), references, strict=True):
        kept = [array.copy() for array in inputs]
        try:
            run = run or _array_function(candidate)
            run(*inputs, *outputs)
        except Exception as failure:  # a candidate may raise anything
            return EquivalenceResult(Equivalence.FAILED, _failure_text(_FAILED, failure))
        if any(a.tobytes() != b.tobytes() for a, b in zip(inputs, kept, strict=True)):
            return EquivalenceResult(Equivalence.FAILED, "it writes into its inputs")
        for a, b in zip(outputs, wanted, strict=True):
            diff = compare_arrays(a, b, kernel_tolerance(b))
            is_equal &= diff.is_equal
            top = max(top, largest_number(b))
            if diff.past and (not words or diff.max_abs > largest):
                where = tuple(map(int, np.unravel_index(diff.worst or 0, b.shape)))
                words = f"at {where} it gives {a[where]:.4g} where {b[where]:.4g} is wanted"
            largest = max(largest, diff.max_abs)
    if is_equal:
        return EquivalenceResult(Equivalence.EQUAL, "equal on sample inputs")
    if not words:
        words = f"equal within rounding: max |Δ| {largest:.2g} in numbers up to {top:.4g}"
        return EquivalenceResult(Equivalence.CLOSE, words)
    return EquivalenceResult(
        Equivalence.DIFFERENT, f"computes something else: max |Δ| {largest:.3g}; {words}"
    )


def _array_function(function: Runnable) -> Callable[..., object]:
    """Return a function of arrays; raise what TVM raises if a PrimFunc cannot be built."""
    if not isinstance(function, tirx.PrimFunc):
        return function
    mod = ir.IRModule({"it": function.with_attr("global_symbol", "it")})
    try:
        built = build_prim_funcs(mod, _TARGET)
    except RunError as failure:
        raise failure.__cause__ or failure from None
    run = built.module[built.symbols.get("it", "it")]

    def call(*arrays: Array) -> None:
        tensors = [tvm.runtime.tensor(array) for array in arrays]
        run(*tensors)
        for array, tensor in zip(arrays, tensors, strict=True):
            array[...] = tensor.numpy()  # also an input, to see whether it was overwritten

    return call


def _untried(obstacle: str) -> EquivalenceResult:
    return EquivalenceResult(Equivalence.UNTRIED, f"not tried: {obstacle}")


def _never_tried(obstacle: str) -> EquivalenceResult:
    return _untried(f"the callee itself cannot be tried: {obstacle}")


def _failure_text(what: str, failure: Exception) -> str:
    return f"{what}: {beginning(error_summary(failure), _MOST_CHARACTERS)}"


# --- candidates ------------------------------


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
    kind: swap.CallTargetKind
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


def iter_candidates(
    mod: ir.IRModule, function: str, node: NodeId
) -> Iterator[tuple[Candidate, ...]]:
    """Yield the possible replacements of a node's callee, those that compute the same first.

    They are yielded repeatedly: first matched by signature, then with more of them tried; never for
    a node that is not a call_tir or call_dps_packed. Raises NoFunctionError when the module has no
    Relax function of this name.

    Candidates of a recent call are cached and yielded once, as long as the same functions exist:
    users stepping through stages return to the same call.
    """
    here = swap.dps_calls(relax_function(mod, function)).get(node)
    if here is None:
        return
    targets, known = swap.call_targets(mod), _known(mod, function, node)
    if known and known[0][0] == targets:
        yield known[0][1]
        return
    others = {name: each for name, each in targets.items() if name != here.callee}
    callee = swap.call_target(mod, here.callee)
    named = (
        callee.function.definition if callee and isinstance(callee.function, LibraryKernel) else ""
    )
    reasons = {name: swap.misfit(mod, here.call, name) for name in others}
    findings = {
        name: EquivalenceResult(Equivalence.MISFIT, reason) if reason else _PENDING
        for name, reason in reasons.items()
    }
    fitting = [each for name, each in others.items() if not reasons[name]]
    if fitting:
        trial = _CallTrial(mod, here.call, here.callee)
        is_late = [each for each in fitting if each.kind is swap.CallTargetKind.DEFINITION]
        for part in ([each for each in fitting if each not in is_late], is_late):
            yield _ordered(others, findings, named)
            findings |= trial.of(part)
    found = _ordered(others, findings, named)
    known[:] = [(targets, found)]
    yield found


@lru_cache(maxsize=_MOST_CALLS)
def _known(*_: object) -> list[tuple[Mapping[str, swap.CallTarget], tuple[Candidate, ...]]]:
    """Return a list for a call's candidates, and for the functions that they were chosen from."""
    return []


def equivalence(mod: ir.IRModule, name: str, prim_func: tirx.PrimFunc) -> EquivalenceResult:
    """Compare a PrimFunc with that of this name in the module, on the shapes of its first call."""
    for function in relax_functions(mod).values():
        for found in swap.dps_calls(function).values():
            if found.callee == name:
                other = swap.CallTarget("it", swap.CallTargetKind.PRIM_FUNC, prim_func)
                return _CallTrial(mod, found.call, name).of([other])["it"]
    return _untried(f"nothing calls {name!r} by call_tir or call_dps_packed")


_Callable: TypeAlias = tirx.PrimFunc | LibraryKernel


class _CallTrial:
    """Tries replacements of the callee of one call."""

    def __init__(self, mod: ir.IRModule, call: ir.Call, callee: str) -> None:
        self._call = call
        self._signatures: tuple[Signature, ...] = ()
        self._obstacle = ""
        found = swap.call_target(mod, callee)
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
            fixed = swap.signatures_of(prim_func, 0) if prim_func is not None else ()
            kept = {dim for each in fixed for tensor in each.inputs for dim in tensor.dims}
            self._signatures = (own, with_small_sizes(own, kept))

    def of(self, others: Iterable[swap.CallTarget]) -> dict[str, EquivalenceResult]:
        """Return the results for these candidates, cached or new."""
        findings: dict[str, EquivalenceResult] = {}
        asked: dict[SampleSpec, dict[str, _Callable]] = {}
        for other in others:
            if self._obstacle or other.function is None:
                obstacle = self._obstacle or "it was registered with TVM directly"
                findings[other.name] = _untried(obstacle)
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
                types = [relax.TensorType(list(t.shape), t.dtype) for t in signature.inputs]
                return create_prim_func(other, types, signature)
            except NoPrimFuncError:
                return None
        return other if is_own or _takes(other, signature) else None


def _takes(function: _Callable, signature: Signature) -> bool:
    return swap.fits_any(swap.signatures_of(function, len(signature.outputs)), signature)


def _fingerprint(function: _Callable) -> Hashable:
    """Return a key that differs for functions that compute different things."""
    if isinstance(function, LibraryKernel):
        return function  # registering a kernel again makes a new object
    return tvm_ffi.structural_hash(function.without_attr("global_symbol"))


def _runs(function: _Callable) -> Runnable:
    return function.function if isinstance(function, LibraryKernel) else function


def _ordered(
    others: Mapping[str, swap.CallTarget], findings: Mapping[str, EquivalenceResult], first: str
) -> tuple[Candidate, ...]:
    found = [
        Candidate(name, other.kind, findings[name].verdict, findings[name].reason)
        for name, other in others.items()
    ]
    verdicts, kinds = list(Equivalence), list(swap.CallTargetKind)

    def order(one: Candidate) -> tuple[object, ...]:
        rank = 0 if one.computes_the_same else verdicts.index(one.verdict)
        return rank, kinds.index(one.kind), one.name != first

    return tuple(sorted(found, key=order))
