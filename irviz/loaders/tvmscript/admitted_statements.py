"""Admit the functions of TVMScript and their statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from irviz.loaders.tvmscript.admitted_expressions import Expressions
from irviz.loaders.tvmscript.dialect import DECORATORS, FUNCTIONS, TYPES
from irviz.loaders.tvmscript.text_scope import RESERVED, SourceText, TextScope, dotted

_TYPES = frozenset(f"R.{name}" for name in TYPES["R"]) | {"R.DTensor", "R.Prim"}
_WORDS = {
    "AsyncFunctionDef": "async",
    "AsyncFor": "async",
    "AsyncWith": "async",
    "ClassDef": "a class in another",
    "Delete": "del",
    "Global": "global",
    "Import": "an import",
    "ImportFrom": "an import",
    "Match": "match",
    "Nonlocal": "nonlocal",
    "Raise": "raise",
    "Try": "try",
    "TryStar": "try",
    "TypeAlias": "a type",
}


class Statements:
    """Checks the functions of one text."""

    def __init__(self, text: SourceText, expressions: Expressions) -> None:
        self._text, self._expressions = text, expressions
        self._checks: dict[type[ast.stmt], Callable[..., TextScope]] = {
            ast.AnnAssign: self._annassign,
            ast.Assert: self._assert,
            ast.Assign: self._assign,
            ast.AugAssign: self._augassign,
            ast.Break: self._unchanged,
            ast.Continue: self._unchanged,
            ast.Expr: self._expr,
            ast.For: self._for,
            ast.FunctionDef: self._functiondef,
            ast.If: self._if,
            ast.Pass: self._unchanged,
            ast.Return: self._return,
            ast.While: self._while,
            ast.With: self._with,
        }

    def function(self, node: ast.FunctionDef, scope: TextScope) -> str:
        """Check a function; return the name of its decorator, such as "T.prim_func"."""
        decorator = self.decorator(node, ("T.prim_func", "R.function"))
        if node.name in RESERVED or node.name.startswith("__"):
            raise self._text.refused(node, f"a function called {node.name} is refused")
        self._check_type_parameters(node)
        names = self._text.parameters(node, node.args)
        for annotation in (*(one.annotation for one in node.args.args), node.returns):
            if annotation is not None:
                self._expressions.check(annotation, scope.with_signature(True))
        self._block(node.body, scope.with_bound(names))
        return decorator

    def decorator(self, node: ast.FunctionDef | ast.ClassDef, wanted: Sequence[str]) -> str:
        """Return the name of the only decorator; raise RefusedError if it is not in `wanted`."""
        if len(node.decorator_list) != 1:
            raise self._text.refused(
                node, f"{node.name} needs one decorator: @" + " or @".join(wanted)
            )
        (decorator,) = node.decorator_list
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = ".".join(dotted(called))
        if name not in wanted:
            raise self._text.refused(
                decorator, "this decorator is refused: write @" + " or @".join(wanted)
            )
        if isinstance(decorator, ast.Call):
            self._check_options(decorator, name)
        return name

    def _check_options(self, decorator: ast.Call, name: str) -> None:
        if decorator.args:
            raise self._text.refused(decorator.args[0], f"@{name} takes only True and False")
        for option in decorator.keywords:
            is_known = option.arg in DECORATORS[name]
            value = option.value
            if not (is_known and isinstance(value, ast.Constant) and isinstance(value.value, bool)):
                raise self._text.refused(
                    value,
                    f"this option of @{name} is refused: it may have "
                    + ", ".join(f"{one}=True or False" for one in sorted(DECORATORS[name])),
                )

    def _check_type_parameters(self, node: ast.FunctionDef) -> None:
        for one in getattr(node, "type_params", []):
            bound = getattr(one, "bound", None)
            is_int = isinstance(bound, ast.Name) and bound.id == "int"
            has_default = getattr(one, "default_value", None) is not None
            if type(one).__name__ != "TypeVar" or has_default or not (bound is None or is_int):
                raise self._text.refused(one, "this type parameter is refused: write a plain name")
            self._text.bind(one, one.name)

    def _block(self, body: Sequence[ast.stmt], scope: TextScope) -> TextScope:
        for statement in body:
            visit = self._checks.get(type(statement))
            if visit is None:
                kind = type(statement).__name__
                words = _WORDS.get(kind, f"a statement of the kind {kind}")
                raise self._text.refused(
                    statement, f"{words} is refused: TVMScript does not have it"
                )
            scope = visit(statement, scope)
        return scope

    def _check(self, scope: TextScope, *nodes: ast.expr | None) -> None:
        for node in nodes:
            if node is not None:
                self._expressions.check(node, scope)

    def _functiondef(self, node: ast.FunctionDef, scope: TextScope) -> TextScope:
        self._text.bind(node, node.name)
        if self.function(node, scope) != "R.function":
            raise self._text.refused(
                node, "a PrimFunc inside a function is refused: TVM does not read it"
            )
        return scope.with_bound([node.name])

    def _assign(self, node: ast.Assign, scope: TextScope) -> TextScope:
        if len(node.targets) != 1:
            raise self._text.refused(
                node, "a = b = c is refused: TVMScript assigns one name at a time"
            )
        (target,) = node.targets
        self._check(scope, node.value)
        self._refuse_type(node.value)
        if self._text.is_module(node.value):
            self._text.alias(target)
            return scope
        if isinstance(target, ast.Subscript):
            self._check(scope, target)
            return scope
        return scope.with_bound(self._targets(target))

    def _refuse_type(self, node: ast.expr) -> None:
        """Raise RefusedError if a variable would become a type, which could be called later."""
        match node:
            case ast.Attribute() if dotted(node)[0] in FUNCTIONS:
                raise self._text.refused(node, "a type in a variable is refused: write it in full")
            case ast.Call(func=function) if ".".join(dotted(function)) in _TYPES:
                raise self._text.refused(node, "a type in a variable is refused: write it in full")
            case ast.List() | ast.ListComp() | ast.Dict():
                raise self._text.refused(node, "a list in a variable is refused: write a tuple")
            case ast.Tuple(elts=nodes) | ast.BoolOp(values=nodes):
                for one in nodes:
                    self._refuse_type(one)
            case ast.Subscript(value=value):
                self._refuse_type(value)
            case ast.BinOp(left=left, right=right):
                self._refuse_type(left)
                self._refuse_type(right)
            case ast.IfExp(body=body, orelse=orelse):
                self._refuse_type(body)
                self._refuse_type(orelse)

    def _annassign(self, node: ast.AnnAssign, scope: TextScope) -> TextScope:
        self._check(scope, node.value, node.annotation)
        if node.value is not None:
            self._refuse_type(node.value)
        return scope.with_bound(self._targets(node.target))

    def _augassign(self, node: ast.AugAssign, scope: TextScope) -> TextScope:
        if not isinstance(node.target, ast.Name | ast.Subscript):
            raise self._text.refused(node.target, "an assignment to this is refused")
        if isinstance(node.target, ast.Name):
            self._text.bind(node.target, node.target.id)
        operation = ast.BinOp(left=node.target, op=node.op, right=node.value)
        self._check(scope, ast.copy_location(operation, node))
        return scope

    def _targets(self, target: ast.expr) -> list[str]:
        """Return the names that an assignment binds."""
        match target:
            case ast.Name(id=name):
                return [self._text.bind(target, name)]
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return [name for one in elements for name in self._targets(one)]
            case _:
                raise self._text.refused(
                    target, "an assignment to this is refused: TVMScript assigns to names"
                )

    def _for(self, node: ast.For, scope: TextScope) -> TextScope:
        if node.orelse:
            raise self._text.refused(node.orelse[0], "else after a loop is refused")
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=arguments, keywords=keywords):
                self._check(scope, *arguments)
                self._check(
                    scope.with_strings(True),
                    *(one.value for one in keywords if one.arg is not None),
                )
                if any(one.arg is None for one in keywords):
                    raise self._text.refused(node.iter, "** is refused")
            case _:
                self._check_dialect_call(node.iter, "T", scope)
        self._block(node.body, scope.with_bound(self._targets(node.target)))
        return scope

    def _check_dialect_call(self, node: ast.expr, roots: str, scope: TextScope) -> None:
        if not (isinstance(node, ast.Call) and dotted(node.func)[0] in tuple(roots)):
            raise self._text.refused(
                node, "this is refused here: only a call of " + " or ".join(roots) + " is admitted"
            )
        self._check(scope, node)

    def _while(self, node: ast.While, scope: TextScope) -> TextScope:
        if node.orelse:
            raise self._text.refused(node.orelse[0], "else after a loop is refused")
        self._check(scope, node.test)
        self._block(node.body, scope)
        return scope

    def _with(self, node: ast.With, scope: TextScope) -> TextScope:
        inner = scope
        for item in node.items:
            self._check_dialect_call(item.context_expr, "TR", inner)
            if item.optional_vars is not None:
                inner = inner.with_bound(self._targets(item.optional_vars))
        after = self._block(node.body, inner)
        return scope.with_bound([name for name in _output_names(node) if name in after.bound])

    def _if(self, node: ast.If, scope: TextScope) -> TextScope:
        self._check(scope, node.test)
        self._block(node.body, scope)
        self._block(node.orelse, scope)
        return scope

    def _return(self, node: ast.Return, scope: TextScope) -> TextScope:
        self._check(scope, node.value)
        return scope

    def _assert(self, node: ast.Assert, scope: TextScope) -> TextScope:
        self._check(scope, node.test)
        self._check(scope.with_strings(True), node.msg)
        return scope

    def _expr(self, node: ast.Expr, scope: TextScope) -> TextScope:
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self._check(scope, node.value)
        return scope

    def _unchanged(self, node: ast.stmt, scope: TextScope) -> TextScope:  # noqa: ARG002 - as all of these
        return scope


def _output_names(node: ast.With) -> list[str]:
    """Return the variables that R.output makes visible after a dataflow block."""
    if not any(".".join(dotted(_callee(item.context_expr))) == "R.dataflow" for item in node.items):
        return []
    names = []
    for statement in node.body:
        match statement:
            case ast.Expr(value=ast.Call(func=function, args=arguments)):
                if ".".join(dotted(function)) == "R.output":
                    names += [one.id for one in arguments if isinstance(one, ast.Name)]
    return names


def _callee(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node
