"""Arguments that are written at their use: numbers, shapes, texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tvm_ffi
from tvm import ir, relax

from irviz.ir.expression import has_effect, is_tensor_constant, variables
from irviz.ir.reading import FIRST
from irviz.ir.text import literal
from irviz.model.graph import Literal, NodeId


class Literals:
    """Reads literals; those that mention no variable are made once for all that are alike.

    `ids` has the nodes of variables by their address.
    """

    def __init__(self, ids: Mapping[int, NodeId]) -> None:
        self._ids = ids
        self._known: dict[int, str] = {}

    def read(self, argument: ir.Expr) -> tuple[str, list[NodeId], bool]:
        """Return the text of an argument written at its use, the nodes it mentions, its effect."""
        key = tvm_ffi.structural_hash(argument)
        text = self._known.get(key)
        if text is not None:
            return text, [], False
        text, used = literal(argument), self.used_in(argument)
        effect = has_effect(argument)
        if not used and not effect:
            self._known[key] = text
        return text, used, effect

    def plain(
        self, arguments: Sequence[ir.Expr], sources: Sequence[NodeId | None]
    ) -> tuple[Literal, ...]:
        """Return the arguments that are shapes and scalars: those that mention no variable."""
        literals = []
        for argument, source, position in zip(arguments, sources, FIRST, strict=False):
            is_written = isinstance(argument, relax.ShapeExpr | ir.GenericConst)
            if source is None and is_written and not is_tensor_constant(argument):
                text, used, _ = self.read(argument)
                if not used:
                    literals.append(Literal(position, text))
        return tuple(literals)

    def used_in(self, value: ir.Expr) -> list[NodeId]:
        """Return the nodes of the variables that an expression uses, sizes in it included."""
        if isinstance(value, ir.GenericConst | ir.StringImm):
            return []
        known = (self._ids.get(var.__chandle__()) for var in variables(value))
        return [node_id for node_id in known if node_id is not None]
