"""Bound the numbers that parsing a text computes.

Python evaluates arithmetic in a text, and its integers have no limit, so one line could fill the
memory.
"""

from __future__ import annotations

import ast

from irviz.loaders.tvmscript.text_scope import SourceText, TextScope

MAX_NUMBER = 2**128
"""More than any type of TVM can hold."""
MAX_REPEATS = 10_000
"""The limit of evaluations of a comprehension's element, nested ones included."""
_MAX_EXPONENT = 128


class NumberBounds:
    """Bounds the numbers of one text."""

    def __init__(self, text: SourceText) -> None:
        self._text = text

    def check(self, node: ast.expr, scope: TextScope) -> None:
        """Raise RefusedError if the value may be too large."""
        size = self.size(node, scope)
        if size is not None and size > MAX_NUMBER:
            raise self._text.refused(
                node, "a number of more than 128 bits is refused: TVM has none"
            )

    def repeats(self, part: ast.comprehension, scope: TextScope) -> int:
        """Return a bound of a comprehension's repeats; raise RefusedError if it is not a range."""
        match part.iter:
            case ast.Call(func=ast.Name(id="range"), args=[*bounds], keywords=[]) if bounds:
                sizes = [self.size(bound, scope) for bound in bounds]
                if not part.is_async and len(bounds) <= 3 and None not in sizes:
                    return max((size for size in sizes if size is not None), default=0) * 2
        raise self._text.refused(
            part.iter, "a comprehension over this is refused: only a range of numbers is admitted"
        )

    def check_repeats(self, node: ast.expr, scope: TextScope) -> None:
        """Raise RefusedError if a comprehension has too many repeats."""
        if scope.repeats > MAX_REPEATS:
            raise self._text.refused(
                node, f"a comprehension of more than {MAX_REPEATS // 2:,} elements is refused"
            )

    def size(self, node: ast.expr, scope: TextScope) -> int | None:
        """Return a bound of a number's absolute value, or None if it is not a Python number."""
        match node:
            case ast.Constant(value=bool() | int() as value):
                return abs(int(value))
            case ast.Name(id=name):
                return scope.ranges.get(name)
            case ast.UnaryOp(operand=operand):
                size = self.size(operand, scope)
                return None if size is None else size + 1
            case ast.BinOp(left=left, op=operator, right=right):
                return self._result(node, operator, self.size(left, scope), self.size(right, scope))
            case ast.IfExp(body=body, orelse=orelse):
                return self._largest([body, orelse], scope)
            case ast.BoolOp(values=values):
                return self._largest(values, scope)
            case ast.Subscript(value=ast.Tuple(elts=elements)):
                return self._largest(elements, scope)
            case ast.Compare():
                return 1
            case _:
                return None

    def _largest(self, nodes: list[ast.expr], scope: TextScope) -> int | None:
        sizes = [size for node in nodes if (size := self.size(node, scope)) is not None]
        return max(sizes, default=None)

    def _result(
        self, node: ast.expr, operator: ast.operator, left: int | None, right: int | None
    ) -> int | None:
        if isinstance(operator, ast.Pow):
            if left is None or right is None or right > _MAX_EXPONENT:
                raise self._text.refused(
                    node, "a power is refused: write T.pow or R.power, or the number itself"
                )
            power: int = min(left, MAX_NUMBER) ** right
            return power
        if left is None or right is None:
            return None
        if isinstance(operator, ast.LShift):
            if right > _MAX_EXPONENT:
                raise self._text.refused(
                    node, "a number of more than 128 bits is refused: TVM has none"
                )
            return left << right
        if isinstance(operator, ast.Mult):
            return left * right
        return left + right
