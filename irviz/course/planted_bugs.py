"""Two pipelines for the notebook on finding a pass: in each, one pass is wrong.

Each pass stands for itself, so that a script can have it.
"""

from __future__ import annotations

from typing import Final

from tvm import IRModule, relax
from tvm.relax.dpl import is_op, rewrite_call, wildcard


def hoist_activations(mod: IRModule) -> IRModule:
    """Move each ReLU before the bias; this is wrong, as a bias can be negative."""
    a, b = wildcard(), wildcard()
    main = rewrite_call(
        is_op("relax.nn.relu")(is_op("relax.add")(a, b)),
        lambda _, found: relax.op.add(relax.op.nn.relu(found[a]), found[b]),
        mod["main"],
    )
    return IRModule({**mod.functions, mod.get_global_var("main"): main}, mod.attrs)


def drop_activations(mod: IRModule) -> IRModule:
    """Drop the ReLU of each sum; this is wrong, as a sum can be negative."""
    a, b = wildcard(), wildcard()
    main = rewrite_call(
        is_op("relax.nn.relu")(is_op("relax.add")(a, b)),
        lambda _, found: relax.op.add(found[a], found[b]),
        mod["main"],
    )
    return IRModule({**mod.functions, mod.get_global_var("main"): main}, mod.attrs)


PIPELINE: Final = (
    "CanonicalizeBindings",
    "EliminateCommonSubexpr",
    hoist_activations,
    "DeadCodeElimination",
    "FoldConstant",
    "LegalizeOps",
    "AnnotateTIROpPattern",
    "FuseOps",
    "FuseTIR",
)
"""The passes of the notebook."""

OTHER_PIPELINE: Final = ("Normalize", "CanonicalizeBindings", drop_activations, "LegalizeOps")
"""The passes of its second exercise."""
