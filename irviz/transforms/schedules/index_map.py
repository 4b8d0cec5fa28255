"""An index map as text, such as `lambda i, j: (j, i // 4, i % 4)`: parsed strictly, never run."""

from __future__ import annotations

import ast
import inspect
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tvm import tirx

from irviz.ir.statements import ScopedNames
from irviz.transforms.schedules.schedule_error import ScheduleTraceError, refused

_OPERATORS: dict[type[ast.operator], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_Expression: TypeAlias = Callable[[Mapping[str, object]], Any]
_TYPED_NUMBER = re.compile(r"T\.int\d+\((-?\d+)\)")


@dataclass(frozen=True)
class IndexMapText:
    """An index map as the text of a lambda over integers with + - * // and %."""

    text: str

    def __str__(self) -> str:
        return self.text

    def function(self) -> Callable[..., list[object]]:
        """Return the function of indices that TVM takes; raise ScheduleTraceError."""
        try:
            tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
            raise ScheduleTraceError(
                f"{self.text!r} is not a Python expression: {failure}"
            ) from None
        return index_map_function(tree)


def index_map_function(tree: ast.expr) -> Callable[..., list[object]]:
    """Return the function of a lambda; raise ScheduleTraceError unless it is an index map."""
    if not isinstance(tree, ast.Lambda):
        raise refused(tree, "this is not an index map: write one such as lambda i, j: (j, i)")
    given = tree.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults or given.posonlyargs:
        raise refused(tree, "an index map takes plain names: write lambda i, j: …")
    names = [argument.arg for argument in given.args]
    is_several = isinstance(tree.body, ast.Tuple | ast.List)
    body: list[ast.expr] = tree.body.elts if is_several else [tree.body]  # type: ignore[attr-defined]
    evaluate = [_compiled(each, names) for each in body]

    def indices(*values: object) -> list[object]:
        known = dict(zip(names, values, strict=True))
        return [each(known) for each in evaluate]

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    indices.__signature__ = signature  # type: ignore[attr-defined] # TVM counts the parameters
    return indices


def index_map_text(index_map: tirx.IndexMap) -> IndexMapText | None:
    """Return TVM's index map as text, None where it has other operators."""
    names = ScopedNames()
    given = [names.define(var) for var in index_map.initial_indices]
    made = [_TYPED_NUMBER.sub(r"\1", names.text(value)) for value in index_map.final_indices]
    inside = ", ".join(made) + ("," if len(made) == 1 else "")
    text = f"lambda {', '.join(given)}: ({inside})"
    try:
        IndexMapText(text).function()
    except ScheduleTraceError:
        return None
    return IndexMapText(ast.unparse(ast.parse(text)))


def _compiled(tree: ast.expr, names: list[str]) -> _Expression:
    """Return the function of an expression, from the values of its indices by name."""
    match tree:
        case ast.Name(id=name):
            if name not in names:
                raise refused(tree, f"{name!r} is not one of its indices, which are {names}")
            return lambda known: known[name]
        case ast.Constant(value=value):
            if type(value) is not int:
                raise refused(tree, f"{value!r} is not a whole number")
            return lambda _: value
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) not in _OPERATORS:
                raise refused(tree, "an index map has no operators but + - * // and %")
            compute, one, other = (
                _OPERATORS[type(op)],
                _compiled(left, names),
                _compiled(right, names),
            )
            return lambda known: compute(one(known), other(known))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            negated = _compiled(operand, names)
            return lambda known: 0 - negated(known)
    raise refused(
        tree,
        f"{ast.unparse(tree)!r} is not allowed in an index map: use its indices, whole "
        "numbers, + - * // and %",
    )
