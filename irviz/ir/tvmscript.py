"""A module's TVMScript, the line of each node in it, and the lines of a model's own source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeVar

import tvm_ffi
from tvm import ir, relax, tirx

from irviz.errors import PrintError, memory_errors, message_of
from irviz.gc_pause import gc_paused
from irviz.ir.module_functions import function_named, relax_functions, with_functions
from irviz.ir.node_ids import NodeIds, definitions, identify
from irviz.model.diff.diff_result import FunctionText
from irviz.model.graph.graph import Graph, NodeId, NodeKind

_MARK = re.compile(r"\s*# irviz:(\d+)$")
_BLOCK = re.compile(r" *with T\.sblock\(")
_INDENT = 4
_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Script:
    """A module's TVMScript; `lines` has the line of each node, from 1, by function and id."""

    text: str
    lines: Mapping[tuple[str, NodeId], int]
    functions: Mapping[str, int]

    def line(self, number: int) -> str:
        """Return one line, counted from 1, without its indentation."""
        return self.text.splitlines()[number - 1].strip()


def script(mod: ir.IRModule) -> Script:
    """Print the module as TVMScript and find the line of every parameter and binding.

    A parameter's line is the first line of its function's `def`. A function bound inside another
    has no line, as TVM prints no mark for it.
    """
    keys: dict[object, tuple[str, NodeId]] = {}
    params: dict[str, list[NodeId]] = {}
    with gc_paused():
        for name, function in relax_functions(mod).items():
            names = NodeIds()
            params[name] = [names.define(param.name) for param in function.params]
            for var, binding in definitions((), function.body):
                node_id = names.define(var.name)
                if binding is not None and not isinstance(binding.value, relax.Function):
                    keys[binding] = name, node_id
        text: list[str] = []
        lines: dict[tuple[str, NodeId], int] = {}
        for line, starting in marked_lines(mod, keys):
            text.append(line)
            lines |= dict.fromkeys((keys[one] for one in starting), len(text))
    starts = _function_lines(mod, text)
    for name, start in starts.items():
        lines |= {(name, node_id): start for node_id in params.get(name, ())}
    return Script("\n".join(text) + "\n", lines, starts)


def marked_lines(
    printed: ir.IRModule | ir.BaseFunc, parts: Iterable[_Part], **options: Any
) -> Iterator[tuple[str, list[_Part]]]:
    """Yield the lines of TVMScript, each with the parts that begin there."""
    marked = list(parts)
    marks = {one: f"irviz:{number}" for number, one in enumerate(marked)}
    starting: list[_Part] = []
    for line in tvmscript(printed, obj_to_annotate=marks, **options).splitlines():
        if (found := _MARK.search(line)) is not None:
            starting.append(marked[int(found[1])])
            line = line[: found.start()]
            if not line:  # a line that is only a mark precedes the part, as an `if`
                continue
        yield line, starting
        starting = []


def block_lines(printed: Script, graph: Graph) -> dict[NodeId, int]:
    """Return the lines of a PrimFunc's nodes: of its `def`, and of each innermost block.

    A block has no mark, as TVM writes several statements on a line. Its node is told by the order.
    """
    nodes = [node.id for node in graph.nodes if node.kind is NodeKind.BLOCK]
    start = printed.functions.get(graph.function, 0)
    if not nodes or not start:
        return {}
    blocks: list[int] = []
    around: list[tuple[int, int]] = []  # the open blocks: their indentation and line
    lines = printed.text.splitlines()
    for number, line in enumerate(lines[start:], start=start + 1):
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent <= _INDENT:
            break
        while around and indent <= around[-1][0]:
            around.pop()
        if _BLOCK.match(line):
            blocks = [one for one in blocks if not around or one != around[-1][1]]
            blocks.append(number)
            around.append((indent, number))
    found = {node.id: start for node in graph.nodes if node.kind is NodeKind.PARAM}
    if len(nodes) == len(blocks):
        found.update(zip(nodes, blocks, strict=True))
    return found


def prim_func_script(mod: ir.IRModule, name: str) -> str:
    """Return the TVMScript of one PrimFunc, or "" if the module has no PrimFunc of this name."""
    function = function_named(mod, name)
    if not isinstance(function, tirx.PrimFunc):
        return ""
    lines = tvmscript(function, name=name).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("@"))
    return "\n".join(lines[start:]) + "\n"


def _function_lines(mod: ir.IRModule, text: list[str]) -> dict[str, int]:
    names = {f"    def {gvar.name_hint}": gvar.name_hint for gvar in mod.functions}
    starts: dict[str, int] = {}
    for number, line in enumerate(text, start=1):
        head = line.partition("(")[0]
        if head in names:
            starts.setdefault(names[head], number)
    return starts


# --- TVMScript that every version of Python can read ---------------------------------------------


def tvmscript(printed: ir.IRModule | ir.BaseFunc, **options: Any) -> str:
    """Return the TVMScript of a module or function: `script(**options)`, the same in every Python.

    Python 3.12 lets TVM write sizes as type parameters, `def main[n](...)`, which older Pythons
    cannot parse, and which would make saved files depend on the Python that wrote them.

    Raises PrintError for a module or function that TVM cannot print.
    """
    try:
        with memory_errors():
            return str(printed.script(extra_config={"script.use_pep695": False}, **options))
    except MemoryError:
        raise
    except Exception as failure:  # TVM's C++ code raises exceptions of any class
        what = "module" if isinstance(printed, ir.IRModule) else "function"
        raise PrintError(f"TVM does not print this {what}: {message_of(failure)}") from failure


# --- The TVMScript of a module cut into functions ------------------------------------------------


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
        name: FunctionText(_cut(lines[starts[name] : end]), nodes[name], starts[name] + 1)
        for name, end in zip(ordered, ends, strict=False)  # there may be no function
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


def source_lines(function: relax.Function) -> Mapping[NodeId, tuple[str, int]]:
    """Return the file and line where each node was written, as far as they are known.

    They are told by the spans of bindings, or of their values: TVMScript that is parsed from a file
    has spans, and so has what irviz imports. A node that was imported from ONNX has the operator
    and the name that it has there, and the line 0.
    """
    ids = identify(function)
    found: dict[NodeId, tuple[str, int]] = {}
    for var, binding in definitions((), function.body):
        span = binding and (binding.span or getattr(binding.value, "span", None))
        if span is not None and not span.source_name.name.startswith("<"):  # as <string> does
            name, line = span.source_name.name, span.line
            found[ids[var]] = (PurePath(name).name if line else name), line
    return found


def source_words(places: Iterable[tuple[str, int]]) -> str:
    """Return the words for files and lines, such as `model.py, lines 23, 24`; 0 is no line."""
    found: dict[str, dict[int, None]] = {}
    for file, line in places:
        found.setdefault(file, {}).update({line: None} if line else {})
    return "; ".join(
        f"{file}, line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}" if lines else file
        for file, lines in found.items()
    )


def with_source_lines(mod: ir.IRModule, lines: Mapping[NodeId, tuple[str, int]]) -> ir.IRModule:
    """Return a module; the bindings of `main` were written in these files and lines."""
    function = mod["main"]
    places = {var: lines.get(node_id) for var, node_id in identify(function).items()}

    def written(binding: relax.VarBinding) -> relax.VarBinding:
        found = places.get(binding.var)
        if found is None:
            return binding
        span = ir.Span(ir.SourceName(found[0]), found[1], found[1], 0, 0)
        return relax.VarBinding(binding.var, binding.value, span)

    changed = tvm_ffi.structural_map(function.body, (relax.VarBinding, written))
    body = relax.BlockBuilder(mod).normalize(changed)
    new = relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)
    return with_functions(mod, {"main": new})
