"""Walk over the statements of a PrimFunc, without recursion."""

from __future__ import annotations

from collections.abc import Iterator

from tvm import s_tir, tirx


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
