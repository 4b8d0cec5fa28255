"""Read functions of stages; readings are cached by module and library functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import tvm

from irviz.ir.calls import resolve_registered
from irviz.ir.function_graph import read_function
from irviz.model.graph.graph import Graph, NodeId, Resolution
from irviz.transforms.stage import Stage

# --- kept by stage -----------------------------------------------------------------------------
#
# Cache results for functions of stages, for the most recently used stages.


_MOST_STAGES = 32

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")


class kept_by_stage(Generic[_Arguments, _Found]):  # noqa: N801 - a decorator
    """Cache a function's results by stage and further arguments, such as a function's name.

    A stage may have hundreds of functions, and a path between two stages needs those of each. So
    the results of a stage are not limited in number; they are dropped with the stage.
    """

    def __init__(self, find: Callable[Concatenate[Stage, _Arguments], _Found]) -> None:
        self._find = find
        self._of_stage = lru_cache(maxsize=_MOST_STAGES)(_nothing_yet)
        self.cache_clear = self._of_stage.cache_clear

    def __call__(
        self, stage: Stage, *arguments: _Arguments.args, **named: _Arguments.kwargs
    ) -> _Found:
        """Return the cached result, or compute it."""
        assert not named, "it is called by position"
        kept = self._of_stage(stage)
        if arguments not in kept:
            kept[arguments] = self._find(stage, *arguments, **named)
        found: _Found = kept[arguments]
        return found


def _nothing_yet(_: Stage) -> dict[object, Any]:
    return {}


# --- stage readings ------------------------------


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
