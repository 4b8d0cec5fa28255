"""Compare functions with each other on sample inputs, in the worker."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias, TypeVar

import cloudpickle
import numpy as np
import tvm
import tvm_ffi
from tvm import ir, tirx

from irviz.errors import RunError
from irviz.model.runs.array_diff import distances
from irviz.model.runs.tolerance import kernel_tolerance
from irviz.runtime.local.kernels import compiled, is_closed
from irviz.runtime.local.run_errors import error_summary
from irviz.transforms.kernels.samples import Array, SampleSpec, UnknownDtypeError
from irviz.worker.supervisor import TRIES, WorkerError

Value = TypeVar("Value")
Result = TypeVar("Result")
Runnable: TypeAlias = tirx.PrimFunc | Callable[..., None]
"""A function of tensors or arrays: inputs first, then the outputs to write into."""

SECONDS = 10.0
"""The time limit for all candidates of a call; a single one gets half of it."""

_FAILED = "it failed on sample inputs"
_MOST_BUILT = 64
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
) -> dict[str, EquivalenceResult]:
    """Compare candidates with the callee on sample inputs, in the worker.

    When the worker crashes or times out, each candidate is run again by itself to find the one at
    fault. Those in `here` run in this process, because they cannot be sent to the worker.
    """
    names = [*candidates, *here]
    try:
        reference = cloudpickle.dumps(callee)
    except Exception as failure:  # a function may refer to objects that cannot be pickled
        return dict.fromkeys(names, _untried(_failure_text("it cannot be sent", failure)))
    sent, found = _each(
        candidates, cloudpickle.dumps, "it cannot be sent to the process that tries"
    )

    def ask(some: Mapping[str, bytes], seconds: float) -> _Answer:
        return TRIES.call(_answer, samples, reference, some, bool(here), seconds=seconds)

    try:
        given = ask(sent, SECONDS)
    except WorkerError:
        try:
            given = ask({}, SECONDS / 2)
        except WorkerError as failure:
            return found | dict.fromkeys([*sent, *here], _untried(str(failure)))
        for name, one in sent.items():
            try:
                alone = ask({name: one}, SECONDS / 2)
            except WorkerError as failure:  # noqa: PERF203 - each is asked for by itself
                found[name] = EquivalenceResult(Equivalence.FAILED, str(failure))
            else:
                found[name] = alone.verdicts.get(name) or _untried(alone.obstacle)
    if given.obstacle:
        return found | dict.fromkeys([*sent, *here], _untried(given.obstacle))
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
        _build([reference, *loaded.values()])
        references = [_outputs(reference, *sample) for sample in samples.draw()]
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
    for (inputs, outputs), wanted in zip(samples.draw(), references, strict=True):
        kept = [array.copy() for array in inputs]
        try:
            made = _outputs(candidate, inputs, outputs)
        except Exception as failure:  # a candidate may raise anything
            return EquivalenceResult(Equivalence.FAILED, _failure_text(_FAILED, failure))
        if any(a.tobytes() != b.tobytes() for a, b in zip(inputs, kept, strict=True)):
            return EquivalenceResult(Equivalence.FAILED, "it writes into its inputs")
        for a, b in zip(made, wanted, strict=True):
            is_equal &= a.tobytes() == b.tobytes()
            difference, is_close, where, size = _compared(a, b)
            top = max(top, size)
            if not is_close and (not words or difference > largest):
                words = f"at {where} it gives {a[where]:.4g} where {b[where]:.4g} is wanted"
            largest = max(largest, difference)
    if is_equal:
        return EquivalenceResult(Equivalence.EQUAL, "equal on sample inputs")
    if not words:
        words = f"equal within rounding: max |Δ| {largest:.2g} in numbers up to {top:.4g}"
        return EquivalenceResult(Equivalence.CLOSE, words)
    return EquivalenceResult(
        Equivalence.DIFFERENT, f"computes something else: max |Δ| {largest:.3g}; {words}"
    )


def _compared(array: Array, wanted: Array) -> tuple[float, bool, tuple[int, ...], float]:
    """Return max |Δ|, whether that is rounding, the index of the worst, and the largest number."""
    if array.size == 0:
        return 0.0, True, (), 0.0
    apart, limit = distances(array, wanted), kernel_tolerance(wanted)
    numbers = np.abs(wanted.astype(np.float64))
    numbers[~np.isfinite(numbers)] = 0.0
    allowed = limit.absolute + limit.relative * numbers
    where = np.unravel_index(int(np.argmax(apart - allowed)), apart.shape)
    is_close = bool((apart <= allowed).all())
    return float(apart.max()), is_close, tuple(map(int, where)), float(numbers.max())


def _outputs(function: Runnable, inputs: list[Array], outputs: list[Array]) -> list[Array]:
    if not isinstance(function, tirx.PrimFunc):
        function(*inputs, *outputs)
        return outputs
    tensors = [tvm.runtime.tensor(array) for array in (*inputs, *outputs)]
    built = _built[tvm_ffi.structural_hash(function)]
    if isinstance(built, Exception):
        raise built
    built(*tensors)
    arrays = [tensor.numpy() for tensor in tensors]
    for array, after in zip(inputs, arrays[: len(inputs)], strict=True):
        array[...] = after  # so that the caller sees whether an input was overwritten
    return arrays[len(inputs) :]


_built: OrderedDict[int, Callable[..., None] | Exception] = OrderedDict()
"""Compiled PrimFuncs by structural hash, or why one does not compile."""


def _build(functions: list[Runnable]) -> None:
    """Build the PrimFuncs that are not built yet, in a single module if that compiles."""
    wanted = {
        tvm_ffi.structural_hash(function): function.with_attr("global_symbol", f"f{number}")
        for number, function in enumerate(functions)
        if isinstance(function, tirx.PrimFunc)
    }
    new = {key: function for key, function in wanted.items() if key not in _built}
    for key in wanted.keys() - new.keys():
        _built.move_to_end(key)
    try:
        _built.update(_compiled(new) if new else {})
    except Exception:  # one of them does not compile: build each by itself
        for key, function in new.items():
            try:
                _built.update(_compiled({key: function}))
            except RunError as failure:  # noqa: PERF203 - it names the function by its key
                cause = failure.__cause__
                _built[key] = cause if isinstance(cause, Exception) else failure
            except Exception as failure:
                _built[key] = failure
    while len(_built) > _MOST_BUILT:
        _built.popitem(last=False)


def _compiled(functions: Mapping[int, tirx.PrimFunc]) -> dict[int, Callable[..., None]]:
    closed = {str(key): function for key, function in functions.items() if is_closed(function)}
    kernels = compiled(closed, tvm.target.Target("llvm"))
    made = {int(key): one.library.get_function(one.symbol) for key, one in kernels.items()}
    names = {key: str(function.attrs["global_symbol"]) for key, function in functions.items()}
    others = {names[key]: function for key, function in functions.items() if key not in made}
    if others:
        executable = tvm.compile(ir.IRModule(others), target="llvm")
        made |= {key: executable[name] for key, name in names.items() if name in others}
    return made


def _untried(obstacle: str) -> EquivalenceResult:
    words = f"not tried: the callee itself cannot be tried: {obstacle}"
    return EquivalenceResult(Equivalence.UNTRIED, words)


def _failure_text(what: str, failure: Exception) -> str:
    text = error_summary(failure)
    return f"{what}: {text[:_MOST_CHARACTERS]}{'…' if len(text) > _MOST_CHARACTERS else ''}"
