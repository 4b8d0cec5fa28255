"""Count the floating-point operations of a stage's nodes, including called functions."""

from __future__ import annotations

from functools import cache, partial

from tvm import tirx

from irviz.ir.module_functions import drawable_functions
from irviz.ir.prim_func_flops import prim_func_flops
from irviz.model.graph.flops import FlopsOfFunction, with_flops
from irviz.model.graph.graph import Graph
from irviz.session.kept_by_stage import kept_by_stage
from irviz.session.stage_readings import reading_of
from irviz.transforms.stage import Stage

_MAX_CALLS = 3
"""The depth to which nested calls are counted, as functions may be recursive."""


def counted_graph(stage: Stage, graph: Graph) -> Graph:
    """Return the graph of a stage's function with FLOPs; that of a PrimFunc unchanged."""
    if isinstance(stage.module[graph.function], tirx.PrimFunc):
        return graph
    return with_flops(graph, _flops_of_functions(stage))


@kept_by_stage
def _flops_of_functions(stage: Stage) -> FlopsOfFunction:
    """Return a function from a function's name to its FLOPs, None if some are unknown."""
    functions = drawable_functions(stage.module)

    @cache
    def of_function(name: str, depth: int = 0) -> float | None:
        function = functions.get(name)
        if function is None or depth > _MAX_CALLS:
            return None
        if isinstance(function, tirx.PrimFunc):
            return prim_func_flops(function)
        of_inner = partial(of_function, depth=depth + 1)
        graph = with_flops(reading_of(stage, name).graph, of_inner)
        known = [one.flops for one in graph.nodes if one.flops is not None]
        return sum(known) if len(known) == len(graph.nodes) else None

    return of_function
