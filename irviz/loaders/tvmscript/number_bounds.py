"""Bound the numbers that parsing a text computes.

Python evaluates arithmetic in a text, and its integers have no limit, so one line could fill the
memory.
"""

from __future__ import annotations

import ast

from irviz.loaders.tvmscript.source_text import TextScope, dotted

MAX_NUMBER = 2**128
"""Larger than any value that a TVM type can hold."""
MAX_REPEATS = 10_000
"""The limit on evaluations of a comprehension's element, including nested ones."""
_MAX_EXPONENT = 128
_MAX_INTRINSIC = 2**20
"""LLVM has some ten thousand intrinsics."""
_SPECIAL_FLOATS = ("inf", "-inf", "nan")
_TOO_LARGE = "a number of more than 128 bits is refused: TVM has none"


def check_number(node: ast.expr, scope: TextScope) -> None:
    """Raise RefusedError if a value may be too large."""
    if isinstance(node, ast.BinOp) and scope.text.may_be_tuple(node):
        raise scope.text.refused(
            node, "arithmetic with a tuple is refused: TVMScript calculates with numbers only"
        )
    if (_bound(node, scope) or 0) > MAX_NUMBER:
        raise scope.text.refused(node, _TOO_LARGE)


def is_special_float(node: ast.Call) -> bool:
    """Tell whether a call is `float("inf")`, `float("-inf")` or `float("nan")`."""
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=value)], keywords=[]):
            return value in _SPECIAL_FLOATS
        case _:
            return False


def repeats(part: ast.comprehension, scope: TextScope) -> int:
    """Return a bound of a comprehension's repeats; raise RefusedError if it is not a range."""
    match part.iter:
        case ast.Call(func=ast.Name(id="range"), args=[*ends], keywords=[]) if ends:
            bounds = [bound for end in ends if (bound := _bound(end, scope)) is not None]
            if not part.is_async and len(bounds) == len(ends) <= 3:
                return max(bounds) * 2
    raise scope.text.refused(
        part.iter, "a comprehension over this is refused: only a range of numbers is admitted"
    )


def _bound(node: ast.expr, scope: TextScope) -> int | None:
    """Return a bound of a number's absolute value, or None if it is not a Python number."""
    match node:
        case ast.Constant(value=bool() | int() as value):
            return abs(int(value))
        case ast.Name(id=name):
            return scope.ranges.get(name)
        case ast.UnaryOp(operand=operand):
            bound = _bound(operand, scope)
            return None if bound is None else bound + 1
        case ast.BinOp():
            return _result_bound(node, scope)
        case ast.IfExp(body=body, orelse=orelse):
            return _largest([body, orelse], scope)
        case ast.BoolOp(values=nodes) | ast.Subscript(value=ast.Tuple(elts=nodes)):
            return _largest(nodes, scope)
        case ast.Compare():
            return 1
        case ast.Call(func=function) if dotted(function) == ("T", "llvm_lookup_intrinsic_id"):
            return _MAX_INTRINSIC
        case _:
            return None


def _largest(nodes: list[ast.expr], scope: TextScope) -> int | None:
    bounds = [bound for node in nodes if (bound := _bound(node, scope)) is not None]
    return max(bounds, default=None)


def _result_bound(node: ast.BinOp, scope: TextScope) -> int | None:
    left, right = _bound(node.left, scope), _bound(node.right, scope)
    if isinstance(node.op, ast.Pow):
        if left is None or right is None or right > _MAX_EXPONENT:
            raise scope.text.refused(
                node, "a power is refused: write T.pow or R.power, or the number itself"
            )
        power: int = min(left, MAX_NUMBER) ** right
        return power
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.LShift):
        if right > _MAX_EXPONENT:
            raise scope.text.refused(node, _TOO_LARGE)
        return left << right
    return left * right if isinstance(node.op, ast.Mult) else left + right
