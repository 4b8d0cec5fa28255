"""How many nodes stand one above the other."""

from __future__ import annotations

from bisect import bisect_right

from irviz.model.folding.containers import Container
from irviz.model.folding.repeats import BoundNodes


def count_ranks(bound: BoundNodes, container: Container) -> int:
    """Return the length of the longest path through the children of a container."""
    starts = [one if isinstance(one, int) else one.start for one in container.children]
    ranks = [1] * len(starts)
    for index, child in enumerate(container.children):
        stop = child + 1 if isinstance(child, int) else child.stop
        for step in range(starts[index], stop):
            for operand in bound.operands[step]:
                if container.start <= operand.step < starts[index]:
                    source = bisect_right(starts, operand.step) - 1
                    ranks[index] = max(ranks[index], ranks[source] + 1)
    return max(ranks, default=0)
