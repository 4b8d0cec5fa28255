"""Reduce a module that shows a bug to a smaller one that still shows it.

The bindings of a Relax function, and the statements of PrimFuncs, are minimised by delta debugging
(A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions
on Software Engineering 28, 2002). Any subset of bindings makes a function: see `keep_bindings`.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from tvm import ir, relax, tirx

from irviz.errors import CancelledRunError, InputError, IrvizError, RunError, TransformError
from irviz.ir.module_functions import default_function, drawable_function
from irviz.ir.parameter_values import Argument, CacheArgument, ShapeValue
from irviz.ir.symbolic_shapes import parameter_types, type_dims
from irviz.ir.tvmscript import tvmscript
from irviz.limits import REDUCTION_SECONDS, TRY_SECONDS
from irviz.model.runs.array_diff import Verdict
from irviz.runtime.argument_conversion import Array
from irviz.runtime.call_inputs import RANDOM, Cases, generator_for, random_array
from irviz.runtime.local_vm import PERTURB, perturb_value
from irviz.runtime.module_serialization import PortableFunction, pack_module, unpack_module
from irviz.runtime.run import CallInputs, RunConfig, TraceRequest, run
from irviz.session.bisect import Bisection, Progress, bisect, cancelled_by
from irviz.session.check_equivalence import FILLS, INTERFACE, StageVerdict, ValueCheck
from irviz.session.session import Session
from irviz.transforms.apply_transform import apply_transform, try_transform
from irviz.transforms.export_python import INLINE, PythonScript, UnwritableError, define_function
from irviz.transforms.simpler_modules import (
    Step,
    count_bindings,
    count_stores,
    keep_bindings,
    keep_stores,
    with_smaller_sizes,
    without_branch_or_call,
)
from irviz.transforms.stage import Stage
from irviz.units import format_duration
from irviz.worker.supervisor import TRIES, WorkerError

_NAME_END = re.compile(r"[:,;(]")


@dataclass(frozen=True, eq=False, repr=False)
class Reduction:
    """A smaller module with the same failure.

    Attributes:
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
        script = PythonScript()
        script.begin(self.module)
        name = define_function(self.failing, script)
        script.add(f"assert not {name}(mod), 'the module fails'")
        return script.text()

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


@dataclass
class _Search:
    """The search for a smallest module that still fails."""

    _mod: ir.IRModule
    _function: str
    _fails: Callable[[ir.IRModule], bool]
    _seconds: float
    _progress: Progress | None
    _cancel: threading.Event
    _start: float = field(default_factory=time.monotonic)
    tries: int = 0

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
        except IrvizError:
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
    return {
        name: rows if len(rows) > 1 else rows[0]
        for name, rows in columns.items()
        if plan.cache is None or isinstance(rows[0], np.ndarray | tuple)  # the others follow
    }


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


# --- Scripts that reproduce a failure with TVM alone ----------------------------------------------


_NAMES = (
    *("before", "inputs", "results", "flat", "found", "expected"),
    *("limits", "limit", "signature"),
)
_NEEDS = ("import numpy as np", "from tvm import relax")
_DOUBLE = 8
_FEW = 4
"""So many numbers are written as they are."""
_OTHER_RESULT = re.compile(rf"{INTERFACE}: (output \d|it returns)")
"""What is said if the results show that the interface is another one."""
_WRONG_VALUES = (Verdict.DIFFERENT.value, Verdict.INCOMPARABLE.value)
_RUN = """\
def inputs():
    return [
{inputs}
    ]


def flat(value):
    if isinstance(value, (tuple, list, tvm.ir.Array)):
        return [one for part in value for one in flat(part)]
    return [value.numpy() if hasattr(value, "numpy") else np.asarray(value)]


def results(mod):
    executable = tvm.compile(mod, target={target!r})
    return flat(relax.VirtualMachine(executable, tvm.cpu(){memory})[{function!r}](*inputs()))"""
_SIGNATURE = """\
def signature(mod):
    return [(param.name, str(param.ty)) for param in mod[{function!r}].params]"""


def bisection_script(
    mod: ir.IRModule, function: str, found: Bisection, inputs: Mapping[str, object]
) -> str:
    """Return the script that reproduces the failure of a bisection's pass on a module.

    A failure that depends on memory which nothing wrote is shown with memory that is filled, so
    that the script ends in the same way each time.

    Raises UnwritableError if the pass cannot be written, if the check is not "values", or if the
    failure does not show again.
    """
    assert found.stage is not None, "there is a module to begin with"
    transform, config = found.stage.transform, found.session.run_config
    if transform is None:
        raise UnwritableError(f"{found.stage.label} is not known as a pass")
    script = PythonScript()
    script.names.update(dict.fromkeys(_NAMES, script))
    script.comment(f"{transform.label}: {found.words}")
    script.begin(mod)
    first = Stage("0", mod, files=found.stage.files)
    made = apply_transform(first, transform, "1", isolate=config.isolate, seconds=config.seconds)
    if found.is_too_long:
        seconds = int(config.seconds) + 1
        script.add(
            f"signal.alarm({seconds})  # it does not end by itself", needs=("import signal",)
        )
    if made.error:
        tried = transform.tried_as
        if tried is None or not try_transform(mod, tried, seconds=config.seconds).error:
            raise UnwritableError(f"{transform.label} has arguments that a script cannot contain")
        transform.write_failing(script)
        return script.text()
    if found.check != "values":
        raise UnwritableError("a script with TVM alone can show wrong values and failures only")
    script.add("before, mod = mod, mod.clone()")
    try:
        transform.write(script, mod, made.module)
    except UnwritableError as reason:
        script.embed(made.module, f"{reason}: the module that it made")
    script.add(needs=_NEEDS)
    are_values_wrong = found.words.startswith(_WRONG_VALUES)
    if not are_values_wrong and not relax.analysis.check_well_formed(made.module):
        script.add("assert relax.analysis.check_well_formed(mod)")
        return script.text()
    if found.words.startswith(INTERFACE) and not _OTHER_RESULT.search(found.words):
        script.define(_SIGNATURE.format(function=function))
        script.add("assert signature(mod) == signature(before), signature(mod)")
        return script.text()
    _add_values(script, first, made, found, function, inputs)
    return script.text()


def _add_values(
    script: PythonScript,
    first: Stage,
    made: Stage,
    found: Bisection,
    function: str,
    inputs: Mapping[str, object],
) -> None:
    """Add the runs of both modules and the comparison of their results.

    Raises UnwritableError if the failure does not show again.
    """
    check, verdict = _failure(first, made, found, function, inputs)
    if verdict is None or verdict.sample is None:
        raise UnwritableError(f"{made.label} does not fail again with the same inputs")
    config, cases = found.session.run_config, verdict.sample.cases
    is_unset = found.words.startswith(_WRONG_VALUES) and _reads_unset(
        made, function, check.arguments(made, verdict.sample), config
    )
    types = parameter_types(first.module[function])
    values = [
        input_expression(*pair, script) for pair in zip(types, cases[verdict.case], strict=True)
    ]
    script.define(
        _RUN.format(
            inputs="\n".join(f"        {one}," for one in values),
            target=config.target or "llvm",
            function=function,
            memory=', "naive"' if is_unset else "",
        )
    )
    lines = _comparison(verdict)
    if is_unset:
        fills = ", ".join(str(perturb_value(byte)) for byte in FILLS)
        script.comment("it reads memory that nothing wrote, which glibc fills here")
        lines = [
            f"for fill in ({fills}):",
            *(f"    {line}" for line in (f"ctypes.CDLL(None).mallopt({PERTURB}, fill)", *lines)),
        ]
    script.add(*lines, needs=("import ctypes",) if is_unset else ())


def _failure(
    first: Stage, made: Stage, found: Bisection, function: str, inputs: Mapping[str, object]
) -> tuple[ValueCheck, StageVerdict | None]:
    """Return how a stage fails: with random numbers for large inputs, if it then fails, too."""
    short = {
        name: RANDOM if isinstance(value, np.ndarray) and value.size > INLINE else value
        for name, value in inputs.items()
    }
    verdict = None
    for given in (short, inputs):
        session = Session(first.module, function=function, inputs=given)
        session = session.with_run_config(**vars(found.session.run_config))
        check = ValueCheck(session, [first, made], found.tolerance)
        verdict = check.failure(made)
        if verdict and verdict.sample and not (given is short and verdict.sample.values):
            break
    return check, verdict


def _comparison(verdict: StageVerdict) -> list[str]:
    """Return the lines that compare the results of both modules."""
    limits = [
        (
            one.relative,
            one.absolute + (0.0 if one.noise is None else float(one.noise.min(initial=0))),
        )
        for one in verdict.tolerance
    ]
    return [
        f"limits = {limits!r}",
        "for found, expected, limit in zip(results(mod), results(before), limits, strict=True):",
        "    assert found.dtype == expected.dtype, found.dtype",
        "    np.testing.assert_allclose(found, expected, *limit)",
    ]


def _reads_unset(made: Stage, function: str, cases: Cases, config: RunConfig) -> bool:
    """Return whether a result depends on memory that nothing wrote."""
    try:
        one, other = (
            run(made.module, function, cases, config=replace(config, fill=fill)).outputs
            for fill in FILLS
        )
    except RunError:
        return False
    return any(a.tobytes() != b.tobytes() for a, b in zip(one, other, strict=True))


def input_expression(name: str, value: Argument, script: PythonScript) -> str:
    """Return the expression for an argument: many random numbers are drawn again.

    Raises UnwritableError for what a script with NumPy alone cannot contain.
    """
    if isinstance(value, tuple):
        fields = [
            _given_array(script.array(name, one)) for one in value if isinstance(one, np.ndarray)
        ]
        if len(fields) == len(value):
            return f"({', '.join(fields)},)"
        raise UnwritableError(f"the parameter {name!r} is a tuple of others than tensors")
    if isinstance(value, CacheArgument):
        raise UnwritableError(f"the parameter {name!r} takes a cache, which other calls must fill")
    if isinstance(value, ShapeValue):
        return f"tvm.runtime.ShapeTuple({list(value.dims)})"
    if not isinstance(value, np.ndarray):
        return repr(value)
    dtype, shape = value.dtype, value.shape
    drawn = random_array(shape, str(dtype), generator_for(name, 0))
    if value.size <= _FEW or drawn.tobytes() != value.tobytes():
        return _given_array(script.array(name, value))
    if dtype.kind not in "biuf":
        raise UnwritableError(f"NumPy alone has no {dtype}")
    numbers = f"np.random.default_rng([0, {zlib.crc32(name.encode())}])"
    if dtype.kind == "f":
        exact = dtype.name if dtype.itemsize == _DOUBLE else "float32"
        numbers += f'.standard_normal({shape}, "{exact}")'
        numbers += f" / np.float32({math.sqrt(max(shape[-1], 1))})" * (len(shape) > 1 < shape[-1])
    elif dtype.kind == "b":
        numbers += f".integers(0, 2, {shape})"
    else:
        numbers += f'.integers(0, 10, {shape}, "int8")'
    return _given_array(f'({numbers}).astype("{dtype}")')


def _given_array(array: str) -> str:
    return f"tvm.runtime.tensor({array})"
