"""What of a cell is TVMScript: its modules, and its functions that stand alone."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

DECORATORS: Final = (
    "I.ir_module",
    "ir_module",
    "tvm.script.ir_module",
    "T.prim_func",
    "R.function",
)


@dataclass(frozen=True)
class Script:
    """Hold the definitions of a text on the lines where they were, and what else was there.

    `names` are those of what it defines; `others` the lines, from 1, where other Python began.
    """

    text: str
    names: tuple[str, ...]
    others: tuple[int, ...]


def script_of(text: str) -> Script:
    """Keep a text's TVMScript and leave out all other Python; imports are left out silently.

    Raises SyntaxError for what is no Python: upgrade it first, which says more.
    """
    lines = text.splitlines()
    kept, names, others = [""] * len(lines), [], []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and _is_script(node):
            first = min(each.lineno for each in node.decorator_list) - 1
            last = node.end_lineno or node.lineno
            kept[first:last] = lines[first:last]
            names.append(node.name)
        elif not isinstance(node, ast.Import | ast.ImportFrom) and not _is_text(node):
            others.append(node.lineno)
    return Script("\n".join(kept) + "\n", tuple(names), tuple(others))


def _is_script(node: ast.ClassDef | ast.FunctionDef) -> bool:
    return any(
        ast.unparse(each.func if isinstance(each, ast.Call) else each) in DECORATORS
        for each in node.decorator_list
    )


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
