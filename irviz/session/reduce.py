"""Make a module that shows a bug smaller, as long as it shows the bug.

The bindings of a Relax function are minimised by delta debugging (A. Zeller and R. Hildebrandt,
"Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software Engineering 28,
2002). Any of them make a function: see `keep_bindings`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import ir, relax

from irviz.errors import InputError, IrvizError, StageError
from irviz.ir.module_functions import default_function
from irviz.runtime.local.module_bytes import pack_module, unpack_module
from irviz.runtime.local.pickle_by_value import PortableFunction
from irviz.session.bisect import Bisection, bisect
from irviz.session.session import Session
from irviz.transforms.kept_bindings import count_bindings, keep_bindings
from irviz.units import format_duration
from irviz.worker.supervisor import TRIES, WorkerError

SECONDS = 60.0
"""How long a module is made smaller, if no other time is given."""
_TRY_SECONDS = 20.0
_NAME_END = re.compile(r"[:,;(]")


@dataclass(frozen=True, eq=False, repr=False)
class Reduction:
    """A smaller module that shows the same.

    Attributes:
        module: The module.
        function: The function that was made smaller.
        bindings: How many bindings it had, and has.
        tries: How many modules were tried.
        seconds: The time that they took.
        is_least: Whether none of its bindings can be left out; else time was up.
    """

    module: ir.IRModule
    function: str
    bindings: tuple[int, int]
    tries: int
    seconds: float
    is_least: bool

    def __repr__(self) -> str:
        """Return how much smaller it is, and its TVMScript."""
        before, after = self.bindings
        least = "" if self.is_least else "; time was up"
        took = f"{self.tries} tries in {format_duration(self.seconds)}{least}"
        return f"# {before} bindings became {after}: {took}\n{self.module.script()}"


def reduce(
    failing: ir.IRModule | Bisection,
    still_fails: Callable[[ir.IRModule], object] | None = None,
    *,
    function: str = "",
    seconds: float = SECONDS,
) -> Reduction:
    """Return a smaller module that still fails.

    Args:
        failing: A module; or a bisection: the module that its pass was applied to, and the same
            pass and check on each smaller one, with random inputs.
        still_fails: Returns whether a module fails. It is called in the worker; where it ends that
            process, or runs too long, for the module itself, so it must for a smaller one.
        function: The Relax function that is made smaller; by default "main", or else the first.
        seconds: When to stop.

    Raises:
        InputError: The module does not fail, or there is nothing to tell by.

    Example:
        ```python
        print(irviz.reduce(irviz.bisect(model, ["LegalizeOps", my_pass])))
        ```
    """
    if isinstance(failing, Bisection):
        if failing.before is None:
            raise InputError("no pass makes the check fail: there is nothing to make smaller")
        mod, function = failing.before.module, function or failing.session.function
        outcome = _outcome_of_bisection(failing)
    elif still_fails is None:
        raise InputError("give a function that returns whether a module still fails")
    else:
        mod, function = failing, function or default_function(failing)
        outcome = _outcome_in_worker(still_fails)
    wanted = outcome(mod)
    if not wanted:
        raise InputError("the module does not fail: give one for which still_fails returns True")
    search = _Search(mod, function, lambda one: outcome(one) == wanted, seconds)
    kept = search.least()
    return Reduction(
        keep_bindings(mod, function, kept) if search.tries else mod,
        function,
        (count_bindings(mod, function), len(kept)),
        search.tries,
        search.spent,
        not search.is_over,
    )


class _Search:
    """The search for the fewest bindings of a function that still fail."""

    def __init__(
        self, mod: ir.IRModule, function: str, fails: Callable[[ir.IRModule], bool], seconds: float
    ) -> None:
        self.tries = 0
        self._mod, self._function, self._fails, self._seconds = mod, function, fails, seconds
        self._start = time.monotonic()

    @property
    def spent(self) -> float:
        """The seconds since the search began."""
        return time.monotonic() - self._start

    @property
    def is_over(self) -> bool:
        """Whether time is up."""
        return self.spent > self._seconds

    def least(self) -> Sequence[int]:
        """Return bindings of which none, and no half, quarter, …, can be left out."""
        kept = list(range(count_bindings(self._mod, self._function)))
        parts = 2
        while len(kept) > 1 and not self.is_over:
            size = -(-len(kept) // parts)
            pieces = [kept[at : at + size] for at in range(0, len(kept), size)]
            smaller = next(filter(self._holds, self._candidates(kept, pieces)), None)
            if smaller is not None:
                parts = 2 if len(smaller) <= size else max(parts - 1, 2)
                kept = smaller
            elif size == 1:
                break
            else:
                parts = min(2 * parts, len(kept))
        return kept

    @staticmethod
    def _candidates(kept: Sequence[int], pieces: Sequence[list[int]]) -> list[list[int]]:
        """Return each piece, and all but each piece; the later ones first, as they need less."""
        alone = pieces[::-1]
        without = [[one for one in kept if one not in set(piece)] for piece in alone]
        return [*alone, *(without if len(pieces) > 2 else [])]

    def _holds(self, kept: Sequence[int]) -> bool:
        """Return whether these bindings fail as all of them do."""
        if not kept or self.is_over:
            return False
        self.tries += 1
        try:
            mod = keep_bindings(self._mod, self._function, kept)
        except Exception:  # TVM raises what its C++ side threw, of any class
            return False
        return bool(relax.analysis.check_well_formed(mod)) and self._fails(mod)


def _outcome_of_bisection(found: Bisection) -> Callable[[ir.IRModule], str]:
    """Return a function that says how the pass fails for a module, "" where it does not."""
    assert found.stage is not None
    transform, state = found.stage.transform, found.session

    def outcome(mod: ir.IRModule) -> str:
        config = state.run_config
        session = Session(mod, function=state.function, inputs="random", isolate=config.isolate)
        session = session.with_run_config(**vars(config))
        try:
            again = bisect(session, transform, found.check, tolerance=found.tolerance)
        except (StageError, IrvizError):
            return ""
        return _NAME_END.split(again.words)[0]

    return outcome


def _outcome_in_worker(
    still_fails: Callable[[ir.IRModule], object],
) -> Callable[[ir.IRModule], str]:
    """Return a function that says what a check in the worker found, "" where all is well."""
    portable = PortableFunction(still_fails)

    def outcome(mod: ir.IRModule) -> str:
        try:
            fails = TRIES.call(_call, portable, pack_module(mod, whole=True), seconds=_TRY_SECONDS)
        except WorkerError as failure:
            return type(failure).__name__
        return "fails" if fails else ""

    return outcome


def _call(still_fails: PortableFunction, packed: bytes) -> bool:
    """Return whether a module fails; this runs in the worker."""
    return bool(still_fails(unpack_module(packed)))
