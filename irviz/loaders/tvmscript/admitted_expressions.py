"""Admit the expressions of TVMScript: a node that TVMScript does not need is refused.

TVM evaluates expressions by Python's `eval`, with T, R, I and all builtins in reach, so what counts
is what a name can lead to. Two rules restrict that. A name leads to a dialect, or to a function or
a value of the text (`TextScope`). A string is admitted only as an argument of a function, so no
variable holds a string that a later shape would evaluate.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NoReturn

from irviz.loaders.tvmscript import allowed_names as allowed
from irviz.loaders.tvmscript.admission_recheck import audit_text, is_special_float
from irviz.loaders.tvmscript.names_and_scopes import TextScope, dotted, ptx_instruction

_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_CONTAINERS = (ast.Tuple, ast.List, ast.Dict, ast.ListComp)
_INDEXED = (ast.Name, ast.Subscript, ast.Tuple, ast.Attribute, ast.Call)
_CAST = (ast.BinOp, ast.Call, ast.Compare, ast.Subscript, ast.UnaryOp)
_METHOD = "."
"""The prefix of a method's name where `_callee` returns the name of a callee."""
_WAIT = "T.cuda.wait_until"
_MAX_NUMBER = 2**128
"""Larger than any value that a TVM type can hold."""
_MAX_REPEATS = 10_000
"""The limit on evaluations of a comprehension's element, including nested ones."""
_MAX_EXPONENT = 128
_MAX_INTRINSIC = 2**20
"""LLVM has some ten thousand intrinsics."""
_TOO_LARGE = "a number of more than 128 bits is refused: TVM has none"


def check_expression(node: ast.expr, scope: TextScope) -> None:
    """Raise RefusedError for the first node that is not admitted."""
    if type(node) not in _CHECKS:
        raise scope.text.refused_kind(node)
    _CHECKS[type(node)](node, scope)


def _elements(node: ast.expr, scope: TextScope) -> None:
    """Check the parts of an expression, in which strings are admitted as in the expression."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            check_expression(child, scope)


def _parts(node: ast.expr, scope: TextScope) -> None:
    """Check the parts of an expression in which strings are not admitted."""
    _elements(node, scope.having(allows_strings=False))


def _constant(node: ast.Constant, scope: TextScope) -> None:
    value, refused = node.value, scope.text.refused
    if isinstance(value, str):
        if not scope.allows_strings:
            raise refused(node, "a string is refused here: only functions take strings")
        if scope.in_shape:
            _string_in_shape(node, value, scope)
    elif value is not None and not isinstance(value, bool | int | float):
        kind = type(value).__name__
        raise refused(node, f"a constant of type {kind} is refused: TVMScript has none")
    else:
        _check_number(node, scope)


def _unknown_string(node: ast.expr, scope: TextScope) -> None:
    """Check a string whose text is unknown here: no shape may evaluate it."""
    if scope.in_shape or not scope.allows_strings:
        raise scope.text.refused(node, "a string is refused here: only functions take strings")


def _string_in_shape(node: ast.Constant, value: str, scope: TextScope) -> None:
    """Check a string in a shape, which TVM evaluates as an expression."""
    if not scope.in_signature:
        raise scope.text.refused(
            node, "a size in quotes is refused here: only the types of parameters have them"
        )
    if scope.in_string:
        raise scope.text.refused(node, "a string inside a string is refused: a shape has none")
    inner, expression = scope.text.in_string(node, value)
    audit_text(inner)
    check_expression(
        expression,
        replace(scope, text=inner, in_string=True, bound=frozenset(), allows_strings=False),
    )


def _dict(node: ast.Dict, scope: TextScope) -> None:
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise scope.text.refused(node, "a ** in a dictionary is refused")
        check_expression(key, scope)
        check_expression(value, scope)


def _binop(node: ast.BinOp, scope: TextScope) -> None:
    for side in (node.left, node.right):
        is_shape = isinstance(side, ast.Attribute) and side.attr in ("shape", "strides")
        if is_shape or isinstance(side, _CONTAINERS):
            raise scope.text.refused(
                side, "arithmetic with a list is refused: TVMScript calculates with numbers only"
            )
    if isinstance(node.op, ast.MatMult):
        raise scope.text.refused(node, "the operator @ is refused: write R.matmul")
    _parts(node, scope)
    _check_number(node, scope)


def _compare(node: ast.Compare, scope: TextScope) -> None:
    if not all(isinstance(operator, _COMPARISONS) for operator in node.ops):
        raise scope.text.refused(node, "`in` and `is` are refused: TVMScript has == and <")
    _parts(node, scope)


def _subscript(node: ast.Subscript, scope: TextScope) -> None:
    match node:
        case ast.Subscript(
            value=ast.Subscript(value=ast.Name(id="metadata"), slice=ast.Constant(value=kind)),
            slice=ast.Constant(value=int()),
        ) if (
            scope.text.has_metadata and kind in allowed.METADATA
        ):  # such as metadata["ir.GenericConst"][0]
            if kind in allowed.METADATA_STRINGS:
                _unknown_string(node, scope)
            return
    if (indexer := _indexer(node.value)) is not None:
        _member(indexer, scope, allowed.INDEXERS)
        if isinstance(node.value, ast.Call):
            _arguments(f"{_METHOD}{indexer.attr}", node.value, scope)
        if _longest([node.slice]) > allowed.MAX_EXTENTS:
            raise scope.text.refused(node, f"more than {allowed.MAX_EXTENTS} indices are refused")
        check_expression(node.slice, scope.having(allows_strings=False))
        return
    if not isinstance(node.value, _INDEXED):
        reason = "an index of this is refused: only variables have indices"
        _refuse(node, node.value, scope, reason)
    _parts(node, scope)


def _indexer(node: ast.expr) -> ast.Attribute | None:
    """Return the method of `A.sub` and the like, which only an index makes a buffer, or None."""
    function = node.func if isinstance(node, ast.Call) else node
    if not isinstance(function, ast.Attribute) or dotted(function)[0] in allowed.FUNCTIONS:
        return None
    return function if function.attr in allowed.INDEXERS else None


def _refuse(node: ast.expr, part: ast.expr, scope: TextScope, reason: str) -> NoReturn:
    """Raise the RefusedError of the part, whose reason is better, or else one with this reason."""
    check_expression(part, scope.having(allows_strings=False))
    raise scope.text.refused(node, reason)


def _attribute(node: ast.Attribute, scope: TextScope) -> None:
    root, path = dotted(node)
    made_by = dotted(node.value.func) if isinstance(node.value, ast.Call) else ("", "")
    if node.attr == "ty" and allowed.has_type(*made_by):
        check_expression(node.value, scope)
    elif root in allowed.FUNCTIONS:
        if not allowed.may_reference(root, path):
            raise scope.text.refused(node, allowed.refusal_reason(root, path))
    else:
        _member(node, scope, allowed.ATTRIBUTES | allowed.TEXT_ATTRIBUTES)
        if node.attr in allowed.TEXT_ATTRIBUTES:
            _unknown_string(node, scope)


def _member(node: ast.Attribute, scope: TextScope, admitted: frozenset[str]) -> None:
    """Check a function of the module, or an attribute or a method of a variable."""
    of_view = node.attr in allowed.VIEWS | allowed.INDEXERS and _is_view(node.value)
    of_cast = node.attr == "astype" and isinstance(node.value, _CAST)
    if scope.text.is_module(node.value):
        if not scope.text.is_function(node):
            reason = f"{node.attr} is refused: the module has no such function"
            raise scope.text.refused(node, reason)
    elif isinstance(node.value, ast.Name) and node.attr in admitted:
        scope.check_name(node.value)
    elif node.attr in admitted and (of_view or of_cast):
        check_expression(node.value, scope.having(allows_strings=False))
    elif node.attr.startswith("_"):
        reason = f"the attribute {node.attr} is refused: it begins with an underscore"
        _refuse(node, node.value, scope, reason)
    else:
        reason = f"the attribute {node.attr} is refused: TVMScript needs none but "
        _refuse(
            node,
            node.value,
            scope,
            reason + ", ".join(sorted(allowed.ATTRIBUTES | allowed.METHODS)),
        )


def _is_view(node: ast.expr) -> bool:
    """Tell whether an expression derives a buffer from a buffer: `A.view(4, 4)` or `A.sub[0]`."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) as function):
            return name in allowed.VIEWS and dotted(function)[0] not in allowed.FUNCTIONS
        case ast.Subscript(value=value):
            return _indexer(value) is not None
    return False


def _call(node: ast.Call, scope: TextScope) -> None:
    if is_special_float(node):
        return
    name = _callee(node.func, scope)
    if name in OWN_ARGUMENTS:
        OWN_ARGUMENTS[name](node, scope)
        return
    if name in allowed.PTX_OPERANDS:
        reason = "it marks an operand of an instruction"
        raise scope.text.refused(node, f"{name} is refused here: {reason}")
    if name == _WAIT:
        _wait(node, scope)
    _arguments(name, node, scope)


def _arguments(name: str, node: ast.Call, scope: TextScope) -> None:
    """Check the arguments of a function of TVM, of a method, or of the text's own."""
    if name.startswith(_METHOD) and _longest(node.args) > allowed.MAX_EXTENTS:
        raise scope.text.refused(
            node,
            f"more than {allowed.MAX_EXTENTS} sizes of a view are refused: TVM multiplies them",
        )
    # A variable may be R.Tensor, which evaluates strings. Outside the types of parameters TVM
    # evaluates a size in quotes without the names of the text. R.Tuple in a shape calls its parts.
    inner = scope.having(
        allows_strings=name != "" and not name.startswith(_METHOD),
        in_signature=scope.in_signature and name in allowed.SIGNATURES and not scope.in_shape,
    )
    shape = allowed.SHAPES.get(name)
    for index, argument in enumerate(node.args):
        if isinstance(argument, ast.Starred) and name == "T.grid":
            _sizes(argument, inner)
            continue
        is_shape = shape is not None and index == 0
        _argument(name, argument, inner.having(in_shape=inner.in_shape or is_shape))
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg.startswith("_"):
            raise scope.text.refused(
                keyword.value, "** and arguments that begin with an underscore are refused"
            )
        is_shape = keyword.arg == shape
        _argument(name, keyword.value, inner.having(in_shape=inner.in_shape or is_shape))


def _longest(nodes: list[ast.expr]) -> int:
    """Return the length of the longest list in `nodes`, counting `nodes` itself."""
    parts = [part for node in nodes for part in ast.walk(node)]
    lists = [part.elts for part in parts if isinstance(part, ast.Tuple | ast.List)]
    return max(map(len, [nodes, *lists]))


def _sizes(node: ast.Starred, scope: TextScope) -> None:
    """Check `*A.shape`, the sizes of a variable."""
    if not (isinstance(node.value, ast.Attribute) and node.value.attr == "shape"):
        raise scope.text.refused(node, "a * before this is refused: T.grid takes it before a shape")
    check_expression(node.value, scope)


def _argument(function: str, node: ast.expr, scope: TextScope) -> None:
    if isinstance(node, ast.Lambda) and function in allowed.LAMBDAS:
        names = scope.text.parameters(node, node.args)
        ranges = {name: count for name, count in scope.ranges.items() if name not in names}
        inner = scope.with_bound(names).having(ranges=ranges)
        check_expression(node.body, inner.having(allows_strings=False))
    elif function.startswith(_METHOD) and isinstance(node, ast.Attribute):  # x.astype(y.dtype)
        check_expression(node, scope.having(allows_strings=True))
    elif not _is_word(function, node):
        check_expression(node, scope)


def _is_word(function: str, node: ast.expr) -> bool:
    """Tell whether an argument is a string that stands for itself, such as a data type."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return False
    if function.startswith(_METHOD):
        words = allowed.REARRANGEMENT if function == ".rearrange" else allowed.METHOD_WORD
        return words.fullmatch(node.value) is not None
    return function == "R.Tensor" and allowed.is_dtype(
        node.value
    )  # R.Tensor("float32") has no sizes


def _callee(node: ast.expr, scope: TextScope) -> str:
    """Check a callee; return the name of a function of TVM, ".name" of a method, or "".

    The text's own functions have the name "".
    """
    if isinstance(node, ast.Name):
        if not scope.may_call(node) or scope.in_string:
            raise scope.text.refused(
                node,
                f"a call of {node.id} is refused: TVMScript calls only functions of T, R and I "
                "and of the text itself",
            )
        scope.check_name(node)
        return ""
    if isinstance(node, ast.Subscript) and dotted(node.value) == ("T", "ptx"):
        if ptx_instruction(node) is None:
            raise scope.text.refused(node, "this is refused: it is not a PTX instruction")
        return INSTRUCTION
    if not isinstance(node, ast.Attribute):
        _refuse(node, node, scope, "a call of an expression is refused: TVMScript calls names")
    root, path = dotted(node)
    if root == "tvm" and path in allowed.TVM_CALLS:
        return f"tvm.{path}"
    if root not in allowed.FUNCTIONS:
        _member(node, scope, allowed.METHODS)
        return "" if scope.text.is_module(node.value) else f"{_METHOD}{node.attr}"
    if not allowed.may_call(root, path):
        raise scope.text.refused(node, allowed.refusal_reason(root, path))
    return INSTRUCTION if root == "T" and allowed.is_ptx(path) else f"{root}.{path}"


def _wait(node: ast.Call, scope: TextScope) -> None:
    """Check a wait: its lambda gets the first argument, so that must not be a string."""
    named = [keyword.value for keyword in node.keywords if keyword.arg == "dst"]
    for one in (*node.args[:1], *named):
        check_expression(one, scope.having(allows_strings=False))


def _lambda(node: ast.Lambda, scope: TextScope) -> None:
    names = " and ".join(sorted(name for name in allowed.LAMBDAS if not name.endswith(".select")))
    raise scope.text.refused(node, f"a lambda is refused: only {names} and T.tile.select take one")


def _listcomp(node: ast.ListComp, scope: TextScope) -> None:
    inner = scope.having(allows_strings=False)
    for part in node.generators:
        count = _range_bound(part, inner)
        assert isinstance(part.iter, ast.Call), "it is a call of range"
        for argument in part.iter.args:
            check_expression(argument, inner)
        if not isinstance(part.target, ast.Name):
            raise scope.text.refused(
                part.target, "this target of a comprehension is refused: it is one name"
            )
        name = scope.text.bind(part.target, part.target.id)
        inner = replace(
            inner.with_bound([name]),
            repeats=inner.repeats * max(count, 1),
            ranges={**inner.ranges, name: count},
        )
        if inner.repeats > _MAX_REPEATS:
            raise scope.text.refused(
                node, f"a comprehension of more than {_MAX_REPEATS // 2:,} elements is refused"
            )
        for condition in part.ifs:
            check_expression(condition, inner)
    check_expression(node.elt, inner)


def _check_number(node: ast.expr, scope: TextScope) -> None:
    """Raise RefusedError if a value may be too large."""
    if isinstance(node, ast.BinOp) and scope.text.may_be_tuple(node):
        raise scope.text.refused(
            node, "arithmetic with a tuple is refused: TVMScript calculates with numbers only"
        )
    if (_bound(node, scope) or 0) > _MAX_NUMBER:
        raise scope.text.refused(node, _TOO_LARGE)


def _range_bound(part: ast.comprehension, scope: TextScope) -> int:
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
        power: int = min(left, _MAX_NUMBER) ** right
        return power
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.LShift):
        if right > _MAX_EXPONENT:
            raise scope.text.refused(node, _TOO_LARGE)
        return left << right
    return left * right if isinstance(node.op, ast.Mult) else left + right


_CHECKS: Mapping[type[ast.expr], Callable[..., None]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _binop,
    ast.BoolOp: _parts,
    ast.Call: _call,
    ast.Compare: _compare,
    ast.Constant: _constant,
    ast.Dict: _dict,
    ast.IfExp: _parts,
    ast.Lambda: _lambda,
    ast.List: _elements,
    ast.ListComp: _listcomp,
    ast.Name: lambda node, scope: scope.check_name(node),
    ast.Slice: _parts,
    ast.Subscript: _subscript,
    ast.Tuple: _elements,
    ast.UnaryOp: _parts,
}


# --- Admit GPU layouts and instructions, whose arguments have a syntax of their own --------------


INSTRUCTION = "T.ptx"
"""Stands for the name of an instruction of PTX."""
_NUMBERS = (ast.Attribute, ast.BinOp, ast.Call, ast.Constant, ast.Name, ast.Subscript, ast.UnaryOp)
_CALLED = (ast.Attribute, ast.Call, ast.Name, ast.Subscript)


def _tile_layout(node: ast.Call, scope: TextScope) -> None:
    """Check `T.TileLayout(T.S[(8, 4) : (4, 1)] + T.R[2 : 1] + 2 @ Axis.laneid)`."""
    inner = scope.having(allows_strings=False)
    match node:
        case ast.Call(args=[layout], keywords=[]) if _layout_parts(layout, inner):
            return
    raise scope.text.refused(
        node, "this layout is refused: write T.TileLayout(T.S[(8, 4) : (4, 1)])"
    )


def _layout_parts(node: ast.expr, scope: TextScope) -> bool:
    """Check the sum that a layout is made of; return False for another expression."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _layout_parts(left, scope) and (
                _layout_parts(right, scope) or _offset(right, scope)
            )
        case ast.Subscript(value=value, slice=index) if ".".join(dotted(value)) in allowed.EXTENTS:
            match index:
                case ast.Slice(lower=ast.expr() as extents, upper=ast.expr() as strides, step=None):
                    _extents(extents, scope)
                    _extents(strides, scope)
                case ast.Slice():
                    return False
                case _:
                    _extents(index, scope)
            return True
    return False


def _offset(node: ast.expr, scope: TextScope) -> bool:
    """Check a number, or a sum of numbers, which may be on axes, as `4 @ Axis.laneid`."""
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _offset(left, scope) and _offset(right, scope)
        case ast.BinOp(left=number, op=ast.MatMult(), right=axis):
            is_axis = ".".join(dotted(axis)) in allowed.PLACED and dotted(axis)[0] == "Axis"
            return is_axis and _offset(number, scope)
    check_expression(node, scope)
    return isinstance(node, _NUMBERS) and not scope.text.may_be_tuple(node)


def _extents(node: ast.expr, scope: TextScope) -> None:
    """Check the extents or the strides of a layout: a tuple, as a variable may be a long list."""
    if isinstance(node, _CALLED):
        raise scope.text.refused(node, "this is refused in a layout: write a tuple of numbers")
    numbers = node.elts if isinstance(node, ast.Tuple) else [node]
    if len(numbers) > allowed.MAX_EXTENTS:
        raise scope.text.refused(
            node,
            f"a layout of more than {allowed.MAX_EXTENTS} extents is refused: TVM multiplies them",
        )
    for number in numbers:
        if not _offset(number, scope):
            raise scope.text.refused(number, "this is refused in a layout: write a number")


def _compose_layout(node: ast.Call, scope: TextScope) -> None:
    """Check `T.ComposeLayout(3, 3, 3, T.TileLayout(...))`: sizes are powers of its numbers."""
    numbers, layouts = node.args[:3], node.args[3:]
    values = [one.value if isinstance(one, ast.Constant) else None for one in numbers]
    is_plain = len(numbers) == 3 and len(layouts) == 1
    is_plain &= all(
        isinstance(value, int) and 0 <= value <= allowed.MAX_SWIZZLE for value in values
    )
    if not is_plain or any(one.arg != "swizzle_inner" for one in node.keywords):
        raise scope.text.refused(
            node,
            "this layout is refused: write T.ComposeLayout(3, 3, 3, T.TileLayout(T.S[8, 4])), "
            f"with numbers to {allowed.MAX_SWIZZLE}",
        )
    for one in (*layouts, *(keyword.value for keyword in node.keywords)):
        check_expression(one, scope.having(allows_strings=False))


def _instruction(node: ast.Call, scope: TextScope) -> None:
    """Check an instruction of PTX: the words after its operands are those that TVM prints."""
    if any(keyword.arg not in ("pred", "preserve_dst") for keyword in node.keywords):
        raise scope.text.refused(node, "this argument is refused: an instruction has only pred=")
    inner = scope.having(allows_strings=False)
    for operand in (*node.args, *(keyword.value for keyword in node.keywords)):
        match operand:
            case ast.Constant(value=str() as word) if allowed.PTX_WORD.fullmatch(word):
                pass
            case ast.Attribute() if ".".join(dotted(operand)) == allowed.PTX_SINK:
                pass
            case ast.Call(func=ast.Attribute() as function, keywords=[]) if (
                ".".join(dotted(function)) in allowed.PTX_OPERANDS
            ):
                for one in operand.args:
                    check_expression(one, inner)
            case _:
                check_expression(operand, inner)


OWN_ARGUMENTS: Mapping[str, Callable[[ast.Call, TextScope], None]] = {
    INSTRUCTION: _instruction,
    "T.ComposeLayout": _compose_layout,
    "T.TileLayout": _tile_layout,
}
"""The functions whose arguments have a syntax of their own."""
