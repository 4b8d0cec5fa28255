"""Text that is read as Python: whole, of a sane size and depth, and never run."""

from __future__ import annotations

import ast
import warnings
from typing import Final

import libcst as cst

MOST_CHARACTERS: Final = 2_000_000
DEEPEST: Final = 100
MOST_PARTS: Final = 150_000
"""How many nodes Python's own tree may have: libcst takes about ten seconds for these."""


class NotPython(ValueError):  # noqa: N818 -- it says what the text is
    """Say why a text cannot be read as Python, and on which line."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line, self.why = line, why


def read(source: str) -> cst.Module:
    """Return Python as a tree that keeps its comments and layout; nothing of it is run.

    Raises NotPython, with the line, for what is no Python, too long or nested too deeply.
    """
    if len(source) > MOST_CHARACTERS:
        raise NotPython(
            1, f"the text has {len(source):,} characters; at most {MOST_CHARACTERS:,} are read"
        )
    _check_size(_syntax(source))
    try:
        return cst.parse_module(source)
    except cst.ParserSyntaxError as failure:
        raise NotPython(failure.raw_line, "this is not Python") from failure


def _syntax(source: str) -> ast.Module:
    # Python's own parser first: what is nested without end stops it, and not the process.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes: they are the text's own
            return ast.parse(source)
    except SyntaxError as failure:
        raise NotPython(failure.lineno or 1, f"this is not Python: {failure.msg}") from failure
    except (MemoryError, RecursionError) as failure:
        raise NotPython(1, "the text is nested too deeply to be read") from failure
    except ValueError as failure:  # a null character, or a number of thousands of digits
        raise NotPython(1, f"this is not Python: {failure}") from failure


def _check_size(tree: ast.Module) -> None:
    level: list[ast.AST] = [tree]
    parts = 0
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        parts += len(level)
        if parts > MOST_PARTS:
            raise NotPython(1, f"the text has more than {MOST_PARTS:,} parts: upgrade it in pieces")
        if not level:
            return
    lines = [line for node in level if (line := getattr(node, "lineno", 0))]
    raise NotPython(min(lines, default=1), f"nested more than {DEEPEST} deep")
