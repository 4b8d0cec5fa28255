"""Draw the figures that a declaration describes."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from types import FunctionType
from typing import TypeAlias, TypeVar
from xml.etree import ElementTree

from tvm import ir, tirx

from irviz.errors import DrawError, IrvizError, LoadError, NotFoundError
from irviz.figures.annotated_code import (
    brief,
    code_panel,
    executable_panel,
    function_lines,
    numpy_lines,
    numpy_panels,
    parts_panel,
    prim_func_panel,
    without_lines,
)
from irviz.figures.figure_declarations import Declaration, Words, in_language, say, say_each
from irviz.ir.destination_passing import destination_passing
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import Graph, NodeId, RegionKind
from irviz.session.open_session import load
from irviz.session.session import Session
from irviz.session.shown_function import ViewState
from irviz.transforms.stage import INITIAL
from irviz.view.figure import Figure
from irviz.view.graph import node_labels
from irviz.view.lecture_graph import GraphWords, Shape, draw_graph_panel, without_frames
from irviz.view.lecture_slide import (
    LINE_HEIGHT,
    Arrangement,
    Panel,
    SlideText,
    TooSmallError,
    slide_figure,
)
from irviz.view.loop_nest_figure import FOLDINGS, Folding, draw_loop_nest_diff
from irviz.view.module_diff import draw_sign_legend, signs_in
from irviz.view.svg_primitives import Size
from irviz.view.theme import Theme, slide_theme

_WIDTHS = (96, 80, 70, 62, 55, 48, 42, 36)
"""The numbers of characters at which code is broken: the first that fits on the slide is taken."""
_DATAFLOW = "with R.dataflow():"
_LOOP_WIDTHS = (460.0, 380.0, 320.0, 280.0, 240.0, 210.0)
_LARGE_TEXT = (19.0, 17.0, 15.5)
"""Sizes of text, in points, for which rows of a loop nest that did not change are folded."""
_LEGEND_GAP = 10.0


_LABELS = {
    "graph": "computational graph of {0}",
    "arguments": "calls of {0}, with all arguments as inputs",
    "buffers": "buffers of {0}, and the calls that write them",
    "stages": "{0} after each transform",
    "parts": "parts of {0}",
    "code": "{0} as text",
    "numpy": "{0} in TVMScript and in NumPy",
    "loops": "loop nest of {0}",
    "history": "history of {0}",
}
"""What screen readers call a figure without a title, by its kind."""

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
        return {
            name + ("" if not number else f".{language}"): figure
            for number, language in enumerate(declaration.languages)
            for name, figure in _Drawing(declaration, session, root, language).figures()
        }
    except IrvizError as error:
        name = f"figure {declaration.name!r}"
        if name in str(error):
            raise
        kind = LoadError if isinstance(error, LoadError) else DrawError
        raise kind(f"{name}: {error}") from error


class _Drawing:
    """The pictures of one declaration in one language."""

    def __init__(
        self, declaration: Declaration, session: Session, root: Path, language: str
    ) -> None:
        self.declaration, self.session, self.root = declaration, session, root
        self.language = language
        self.theme: Theme = slide_theme(declaration.theme)

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the name of each picture and the picture."""
        if self.declaration.kind == "loops" and self.declaration.schedule:
            yield from self._loop_steps()
        else:
            yield self.declaration.name, self._picture()

    def _picture(self) -> Figure:
        """Return the picture, with its label, its description and the stages in it."""
        one, function, stages = self.declaration, self.session.function, self._stages()
        stage, functions = stages[-1], one.functions or [function]
        named = {"code": ", ".join(functions), "numpy": ", ".join(functions), "history": one.around}
        label = about = say(_LABELS[one.kind], self.language, named.get(one.kind, function))
        panels: Callable[[Shape], Drawn] = partial(self._parts, stage)
        shown: Sequence[str] = [stage]
        match one.kind:
            case "graph":
                graph = self._graph_of(stage)
                _check_names(one.names, [graph])
                panels, about = partial(self._graph, graph, stage), _sentences(graph)
            case "buffers" | "arguments":
                graph = destination_passing(self.session.stage(stage).module, function)
                if one.kind == "buffers":
                    graph = _with_writes(graph, say("writes", self.language))
                panels, about = partial(self._graph, graph, stage), _sentences(graph)
            case "stages":
                graphs = [self._graph_of(stage) for stage in stages]
                _check_names(one.names, graphs)
                panels, shown = partial(self._stage_panels, graphs, stages), stages
                about = " ".join(map(_sentences, graphs))
            case "parts":
                about = _sentences(self.session.graph(stage))
            case "code":
                panels = partial(self._code, stage, functions)
            case "numpy":
                panels = partial(self._numpy, stage, functions)
            case "history":
                history = self.session.history(one.around, stage=stage)
                panels, about = partial(self._graph, history.graph, stage), repr(history)
                shown = [step.stage.id for step in history.changes]
        return self._fitted(panels, label, about, shown)

    def _words(self, words: Words) -> str:
        return in_language(words, self.language)

    def _source(self, reference: object) -> Sequence[str]:
        """Return the text of a Python function without its docstring and what is hidden."""
        function = _resolve(reference, self.root)
        if not isinstance(function, FunctionType):
            raise LoadError(f"{reference!r} is not a Python function, whose text could be shown")
        tree = ast.parse(inspect.getsource(function))
        for one in ast.walk(tree):
            if isinstance(one, ast.FunctionDef) and ast.get_docstring(one):
                del one.body[0]
        return without_lines(ast.unparse(tree).splitlines(), self.declaration.hide)

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
        opened = tuple(name for name, state in one.groups.items() if state == "open")
        view = view.choose(Expansion(opened, frozenset({*one.groups} - {*opened})))
        graph = self.session.view(stage, view).graph
        is_hidden = _DATAFLOW.startswith(tuple(one.hide))
        kinds = [RegionKind.DATAFLOW_BLOCK] if is_hidden else []
        blocks = [at for at, region in enumerate(graph.regions) if region.kind in kinds]
        return without_frames(graph, blocks)

    def _fitted(
        self, panels: Callable[[Shape], Drawn], label: str, about: str, stages: Sequence[str]
    ) -> Figure:
        """Return the picture with as much of types and lines of code as fits on the slide."""
        one = self.declaration
        programs = [self.session.script(stage).text for stage in stages]
        title = self._words(one.title)
        words = self._words(one.description) or about
        text = SlideText(title, title or label, words, programs)
        size = Size(*one.size)
        source = _with_gaps([self._source(each) for each in one.source])

        def fit(shape: Shape) -> Figure:
            drawn, arrows = panels(shape)
            if source:
                written = code_panel(source, one.pairs, self.theme, shape.width)
                drawn, arrows = [written, *drawn], ["", *arrows]
            if one.arrows:
                arrows = [self._words(each) for each in one.arrows]
            if len(arrows) - len(drawn) not in (-1, 0):
                raise DrawError(f"give {len(drawn) - 1} arrows, and not {len(arrows)}")
            least, arrangement = one.min_text, shape.arrangement
            return slide_figure(drawn, arrows, text, self.theme, size, least, arrangement)

        is_graph = one.kind in ("graph", "arguments", "buffers", "stages", "history")
        widths = _WIDTHS if source or one.callouts or not is_graph else _WIDTHS[:1]
        arrangements: Sequence[Arrangement] = ("row", "column") if source else ("row",)
        shapes = [Shape(width, one) for width in widths for one in arrangements]
        if is_graph:
            kept = [(True, True), (True, False), (False, True)]  # types, and those of inputs
            shapes = [
                Shape(width, "row", is_roomy, *types)
                for types in (kept if one.kind == "stages" else kept[::2])
                for is_roomy in (True, False)
                for width in widths
            ]
        return _first_that_fits(fit, shapes)

    def _graph(self, graph: Graph, stage: str, shape: Shape) -> Drawn:
        one = self.declaration
        words = GraphWords(
            shape,
            self._callouts(graph, stage),
            {name: self._words(words) for name, words in one.notes.items()},
            one.highlight,
            has_outputs=one.kind != "arguments",
            overlay=self.session.overlay(one.overlay, stage=stage) if one.overlay else None,
        )
        graph = _with_names(graph, one.names)
        return [draw_graph_panel(graph, self.theme, one.direction, words, one.columns)], []

    def _callouts(self, graph: Graph, stage: str) -> dict[str, Sequence[str]]:
        wanted = self.declaration.callouts.items()
        return {
            name: self._renamed(self._callout(graph, stage, name, what)) for name, what in wanted
        }

    def _renamed(self, lines: Sequence[str]) -> Sequence[str]:
        """Return lines of code with other names of variables."""
        names = self.declaration.variables
        return [re.sub(r"\w+", lambda one: names.get(one[0], one[0]), line) for line in lines]

    def _callout(self, graph: Graph, stage: str, name: str, what: str) -> Sequence[str]:
        """Return the lines of code beside a node."""
        node, script = graph[name], self.session.script(stage)
        if what == "numpy":
            return numpy_lines(self.session.stage(stage).module, node.callee)
        if what == "callee":
            return function_lines(script, node.callee, self.declaration.hide)
        line = script.lines.get((self.session.function, node.id))
        if line is None:
            raise NotFoundError(f"{name!r} has no line of TVMScript to show in a callout")
        return [brief(script.line(line))]

    def _stage_panels(self, graphs: Sequence[Graph], stages: Sequence[str], shape: Shape) -> Drawn:
        one, panels = self.declaration, []
        for at, graph in enumerate(graphs):
            notes = {n: self._words(w) for n, w in one.notes.items() if n in graph.index}
            highlight = [name for name in one.highlight if name in graph.index]
            callouts = self._callouts(graph, stages[at]) if at == len(stages) - 1 else {}
            words = GraphWords(shape, callouts, notes, highlight, are_below=bool(callouts))
            graph = _with_names(graph, one.names)
            drawn = draw_graph_panel(graph, self.theme, one.direction, words)
            panels.append(drawn._replace(caption=self._caption(at)))
        arrows = [self._between(before, after) for before, after in pairwise(stages)]
        if one.target:
            made = executable_panel(self.session.stage(stages[-1]).module, one.target, self.theme)
            panels.append(made._replace(caption=self._caption(len(stages))))
            arrows.append("tvm.compile")
        return panels, arrows

    def _between(self, before: str, after: str) -> str:
        """Return the names of the transforms that lead from a stage to another."""
        way = self.session.lineage(after)
        start = way.index(before) + 1 if before in way else len(way) - 1
        names = [self.session.stage(stage).label for stage in way[start:]]
        return "\n".join(name for name in names if name != INITIAL)

    def _parts(self, stage: str, shape: Shape) -> Drawn:
        script, function = self.session.script(stage), self.session.function
        if isinstance(self.session.stage(stage).module[function], tirx.PrimFunc):
            lines = function_lines(script, function, self.declaration.hide)
            return [prim_func_panel(lines, self.theme, self.language, shape.width)], []
        graph, hide = self.session.graph(stage), self.declaration.hide
        return [parts_panel(script, graph, hide, self.theme, shape.width)], []

    def _code(self, stage: str, functions: Sequence[str], shape: Shape) -> Drawn:
        one, script = self.declaration, self.session.script(stage)
        texts = [self._renamed(function_lines(script, name, one.hide)) for name in functions]
        lines = _with_gaps(texts)
        for start, words in one.notes.items():
            behind = f"  # {self._words(words)}"
            lines = [text + behind * text.strip().startswith(start) for text in lines]
        return [code_panel(lines, one.pairs, self.theme, shape.width)], []

    def _numpy(self, stage: str, functions: Sequence[str], shape: Shape) -> Drawn:
        chosen = self.session.stage(stage)
        script, hide = self.session.script(stage), self.declaration.hide
        panels = numpy_panels(chosen.module, script, functions, hide, self.theme, shape.width)
        return panels, [None]

    def _caption(self, at: int) -> str:
        captions = self.declaration.captions
        return self._words(captions[at]) if at < len(captions) else ""

    def _loop_steps(self) -> Iterator[tuple[str, Figure]]:
        """Yield what became of the loop nest in the steps of the schedule."""
        one, steps = self.declaration, list(pairwise(self.session.lineage()))
        if not 0 <= one.step <= len(steps):
            raise NotFoundError(f"the schedule has steps 1 to {len(steps)}, and no {one.step}")
        for number, (before, after) in enumerate(steps, start=1):
            if one.step in (0, number):
                name = one.name if one.step else f"{one.name}-{number}"
                title = self._caption(number - 1) or self._words(one.title)
                yield name, self._loop_step(before, after, title)

    def _loop_step(self, before: str, after: str, title: str) -> Figure:
        one, session = self.declaration, self.session
        found = session.diff(before, after, session.function)
        diff = next((each for each in found.functions if each.loops is not None), None)
        if diff is None:
            raise DrawError(f"step {after} of the schedule changes no loop nest")
        words = partial(say_each, language=self.language)
        title = title or words(session.stage(after).label)
        programs = [session.script(stage).text for stage in (before, after)]
        text = SlideText(title, title, found.text(), programs)

        def fit(shown: tuple[float, Folding, float]) -> Figure:
            group, (least, folding, width) = ElementTree.Element("g"), shown
            drawn = draw_loop_nest_diff(
                group, diff.nests, diff.loops, self.theme, width, folding, words
            )
            corner = (0.0, drawn.height + _LEGEND_GAP)
            end = draw_sign_legend(
                group,
                signs_in(group),
                corner,
                self.theme,
                partial(say, language=self.language),
                has_pale=True,
            )
            size = Size(max(drawn.width, end), drawn.height + _LEGEND_GAP + LINE_HEIGHT)
            panel = Panel(group, size)
            return slide_figure([panel], [], text, self.theme, Size(*one.size), least)

        large = [size for size in _LARGE_TEXT if size > one.min_text]
        shapes = product((large, [one.min_text]), FOLDINGS)
        return _first_that_fits(
            fit,
            [
                (size, folding._replace(hide=tuple(one.hide)), width)
                for sizes, folding in shapes
                for size, width in product(sizes, _LOOP_WIDTHS)
            ],
        )


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


def _with_gaps(texts: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of texts with an empty one between them."""
    return [line for text in texts for line in ("", *text)][1:]


def _with_writes(graph: Graph, word: str) -> Graph:
    """Return the graph with another word on the edges that write."""
    writing = {edge.source for edge in graph.edges if edge.is_write}
    return graph.with_nodes(
        [n._replace(type_text=word) if n.id in writing else n for n in graph.nodes]
    )


def _check_names(names: Iterable[str], graphs: Sequence[Graph]) -> None:
    """Raise NotFoundError for a name of what no graph has."""
    nodes = {name for graph in graphs for one in graph.nodes for name in (one.id, one.callee)}
    known = nodes | {region.id for graph in graphs for region in graph.regions}
    for name in names:
        if name not in known:
            raise NotFoundError(f"names: no node, callee or frame is {name!r}")


def _with_names(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return the graph with other names of nodes and frames."""
    nodes = []
    for node in graph.nodes:
        words = names.get(node.id) or names.get(node.callee)
        if words and node.callee:
            node = node._replace(callee=words, literals=())
        nodes.append(
            node._replace(name=words, attributes=()) if words and not node.callee else node
        )
    regions = tuple(one._replace(name=names.get(one.id, one.name)) for one in graph.regions)
    return replace(graph, regions=regions).with_nodes(nodes)


def _sentences(graph: Graph) -> str:
    """Describe a graph: a sentence about its inputs and one for each call."""
    inputs = [node for node in graph.nodes if node.is_input]
    given = ", ".join(
        ": ".join(filter(None, (node_labels.title(node), node_labels.type_in_picture(node))))
        for node in inputs
    )
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
