"""Reduce a module that shows a bug to a smaller one that still shows it.

The bindings of a Relax function, and the statements of PrimFuncs, are minimised by delta debugging
(A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions
on Software Engineering 28, 2002). Any subset of bindings makes a function: see `keep_bindings`.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from tvm import ir, relax, tirx

from irviz.errors import (
    CancelledRunError,
    InputError,
    IrvizError,
    RunError,
    StageError,
    TransformError,
)
from irviz.ir.module_functions import default_function, drawable_function
from irviz.ir.symbolic_shapes import parameter_types, type_dims
from irviz.ir.tvmscript import tvmscript
from irviz.ir.values import ShapeValue
from irviz.limits import REDUCTION_SECONDS, TRY_SECONDS
from irviz.runtime.argument_lists import RANDOM, Array
from irviz.runtime.module_bytes import PortableFunction, pack_module, unpack_module
from irviz.runtime.run import CallInputs, TraceRequest, run
from irviz.session.bisect import Bisection, Progress, bisect, cancelled_by
from irviz.session.bug_script import bisection_script, check_script
from irviz.session.session import Session
from irviz.transforms.apply_transform import try_transform
from irviz.transforms.simpler_modules import (
    Step,
    count_bindings,
    count_stores,
    keep_bindings,
    keep_stores,
    with_smaller_sizes,
    without_branch_or_call,
)
from irviz.units import format_duration
from irviz.worker.supervisor import TRIES, WorkerError

_NAME_END = re.compile(r"[:,;(]")


@dataclass(frozen=True, eq=False, repr=False)
class Reduction:
    """A smaller module with the same failure.

    Attributes:
        module: The module.
        function: The function that was reduced.
        bindings: The number of bindings before and after.
        tries: The number of modules tried.
        seconds: The time that this took.
        is_least: Whether no further binding can be left out; False if the search was stopped.
        failing: The bisection or function that defines the failure.
        inputs: The arguments of the module, for a bisection: those that it failed with, and for
            parameters in the place of removed nodes the values that these had then.
    """

    module: ir.IRModule
    function: str
    bindings: tuple[int, int]
    tries: int
    seconds: float
    is_least: bool
    failing: Bisection | Callable[[ir.IRModule], object] = field(repr=False)
    inputs: Mapping[str, object] = field(default_factory=dict)

    def to_python(self) -> str:
        """Return a script that reproduces the failure with TVM alone, for a bug report.

        Raises:
            UnwritableError: The pass or function cannot be written into a script, or a script
                cannot show the failure.

        Example:
            ```python
            Path("bug.py").write_text(irviz.reduce(found).to_python())
            ```
        """
        if isinstance(self.failing, Bisection):
            return bisection_script(self.module, self.function, self.failing, self.inputs)
        return check_script(self.module, self.failing)

    def __repr__(self) -> str:
        """Return how much was removed, and the TVMScript of the result."""
        before, after = self.bindings
        least = "" if self.is_least else "; stopped early"
        took = f"{self.tries} tries in {format_duration(self.seconds)}{least}"
        return f"# {before} bindings became {after}: {took}\n{tvmscript(self.module)}"


def reduce(
    failing: ir.IRModule | Bisection,
    still_fails: Callable[[ir.IRModule], object] | None = None,
    *,
    function: str = "",
    seconds: float = REDUCTION_SECONDS,
    progress: Progress | None = None,
    cancel: threading.Event | None = None,
) -> Reduction:
    """Return a smaller module that still fails.

    Bindings are removed, `if`s and calls are replaced by a branch or by the body of the called
    function, statements in PrimFuncs write zero, and sizes shrink. A change is kept if the module
    is still well-formed and still fails in the same way. Workers make and check the modules.

    Args:
        failing: A module with `still_fails`, or a bisection, whose pass and check are then repeated
            on each smaller version of the module that the pass was applied to, with the values
            that it failed with.
        still_fails: Takes a module and returns whether it fails. It is called in the worker. If it
            kills that process or times out on the original module, it must do so on a smaller one.
        function: The Relax function to reduce; by default "main", or else the first.
        seconds: The time limit. If the failure is a pass or run that hangs, each try is stopped
            after a tenth of the bisection's limit.
        progress: Called before each try with the number of bindings removed, the number at first,
            and the try in words.
        cancel: An event that stops the search once it is set, from any thread; the smallest module
            found so far is returned.

    Raises:
        InputError: The module does not fail, or there is no check for failure.
        CancelledRunError: The search was cancelled before the module was checked.

    Example:
        ```python
        print(irviz.reduce(irviz.bisect(model, ["LegalizeOps", my_pass])))
        ```
    """
    values: Mapping[str, object] = {}
    if isinstance(failing, Bisection):
        if failing.before is None:
            raise InputError("no pass makes the check fail: there is nothing to make smaller")
        mod, function = failing.before.module, function or failing.session.function
        values = failing_values(failing)
        outcomes = [
            _outcome_of_bisection(failing, function, values, limit)
            for limit in _try_limits(failing)
        ]
    elif still_fails is None:
        raise InputError("give a function that returns whether a module still fails")
    else:
        mod, function = failing, function or default_function(failing)
        outcomes = [_outcome_in_worker(still_fails)]
    cancel = cancel or threading.Event()
    with cancelled_by(cancel):
        for outcome in outcomes:
            if wanted := outcome(mod):
                break
        if cancel.is_set():
            raise CancelledRunError("the reduction was cancelled before anything was removed")
        if not wanted:
            raise InputError(
                "the module does not fail: give one for which still_fails returns True"
                if isinstance(failing, ir.IRModule)
                else f"{failing} does not fail again if its pass alone is applied to the stage "
                "before it: bisect again, with a check that depends on nothing else"
            )
        search = _Search(
            mod, function, lambda one: outcome(one) == wanted, seconds, progress, cancel
        )
        least = search.least()
    return Reduction(
        least,
        function,
        (count_bindings(mod, function), count_bindings(least, function)),
        search.tries,
        search.spent,
        not search.is_over,
        failing if still_fails is None else still_fails,
        followed_inputs(least, function, values) if values else {},
    )


class _Search:
    """The search for a smallest module that still fails."""

    def __init__(
        self,
        mod: ir.IRModule,
        function: str,
        fails: Callable[[ir.IRModule], bool],
        seconds: float,
        progress: Progress | None,
        cancel: threading.Event,
    ) -> None:
        self.tries = 0
        self._mod, self._function, self._fails, self._seconds = mod, function, fails, seconds
        self._progress, self._cancel = progress, cancel
        self._start = time.monotonic()

    @property
    def spent(self) -> float:
        """The seconds since the search began."""
        return time.monotonic() - self._start

    @property
    def is_over(self) -> bool:
        """Whether time is up, or the search was cancelled."""
        return self.spent > self._seconds or self._cancel.is_set()

    def least(self) -> ir.IRModule:
        """Return a module that no step can reduce further."""
        mod = self._fewest_bindings(self._mod)
        while simpler := self._first(mod, without_branch_or_call(mod, self._function)):
            mod = self._fewest_bindings(simpler)
        mod = self._fewest(mod, count_stores(mod), keep_stores)
        while smaller := self._first(mod, with_smaller_sizes(mod)):
            mod = smaller
        return mod

    def _fewest_bindings(self, mod: ir.IRModule) -> ir.IRModule:
        count = count_bindings(mod, self._function)
        return self._fewest(mod, count, partial(keep_bindings, function=self._function))

    def _fewest(
        self, mod: ir.IRModule, count: int, keep: Callable[..., ir.IRModule]
    ) -> ir.IRModule:
        """Return the module with parts of which no half, quarter, … or single one is redundant."""
        whole, kept, parts = mod, list(range(count)), 2
        while len(kept) > 1 and not self.is_over:
            size = -(-len(kept) // parts)
            pieces = [kept[at : at + size] for at in range(0, len(kept), size)]
            for candidate in self._candidates(kept, pieces):
                if smaller := self._first(whole, [partial(keep, kept=candidate)]):
                    mod, kept = smaller, candidate
                    parts = 2 if len(kept) <= size else max(parts - 1, 2)
                    break
            else:
                if size == 1:
                    break
                parts = min(2 * parts, len(kept))
        return mod

    @staticmethod
    def _candidates(kept: Sequence[int], pieces: Sequence[list[int]]) -> list[list[int]]:
        """Return each piece and its complement; later ones first, as they need fewer operands."""
        alone = pieces[::-1]
        without = [[one for one in kept if one not in set(piece)] for piece in alone]
        return [*alone, *(without if len(pieces) > 2 else [])]

    def _first(self, mod: ir.IRModule, steps: Iterable[Step]) -> ir.IRModule | None:
        """Return the first simpler module that fails in the same way as the whole."""
        for step in steps:
            if self.is_over:
                return None
            self.tries += 1
            if self._progress is not None:
                now, first = (count_bindings(one, self._function) for one in (mod, self._mod))
                self._progress(first - now, first, f"try {self.tries}")
            well_formed = partial(_well_formed, step=step)
            simpler = try_transform(mod, well_formed, keep=True, seconds=TRY_SECONDS).module
            with contextlib.suppress(Exception):  # the check may raise anything
                if simpler is not None and self._fails(simpler):
                    return simpler
        return None


def _well_formed(mod: ir.IRModule, *, step: Step) -> ir.IRModule:
    """Return the simpler module; raise TransformError if it is not well-formed."""
    simpler = step(mod)
    if not relax.analysis.check_well_formed(simpler):
        raise TransformError("the module is not well-formed")
    return simpler


def _try_limits(found: Bisection) -> list[float]:
    """Return the time limits of a try: the usual one, and if it is exceeded, before it a tenth.

    On a busy machine, what is right may take longer than a tenth of the usual limit.
    """
    usual = found.session.run_config.seconds
    return [max(usual / 10, min(usual, 1.0)), usual] if found.is_too_long else [usual]


def _outcome_of_bisection(
    found: Bisection, function: str, values: Mapping[str, object], seconds: float
) -> Callable[[ir.IRModule], str]:
    """Return a function that says how the pass fails on a module, "" if it does not."""
    assert found.stage is not None
    transform, state, files = found.stage.transform, found.session, found.stage.files
    call, is_pass = state.call_inputs, bool(found.stage.error)

    def outcome(mod: ir.IRModule) -> str:
        session = Session(
            mod,
            function=function,
            inputs=followed_inputs(mod, function, values),
            labels=call.labels if callable(found.check) else None,
            seed=call.seed,
            sizes=call.sizes,
        ).with_run_config(**{**vars(state.run_config), "seconds": seconds})
        for file in files:  # the bisection ran their code, so it is trusted
            session = session.from_file(file).trust(file)
        if is_pass:  # nothing is run
            return _NAME_END.split(session.apply(transform).current.error)[0]
        try:
            again = bisect(session, transform, found.check, tolerance=found.tolerance)
        except (StageError, IrvizError):
            return ""
        return _NAME_END.split(again.words)[0]

    return outcome


def _outcome_in_worker(
    still_fails: Callable[[ir.IRModule], object],
) -> Callable[[ir.IRModule], str]:
    """Return a function that says how a check in the worker fails, "" if it passes."""
    portable = PortableFunction(still_fails)

    def outcome(mod: ir.IRModule) -> str:
        try:
            fails = TRIES.call(_call, portable, pack_module(mod, whole=True), seconds=TRY_SECONDS)
        except WorkerError as failure:
            return type(failure).__name__
        return "fails" if fails else ""

    return outcome


def _call(still_fails: PortableFunction, packed: bytes) -> bool:
    """Return whether a module fails. Runs in the worker."""
    return bool(still_fails(unpack_module(packed)))


# --- Call a smaller module with the values that its parameters have in the run that fails --------
#
# A parameter keeps its argument. A parameter that takes the place of a removed node has the
# value of this node in that run.


_BUDGET = 1 << 28
"""The bytes of values that are kept."""


def failing_values(found: Bisection) -> dict[str, object]:
    """Return the arguments that a bisection fails with and the values of nodes then, by name.

    The nodes are those of the module that the pass was applied to. For a pass that itself fails
    there are none, as nothing is run.
    """
    stage, before, session = found.stage, found.before, found.session
    if stage is None or before is None or stage.error:
        return {}
    values = dict(found.arguments or _given(found))
    own = parameter_types(drawable_function(before.module, session.function))
    inputs = CallInputs({name: values.get(name, RANDOM) for name in own})
    traced = TraceRequest(budget=_BUDGET)
    config = session.config_for(before)
    try:
        trace = run(before.module, session.function, inputs, trace=traced, config=config).trace
    except (RunError, InputError):  # such as a PrimFunc, which has no nodes
        return values
    for node, visit in trace.visits.items() if trace is not None else ():
        arrays = visit.value.arrays
        if arrays and all(one is not None for one in arrays) and str(node) not in values:
            values[str(node)] = arrays[0] if len(arrays) == 1 else arrays
    return values


def _given(found: Bisection) -> Mapping[str, object]:
    """Return the arguments of a session by name; given arrays with all of their cases."""
    call, first = found.session.call_inputs, found.session.tree.lineage()[0]
    try:
        plan = call.plan(first.module, found.session.function)
    except ValueError:
        return {}
    columns = dict(zip(plan.types, plan.argument_lists().columns, strict=True))
    return {name: rows if len(rows) > 1 else rows[0] for name, rows in columns.items()}


def followed_inputs(
    mod: ir.IRModule, function: str, values: Mapping[str, object]
) -> dict[str, object]:
    """Return the inputs of a function by name, from values; "random" for those that do not fit.

    Of an array that is larger than its parameter now, the first rows and columns are left.
    """
    types = parameter_types(drawable_function(mod, function))
    found = {name: _fitted(values.get(name), type_) for name, type_ in types.items()}
    return {name: RANDOM if value is None else value for name, value in found.items()}


def _fitted(value: object, type_: ir.Type) -> object | None:
    """Return a value, or the part of it that a type has room for, None if it does not fit."""
    match type_:
        case ir.TupleType() if isinstance(value, Sequence) and len(value) == len(type_.fields):
            fields = [_fitted(*pair) for pair in zip(value, type_.fields, strict=True)]
            return None if any(one is None for one in fields) else tuple(fields)
        case relax.TensorType() if isinstance(value, np.ndarray):
            return _cropped(value, type_)
        case ir.PrimType() if isinstance(value, bool | int | float):
            return value
        case relax.ShapeType() if isinstance(value, ShapeValue):
            return value
    return None


def _cropped(array: Array, type_: relax.TensorType) -> Array | None:
    dims = type_dims(type_)
    if dims is None or (type_.dtype is not None and str(array.dtype) != str(type_.dtype)):
        return None
    cases = array.ndim - len(dims)
    if cases not in (0, 1):
        return None
    sizes = [
        int(dim.value) if isinstance(dim, tirx.IntImm) else have
        for dim, have in zip(dims, array.shape[cases:], strict=True)
    ]
    if any(size > have for size, have in zip(sizes, array.shape[cases:], strict=True)):
        return None
    parts = (slice(None),) * cases + tuple(slice(size) for size in sizes)
    return np.ascontiguousarray(array[parts]).reshape((*array.shape[:cases], *sizes))
