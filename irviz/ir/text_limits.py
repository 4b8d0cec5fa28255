"""Text -> Python's syntax tree, unless it is larger or deeper than a module's would be.

Python reads any text into a tree, and takes a thousand times its size for it. So the text is
measured first: what stands outside of quotes and comments, by a scan that takes no memory.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from irviz.ir.refusal import RefusedError

MAX_TEXT = 64 * 2**20
"""Characters; weights in JSON are most of a large text."""
MAX_WORDS = 2_000_000
"""Names, numbers, signs and quotes; a module of 17,000 bindings has one million."""
MAX_DEPTH = 150
"""Of expressions and statements in each other; TVM's own parser ends at about that."""

_OPENING = re.compile(r"#|(?P<before>\w{0,2})(?P<quote>\"\"\"|'''|\"|')")
_EVALUATED = frozenset({"f", "fr", "rf", "t", "tr", "rt"})
_CLOSING = {
    quote: re.compile(r"(?:\\[\s\S]){1,999}|" + end)
    for quote, end in {
        '"""': '"""',
        "'''": "'''",
        '"': r'"|\n',
        "'": r"'|\n",
    }.items()
}
_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.alias)
_WORD = re.compile(r"\w+|[^\w\s]")


def parsed(text: str, name: str) -> ast.Module:
    """Return the tree of a text; raise RefusedError where it is no Python or beyond a limit."""
    if len(text) > MAX_TEXT:
        raise RefusedError(
            name,
            1,
            1,
            f"a text of {len(text):,} characters is refused: up to {MAX_TEXT:,} are read",
        )
    if (at := text.find("\0")) >= 0:
        raise RefusedError(name, *_place(text, at), "a NUL character is refused: this is no text")
    _count(text, name)
    tree = _tree(text, name)
    _check_depth(tree, text, name)
    return tree


def _tree(text: str, name: str) -> ast.Module:
    """Parse a text as TVM's parser does: in the syntax of Python 3.8, else in today's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes in strings that mean nothing
        try:
            try:
                return ast.parse(text, feature_version=(3, 8))
            except SyntaxError:
                return ast.parse(text)
        except SyntaxError as failure:
            line, column = failure.lineno or 1, failure.offset or 1
            raise RefusedError(
                name, line, max(column, 1), f"this is no Python: {failure.msg}"
            ) from None
        except (MemoryError, RecursionError):
            raise too_deep(name) from None
        except ValueError as failure:  # a half of a character, a number of thousands of digits
            raise RefusedError(name, 1, 1, f"this is no Python: {failure}") from None


def too_deep(name: str) -> RefusedError:
    """Return the error for what is nested so deep that nobody can say where."""
    return RefusedError(
        name, 1, 1, "an expression nested too deeply is refused: TVM could not read it"
    )


def _check_depth(tree: ast.Module, text: str, name: str) -> None:
    """Raise RefusedError where a node is too deep, without going there by recursion."""
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            if not isinstance(node, _LEAVES)
            for child in ast.iter_child_nodes(node)
        ]
        if not level:
            return
    node = next((one for one in level if hasattr(one, "lineno")), None)
    line, column = place(node, text.split("\n")) if node is not None else (1, 1)
    raise RefusedError(
        name,
        line,
        column,
        f"what is nested in more than {MAX_DEPTH} others is refused: TVM could not read it",
    )


def place(node: ast.AST, lines: list[str]) -> tuple[int, int]:
    """Return the line and the column of a node, in characters, counted from 1."""
    line: int = getattr(node, "lineno", 1)
    offset: int = getattr(node, "col_offset", 0)
    before = lines[line - 1].encode()[:offset] if line <= len(lines) else b""
    return line, len(before.decode(errors="replace")) + 1


def _count(text: str, name: str) -> None:
    words = 0
    for start, end in _outside_of_quotes(text, name):
        for word in _WORD.finditer(text, start, end):
            words += 1
            if words > MAX_WORDS:
                raise RefusedError(
                    name,
                    *_place(text, word.start()),
                    f"a text of more than {MAX_WORDS:,} words and signs is refused",
                )


def _outside_of_quotes(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches that are neither comment nor in quotes; an opening quote belongs to one.

    Where a quote is not closed this yields all the rest: it is no Python, or counted in full.
    """
    at = 0
    while (found := _OPENING.search(text, at)) is not None:
        yield at, found.end()
        if found.group() == "#":
            at = text.find("\n", found.end())
        elif found["before"].lower() in _EVALUATED:
            line, column = _place(text, found.start())
            raise RefusedError(
                name, line, column, "a formatted string is refused: TVMScript has plain ones"
            )
        else:
            at = _end_of_quotes(text, found.end(), found["quote"])
        if at < 0:
            yield found.end(), len(text)
            return
    yield at, len(text)


def _end_of_quotes(text: str, at: int, quote: str) -> int:
    closing = _CLOSING[quote]
    while (found := closing.search(text, at)) is not None:
        at = found.end()
        if text[found.start()] != "\\":
            return at
    return -1


def _place(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
