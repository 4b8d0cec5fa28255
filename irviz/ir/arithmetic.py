"""How large the numbers of a text can become, while it is read.

What stands in a text as numbers is worked out by Python, whose whole numbers have no limit, so
that a line of it could fill the memory.
"""

from __future__ import annotations

import ast

from irviz.ir.scope import Scope, Text

MAX_NUMBER = 2**128
"""More than any type of TVM holds."""
MAX_TIMES = 10_000
"""How often the element of a comprehension is made, with those around it."""
_MAX_EXPONENT = 128


class Arithmetic:
    """Bounds the numbers of one text."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def check(self, node: ast.expr, scope: Scope) -> None:
        """Raise RefusedError where what is worked out may be too large."""
        size = self.size(node, scope)
        if size is not None and size > MAX_NUMBER:
            raise self._text.refused(node, "a number beyond 128 bits is refused: TVM has none")

    def times(self, part: ast.comprehension, scope: Scope) -> int:
        """Return how often a part of a comprehension is done; raise where it is no plain range."""
        match part.iter:
            case ast.Call(func=ast.Name(id="range"), args=[*bounds], keywords=[]) if bounds:
                sizes = [self.size(bound, scope) for bound in bounds]
                if not part.is_async and len(bounds) <= 3 and None not in sizes:
                    return max((size for size in sizes if size is not None), default=0) * 2
        raise self._text.refused(
            part.iter, "a comprehension over this is refused: it may go over a range of numbers"
        )

    def check_times(self, node: ast.expr, scope: Scope) -> None:
        """Raise RefusedError where a comprehension is done too often."""
        if scope.times > MAX_TIMES:
            raise self._text.refused(
                node, f"a comprehension of more than {MAX_TIMES // 2:,} elements is refused"
            )

    def size(self, node: ast.expr, scope: Scope) -> int | None:
        """Return what a number is at most, without its sign; None for what is no Python number."""
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

    def _largest(self, nodes: list[ast.expr], scope: Scope) -> int | None:
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
                raise self._text.refused(node, "a number beyond 128 bits is refused: TVM has none")
            return left << right
        if isinstance(operator, ast.Mult):
            return left * right
        return left + right
