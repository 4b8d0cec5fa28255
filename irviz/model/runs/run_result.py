"""The outputs and times of runs, the comparison of two runs, and with the original model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from irviz.model.graph.graph import NodeId
from irviz.model.runs.array_diff import (
    Array,
    ArrayDiff,
    combine_diffs,
    compare_arrays,
    is_numeric,
    summarise,
)
from irviz.model.runs.array_diff import Tolerance as Tolerance  # part of what a comparison is
from irviz.model.runs.array_diff import Verdict as Verdict
from irviz.model.runs.execution_trace import NodeValue, NodeVisit, Trace


@dataclass(frozen=True, eq=False)
class RunResult:
    """The outputs of a stage for all cases of its inputs.

    Attributes:
        outputs: One array per output, of shape (cases, ...).
        seconds: The median time of one case.
        labels: The correct classes, None if unknown.
        trace: The values and times of the nodes in one case, None if not recorded.
        warnings: TVM's warnings from building the stage.
        build: How the function was optimised before it was built, "plain" for not at all.
        origin: How the first case compares with the model that the stage was imported from, if any.
        is_confined: Whether it could only compute: without files, network and other processes.
        value: What the model returns in the first case, in its own structure, such as a dict; None
            for a module that was not imported from torch.
        caches: What the caches of a language model are after the last case, in words.
    """

    outputs: tuple[Array, ...]
    seconds: float
    labels: NDArray[np.int64] | None = None
    trace: Trace | None = None
    warnings: tuple[str, ...] = ()
    origin: OriginVerdict | None = None
    build: str = "plain"
    is_confined: bool = False
    value: object = field(default=None, repr=False)
    caches: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the shapes and the time, and how it compares with its origin."""
        shapes = ", ".join(f"{output.shape} {output.dtype}" for output in self.outputs)
        words = f"{self.cases} cases: {shapes}; {self.seconds:.3g} s each"
        origin = [str(self.origin)] if self.origin else []
        return f"<RunResult of {'; '.join([words, *self.caches, *origin])}>"

    @property
    def cases(self) -> int:
        """The number of cases: how often the function was called."""
        return len(self.outputs[0]) if self.outputs else 0

    @cached_property
    def nans(self) -> NDArray[np.int64]:
        """How many NaN the outputs of each case have."""
        counts = np.zeros(self.cases, np.int64)
        for output in self.outputs:
            if is_numeric(output.dtype) and output.size:
                # only a NaN differs from itself
                counts += (output != output).reshape(len(output), -1).sum(axis=1)
        return counts

    @cached_property
    def classes(self) -> NDArray[np.int64] | None:
        """The predicted class of each case, None if the first output is not a row of scores."""
        if not self.outputs:
            return None
        scores = self.outputs[0]
        is_row = scores.ndim == 3 and scores.shape[1] == 1 and scores.shape[2] > 1
        return scores[:, 0, :].argmax(axis=1) if is_row else None

    @cached_property
    def correct(self) -> int | None:
        """The number of correct predictions, None if there are no classes or no labels."""
        if self.classes is None or self.labels is None:
            return None
        return int((self.classes == self.labels).sum())


@dataclass(frozen=True)
class Comparison:
    """A run compared with a reference run on the same inputs.

    Attributes:
        verdict: The worst verdict of any output. It, `max_relative`, `max_ulp` and `past` mean the
            same as in `ArrayDiff`, over all outputs together.
        max_abs_diff: The largest |Δ| over all outputs, nan if they are not comparable.
        same_classes: The number of cases with the same predicted class, None if there are no
            classes.
        time_ratio: The reference's median time per case divided by this run's: above 1 is faster.
        share: The largest |Δ| in proportion to the tolerance, as in `ArrayDiff`.
        reason: Why the runs cannot be compared, or a remark on the comparison.
        worst_case: The first case with the largest |Δ|, None if nothing differs.
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
    share: float = 0.0


@dataclass(frozen=True)
class OriginVerdict:
    """How the results of a module compare with those of its origin.

    Attributes:
        comparison: None where the origin could not be run.
        remark: Where they first differ, or why the origin could not be run.
    """

    origin: str
    comparison: Comparison | None
    remark: str = ""

    @property
    def is_different(self) -> bool:
        """Whether the results are known not to be those of the origin."""
        if self.comparison is None:
            return False
        return self.comparison.verdict in (Verdict.DIFFERENT, Verdict.INCOMPARABLE)

    def __str__(self) -> str:
        """Return the verdict as a sentence."""
        found = self.comparison
        if found is None:
            return f"not compared with {self.origin}: {self.remark}"
        if found.verdict is Verdict.INCOMPARABLE:
            return f"not comparable with {self.origin}: {found.reason}"
        how = f"max |Δ| {found.max_abs_diff:.2g}"
        if not self.is_different:
            return f"equals {self.origin}, {how}"
        words = f"differs from {self.origin}, {how}, {found.past:,} of {found.numbers:,} numbers"
        return f"{words}; {self.remark}" if self.remark else words


def compare_runs(
    result: RunResult,
    reference: RunResult,
    tolerance: Tolerance | Sequence[Tolerance] | None = None,
) -> Comparison:
    """Compare two runs on the same inputs, by default with `default_tolerance` of each output.

    A sequence has the tolerance of each output.
    """
    ratio = reference.seconds / result.seconds if result.seconds else float("nan")
    reason = _obstacle(result, reference)
    if reason:
        return Comparison(Verdict.INCOMPARABLE, float("nan"), None, result.cases, ratio, reason)
    of_outputs = tolerance if isinstance(tolerance, Sequence) else [tolerance] * len(result.outputs)
    triples = zip(result.outputs, reference.outputs, of_outputs, strict=True)
    diffs = [compare_arrays(*triple) for triple in triples]
    total = combine_diffs(diffs)
    same = None
    if result.classes is not None and reference.classes is not None:
        same = int((result.classes == reference.classes).sum())
    return Comparison(
        verdict=total.verdict,
        max_abs_diff=total.max_abs,
        same_classes=same,
        cases=result.cases,
        time_ratio=ratio,
        reason=_remark(result, reference),
        max_relative=total.max_relative,
        max_ulp=total.max_ulp,
        worst_case=_worst_case(result, diffs),
        past=total.past,
        numbers=total.size,
        share=total.share,
    )


def _worst_case(result: RunResult, diffs: Sequence[ArrayDiff]) -> int | None:
    if not diffs:
        return None
    one, output = max(zip(diffs, result.outputs, strict=True), key=lambda pair: pair[0].max_abs)
    if one.worst is None or not output.ndim:
        return None
    return one.worst // (output.size // len(output))


def _obstacle(result: RunResult, reference: RunResult) -> str:
    """Return why two runs cannot be compared, "" if they can."""
    shapes = [output.shape for output in result.outputs]
    expected = [output.shape for output in reference.outputs]
    if shapes != expected:
        return f"the outputs have shapes {shapes}, the reference has {expected}"
    for output in (*result.outputs, *reference.outputs):
        if not is_numeric(output.dtype):
            return f"an output is of dtype {output.dtype}, and only numbers are compared"
    return ""


def _remark(result: RunResult, reference: RunResult) -> str:
    pairs = zip(result.outputs, reference.outputs, strict=True)
    return "; ".join(
        f"output {index} is {a.dtype}, the reference's is {b.dtype}: compared as numbers"
        for index, (a, b) in enumerate(pairs)
        if a.dtype != b.dtype
    )


_SHARE = 8


@dataclass(frozen=True, eq=False)
class OriginRun:
    """What the origin computes in one case.

    Attributes:
        trace: The values of its nodes, by the nodes of the module that were imported from them.
        labels: What those nodes are in the origin, in words.
    """

    outputs: tuple[Array, ...]
    trace: Trace
    labels: Mapping[NodeId, str] = field(default_factory=dict)


class Origin(ABC):
    """A program that can be run beside the module that was imported from it.

    Attributes:
        name: What runs it, such as "torch".
        is_isolated: Whether it can be sent to the worker, and is run nowhere else.
    """

    name: str
    is_isolated: bool

    @abstractmethod
    def run(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Run it with the arguments of the module's parameters.

        `budget` is how many bytes of the nodes' values are kept; with 0 none may be recorded.
        """

    def value(self, outputs: Sequence[Array]) -> object:  # noqa: ARG002 - others have a structure
        """Return the outputs of a case in the structure of what it returns, None if unknown."""
        return None


class ValueRecorder:
    """Collects the values of nodes, whole as far as the budget reaches."""

    def __init__(self, budget: int) -> None:
        self.visits: dict[NodeId, NodeVisit] = {}
        self._most, self._room = budget // _SHARE, budget

    def add(self, node: NodeId, arrays: Sequence[Array]) -> None:
        """Record the tensors of a node's value."""
        kept: list[Array | None] = []
        for array in arrays:
            fits = array.nbytes <= min(self._most, self._room)
            self._room -= array.nbytes * fits
            kept.append(array if fits else None)
        self.visits[node] = NodeVisit(NodeValue(tuple(map(summarise, arrays)), tuple(kept)))

    def trace(self, function: str) -> Trace:
        """Return what was recorded, without times."""
        return Trace(function, self.visits, 0.0, 0.0, 0.0)
