"""Graphviz's answer is read as places in px with y downwards."""

import inspect
import json
import math
import sys
from dataclasses import replace
from itertools import cycle, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

import irviz
from irviz.model.graph.graph import Edge, Graph, Node, NodeId, NodeKind, Region, RegionKind
from irviz.view.graph import layout as module
from irviz.view.graph.edge_routes import Routing, forks, rounded
from irviz.view.graph.graph_figure import draw_graph, place_graph
from irviz.view.graph.graphviz_engine import ENGINE
from irviz.view.graph.layout import (
    ClusterFrame,
    Layout,
    LayoutInput,
    Route,
    lay_out,
    read_layout,
)
from irviz.view.graph.nodes_and_edges import SceneGeometry, points_along
from irviz.view.graph.straight_ways import corners_of
from irviz.view.svg_primitives import Rect, Size
from irviz.worker.supervisor import StartError

PATIENCE = 20


def contains(outer, inner):
    return (
        outer.left < inner.left
        and outer.top < inner.top
        and inner.right < outer.right
        and inner.bottom < outer.bottom
    )


def test_nodes_and_edges_are_where_graphviz_puts_them():
    placed = lay_out(
        'digraph { rankdir=BT; node [shape=box fixedsize=true width=1 height=0.5 label=""]'
        ' a -> b [id="e0" tailport=n] }',
        PATIENCE,
    )
    assert (placed.width, placed.height) == (72, 108)
    assert placed.nodes == {"a": (36, 90), "b": (36, 18)}
    assert placed.frames == {}
    route = placed.routes["e0"]
    assert route.points[0] == pytest.approx((36, 72), abs=1)
    assert route.tip == pytest.approx((36, 36), abs=1)
    assert len(route.points) % 3 == 1
    assert route.points[0][1] > route.points[-1][1] > route.tip[1]


def test_the_centre_of_a_frames_label_is_read():
    dot = 'digraph { subgraph cluster_0 { label="title" labeljust=l a } }'
    (frame,) = lay_out(dot, PATIENCE).frames.values()
    x, y = frame.label
    assert frame.rect.left < x < frame.rect.centre[0]
    assert frame.rect.top < y < frame.rect.top + 20


def test_frames_come_outer_ones_first_whatever_their_names():
    placed = lay_out(
        "digraph { subgraph cluster_z { label=x a subgraph cluster_m { b subgraph cluster_y { c } }"
        " subgraph cluster_a { d subgraph cluster_0 { e } } } subgraph cluster_1 { f }"
        " a -> b [id=p] b -> c [id=q] c -> e [id=r] f -> a [id=s] }",
        PATIENCE,
    )
    frames = placed.frames
    assert list(frames) == [f"cluster_{name}" for name in "zmya01"]
    for outer, inner in ["zm", "my", "za", "a0", "zy", "z0"]:
        assert contains(frames[f"cluster_{outer}"].rect, frames[f"cluster_{inner}"].rect)


def test_a_frame_without_a_label_has_the_middle_of_its_upper_edge():
    (frame,) = lay_out("digraph { subgraph cluster_0 { a } }", PATIENCE).frames.values()
    assert frame.label == (frame.rect.centre[0], frame.rect.top)


def test_a_frame_without_a_node_is_left_out():
    placed = lay_out("digraph { subgraph cluster_0 { label=x } subgraph { a } }", PATIENCE)
    assert placed.frames == {}
    assert list(placed.nodes) == ["a"]


def test_a_graph_without_nodes_is_laid_out():
    assert lay_out("digraph {}", PATIENCE) == Layout(0, 0, {}, {}, {})


def test_a_frame_is_measured_from_its_upper_left_corner():
    dot = 'digraph { subgraph cluster_0 { margin=10 a [shape=box label="" width=1 height=1] } b }'
    placed = lay_out(dot, PATIENCE)
    x, y = placed.nodes["a"]
    (frame,) = placed.frames.values()
    assert frame == ClusterFrame(Rect(x - 46, y - 46, x + 46, y + 46), (x, y - 46))


def test_a_layout_without_enough_time_is_none():
    with pytest.raises(TimeoutError, match="within 0 s"):
        lay_out("digraph { a -> b }", 0)


def test_there_is_a_budget_without_asking():
    assert inspect.signature(lay_out).parameters["seconds"].default == module.LAYOUT_SECONDS
    assert lay_out("digraph { a }") == lay_out("digraph { a }", PATIENCE)


def test_a_text_that_is_no_dot_is_an_error():
    with pytest.raises(ValueError, match="syntax error"):
        lay_out("digraph {", PATIENCE)


CURVE = "4,10 4,20 4,30 4,40"


def answer(*edges, size="0,0,100,50", objects=()):
    """Write what Graphviz might answer; the edges, by their `pos`, are e0, e1, …"""
    drawn = [
        {"id": f"e{index}"} | ({} if pos is None else {"pos": pos})
        for index, pos in enumerate(edges)
    ]
    return json.dumps({"bb": size, "objects": list(objects), "edges": drawn})


@pytest.mark.parametrize("lost", [None, 0, 1])
def test_an_edge_in_two_parts_is_one_route_and_has_none_if_a_part_has_none(lost):
    ways = [CURVE, "e,4,85 4,40 4,50 4,60 4,78"]
    if lost is not None:
        ways[lost] = None
    placed = json.loads(answer(*ways, size="0,0,100,100"))
    first, second = placed["edges"]
    placed["edges"] = [second | {"id": "e0"}, first | {"arrowhead": "none"}]
    routes = read_layout(json.dumps(placed)).routes
    assert routes.keys() == ({"e0"} if lost is None else set())
    for one in routes.values():
        assert [y for _, y in one.points] == [90, 80, 70, 60, 50, 40, 22]
        assert one.tip == (4, 15)


@pytest.mark.parametrize(
    "pos",
    [
        None,  # "lost n66 n89 edge"
        "",
        "e,4,45",
        "4,10 4,20 4,30",
        f"{CURVE} 5,50",
        f"{CURVE};{CURVE}",
        "e,nan,nan 4,10 4,20 4,30 4,40",
        "4,10 4,inf 4,30 4,40",
        "4,10 4 4,30 4,40",
        "somewhere",
        7,
    ],
)
def test_an_edge_without_a_usable_route_has_none_and_the_others_keep_theirs(pos):
    assert set(read_layout(answer(CURVE, pos, CURVE)).routes) == {"e0", "e2"}


@pytest.mark.parametrize(
    ("pos", "tip"),
    [
        (CURVE, (4, 10)),
        (f"e,4,45 {CURVE}", (4, 5)),
        (f"s,4,5 {CURVE}", (4, 10)),
        (f"s,4,5 e,4,45 {CURVE}", (4, 5)),
    ],
)
def test_a_route_is_read_with_arrows_at_either_end_or_none(pos, tip):
    points = ((4, 40), (4, 30), (4, 20), (4, 10))
    assert read_layout(answer(pos)).routes == {"e0": Route(points, tip)}


def test_what_has_no_place_is_left_out():
    objects = [{"name": "cluster_0"}, {"name": "n0"}, {"name": "n1", "pos": "10,20"}]
    read = read_layout(answer(objects=objects))
    assert (read.nodes, read.frames) == ({"n1": (10, 30)}, {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Error: not JSON",
        "[]",
        "{}",
        answer(size=""),
        answer(size="0,0,100"),
        answer(size="0,0,nan,50"),
        answer(objects=[{"name": "n0", "pos": "10,nan"}]),
        answer(objects=[{"name": "n0", "pos": "10"}]),
        answer(objects=[{"name": "cluster_0", "bb": "0,0,inf,1"}]),
        answer(objects=[{"name": "cluster_0", "bb": "0,0,1,1", "lp": "?,1"}]),
    ],
)
def test_an_answer_that_is_no_layout_is_refused(text):
    with pytest.raises(ValueError, match=r"Graphviz answered|Expecting value"):
        read_layout(text)


def test_the_same_text_is_laid_out_once():
    dot = "digraph { kept once }"
    found = lay_out(dot, PATIENCE)
    assert found is not None
    assert lay_out(dot, PATIENCE) is found


def test_a_layout_that_could_not_be_made_is_tried_again(monkeypatch):
    dot = "digraph { not; ready }"
    ENGINE.stop()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(StartError):
            lay_out(dot, PATIENCE)
    found = lay_out(dot, PATIENCE)
    assert found is not None
    assert found.nodes.keys() == {"not", "ready"}


def bulging(obstacle):
    """Return a route that leaves the frame around both of its ends, moved into it if it can be."""
    points = ((50, 170), (50, 150), (130, 150), (130, 100), (130, 60), (50, 60), (50, 40))
    frames = {"cluster_0": ClusterFrame(Rect(20, 0, 80, 200), (50, 10))}
    places = {"a": (50, 180), "b": (50, 20), "c": obstacle}
    layout = Layout(140, 200, places, frames, {"e0": Route(points, (50, 30))})
    sizes = {"a": Size(20, 10), "b": Size(20, 10), "c": Size(4, 40)}
    routing = Routing(layout, LayoutInput(sizes, [("e0", "a", "b", 0.5)], {}))
    routing.keep_in_frames()
    return routing.routes["e0"].points, points


def test_a_route_stays_in_the_frame_around_both_of_its_ends():
    moved, known = bulging(obstacle=(30, 100))
    assert max(x for x, _ in moved) < 80
    assert [y for _, y in moved] == [y for _, y in known]


def test_a_route_is_not_moved_through_a_box():
    moved, known = bulging(obstacle=(75, 100))
    assert moved == known


def led_around_boxes(layout, given):
    routing = Routing(layout, given)
    routing.go_around_boxes()
    return routing.routes["e0"]


def test_a_route_through_a_box_is_led_around_it():
    places = {"a": (50.0, 180.0), "b": (50.0, 20.0), "c": (50.0, 100.0)}
    sizes = {"a": Size(20, 10), "b": Size(20, 10), "c": Size(40, 40)}
    straight = Route(((50, 175), (50, 120), (50, 80), (50, 30)), (50, 25))
    layout = Layout(140, 200, places, {}, {"e0": straight})
    given = LayoutInput(sizes, [("e0", "a", "b", 0.5)], {})
    points = led_around_boxes(layout, given).points
    assert points[0] == straight.points[0]
    assert math.dist(points[-1], straight.tip) < 10
    across = [x for x, y in points if 80 <= y <= 120] + [max(x for x, _ in points)]
    assert all(not 30 < x < 70 for x in across)
    beside = replace(layout, nodes={**places, "c": (100.0, 100.0)})
    assert led_around_boxes(beside, given) == straight


def test_a_box_is_found_on_a_route_of_thousands_of_pixels():
    places = {"a": (50.0, 8000.0), "b": (50.0, 20.0), "c": (50.0, 5000.0)}
    sizes = {name: Size(40, 40) for name in places}
    straight = Route(((50, 7980), (50, 5300), (50, 2700), (50, 47)), (50, 40))
    layout = Layout(140, 8020, places, {}, {"e0": straight})
    given = LayoutInput(sizes, [("e0", "a", "b", 0.5)], {})
    points = led_around_boxes(layout, given).points
    assert max(x for x, _ in points) > 70 or min(x for x, _ in points) < 30


def test_a_line_that_leans_a_little_is_vertical_where_no_other_arrow_and_no_box_is():
    leaning = Route(((50, 90), (50, 60), (49, 40), (49, 17)), (49, 10))
    aside = Route(((90, 90), (90, 60), (70, 40), (70, 17)), (70, 10))

    def drawn(other, box=(10.0, 45.0)):
        places = {"a": (50.0, 95.0), "b": (90.0, 95.0), "c": (55.0, 5.0), "d": box}
        sizes = {"a": Size(30, 10), "b": Size(30, 10), "c": Size(60, 10), "d": Size(20, 6)}
        given = LayoutInput(sizes, [("e0", "a", "c", 0.4), ("e1", "b", "c", 0.75)], {})
        found = Routing(Layout(120, 100, places, {}, {"e0": leaning, "e1": other}), given)
        found.straighten()
        return [found.routes[name] for name in ("e0", "e1")]

    first, second = drawn(aside)
    assert {x for x, _ in (*first.points, first.tip)} == {50}
    assert second == aside
    near = replace(aside, tip=(52, 10))
    assert drawn(near) == [leaning, near]
    assert drawn(aside, box=(59.8, 45.0)) == [leaning, aside]


def test_a_long_edge_is_straight_where_most_of_its_curve_is():
    turns = (100, 490), (100, 480), (60, 485), (60, 480), (60, 475), (20, 478), (20, 470)
    curve = *turns, (20, 470), (20, 100), (20, 100), (20, 60), (60, 65), (60, 60), (60, 50)
    known = Route((*curve, (180, 40), (180, 27)), (180, 20))
    boxes = {f"box{x}": (x, 250.0) for x in (60.0, 100.0, 180.0)}
    places = {"a": (100.0, 490.0), "b": (180.0, 20.0), **boxes}
    sizes = {name: Size(30, 40 * (name in boxes)) for name in places}
    given = LayoutInput(sizes, [("e0", "a", "b", 0.5)], {})
    routing = Routing(Layout(220, 500, places, {}, {"e0": known}), given)
    routing.use_lanes()
    found = routing.routes["e0"].points
    assert {x for x, y in found if 100 < y < 400} <= {20}
    assert min(x for x, _ in found) == 20


WAVE = ((20.0, 90.0), (20.0, 70.0), (200.0, 90.0), (200.0, 67.0))
"""A route that leads far aside, as Graphviz draws it."""


def straightened(boxes=(), frames=(), others=()):
    """Return that route, and others from nodes of their own, where they may be straight."""
    places = {"a": (20.0, 95.0), "b": (200.0, 55.0)}
    places |= {f"box{number}": place for number, place in enumerate(boxes)}
    routes = {"a": Route(WAVE, (200.0, 60.0))}
    routes |= {f"other{number}": one for number, one in enumerate(others)}
    places |= {name: one.points[0] for name, one in routes.items() if name not in places}
    clusters = {f"cluster_{number}": one for number, one in enumerate(frames)}
    edges = [(name, name, "b", 0.5) for name in routes]
    given = LayoutInput({name: Size(30, 0) for name in places}, edges, {})
    found = Routing(Layout(400, 120, places, clusters, routes), given)
    found.use_lanes()
    return [found.routes[name] for name in routes]


def height(route):
    """Return where a route leads aside."""
    return route.points[len(route.points) // 2][1]


def test_an_edge_that_leads_far_aside_is_straight_and_enters_its_node_upright():
    [route] = straightened()
    assert height(route) == 78.5
    assert max(y for _, y in route.points) == 90
    assert route.points[-1][0] == route.tip[0] == 200


def test_it_does_not_run_through_a_title_or_along_a_frame_or_through_a_box():
    title = ClusterFrame(Rect(10, 70, 230, 110), (60, 79))
    [route] = straightened(frames=[title])
    assert all(y > 86 or y < 72 or x < 10 or x > 110 for x, y in route.points)
    line = ClusterFrame(Rect(100, 20, 230, 78.5), (60, 20))
    assert abs(height(*straightened(frames=[line])) - 78.5) > 4
    many = [(110.0, 66 + y / 2) for y in range(50)]
    assert straightened(many)[0].points == WAVE


def test_two_edges_from_different_nodes_do_not_run_in_one_line():
    other = Route(tuple((x + 100, y) for x, y in WAVE), (300.0, 60.0))
    first, second = straightened(others=[other])
    assert len({height(first), height(second), 90.0}) == 3


def test_edges_are_straight_where_many_lead_aside_in_a_narrow_gap():
    shifts = [20.0 * (at + 1) for at in range(8)]
    waves = [Route(tuple((x + by, y) for x, y in WAVE), (200.0 + by, 60.0)) for by in shifts]
    found = straightened(others=waves)
    assert all(corners_of(route) for route in found)
    assert len({round(height(route), 2) for route in found}) == len(found)


def aside(*rows):
    """Return the straight routes of several edges, each of which leads aside in one of the rows."""
    corners = [(40.0 * at, y) for at, y in enumerate(rows)]
    return {
        f"e{at}": Route(rounded((x, 90.0), (x, y), (x + 200, y), (x + 200, 32.0)), (x + 200, 25.0))
        for at, (x, y) in enumerate(corners)
    }


def spread(routes, frames=(), sources=()):
    """Return the layout of edges between two rows of nodes with room for them."""
    ends = {name: (one.points[0], one.tip) for name, one in routes.items()}
    starts = {f"from {name}": (x, y + 15) for name, ((x, y), _) in ends.items()}
    places = starts | {f"to {name}": (x, y - 15) for name, (_, (x, y)) in ends.items()}
    clusters = {f"cluster_{number}": one for number, one in enumerate(frames)}
    sources_of = dict(zip(routes, sources, strict=True)) if sources else {}
    edges = [(name, sources_of.get(name, f"from {name}"), f"to {name}", 0.5) for name in routes]
    given = LayoutInput({name: Size(30, 30) for name in places}, edges, {})
    found = Routing(Layout(500, 120, places, clusters, routes), given)
    found.spread()
    return found.layout()


def test_edges_that_lead_aside_too_close_to_one_another_are_moved_apart():
    rows = 60.0, 60.7, 63.0, 73.5
    layout = spread(aside(*rows))
    found = [corners_of(layout.routes[f"e{at}"])[1][1] for at in range(4)]
    assert np.diff(found) == pytest.approx([10.0, 10.0, 10.5])
    assert layout.height == pytest.approx(120 + 9.3 + 7.7)
    lower, upper = ([y for name, (_, y) in layout.nodes.items() if at in name] for at in ("f", "t"))
    assert upper == [10.0] * 4, "what is above them stays"
    assert lower == pytest.approx([105.0 + 17.0] * 4), "what is below moves down in one row"
    for name, route in layout.routes.items():
        x, y = layout.nodes[f"from {name}"]
        assert route.points[0] == pytest.approx((x, y - 15))
        assert route.points[-1] == pytest.approx((route.tip[0], route.tip[1] + 7))


def test_edges_that_have_room_stay_where_they_are():
    routes = aside(53.0, 63.0, 73.0)
    layout = spread(routes)
    assert (layout.routes, layout.height) == (routes, 120)


def test_edges_from_one_node_may_share_a_line():
    routes = aside(60.0, 60.0)
    assert spread(routes).height > 120
    assert spread(routes, sources=["from e0", "from e0"]).height == 120


def test_a_frame_is_moved_off_an_edge_that_leads_along_it_and_its_title_with_it():
    frame = ClusterFrame(Rect(-20, 66.0, 400, 200), (60, 75))
    layout = spread(aside(60.0), frames=[frame])
    moved = layout.frames["cluster_0"]
    assert moved.rect.top == 66.0
    layout = spread(aside(62.0), frames=[frame])
    moved = layout.frames["cluster_0"]
    assert (moved.rect.top, moved.label[1]) == (69.5, 78.5)
    assert moved.rect.bottom == 203.5


def test_a_frame_does_not_reach_for_what_its_edges_do_beyond_it():
    line = (0.0, 90.0), (0.0, 85.0), (100.0, 85.0), (100.0, 70.0), (200.0, 70.0), (200.0, 32.0)
    close = {name: one for name, one in aside(0, 0, 0, 0, 0, 78.0, 78.7).items() if name > "e4"}
    routes = {"own": Route(rounded(*line), (200.0, 25.0)), **close}
    frame = ClusterFrame(Rect(-20.0, 65.0, 20.0, 125.0), (0, 74))
    layout = spread(routes, frames=[frame])
    _, y = layout.nodes["from own"]
    assert y > 105.0
    assert layout.frames["cluster_0"].rect.top == pytest.approx(y - 15 - 25)


def test_an_edge_in_a_frame_leads_aside_below_its_title():
    frame = ClusterFrame(Rect(-20, 50.0, 400, 200), (60, 59))
    [row] = {y for _, y in corners_of(spread(aside(60.0), frames=[frame]).routes["e0"])[1:3]}
    assert row >= 50.0 + 14.0
    short = ClusterFrame(Rect(-220, 50.0, 400, 200), (-180, 59))
    assert spread(aside(60.0), frames=[short]).height == 120


def test_nothing_is_moved_apart_beside_a_node():
    routes = aside(60.0, 61.0)
    tall = Route(((450.0, 110.0), (450.0, 100.0), (450.0, 60.0), (450.0, 20.0)), (450.0, 13.0))
    assert spread({**routes, "e2": tall}).height > 120
    places = {"a": (0.0, 105.0), "b": (200.0, 10.0), "c": (40.0, 105.0), "d": (240.0, 10.0)}
    sizes = {name: Size(30, 30) for name in places} | {"beside": Size(30, 60)}
    edges = [("e0", "a", "b", 0.5), ("e1", "c", "d", 0.5)]
    beside = Layout(500, 120, places | {"beside": (450.0, 60.0)}, {}, routes)
    found = Routing(beside, LayoutInput(sizes, edges, {}))
    found.spread()
    assert found.layout() == beside


def test_a_dot_is_where_edges_from_one_node_part_and_not_where_edges_cross():
    up = Route(rounded((0.0, 90.0), (0.0, 10.0)), (0.0, 3.0))
    right = Route(rounded((0.0, 90.0), (0.0, 60.0), (80.0, 60.0), (80.0, 20.0)), (80.0, 13.0))
    left = Route(rounded((0.0, 90.0), (0.0, 60.0), (-80.0, 60.0), (-80.0, 20.0)), (-80.0, 13.0))
    farther = Route(rounded((0.0, 90.0), (0.0, 60.0), (99.0, 60.0), (99.0, 20.0)), (99.0, 13.0))
    curve = Route(((0.0, 90.0), (0.0, 70.0), (50.0, 50.0), (50.0, 20.0)), (50.0, 13.0))
    assert forks([right]) == forks([right, right]) == forks([right, curve]) == {}
    assert forks([up, right]) == {1: [(0.0, 60.0)]}
    assert forks([left, right]) == {0: [(0.0, 60.0)]}
    assert forks([right, farther]) == {0: [(80.0, 60.0)]}
    across = Route(rounded((-20.0, 40.0), (90.0, 40.0)), (97.0, 40.0))
    assert forks([up, across]) == {}


def test_a_picture_has_a_dot_at_each_fork():
    nodes = tuple(Node(NodeId(one), NodeKind.OPERATOR, one, "T") for one in "abcd")
    ends = ("ab", "bc", "cd", "ad")
    graph = Graph("main", nodes, tuple(Edge(*map(NodeId, two), (0,)) for two in ends), (), ("d",))
    drawn = ElementTree.fromstring(draw_graph(graph).svg)
    (dot,) = drawn.iterfind(".//{*}circle[@class='fork']")
    (edge,) = (one for one in drawn.iterfind(".//{*}g[@class='edge']") if dot in one)
    assert edge.get("data-source") == "a"


def test_the_button_of_a_frame_is_beside_edges(modules):
    graph = irviz.Session(modules.stack(3)).view().graph
    placed = place_graph(graph, "up").layout
    name, frame = next(iter(placed.frames.items()))
    index = int(name.removeprefix("cluster_"))
    x, y = frame.rect.right, frame.rect.top

    def button(*line):
        moved = {"e0": Route(line, line[3])} if line else {}
        layout = replace(placed, routes={**placed.routes, **moved})
        return SceneGeometry(graph, layout, "up").toggles[graph.regions[index].id]

    assert button() == (x, y)
    left, top = button(*((x - 3, y + one) for one in (20, 10, -10, -20)))  # through the upper side
    assert x - 30 < left <= x - 3 - 12
    assert top == y
    left, top = button(*((x + one, y + 3) for one in (20, 10, -30, -60)))  # along it
    assert left == x
    assert y + 3 + 12 <= top < y + 30


def test_the_title_of_a_layer_is_where_edges_leave_room_and_else_cut_to_it(modules):
    graph = irviz.Session(modules.stack(3)).view().graph
    placed = place_graph(graph, "up").layout
    cluster, frame = next(iter(placed.frames.items()))
    index, whole = int(cluster.removeprefix("cluster_")), "layers.0 · DecoderLayer"
    regions = list(graph.regions)
    regions[index] = regions[index]._replace(kind=RegionKind.LAYER, name=whole)
    wide = Rect(frame.rect.left, frame.rect.top, frame.rect.left + 400, frame.rect.bottom)

    def title(*passing):
        lines = [
            tuple((wide.left + x, frame.label[1] + y) for y in (40.0, 20.0, 0.0, -20.0))
            for x in passing
        ]
        routes = {
            name: Route(line, line[3])
            for name, line in zip(placed.routes, cycle(lines), strict=False)
        }
        frames = placed.frames | {cluster: replace(frame, rect=wide)}
        layout = replace(placed, routes=routes, frames=frames)
        scene = SceneGeometry(replace(graph, regions=tuple(regions)), layout, "up")
        text, (x, _) = scene.title(index)
        return text, x - wide.left

    assert title(300.0) == (whole, 9.0)
    assert title(100.0) == (whole, 104.0)
    assert title(100.0, 150.0, 500.0) == (whole, 154.0)
    cut, x = title(100.0, 240.0)
    assert x == 244.0, "the widest room"
    assert cut.endswith("…")
    assert whole.startswith(cut[:-1])
    assert title(*range(20, 400, 40)) == (whole, 9.0), "so little of it would say nothing"


def test_the_title_of_a_layer_that_no_edge_passes_is_whole():
    nodes = tuple(Node(NodeId(one), NodeKind.OPERATOR, one, "T", region=0) for one in "ab")
    for length in range(1, 40):
        name = "m" * length
        graph = Graph("main", nodes, (), (Region(RegionKind.LAYER, name),), ())
        assert SceneGeometry(graph, place_graph(graph).layout, "up").title(0)[0] == name


@pytest.mark.parametrize("direction", ["up", "down"])
def test_what_leads_past_the_nodes_of_a_layer_does_so_inside_of_its_frame(direction):
    def operator(name, region):
        return Node(NodeId(name), NodeKind.OPERATOR, name, "T" * 40, region=region)

    names = ["before", "first", "second", "third", "last", "after"]
    nodes = tuple(operator(name, 0 if 0 < at < 5 else None) for at, name in enumerate(names))
    chain = [Edge(one.id, two.id, (0,)) for one, two in pairwise(nodes)]
    skip = Edge(nodes[0].id, nodes[4].id, (1,))
    layer = Region(RegionKind.LAYER, "layer1")
    graph = Graph("main", nodes, (*chain, skip), (layer,), ())
    scene = SceneGeometry(graph, place_graph(graph, direction).layout, direction)
    frame = scene.frames[0].rect
    past = points_along([scene.edges[-1][1]], 4.0)
    beside = past[(past[:, 1] > frame.top) & (past[:, 1] < frame.bottom)]
    assert np.ptp(beside[:, 1]) > 100, "it leads past the nodes"
    assert (frame.left < beside[:, 0]).all()
    assert (beside[:, 0] < frame.right).all()


def test_a_chain_with_additions_is_a_column_and_what_leads_past_it_a_straight_line(modules):
    graph = irviz.Session(modules.stack(1)).view().graph
    scene = SceneGeometry(graph, place_graph(graph).layout, "up")
    chain = [scene.shapes[one] for one in ("lv1", "lv2", "lv3", "lv4", "lv5", "lv6", "gv")]
    assert len({rect.centre[0] for rect in chain}) == 1
    skip = next(r for e, r in scene.edges if (e.source, e.target) == ("lv", "lv6"))
    beside = [x for x, y in skip.points if chain[4].top < y < chain[0].bottom]
    heights = [y for x, y in skip.points if x == skip.points[len(skip.points) // 2][0]]
    assert len(set(beside)) <= 1
    assert max(heights) - min(heights) > chain[0].bottom - chain[4].top
