"""What was read of a stage: once, however often it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

import numpy as np
import tvm
from numpy.typing import NDArray

from irviz.ir.callee import registered
from irviz.ir.extract import read
from irviz.ir.script import Script, script
from irviz.model.graph import Graph, NodeId, Resolution
from irviz.model.tree import Tree, tree
from irviz.transforms.stage import Stage

_BY_REGISTRY = (Resolution.LIBRARY, Resolution.UNKNOWN)


class _Read:
    """A function of a stage, as it was when it was read."""

    def __init__(self, stage: Stage, function: str) -> None:
        self.graph, self.constants = read(stage.module, function, stage.constant_names)
        named = {node.callee: node.resolution for node in self.graph.nodes if node.resolution}
        self._registered = {n: found for n, found in named.items() if found in _BY_REGISTRY}

    @cached_property
    def tree(self) -> Tree:
        return tree(self.graph)

    @property
    def is_current(self) -> bool:
        """Whether names lead where they did: a library function may be registered by now."""
        return all(registered(name) is was for name, was in self._registered.items())


@lru_cache(maxsize=32)
def _once(stage: Stage, function: str) -> _Read:
    return _Read(stage, function)


def _read(stage: Stage, function: str) -> _Read:
    found = _once(stage, function)
    if not found.is_current:
        _once.cache_clear()
        found = _once(stage, function)
    return found


def graph_of(stage: Stage, function: str) -> Graph:
    """Return the graph of a stage's function; raise ValueError when there is none."""
    return _read(stage, function).graph


def tree_of(stage: Stage, function: str) -> Tree:
    """Return what can be opened and closed in a stage's function."""
    return _read(stage, function).tree


def array_of(stage: Stage, function: str, node_id: NodeId) -> NDArray[np.generic] | None:
    """Return the values of a constant's node, None where NumPy has no such dtype."""
    tensor = _read(stage, function).constants.get(node_id)
    try:
        return None if tensor is None else np.asarray(tensor.numpy())
    except Exception:  # a dtype that NumPy does not know, or a device that is not this one
        return None


def constants_of(stage: Stage, function: str) -> Mapping[NodeId, tvm.runtime.Tensor]:
    """Return the tensors of a function's constants, by their nodes."""
    return _read(stage, function).constants


@lru_cache(maxsize=8)
def script_of(stage: Stage) -> Script:
    """Return the TVMScript of a stage, with the lines of nodes."""
    return script(stage.module)
