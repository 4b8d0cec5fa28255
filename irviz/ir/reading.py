"""What a call is: one table for the Ops that call something else, one way for all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tvm import ir, relax

from irviz.ir.callee import NAMED_CALLS, Callee, Callees, Passing
from irviz.ir.identity import MOST_NESTED
from irviz.ir.text import Texts
from irviz.model.graph import CALLEE, NodeId, NodeKind, Resolution

Position = tuple[int, ...]
FIRST: tuple[Position, ...] = tuple((index,) for index in range(16))
"""The first positions, made once."""


class Reading(NamedTuple):
    """What a value turned out to be, before its arguments are followed.

    `results` are operands that are nodes already; `structure` is what the call does, where that
    is known better than by the callee's name.
    """

    kind: NodeKind
    arguments: list[tuple[Position, ir.Expr]]
    callee: str = ""
    resolution: Resolution | None = None
    operator: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    is_pure: bool = True
    structure: int | str = ""
    results: Sequence[tuple[Position, NodeId]] = ()


class Form(NamedTuple):
    """How calls of one Op are read."""

    kind: NodeKind
    operator: str
    passing: Passing | None
    is_pure: bool


class Calls:
    """Reads the calls of one module.

    `forms` has each Op that was met, `known` each function of the module that was called by one,
    by their addresses.
    """

    def __init__(self, mod: ir.IRModule, texts: Texts) -> None:
        self.forms: dict[int, Form] = {}
        self.known: dict[int, Callee] = {}
        self._texts, self._callees = texts, Callees(mod)

    def read(self, call: ir.Call, ids: Mapping[int, NodeId]) -> Reading | None:
        """Tell what a call is; None when what it calls is nothing that irviz knows."""
        op = call.op
        key = op.__chandle__()
        if not isinstance(op, ir.Op):
            return self._direct(call, op, ids)
        form = self.forms.get(key)
        if form is None:
            form = self.forms[key] = _form(op)
        kind, operator, passing, is_pure = form
        arguments = call.args[:]
        attrs = self._texts.attributes(call.attrs)
        if passing is not None and arguments:
            called, *rest = arguments
            callee = self._callees.of(called, operator)
            if callee is not None:
                if isinstance(called, ir.GlobalVar):
                    self.known[called.__chandle__()] = callee
                if passing is Passing.TUPLED and rest and isinstance(rest[0], ir.Tuple):
                    rest = [*rest[0].fields[:], *rest[1:]]
                found = list(leaves(rest))
                if called.__chandle__() in ids:
                    found.insert(0, (CALLEE, called))
                name, resolution, _, structure = callee
                return Reading(kind, found, name, resolution, operator, attrs, is_pure, structure)
        if passing is not None:  # it calls nothing that has a name
            kind = NodeKind.OPERATOR
        return Reading(
            kind, list(leaves(arguments)), operator, None, operator, attrs, is_pure, operator
        )

    def _direct(self, call: ir.Call, op: ir.Expr, ids: Mapping[int, NodeId]) -> Reading | None:
        callee = self._callees.of(op, "")
        if callee is None:
            return None
        is_packed = isinstance(op, relax.ExternFunc)
        found = list(leaves(call.args[:]))
        if op.__chandle__() in ids:
            found.insert(0, (CALLEE, op))
        name, resolution, is_pure, structure = callee
        return Reading(
            NodeKind.CALL_PACKED if is_packed else NodeKind.CALL_FUNCTION,
            found,
            name,
            resolution,
            "",
            self._texts.attributes(call.attrs),
            is_pure and not is_packed,
            structure,
        )


def _form(op: ir.Op) -> Form:
    name = str(op.name)
    kind, passing = NAMED_CALLS.get(name, (NodeKind.OPERATOR, None))
    return Form(kind, name, passing, bool(op.get_attr("FPurity")))


def leaves(arguments: Sequence[ir.Expr], depth: int = 0) -> Iterator[tuple[Position, ir.Expr]]:
    """Yield the arguments with their positions, those in nested tuples with longer ones.

    A tuple without fields, or one that is nested too deep to be followed, is an argument itself.
    """
    for index, argument in enumerate(arguments):
        is_followed = isinstance(argument, ir.Tuple) and depth < MOST_NESTED
        fields = argument.fields[:] if is_followed else ()
        if fields:
            for position, leaf in leaves(fields, depth + 1):
                yield (index, *position), leaf
        else:
            yield (FIRST[index] if index < len(FIRST) else (index,)), argument
