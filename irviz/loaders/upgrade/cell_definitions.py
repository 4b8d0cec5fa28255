"""Separate the TVMScript in a cell from its other Python."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

_DECORATORS: Final = (
    "I.ir_module",
    "ir_module",
    "tvm.script.ir_module",
    "T.prim_func",
    "R.function",
)


@dataclass(frozen=True)
class CellDefinitions:
    """The TVMScript definitions of a text, on their own lines.

    `names` are the names of the definitions, and `others` the lines, from 1, of other statements.
    """

    text: str
    names: tuple[str, ...]
    others: tuple[int, ...]


def tvmscript_definitions(text: str) -> CellDefinitions:
    """Return a text's TVMScript without its other Python; imports are dropped silently.

    Raises SyntaxError if the text is not Python; upgrading it first gives a better reason.
    """
    lines = text.splitlines()
    kept, names, others = [""] * len(lines), [], []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and _is_tvmscript(node):
            first = min(each.lineno for each in node.decorator_list) - 1
            last = node.end_lineno or node.lineno
            kept[first:last] = lines[first:last]
            names.append(node.name)
        elif not isinstance(node, ast.Import | ast.ImportFrom) and not _is_string(node):
            others.append(node.lineno)
    return CellDefinitions("\n".join(kept) + "\n", tuple(names), tuple(others))


def _is_tvmscript(node: ast.ClassDef | ast.FunctionDef) -> bool:
    return any(
        ast.unparse(each.func if isinstance(each, ast.Call) else each) in _DECORATORS
        for each in node.decorator_list
    )


def _is_string(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
