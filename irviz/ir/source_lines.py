"""The file and line that a binding was written in, kept as TVM's spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from tvm import ir, relax

from irviz.ir.module_functions import with_functions
from irviz.ir.node_ids import definitions, identify
from irviz.model.graph.graph import NodeId


def source_lines(function: relax.Function) -> Mapping[NodeId, tuple[str, int]]:
    """Return the file and line where each node was written, as far as they are known.

    They are told by the spans of bindings, or of their values: TVMScript that is parsed from a file
    has spans, and so has what irviz imports from torch.
    """
    ids = identify(function)
    found: dict[NodeId, tuple[str, int]] = {}
    for var, binding in definitions((), function.body):
        span = binding and (binding.span or getattr(binding.value, "span", None))
        if span is not None and not span.source_name.name.startswith("<"):  # as <string> does
            found[ids[var]] = PurePath(span.source_name.name).name, span.line
    return found


def source_words(places: Iterable[tuple[str, int]]) -> str:
    """Return the words for files and lines, such as `model.py, lines 23, 24`."""
    found: dict[str, dict[int, None]] = {}
    for file, line in places:
        found.setdefault(file, {})[line] = None
    return "; ".join(
        f"{file}, line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
        for file, lines in found.items()
    )


def with_source_lines(
    mod: ir.IRModule, name: str, lines: Mapping[NodeId, tuple[str, int]]
) -> ir.IRModule:
    """Return a module whose function's outermost bindings were written in these files and lines."""
    function = mod[name]
    ids = identify(function)

    def written(binding: relax.Binding) -> relax.Binding:
        found = lines.get(ids[binding.var])
        if found is None or not isinstance(binding, relax.VarBinding):
            return binding
        span = ir.Span(ir.SourceName(found[0]), found[1], found[1], 0, 0)
        return relax.VarBinding(binding.var, binding.value, span)

    blocks = [
        type(block)([written(one) for one in block.bindings]) for block in function.body.blocks
    ]
    body = relax.BlockBuilder(mod).normalize(relax.SeqExpr(blocks, function.body.body))
    new = relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)
    return with_functions(mod, {name: new})
