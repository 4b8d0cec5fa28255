"""Two pipelines for the notebook on finding a pass: in each, one pass is wrong."""

from __future__ import annotations

from typing import Final

from tvm import IRModule, relax
from tvm.relax.dpl import is_op, rewrite_call, wildcard

_a, _b = wildcard(), wildcard()
_ACTIVATED = is_op("relax.nn.relu")(is_op("relax.add")(_a, _b))


def hoist_activations(mod: IRModule) -> IRModule:
    """Move each ReLU before the bias; this is wrong, as a bias can be negative."""
    main = rewrite_call(
        _ACTIVATED,
        lambda _, found: relax.op.add(relax.op.nn.relu(found[_a]), found[_b]),
        mod["main"],
    )
    return IRModule({**mod.functions, mod.get_global_var("main"): main}, mod.attrs)


def drop_activations(mod: IRModule) -> IRModule:
    """Drop the ReLU of each sum; this is wrong, as a sum can be negative."""
    main = rewrite_call(
        _ACTIVATED, lambda _, found: relax.op.add(found[_a], found[_b]), mod["main"]
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
