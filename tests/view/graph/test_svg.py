"""A picture shows each node and each edge once, where it belongs, whatever the names are."""

import hashlib
import itertools
import os
import subprocess
import sys
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from irviz.course.mlp import MODULES
from irviz.ir.function_graph import extract
from irviz.model.graph.graph import (
    Edge,
    Graph,
    Literal,
    Node,
    NodeId,
    NodeKind,
    Region,
    RegionKind,
    Resolution,
)
from irviz.transforms.kernels import library  # noqa: F401 - registers env.relu
from irviz.view.graph.graph_figure import draw_graph, draw_placed, place_graph
from irviz.view.graph.layout import LAYOUT_SECONDS
from irviz.view.graph.overlay import Mark, Overlay
from irviz.view.svg_primitives import printable

DIRECTIONS = ("up", "down")
VALUE_STRIP = 20
"""Between a node's outlet and the beginning of its edges stands its value's label."""


def drawings(modules):
    """Return graphs of all sorts by name: the course's, every kind of node, odd shapes."""
    graphs = {name: extract(mod) for name, mod in MODULES.items()}
    names = ["EveryKind", "Impure", "ReturnedConstants", "SizeAsArgument", "Closure", "TwoOutputs"]
    graphs |= {name: extract(getattr(modules, name)) for name in names}
    graphs["repeated names"] = extract(modules.chain("x", "y", "y", "return", "", "<&\"'>"))
    graphs["shared constant"] = extract(modules.shared_constant())
    return graphs


@pytest.fixture(scope="module")
def graphs(modules):
    return drawings(modules)


@pytest.fixture(params=DIRECTIONS)
def direction(request):
    return request.param


def edges_of(graph):
    ends = [(edge.source, edge.target) for edge in graph.edges]
    return Counter([*ends, *((output, "return") for output in graph.outputs)])


# --- what is in it -----------------------------------------------------------------------------


def test_every_node_is_there_once_with_its_id_and_classes(graphs, direction, read_picture):
    for name, graph in graphs.items():
        picture = read_picture(draw_graph(graph, direction=direction).svg)
        classes = {
            str(n.id): (n.kind.value, *([n.resolution.value] if n.resolution else []))
            for n in graph.nodes
        }
        drawn = [(node.id, node.classes) for node in picture.nodes if "output" not in node.classes]
        assert drawn == list(classes.items()), name
        outputs = [node for node in picture.nodes if "output" in node.classes]
        assert len(outputs) == (1 if graph.outputs else 0)


def test_every_edge_is_there_once_with_its_ends(graphs, direction, read_picture):
    for name, graph in graphs.items():
        picture = read_picture(draw_graph(graph, direction=direction).svg)
        drawn = Counter((line.source, line.target) for line in picture.lines)
        assert drawn == edges_of(graph), name


def test_every_value_that_is_used_has_its_type_once_and_its_name_if_no_node_has_it(
    graphs, read_picture
):
    for name, graph in graphs.items():
        picture = read_picture(draw_graph(graph).svg)
        used = {source for source, _ in edges_of(graph)}
        assert set(picture.values) == used, name
    values = read_picture(draw_graph(graphs["MyModuleStatic"]).svg).values
    assert values["x"][0] == "(1, 784)"
    assert values["lv0"][0] == "lv0: (1, 128)"


def framed(graph):
    """Return the ids in each region that has a frame and is not empty."""
    inside = {}
    for node in graph.nodes:
        region = node.region
        while region is not None:
            if graph.regions[region].kind is not RegionKind.BINDING_BLOCK:
                inside.setdefault(region, []).append(node)
            region = graph.regions[region].parent
    return [
        {printable(str(node.id)) for node in nodes}
        for region, nodes in inside.items()
        if not is_drawn_as_a_call(graph, region, *nodes)
    ]


def is_drawn_as_a_call(graph, region, node, *others):
    """Tell whether a layer is one call, which has the layer's name instead of a frame."""
    is_alone = graph.regions[region].kind is RegionKind.LAYER and not others
    is_call = node.is_call_or_operator and node.resolution is not Resolution.FUNCTION
    return is_alone and node.region == region and is_call


def test_regions_are_framed_with_what_is_in_them(graphs, direction, read_picture):
    for name, graph in graphs.items():
        picture = read_picture(draw_graph(graph, direction=direction).svg)
        inside = framed(graph)
        for frame in picture.frames:
            held = {n.id for n in picture.nodes if frame.holds(n.box)}
            assert held in inside, name
            met = {n.id for n in picture.nodes if frame.meets(n.box)}
            assert met == held, name
        assert len(picture.frames) == len(inside)


def test_a_tooltip_says_what_a_node_is(graphs, read_picture):
    picture = read_picture(draw_graph(graphs["EveryKind"]).svg)
    tips = {node.id: node.tooltip for node in picture.nodes}
    assert tips["turned"] == "turned: Tensor[(2, 2)]\noperator relax.permute_dims\naxes = (1, 0)"
    assert tips["x"] == "x: Tensor[(2, 2)]"


def test_library_calls_are_barred_and_unknown_ones_dashed(graphs):
    root = ElementTree.fromstring(draw_graph(graphs["EveryKind"]).svg)
    parts = {
        group.get("data-node"): [e.attrib for e in group]
        for group in root.iter("{http://www.w3.org/2000/svg}g")
        if "node" in group.get("class", "")
    }
    barred = {k for k, es in parts.items() if any(e.get("class") == "bars" for e in es)}
    dashed = {k for k, es in parts.items() if any("stroke-dasharray" in e for e in es)}
    assert barred == {"library", "unknown"}
    assert dashed == {"unknown"}


def test_the_picture_has_a_name_for_those_who_hear_it(graphs):
    root = ElementTree.fromstring(draw_graph(graphs["MyModule"]).svg)
    assert (root.get("role"), root.get("aria-label")) == ("img", "graph of main")


# --- where it is -------------------------------------------------------------------------------


def check_lines(picture, graph, direction):
    """Check that each line begins at its source's outlet and ends at its target's inlet.

    Between the outlet and the line, the words of the value stand in the middle of its beginning.
    """
    outward = -1 if direction == "up" else 1
    for line in picture.lines:
        source, target = picture.box(line.source), picture.box(line.target)
        outlet, inlet = (source.top, target.bottom) if outward < 0 else (source.bottom, target.top)
        assert line.start[0] == pytest.approx(source.middle, abs=1)
        assert picture.values[line.source][1].middle == pytest.approx(line.start[0], abs=1)
        assert line.start[1] == pytest.approx(outlet + outward * VALUE_STRIP, abs=1.5)
        x, y = line.tip
        assert target.left - 0.5 <= x <= target.right + 0.5
        assert target.top - 1.5 <= y <= target.bottom + 1.5
        # what is returned has no order: those lines may come from the side as well
        is_at_side = line.target == "return" and min(x - target.left, target.right - x) < 1.5
        assert is_at_side or y == pytest.approx(inlet, abs=1.5)
    for node in graph.nodes:
        tips = [line.tip[0] for line in picture.lines if line.target == node.id]
        assert tips == sorted(tips), "arguments enter in their order"


def check_words(picture):
    """Check that no value's words meet another value's, a node or the edge of the paper."""
    for words, box in picture.values.values():
        assert not any(box.meets(node.box) for node in picture.nodes), words
        assert picture.paper.holds(box), words
    for (a, box), (b, other) in itertools.combinations(picture.values.values(), 2):
        assert not box.meets(other), (a, b)
    for node, other in itertools.combinations(picture.nodes, 2):
        assert not node.box.meets(other.box), (node.id, other.id)
    for node in picture.nodes:
        assert picture.paper.holds(node.box), node.id
        for words, box in node.texts:
            assert node.box.holds(box), words


def test_lines_begin_and_end_at_their_nodes(graphs, direction, read_picture):
    for graph in graphs.values():
        check_lines(read_picture(draw_graph(graph, direction=direction).svg), graph, direction)


def test_words_meet_neither_each_other_nor_boxes(graphs, direction, read_picture):
    for graph in graphs.values():
        picture = read_picture(draw_graph(graph, direction=direction).svg)
        assert picture.values
        check_words(picture)


@pytest.mark.parametrize("count", [1, 2, 12, 50, 200])
def test_many_arguments_have_room_to_enter(modules, direction, count, read_picture):
    graph = extract(modules.wide(count))
    picture = read_picture(draw_graph(graph, direction=direction).svg)
    assert len(picture.lines) == count + 1
    check_lines(picture, graph, direction)
    check_words(picture)
    tips = [line.tip[0] for line in picture.lines if line.target == "y"]
    assert len(set(tips)) == count


def test_up_and_down_put_what_is_used_on_either_side(graphs, read_picture):
    for direction, sign in (("up", -1), ("down", 1)):
        picture = read_picture(draw_graph(graphs["MyModuleStatic"], direction=direction).svg)
        order = [picture.box(node_id).top for node_id in ("x", "lv0", "lv1", "out", "return")]
        assert order == sorted(order, reverse=sign < 0)


# --- the same bytes ----------------------------------------------------------------------------


def test_the_same_graph_gives_the_same_bytes(graphs, direction):
    for graph in graphs.values():
        for theme in ("course", "dark"):
            first, second = (draw_graph(graph, theme, direction) for _ in range(2))
            assert first == second


@pytest.mark.worker
def test_another_process_gives_the_same_bytes():
    code = (
        "import hashlib, irviz; from irviz.course.mlp import MODULES;"
        "print(hashlib.sha256(''.join(irviz.draw(m).svg for m in MODULES.values()).encode())"
        ".hexdigest())"
    )
    here = "".join(draw_graph(extract(mod)).svg for mod in MODULES.values())
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "4711", "LC_ALL": "C", "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == hashlib.sha256(here.encode()).hexdigest()


# --- whatever the names are --------------------------------------------------------------------

HOSTILE = [
    "",
    "<script>alert(1)</script>",
    "a & b",
    "\"quoted\" and 'quoted'",
    "]]>",
    "&lt;",
    "<b>",
    "\\",
    "back\\nslash\\",
    "{record|fields}",
    "\x00\x01\x1f\x7f\x9f",
    "line\nbreak\ttab\rreturn",
    "線形層",
    "שלום עולם",
    "مرحبا",
    "\u202eoverride",
    "e\u0301",
    "🙂" * 30,
    "\ufffe\uffff",
    "\ud800",
    "x" * 500,
    "n0",
    "return",
    "cluster_0",
    "%s %d {0}",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_can_be_drawn(name, direction, read_picture):
    graph = Graph(
        name,
        (
            Node(NodeId("p"), NodeKind.PARAM, name, name),
            Node(NodeId("c"), NodeKind.CONSTANT, name, name, region=0),
            Node(
                NodeId("o"),
                NodeKind.OPERATOR,
                name,
                name,
                name,
                literals=(Literal((2,), name),),
                attributes=((name, name),),
                region=0,
            ),
            Node(NodeId("l"), NodeKind.CALL_DPS_PACKED, name, name, name, Resolution.UNKNOWN),
        ),
        (
            Edge(NodeId("p"), NodeId("o"), (0,)),
            Edge(NodeId("c"), NodeId("o"), (1,)),
            Edge(NodeId("o"), NodeId("l"), (0,)),
        ),
        (Region(RegionKind.DATAFLOW_BLOCK),),
        (NodeId("l"),),
    )
    drawn = draw_graph(graph, direction=direction)
    drawn.svg.encode("utf-8")
    drawn.dot.encode("utf-8")
    picture = read_picture(drawn.svg)
    assert [node.id for node in picture.nodes] == ["p", "c", "o", "l", "return"]
    assert {child.tag.rpartition("}")[2] for child in picture.root.iter()} <= {
        *("svg", "g", "rect", "path", "circle", "text", "title")
    }
    check_lines(picture, graph, direction)
    check_words(picture)


def test_a_name_is_written_as_it_is(read_picture):
    words = "<b> & \"c\" 'd' ]]> 線形層 שלום"
    graph = Graph("f", (Node(NodeId(words), NodeKind.PARAM, words, "T"),), (), (), (NodeId(words),))
    picture = read_picture(draw_graph(graph).svg)
    assert picture.nodes[0].id == words
    assert picture.nodes[0].texts[0][0] == words
    assert picture.values[words][0] == "T"


@st.composite
def any_graphs(draw):
    """Draw a graph with any names, kinds, blocks and uses of what came before."""
    texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=12))
    names = draw(st.lists(texts, min_size=1, max_size=7))
    ids = [NodeId(f"{index} {name}") for index, name in enumerate(names)]
    kinds = draw(st.lists(st.sampled_from(list(RegionKind)), max_size=4))
    regions = tuple(
        Region(
            kind, draw(texts), draw(st.sampled_from([None, *range(index)])), id=draw(texts) or "x"
        )
        for index, kind in enumerate(kinds)
    )
    nodes, edges = [], []
    for index, (node_id, name) in enumerate(zip(ids, names, strict=True)):
        kind = draw(st.sampled_from(list(NodeKind)))
        is_leaf = index == 0 or kind in (NodeKind.PARAM, NodeKind.CONSTANT)
        resolution = draw(st.sampled_from([None, *Resolution]))
        block = draw(st.sampled_from([None, *range(len(regions))]))
        nodes.append(
            Node(
                node_id,
                kind,
                name,
                draw(texts),
                draw(texts),
                resolution if kind in (NodeKind.CALL_DPS_PACKED, NodeKind.CALL_FUNCTION) else None,
                draw(st.lists(st.builds(Literal, st.just((0,)), texts), max_size=2).map(tuple)),
                draw(st.lists(st.tuples(texts, texts), max_size=2).map(tuple)),
                block,
            )
        )
        sources = [] if is_leaf else draw(st.lists(st.sampled_from(ids[:index]), max_size=4))
        edges += [
            Edge(source, node_id, (at,), draw(st.integers(1, 3)), draw(st.booleans()))
            for at, source in enumerate(sources)
        ]
    outputs = draw(st.lists(st.sampled_from(ids), max_size=3))
    return Graph(draw(texts), tuple(nodes), tuple(edges), regions, tuple(outputs))


ONE_CALL = Graph(
    "main",
    (Node(NodeId("y"), NodeKind.CALL_TIR, "y", "", "relu", region=0),),
    (),
    (Region(RegionKind.LAYER, "act", None, id="act"),),
    (),
)
"""A layer that is one call: it has no frame."""


@given(
    graph=any_graphs(),
    direction=st.sampled_from(DIRECTIONS),
    theme=st.sampled_from(["course", "dark"]),
    seconds=st.sampled_from([LAYOUT_SECONDS, 0.0]),
    share=st.sampled_from([None, 0.0, 0.3, 1.0]),
)
@example(graph=ONE_CALL, direction="up", theme="course", seconds=LAYOUT_SECONDS, share=None)
def test_any_graph_can_be_drawn(read_picture, graph, direction, theme, seconds, share):
    """Whether the engine has the time for its layout, or the plain one is drawn; or an overlay."""
    marks = {n.id: Mark(share or 0, "12 %", is_flagged=bool(share)) for n in graph.nodes}
    told = None if share is None else Overlay("times", "0", "1", marks, "NaN")
    placed = place_graph(graph, direction, seconds)
    drawing = draw_placed(placed, theme, openable=(), overlay=told)
    assert bool(drawing.note) == (seconds == 0.0)
    picture = read_picture(drawing.svg)
    assert len(picture.frames) == len(framed(graph))
    drawn = [node for node in picture.nodes if "output" not in node.classes]
    assert len(drawn) == len(graph.nodes)
    assert len(picture.lines) == len(graph.edges) + len(graph.outputs)
    check_words(picture)
