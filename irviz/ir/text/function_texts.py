"""The TVMScript of a module cut into functions."""

from __future__ import annotations

from collections.abc import Sequence

from irviz.ir.text.tvmscript_lines import Script
from irviz.model.diff.module_text import FunctionText
from irviz.model.graph.graph import NodeId

_INDENT = 4


def function_texts(script: Script) -> dict[str, FunctionText]:
    """Return the text of each function, from its decorators on, without the module's indentation.

    The line of a parameter is that of the function's `def`, and is left out.
    """
    lines = script.text.partition("\n# Metadata omitted")[0].splitlines()
    starts = {name: _first_line(lines, line - 1) for name, line in script.functions.items()}
    ordered = sorted(starts, key=starts.__getitem__)
    ends = [*(starts[name] for name in ordered[1:]), len(lines)]
    nodes: dict[str, dict[NodeId, int]] = {name: {} for name in ordered}
    for (name, node_id), line in script.lines.items():
        if name in nodes and line != script.functions[name]:
            nodes[name][node_id] = line - 1 - starts[name]
    return {
        name: FunctionText(_cut(lines[starts[name] : end]), nodes[name])
        for name, end in zip(ordered, ends, strict=True)
    }


def _first_line(lines: Sequence[str], at: int) -> int:
    while at and lines[at - 1].lstrip().startswith("@"):
        at -= 1
    return at


def _cut(lines: Sequence[str]) -> tuple[str, ...]:
    found = [line[_INDENT:] if line[:_INDENT].isspace() else line for line in lines]
    while found and not found[-1].strip():
        found.pop()
    return tuple(found)
