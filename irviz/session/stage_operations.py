"""How many operations in a row make a number of a function's result."""

from __future__ import annotations

import math

from tvm import tirx

from irviz.model.graph.flops import shape_in
from irviz.session.stage_cache import graph_of
from irviz.transforms.stage import Stage

_UNKNOWN = 1000.0
"""The operations of a node or function whose number is unknown."""


def operations_in_a_row(stage: Stage, function: str) -> float:
    """Return the largest number of operations that the errors of a result come from.

    A product of a sum of 64 numbers takes 128 for each number of the result, and those of nodes
    that follow each other are added. So long reductions, and deep models, have larger errors.
    """
    if isinstance(stage.module[function], tirx.PrimFunc):
        return _UNKNOWN
    graph = graph_of(stage, function)
    most: dict[str, float] = {}
    for node in graph.nodes:  # operands come first
        shape = shape_in(node.type_label)
        each = _UNKNOWN
        if node.flops is not None and (shape is not None or not node.flops):
            each = node.flops / max(math.prod(shape or ()), 1)
        before = (most.get(edge.source, 0.0) for edge in graph.operands(node.id))
        most[node.id] = max(before, default=0.0) + each
    return max(most.values(), default=1.0)
