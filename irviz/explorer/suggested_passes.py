"""Passes that are worth trying on a stage, and what they would change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from tvm import ir

from irviz.explorer.stage_rows import FEW_NODES
from irviz.explorer.state import Preview, PreviewKey, TrialsKey
from irviz.ir.module_functions import prim_funcs, relax_functions
from irviz.ir.type_and_expression_labels import attributes
from irviz.model.graph.graph import NodeKind, RegionKind
from irviz.session.stage_cache import graph_of
from irviz.session.stage_diff import diff_modules
from irviz.transforms.apply_transform import Change, try_transform
from irviz.transforms.passes.catalog import find
from irviz.transforms.passes.pass_transform import named_pass
from irviz.transforms.stage import Stage

_MOST_MARKED = 2000
"""In functions with more bindings, changed nodes are not marked."""


def preview(key: PreviewKey) -> Preview:
    """Try a transform in the worker; return what it would change, and which nodes."""
    stage, transform = key.stage, key.transform
    tried = transform.tried_as
    compare = partial(_change, key.function)
    outcome = None if tried is None else try_transform(stage.module, tried, compare=compare)
    if outcome is not None and outcome.error:
        return Preview(f"it would fail: {outcome.error}", is_error=True)
    if outcome is None or outcome.change is None:
        return Preview("it cannot be tried apart: apply it to see what it changes")
    words, nodes = outcome.change
    return Preview(f"it would change{':' if words != 'nothing' else ''} {words}", nodes=nodes)


def _change(function: str, before: ir.IRModule, after: ir.IRModule) -> Change:
    """Return what differs, and the nodes of a function that are removed, changed or replaced."""
    found = diff_modules(Stage("0", before), Stage("1", after))
    nodes = [
        node
        for one in found.functions
        if one.before == function and len(one.nodes) <= _MOST_MARKED
        for each in one.changed_nodes
        for node in each.before
    ]
    return Change(found.summary, tuple(nodes))


def iter_trials(key: TrialsKey) -> Iterator[Mapping[str, str]]:
    """Try the suggested passes on a small function, and yield by name what each would do."""
    if len(graph_of(key.stage, key.function).nodes) > FEW_NODES:
        return
    for name in suggested_passes(key.stage):
        entry = find(name)
        is_quick = not (entry.is_measured or entry.evaluates_code)
        if is_quick and not any(one.is_required for one in entry.parameters):
            found = preview(PreviewKey(key.stage, key.function, named_pass(name)))
            yield {entry.full_name: _outcome(found)}


def _outcome(found: Preview) -> str:
    """Return what a trial found, in a few words."""
    if found.is_error:
        return "would fail"
    if found.nodes:
        return f"would change {len(found.nodes)} node{'s' * (len(found.nodes) > 1)}"
    return "would change nothing" if found.words.endswith("nothing") else "would change functions"


_FUSED, _PRIM_FUNCS = "fused", "PrimFuncs"
_CONVOLUTIONS = {"relax.nn.conv1d", "relax.nn.conv2d"}
_SUGGESTIONS: Mapping[str, AbstractSet[object]] = {
    "LegalizeOps": {NodeKind.OPERATOR},
    "FoldConstant": {NodeKind.CONSTANT},
    "AnnotateTIROpPattern": {_PRIM_FUNCS},
    "FuseOps": {NodeKind.CALL_TIR},
    "FuseTIR": {_FUSED},
    "FuseOpsByPattern": {NodeKind.OPERATOR},
    "ConvertLayout": _CONVOLUTIONS,
    "ToMixedPrecision": {"relax.matmul", "relax.nn.conv2d"},
    "EliminateCommonSubexpr": {*NodeKind} - {NodeKind.PARAM},
    "CanonicalizeBindings": {*NodeKind} - {NodeKind.PARAM},
    "DeadCodeElimination": {*NodeKind} - {NodeKind.PARAM},
    "LambdaLift": {NodeKind.FUNCTION},
    "RewriteDataflowReshape": {NodeKind.CALL_TIR},
    "CallTIRRewrite": {NodeKind.CALL_TIR},
    "ToNonDataflow": {RegionKind.DATAFLOW_BLOCK},
    "StaticPlanBlockMemory": {NodeKind.ALLOC},
}
"""The passes, and what they look for in a module: one of these is enough."""


def suggested_passes(stage: Stage) -> tuple[str, ...]:
    """Return the names of applicable passes; none if the module cannot be read."""
    try:
        found = _contents(stage)
    except Exception:  # why is said in the place of the picture
        return ()
    return tuple(name for name, wanted in _SUGGESTIONS.items() if wanted & found)


def _contents(stage: Stage) -> set[object]:
    """Return the contents of a module that passes look for: kinds, and operators of Relax."""
    found: set[object] = {_PRIM_FUNCS} if prim_funcs(stage.module) else set()
    for name, function in relax_functions(stage.module).items():
        if "Primitive" in dict(attributes(function.attrs)):
            found.add(_FUSED)
        graph = graph_of(stage, name)
        found.update(part for node in graph.nodes for part in (node.kind, node.operator))
        found.update(region.kind for region in graph.regions)
    return found
