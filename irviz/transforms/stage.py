"""A stage: a module, and the transform that produced it from another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import tvm
from tvm import ir

from irviz.model.graph.graph import NodeId
from irviz.model.graph.infer_layers import LayersByNode
from irviz.model.graph.layers import Layer
from irviz.model.runs.run_result import Origin
from irviz.transforms.transform import Transform

Position = tuple[Layer, str, int]
"""A node's sublayer, its operator, and how many such nodes come before it there."""

INITIAL = "initial module"
"""The label of a stage that was not made from another."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A module, and the transform that produced it.

    Attributes:
        id: A number as text; "0" is the first stage.
        module: The module; that of the parent if the transform failed.
        parent: The id of the stage that it was made from, None for a root.
        error: Why the transform failed, "" if it did not.
        stderr: What TVM wrote to standard error during the transform.
        seconds: The duration of a recorded pass.
        enclosing_passes: The passes that ran a recorded pass, outermost first.
        is_unchanged: Whether a recorded pass changed nothing.
        files: The opened files that the module or the transform came from. Their code runs only
            with the user's consent, and never in this process.
        made_from: The stage of which this one was made, None for a root.
        layers: By function, the model's layers that the bindings of a root come from.
        positions: For a root that is a layer, the position of each node in it: nodes of two such
            stages with the same position correspond.
        origin: The model that a root was imported from, if it can be run.
    """

    id: str
    module: ir.IRModule
    label: str = INITIAL
    parent: str | None = None
    transform: Transform | None = None
    error: str = ""
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)
    stderr: str = ""
    seconds: float | None = None
    enclosing_passes: tuple[str, ...] = ()
    is_unchanged: bool = False
    files: frozenset[str] = frozenset()
    made_from: Stage | None = field(default=None, repr=False)
    layers: Mapping[str, LayersByNode] = field(default_factory=dict, repr=False)
    positions: Mapping[NodeId, Position] = field(default_factory=dict, repr=False)
    origin: Origin | None = field(default=None, repr=False)
