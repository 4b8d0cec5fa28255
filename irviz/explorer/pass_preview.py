"""Preview what a transform would do to a stage."""

from __future__ import annotations

from irviz.explorer.state import Preview, PreviewKey
from irviz.ir.module_functions import relax_functions
from irviz.model.diff.diff_result import NodeChange
from irviz.model.graph.graph import NodeId
from irviz.session.stage_diff import diff_modules
from irviz.transforms.apply_transform import apply_transform, try_transform

_MOST_COMPARED = 2000
"""In functions with more bindings, changed nodes are not determined, which would take seconds."""


def preview(key: PreviewKey) -> Preview:
    """Try a transform in the worker; return what it would change, and which nodes."""
    stage, transform = key.stage, key.transform
    tried = transform.tried_as
    outcome = try_transform(stage.module, tried, look=True) if tried is not None else None
    if outcome is not None and outcome.error:
        return Preview(key, f"it would fail: {outcome.error}", is_error=True)
    if outcome is None or outcome.change is None:
        return Preview(key, "it cannot be tried apart: apply it to see what it changes")
    if not outcome.change:
        return Preview(key, f"it would change {outcome.change}")
    return Preview(key, f"it would change: {outcome.change}", nodes=_changed_nodes(key))


def _changed_nodes(key: PreviewKey) -> tuple[NodeId, ...]:
    """Return the nodes of the stage's function that would be removed, changed or replaced."""
    stage, transform, function = key.stage, key.transform, key.function
    if stage.files or function not in relax_functions(stage.module):
        return ()  # what comes from a file is transformed in the worker alone
    made = apply_transform(stage, transform, stage.id, isolate=False)
    found = diff_modules(stage, made, ("", ""), function).functions
    diff = next((one for one in found if one.before == function), None)
    if made.error or diff is None or len(diff.nodes) > _MOST_COMPARED:
        return ()
    return tuple(
        node for one in diff.nodes if one.change is not NodeChange.SAME for node in one.before
    )
