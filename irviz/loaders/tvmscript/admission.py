"""Admit a text for TVM's parser if all that parsing it can do is to build a module.

Every node of the syntax tree has to be one that TVMScript needs; anything unknown is refused. The
imports of TVM's own script modules are removed from the text, and never executed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from irviz.gc_pause import gc_paused
from irviz.loaders.tvmscript.admitted_expressions import Expressions
from irviz.loaders.tvmscript.admitted_statements import Statements
from irviz.loaders.tvmscript.audit import audit_text
from irviz.loaders.tvmscript.metadata import check_metadata
from irviz.loaders.tvmscript.syntax_tree import RefusedError as RefusedError
from irviz.loaders.tvmscript.syntax_tree import parse_tree, start_line, too_deep
from irviz.loaders.tvmscript.text_scope import SourceText, TextScope, dotted

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
class TextDefinition:
    """A module or a function that a text defines, from its first line to its last."""

    name: str
    first: int
    last: int


@dataclass(frozen=True)
class AdmittedText:
    """A text that TVM may parse, with empty lines for its imports."""

    text: str
    name: str
    definitions: tuple[TextDefinition, ...]

    def only(self, definition: TextDefinition) -> str:
        """Return the text with this definition alone, on its own lines."""
        lines = self.text.split("\n")
        for other in self.definitions:
            if other != definition:
                lines[other.first - 1 : other.last] = [""] * (other.last - other.first + 1)
        return "\n".join(lines)


def admit(text: str, name: str = "<text>") -> AdmittedText:
    """Return a text for TVM's parser, or raise RefusedError if it is more than TVMScript.

    `name` is the text's name in errors.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    with gc_paused():
        whole = SourceText(text, name, parse_tree(text, name))
        without = _without_imports(whole)
        if without != text:
            whole = SourceText(without, name, parse_tree(without, name))
        try:
            found = _definitions(whole)
            audit_text(whole)
            return AdmittedText(without, name, found)
        except RecursionError:
            raise too_deep(name) from None


def _without_imports(text: SourceText) -> str:
    """Return the text with empty lines for the imports at its outermost level."""
    lines = list(text.lines)
    taken: dict[int, ast.stmt] = {}
    for statement in text.tree.body:
        last = statement.end_lineno or statement.lineno
        for line in range(start_line(statement), last + 1):
            other = taken.setdefault(line, statement)
            if other is not statement and _is_import(other, statement):
                raise text.refused(statement, "an import on a line with something else is refused")
        if _is_import(statement):
            _check_import(statement, text)
            lines[statement.lineno - 1 : last] = [""] * (last - statement.lineno + 1)
    return "\n".join(lines)


def _is_import(*statements: ast.stmt) -> bool:
    return any(isinstance(one, ast.Import | ast.ImportFrom) for one in statements)


def _check_import(node: ast.stmt, text: SourceText) -> None:
    match node:
        case ast.Import(names=[ast.alias(name="tvm", asname=None)]):
            return
        case ast.ImportFrom(module=module, names=names, level=0):
            if all((module, one.name, one.asname) in _IMPORTED for one in names):
                return
    raise text.refused(node, f"this import is refused: TVMScript needs only `{_IMPORTS}`")


def _definitions(text: SourceText) -> tuple[TextDefinition, ...]:
    expressions = Expressions(text)
    statements = Statements(text, expressions)
    scope, found = TextScope(text.foreign), []
    for node in text.tree.body:
        match node:
            case ast.ClassDef():
                found.append(_module(node, text, expressions, statements, scope))
            case ast.FunctionDef():
                statements.function(node, scope)
                found.append(_definition(node))
            case ast.Assign(targets=[ast.Name(id="metadata")]):
                check_metadata(node, text)
            case ast.Assign():
                scope = scope.with_bound([_symbolic_size(node, text)])
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                raise text.refused(
                    node, "this is refused: a text defines only modules and functions"
                )
    return tuple(found)


def _definition(node: ast.ClassDef | ast.FunctionDef) -> TextDefinition:
    return TextDefinition(node.name, start_line(node), node.end_lineno or node.lineno)


def _module(
    node: ast.ClassDef,
    text: SourceText,
    expressions: Expressions,
    statements: Statements,
    scope: TextScope,
) -> TextDefinition:
    statements.decorator(node, ("I.ir_module",))
    text.check_module(node, node.name)
    if node.bases or node.keywords or getattr(node, "type_params", []):
        raise text.refused(
            node,
            f"the base class of {node.name} is refused: modules with Python functions are not read",
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
                expressions.check(call, scope.with_strings(True))
            case _:
                raise text.refused(
                    part,
                    "this is refused in a module: a module has functions, and attributes set by I",
                )
    return _definition(node)


def _symbolic_size(node: ast.Assign, text: SourceText) -> str:
    """Return the name of a symbolic size, which is written `n = TypeVar("n")`."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=name) as target],
            value=ast.Call(
                func=ast.Name(id="TypeVar"), args=[ast.Constant(value=argument)], keywords=[]
            ),
        ) if argument == name:
            return text.bind(target, name)
        case _:
            raise text.refused(
                node,
                'this assignment is refused: outside functions only n = TypeVar("n") is admitted',
            )
