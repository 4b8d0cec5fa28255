"""What is read of stages, cached by the module and by the library functions that it calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir

from irviz.ir.function_graph import read_function
from irviz.ir.relax.calls import resolve_registered
from irviz.ir.text.tvmscript_lines import Script, script
from irviz.model.folding.containers import ContainerTree, container_tree
from irviz.model.graph.graph import Graph, NodeId, Resolution
from irviz.transforms.stage import Stage


class _Reading:
    """A function of a stage, as it is with the library functions that are registered now."""

    def __init__(self, stage: Stage, function: str) -> None:
        self.graph, self.constants, self.variables = read_function(
            stage.module, function, stage.constant_names
        )
        self._registered = {
            node.callee: node.resolution
            for node in self.graph.nodes
            if node.resolution in (Resolution.LIBRARY, Resolution.UNKNOWN)
        }

    @cached_property
    def tree(self) -> ContainerTree:
        return container_tree(self.graph)

    @property
    def is_current(self) -> bool:
        """Whether the same library functions are registered as when it was read."""
        return all(resolve_registered(name) is was for name, was in self._registered.items())


@lru_cache(maxsize=32)
def _read(stage: Stage, function: str) -> _Reading:
    return _Reading(stage, function)


def _current(stage: Stage, function: str) -> _Reading:
    reading = _read(stage, function)
    if not reading.is_current:  # which is rare: a kernel was registered
        _read.cache_clear()
        reading = _read(stage, function)
    return reading


def graph_of(stage: Stage, function: str) -> Graph:
    """Return the graph of a stage's function; raise ValueError when there is none."""
    return _current(stage, function).graph


def tree_of(stage: Stage, function: str) -> ContainerTree:
    """Return the containers of a stage's function: what can be expanded and collapsed."""
    return _current(stage, function).tree


def array_of(stage: Stage, function: str, node_id: NodeId) -> NDArray[np.generic] | None:
    """Return the value of a constant, None for another node and where NumPy lacks the dtype."""
    tensor = _current(stage, function).constants.get(node_id)
    try:
        return None if tensor is None else np.asarray(tensor.numpy())
    except Exception:  # a dtype that NumPy does not know, or a device that is not this one
        return None


def constants_of(stage: Stage, function: str) -> Mapping[NodeId, tvm.runtime.Tensor]:
    """Return the tensors of a function's constants, by their nodes."""
    return _current(stage, function).constants


def variables_of(stage: Stage, function: str) -> Mapping[int, NodeId]:
    """Return the nodes of a function's variables and constants, by their addresses."""
    return _current(stage, function).variables


def script_of(stage: Stage) -> Script:
    """Return the TVMScript of a stage, with the lines of nodes."""
    return _script(stage.module)


@lru_cache(maxsize=8)
def _script(module: ir.IRModule) -> Script:
    return script(module)
