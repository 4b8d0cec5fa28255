"""The line of TVMScript that each statement of a PrimFunc begins at."""

from __future__ import annotations

import re
from collections import defaultdict

from tvm import tirx

from irviz.ir.tir.statement_walk import walk_statements

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
