"""Text -> the same text, when reading it by TVM's parser can do nothing but make a module.

`tvm.script.from_source` evaluates the Python it finds: sizes, annotations, decorators, indices,
and what stands in quotes in a shape. So a text is read as a syntax tree first, and every node of
that has to be one that TVMScript needs. What is not known is refused: see `dialect` for the
functions, `scope` for the names, `admitted_expressions` and `admitted_statements` for the rest,
`second_look` for what these might pass over.
Imports of TVM's own script modules are left out of the text and never done.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from irviz.ir.admitted_expressions import Expressions
from irviz.ir.admitted_statements import Statements
from irviz.ir.metadata import check_metadata
from irviz.ir.refusal import RefusedError as RefusedError
from irviz.ir.scope import Scope, Text, dotted
from irviz.ir.second_look import look_again
from irviz.ir.text_limits import parsed, too_deep
from irviz.model.pause import no_collection

_IMPORTED = {
    ("tvm.script", "ir", "I"),
    ("tvm.script", "relax", "R"),
    ("tvm.script", "tirx", "T"),
    ("tvm.script.parser", "ir", "I"),
    ("tvm.script.parser", "relax", "R"),
    ("tvm.script.parser", "tirx", "T"),
    ("typing", "TypeVar", None),
    ("__future__", "annotations", None),
}
_IMPORTS = "from tvm.script import ir as I, relax as R, tirx as T"


@dataclass(frozen=True)
class Definition:
    """A module or a function that a text defines, from its first line to its last.

    `kind` is "module", "PrimFunc" or "function", the last for one of Relax.
    """

    name: str
    kind: str
    first: int
    last: int


@dataclass(frozen=True)
class Admitted:
    """A text that TVM may read, without its imports; lines are where they were."""

    text: str
    name: str
    definitions: tuple[Definition, ...]

    def only(self, definition: Definition) -> str:
        """Return the text with this definition alone, in its place."""
        lines = self.text.split("\n")
        for other in self.definitions:
            if other != definition:
                lines[other.first - 1 : other.last] = [""] * (other.last - other.first + 1)
        return "\n".join(lines)


def admit(text: str, name: str = "<text>") -> Admitted:
    """Return a text for TVM's parser when it says nothing but TVMScript.

    `name` is what errors call it. Raises RefusedError, which says what is refused, where and why.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    with no_collection():
        whole = Text(text, name, parsed(text, name))
        without = _without_imports(whole)
        if without != text:
            whole = Text(without, name, parsed(without, name))
        try:
            found = _definitions(whole)
            look_again(whole)
            return Admitted(without, name, found)
        except RecursionError:
            raise too_deep(name) from None


def _without_imports(text: Text) -> str:
    """Return the text without the imports at its outermost level, lines kept."""
    lines = list(text.lines)
    taken: dict[int, ast.stmt] = {}
    for statement in text.tree.body:
        last = statement.end_lineno or statement.lineno
        for line in range(_first(statement), last + 1):
            other = taken.setdefault(line, statement)
            if other is not statement and _is_import(other, statement):
                raise text.refused(statement, "an import and more on a line is refused")
        if _is_import(statement):
            _check_import(statement, text)
            lines[statement.lineno - 1 : last] = [""] * (last - statement.lineno + 1)
    return "\n".join(lines)


def _is_import(*statements: ast.stmt) -> bool:
    return any(isinstance(one, ast.Import | ast.ImportFrom) for one in statements)


def _check_import(node: ast.stmt, text: Text) -> None:
    match node:
        case ast.Import(names=[ast.alias(name="tvm", asname=None)]):
            return
        case ast.ImportFrom(module=module, names=names, level=0):
            if all((module, one.name, one.asname) in _IMPORTED for one in names):
                return
    raise text.refused(node, f"this import is refused: no text needs another than `{_IMPORTS}`")


def _definitions(text: Text) -> tuple[Definition, ...]:
    expressions = Expressions(text)
    statements = Statements(text, expressions)
    scope, found = Scope(text.foreign), []
    for node in text.tree.body:
        match node:
            case ast.ClassDef():
                found.append(_module(node, text, expressions, statements, scope))
            case ast.FunctionDef():
                is_relax = statements.function(node, scope) == "R.function"
                found.append(_definition(node, "function" if is_relax else "PrimFunc"))
            case ast.Assign(targets=[ast.Name(id="metadata")]):
                check_metadata(node, text)
            case ast.Assign():
                scope = scope.with_sure([_symbolic_size(node, text)])
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                raise text.refused(
                    node, "this is refused: a text defines modules and functions, nothing else"
                )
    return tuple(found)


def _definition(node: ast.ClassDef | ast.FunctionDef, kind: str) -> Definition:
    return Definition(node.name, kind, _first(node), node.end_lineno or node.lineno)


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _module(
    node: ast.ClassDef, text: Text, expressions: Expressions, statements: Statements, scope: Scope
) -> Definition:
    statements.decorator(node, ("I.ir_module",))
    text.check_module(node, node.name)
    if node.bases or node.keywords or getattr(node, "type_params", []):
        raise text.refused(
            node, f"a base of {node.name} is refused: Python functions in modules are not read"
        )
    for part in node.body:
        match part:
            case ast.FunctionDef():
                statements.function(part, scope)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.Expr(value=ast.Call(func=function) as call) if dotted(function)[0] == "I":
                expressions.check(call, scope)
            case ast.Assign(targets=[ast.Name()], value=ast.Call(func=function) as call) if dotted(
                function
            ) == ("R", "ExternFunc"):
                expressions.check(call, scope.saying(True))
            case _:
                raise text.refused(
                    part, "this is refused in a module: it has functions, and attributes by I"
                )
    return _definition(node, "module")


def _symbolic_size(node: ast.Assign, text: Text) -> str:
    """Return the name of a size, which is written `n = TypeVar("n")`."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=name) as target],
            value=ast.Call(
                func=ast.Name(id="TypeVar"), args=[ast.Constant(value=said)], keywords=[]
            ),
        ) if said == name:
            return text.bind(target, name)
        case _:
            raise text.refused(
                node,
                'this assignment is refused: outside of functions stands only n = TypeVar("n")',
            )
