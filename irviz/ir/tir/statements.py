"""Walk over the statements of a PrimFunc, and find the line of TVMScript of each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from tvm import s_tir, tirx

_MAX_PRINTED_NESTING = 500  # TVM's printer recurses, and ends the process some way past 1000
_MARK = re.compile(r"\s*# irviz:(\d+)$")


def script_lines(prim_func: tirx.PrimFunc) -> dict[tirx.Stmt, list[str]]:
    """Return the first line of each statement, once for each of its occurrences.

    The result is empty if TVM cannot print the function.
    """
    marks: dict[tirx.Stmt, str] = {}
    for stmt, level in walk_statements(prim_func.body):
        if level > _MAX_PRINTED_NESTING:
            return {}
        marks.setdefault(stmt, f"irviz:{len(marks)}")
    try:
        # with syntactic sugar two statements can share a line, and a line takes one mark
        script = prim_func.script(syntax_sugar=False, obj_to_annotate=marks)
    except (ValueError, RuntimeError):
        return {}
    statements = list(marks)
    lines: dict[tirx.Stmt, list[str]] = defaultdict(list)
    starting: list[tirx.Stmt] = []
    for line in script.splitlines():
        found = _MARK.search(line)
        if found:
            starting.append(statements[int(found[1])])
        text = (line[: found.start()] if found else line).strip()
        if text:  # a line that is only a mark precedes the statement
            for stmt in starting:
                lines[stmt].append(text)
            starting = []
    return dict(lines)


def walk_statements(body: tirx.Stmt) -> Iterator[tuple[tirx.Stmt, int]]:
    """Yield statements in the order of the text, each with its nesting level; never recurse."""
    stack = [(stmt, 0) for stmt in reversed(flatten(body))]
    while stack:
        stmt, level = stack.pop()
        yield stmt, level
        inner = [each for part in nested_statements(stmt) for each in flatten(part)]
        stack += [(each, level + 1) for each in reversed(inner)]


def flatten(stmt: tirx.Stmt) -> list[tirx.Stmt]:
    """Return the statements of a sequence, or the statement itself."""
    return [each for each, _ in flatten_with_paths(stmt, "")]


def flatten_with_paths(stmt: tirx.Stmt, path: str) -> list[tuple[tirx.Stmt, str]]:
    """Return what `flatten` returns, each with TVM's access path; `path` leads to `stmt`."""
    found: list[tuple[tirx.Stmt, str]] = []
    stack = [(stmt, path)]
    while stack:
        each, at = stack.pop()
        if isinstance(each, tirx.SeqStmt):
            inner = [(part, f"{at}.seq[{number}]") for number, part in enumerate(each.seq)]
            stack += reversed(inner)
        else:
            found.append((each, at))
    return found


def nested_statements(stmt: tirx.Stmt) -> list[tirx.Stmt]:
    """Return the statements directly inside a statement, in the order of the text."""
    match stmt:
        case tirx.For() | tirx.While() | tirx.AttrStmt():
            inside = [stmt.body]
        case tirx.IfThenElse():
            inside = [stmt.then_case, stmt.else_case]
        case s_tir.SBlockRealize():
            inside = [stmt.block.init, stmt.block.body]
        case s_tir.SBlock():
            inside = [stmt.init, stmt.body]
        case _:
            inside = []
    return [part for part in inside if part is not None]
