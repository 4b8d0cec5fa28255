"""A figure shows itself in a notebook and saves itself whole or not at all."""

import itertools
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from irviz.ir.function_graph import extract
from irviz.model.folding.group_tree import container_tree
from irviz.model.folding.visible_graph import visible_graph
from irviz.model.graph.graph import OUTPUT, Graph, NodeId
from irviz.transforms.passes.pass_transform import named_pass
from irviz.view.graph import graph_figure, graphviz_engine
from irviz.view.graph import layout as graph_layout
from irviz.view.graph.dot import layout_input
from irviz.view.graph.graph_figure import GraphFigure, draw_graph, draw_placed, place_graph
from irviz.view.graph.overlay import Mark, Overlay
from tests.constructs import deep_branches

PICTURE = GraphFigure(svg="<svg/>\n", dot="digraph {}\n", width=10, height=10)


@pytest.mark.parametrize("name", ["a.svg", "a.SVG", "é 線.svg"])
def test_an_svg_file_holds_the_picture(tmp_path, name):
    saved = PICTURE.save(tmp_path / name)
    assert saved == tmp_path / name
    assert saved.read_text(encoding="utf-8") == "<svg/>\n"
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_dot_file_holds_what_the_engine_was_told(tmp_path):
    assert PICTURE.save(str(tmp_path / "a.dot")).read_text(encoding="utf-8") == "digraph {}\n"


def test_saving_again_replaces(tmp_path):
    target = tmp_path / "a.svg"
    target.write_text("old")
    PICTURE.save(target)
    assert target.read_text(encoding="utf-8") == "<svg/>\n"


@pytest.mark.parametrize("name", ["a.gif", "a", "a.svgz", ".svg", "a.svg.txt"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"give a name ending in \.svg or \.pdf or \.png or \.dot"):
        PICTURE.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(ValueError, match="there is no directory") as caught:
        PICTURE.save(tmp_path / "nowhere" / "a.svg")
    assert repr(str(tmp_path / "nowhere")) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_keeps_what_it_has(tmp_path):
    (tmp_path / "a.svg").mkdir()
    (tmp_path / "a.svg" / "kept").write_text("kept")
    with pytest.raises(ValueError, match="it is not a regular file"):
        PICTURE.save(tmp_path / "a.svg")
    assert [p.name for p in tmp_path.iterdir()] == ["a.svg"]
    assert (tmp_path / "a.svg" / "kept").read_text() == "kept"


def test_a_notebook_shows_the_picture(modules):
    drawn = draw_graph(extract(modules.SameTwice))
    assert re.sub("<style>.*</style>", "", drawn._repr_svg_()) == drawn.svg
    assert drawn.svg.startswith("<svg ")
    assert drawn.dot.startswith("digraph")


def test_a_figure_knows_its_size_and_says_what_it_is(modules):
    drawn = draw_graph(extract(modules.SameTwice))
    root = ElementTree.fromstring(drawn.svg)
    size = (float(root.get("width")), float(root.get("height")))
    assert size == pytest.approx((drawn.width, drawn.height), abs=0.01)
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert repr(drawn) == (
        f"<Figure of {len(drawn.svg)} bytes of SVG; save it with .save('name.svg')>"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"theme": "neon"}, "there is no theme 'neon'; choose one of course, dark"),
        ({"direction": "left"}, "there is no direction 'left'; choose one of up, down"),
    ],
)
def test_unknown_options_are_refused(modules, options, words):
    with pytest.raises(ValueError, match=words):
        draw_graph(extract(modules.SameTwice), **options)


def test_what_is_told_and_what_is_pale_are_saved_with_the_picture(modules, tmp_path):
    graph = extract(modules.SameTwice)
    overlay = Overlay("size of each value", "0 B", "8 B", {NodeId("y"): Mark(1.0, "8 B")})
    drawn = draw_graph(graph, overlay=overlay, dimmed=["x"])
    text = drawn.save(tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == drawn.svg
    assert text.count(">8 B</text>") == 2  # beside the node, and in the legend
    assert 'class="node param dimmed" data-node="x" opacity="0.62"' in text


def test_themes_differ_in_colours_and_in_nothing_else(modules):
    graph = extract(modules.EveryKind)
    light, dark = (draw_graph(graph, theme).svg for theme in ("course", "dark"))
    assert light != dark
    assert re.sub("#[0-9a-f]{6}", "", light) == re.sub("#[0-9a-f]{6}", "", dark)


# --- whatever Graphviz answers, there is a picture ----------------------------------------------


SPOILING = """
import json, os, sys

folder = os.path.dirname(__file__)
sys.path.remove(folder)
del sys.modules["pygraphviz"]
import pygraphviz

draw = pygraphviz.AGraph.draw

def spoiled(self, **options):
    answer, lines = draw(self, **options), os.path.join(folder, "lines")
    drawn = json.loads(answer)
    objects, edges = drawn.get("objects", []), drawn.get("edges", [])
    # not the trial of the engine's start
    if os.path.exists(lines) and any(item["name"] == "n0" for item in objects):
        with open(lines) as file:
            exec(file.read(), globals())
        given = spoil(drawn, objects, edges)
        answer = json.dumps(drawn).encode() if given is None else given
    return answer

pygraphviz.AGraph.draw = spoiled
"""


@pytest.fixture(scope="module")
def spoiling(tmp_path_factory):
    """Let Graphviz's answers go through the lines of the file that is returned, if it is there."""
    folder = tmp_path_factory.mktemp("spoiling")
    (folder / "pygraphviz.py").write_text(SPOILING)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        graphviz_engine.ENGINE.stop()
        yield folder / "lines"
        graphviz_engine.ENGINE.stop()


@pytest.fixture
def spoiled(spoiling):
    """Let Graphviz's answers, as `drawn`, go through some lines before irviz gets them.

    The function returns a time limit that no picture had before: layouts are kept for each limit.
    """

    def spoil(lines):
        spoiling.write_text(f"def spoil(drawn, objects, edges):\n    {lines}\n")
        return 30 + next(PART) * 1e-6

    yield spoil
    spoiling.unlink()


PART = itertools.count(1)
ROUTED = [
    "edges[3].pop('pos')",
    "[edge.pop('pos') for edge in edges]",
    "edges[0]['pos'] += ';' + edges[0]['pos']",
    "edges[0]['pos'] = 's,1,2 ' + edges[0]['pos']",
    "edges[0]['pos'] = 'e,nan,nan ' + edges[0]['pos']",
    "drawn['edges'] = []",
]
PLAIN = [
    ("[item.pop('pos') for item in objects if item['name'] == 'n2']", "is incomplete"),
    ("objects.pop()", "is incomplete"),
    ("next(item for item in objects if 'bb' in item).pop('bb')", "is incomplete"),
    ("drawn['objects'] = []", "is incomplete"),
    ("objects[-1]['pos'] = 'nan,0'", "failed (Graphviz answered 'nan,0' where 2 finite numbers"),
    ("del drawn['bb']", "failed (Graphviz answered None where 4 finite numbers"),
    ("drawn['objects'] = 7", "failed ("),
    ("return b'[]'", "failed (Graphviz answered '[]' instead of a graph"),
    ("return b'lost n3 n4 edge'", "failed ("),
    ("return b'\\xff'", "failed ("),
    ("return b''", "failed ("),
    ("return b'[' * 100_000", "failed ("),
    ("raise ValueError('out of memory')", "failed (Graphviz cannot lay out this DOT text"),
    ("raise RuntimeError('odd')", "failed (odd"),
    ("os._exit(3)", "was not ready within 30 s"),
]


def check_is_whole(drawing, graph, read_picture):
    picture = read_picture(drawing.svg)
    drawn = [node.id for node in picture.nodes if "output" not in node.classes]
    assert drawn == [node.id for node in graph.nodes]
    ends = [(edge.source, edge.target) for edge in graph.edges]
    ends += [(output, "return") for output in graph.outputs]
    assert [(line.source, line.target) for line in picture.lines] == ends
    assert len(picture.frames) == drawing.svg.count('class="block')
    assert picture.paper.holds(picture.box(graph.nodes[0].id))
    assert "nan" not in drawing.svg.lower().replace("relax.nan", "")


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("lines", ROUTED)
def test_edges_without_a_route_are_drawn_from_their_source_to_their_target(
    modules, read_picture, spoiled, lines, direction
):
    graph = extract(modules.EveryKind)
    sound = read_picture(draw_graph(graph, direction=direction).svg)
    drawing = draw_placed(place_graph(graph, direction, spoiled(lines)))
    check_is_whole(drawing, graph, read_picture)
    assert drawing.note == ""
    picture = read_picture(drawing.svg)
    for line, expected in zip(picture.lines, sound.lines, strict=True):
        assert _within(line.start, picture.box(line.source)) == pytest.approx(
            _within(expected.start, sound.box(line.source)), abs=2
        )
        if line.target == "return":  # Graphviz chooses where at its border an edge ends
            box = picture.box("return")
            assert box.left - 3 < line.tip[0] < box.right + 3
            assert box.top - 3 < line.tip[1] < box.bottom + 3
        else:
            assert _within(line.tip, picture.box(line.target)) == pytest.approx(
                _within(expected.tip, sound.box(line.target)), abs=2
            )


def _within(point, box):
    return point[0] - box.left, point[1] - box.top


@pytest.mark.parametrize(("lines", "why"), PLAIN)
def test_a_layout_that_fails_is_replaced_by_a_plainer_one_and_says_so(
    modules, read_picture, spoiled, lines, why
):
    graph = extract(modules.EveryKind)
    sound = draw_graph(graph)
    drawing = draw_placed(place_graph(graph, seconds=spoiled(lines)))
    check_is_whole(drawing, graph, read_picture)
    assert drawing.svg.count('class="block') == sound.svg.count('class="block')
    assert drawing.note.startswith(f"The layout {why}")
    assert drawing.note.endswith(": this is a plainer one.")


def test_a_layout_that_could_be_better_is_kept_if_the_engine_fails_the_second_time(
    modules, read_picture, monkeypatch
):
    asked: list[str] = []

    def lay_out(dot, seconds):
        asked.append(dot)
        if len(asked) > 1:
            raise ValueError("no layout")
        found = graph_layout.lay_out(dot, seconds)
        turned = {name: (x, found.height - y) for name, (x, y) in found.nodes.items()}
        return replace(found, nodes=turned, routes={})

    monkeypatch.setattr(graph_figure, "lay_out", lay_out)
    graph = extract(modules.EveryKind)
    check_is_whole(draw_graph(graph), graph, read_picture)
    assert len(asked) == 2


def test_where_graphviz_cannot_be_loaded_the_plainer_layout_says_what_to_do(
    modules, read_picture, fake
):
    fake("raise ImportError('no such library')")
    graphviz_engine.ENGINE.stop()
    graph = extract(modules.EveryKind)
    drawing = draw_placed(place_graph(graph, seconds=30))
    graphviz_engine.ENGINE.stop()
    check_is_whole(drawing, graph, read_picture)
    assert "no such library; install pygraphviz again): this is a plainer one" in drawing.note


@pytest.mark.parametrize("seconds", [30, 0])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_graph_without_nodes_is_an_empty_picture(direction, seconds):
    drawing = draw_placed(place_graph(Graph("main", (), (), (), ()), direction, seconds))
    assert (drawing.width, drawing.height) == (32, 32)
    assert 'class="node' not in drawing.svg


def test_a_lowered_module_that_graphviz_finds_no_route_in_is_drawn(modules, read_picture):
    """Of `unlike(260)` after `default_build`, Graphviz 14 loses an edge."""
    mod = named_pass("default_build")(modules.unlike(260))
    graph = visible_graph(container_tree(extract(mod))).graph
    check_is_whole(draw_placed(place_graph(graph, seconds=30)), graph, read_picture)


@pytest.mark.worker
@pytest.mark.parametrize("direction", ["up", "down"])
def test_every_edge_leads_from_a_value_to_where_operands_enter(direction):
    graph = visible_graph(container_tree(extract(deep_branches(16)))).graph
    placed = place_graph(graph, direction)
    given, flow = layout_input(graph, direction), 1 if direction == "down" else -1
    for name, source, target, _ in given.edges:
        route, (_, y), (_, end) = (
            placed.layout.routes[name],
            placed.layout.nodes[source],
            placed.layout.nodes[target],
        )
        assert (route.points[0][1] - y) * flow == pytest.approx(
            given.sizes[source].height / 2, abs=3
        )
        if target != OUTPUT:
            assert (end - route.tip[1]) * flow == pytest.approx(
                given.sizes[target].height / 2, abs=3
            )
