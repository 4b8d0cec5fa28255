"""What is read of stages: graphs with the model's layers, containers, arrays, texts; all cached."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir

from irviz.ir.tensor_array import tensor_array
from irviz.ir.text.tvmscript_lines import Script, script
from irviz.model.folding.containers import ContainerTree, container_tree
from irviz.model.graph.graph import Graph, NodeId
from irviz.session.kept_by_stage import kept_by_stage
from irviz.session.stage_flops import counted_graph
from irviz.session.stage_layers import layered_graph
from irviz.session.stage_readings import Reading, reading_of
from irviz.transforms.stage import Stage


def graph_of(stage: Stage, function: str) -> Graph:
    """Return the graph of a stage's function, with layers and FLOPs; raise NoFunctionError."""
    return _graph(stage, function, reading_of(stage, function))


@kept_by_stage
def _graph(stage: Stage, function: str, _: Reading) -> Graph:
    """Return the graph of a function that was read now."""
    return counted_graph(stage, layered_graph(stage, function))


def tree_of(stage: Stage, function: str) -> ContainerTree:
    """Return the containers of a stage's function: what can be expanded and collapsed."""
    return _tree(stage, function, reading_of(stage, function))


@kept_by_stage
def _tree(stage: Stage, function: str, _: Reading) -> ContainerTree:
    """Return the containers of a function that was read now: hashing its graph takes long."""
    return container_tree(graph_of(stage, function))


def array_of(stage: Stage, function: str, node_id: NodeId) -> NDArray[np.generic] | None:
    """Return the value of a constant, None for another node and where NumPy lacks the dtype.

    It is the module's own memory, so it cannot be written to: weights are large.
    """
    tensor = reading_of(stage, function).constants.get(node_id)
    if tensor is None:
        return None
    try:
        array = tensor_array(tensor)
    except Exception:  # a dtype that NumPy does not know, or a device that is not this one
        return None
    array.setflags(write=False)
    return array


def constants_of(stage: Stage, function: str) -> Mapping[NodeId, tvm.runtime.Tensor]:
    """Return the tensors of a function's constants, by their nodes."""
    return reading_of(stage, function).constants


def script_of(stage: Stage) -> Script:
    """Return the TVMScript of a stage, with the lines of nodes."""
    return _script(stage.module)


@lru_cache(maxsize=8)
def _script(module: ir.IRModule) -> Script:
    return script(module)
