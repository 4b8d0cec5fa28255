"""Read functions of stages; readings are cached by module and library functions."""

from __future__ import annotations

from collections.abc import Mapping

import tvm

from irviz.ir.function_graph import read_function
from irviz.ir.relax.calls import resolve_registered
from irviz.model.graph.graph import Graph, NodeId, Resolution
from irviz.session.kept_by_stage import kept_by_stage
from irviz.transforms.stage import Stage


class Reading:
    """A function of a stage as read with the currently registered library functions.

    Attributes:
        graph: Its graph, without the layers of nodes.
        constants: The tensors of its constants, by their nodes.
        variables: The nodes of its variables and constants, by their addresses.
    """

    graph: Graph
    constants: Mapping[NodeId, tvm.runtime.Tensor]
    variables: Mapping[int, NodeId]

    def __init__(self, stage: Stage, function: str) -> None:
        self.graph, self.constants, self.variables = read_function(
            stage.module, function, stage.constant_names
        )
        self._registered = {
            node.callee: node.resolution
            for node in self.graph.nodes
            if node.resolution in (Resolution.LIBRARY, Resolution.UNKNOWN)
        }

    @property
    def is_current(self) -> bool:
        """Whether the registered library functions are the same as when it was read."""
        return all(resolve_registered(name) is was for name, was in self._registered.items())


@kept_by_stage
def _read(stage: Stage, function: str) -> Reading:
    return Reading(stage, function)


def reading_of(stage: Stage, function: str) -> Reading:
    """Return the reading of a stage's function; raise NoFunctionError if there is none."""
    reading = _read(stage, function)
    if not reading.is_current:  # which is rare: a kernel was registered
        _read.cache_clear()
        reading = _read(stage, function)
    return reading
