"""Find the modules and functions that a text defines, and their lines."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from irviz.loaders.file_limits import UPGRADE_LIMITS
from irviz.loaders.tvmscript.imported_names import imported_names
from irviz.loaders.tvmscript.syntax_tree import parse_tree

_DECORATORS = ("ir_module", "prim_func", "function")


@dataclass(frozen=True)
class Definition:
    """A module or function that a text defines; its lines, from 1, include the decorators.

    `check_well_formed` is the option of its decorator, which TVM ignores when it reads a text.
    """

    name: str
    lines: range
    check_well_formed: bool = True


@dataclass(frozen=True)
class CellDefinitions:
    """The TVMScript definitions of a text, on their own lines.

    `names` are the names of the definitions, `others` the lines, from 1, of other statements, and
    `imported` what the imports bind.
    """

    text: str
    names: tuple[str, ...]
    others: tuple[int, ...]
    imported: Mapping[str, str]


def definitions(tree: ast.Module) -> list[Definition]:
    """Return the classes and functions with a decorator of TVMScript."""
    return [
        Definition(node.name, line_range(node), _is_checked(node.decorator_list))
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and any(_last_name(decorator) in _DECORATORS for decorator in node.decorator_list)
    ]


def _is_checked(decorators: list[ast.expr]) -> bool:
    options = [one for call in decorators for one in getattr(call, "keywords", [])]
    values = [one.value for one in options if one.arg == "check_well_formed"]
    return not any(isinstance(one, ast.Constant) and one.value is False for one in values)


def _last_name(decorator: ast.expr) -> str:
    callee = decorator.func if isinstance(decorator, ast.Call) else decorator
    return callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")


def tvmscript_definitions(text: str, name: str) -> CellDefinitions:
    """Return a text's TVMScript without its other Python; imports are dropped silently.

    Raises RefusedError if the text is not Python, or exceeds a limit.
    """
    tree = parse_tree(text, name, UPGRADE_LIMITS)
    found = definitions(tree)
    kept = {line for one in found for line in one.lines}
    others = tuple(
        node.lineno
        for node in tree.body
        if node.lineno not in kept
        and not isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    )
    names = tuple(one.name for one in found)
    return CellDefinitions(only_lines(text, kept), names, others, imported_names(tree))


def python_lines(text: str) -> list[str]:
    """Return the lines of a text as Python counts them."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def only_lines(text: str, kept: Collection[int]) -> str:
    """Return a text with all other lines blank, so that line numbers in errors stay correct."""
    lines = enumerate(python_lines(text), 1)
    return "\n".join(line if number in kept else "" for number, line in lines)


def line_range(node: ast.stmt) -> range:
    """Return the lines of a statement, from 1, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)])
    return range(first, (node.end_lineno or node.lineno) + 1)
