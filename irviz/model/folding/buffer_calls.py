"""Group calls in a lowered function with the steps that allocate, name and free their buffers."""

from __future__ import annotations

from collections.abc import Sequence

from irviz.model.folding.repeats import BoundNodes
from irviz.model.graph.graph import NodeKind
from irviz.model.graph.memory_operators import ALLOCATIONS, CHECKS, KILLS

_NAMES = (NodeKind.VALUE, NodeKind.TUPLE)


def buffer_calls(bound: BoundNodes, steps: Sequence[int]) -> list[Sequence[int]]:
    """Divide consecutive steps into calls with their buffers, checks of arguments, and the rest.

    A call takes the allocations before it, and the aliases and frees of these after it. Any other
    step is a group of its own, as is an allocation without a call.
    """
    found: list[Sequence[int]] = []
    run: list[int] = []
    call = -1

    def close() -> None:
        nonlocal run, call
        found.extend([run] if call >= 0 else [[one] for one in run])
        run, call = [], -1

    for step in steps:
        callee = bound.nodes[step].callee
        if callee in CHECKS:
            if call < 0 or bound.nodes[call].callee not in CHECKS:
                close()
            run, call = [*run, step], step
            continue
        if callee in ALLOCATIONS:
            if call >= 0:
                close()
        elif not (callee in KILLS and run) and not _names(bound, step, run):
            if call >= 0 or not _uses(bound, step, run):
                close()
            call = step
        run.append(step)
    close()
    return found


def _names(bound: BoundNodes, step: int, run: Sequence[int]) -> bool:
    """Return whether a step only gives another name to a value of these steps."""
    operands = bound.operands[step]
    return (
        bound.nodes[step].kind in _NAMES and bool(operands) and all(o.step in run for o in operands)
    )


def _uses(bound: BoundNodes, step: int, run: Sequence[int]) -> bool:
    """Return whether a step uses the last of the steps of a run that allocate."""
    made = [one for one in run if bound.nodes[one].callee in ALLOCATIONS]
    return not made or any(operand.step == made[-1] for operand in bound.operands[step])
