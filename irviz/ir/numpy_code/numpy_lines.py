"""Map the lines of a function as NumPy to the lines of TVMScript that they come from."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import ir, tirx

from irviz.ir.node_ids import NodeIds, definitions
from irviz.ir.numpy_code.numpy_program import NumPyFunction
from irviz.ir.text.tvmscript_lines import Script
from irviz.ir.tir.statement_lines import statement_offsets


def part_offsets(function: ir.BaseFunc, name: str, script: Script) -> Mapping[object, int]:
    """Return how many lines below its `def` each part of a function begins, 0 for all of it."""
    if isinstance(function, tirx.PrimFunc):
        return {None: 0, function: 0, **statement_offsets(function, name)}
    start, ids = script.functions[name], NodeIds()
    found: dict[object, int] = {None: 0, function: 0}
    for var, binding in definitions(function.params, function.body):
        node = ids.define(var.name)
        if binding is not None and (name, node) in script.lines:
            found[binding] = script.lines[name, node] - start
    return found


def line_offsets(written: NumPyFunction, offsets: Mapping[object, int]) -> list[int]:
    """Return for each line how many lines below its `def` that of TVMScript is, -1 for none.

    Args:
        offsets: Those of the parts of the function, by `part_offsets`.
    """
    lines: list[int] = []
    enclosing = 0
    for number in range(1, written.source.count("\n") + 2):
        origin = written.lines.get(number)
        if origin is not None:
            enclosing = offsets.get(origin, enclosing)  # the loops of a T.grid share its line
        lines.append(-1 if origin is None else enclosing)
    return lines
