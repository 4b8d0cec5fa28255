"""Check that a stage has the interface of the first stage, and gives the same results.

All stages are called with the same samples, as a caller would: by the position of the arguments.
Results may differ by what rounding can do, as `irviz.model.runs.array_diff` says. `bisect` and
`reduce` check stages so. `run_stages` compares an imported model with its origin.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import tvm
import tvm_ffi
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import RunError
from irviz.ir.module_functions import drawable_function, prim_funcs, relax_functions
from irviz.ir.parameter_values import Argument, TypeMismatchError, check_argument
from irviz.ir.symbolic_shapes import parameter_types, type_dims
from irviz.ir.type_and_expression_labels import type_label
from irviz.model.graph.flops import shape_in
from irviz.model.runs.array_diff import (
    Verdict,
    distances,
    rounding_error,
    rounding_tolerance,
    unit_roundoff,
)
from irviz.model.runs.execution_trace import Array
from irviz.model.runs.run_result import Comparison, RunResult, Tolerance, compare_runs
from irviz.runtime.argument_conversion import Rows
from irviz.runtime.call_inputs import Cases
from irviz.runtime.rpc_vm import tuple_leaves
from irviz.runtime.run import run
from irviz.session.equivalence_samples import Sample, further_samples, map_arrays, usual_samples
from irviz.session.session_state import SessionState
from irviz.session.stage_cache import graph_of
from irviz.session.stage_diff import entries
from irviz.transforms.apply_transform import try_transform
from irviz.transforms.stage import Stage
from irviz.view.run_result_html import comparison_summary

FILLS = (0x5A, 0xA5)
"""The bytes that fill memory before a run and its repetition: large floats, and small ones."""
_ALGEBRA = (
    relax.transform.ExpandMatmulOfSum,
    relax.transform.CombineParallelMatmul,
    relax.transform.AdjustMatmulOrder,
)
_UNKNOWN = 1000.0
"""The operations of a node or function whose number is unknown."""
_LARGE_TIMES = 4.0
"""How many times the tolerance is for large values: sums of many magnitudes cancel more."""
_SEED = 53


@dataclass(frozen=True, eq=False)
class StageVerdict:
    """How a stage compares with the first one, or why it cannot.

    Attributes:
        max_abs: The largest |Δ| for the usual arguments, None if unknown.
        share: The largest |Δ| of any ordinary sample in proportion to the tolerance.
        sample: The sample for which it fails, if it is one.
        case: The case of it with the largest |Δ|.
        is_special: Whether it fails for values alone that ordinary arguments do not have.
        id: The id of the stage, as a bisection says it.
    """

    fails: bool
    words: str
    max_abs: float | None = None
    share: float | None = None
    sample: Sample | None = field(default=None, repr=False)
    case: int = 0
    is_special: bool = False
    tolerance: Sequence[Tolerance] = field(default=(), repr=False)
    id: str = ""


@dataclass(frozen=True, eq=False)
class _Reference:
    """What the first stage gives for a sample, and how much that changes with rounded inputs."""

    sample: Sample
    result: RunResult
    noise: Sequence[NDArray[np.float64] | None]


class ValueCheck:
    """Compares stages of a session with the first of them; `tried` has the samples used so far."""

    def __init__(
        self, session: SessionState, stages: Sequence[Stage], tolerance: Tolerance | None
    ) -> None:
        self.tried: dict[str, Sample] = {}
        self._session, self._tolerance, self._stages = session, tolerance, stages
        self._first, self._units = stages[0], dict[str, float]()

    # --- the first stage ---

    def first(self) -> StageVerdict:
        """Return whether the first stage fails: it cannot be run, or differs from itself."""
        try:
            references = self._ordinary
        except RunError as failure:
            return StageVerdict(True, str(failure))
        one = replace(references[0], noise=[None] * len(references[0].noise))
        again = self._run(self._first, one.sample, FILLS[1])
        compared = self._compared(one, again, self._limits(self._first, one))
        if compared.verdict in (Verdict.DIFFERENT, Verdict.INCOMPARABLE):
            words = f"it gives other results each time, {comparison_summary(compared)}"
            return StageVerdict(True, words)
        return StageVerdict(False, "equal", 0.0, 0.0)

    @cached_property
    def _ordinary(self) -> list[_Reference]:
        """The references of ordinary samples; RunError if the first stage runs with none."""
        session, mod = self._session, self._first.module
        self._session.check_run(f"running stage {self._first.id}", self._first)
        samples = usual_samples(mod, session.function, session.call_inputs, self._fixed_sizes())
        found, problem = [], RunError("")
        for sample in samples:
            try:
                found.append(self._reference(sample))
            except RunError as failure:  # noqa: PERF203 - sizes that do not fit each other
                problem = failure
        if not found:
            raise problem
        large = next((one for one in self._further if one.is_large), None)
        return [*found, *([self._reference(large)] if large else [])]

    @cached_property
    def _special(self) -> list[_Reference]:
        """The references of samples with special values, and of large ones.

        TVM does not define all that becomes of them: the maximum of a number and NaN may be either
        in machine code, and a factor that is infinite may be moved into a sum. So those are left
        out for which the first stage gives something else with TVM's own optimisations.
        """
        large = [one for one in self._ordinary if one.sample.is_large]
        found = []
        for sample in (one for one in self._further if one.is_special):
            try:
                found.append(self._reference(sample))
            except RunError:  # noqa: PERF203 - what the first stage cannot do is not asked for
                continue
        return [one for one in [*found, *large] if self._is_defined(one)]

    def _is_defined(self, reference: _Reference) -> bool:
        try:
            optimised = self._run(self._optimised, reference.sample, build="default")
        except (RunError, UnfitSizesError):  # it is not a module for that pipeline
            return True
        limits = self._limits(self._first, reference)
        compared = self._compared(reference, optimised, limits)
        return compared.verdict in (Verdict.EQUAL, Verdict.CLOSE)

    @cached_property
    def _optimised(self) -> Stage:
        """The first stage with the passes of TVM that change the order of operations."""
        made = try_transform(self._first.module, _rearranged, keep=True).module
        return replace(self._first, module=made or self._first.module)

    @cached_property
    def _further(self) -> list[Sample]:
        session, usual = self._session, next(iter(self.tried.values()))
        unit = max(self._unit(stage) for stage in self._stages)
        is_narrow = unit > unit_roundoff([np.dtype("float32")])
        called = self._first.module, session.function, session.call_inputs
        return list(further_samples(*called, usual, is_narrow=is_narrow))

    def _reference(self, sample: Sample) -> _Reference:
        result = self._run(self._first, sample)
        self.tried[sample.words] = sample
        noise: Sequence[NDArray[np.float64] | None] = [None] * len(result.outputs)
        if self._tolerance is None:
            error = rounding_error(self._operations, self._unit(self._first))
            changed = replace(sample, cases=_changed(sample.cases, error))
            try:
                other = self._run(self._first, changed)
            except RunError:
                return _Reference(sample, result, noise)
            if [one.shape for one in other.outputs] == [one.shape for one in result.outputs]:
                pairs = zip(other.outputs, result.outputs, strict=True)
                noise = [distances(a.reshape(-1), b.reshape(-1)) for a, b in pairs]
        return _Reference(sample, result, noise)

    def _fixed_sizes(self) -> list[dict[str, int]]:
        """Return the sizes that later stages have in place of symbolic ones."""
        found: list[dict[str, int]] = []
        wanted = parameter_types(self._function(self._first))
        for stage in self._stages[1:]:
            if stage.error or self._session.function not in stage.module:
                continue
            types = parameter_types(self._function(stage))
            sizes: dict[str, int] = {}
            for name in wanted.keys() & types.keys():
                pairs = zip(
                    type_dims(wanted[name]) or (), type_dims(types[name]) or (), strict=False
                )
                for dim, other in pairs:
                    if isinstance(dim, ir.Var) and hasattr(other, "value"):
                        sizes[dim.name] = int(other.value)
            if sizes and sizes not in found:
                found.append(sizes)
        return found

    # --- other stages ---

    def ordinary(self, stage: Stage) -> StageVerdict:
        """Return how a stage compares for ordinary values; raise RunError if it cannot be run."""
        verdicts = list(self._verdicts(stage, self._ordinary))
        worst = verdicts[-1]
        if worst.fails:
            return worst
        share = max(one.share or 0.0 for one in verdicts)
        return replace(verdicts[0], share=share)

    def failure(self, stage: Stage) -> StageVerdict | None:
        """Return how a stage fails, None if it does not."""
        if (verdict := self.ordinary(stage)).fails or (verdict := self.special(stage)).fails:
            return verdict
        return None

    def special(self, stage: Stage) -> StageVerdict:
        """Return how a stage compares for values that ordinary arguments do not have."""
        verdicts = list(self._verdicts(stage, self._special, is_special=True))
        return verdicts[-1] if verdicts else StageVerdict(False, "equal")

    def _verdicts(
        self, stage: Stage, references: Sequence[_Reference], *, is_special: bool = False
    ) -> Iterator[StageVerdict]:
        """Yield a verdict for each sample that the stage can have, up to one that fails."""
        self._session.check_run(f"running stage {stage.id}", stage)
        used = 0
        for reference in references:
            sample, limits = reference.sample, self._limits(stage, reference)
            on = f" on {sample.values or 'usual values'} alone" if is_special else ""
            try:
                result = self._run(stage, sample)
            except UnfitSizesError:
                continue
            except InterfaceError as failure:
                yield StageVerdict(True, str(failure), sample=sample, tolerance=limits)
                return
            except RunError as failure:
                words = f"it fails{on}: {failure}" if is_special else str(failure)
                yield StageVerdict(True, words, sample=sample, is_special=is_special)
                return
            used += 1
            compared = self._compared(reference, result, limits, is_whole=is_special)
            fails = compared.verdict in (Verdict.DIFFERENT, Verdict.INCOMPARABLE)
            words = comparison_summary(compared)
            if fails and is_special:
                words = words.replace(compared.verdict.value, f"{compared.verdict.value}{on}", 1)
            elif fails and sample.words:
                words += f" with {sample.words}"
            yield StageVerdict(
                fails,
                words,
                compared.max_abs_diff,
                compared.share,
                sample if fails else None,
                compared.worst_case or 0,
                is_special,
                limits,
            )
            if fails:
                return
        if not used and not is_special:
            tried = "; ".join(self.tried)
            yield StageVerdict(True, f"{INTERFACE}: it takes no arguments with {tried}")

    def _compared(
        self,
        reference: _Reference,
        result: RunResult,
        limits: Sequence[Tolerance],
        *,
        is_whole: bool = True,
    ) -> Comparison:
        """Compare a result with its reference.

        Numbers that rounding makes infinite are left out, and if it is not `is_whole`, those which
        are not finite in the reference because the arguments are so large.
        """
        wanted = reference.result
        if [a.shape for a in result.outputs] != [a.shape for a in wanted.outputs]:
            return compare_runs(result, wanted)
        outputs = []
        for array, other, noise in zip(
            result.outputs, wanted.outputs, reference.noise, strict=True
        ):
            without = np.zeros(other.shape, bool)
            if noise is not None:
                without |= ~np.isfinite(noise.reshape(other.shape))
            if reference.sample.is_large and not is_whole:
                with np.errstate(all="ignore"):
                    without |= ~np.isfinite(other.astype(np.float64))
            outputs.append(np.where(without, other, array) if without.any() else array)
        return compare_runs(replace(result, outputs=tuple(outputs)), wanted, limits)

    def _limits(self, stage: Stage, reference: _Reference) -> Sequence[Tolerance]:
        """Return the tolerance of each output of a stage."""
        outputs = reference.result.outputs
        if self._tolerance is not None:
            return [self._tolerance] * len(outputs)
        first, unit = self._unit(self._first), self._unit(stage)
        more = _LARGE_TIMES if reference.sample.is_large else 1.0
        scale = more * (unit / first if first else 1.0)
        error = more * rounding_error(self._operations, unit)
        made = []
        for output, noise in zip(outputs, reference.noise, strict=True):
            finite = None if noise is None else np.where(np.isfinite(noise), noise * scale, 0.0)
            made.append(rounding_tolerance(output, error, finite))
        return made

    def _unit(self, stage: Stage) -> float:
        """Return the unit roundoff of what a stage and the first one compute in."""
        if stage.id not in self._units:
            dtypes = float_dtypes(stage.module) | float_dtypes(self._first.module)
            self._units[stage.id] = unit_roundoff(dtypes)
        return self._units[stage.id]

    @cached_property
    def _operations(self) -> float:
        """The largest number of operations in a row that the errors of a result come from.

        A product of a sum of 64 numbers takes 128 for each number of the result, and those of nodes
        that follow each other are added. So long reductions, and deep models, have larger errors.
        """
        if isinstance(self._function(self._first), tirx.PrimFunc):
            return _UNKNOWN
        graph = graph_of(self._first, self._session.function)
        most: dict[str, float] = {}
        for node in graph.nodes:  # operands come first
            shape = shape_in(node.type_label)
            each = _UNKNOWN
            if node.flops is not None and (shape is not None or not node.flops):
                each = node.flops / max(math.prod(shape or ()), 1)
            before = (most.get(edge.source, 0.0) for edge in graph.operands(node.id))
            most[node.id] = max(before, default=0.0) + each
        return max(most.values(), default=1.0)

    # --- runs ---

    def _run(
        self, stage: Stage, sample: Sample, fill: int = FILLS[0], build: str = ""
    ) -> RunResult:
        own = self._session.config_for(stage)
        config = replace(own, fill=fill, build=build or own.build)
        cases = self.arguments(stage, sample)
        result = run(stage.module, self._session.function, cases, config=config)
        if stage is not self._first:
            self._check_dtypes(result)
        return result

    def _check_dtypes(self, result: RunResult) -> None:
        wanted = [one.dtype for one in self._ordinary[0].result.outputs]
        found = [one.dtype for one in result.outputs]
        for index, (one, other) in enumerate(zip(found, wanted, strict=False)):
            if one != other:
                raise InterfaceError(f"{INTERFACE}: output {index} is of {one}, and was of {other}")

    def arguments(self, stage: Stage, sample: Sample) -> Cases:
        """Return the arguments of a stage for a sample of the first; raise what `fitted` raises."""
        if stage is self._first:
            return sample.cases
        return fitted(sample.cases, self._function(self._first), self._function(stage))

    def _function(self, stage: Stage) -> ir.BaseFunc:
        return drawable_function(stage.module, self._session.function)


def _rearranged(mod: ir.IRModule) -> ir.IRModule:
    """Apply TVM's passes that change the order of operations. Runs in the worker."""
    return tvm.transform.Sequential([make() for make in _ALGEBRA])(mod)


def _changed(cases: Cases, error: float) -> Cases:
    """Return arguments of which each float has another relative error."""
    source = np.random.default_rng(_SEED)

    def changed(array: Array) -> Array:
        if "float" not in array.dtype.name:
            return array
        signs = source.integers(0, 2, array.shape, "int8") * 2.0 - 1.0
        with np.errstate(all="ignore"):
            return (array.astype(np.float64) * (1.0 + error * signs)).astype(array.dtype)

    columns: list[Rows] = [
        changed(rows)
        if isinstance(rows, np.ndarray)
        else [map_arrays(one, changed) for one in rows]
        for rows in cases.columns
    ]
    return Cases(columns)


# --- The dtypes of floats that a module computes in ----------------------------------------------


def float_dtypes(mod: ir.IRModule) -> frozenset[np.dtype[np.generic]]:
    """Return the dtypes of floats of all values in a module's functions."""
    names = frozenset[str]().union(
        *map(_names, [*relax_functions(mod).values(), *prim_funcs(mod).values()])
    )
    found = set()
    for name in names:
        try:
            found.add(np.dtype(name))
        except TypeError:  # noqa: PERF203 - NumPy has no such numbers, so none are compared
            continue
    return frozenset(found)


@lru_cache(maxsize=256)
def _names(function: relax.Function | tirx.PrimFunc) -> frozenset[str]:
    found = set[str]()

    def add(type_: object) -> None:
        name = str(getattr(type_, "dtype", None) or "")
        if "float" in name:
            found.add(name)

    if isinstance(function, relax.Function):
        relax.analysis.post_order_visit(function, lambda expr: add(getattr(expr, "ty", None)))
    else:
        looks = [
            (tirx.Cast, lambda cast: add(cast.ty)),
            (ir.TensorLoad, lambda load: add(load.source.ty)),
            (tirx.BufferStore, lambda store: add(store.buffer.ty)),
        ]
        tvm_ffi.structural_walk(function.body, looks)
    return frozenset(found)


INTERFACE = "another interface"
"""What the words begin with if a stage cannot be called as the first one is."""


class InterfaceError(RunError):
    """A stage cannot be called as the first one is."""


class UnfitSizesError(Exception):
    """A stage has made a size fixed, and the arguments have another one."""


def fitted(cases: Cases, before: ir.BaseFunc, after: ir.BaseFunc) -> Cases:
    """Return the arguments of a function for those of the function that it was made of.

    Raises InterfaceError if they cannot be given to it, UnfitSizesError if it takes other sizes.
    """
    _check_results(before, after)
    wanted, types = parameter_types(before), parameter_types(after)
    columns, names = dict(zip(wanted, cases.columns, strict=True)), list(types)
    if names != list(wanted) and set(names) == set(wanted):
        raise _changed_parameters(before, after)
    left = [name for name in wanted if name in types]
    if len(types) == len(wanted) and _all_alike(wanted.values(), types.values()):
        chosen = list(columns.values())
    elif left == names and _all_alike((wanted[name] for name in names), types.values()):
        chosen = [columns[name] for name in names]
    else:
        rows = [_regrouped(case, list(types.values())) for case in cases]
        whole = [row for row in rows if row is not None]
        if not whole:
            raise _changed_parameters(before, after)
        chosen = [list(column) for column in zip(*whole, strict=True)]
    dims: dict[str, int] = {}
    made = Cases(chosen)
    try:
        for value, (name, type_) in zip(made[0], types.items(), strict=True):
            check_argument(name, value, type_, dims)
    except TypeMismatchError:
        raise UnfitSizesError from None
    return made


def renamed(first: ir.IRModule, mod: ir.IRModule, function: str) -> str:
    """Return the new name of a public Relax function that a module lacks, "" if there is none."""
    if function in mod or function not in entries(first):
        return ""
    before = relax_functions(first)
    made = entries(mod) - before.keys()
    old = before[function]
    return next(
        (
            name
            for name, one in relax_functions(mod).items()
            if name in made
            and len(one.params) == len(old.params)
            and all(_are_alike(a.ty, b.ty) for a, b in zip(one.params, old.params, strict=True))
            and _are_alike(one.ret_ty, old.ret_ty)
        ),
        "",
    )


def _check_results(before: ir.BaseFunc, after: ir.BaseFunc) -> None:
    if isinstance(before, relax.Function) and isinstance(after, relax.Function):
        old, new = before.ret_ty, after.ret_ty
        if not _are_alike(old, new):
            raise InterfaceError(
                f"{INTERFACE}: it returns {type_label(new)}, and returned {type_label(old)}"
            )


def _are_alike(one: ir.Type, other: ir.Type) -> bool:
    """Return whether types have the same form and dtypes, as far as that is known of both."""
    if isinstance(one, ir.TupleType) and isinstance(other, ir.TupleType):
        pairs = zip(one.fields, other.fields, strict=False)
        return len(one.fields) == len(other.fields) and all(itertools.starmap(_are_alike, pairs))
    if isinstance(one, relax.TensorType) and isinstance(other, relax.TensorType):
        dtypes = {str(type_.dtype) for type_ in (one, other) if type_.dtype is not None}
        ranks = {type_.ndim for type_ in (one, other) if type_.ndim >= 0}
        return len(dtypes) < 2 and len(ranks) < 2
    return not all(isinstance(each, ir.TupleType | relax.TensorType) for each in (one, other))


def _all_alike(some: Iterable[ir.Type], others: Iterable[ir.Type]) -> bool:
    return all(itertools.starmap(_are_alike, zip(some, others, strict=True)))


def _changed_parameters(before: ir.BaseFunc, after: ir.BaseFunc) -> InterfaceError:
    texts = [
        ", ".join(f"{name}: {type_label(type_)}" for name, type_ in parameter_types(one).items())
        for one in (after, before)
    ]
    return InterfaceError(f"{INTERFACE}: its parameters are {texts[0]}; they were {texts[1]}")


def _regrouped(values: Sequence[Argument], types: Sequence[ir.Type]) -> list[Argument] | None:
    """Return values in tuples as types have them, None if there are others."""
    left: Iterator[Argument] = iter([leaf for value in values for leaf in tuple_leaves(value)])

    def taken(type_: ir.Type) -> Argument:
        if isinstance(type_, ir.TupleType):
            return tuple(taken(one) for one in type_.fields)
        return next(left)

    try:
        made = [taken(type_) for type_ in types]
        for value, type_ in zip(made, types, strict=True):
            dtype = getattr(type_, "dtype", None)
            if isinstance(value, np.ndarray) and str(value.dtype) != str(dtype or value.dtype):
                return None
    except (StopIteration, RuntimeError):
        return None
    return made if next(left, None) is None else None
