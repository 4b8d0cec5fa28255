"""Panels of code: a function with its parts framed and named, or beside its NumPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count, cycle
from typing import NamedTuple
from xml.etree import ElementTree

from tvm import ir, tirx

from irviz.errors import NotFoundError
from irviz.figures.declaration import say
from irviz.ir.numpy_program import line_offsets, part_offsets, write_function
from irviz.ir.tvmscript import Script, function_texts
from irviz.model.graph.graph import Graph, NodeKind, RegionKind
from irviz.view.slide import CODE_SIZE, LINE_HEIGHT, Mark, Panel, draw_code, wrapped
from irviz.view.svg_primitives import Rect, Size, add, add_rect, add_text, text_width
from irviz.view.theme import Theme, ground_colours

_SIZE = re.compile(r"T\.int64\((\d+)\)")
"""A size as TVM's lowering writes it; its type is of no use to a reader."""
_ASSIGNED = re.compile(r"\s*(\w+)(?:: .*?)? = ")
_VALUES = {
    NodeKind.TUPLE: "relax.Tuple",
    NodeKind.TUPLE_GET_ITEM: "relax.TupleGetItem",
    NodeKind.IF: "relax.If",
    NodeKind.FUNCTION: "relax.Function",
}


def function_lines(script: Script, function: str, hide: Sequence[str]) -> list[str]:
    """Return the TVMScript of a function without the lines that begin with one of `hide`.

    Raises:
        NotFoundError: The module has no such function.
    """
    texts = function_texts(script)
    if function not in texts:
        known = ", ".join(map(repr, texts)) or "none"
        raise NotFoundError(f"the module has no function {function!r}; its functions are {known}")
    lines = [_SIZE.sub(r"\1", line) for line in texts[function].lines]
    return without_lines(lines, hide)


def without_lines(lines: Sequence[str], hide: Sequence[str]) -> list[str]:
    """Return the lines that begin with none of `hide`."""
    return [line for line in lines if not line.strip().startswith(tuple(hide))]


_PARTS = {  # the beginnings of lines, and what the frame around what they begin is called
    "for ": ("loop nest", "operator"),
    "with T.sblock(": ("block", "param"),
    "with T.init(": ("initial value", "library"),
}


def prim_func_panel(lines: Sequence[str], theme: Theme, language: str, width: int) -> Panel:
    """Return the panel of the parts of a PrimFunc: loop nests, blocks and their initial values."""
    written: list[str] = []
    parts: list[Part] = []
    inside: list[tuple[int, str, Part]] = []  # the indentation and kind of the open frames

    def close(indent: int) -> None:
        while inside and indent <= inside[-1][0]:
            parts.append(inside.pop()[2]._replace(last=len(written) - 1))

    for line in lines:
        indent, row, text = len(line) - len(line.lstrip()), len(written), line.strip()
        close(indent)
        kind = next((one for one in _PARTS if text.startswith(one)), "")
        if kind and not (kind == "for " and kind in [one[1] for one in inside]):
            name, colour = _PARTS[kind]
            depth = len(inside) + 1
            frame = Part(row, row, indent, None, say(name, language), row, depth, colour)
            inside.append((indent, kind, frame))
        written += wrapped(line, width)
    close(0)
    label = f"{say('function', language)} · tirx.PrimFunc"
    parts.append(Part(0, len(written) - 1, 0, None, label, 0, 0, "group"))
    parts.sort(key=lambda part: part.depth)
    return Panel(*draw_function_parts(written, parts, theme))


def executable_panel(module: ir.IRModule, target: str, theme: Theme) -> Panel:
    """Return the panel of an executable: how many functions it has, and what they are in it."""
    group = ElementTree.Element("g", {"class": "executable"})
    kernels = sum(isinstance(one, tirx.PrimFunc) for one in module.functions.values())
    counts = (len(module.functions) - kernels, "function", "bytecode"), (kernels, "kernel", target)
    rows = ["VMExecutable"]
    for number, what, form in counts:
        rows += ["", f"{number} {what}{'s' * (number != 1)}:", f"  {form}"]
    width = max(text_width(row, CODE_SIZE) for row in rows)
    size = Size(width + 4 * _INSET, len(rows) * LINE_HEIGHT + 4 * _INSET)
    fill, stroke = theme.colours["memory"]
    add_rect(group, Rect(0.0, 0.0, *size), fill=fill, stroke=stroke, stroke_width=1.5, rx=6.0)
    draw_code(group, rows, (2 * _INSET, 2 * _INSET), theme)
    return Panel(group, size)


def parts_panel(
    script: Script, graph: Graph, hide: Sequence[str], theme: Theme, language: str, width: int
) -> Panel:
    """Return the panel of the parts of a Relax function."""
    text = function_texts(script)[graph.function]
    at_line = {line: node for node, line in text.nodes.items()}
    explained = min(at_line, default=-1)
    lines: list[str] = []
    parts: list[Part] = []
    inner: list[Part] = []
    blocks: list[tuple[int, int]] = []  # the open blocks: their first row and indentation

    def close(indent: int) -> None:
        while blocks and indent <= blocks[-1][1]:
            first, column = blocks.pop()
            label = f"{say('dataflow block', language)} · relax.DataflowBlock"
            parts.append(Part(first, len(lines) - 1, column, None, label, first, 1, "operator"))

    for number, line in enumerate(text.lines):
        if line.strip().startswith(tuple(hide)):
            continue
        indent = len(line) - len(line.lstrip())
        close(indent)
        row = len(lines)
        if line.lstrip().startswith("with R.dataflow()"):
            blocks.append((row, indent))
        if line.lstrip().startswith("def "):
            begin, close_at = line.index("(") + 1, line.rindex(") -> ")
            given = wrapped(" " * begin + line[begin:close_at], width, depth=1)
            lines += [line[:begin] + given[0].lstrip(), *given[1:]]
            last = len(lines) - 1
            end = max(len(each) for each in lines[row:])
            lines.append(" " * (begin - 1) + line[close_at:])
            label = f"{say('parameters', language)} · relax.Var"
            inner.append(Part(row, last, begin, end, label, last + 2, 1, "param"))
            lines.append("")
        elif number in at_line and (found := _ASSIGNED.match(line)):
            begin = found.end()
            value = wrapped(" " * begin + line[begin:], width)
            lines += [line[:begin] + value[0].lstrip(), *value[1:]]
            last, depth = len(lines) - 1, len(blocks) + 1
            label = ""
            if number == explained:
                lines.append("")
                label = f"{say('binding', language)} · relax.VarBinding"
                node = graph[at_line[number]]
                is_inner = node.id not in _block_outputs(text.lines) and _in_block(graph, node.id)
                kind = "relax.DataflowVar" if is_inner else "relax.Var"
                kind = f"{say('variable', language)} · {kind}"
                called = f"{say('value', language)} · {_VALUES.get(node.kind, 'relax.Call')}"
                name_end = indent + len(found[1])
                end = max(len(each) for each in lines[row : last + 1])
                inner.append(Part(row, last, begin, end, called, last + 1, depth + 1, "library"))
                lines.append("")
                inner.append(Part(row, row, indent, name_end, kind, last + 2, depth + 1, "param"))
            label_row = len(lines) - 1 if label else row
            parts.append(Part(row, last, indent, None, label, label_row, depth, "call"))
        else:
            lines += wrapped(line, width)
    close(0)
    label = f"{say('function', language)} · relax.Function"
    parts.append(Part(0, len(lines) - 1, 0, None, label, 0, 0, "group"))
    parts.sort(key=lambda part: part.depth)
    return Panel(*draw_function_parts(lines, [*parts, *inner], theme))


def _block_outputs(lines: Sequence[str]) -> set[str]:
    """Return the variables of dataflow blocks that are seen outside of them."""
    found = (re.fullmatch(r"\s*R\.output\((.*)\)", line) for line in lines)
    return {name.strip() for one in found if one for name in one[1].split(",")}


def _in_block(graph: Graph, node_id: str) -> bool:
    region = graph[node_id].region
    return region is not None and graph.regions[region].kind is RegionKind.DATAFLOW_BLOCK


def numpy_panels(
    module: ir.IRModule,
    script: Script,
    functions: Sequence[str],
    hide: Sequence[str],
    theme: Theme,
    language: str,
    width: int,
) -> list[Panel]:
    """Return functions in TVMScript and as loop NumPy: what corresponds has the same number."""
    sides: tuple[list[str], list[str]] = ([], [])
    marked: tuple[dict[int, Mark], dict[int, Mark]] = ({}, {})
    grounds = cycle(ground_colours(theme))
    numbers = count(1)
    for name in functions:
        for side in sides:
            side += [""] if side else []
        texts = function_texts(script)
        if name not in texts:
            raise NotFoundError(f"the module has no function {name!r}; it has {', '.join(texts)}")
        tvmscript = texts[name].lines
        written = write_function(module, name, [])
        start = next(at for at, line in enumerate(tvmscript) if line.startswith("def "))
        origins = line_offsets(written, part_offsets(module[name], name, script))
        own = sorted({start + one for one in origins if one > 0})  # without the `def`
        ground = {at: Mark(next(grounds), str(next(numbers))) for at in own}
        for at, line in enumerate(tvmscript):
            if not line.strip().startswith(tuple(hide)):
                _add(sides[0], marked[0], line, width, ground.get(at))
        for origin, line in zip(origins, written.source.splitlines(), strict=True):
            _add(sides[1], marked[1], line, width, ground.get(start + origin))
    captions = "TVMScript", say("NumPy with loops", language)
    panels = []
    for side, marks, caption in zip(sides, marked, captions, strict=True):
        group = ElementTree.Element("g", {"class": "code-panel"})
        panels.append(Panel(group, draw_code(group, side, (0.0, 0.0), theme, marks), caption))
    height = max(panel.size.height for panel in panels)  # so that both begin at the top
    return [panel._replace(size=panel.size._replace(height=height)) for panel in panels]


def _add(
    lines: list[str], marked: dict[int, Mark], line: str, width: int, ground: Mark | None
) -> None:
    """Add a line in as many as it is broken into, with their ground and number."""
    for one in wrapped(line, width):
        if ground:
            marked[len(lines)] = ground
        lines.append(one)


# --- The parts of a function: its TVMScript with a labelled frame around each part ---------------


LABEL_SIZE = 11.0
_LINE_HEIGHT = 18.8
_INSET = 7.0


class Part(NamedTuple):
    """A frame around rows of code.

    Attributes:
        first: The first row.
        last: The last row, without that of the label.
        start: The column that it begins at.
        end: The column that it ends at, None for the right end of the frame around it.
        label: Its name, "" for none.
        label_row: The row of the label; one of a frame with an `end` is at its left.
        depth: The number of frames around it.
        colour: Its name in `Theme.colours`.
    """

    first: int
    last: int
    start: int
    end: int | None
    label: str
    label_row: int
    depth: int
    colour: str


def draw_function_parts(
    lines: Sequence[str], parts: Sequence[Part], theme: Theme
) -> tuple[ElementTree.Element, Size]:
    """Return a group with the drawn code and its frames, outer ones first, and its size."""
    root = ElementTree.Element("g", {"class": "function-parts"})
    frames, code, words = (add(root, "g", name) for name in ("frames", "lines", "labels"))
    deepest = max((part.depth for part in parts), default=0)
    left = _INSET * (deepest + 1)
    raised = _INSET - 1.7  # for the ends of frames below the last row
    size = draw_code(code, lines, (left, raised), theme, line_height=_LINE_HEIGHT)
    right = left + max(size.width, *(_needed(part, lines) for part in parts)) + left
    for part in parts:
        fill, stroke = theme.colours[part.colour]
        inset = _INSET * (deepest - part.depth)
        top = _INSET + part.first * _LINE_HEIGHT
        bottom = _INSET + (max(part.last, part.label_row) + 1) * _LINE_HEIGHT
        if part.end is None:
            x = left + text_width(" " * part.start, CODE_SIZE) - 5
            bottom -= 1 + part.depth  # inside the frame around it, which may end there too
            rect = Rect(x, top, right - _INSET * (part.depth + 0.5), bottom)
        else:
            x = left + text_width(" " * part.start, CODE_SIZE) - 2
            end = left + text_width(" " * part.end, CODE_SIZE) + 2
            rect = Rect(x, top + 2, end, _INSET + (part.last + 1) * _LINE_HEIGHT - 3.5)
        if part.depth == 0:
            rect = rect._replace(left=left - inset - 1, top=1.0, bottom=bottom + _INSET - 1)
        group = add(frames, "g", "part")
        add_rect(group, rect, fill=fill, stroke=stroke, stroke_width=1.5, rx=3.0)
        if part.label:
            y = raised + part.label_row * _LINE_HEIGHT + 14
            place = (rect.right - 6, y) if part.end is None else (rect.left + 1, y)
            anchor = "end" if part.end is None else "start"
            style = {"font_weight": "600"}
            add_text(words, part.label, place, LABEL_SIZE, stroke, anchor, **style)
    return root, Size(right, _INSET * 2 + len(lines) * _LINE_HEIGHT)


def _needed(part: Part, lines: Sequence[str]) -> float:
    """Return the width that a label's row needs for the label to follow its code."""
    if not part.label:
        return 0.0
    label = text_width(part.label, LABEL_SIZE) + 8
    if part.end is not None:
        return text_width(" " * part.start, CODE_SIZE) + label
    return text_width(lines[part.label_row], CODE_SIZE) + label + 2 * _INSET * part.depth + 14
