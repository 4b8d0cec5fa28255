"""Admit GPU layouts and instructions, whose arguments have a syntax of their own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from irviz.loaders.tvmscript.dialect import PLACED
from irviz.loaders.tvmscript.gpu_dialect import (
    EXTENTS,
    MAX_EXTENTS,
    MAX_SWIZZLE,
    PTX_OPERANDS,
    PTX_SINK,
    is_ptx_word,
)
from irviz.loaders.tvmscript.source_text import TextScope, dotted

Check = Callable[[ast.expr, TextScope], None]
"""Checks any other expression; raises RefusedError."""

INSTRUCTION = "T.ptx"
"""Stands for the name of an instruction of PTX."""
_NUMBERS = (ast.Attribute, ast.BinOp, ast.Call, ast.Constant, ast.Name, ast.Subscript, ast.UnaryOp)
_CALLED = (ast.Attribute, ast.Call, ast.Name, ast.Subscript)


def _tile_layout(node: ast.Call, scope: TextScope, check: Check) -> None:
    """Check `T.TileLayout(T.S[(8, 4) : (4, 1)] + T.R[2 : 1] + 2 @ Axis.laneid)`."""
    inner = scope.having(allows_strings=False)
    match node:
        case ast.Call(args=[layout], keywords=[]) if _layout_parts(layout, inner, check):
            return
    raise scope.text.refused(
        node, "this layout is refused: write T.TileLayout(T.S[(8, 4) : (4, 1)])"
    )


def _layout_parts(node: ast.expr, scope: TextScope, check: Check) -> bool:
    """Check the sum that a layout is made of; return False for another expression."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _layout_parts(left, scope, check) and (
                _layout_parts(right, scope, check) or _offset(right, scope, check)
            )
        case ast.Subscript(value=value, slice=index) if ".".join(dotted(value)) in EXTENTS:
            match index:
                case ast.Slice(lower=ast.expr() as extents, upper=ast.expr() as strides, step=None):
                    _extents(extents, scope, check)
                    _extents(strides, scope, check)
                case ast.Slice():
                    return False
                case _:
                    _extents(index, scope, check)
            return True
    return False


def _offset(node: ast.expr, scope: TextScope, check: Check) -> bool:
    """Check a number, or a sum of numbers, which may be on axes, as `4 @ Axis.laneid`."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _offset(left, scope, check) and _offset(right, scope, check)
        case ast.BinOp(left=number, op=ast.MatMult(), right=axis):
            is_axis = ".".join(dotted(axis)) in PLACED and dotted(axis)[0] == "Axis"
            return is_axis and _offset(number, scope, check)
    check(node, scope)
    return isinstance(node, _NUMBERS) and not scope.text.may_be_tuple(node)


def _extents(node: ast.expr, scope: TextScope, check: Check) -> None:
    """Check the extents or the strides of a layout: a tuple, as a variable may be a long list."""
    if isinstance(node, _CALLED):
        raise scope.text.refused(node, "this is refused in a layout: write a tuple of numbers")
    numbers = node.elts if isinstance(node, ast.Tuple) else [node]
    if len(numbers) > MAX_EXTENTS:
        raise scope.text.refused(
            node, f"a layout of more than {MAX_EXTENTS} extents is refused: TVM multiplies them"
        )
    for number in numbers:
        if not _offset(number, scope, check):
            raise scope.text.refused(number, "this is refused in a layout: write a number")


def _compose_layout(node: ast.Call, scope: TextScope, check: Check) -> None:
    """Check `T.ComposeLayout(3, 3, 3, T.TileLayout(...))`: sizes are powers of its numbers."""
    numbers, layouts = node.args[:3], node.args[3:]
    values = [one.value if isinstance(one, ast.Constant) else None for one in numbers]
    is_plain = len(numbers) == 3 and len(layouts) == 1
    is_plain &= all(isinstance(value, int) and 0 <= value <= MAX_SWIZZLE for value in values)
    if not is_plain or any(one.arg != "swizzle_inner" for one in node.keywords):
        raise scope.text.refused(
            node,
            "this layout is refused: write T.ComposeLayout(3, 3, 3, T.TileLayout(T.S[8, 4])), "
            f"with numbers to {MAX_SWIZZLE}",
        )
    for one in (*layouts, *(keyword.value for keyword in node.keywords)):
        check(one, scope.having(allows_strings=False))


def _instruction(node: ast.Call, scope: TextScope, check: Check) -> None:
    """Check an instruction of PTX: the words after its operands are those that TVM prints."""
    if any(keyword.arg not in ("pred", "preserve_dst") for keyword in node.keywords):
        raise scope.text.refused(node, "this argument is refused: an instruction has only pred=")
    inner = scope.having(allows_strings=False)
    for operand in (*node.args, *(keyword.value for keyword in node.keywords)):
        match operand:
            case ast.Constant(value=str() as word) if is_ptx_word(word):
                pass
            case ast.Attribute() if ".".join(dotted(operand)) == PTX_SINK:
                pass
            case ast.Call(func=ast.Attribute() as function, keywords=[]) if (
                ".".join(dotted(function)) in PTX_OPERANDS
            ):
                for one in operand.args:
                    check(one, inner)
            case _:
                check(operand, inner)


OWN_ARGUMENTS: Mapping[str, Callable[[ast.Call, TextScope, Check], None]] = {
    INSTRUCTION: _instruction,
    "T.ComposeLayout": _compose_layout,
    "T.TileLayout": _tile_layout,
}
"""The functions whose arguments have a syntax of their own."""
