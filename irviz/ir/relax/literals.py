"""Arguments that are shown inside their call and are not nodes: numbers, shapes, strings."""

from __future__ import annotations

from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import ir, relax

from irviz.ir.text.labels import literal_label
from irviz.model.graph.graph import NodeId

_WITHOUT_EFFECT = (relax.ShapeExpr, ir.GenericConst, ir.StringImm, ir.GlobalVar, relax.ExternFunc)


class LiteralReader:
    """Reads literals; those that use no variable are made once for all that are alike.

    `ids` has the nodes of variables by their address.
    """

    def __init__(self, ids: Mapping[int, NodeId]) -> None:
        self._ids = ids
        self._texts: dict[int, str] = {}

    def read(self, argument: ir.Expr) -> tuple[str, list[NodeId], bool]:
        """Return a literal's text, the nodes it uses, and whether it has an effect."""
        key = tvm_ffi.structural_hash(argument)
        text = self._texts.get(key)
        if text is not None:
            return text, [], False
        text, used = literal_label(argument), self.used_nodes(argument)
        effect = _has_effect(argument)
        if not used and not effect:
            self._texts[key] = text
        return text, used, effect

    def used_nodes(self, value: ir.Expr) -> list[NodeId]:
        """Return the nodes of the variables that an expression uses, also in sizes."""
        if isinstance(value, ir.GenericConst | ir.StringImm):
            return []
        ids = (self._ids.get(var.__chandle__()) for var in _free_vars(value))
        return [node_id for node_id in ids if node_id is not None]


def is_tensor_constant(leaf: ir.Expr) -> bool:
    """Tell whether an expression is a constant with a shape; a scalar constant is a literal."""
    if not isinstance(leaf, ir.GenericConst) or not isinstance(leaf.value, tvm.runtime.Tensor):
        return False  # it may be a dtype too
    return bool(leaf.value.shape != ())


def _has_effect(value: ir.Expr) -> bool:
    """Tell whether an expression contains an impure call."""
    if isinstance(value, _WITHOUT_EFFECT):
        return False
    try:
        return bool(relax.analysis.contains_impure_call(value))
    except Exception:  # TVM analyses Relax expressions only
        return False


def _free_vars(value: ir.Expr) -> list[ir.Var]:
    """Return the variables that an expression uses and does not define, each of them once."""
    try:
        return list(relax.analysis.free_vars(value))
    except Exception:  # a part is not Relax: collect every variable in it
        found: dict[int, ir.Var] = {}

        def collect(part: object) -> None:
            if isinstance(part, ir.Var):
                found.setdefault(part.__chandle__(), part)

        tvm_ffi.structural_walk(value, collect)
        return list(found.values())
