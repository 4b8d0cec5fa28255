"""Parse Python with its comments and layout, within limits of size and depth."""

from __future__ import annotations

import ast
import warnings
from typing import Final

import libcst as cst

from irviz.errors import LoadError

MAX_CHARACTERS: Final = 2_000_000
MAX_NESTING: Final = 100
MAX_NODES: Final = 150_000
"""The limit of syntax nodes: libcst takes about ten seconds for so many."""


class NotPythonError(LoadError):
    """A text that cannot be parsed as Python; the message has the line and the reason."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line, self.reason = line, reason


def parse_module(source: str) -> cst.Module:
    """Return a text's concrete syntax tree.

    Raises NotPythonError if the text is not Python, or too long, or nested too deeply.
    """
    if len(source) > MAX_CHARACTERS:
        raise NotPythonError(
            1, f"the text has {len(source):,} characters; at most {MAX_CHARACTERS:,} are read"
        )
    _check_size(_syntax(source))
    try:
        return cst.parse_module(source)
    except cst.ParserSyntaxError as failure:
        raise NotPythonError(failure.raw_line, "this is not Python") from failure


def _syntax(source: str) -> ast.Module:
    # Python's own parser comes first: extreme nesting makes it raise, and ends libcst's process.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes in the text
            return ast.parse(source)
    except SyntaxError as failure:
        raise NotPythonError(failure.lineno or 1, f"this is not Python: {failure.msg}") from failure
    except (MemoryError, RecursionError) as failure:
        raise NotPythonError(1, "the text is nested too deeply to be read") from failure
    except ValueError as failure:  # a null character, or a number of thousands of digits
        raise NotPythonError(1, f"this is not Python: {failure}") from failure


def _check_size(tree: ast.Module) -> None:
    level: list[ast.AST] = [tree]
    parts = 0
    for _ in range(MAX_NESTING):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        parts += len(level)
        if parts > MAX_NODES:
            raise NotPythonError(
                1, f"the text has more than {MAX_NODES:,} syntax nodes: upgrade it in pieces"
            )
        if not level:
            return
    lines = [line for node in level if (line := getattr(node, "lineno", 0))]
    raise NotPythonError(min(lines, default=1), f"nested more than {MAX_NESTING} deep")
