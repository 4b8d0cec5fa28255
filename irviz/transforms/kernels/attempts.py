"""Try functions on sample inputs against one another, in the worker."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias, TypeVar

import cloudpickle
import numpy as np
import tvm
import tvm_ffi
from tvm import ir, tirx

from irviz.transforms.kernels.sample import Array, UnknownDtypeError, draws
from irviz.transforms.kernels.signature import Signature
from irviz.worker.pool import TRIES, WorkerError

Value = TypeVar("Value")
Result = TypeVar("Result")
Runnable: TypeAlias = tirx.PrimFunc | Callable[..., None]
"""What is called with tensors or arrays: inputs first, then those to write into."""

SECONDS = 10.0
"""How long all tries of a call may take; one alone may take half of it."""

_MOST_BUILT = 64
_MOST_SAID = 200
_TOLERANCES = {"float64": 1e-9, "float32": 1e-5, "float16": 1e-2}
"""How far numbers may be apart, as a share of the number and of the largest of the output."""


class Verdict(Enum):
    """What a try has shown."""

    EQUAL = "equal"
    CLOSE = "equal within rounding"
    DIFFERENT = "computes something else"
    FAILED = "failed"
    UNTRIED = "not tried"
    MISFIT = "does not fit"


@dataclass(frozen=True)
class Finding:
    """A verdict, and in words what it rests on."""

    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Samples:
    """The inputs that functions are tried on: of these sizes, and how many."""

    signature: Signature
    few: bool = False

    def draw(self) -> Iterator[tuple[list[Array], list[Array]]]:
        """Yield inputs and what to write into, always the same ones."""
        return draws(self.signature, few=self.few)


class _Answer(NamedTuple):
    """What the callee gave at each draw, or why it gave nothing; and what was found."""

    obstacle: str
    references: list[list[Array]]
    findings: dict[str, Finding]


def tried(
    samples: Samples,
    callee: Runnable,
    candidates: Mapping[str, Runnable],
    here: Mapping[str, Runnable],
) -> dict[str, Finding]:
    """Find which candidates compute what the callee does; those in `here` in this process.

    The others are tried in the worker. What ends it, or takes too long, is found one by one.
    """
    names = [*candidates, *here]
    try:
        reference = cloudpickle.dumps(callee)
    except Exception as failure:  # whatever the function holds on to
        return dict.fromkeys(names, _untried(_said("it cannot be sent", failure)))
    sent, found = _each(
        candidates, cloudpickle.dumps, "it cannot be sent to the process that tries"
    )
    try:
        given = TRIES.call(_answer, samples, reference, sent, bool(here), seconds=SECONDS)
    except WorkerError:
        try:
            given = TRIES.call(_answer, samples, reference, {}, bool(here), seconds=SECONDS / 2)
        except WorkerError as failure:
            return found | dict.fromkeys([*sent, *here], _untried(str(failure)))
        found |= {name: _alone(samples, reference, name, one) for name, one in sent.items()}
    if given.obstacle:
        return found | dict.fromkeys([*sent, *here], _untried(given.obstacle))
    locally = {name: _judged(kernel, samples, given.references) for name, kernel in here.items()}
    return found | given.findings | locally


def _each(
    values: Mapping[str, Value], function: Callable[[Value], Result], otherwise: str
) -> tuple[dict[str, Result], dict[str, Finding]]:
    """Return what a function makes of each value, and of which it makes nothing."""
    made, found = {}, {}
    for name, value in values.items():
        try:
            made[name] = function(value)
        except Exception as failure:  # noqa: PERF203 - whatever a user's function holds on to
            found[name] = Finding(Verdict.FAILED, _said(otherwise, failure))
    return made, found


def _alone(samples: Samples, callee: bytes, name: str, candidate: bytes) -> Finding:
    try:
        given = TRIES.call(_answer, samples, callee, {name: candidate}, False, seconds=SECONDS / 2)
    except WorkerError as failure:
        return Finding(Verdict.FAILED, str(failure))
    return given.findings.get(name) or _untried(given.obstacle)


def _answer(
    samples: Samples, callee: bytes, candidates: Mapping[str, bytes], wants_references: bool
) -> _Answer:
    """Try what was sent; the worker calls this."""
    # the module that a function is from may be out of reach here
    loaded, findings = _each(candidates, cloudpickle.loads, "it cannot be read where it is tried")
    try:
        reference = cloudpickle.loads(callee)
        _build([reference, *loaded.values()])
        references = [_outputs(reference, *sample) for sample in samples.draw()]
    except UnknownDtypeError as unknown:
        return _Answer(str(unknown), [], {})
    except Exception as failure:  # what TVM's C++ side threw, or the user's kernel
        return _Answer(_said("it failed on sample inputs", failure), [], {})
    if not any(_has_numbers(output) for outputs in references for output in outputs):
        return _Answer("on sample inputs it gives no finite number", [], {})
    for name, candidate in loaded.items():
        findings[name] = _judged(candidate, samples, references)
    return _Answer("", references if wants_references else [], findings)


def _judged(candidate: Runnable, samples: Samples, references: list[list[Array]]) -> Finding:
    """Compare a function's outputs with the references, at every draw."""
    is_equal, largest, top, words = True, 0.0, 0.0, ""
    for (inputs, outputs), wanted in zip(samples.draw(), references, strict=True):
        kept = [array.copy() for array in inputs]
        try:
            made = _outputs(candidate, inputs, outputs)
        except Exception as failure:  # whatever it is, it is the candidate's
            return Finding(Verdict.FAILED, _said("it failed on sample inputs", failure))
        if any(a.tobytes() != b.tobytes() for a, b in zip(inputs, kept, strict=True)):
            return Finding(Verdict.FAILED, "it writes into its inputs")
        for a, b in zip(made, wanted, strict=True):
            is_equal &= a.tobytes() == b.tobytes()
            difference, is_close, where, size = _compared(a, b)
            top = max(top, size)
            if not is_close and (not words or difference > largest):
                words = f"at {where} it gives {a[where]:.4g} where {b[where]:.4g} is wanted"
            largest = max(largest, difference)
    if is_equal:
        return Finding(Verdict.EQUAL, "equal on sample inputs")
    if not words:
        words = f"equal within rounding: max |Δ| {largest:.2g} in numbers up to {top:.4g}"
        return Finding(Verdict.CLOSE, words)
    return Finding(Verdict.DIFFERENT, f"computes something else: max |Δ| {largest:.3g}; {words}")


def _compared(array: Array, wanted: Array) -> tuple[float, bool, tuple[int, ...], float]:
    """Return max |Δ|, whether that is rounding, where it is worst, and the largest number."""
    if array.size == 0:
        return 0.0, True, (), 0.0
    a, b = array.astype(np.float64), wanted.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(a - b))
    apart[np.isnan(apart)] = np.inf
    numbers = np.where(np.isfinite(b), np.abs(b), 0.0)
    allowed = _TOLERANCES.get(str(wanted.dtype), 0.0) * (numbers + numbers.max())
    where = np.unravel_index(int(np.argmax(apart - allowed)), apart.shape)
    is_close = bool((apart <= allowed).all())
    return float(apart.max()), is_close, tuple(map(int, where)), float(numbers.max())


def _outputs(function: Runnable, inputs: list[Array], outputs: list[Array]) -> list[Array]:
    if not isinstance(function, tirx.PrimFunc):
        function(*inputs, *outputs)
        return outputs
    tensors = [tvm.runtime.tensor(array) for array in (*inputs, *outputs)]
    _built[tvm_ffi.structural_hash(function)](*tensors)
    arrays = [tensor.numpy() for tensor in tensors]
    for array, after in zip(inputs, arrays[: len(inputs)], strict=True):
        array[...] = after  # for whoever looks whether it was written into
    return arrays[len(inputs) :]


_built: OrderedDict[int, Callable[..., None]] = OrderedDict()


def _build(functions: list[Runnable]) -> None:
    """Build the PrimFuncs that are not built yet, all at once where that goes."""
    wanted = {
        tvm_ffi.structural_hash(function): function.with_attr("global_symbol", f"f{number}")
        for number, function in enumerate(functions)
        if isinstance(function, tirx.PrimFunc)
    }
    new = {key: function for key, function in wanted.items() if key not in _built}
    for key in wanted.keys() - new.keys():
        _built.move_to_end(key)
    _built.update(_compiled(new) if new else {})
    while len(_built) > _MOST_BUILT:
        _built.popitem(last=False)


def _compiled(functions: Mapping[int, tirx.PrimFunc]) -> dict[int, Callable[..., None]]:
    names = {key: str(function.attrs["global_symbol"]) for key, function in functions.items()}
    mod = ir.IRModule({names[key]: function for key, function in functions.items()})
    try:
        executable = tvm.compile(mod, target="llvm")
        return {key: executable[name] for key, name in names.items()}
    except Exception as failure:  # of one of them
        if len(functions) == 1:
            (key,) = functions
            return {key: _raising(failure)}
        alone = [_compiled({key: function}) for key, function in functions.items()]
        return {key: built for each in alone for key, built in each.items()}


def _raising(failure: Exception) -> Callable[..., None]:
    def raises(*_: object) -> None:
        raise failure

    return raises


def _has_numbers(array: Array) -> bool:
    return array.size == 0 or bool(np.isfinite(array.astype(np.float64)).any())


def _untried(obstacle: str) -> Finding:
    words = f"not tried: what is called here cannot be tried itself: {obstacle}"
    return Finding(Verdict.UNTRIED, words)


def _said(what: str, failure: Exception) -> str:
    lines = [line for line in str(failure).splitlines() if line.strip()]
    said = f"{type(failure).__name__}: {lines[-1].strip()}" if lines else type(failure).__name__
    return f"{what}: {said[:_MOST_SAID]}{'…' if len(said) > _MOST_SAID else ''}"
