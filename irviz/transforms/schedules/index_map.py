"""An index map as text, such as `lambda i, j: (j, i // 4, i % 4)`: parsed strictly, never run."""

from __future__ import annotations

import ast
import inspect
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tvm import tirx

from irviz.errors import IrvizError
from irviz.ir.tir.scoped_names import ScopedNames

_OPERATORS: dict[type[ast.operator], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


_TYPED_NUMBER = re.compile(r"T\.int\d+\((-?\d+)\)")


class IndexMapError(IrvizError, ValueError):
    """A text that is not an index map; `line` and `column` count from 1."""

    def __init__(self, words: str, line: int = 1, column: int = 1) -> None:
        super().__init__(words)
        self.line, self.column = line, column


@dataclass(frozen=True)
class IndexMapText:
    """An index map as the text of a lambda over integers with + - * // and %."""

    text: str

    def __str__(self) -> str:
        """Return the text."""
        return self.text

    def function(self) -> Callable[..., list[object]]:
        """Return the function from indices to new indices that TVM takes; raise IndexMapError."""
        try:
            tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
            raise IndexMapError(f"{self.text!r} is not a Python expression: {failure}") from None
        return index_map_function(tree)


def index_map_function(tree: ast.expr) -> Callable[..., list[object]]:
    """Return the function of a lambda; raise IndexMapError if it is more than an index map."""
    if not isinstance(tree, ast.Lambda):
        raise _refused(tree, "this is not an index map: write one such as lambda i, j: (j, i)")
    given = tree.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults or given.posonlyargs:
        raise _refused(tree, "an index map takes plain names: write lambda i, j: …")
    names = [argument.arg for argument in given.args]
    is_several = isinstance(tree.body, ast.Tuple | ast.List)
    body: list[ast.expr] = tree.body.elts if is_several else [tree.body]  # type: ignore[attr-defined]
    for each in body:
        _check(each, names)

    def indices(*values: object) -> list[object]:
        known = dict(zip(names, values, strict=True))
        return [_value(each, known) for each in body]

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
    except IndexMapError:
        return None
    return IndexMapText(ast.unparse(ast.parse(text)))


def _check(tree: ast.expr, names: list[str]) -> None:
    match tree:
        case ast.Name(id=name):
            if name not in names:
                raise _refused(tree, f"{name!r} is not one of its indices, which are {names}")
        case ast.Constant(value=value):
            if type(value) is not int:
                raise _refused(tree, f"{value!r} is not a whole number")
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) not in _OPERATORS:
                raise _refused(tree, "an index map has no operators but + - * // and %")
            _check(left, names)
            _check(right, names)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand, names)
        case _:
            raise _refused(
                tree,
                f"{ast.unparse(tree)!r} is not allowed in an index map: use its indices, whole "
                "numbers, + - * // and %",
            )


def _value(tree: ast.expr, known: Mapping[str, object]) -> object:
    match tree:
        case ast.Name(id=name):
            return known[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, known), _value(right, known))
        case ast.UnaryOp(operand=operand):
            return 0 - _value(operand, known)  # type: ignore[operator]
        case ast.Constant(value=value):
            return value
    raise AssertionError(f"{ast.dump(tree)} was checked")


def _refused(tree: ast.expr, words: str) -> IndexMapError:
    return IndexMapError(words, tree.lineno, tree.col_offset + 1)
