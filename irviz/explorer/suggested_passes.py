"""Suggest passes of the course that apply to a stage, in the order of its chapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from irviz.ir.module_functions import prim_funcs, relax_functions
from irviz.ir.text.expression_labels import attributes
from irviz.model.graph.graph import NodeKind, RegionKind
from irviz.session.stage_cache import graph_of
from irviz.transforms.stage import Stage


@dataclass
class _Contents:
    """The contents of a module that passes look for."""

    kinds: set[NodeKind] = field(default_factory=set)
    operators: set[str] = field(default_factory=set)
    has_dataflow: bool = False
    has_fused: bool = False
    has_prim_funcs: bool = False

    def has(self, *names: str) -> bool:
        """Tell whether there is one of these Relax operators."""
        return any(f"relax.{name}" in self.operators for name in names)


_SUGGESTIONS: Mapping[str, Callable[[_Contents], bool]] = {
    "LegalizeOps": lambda found: NodeKind.OPERATOR in found.kinds,
    "FoldConstant": lambda found: NodeKind.CONSTANT in found.kinds,
    "AnnotateTIROpPattern": lambda found: found.has_prim_funcs,
    "FuseOps": lambda found: NodeKind.CALL_TIR in found.kinds,
    "FuseTIR": lambda found: found.has_fused,
    "FuseOpsByPattern": lambda found: NodeKind.OPERATOR in found.kinds,
    "ConvertLayout": lambda found: found.has("nn.conv1d", "nn.conv2d"),
    "ToMixedPrecision": lambda found: found.has("matmul", "nn.conv2d"),
    "EliminateCommonSubexpr": lambda found: bool(found.kinds - {NodeKind.PARAM}),
    "CanonicalizeBindings": lambda found: bool(found.kinds - {NodeKind.PARAM}),
    "DeadCodeElimination": lambda found: bool(found.kinds - {NodeKind.PARAM}),
    "LambdaLift": lambda found: NodeKind.FUNCTION in found.kinds,
    "RewriteDataflowReshape": lambda found: NodeKind.CALL_TIR in found.kinds,
    "CallTIRRewrite": lambda found: NodeKind.CALL_TIR in found.kinds,
    "ToNonDataflow": lambda found: found.has_dataflow,
    "StaticPlanBlockMemory": lambda found: NodeKind.ALLOC in found.kinds,
}


def suggested_passes(stage: Stage) -> tuple[str, ...]:
    """Return the names of applicable passes; none if the module cannot be read."""
    try:
        found = _contents(stage)
    except Exception:  # why is said in the place of the picture
        return ()
    return tuple(name for name, fits in _SUGGESTIONS.items() if fits(found))


def _contents(stage: Stage) -> _Contents:
    found = _Contents(has_prim_funcs=bool(prim_funcs(stage.module)))
    for name, function in relax_functions(stage.module).items():
        found.has_fused |= "Primitive" in dict(attributes(function.attrs))
        graph = graph_of(stage, name)
        found.kinds |= {node.kind for node in graph.nodes}
        found.operators |= {node.operator for node in graph.nodes}
        found.has_dataflow |= any(one.kind is RegionKind.DATAFLOW_BLOCK for one in graph.regions)
    return found
