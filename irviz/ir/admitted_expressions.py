"""Expressions of TVMScript: each node of them is one that TVMScript needs, or is refused.

TVM evaluates them by Python's `eval`, with T, R, I and all of Python's builtins at hand, so what
matters is what a name can lead to. Two rules keep that small: names lead to dialects, functions
and values of the text (`Scope`); and text in quotes stands only where a function is given it, so
no variable is ever a string that a later shape would evaluate.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from irviz.ir.arithmetic import Arithmetic
from irviz.ir.dialect import (
    ATTRIBUTES,
    FUNCTIONS,
    LAMBDAS,
    METADATA,
    METHODS,
    SHAPES,
    SIGNATURES,
    may_call,
    may_stand,
    why_not,
)
from irviz.ir.scope import Scope, Text, dotted
from irviz.ir.second_look import look_again

_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_CONTAINERS = (ast.Tuple, ast.List, ast.Dict, ast.ListComp)
_NAMES = {
    "NamedExpr": "an assignment with := ",
    "JoinedStr": "a formatted string",
    "Starred": "a * before an argument",
    "SetComp": "a comprehension of a set",
    "DictComp": "a comprehension of a dictionary",
    "GeneratorExp": "a generator",
    "Set": "a set",
}


class Expressions:
    """Checks expressions of one text; `check` raises RefusedError."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._arithmetic = Arithmetic(text)
        self._kinds: dict[type[ast.expr], Callable[[ast.expr, Scope], None]] = {}
        for kind in (
            *("Attribute", "BinOp", "BoolOp", "Call", "Compare", "Constant", "Dict", "IfExp"),
            *("Lambda", "List", "ListComp", "Name", "Slice", "Subscript", "Tuple", "UnaryOp"),
        ):
            self._kinds[getattr(ast, kind)] = getattr(self, f"_{kind.lower()}")

    def check(self, node: ast.expr, scope: Scope) -> None:
        """Raise RefusedError at the first node that is not admitted."""
        visit = self._kinds.get(type(node))
        if visit is None:
            kind = type(node).__name__
            words = _NAMES.get(kind, f"an expression of the kind {kind}").strip()
            raise self._text.refused(node, f"{words} is refused: TVMScript has none")
        visit(node, scope)

    def _plain(self, scope: Scope, *nodes: ast.expr | None) -> None:
        """Check the parts of an expression that is no list of arguments."""
        inner = scope.saying(False)
        for node in nodes:
            if node is not None:
                self.check(node, inner)

    def _constant(self, node: ast.Constant, scope: Scope) -> None:
        value = node.value
        if isinstance(value, str):
            if not scope.may_say:
                raise self._text.refused(
                    node, "text in quotes is refused here: it may only be given to a function"
                )
            if scope.in_shape:
                self._quoted(node, value, scope)
        elif value is not None and not isinstance(value, bool | int | float):
            raise self._text.refused(
                node, f"a constant of type {type(value).__name__} is refused: TVMScript has none"
            )
        else:
            self._arithmetic.check(node, scope)

    def _quoted(self, node: ast.Constant, value: str, scope: Scope) -> None:
        """Check an expression in quotes, which becomes a part of the text."""
        if not scope.in_signature:
            raise self._text.refused(
                node, "a size in quotes is refused here: only types of parameters have some"
            )
        if scope.in_quotes:
            raise self._text.refused(node, "quotes in quotes are refused: a shape has no text")
        inner = self._text.quoted(node, value)
        look_again(inner)
        Expressions(inner).check(
            inner.expression, replace(scope, in_quotes=True, sure=frozenset(), may_say=False)
        )

    def _name(self, node: ast.Name, scope: Scope) -> None:
        self._text.check_name(node, scope)

    def _tuple(self, node: ast.Tuple | ast.List, scope: Scope) -> None:
        for element in node.elts:
            self.check(element, scope)

    _list = _tuple

    def _dict(self, node: ast.Dict, scope: Scope) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise self._text.refused(node, "a ** in a dictionary is refused")
            self.check(key, scope)
            self.check(value, scope)

    def _binop(self, node: ast.BinOp, scope: Scope) -> None:
        for side in (node.left, node.right):
            if isinstance(side, _CONTAINERS) or (
                isinstance(side, ast.Attribute) and side.attr in ("shape", "strides")
            ):
                raise self._text.refused(
                    side, "arithmetic with a list is refused: TVMScript has it with numbers"
                )
        if isinstance(node.op, ast.MatMult):
            raise self._text.refused(node, "the operator @ is refused: write R.matmul")
        self._plain(scope, node.left, node.right)
        self._arithmetic.check(node, scope)

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> None:
        self._plain(scope, node.operand)

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> None:
        self._plain(scope, *node.values)

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> None:
        self._plain(scope, node.test, node.body, node.orelse)

    def _compare(self, node: ast.Compare, scope: Scope) -> None:
        for operator in node.ops:
            if not isinstance(operator, _COMPARISONS):
                raise self._text.refused(node, "`in` and `is` are refused: TVMScript has == and <")
        self._plain(scope, node.left, *node.comparators)

    def _slice(self, node: ast.Slice, scope: Scope) -> None:
        self._plain(scope, node.lower, node.upper, node.step)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> None:
        if self._is_metadata(node):
            return
        if isinstance(node.value, ast.Name | ast.Subscript | ast.Tuple | ast.Attribute | ast.Call):
            self._plain(scope, node.value, node.slice)
            return
        self._plain(scope, node.value)  # what is in it may be the better reason
        raise self._text.refused(node, "an index of this is refused: only variables have one")

    def _is_metadata(self, node: ast.Subscript) -> bool:
        """Tell whether it is such as `metadata["ir.GenericConst"][0]`, of a kind that is known."""
        match node:
            case ast.Subscript(
                value=ast.Subscript(value=ast.Name(id="metadata"), slice=ast.Constant(value=kind)),
                slice=ast.Constant(value=int()),
            ):
                return self._text.has_metadata and kind in METADATA
            case _:
                return False

    def _attribute(self, node: ast.Attribute, scope: Scope) -> None:
        root, path = dotted(node)
        if root in FUNCTIONS:
            if not may_stand(root, path):
                raise self._text.refused(node, why_not(root, path))
        elif self._text.is_module(node.value):
            self._text.check_function(node)
        elif isinstance(node.value, ast.Name):
            self._text.check_name(node.value, scope)
            if node.attr not in ATTRIBUTES:
                raise self._unknown(node, scope)
        else:
            raise self._unknown(node, scope)

    def _unknown(self, node: ast.Attribute, scope: Scope) -> Exception:
        self._plain(scope, node.value)  # what is in it may be the better reason
        if node.attr.startswith("_"):
            return self._text.refused(
                node, f"the attribute {node.attr} is refused: it begins with an underscore"
            )
        return self._text.refused(
            node,
            f"the attribute {node.attr} is refused: TVMScript needs none but "
            + ", ".join(sorted(ATTRIBUTES | METHODS)),
        )

    def _call(self, node: ast.Call, scope: Scope) -> None:
        name = self._callee(node, scope)
        inner = scope.saying(name != "")  # a variable may be R.Tensor, which evaluates text
        if name not in SIGNATURES:  # else TVM evaluates a size in quotes where it knows no names
            inner = inner.signing(False)
        shape = SHAPES.get(name)
        for i, argument in enumerate(node.args):
            is_shape = shape is not None and i == 0
            self._argument(name, argument, inner.shaping() if is_shape else inner)
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg.startswith("_"):
                raise self._text.refused(
                    keyword.value, "** and arguments that begin with an underscore are refused"
                )
            is_shape = keyword.arg == shape
            self._argument(name, keyword.value, inner.shaping() if is_shape else inner)

    def _argument(self, name: str, node: ast.expr, scope: Scope) -> None:
        if isinstance(node, ast.Lambda) and name in LAMBDAS:
            names = self._parameters(node)
            self._plain(scope.with_sure(names), node.body)
        else:
            self.check(node, scope)

    def _callee(self, node: ast.Call, scope: Scope) -> str:
        """Check what is called; return its name where that is a function of a dialect."""
        function = node.func
        if isinstance(function, ast.Name):
            if not self._text.may_call(function.id, scope) or scope.in_quotes:
                raise self._text.refused(
                    function,
                    f"a call of {function.id} is refused: TVMScript calls only functions of "
                    "T, R and I and those of the text",
                )
            self._text.check_name(function, scope)
            return ""
        if not isinstance(function, ast.Attribute):
            self._plain(scope, function)  # what is in it may be the better reason
            raise self._text.refused(function, "a call of what is no name is refused")
        root, path = dotted(function)
        if root in FUNCTIONS:
            if not may_call(root, path):
                raise self._text.refused(function, why_not(root, path))
            return f"{root}.{path}"
        self._method(function, scope)
        return ""

    def _method(self, function: ast.Attribute, scope: Scope) -> None:
        if self._text.is_module(function.value):
            self._text.check_function(function)
        elif isinstance(function.value, ast.Name) and function.attr in METHODS:
            self._text.check_name(function.value, scope)
        else:
            raise self._unknown(function, scope)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> None:  # noqa: ARG002 - as all of these
        wanted = " and ".join(sorted(LAMBDAS))
        raise self._text.refused(node, f"a lambda is refused: only {wanted} are given one")

    def _parameters(self, node: ast.Lambda) -> list[str]:
        return self._text.parameters(node, node.args)

    def _listcomp(self, node: ast.ListComp, scope: Scope) -> None:
        inner = scope.saying(False)
        for part in node.generators:
            times = self._arithmetic.times(part, inner)
            assert isinstance(part.iter, ast.Call), "it is a call of range"
            self._plain(inner, *part.iter.args)
            if not isinstance(part.target, ast.Name):
                raise self._text.refused(part.target, "this name of a comprehension is refused")
            inner = inner.repeated(part.target.id, times)
            self._text.bind(part.target, part.target.id)
            self._arithmetic.check_times(node, inner)
            self._plain(inner, *part.ifs)
        self.check(node.elt, inner)
