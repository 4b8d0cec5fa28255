"""What a run gave, and how two runs compare."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class RunResult:
    """The outputs of a stage over all cases of its inputs.

    `outputs` has one array for each output, its first axis counting the cases; `seconds` is the
    median time of one case; `labels` are the right classes, where they are known.
    """

    outputs: tuple[NDArray[np.generic], ...]
    seconds: float
    labels: NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        """Return the shapes and the time; the numbers are in `outputs`."""
        shapes = ", ".join(f"{output.shape} {output.dtype}" for output in self.outputs)
        return f"<RunResult of {self.cases} cases: {shapes}; {self.seconds:.3g} s each>"

    @property
    def cases(self) -> int:
        """How many times the function was called."""
        return len(self.outputs[0]) if self.outputs else 0

    @property
    def classes(self) -> NDArray[np.int64] | None:
        """The predicted class of each case, or None when the output is no row of scores."""
        if not self.outputs:
            return None
        scores = self.outputs[0]
        is_row = scores.ndim == 3 and scores.shape[1] == 1 and scores.shape[2] > 1
        return scores[:, 0, :].argmax(axis=1) if is_row else None

    @property
    def correct(self) -> int | None:
        """How many predicted classes are right, or None where that is not known."""
        if self.classes is None or self.labels is None:
            return None
        return int((self.classes == self.labels).sum())


class Verdict(Enum):
    """How the outputs of two runs compare."""

    EQUAL = "equal"
    CLOSE = "within tolerance"
    DIFFERENT = "different"
    INCOMPARABLE = "not comparable"


@dataclass(frozen=True)
class Tolerance:
    """Numbers are close when |Δ| ≤ absolute + relative · |reference|, as in NumPy's allclose."""

    relative: float = 1e-4
    absolute: float = 1e-4


@dataclass(frozen=True)
class Comparison:
    """A run against a reference run on the same inputs.

    `max_abs_diff` is the largest |Δ| over all outputs, nan when they are not comparable;
    `same_classes` counts the cases with the same predicted class; `time_ratio` is the
    reference's median time of a case over this one's: above 1 is faster than the reference.
    """

    verdict: Verdict
    max_abs_diff: float
    same_classes: int | None
    cases: int
    time_ratio: float
    reason: str = ""


def compare(
    result: RunResult, reference: RunResult, tolerance: Tolerance | None = None
) -> Comparison:
    """Compare two runs on the same inputs; non-finite numbers must be at the same places."""
    limits = tolerance or Tolerance()
    ratio = reference.seconds / result.seconds if result.seconds else float("nan")
    reason = _obstacle(result, reference)
    if reason:
        return Comparison(Verdict.INCOMPARABLE, float("nan"), None, result.cases, ratio, reason)
    pairs = list(zip(result.outputs, reference.outputs, strict=True))
    if all(a.tobytes() == b.tobytes() and a.dtype == b.dtype for a, b in pairs):
        verdict = Verdict.EQUAL
    elif all(_is_close(a, b, limits) for a, b in pairs):
        verdict = Verdict.CLOSE
    else:
        verdict = Verdict.DIFFERENT
    same = None
    if result.classes is not None and reference.classes is not None:
        same = int((result.classes == reference.classes).sum())
    largest = max((_largest_difference(a, b) for a, b in pairs), default=0.0)
    return Comparison(verdict, largest, same, result.cases, ratio)


def _obstacle(result: RunResult, reference: RunResult) -> str:
    """Say why two runs cannot be compared, or "" when they can."""
    shapes = [output.shape for output in result.outputs]
    wanted = [output.shape for output in reference.outputs]
    if shapes != wanted:
        return f"the outputs have shapes {shapes}, the reference has {wanted}"
    for output in (*result.outputs, *reference.outputs):
        if output.dtype.kind in "OSU":
            return f"an output is of dtype {output.dtype}, and only numbers are compared"
    return ""


def _is_close(
    array: NDArray[np.generic], reference: NDArray[np.generic], limits: Tolerance
) -> bool:
    rtol, atol = limits.relative, limits.absolute
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.allclose(array, reference, rtol=rtol, atol=atol, equal_nan=True))


def _largest_difference(array: NDArray[np.generic], reference: NDArray[np.generic]) -> float:
    """Return max |Δ|; equal infinities and NaNs at the same place differ by nothing."""
    if array.size == 0:
        return 0.0
    a, b = array.astype(np.float64), reference.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(over="ignore", invalid="ignore"):
        differences = np.where(same, 0.0, np.abs(a - b))
    return float("inf") if np.isnan(differences).any() else float(differences.max())
