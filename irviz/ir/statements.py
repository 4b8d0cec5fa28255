"""The statements of a PrimFunc: what is inside of each, and the line of TVMScript it begins at."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from tvm import s_tir, tirx

_MOST_PRINTED_LEVELS = 500  # TVM's printer recurses, and ends the process some way past 1000
_MARK = re.compile(r"\s*# irviz:(\d+)$")


def first_lines(prim_func: tirx.PrimFunc) -> dict[tirx.Stmt, list[str]]:
    """Return the line that each statement begins at, once for each place it stands in.

    Empty where TVM cannot print the function.
    """
    marks: dict[tirx.Stmt, str] = {}
    for stmt, level in walk(prim_func.body):
        if level > _MOST_PRINTED_LEVELS:
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
        if text:  # a mark alone in its line stands above the statement
            for stmt in starting:
                lines[stmt].append(text)
            starting = []
    return dict(lines)


def walk(body: tirx.Stmt) -> Iterator[tuple[tirx.Stmt, int]]:
    """Yield statements in the order of the text, each with its level, however deep they nest."""
    stack = [(stmt, 0) for stmt in reversed(flat(body))]
    while stack:
        stmt, level = stack.pop()
        yield stmt, level
        inner = [each for part in parts(stmt) for each in flat(part)]
        stack += [(each, level + 1) for each in reversed(inner)]


def flat(stmt: tirx.Stmt) -> list[tirx.Stmt]:
    """Return the statements of a sequence, or the one statement that is none."""
    found: list[tirx.Stmt] = []
    stack = [stmt]
    while stack:
        each = stack.pop()
        if isinstance(each, tirx.SeqStmt):
            stack += reversed(each.seq)
        else:
            found.append(each)
    return found


def parts(stmt: tirx.Stmt) -> list[tirx.Stmt]:
    """Return the statements inside of a statement, in the order of the text."""
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
