"""Admit the expressions of TVMScript: a node that TVMScript does not need is refused.

TVM evaluates expressions by Python's `eval`, with T, R, I and all builtins in reach, so what counts
is what a name can lead to. Two rules restrict that. A name leads to a dialect, or to a function or
a value of the text (`TextScope`). A string is admitted only as an argument of a function, so no
variable holds a string that a later shape would evaluate.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from irviz.loaders.tvmscript.audit import audit_text
from irviz.loaders.tvmscript.dialect import (
    ATTRIBUTES,
    FUNCTIONS,
    LAMBDAS,
    METADATA,
    METHODS,
    SHAPES,
    SIGNATURES,
    may_call,
    may_reference,
    refusal_reason,
)
from irviz.loaders.tvmscript.number_bounds import NumberBounds
from irviz.loaders.tvmscript.text_scope import SourceText, TextScope, dotted

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
    """Checks the expressions of one text."""

    def __init__(self, text: SourceText) -> None:
        self._text = text
        self._bounds = NumberBounds(text)
        self._checks: dict[type[ast.expr], Callable[..., None]] = {
            ast.Attribute: self._attribute,
            ast.BinOp: self._binop,
            ast.BoolOp: self._boolop,
            ast.Call: self._call,
            ast.Compare: self._compare,
            ast.Constant: self._constant,
            ast.Dict: self._dict,
            ast.IfExp: self._ifexp,
            ast.Lambda: self._lambda,
            ast.List: self._tuple,
            ast.ListComp: self._listcomp,
            ast.Name: self._text.check_name,
            ast.Slice: self._slice,
            ast.Subscript: self._subscript,
            ast.Tuple: self._tuple,
            ast.UnaryOp: self._unaryop,
        }

    def check(self, node: ast.expr, scope: TextScope) -> None:
        """Raise RefusedError for the first node that is not admitted."""
        visit = self._checks.get(type(node))
        if visit is None:
            kind = type(node).__name__
            words = _NAMES.get(kind, f"an expression of the kind {kind}").strip()
            raise self._text.refused(node, f"{words} is refused: TVMScript does not have it")
        visit(node, scope)

    def _check_parts(self, scope: TextScope, *nodes: ast.expr | None) -> None:
        """Check parts of an expression in which strings are not admitted."""
        inner = scope.with_strings(False)
        for node in nodes:
            if node is not None:
                self.check(node, inner)

    def _constant(self, node: ast.Constant, scope: TextScope) -> None:
        value = node.value
        if isinstance(value, str):
            if not scope.allows_strings:
                raise self._text.refused(
                    node, "a string is refused here: only functions take strings"
                )
            if scope.in_shape:
                self._string_in_shape(node, value, scope)
        elif value is not None and not isinstance(value, bool | int | float):
            raise self._text.refused(
                node, f"a constant of type {type(value).__name__} is refused: TVMScript has none"
            )
        else:
            self._bounds.check(node, scope)

    def _string_in_shape(self, node: ast.Constant, value: str, scope: TextScope) -> None:
        """Check a string in a shape, which TVM evaluates as an expression."""
        if not scope.in_signature:
            raise self._text.refused(
                node, "a size in quotes is refused here: only the types of parameters have them"
            )
        if scope.in_string:
            raise self._text.refused(node, "a string inside a string is refused: a shape has none")
        inner = self._text.parse_string(node, value)
        audit_text(inner)
        Expressions(inner).check(
            inner.expression,
            replace(scope, in_string=True, bound=frozenset(), allows_strings=False),
        )

    def _tuple(self, node: ast.Tuple | ast.List, scope: TextScope) -> None:
        for element in node.elts:
            self.check(element, scope)

    def _dict(self, node: ast.Dict, scope: TextScope) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise self._text.refused(node, "a ** in a dictionary is refused")
            self.check(key, scope)
            self.check(value, scope)

    def _binop(self, node: ast.BinOp, scope: TextScope) -> None:
        for side in (node.left, node.right):
            if isinstance(side, _CONTAINERS) or (
                isinstance(side, ast.Attribute) and side.attr in ("shape", "strides")
            ):
                raise self._text.refused(
                    side,
                    "arithmetic with a list is refused: TVMScript calculates with numbers only",
                )
        if isinstance(node.op, ast.MatMult):
            raise self._text.refused(node, "the operator @ is refused: write R.matmul")
        self._check_parts(scope, node.left, node.right)
        self._bounds.check(node, scope)

    def _unaryop(self, node: ast.UnaryOp, scope: TextScope) -> None:
        self._check_parts(scope, node.operand)

    def _boolop(self, node: ast.BoolOp, scope: TextScope) -> None:
        self._check_parts(scope, *node.values)

    def _ifexp(self, node: ast.IfExp, scope: TextScope) -> None:
        self._check_parts(scope, node.test, node.body, node.orelse)

    def _compare(self, node: ast.Compare, scope: TextScope) -> None:
        for operator in node.ops:
            if not isinstance(operator, _COMPARISONS):
                raise self._text.refused(node, "`in` and `is` are refused: TVMScript has == and <")
        self._check_parts(scope, node.left, *node.comparators)

    def _slice(self, node: ast.Slice, scope: TextScope) -> None:
        self._check_parts(scope, node.lower, node.upper, node.step)

    def _subscript(self, node: ast.Subscript, scope: TextScope) -> None:
        if self._is_metadata(node):
            return
        if isinstance(node.value, ast.Name | ast.Subscript | ast.Tuple | ast.Attribute | ast.Call):
            self._check_parts(scope, node.value, node.slice)
            return
        self._check_parts(scope, node.value)  # an error inside it may give a better reason
        raise self._text.refused(node, "an index of this is refused: only variables have indices")

    def _is_metadata(self, node: ast.Subscript) -> bool:
        """Tell whether a node is like `metadata["ir.GenericConst"][0]`, of an admitted kind."""
        match node:
            case ast.Subscript(
                value=ast.Subscript(value=ast.Name(id="metadata"), slice=ast.Constant(value=kind)),
                slice=ast.Constant(value=int()),
            ):
                return self._text.has_metadata and kind in METADATA
            case _:
                return False

    def _attribute(self, node: ast.Attribute, scope: TextScope) -> None:
        root, path = dotted(node)
        if root in FUNCTIONS:
            if not may_reference(root, path):
                raise self._text.refused(node, refusal_reason(root, path))
        elif self._text.is_module(node.value):
            self._text.check_function(node)
        elif isinstance(node.value, ast.Name):
            self._text.check_name(node.value, scope)
            if node.attr not in ATTRIBUTES:
                raise self._refuse_attribute(node, scope)
        else:
            raise self._refuse_attribute(node, scope)

    def _refuse_attribute(self, node: ast.Attribute, scope: TextScope) -> Exception:
        self._check_parts(scope, node.value)  # an error inside it may give a better reason
        if node.attr.startswith("_"):
            return self._text.refused(
                node, f"the attribute {node.attr} is refused: it begins with an underscore"
            )
        return self._text.refused(
            node,
            f"the attribute {node.attr} is refused: TVMScript needs none but "
            + ", ".join(sorted(ATTRIBUTES | METHODS)),
        )

    def _call(self, node: ast.Call, scope: TextScope) -> None:
        name = self._callee(node, scope)
        inner = scope.with_strings(
            name != ""
        )  # a variable may be R.Tensor, which evaluates strings
        if (
            name not in SIGNATURES
        ):  # elsewhere TVM evaluates a size in quotes without the names of the text
            inner = inner.with_signature(False)
        shape = SHAPES.get(name)
        for i, argument in enumerate(node.args):
            is_shape = shape is not None and i == 0
            self._argument(name, argument, inner.inside_shape() if is_shape else inner)
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg.startswith("_"):
                raise self._text.refused(
                    keyword.value, "** and arguments that begin with an underscore are refused"
                )
            is_shape = keyword.arg == shape
            self._argument(name, keyword.value, inner.inside_shape() if is_shape else inner)

    def _argument(self, name: str, node: ast.expr, scope: TextScope) -> None:
        if isinstance(node, ast.Lambda) and name in LAMBDAS:
            names = self._text.parameters(node, node.args)
            self._check_parts(scope.with_bound(names), node.body)
        else:
            self.check(node, scope)

    def _callee(self, node: ast.Call, scope: TextScope) -> str:
        """Check a callee; return its name if it is a function of a dialect, or ""."""
        function = node.func
        if isinstance(function, ast.Name):
            if not self._text.may_call(function.id, scope) or scope.in_string:
                raise self._text.refused(
                    function,
                    f"a call of {function.id} is refused: TVMScript calls only functions of "
                    "T, R and I and of the text itself",
                )
            self._text.check_name(function, scope)
            return ""
        if not isinstance(function, ast.Attribute):
            self._check_parts(scope, function)  # an error inside it may give a better reason
            raise self._text.refused(
                function, "a call of an expression is refused: TVMScript calls names"
            )
        root, path = dotted(function)
        if root in FUNCTIONS:
            if not may_call(root, path):
                raise self._text.refused(function, refusal_reason(root, path))
            return f"{root}.{path}"
        self._method(function, scope)
        return ""

    def _method(self, function: ast.Attribute, scope: TextScope) -> None:
        if self._text.is_module(function.value):
            self._text.check_function(function)
        elif isinstance(function.value, ast.Name) and function.attr in METHODS:
            self._text.check_name(function.value, scope)
        else:
            raise self._refuse_attribute(function, scope)

    def _lambda(self, node: ast.Lambda, scope: TextScope) -> None:  # noqa: ARG002 - as all of these
        names = " and ".join(sorted(LAMBDAS))
        raise self._text.refused(node, f"a lambda is refused: only {names} take one")

    def _listcomp(self, node: ast.ListComp, scope: TextScope) -> None:
        inner = scope.with_strings(False)
        for part in node.generators:
            repeats = self._bounds.repeats(part, inner)
            assert isinstance(part.iter, ast.Call), "it is a call of range"
            self._check_parts(inner, *part.iter.args)
            if not isinstance(part.target, ast.Name):
                raise self._text.refused(
                    part.target, "this target of a comprehension is refused: it is one name"
                )
            inner = inner.repeated(part.target.id, repeats)
            self._text.bind(part.target, part.target.id)
            self._bounds.check_repeats(node, inner)
            self._check_parts(inner, *part.ifs)
        self.check(node.elt, inner)
