"""What a run gave, and how two runs compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from irviz.model.closeness import Closeness, closeness, is_numeric
from irviz.model.closeness import Tolerance as Tolerance  # part of what a comparison is
from irviz.model.closeness import Verdict as Verdict
from irviz.model.trace import Trace


@dataclass(frozen=True, eq=False)
class RunResult:
    """The outputs of a stage over all cases of its inputs.

    `outputs` has one array for each output, its first axis counting the cases; `seconds` is the
    median time of one case; `labels` are the right classes, where they are known; `trace` is
    what one case did node by node, where that was recorded.
    """

    outputs: tuple[NDArray[np.generic], ...]
    seconds: float
    labels: NDArray[np.int64] | None = None
    trace: Trace | None = None

    def __repr__(self) -> str:
        """Return the shapes and the time; the numbers are in `outputs`."""
        shapes = ", ".join(f"{output.shape} {output.dtype}" for output in self.outputs)
        return f"<RunResult of {self.cases} cases: {shapes}; {self.seconds:.3g} s each>"

    @property
    def cases(self) -> int:
        """How many times the function was called."""
        return len(self.outputs[0]) if self.outputs else 0

    @cached_property
    def classes(self) -> NDArray[np.int64] | None:
        """The predicted class of each case, or None when the output is no row of scores."""
        if not self.outputs:
            return None
        scores = self.outputs[0]
        is_row = scores.ndim == 3 and scores.shape[1] == 1 and scores.shape[2] > 1
        return scores[:, 0, :].argmax(axis=1) if is_row else None

    @cached_property
    def correct(self) -> int | None:
        """How many predicted classes are right, or None where that is not known."""
        if self.classes is None or self.labels is None:
            return None
        return int((self.classes == self.labels).sum())


@dataclass(frozen=True)
class Comparison:
    """A run against a reference run on the same inputs.

    `max_abs_diff` is the largest |Δ| over all outputs, nan when they are not comparable;
    `same_classes` counts the cases with the same predicted class; `time_ratio` is the
    reference's median time of a case over this one's: above 1 is faster than the reference.
    `max_relative` and `max_ulp` are the largest of all outputs that have one, as `Closeness`
    says which; `worst_case` is the number of the first case with the largest |Δ|, None when
    nothing differs; `past` of `numbers` are not within tolerance. `reason` says why runs are not
    comparable, or what else is to be known of a comparison.
    """

    verdict: Verdict
    max_abs_diff: float
    same_classes: int | None
    cases: int
    time_ratio: float
    reason: str = ""
    max_relative: float | None = None
    max_ulp: int | None = None
    worst_case: int | None = None
    past: int = 0
    numbers: int = 0


def compare(
    result: RunResult, reference: RunResult, tolerance: Tolerance | None = None
) -> Comparison:
    """Compare two runs on the same inputs; non-finite numbers must be at the same places.

    Without a tolerance each output has that of its dtype (`default_tolerance`).
    """
    ratio = reference.seconds / result.seconds if result.seconds else float("nan")
    reason = _obstacle(result, reference)
    if reason:
        return Comparison(Verdict.INCOMPARABLE, float("nan"), None, result.cases, ratio, reason)
    pairs = list(zip(result.outputs, reference.outputs, strict=True))
    found = [closeness(a, b, tolerance) for a, b in pairs]
    same = None
    classes, wanted = result.classes, reference.classes
    if classes is not None and wanted is not None:
        same = int((classes == wanted).sum())
    return Comparison(
        _overall(found),
        max((one.max_abs for one in found), default=0.0),
        same,
        result.cases,
        ratio,
        _remark(result, reference),
        max((one.max_relative for one in found if one.max_relative is not None), default=None),
        max((one.max_ulp for one in found if one.max_ulp is not None), default=None),
        _worst_case(result, found),
        sum(one.past for one in found),
        sum(one.size for one in found),
    )


def _overall(found: Sequence[Closeness]) -> Verdict:
    verdicts = {one.verdict for one in found}
    by_badness = (Verdict.DIFFERENT, Verdict.CLOSE)
    return next((verdict for verdict in by_badness if verdict in verdicts), Verdict.EQUAL)


def _worst_case(result: RunResult, found: Sequence[Closeness]) -> int | None:
    if not found:
        return None
    one, output = max(zip(found, result.outputs, strict=True), key=lambda pair: pair[0].max_abs)
    if one.worst is None or not output.ndim:
        return None
    return one.worst // (output.size // len(output))


def _obstacle(result: RunResult, reference: RunResult) -> str:
    """Say why two runs cannot be compared, or "" when they can."""
    shapes = [output.shape for output in result.outputs]
    wanted = [output.shape for output in reference.outputs]
    if shapes != wanted:
        return f"the outputs have shapes {shapes}, the reference has {wanted}"
    for output in (*result.outputs, *reference.outputs):
        if not is_numeric(output.dtype):
            return f"an output is of dtype {output.dtype}, and only numbers are compared"
    return ""


def _remark(result: RunResult, reference: RunResult) -> str:
    """Say which outputs are of other dtypes than the reference's, or "" when none is."""
    pairs = zip(result.outputs, reference.outputs, strict=True)
    return "; ".join(
        f"output {index} is {a.dtype}, the reference's is {b.dtype}: compared as numbers"
        for index, (a, b) in enumerate(pairs)
        if a.dtype != b.dtype
    )
