"""From a declaration to its pictures."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count, cycle, pairwise
from pathlib import Path
from types import FunctionType
from typing import Literal, NamedTuple, TypeAlias, TypeVar
from xml.etree import ElementTree

from tvm import ir, tirx

from irviz.errors import DrawError, IrvizError, LoadError, NotFoundError
from irviz.figures.declaration import Declaration, in_language, say, say_each
from irviz.ir.destination_passing import destination_passing
from irviz.ir.numpy_program import line_offsets, part_offsets, write_function
from irviz.ir.tvmscript import Script, function_texts
from irviz.model.graph.graph import INPUT_KINDS, Graph, NodeId, NodeKind, RegionKind
from irviz.session.open_session import load
from irviz.session.session import Session
from irviz.session.stage_view import ViewState
from irviz.transforms.stage import INITIAL
from irviz.view.figure import Figure
from irviz.view.graph import node_labels
from irviz.view.loop_nest_figure import FOLDINGS, Folding, draw_loop_nest_diff
from irviz.view.slide import (
    CODE_SIZE,
    LINE_HEIGHT,
    Mark,
    Panel,
    SlideText,
    TooSmallError,
    draw_code,
    slide_figure,
    wrapped,
)
from irviz.view.slide_graph import GraphWords, draw_graph_panel
from irviz.view.svg_primitives import Rect, Size, add, add_rect, add_text, text_width
from irviz.view.theme import Theme, ground_colours, slide_theme

_WIDTHS = (96, 80, 70, 62, 55, 48, 42, 36)
"""The numbers of characters at which code is broken: the first that fits on the slide is taken."""
_LOOP_WIDTHS = tuple(
    (folding, width) for folding in FOLDINGS for width in (460.0, 380.0, 320.0, 280.0, 240.0, 210.0)
)
"""The widths of loop nests; more is folded where all of it fits at none."""


class Shape(NamedTuple):
    """How much of a picture is drawn, and how.

    Attributes:
        width: The most characters of a line of code.
        arrangement: Whether the panels are beside or above each other.
        has_types: Whether the types of values are written.
    """

    width: int
    arrangement: Literal["row", "column"] = "row"
    has_types: bool = True


Drawn: TypeAlias = tuple[Sequence[Panel], Sequence["str | None"]]
"""Panels, and the words of the arrows between them."""
Width = TypeVar("Width")


def draw_declaration(declaration: Declaration, root: Path = Path()) -> dict[str, Figure]:
    """Draw a figure in each of its languages.

    Args:
        root: The folder that files and modules of programs are found from.

    Returns:
        The pictures by the names of their files, without suffixes.

    Raises:
        IrvizError: A program is not found, or what is declared does not fit it or the slide; the
            message has the figure's name.
    """
    try:
        if declaration.kind == "picture":
            return {declaration.name: drawn_by_program(declaration, root)}
        session = figure_session(declaration, root)
        drawing = _Drawing(declaration, session, root)
        return {
            name + ("" if not number else f".{language}"): figure
            for number, language in enumerate(declaration.languages)
            for name, figure in drawing.figures(language)
        }
    except IrvizError as error:
        name = f"figure {declaration.name!r}"
        if name in str(error):
            raise
        kind = LoadError if isinstance(error, LoadError) else DrawError
        raise kind(f"{name}: {error}") from error


class _Drawing:
    """The pictures of one declaration."""

    def __init__(self, declaration: Declaration, session: Session, root: Path) -> None:
        self.declaration, self.session, self.root = declaration, session, root
        self.theme: Theme = slide_theme(declaration.theme)

    def figures(self, language: str) -> Iterator[tuple[str, Figure]]:
        """Yield the name of each picture and the picture."""
        one = self.declaration
        function = self.session.function
        match one.kind:
            case "graph":
                stage = self._stages()[-1]
                graph = self._graph_of(stage)
                fit = partial(self._graph, graph, stage, language)
                words = say("computational graph of {0}", language, function)
                yield one.name, self._fitted(fit, words, language, _sentences(graph), [stage])
            case "buffers" | "arguments":
                stage = self._stages()[-1]
                graph = destination_passing(self.session.stage(stage).module, function)
                if one.kind == "buffers":
                    graph = _with_writes(graph, say("writes", language))
                    words = "buffers of {0}, and the calls that write them"
                else:
                    words = "calls of {0}, with all arguments as inputs"
                words = say(words, language, function)
                fit = partial(self._graph, graph, stage, language)
                yield one.name, self._fitted(fit, words, language, _sentences(graph), [stage])
            case "stages":
                stages = self._stages()
                words = say("{0} after each transform", language, function)
                graphs = [self._graph_of(stage) for stage in stages]
                about = " ".join(_sentences(graph) for graph in graphs)
                fit = partial(self._stage_panels, graphs, stages, language)
                yield one.name, self._fitted(fit, words, language, about, stages)
            case "parts":
                stage = self._stages()[-1]
                words = say("parts of {0}", language, function)
                fit = partial(self._parts, stage, language)
                about = _sentences(self.session.graph(stage))
                yield one.name, self._fitted(fit, words, language, about, [stage])
            case "numpy":
                stage = self._stages()[-1]
                functions = one.functions or [function]
                words = say("{0} in TVMScript and in NumPy", language, ", ".join(functions))
                fit = partial(self._numpy, stage, functions, language)
                yield one.name, self._fitted(fit, words, language, words, [stage])
            case "history":
                stage = self._stages()[-1]
                history = self.session.history(one.around, stage=stage)
                stages = [step.stage.id for step in history.changes]
                words = say("history of {0}", language, one.around)
                fit = partial(self._graph, history.graph, stage, language)
                yield one.name, self._fitted(fit, words, language, repr(history), stages)
            case "loops":
                yield from self._loops(language)

    def _source(self, reference: object) -> Sequence[str]:
        """Return the text of a Python function without its docstring and what is hidden."""
        function = _resolve(reference, self.root)
        if not isinstance(function, FunctionType):
            raise LoadError(f"{reference!r} is not a Python function, whose text could be shown")
        tree = ast.parse(inspect.getsource(function))
        for one in ast.walk(tree):
            if isinstance(one, ast.FunctionDef) and ast.get_docstring(one):
                del one.body[0]
        return _shown(ast.unparse(tree).splitlines(), self.declaration.hide)

    def _stages(self) -> Sequence[str]:
        """Return the stages that are drawn."""
        if self.declaration.stages:
            for stage in self.declaration.stages:
                self.session.stage(stage)
            return self.declaration.stages
        lineage = self.session.lineage()
        return lineage if self.declaration.kind == "stages" else lineage[-1:]

    def _graph_of(self, stage: str) -> Graph:
        """Return the view of a stage."""
        one, view = self.declaration, ViewState()
        if one.around:
            view = view.at(NodeId(one.around), one.uses)
        return self.session.view(stage, view).graph

    def _fitted(
        self,
        panels: Callable[[Shape], Drawn],
        label: str,
        language: str,
        description: str,
        stages: Sequence[str],
    ) -> Figure:
        """Return the picture with as much of types and lines of code as fits on the slide."""
        one = self.declaration
        programs = [self.session.script(stage).text for stage in stages]
        title = in_language(one.title, language)
        words = in_language(one.description, language) or description
        text = SlideText(title, title or label, words, programs)
        size = Size(*one.size)
        source = [line for each in one.source for line in self._source(each)]

        def fit(shape: Shape) -> Figure:
            drawn, arrows = panels(shape)
            if source:
                group = ElementTree.Element("g", {"class": "code-panel"})
                broken = [part for line in source for part in wrapped(line, shape.width)]
                written = Panel(group, draw_code(group, broken, (0.0, 0.0), self.theme))
                drawn, arrows = [written, *drawn], ["", *arrows]
            least, arrangement = one.min_text, shape.arrangement
            return slide_figure(drawn, arrows, text, self.theme, size, least, arrangement)

        is_graph = one.kind in ("graph", "arguments", "buffers", "stages", "history")
        widths = _WIDTHS if source or one.callouts or not is_graph else _WIDTHS[:1]
        shapes = [Shape(width) for width in widths]
        if source:
            shapes += [Shape(width, "column") for width in widths]
        if is_graph:
            shapes += [Shape(width, has_types=False) for width in widths]
        return _first_that_fits(fit, shapes)

    def _graph(self, graph: Graph, stage: str, language: str, shape: Shape) -> Drawn:
        one = self.declaration
        callouts = {
            name: self._callout(graph, stage, name, what) for name, what in one.callouts.items()
        }
        notes = {name: in_language(words, language) for name, words in one.notes.items()}
        words = GraphWords(
            callouts, notes, one.highlight, shape.width, has_outputs=one.kind != "arguments"
        )
        graph = graph if shape.has_types else _without_types(graph)
        return [Panel(*draw_graph_panel(graph, self.theme, one.direction, words))], []

    def _callout(self, graph: Graph, stage: str, name: str, what: str) -> Sequence[str]:
        """Return the lines of TVMScript beside a node."""
        node, script = graph[name], self.session.script(stage)
        if what == "callee":
            return function_lines(script, node.callee, self.declaration.hide)
        line = script.lines.get((self.session.function, node.id))
        if line is None:
            raise NotFoundError(f"{name!r} has no line of TVMScript to show in a callout")
        return [script.line(line)]

    def _stage_panels(
        self, graphs: Sequence[Graph], stages: Sequence[str], language: str, shape: Shape
    ) -> Drawn:
        one, panels = self.declaration, []
        for at, graph in enumerate(graphs if shape.has_types else map(_without_types, graphs)):
            names = {*graph.index}
            notes = {n: in_language(w, language) for n, w in one.notes.items() if n in names}
            highlight = [name for name in one.highlight if name in names]
            words = GraphWords({}, notes, highlight, has_input_types=False)
            caption = in_language(one.captions[at], language) if at < len(one.captions) else ""
            drawn = draw_graph_panel(graph, self.theme, one.direction, words)
            panels.append(Panel(*drawn, caption))
        arrows = [self._between(before, after) for before, after in pairwise(stages)]
        if one.target:
            made = executable_panel(self.session.stage(stages[-1]).module, one.target, self.theme)
            at = len(stages)
            caption = in_language(one.captions[at], language) if at < len(one.captions) else ""
            panels, arrows = [*panels, made._replace(caption=caption)], [*arrows, "tvm.compile"]
        return panels, arrows

    def _between(self, before: str, after: str) -> str:
        """Return the names of the transforms that lead from a stage to another."""
        way = self.session.lineage(after)
        start = way.index(before) + 1 if before in way else len(way) - 1
        names = [self.session.stage(stage).label for stage in way[start:]]
        return "\n".join(name for name in names if name != INITIAL)

    def _parts(self, stage: str, language: str, shape: Shape) -> Drawn:
        script, function = self.session.script(stage), self.session.function
        if isinstance(self.session.stage(stage).module[function], tirx.PrimFunc):
            lines = function_lines(script, function, self.declaration.hide)
            return [prim_func_panel(lines, self.theme, language, shape.width)], []
        graph, hide = self.session.graph(stage), self.declaration.hide
        return [parts_panel(script, graph, hide, self.theme, language, shape.width)], []

    def _numpy(self, stage: str, functions: Sequence[str], language: str, shape: Shape) -> Drawn:
        chosen = self.session.stage(stage)
        script, hide = self.session.script(stage), self.declaration.hide
        panels = numpy_panels(
            chosen.module, script, functions, hide, self.theme, language, shape.width
        )
        return panels, [None]

    def _loops(self, language: str) -> Iterator[tuple[str, Figure]]:
        """Yield the loop nest, or what became of it in the steps of the schedule."""
        one, session = self.declaration, self.session
        words = say("loop nest of {0}", language, session.function)
        way = session.lineage()
        if not one.schedule:
            stage = self._stages()[-1]
            fit = partial(self._parts, stage, language)
            yield one.name, self._fitted(fit, words, language, words, [stage])
            return
        steps = list(pairwise(way))
        if not 0 <= one.step <= len(steps):
            raise NotFoundError(f"the schedule has steps 1 to {len(steps)}, and no {one.step}")
        for number, (before, after) in enumerate(steps, start=1):
            if one.step in (0, number):
                name = one.name if one.step else f"{one.name}-{number}"
                yield name, self._loop_step(before, after, language)

    def _loop_step(self, before: str, after: str, language: str) -> Figure:
        one, session = self.declaration, self.session
        found = session.diff(before, after, session.function)
        diff = next((each for each in found.functions if each.loops is not None), None)
        if diff is None:
            raise DrawError(f"step {after} of the schedule changes no loop nest")
        words = partial(say_each, language=language)
        label = words(session.stage(after).label)
        title = in_language(one.title, language) or label
        programs = [session.script(stage).text for stage in (before, after)]
        text = SlideText(title, title, found.text(), programs)

        def fit(shown: tuple[Folding, float]) -> Figure:
            group, (folding, width) = ElementTree.Element("g"), shown
            drawn = draw_loop_nest_diff(
                group, diff.nests, diff.loops, self.theme, width, folding, words
            )
            panel = Panel(group, Size(drawn.width, drawn.height))
            return slide_figure([panel], [], text, self.theme, Size(*one.size), one.min_text)

        return _first_that_fits(fit, _LOOP_WIDTHS)


def _first_that_fits(draw: Callable[[Width], Figure], widths: Sequence[Width]) -> Figure:
    """Draw with the first width that fits on the slide.

    Raises:
        TooSmallError: None fits; it is that of the picture with the largest text.
    """
    errors: list[TooSmallError] = []
    for width in widths:
        try:
            return draw(width)
        except TooSmallError as error:  # noqa: PERF203 - each width is another attempt
            errors.append(error)
    raise max(errors, key=lambda error: error.points)


def _with_writes(graph: Graph, word: str) -> Graph:
    """Return the graph with another word on the edges that write."""
    writing = {edge.source for edge in graph.edges if edge.is_write}
    return graph.with_nodes(
        [n._replace(type_text=word) if n.id in writing else n for n in graph.nodes]
    )


def _without_types(graph: Graph) -> Graph:
    return graph.with_nodes([node._replace(type_text="") for node in graph.nodes])


def _sentences(graph: Graph) -> str:
    """Describe a graph: a sentence about its inputs and one for each call."""
    inputs = [node for node in graph.nodes if node.kind in INPUT_KINDS]
    given = ", ".join(node_labels.value_label(node) for node in inputs)
    found = [f"{graph.function}({given})."]
    for node in graph.nodes:
        if node in inputs:
            continue
        operands = ", ".join(
            graph[edge.source].name or node_labels.title(graph[edge.source])
            for edge in graph.entering.get(node.id, ())
        )
        found.append(f"{node_labels.value_label(node)} = {node_labels.title(node)}({operands}).")
    return " ".join(found)


# --- The program of a figure: found by its name, and with its transforms applied, or called ------


_REFERENCE = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")


def figure_session(declaration: Declaration, root: Path) -> Session:
    """Return the session whose current stage the transforms of a figure end in.

    A program `package.module:attribute` is imported, and called where it is a function: it is the
    lecturer's own. A file goes through `irviz.load`, which runs nothing of it.

    Raises:
        LoadError: There is no such program.
    """
    program = declaration.program
    if isinstance(program, str) and not _REFERENCE.fullmatch(program):
        file = root / program
        session = load(file, name=declaration.module)
    else:
        session = _session(_resolve(program, root))
    for transform in declaration.transforms:
        found = _resolve(transform, root)
        session = session.apply(found() if isinstance(found, FunctionType) else found)
        if error := session.current.error:
            raise LoadError(f"figure {declaration.name!r}: {transform} failed: {error}")
    if declaration.function:  # which a transform may have made
        session = session.select_function(declaration.function)
    if declaration.schedule:
        steps = _resolve(declaration.schedule, root)
        if not callable(steps):
            raise LoadError(f"{declaration.schedule!r} is not a function that takes a Schedule")
        session = session.schedule(session.function, steps)
    return session


def drawn_by_program(declaration: Declaration, root: Path) -> Figure:
    """Return the picture that the program of a figure draws.

    Raises:
        LoadError: There is no such program, or it returns no picture.
    """
    draw = _resolve(declaration.program, root)
    drawn = draw() if callable(draw) else draw
    if not isinstance(drawn, Figure):
        raise LoadError(
            f"{declaration.program!r} gives a value of type {type(drawn).__name__}: a picture is "
            "drawn by a function that returns a Figure, such as that of irviz.draw"
        )
    return drawn


def _session(found: object) -> Session:
    if isinstance(found, FunctionType | type):
        found = found()
    if isinstance(found, Session):
        return found
    if isinstance(found, tirx.PrimFunc):
        name = str((found.attrs or {}).get("global_symbol", "main"))
        found = ir.IRModule({ir.GlobalVar(name): found})
    if isinstance(found, ir.IRModule):
        return Session(found, isolate=False)  # it is not out of a file
    return load(found)


def _resolve(what: object, root: Path) -> object:
    """Return the object that a reference means; anything else is returned as it is."""
    found = _REFERENCE.fullmatch(what) if isinstance(what, str) else None
    if found is None:
        return what
    with _importable(root):
        try:
            one: object = importlib.import_module(found[1])
        except ModuleNotFoundError as error:
            raise LoadError(
                f"{what!r} cannot be imported ({error}): give package.module:attribute, of a "
                f"package that is installed or a module in {str(root)!r}"
            ) from None
    for name in found[2].split("."):
        if not hasattr(one, name):
            raise LoadError(f"{what!r}: {found[1]} has no {found[2]!r}")
        one = getattr(one, name)
    return one


@contextmanager
def _importable(root: Path) -> Iterator[None]:
    """Let modules of a folder be imported, after all that is installed."""
    sys.path.append(str(root))
    try:
        yield
    finally:
        at = len(sys.path) - 1 - sys.path[::-1].index(str(root))  # it may also be further ahead
        del sys.path[at]


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
    return _shown(lines, hide)


def _shown(lines: Sequence[str], hide: Sequence[str]) -> list[str]:
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
_LINE_HEIGHT = 18.0
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
    raised = _INSET - 1.5  # for the ends of frames below the last row
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
            rect = Rect(x, top + 1, right - _INSET * (part.depth + 0.5), bottom)
        else:
            x = left + text_width(" " * part.start, CODE_SIZE) - 2
            end = left + text_width(" " * part.end, CODE_SIZE) + 2
            rect = Rect(x, top + 2, end, _INSET + (part.last + 1) * _LINE_HEIGHT - 3.5)
        if part.depth == 0:
            rect = rect._replace(left=left - inset - 1, top=1.0, bottom=bottom + _INSET - 1)
        group = add(frames, "g", "part")
        add_rect(group, rect, fill=fill, stroke=stroke, stroke_width=1.5, rx=3.0)
        if part.label:
            y = raised + part.label_row * _LINE_HEIGHT + 13
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
