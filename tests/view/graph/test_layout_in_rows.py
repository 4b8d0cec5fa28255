"""The plain layout keeps a layout's promises, whatever the graph is."""

import sys
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irviz.view.graph import straight_ways as module
from irviz.view.graph.dot import FLOWS
from irviz.view.graph.edge_routes import Routing
from irviz.view.graph.layout import Layout, LayoutInput
from irviz.view.graph.layout_in_rows import layered_layout
from irviz.view.graph.nodes_and_edges import points_along

NEAR = 1e-6


class Size(NamedTuple):
    width: float
    height: float


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other):
        return (
            self.left < other.right - NEAR
            and other.left < self.right - NEAR
            and self.top < other.bottom - NEAR
            and other.top < self.bottom - NEAR
        )

    def holds(self, other):
        return (
            self.left <= other.left + NEAR
            and other.right <= self.right + NEAR
            and self.top <= other.top + NEAR
            and other.bottom <= self.bottom + NEAR
        )


def in_rows(sizes, edges, frames, direction):
    return layered_layout(LayoutInput(sizes, edges, frames, FLOWS[direction]))


def node_boxes(layout, sizes):
    assert list(layout.nodes) == list(sizes)
    return {
        name: Box(x - size.width / 2, y - size.height / 2, x + size.width / 2, y + size.height / 2)
        for (name, (x, y)), size in zip(layout.nodes.items(), sizes.values(), strict=True)
    }


def frame_boxes(layout):
    return {name: Box(*frame.rect) for name, frame in layout.frames.items()}


def around(name, frames):
    """Return the frame's name and those of the frames that it stands in."""
    names = []
    while name:
        names.append(name)
        name = frames[name][0]
    return names


@st.composite
def inputs(draw):
    """Make a graph of any kind: cycles, loops, repeated edges, empty frames, odd sizes."""
    count = draw(st.integers(0, 14))
    length = st.one_of(st.just(0.0), st.floats(0.01, 300))
    # a node may have a frame's name: the two are told apart
    sizes = {
        f"{'nf'[index % 2]}{index}": Size(draw(length), draw(length)) for index in range(count)
    }
    depth = draw(st.integers(0, 5))
    parents = [draw(st.sampled_from(["", *(f"f{i}" for i in range(f))])) for f in range(depth)]
    held = {f"f{index}": [] for index in range(depth)}
    for name in sizes:
        frame = draw(st.sampled_from(["", *held]))
        if frame:
            held[frame].append(name)
    frames = {f: (p, nodes) for (f, nodes), p in zip(held.items(), parents, strict=True)}
    frames = dict(draw(st.permutations(list(frames.items()))))
    edges = []
    if sizes:
        ends = st.tuples(st.sampled_from(list(sizes)), st.sampled_from(list(sizes)))
        pairs = draw(st.lists(st.tuples(ends, st.floats(0, 1)), max_size=30))
        edges = [(f"e{i}", *pair, entry) for i, (pair, entry) in enumerate(pairs)]
    return sizes, edges, frames, draw(st.sampled_from(["up", "down"]))


@given(inputs())
def test_no_two_nodes_meet(given_):
    sizes = given_[0]
    boxes = list(node_boxes(in_rows(*given_), sizes).values())
    for index, box in enumerate(boxes):
        assert not [other for other in boxes[:index] if box.meets(other)]


@given(inputs())
def test_a_frame_holds_its_nodes_and_frames_and_meets_nothing_else(given_):
    sizes, _, frames, _ = given_
    layout = in_rows(*given_)
    framed = frame_boxes(layout)
    owners = {node: name for name, (_, nodes) in frames.items() for node in nodes}
    for name, box in framed.items():
        for node, drawn in node_boxes(layout, sizes).items():
            if name in around(owners.get(node, ""), frames):
                assert box.holds(drawn), (name, node)
            else:
                assert not box.meets(drawn), (name, node)
        for other, inner in framed.items():
            if name in around(other, frames):
                assert box.holds(inner), (name, other)
            elif other not in around(name, frames):
                assert not box.meets(inner), (name, other)


@given(inputs())
def test_the_frames_are_those_with_a_node_outer_ones_first(given_):
    _, _, frames, _ = given_
    layout = in_rows(*given_)
    filled = {
        above for name, (_, nodes) in frames.items() if nodes for above in around(name, frames)
    }
    assert set(layout.frames) == filled
    order = {name: index for index, name in enumerate(layout.frames)}
    for name in filled:
        assert all(order[above] <= order[name] for above in around(name, frames))


@given(inputs())
def test_a_frame_has_room_for_its_title_above_what_it_holds(given_):
    sizes, _, frames, _ = given_
    layout = in_rows(*given_)
    for name, frame in layout.frames.items():
        x, y = frame.label
        strip = Box(x - 30, y - 8, x + 30, y + 8)
        assert frame_boxes(layout)[name].holds(strip)
        inner = [box for node, box in node_boxes(layout, sizes).items() if node in frames[name][1]]
        inner += [box for f, box in frame_boxes(layout).items() if frames[f][0] == name]
        assert inner
        assert not [box for box in inner if box.meets(strip)]


@given(inputs())
def test_everything_is_inside_the_picture_and_touches_its_sides(given_):
    layout = in_rows(*given_)
    boxes = [*node_boxes(layout, given_[0]).values(), *frame_boxes(layout).values()]
    points = [p for r in layout.routes.values() for p in (*r.points, r.tip)]
    boxes += [Box(x, y, x, y) for x, y in points]
    picture = Box(0, 0, layout.width, layout.height)
    assert all(picture.holds(box) for box in boxes)
    if boxes:
        assert min(box.left for box in boxes) == pytest.approx(0, abs=NEAR)
        assert min(box.top for box in boxes) == pytest.approx(0, abs=NEAR)
        assert max(box.right for box in boxes) == pytest.approx(layout.width)
        assert max(box.bottom for box in boxes) == pytest.approx(layout.height)


@given(inputs())
def test_an_edge_leads_from_the_outlet_to_its_entry_along_the_flow(given_):
    sizes, edges, _, direction = given_
    layout = in_rows(*given_)
    boxes = node_boxes(layout, sizes)
    assert set(layout.routes) == {name for name, *_ in edges}
    down = 1 if direction == "down" else -1
    for name, source, target, entry in edges:
        route = layout.routes[name]
        start, first, *_, second, end = route.points
        outlet = boxes[source].bottom if down == 1 else boxes[source].top
        inlet = boxes[target].top if down == 1 else boxes[target].bottom
        assert start == pytest.approx((layout.nodes[source][0], outlet))
        left, _, right, _ = boxes[target]
        assert route.tip == pytest.approx((left + entry * (right - left), inlet))
        assert first[0] == start[0]
        assert (first[1] - start[1]) * down > 0
        assert second[0] == end[0] == route.tip[0]
        assert (end[1] - second[1]) * down > 0
        assert (route.tip[1] - end[1]) * down > 0


@given(inputs(), st.data())
def test_an_edge_that_lost_its_route_gets_it_again_and_the_others_keep_theirs(given_, data):
    sizes, edges, _, direction = given_
    layout = in_rows(*given_)
    lost = data.draw(st.sets(st.sampled_from(sorted(layout.routes)))) if edges else set()
    kept = {name: route for name, route in layout.routes.items() if name not in lost}
    given_again = LayoutInput(sizes, edges, {}, FLOWS[direction])
    found = Routing(replace(layout, routes=kept), given_again)
    assert {name: found.routes[name] for name in kept} == kept
    for name, *_ in edges:
        for one, other in zip(found.routes[name].points, layout.routes[name].points, strict=True):
            assert one == pytest.approx(other)
        assert found.routes[name].tip == pytest.approx(layout.routes[name].tip)


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        *(((60, 20), (200, 300)), ((200, 20), (60, 300)), ((60, 20), (70, 300))),
        *(((60, 155), (260, 158)), ((260, 155), (60, 150))),  # in one row, with a box between
    ],
)
def test_an_edge_that_leads_back_passes_beside_its_ends(direction, source, target):
    if direction == "up":
        source, target = target, source
    sizes = {"s": Size(100, 40), "t": Size(80, 30), "between": Size(30, 36)}
    places = {"s": source, "t": target, "between": (160, 155)}
    if source[1] - target[1] in (-280, 280):
        del sizes["between"], places["between"]
    placed = Layout(300, 320, places, {}, {})
    edges = [("e0", "s", "t", 0.5)]
    route = Routing(placed, LayoutInput(sizes, edges, {}, FLOWS[direction])).routes["e0"]
    boxes = node_boxes(placed, sizes).values()
    line = [Box(x, y, x, y) for x, y in points_along([route], 2)]
    assert len(line) > 15
    assert not [point for point in line if any(box.holds(point) for box in boxes)][1:]
    assert all(-16 < p.left < 316 and -16 < p.top < 336 for p in line)  # not past the margin


@pytest.mark.parametrize("direction", ["up", "down"])
def test_an_edge_that_leads_back_goes_around_what_stands_beside_its_ends(direction):
    ends = ((60, 20), (70, 300))
    source, target = ends if direction == "up" else reversed(ends)
    sizes = {"s": Size(100, 40), "t": Size(80, 30), "one": Size(60, 30), "two": Size(170, 40)}
    places = {"s": source, "t": target, "one": (120, 155), "two": (205, target[1])}
    placed = Layout(300, 320, places, {}, {})
    edges = [("e0", "s", "t", 0.5)]
    route = Routing(placed, LayoutInput(sizes, edges, {}, FLOWS[direction])).routes["e0"]
    boxes = node_boxes(placed, sizes).values()
    line = [Box(x, y, x, y) for x, y in points_along([route], 2)]
    assert not [point for point in line if any(box.holds(point) for box in boxes)][1:]


@given(inputs())
def test_data_flows_in_one_direction_without_frames(given_):
    sizes, edges, _, direction = given_
    order = {name: index for index, name in enumerate(sizes)}
    layout = in_rows(sizes, edges, {}, direction)
    boxes = node_boxes(layout, sizes)
    for _, source, target, _ in edges:
        if order[source] < order[target]:
            above, below = (source, target) if direction == "down" else (target, source)
            assert boxes[above].bottom < boxes[below].top


@given(inputs())
def test_up_is_down_the_other_way_round_where_there_is_no_title(given_):
    sizes, edges, _, _ = given_
    up, down = (in_rows(sizes, edges, {}, direction) for direction in ("up", "down"))
    assert (up.width, up.height) == pytest.approx((down.width, down.height))
    for name, (x, y) in up.nodes.items():
        assert (x, up.height - y) == pytest.approx(down.nodes[name])


def test_an_empty_graph_has_no_size():
    assert in_rows({}, [], {}, "up") == Layout(0, 0, {}, {}, {})


def test_a_chain_stands_in_rows_with_the_gaps_between_them():
    sizes = {name: Size(40, 30) for name in ("x", "w", "y", "z")}
    edges = [("e0", "x", "y", 0.25), ("e1", "w", "y", 0.75), ("e2", "y", "z", 0.5)]
    layout = in_rows(sizes, edges, {}, "down")
    step = 30 + module.ROW_GAP
    middle = 40 + module.NODE_GAP / 2
    assert layout.nodes == {
        "x": (20, 15),
        "w": (20 + 40 + module.NODE_GAP, 15),
        "y": (middle, 15 + step),
        "z": (middle, 15 + 2 * step),
    }
    assert layout.routes["e1"].tip == (middle + 10, step)


def test_a_weight_stands_in_the_row_before_its_user():
    sizes = {name: Size(40, 30) for name in ("x", "w0", "w1", "a", "b")}
    pairs = [("x", "a"), ("w0", "a"), ("a", "b"), ("w1", "b")]
    layout = in_rows(sizes, [(f"e{i}", *p, 0.5) for i, p in enumerate(pairs)], {}, "down")
    assert layout.nodes["w0"][1] == layout.nodes["x"][1]
    assert layout.nodes["w1"][1] == layout.nodes["a"][1]


@pytest.mark.parametrize("frames", [{"f": ("", ["a", "b"])}, {"f": ("", ["b"]), "g": ("f", ["a"])}])
def test_what_a_frame_needs_stands_before_it_even_if_it_is_listed_within(frames):
    sizes = {name: Size(40, 30) for name in ("a", "w", "b")}
    layout = in_rows(sizes, [("e0", "w", "b", 0.5)], frames, "down")
    assert layout.nodes["w"][1] + 15 < layout.frames["f"].rect.top


def test_the_same_graph_gives_the_same_layout():
    sizes = {f"n{index}": Size(40 + index, 30) for index in range(50)}
    edges = [(f"e{i}", f"n{i * 7 % 50}", f"n{i * 3 % 50}", 0.5) for i in range(200)]
    frames = {"f": ("", ["n3", "n4"]), "g": ("f", ["n9"])}
    assert in_rows(sizes, edges, frames, "up") == in_rows(sizes, edges, frames, "up")


def chain(count, depth):
    """Return a chain of nodes of which the first stand in frames, each within the last."""
    sizes = {f"n{index}": Size(40, 30) for index in range(count)}
    edges = [(f"e{i}", f"n{i}", f"n{i + 1}", 0.5) for i in range(count - 1)]
    return sizes, edges, {f"f{i}": (f"f{i - 1}" if i else "", [f"n{i}"]) for i in range(depth)}


def test_a_graph_may_be_deeper_than_functions_may_call_each_other():
    assert len(in_rows(*chain(20_000, sys.getrecursionlimit() + 500), "up").nodes) == 20_000


def test_four_times_the_graph_is_about_four_times_the_work():
    def lines_run(count):
        graph, ran, before = chain(count, count // 10), 0, sys.gettrace()

        def trace(_frame, event, _value):
            nonlocal ran
            ran += event == "line"
            return trace

        sys.settrace(trace)
        try:
            in_rows(*graph, "up")
        finally:
            sys.settrace(before)
        return ran

    assert lines_run(2000) < 5 * lines_run(500)
