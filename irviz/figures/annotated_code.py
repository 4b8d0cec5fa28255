"""Panels of code: a function with its parts framed and named, or beside its NumPy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count, cycle
from typing import NamedTuple
from xml.etree import ElementTree

from tvm import ir, tirx

from irviz.errors import NotFoundError
from irviz.figures.figure_declarations import say
from irviz.ir.module_to_numpy import line_offsets, part_offsets, write_function
from irviz.ir.tvmscript import Script, function_texts
from irviz.model.diff.diff_result import FunctionText
from irviz.model.graph.graph import CALL_AND_OPERATOR_KINDS, Graph, NodeKind, RegionKind
from irviz.view.lecture_slide import CODE_SIZE, LINE_HEIGHT, Mark, Panel, draw_code, wrapped
from irviz.view.svg_primitives import Rect, Size, add, add_rect, add_text, text_width
from irviz.view.theme import Theme, ground_colours

_BRIEF = (
    (r"T\.int64\((\d+)\)", r"\1"),
    (r"(R\.Tensor\(\(.*?\), )dtype=", r"\1"),
    (r", out_dtype=None\)", ")"),
    (r"(\w+\[.*?\]) = \1 \+ (?!.* if )((?:[^-+[\]]|\[[^[\]]*\])*)$", r"\1 += \2"),
)
"""What is written at length, and how it is shorter: the last is `a[i] = a[i] + b`."""
_ASSIGNED = re.compile(r"\s*(\w+)(?:: .*?)? = ")
_DATAFLOW = "with R.dataflow()"
_VARIABLES = {"relax.Var": "param", "relax.DataflowVar": "memory"}
"""The colours of the classes of variables."""
_VALUES = {
    **dict.fromkeys(CALL_AND_OPERATOR_KINDS, "relax.Call"),
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
    return without_lines([brief(line) for line in _text(script, function).lines], hide)


def _text(script: Script, function: str) -> FunctionText:
    texts = function_texts(script)
    if function not in texts:
        known = ", ".join(map(repr, texts)) or "none"
        raise NotFoundError(f"the module has no function {function!r}; its functions are {known}")
    return texts[function]


def without_lines(lines: Sequence[str], hide: Sequence[str]) -> list[str]:
    """Return the lines that begin with none of `hide`, less indented in a hidden block."""
    kept: list[str] = []
    outer: list[int] = []  # the indentations of the hidden lines that begin open blocks
    for line in lines:
        indent = len(line) - len(line.lstrip())
        outer = [one for one in outer if one < indent or not line]
        if not line.strip().startswith(tuple(hide)):
            kept.append(line[_HANGING * len(outer) :])
        elif line.endswith(":"):
            outer.append(indent)
    return kept


def brief(line: str) -> str:
    """Return a line of code without what a reader does not need."""
    for pattern, short in _BRIEF:
        line = re.sub(pattern, short, line)
    return line


def numpy_lines(module: ir.IRModule, function: str) -> list[str]:
    """Return a function as short NumPy; raise NumPyError where it cannot be written as that."""
    source = write_function(module, function, []).source
    return [brief(line.replace(": np.ndarray", "")) for line in source.splitlines()]


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
    return draw_function_parts(written, parts, theme)


def executable_panel(module: ir.IRModule, target: str, theme: Theme) -> Panel:
    """Return the panel of an executable: what its functions are in it."""
    group = ElementTree.Element("g", {"class": "executable"})
    is_kernel = {
        str(one.name_hint): isinstance(f, tirx.PrimFunc) for one, f in module.functions.items()
    }
    kernels = sum(is_kernel.values())
    bytecode = [f"{name}:" for name in sorted(is_kernel) if not is_kernel[name]]
    rows = ["VMExecutable", "", *bytecode, "VM bytecode", ""]
    rows += [f"{kernels} kernel{'s' * (kernels != 1)}:", "compiled"]
    rows.append("by LLVM" if target.startswith("llvm") else f"for {target}")
    width = max(text_width(row, CODE_SIZE) for row in rows)
    size = Size(width + 3 * _INSET, len(rows) * LINE_HEIGHT + 3 * _INSET)
    fill, stroke = theme.colours["memory"]
    add_rect(group, Rect(0.0, 0.0, *size), fill=fill, stroke=stroke, stroke_width=1.5, rx=6.0)
    draw_code(group, rows, (1.5 * _INSET, 1.5 * _INSET), theme)
    for word in group.iter("tspan"):  # these are words, without the colours of code
        word.attrib = {"fill": theme.text}
    return Panel(group, size)


def parts_panel(
    script: Script, graph: Graph, hide: Sequence[str], theme: Theme, width: int
) -> Panel:
    """Return the panel of the parts of a Relax function, with the fields that hold them."""
    text = _text(script, graph.function)
    at_line = {line: node for node, line in text.nodes.items()}
    outputs = _block_outputs(text.lines)
    lines: list[str] = []
    parts: list[Part] = []
    blocks: list[tuple[int, int]] = []  # the open blocks: their first row and indentation
    explained: set[str] = set()  # the classes of variables, and fields, that have a label
    body = -1  # the first row of the body

    def close(indent: int) -> None:
        while blocks and indent <= blocks[-1][1]:
            first, column = blocks.pop()
            label, depth = ".blocks[i]: relax.DataflowBlock", len(blocks) + 2
            parts.append(Part(first, len(lines) - 1, column, None, label, first, depth, "operator"))

    for number, line in enumerate(text.lines):
        if line.strip().startswith(tuple(hide)):
            continue
        indent = len(line) - len(line.lstrip())
        code = line[indent:]
        close(indent)
        if body < 0 and (number in at_line or code.startswith((_DATAFLOW, "return "))):
            body = len(lines)
            lines.append("")
        row = len(lines)
        if code.startswith("def "):
            made, framed = _signature(line, row, width)
        elif number in at_line and (found := _ASSIGNED.match(line)):
            node = graph[at_line[number]]
            region = None if node.region is None else graph.regions[node.region].kind
            is_inner = node.id not in outputs and region is RegionKind.DATAFLOW_BLOCK
            kind = "relax.DataflowVar" if is_inner else "relax.Var"
            value = _VALUES.get(node.kind, "") if ".value" not in explained else ""
            labels = f".var: {kind}" if kind not in explained else "", value
            explained |= {kind, ".value"} if value else {kind}
            made, framed = _binding(line, found, row, width, labels, kind, len(blocks) + 2)
        elif code.startswith("return "):
            begin = indent + len("return ")
            made, framed = [line], [Part(row, row, begin, len(line), ".body", row, 2, "param")]
        else:
            made, framed = wrapped(line, width), []
            if code.startswith(_DATAFLOW):
                blocks.append((row, indent))
        lines += made
        parts += framed
    close(0)
    last = len(lines) - 1
    parts.append(Part(body, last, _HANGING - 1, None, ".body: relax.SeqExpr", body, 1, "group"))
    parts.append(Part(0, last, 0, None, "relax.Function", 0, 0, "group"))
    return draw_function_parts(lines, parts, theme)


def _signature(line: str, row: int, width: int) -> tuple[list[str], list[Part]]:
    """Return the rows of a `def`, and the frame around its parameters."""
    begin, end = line.index("(") + 1, line.rindex(") -> ")
    indent = " " * 2 * _HANGING
    given = [indent + one.lstrip() for one in wrapped(indent + line[begin:end], width, depth=1)]
    label, right = ".params[i]: relax.Var", max(map(len, given))
    part = Part(row + 1, row + len(given), len(indent), right, label, row, 1, "param")
    return [line[:begin], *given, line[end:]], [part]


def _binding(
    line: str,
    name: re.Match[str],
    row: int,
    width: int,
    labels: tuple[str, str],
    kind: str,
    depth: int,
) -> tuple[list[str], list[Part]]:
    """Return the rows of a binding, and the frames around it, its variable and its value.

    `kind` is the class of the variable. `labels` are the label of the variable, and the class of
    the value: the value has a frame and a label, and the binding a label, if this is not "".
    """
    (begin, end), at, (label, value) = name.span(1), name.end(), labels
    written = wrapped(" " * at + line[at:], width)
    lines = [line[:at] + written[0].lstrip(), *written[1:]]
    last, right = row + len(lines) - 1, max(map(len, lines))
    lines += [""] if label or value else []
    below = row + len(lines) - 1
    title = ".bindings[i]: relax.VarBinding" if value else ""
    parts = [
        Part(row, last, begin, None, title, below, depth, "call"),
        Part(row, row, begin, end, label, below, depth + 1, _VARIABLES[kind]),
    ]
    if value:
        parts.append(Part(row, last, at, right, f".value: {value}", below, depth + 1, "library"))
    return lines, parts


def _block_outputs(lines: Sequence[str]) -> set[str]:
    """Return the variables of dataflow blocks that are seen outside of them."""
    found = (re.fullmatch(r"\s*R\.output\((.*)\)", line) for line in lines)
    return {name.strip() for one in found if one for name in one[1].split(",")}


def code_panel(
    lines: Sequence[str], pairs: Sequence[Sequence[str]], theme: Theme, width: int
) -> Panel:
    """Return a panel of code: each of `pairs` begins lines that have its number and ground."""
    written: list[str] = []
    marked: dict[int, Mark] = {}
    grounds = ground_colours(theme)
    mark, outer = None, 0
    for line in lines:
        indent, text = len(line) - len(line.lstrip()), line.strip()
        found = [at for at, one in enumerate(pairs) if text.startswith(tuple(one))]
        if found:
            mark, outer = Mark(grounds[found[0] % len(grounds)], str(found[0] + 1)), indent
        elif indent <= outer:
            mark = None
        _add(written, marked, line, width, mark)
    group = ElementTree.Element("g", {"class": "code-panel"})
    return Panel(group, draw_code(group, written, (0.0, 0.0), theme, marked))


def numpy_panels(
    module: ir.IRModule,
    script: Script,
    functions: Sequence[str],
    hide: Sequence[str],
    theme: Theme,
    width: int,
) -> list[Panel]:
    """Return functions in TVMScript and as NumPy: what corresponds has the same number."""
    sides: tuple[list[str], list[str]] = ([], [])
    marked: tuple[dict[int, Mark], dict[int, Mark]] = ({}, {})
    grounds = cycle(ground_colours(theme))
    numbers = count(1)
    for name in functions:
        for side in sides:
            side += [""] if side else []
        tvmscript = _text(script, name).lines
        written = write_function(module, name, [])
        start = next(at for at, line in enumerate(tvmscript) if line.startswith("def "))
        origins = line_offsets(written, part_offsets(module[name], name, script))
        own = sorted({start + one for one in origins if one > 0})  # without the `def`
        ground = {at: Mark(next(grounds), str(next(numbers))) for at in own}
        for at, line in enumerate(tvmscript):
            if not line.strip().startswith(tuple(hide)):
                _add(sides[0], marked[0], brief(line), width, ground.get(at))
        for origin, line in zip(origins, written.source.splitlines(), strict=True):
            _add(sides[1], marked[1], brief(line), width, ground.get(start + origin))
    panels = []
    for side, marks, caption in zip(sides, marked, ("TVMScript", "NumPy"), strict=True):
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
_INSET, _FRAME = 7.0, 5.0
"""The space at the left of a frame, and above and below it for it and the next one."""
_LABEL_GAP = 14.0
_HANGING = 4


class Part(NamedTuple):
    """A frame around rows of code, from its first to its last one, without that of the label.

    Attributes:
        start: The column that it begins at.
        end: The column that it ends at, None for the right end of the frame around it.
        label_row: The row of the label, which follows what is in it; that of a frame without an
            `end` is in this frame, at the right.
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

    @property
    def bottom(self) -> int:
        """The last row of its frame."""
        return self.last if self.end is not None else max(self.last, self.label_row)


def draw_function_parts(lines: Sequence[str], parts: Sequence[Part], theme: Theme) -> Panel:
    """Return the panel of the code and its frames, outer ones first."""
    parts = sorted(parts, key=lambda part: part.depth)
    root, left = ElementTree.Element("g", {"class": "function-parts"}), _INSET
    frames, code, words = (add(root, "g", name) for name in ("frames", "lines", "labels"))
    rows = range(len(lines))
    begun = [sorted({part.depth for part in parts if part.first == at}) for at in rows]
    ended = [sorted({part.depth for part in parts if part.bottom == at}) for at in rows]
    tops, y = [], 0.0
    for at in rows:
        tops.append(y + _FRAME * len(begun[at]))
        y = tops[-1] + LINE_HEIGHT + _FRAME * len(ended[at])
    draw_code(code, lines, (left, 0.0), theme, tops=tops)

    def column(at: int) -> float:
        return left + text_width(" " * at, CODE_SIZE)

    used, places, right = [column(len(line)) for line in lines], {}, 0.0
    for part in sorted(parts, key=lambda part: part.end is None):  # inner labels are at the left
        row, width = part.label_row, text_width(part.label, LABEL_SIZE) + _LABEL_GAP
        if part.end is None:
            widest = max(used[row] + width * bool(part.label), *used[part.first : part.bottom + 1])
            right = max(right, widest + _INSET * (part.depth + 1.5))
        elif part.label:
            places[part] = max(column(part.start), used[row] + _LABEL_GAP)
            used[row] = places[part] + width - _LABEL_GAP
    for part in parts:
        fill, stroke = theme.colours[part.colour]
        above, below = begun[part.first], ended[part.bottom]
        end = right - _INSET * (part.depth + 0.5) if part.end is None else column(part.end) + 3
        rect = Rect(
            column(part.start) - (3 if part.end is not None else 5),
            tops[part.first] - _FRAME * (len(above) - above.index(part.depth) - 0.5),
            end,
            tops[part.bottom] + LINE_HEIGHT + _FRAME * (len(below) - below.index(part.depth) - 0.5),
        )
        group = add(frames, "g", "part")
        add_rect(group, rect, fill=fill, stroke=stroke, stroke_width=1.5, rx=3.0)
        if part.label:
            anchor = "end" if part.end is None else "start"
            place = places.get(part, rect.right - 6), tops[part.label_row] + 11
            add_text(words, part.label, place, LABEL_SIZE, stroke, anchor, font_weight="600")
    return Panel(root, Size(right, y))
