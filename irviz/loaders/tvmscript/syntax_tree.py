"""Parse Python into a syntax tree, within limits of size and depth.

Python's parser takes a thousand times a text's size in memory. So a scan without allocations first
counts the tokens outside strings and comments.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from irviz.errors import LoadError
from irviz.loaders.file_limits import TVMSCRIPT_LIMITS, SyntaxLimits

_OPENING = re.compile(r"#|(?P<before>\w{0,2})(?P<quote>\"\"\"|'''|\"|')")
_FORMATTED = frozenset({"f", "fr", "rf", "t", "tr", "rt"})
_CLOSING = {
    quote: re.compile(r"(?:\\[\s\S]){1,999}|" + quote + (r"|\n" if len(quote) == 1 else ""))
    for quote in ('"""', "'''", '"', "'")
}
_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.alias)
_TOKEN = re.compile(r"\w+|[^\w\s]")


class RefusedError(LoadError):
    """A text, or a part of it, is not admitted.

    `line` and `column` are its place, counted from 1; `reason` says what is refused and why.
    """

    def __init__(self, name: str, line: int, column: int, reason: str) -> None:
        place = f"{name}, line {line}, column {column}" if name else f"line {line}"
        super().__init__(f"{place}: {reason}")
        self.name, self.line, self.column, self.reason = name, line, column, reason

    def __reduce__(self) -> tuple[type[RefusedError], tuple[str, int, int, str]]:
        return RefusedError, (self.name, self.line, self.column, self.reason)


def parse_tree(text: str, name: str, limits: SyntaxLimits = TVMSCRIPT_LIMITS) -> ast.Module:
    """Return a text's syntax tree; raise RefusedError if it is not Python or exceeds a limit."""
    if len(text) > limits.characters:
        reason = f"a text of {len(text):,} characters is refused: up to {limits.characters:,} are"
        raise RefusedError(name, 1, 1, f"{reason} read")
    if (at := text.find("\0")) >= 0:
        reason = "a NUL character is refused: this is not a text"
        raise RefusedError(name, *_position(text, at), reason)
    _check_tokens(text, name, limits)
    tree = _parse(text, name)
    _check_depth(tree, text, name, limits.depth)
    return tree


_TYPE_PARAMETERS = re.compile(r"\s*def \w+\[")
_NEWER = (
    "sizes as type parameters are syntax of Python 3.12: open it there, or write it with "
    'mod.script(extra_config={"script.use_pep695": False})'
)


def _parse(text: str, name: str) -> ast.Module:
    """Parse a text as TVM does: in the syntax of Python 3.8, or else in the current one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about invalid escapes in strings
        try:
            try:
                return ast.parse(text, feature_version=(3, 8))
            except SyntaxError:
                return ast.parse(text)
        except SyntaxError as failure:
            place = failure.lineno or 1, max(failure.offset or 1, 1)
            words = f"this is not Python: {failure.msg}; correct this line"
            if sys.version_info < (3, 12) and _TYPE_PARAMETERS.match(failure.text or ""):
                words = _NEWER
            raise RefusedError(name, *place, words) from None
        except (MemoryError, RecursionError):
            raise too_deep(name) from None
        except ValueError as failure:  # a lone surrogate, or a number of thousands of digits
            raise RefusedError(name, 1, 1, f"this is not Python: {failure}") from None


def too_deep(name: str) -> RefusedError:
    """Return the error for a text that overflows the stack, whose line is unknown."""
    return RefusedError(
        name, 1, 1, "an expression nested too deeply is refused: split it into several"
    )


def _check_depth(tree: ast.Module, text: str, name: str, limit: int) -> None:
    """Raise RefusedError if a node is nested too deeply; never recurse."""
    level: list[ast.AST] = [tree]
    for _ in range(limit):
        level = [
            child
            for node in level
            if not isinstance(node, _LEAVES)
            for child in ast.iter_child_nodes(node)
        ]
        if not level:
            return
    node = next((one for one in level if hasattr(one, "lineno")), None)
    place = position(node, text.split("\n")) if node is not None else (1, 1)
    raise RefusedError(name, *place, f"more than {limit} levels of nesting are refused")


def position(node: ast.AST, lines: list[str]) -> tuple[int, int]:
    """Return the line and the column of a node, counted from 1 in characters."""
    line: int = getattr(node, "lineno", 1)
    offset: int = getattr(node, "col_offset", 0)
    before = lines[line - 1].encode()[:offset] if line <= len(lines) else b""
    return line, len(before.decode(errors="replace")) + 1


def _check_tokens(text: str, name: str, limits: SyntaxLimits) -> None:
    count = 0
    for start, end in _outside_strings(text, name, limits):
        for token in _TOKEN.finditer(text, start, end):
            count += 1
            if count > limits.tokens:
                reason = f"a text of more than {limits.tokens:,} tokens is refused"
                raise RefusedError(name, *_position(text, token.start()), reason)


def _outside_strings(text: str, name: str, limits: SyntaxLimits) -> Iterator[tuple[int, int]]:
    """Yield the spans outside comments and strings; a span ends with an opening quote.

    After a string that is not closed, the whole rest is one span: either the text is not Python,
    or the rest is counted in full. So it is after a formatted string, which contains expressions.
    """
    at = 0
    while (found := _OPENING.search(text, at)) is not None:
        yield at, found.end()
        if found.group() == "#":
            at = text.find("\n", found.end())
        elif found["before"].lower() not in _FORMATTED:
            at = _end_of_string(text, found.end(), found["quote"])
        elif limits.admits_formatted_strings:
            at = -1
        else:
            reason = "a formatted string is refused: TVMScript has plain ones"
            raise RefusedError(name, *_position(text, found.start()), reason)
        if at < 0:
            yield found.end(), len(text)
            return
    yield at, len(text)


def _end_of_string(text: str, at: int, quote: str) -> int:
    closing = _CLOSING[quote]
    while (found := closing.search(text, at)) is not None:
        at = found.end()
        if text[found.start()] != "\\":
            return at
    return -1


def _position(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


# --- Find the modules and functions that a text defines, and their lines -------------------------


_DECORATORS = ("ir_module", "prim_func", "function")


@dataclass(frozen=True)
class Definition:
    """A module or function that a text defines; its lines, from 1, include the decorators.

    `check_well_formed` is the option of its decorator, which TVM ignores when it reads a text.
    """

    name: str
    lines: range
    check_well_formed: bool = True


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
