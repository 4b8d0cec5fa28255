"""What is told of nodes can be read: as a colour, in grey, in words; and it moves nothing."""

import itertools
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irviz.course.mlp import MODULES
from irviz.ir.function_graph import extract
from irviz.view.graph.graph_figure import OccupiedArea, draw_graph, draw_placed, place_graph
from irviz.view.graph.overlay import Mark, Overlay
from irviz.view.mix_colours import mix_colours
from irviz.view.svg_primitives import Rect
from irviz.view.theme import THEMES

SVG = "{http://www.w3.org/2000/svg}"
SHARES = [index / 100 for index in range(101)]


def luminance(colour):
    """Return the relative luminance of `#rrggbb`, as WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first, second):
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def overlay_of(graph, words="0.42 ms · 31 %", **more):
    """Return an overlay that marks every node, with shares from 0 to 1."""
    last = max(len(graph.nodes) - 1, 1)
    marks = {node.id: Mark(i / last, words, **more) for i, node in enumerate(graph.nodes)}
    return Overlay("time of each node", "0 %", "31 %", marks, "NaN or Inf")


@pytest.fixture(scope="module")
def graphs(modules):
    found = {name: extract(mod) for name, mod in MODULES.items()}
    names = ["EveryKind", "Impure", "ReturnedConstants", "SizeAsArgument", "Closure", "TwoOutputs"]
    found |= {name: extract(getattr(modules, name)) for name in names}
    found["wide"] = extract(modules.wide(40))
    found["stack"] = extract(modules.stack(5))
    return found


def groups(svg, name):
    """Return the groups of this class by their node."""
    root = ElementTree.fromstring(svg)
    return {
        group.get("data-node"): group
        for group in root.iter(f"{SVG}g")
        if name in group.get("class", "").split()
    }


def shape(group):
    return next(element for element in group if element.get("class") == "shape")


# --- the colours -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", THEMES)
def test_the_names_on_a_node_can_be_read_at_every_tint(name):
    theme = THEMES[name]
    for share in SHARES:
        assert contrast(theme.text, mix_colours(*theme.tints, share)) >= 4.5, share


@pytest.mark.parametrize("name", THEMES)
def test_more_is_further_from_the_paper_in_grey_too(name):
    theme = THEMES[name]
    greys = [contrast(theme.background, mix_colours(*theme.tints, share)) for share in SHARES]
    assert greys == sorted(greys)
    assert len(set(greys[::5])) == len(greys[::5])
    assert greys[-1] / greys[0] > 2.3


@pytest.mark.parametrize("name", THEMES)
def test_a_warning_can_be_seen_on_the_paper_and_on_every_tint(name):
    theme = THEMES[name]
    assert contrast(theme.flag, theme.background) >= 4.5


def test_the_ends_of_a_ramp_are_its_colours_and_its_middle_is_as_css_has_it():
    assert mix_colours("#fff5cc", "#dd6a2a", 0) == "#fff5cc"
    assert mix_colours("#fff5cc", "#dd6a2a", 1) == "#dd6a2a"
    assert mix_colours("#000000", "#ffffff", 0.5) == "#636363"  # color-mix(in oklab, black, white)
    assert mix_colours("#ff0000", "#0000ff", 0.5) == "#8c53a2"


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_between_0_and_1(share):
    with pytest.raises(ValueError, match=f"the share of 'much' is {share!r}: give a number"):
        Mark(share, "much")


# --- the tints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", THEMES)
def test_a_node_has_the_tint_of_its_share_and_one_without_a_mark_has_none(graphs, name):
    graph, theme = graphs["MyModuleStatic"], THEMES[name]
    marks = {graph["lv0"].id: Mark(0.25, "few"), graph["out"].id: Mark(1.0, "all")}
    drawn = groups(draw_graph(graph, name, overlay=Overlay("t", "0", "1", marks)).svg, "node")
    assert shape(drawn["lv0"]).get("fill") == mix_colours(*theme.tints, 0.25)
    assert shape(drawn["out"]).get("fill") == theme.tints[1]
    assert drawn["lv0"].get("style") == "--share:25%"
    assert {shape(drawn[one]).get("fill") for one in ("x", "w0", "lv1")} == {theme.background}
    assert "tinted" not in drawn["x"].get("class")


def test_a_tooltip_tells_the_words_of_the_mark_too(graphs):
    graph = graphs["MyModuleStatic"]
    drawn = groups(draw_graph(graph, overlay=overlay_of(graph)).svg, "node")
    assert drawn["lv0"].findtext(f"{SVG}title").endswith("\ntime of each node: 0.42 ms · 31 %")


def test_a_warning_has_a_shape_and_the_first_is_larger(graphs):
    graph = graphs["MyModuleStatic"]
    first, other, calm = graph["lv0"].id, graph["lv1"].id, graph["out"].id
    marks = {
        first: Mark(1, "NaN", is_flagged=True, is_first=True),
        other: Mark(1, "NaN", is_flagged=True),
        calm: Mark(1, "1"),
    }
    drawn = groups(draw_graph(graph, overlay=Overlay("t", "0", "1", marks, "NaN")).svg, "node")

    def width(group):
        flag = next(one for one in group if one.get("class", "").startswith("flag"))
        return len({*re.findall(r"[ML](-?[\d.]+),", flag[0].get("d"))}), flag[0].get("fill")

    corners, fill = width(drawn[first])
    assert (corners, fill) == (3, THEMES["course"].flag)
    assert width(drawn[other]) == (3, THEMES["course"].background)
    assert not any(one.get("class", "").startswith("flag") for one in drawn[calm])


# --- the words ---------------------------------------------------------------------------------


def words_of(svg, picture):
    """Return the words beside nodes with their boxes, by node."""
    reader = type(picture.paper)
    found = {}
    for node_id, group in groups(svg, "word").items():
        (text,) = group
        x, y, size = (float(text.get(name)) for name in ("x", "y", "font-size"))
        half = len(text.text) * size * 0.602 / 2
        box = reader(x - half, y - 0.75 * size, x + half, y + 0.22 * size)
        found[node_id] = (text, box)
    return found


coordinates = st.floats(0, 300)
rects = st.builds(
    lambda left, top, width, height: Rect(left, top, left + width, top + height),
    *(coordinates, coordinates, st.floats(1, 120), st.floats(1, 60)),
)


@given(
    obstacles=st.lists(rects, max_size=5),
    lines=st.lists(st.tuples(coordinates, coordinates), max_size=40),
    label=rects,
)
def test_what_a_label_would_cover_is_what_a_look_at_everything_finds(obstacles, lines, label):
    picture = Rect(0, 0, 400, 400)
    area = OccupiedArea(picture, obstacles, lines)
    covered = [
        1 for x, y in lines if label.left <= x <= label.right and label.top <= y <= label.bottom
    ]
    assert area.covered_points(label) == len(covered)
    is_free = picture.contains(label) and not any(label.overlaps(one) for one in obstacles)
    assert area.is_free(label) == is_free


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("flag", [False, True])
def test_words_cover_no_other_words_no_nodes_and_no_arrows(graphs, direction, flag, read_picture):
    for name, graph in graphs.items():
        drawn = draw_graph(graph, direction=direction, overlay=overlay_of(graph, is_flagged=flag))
        picture = read_picture(drawn.svg)
        words = words_of(drawn.svg, picture)
        boxes = [box for _, box in words.values()]
        assert boxes, name
        for box in boxes:
            assert picture.paper.holds(box), name
            assert not any(box.meets(node.box) for node in picture.nodes), name
            assert not any(box.meets(other) for _, other in picture.values.values()), name
            assert not any(box.holds(type(box)(*line.tip, *line.tip)) for line in picture.lines)
        assert not any(a.meets(b) for a, b in itertools.combinations(boxes, 2)), name


def test_every_node_of_the_course_has_its_words_near_it(graphs, read_picture):
    for name in MODULES:
        graph = graphs[name]
        drawn = draw_graph(graph, overlay=overlay_of(graph))
        picture = read_picture(drawn.svg)
        words = words_of(drawn.svg, picture)
        assert set(words) == set(graph.index), name
        for node_id, (text, box) in words.items():
            near = picture.box(node_id)
            grown = type(near)(near.left - 5, near.top - 25, near.right + 5, near.bottom + 25)
            assert box.meets(grown), (name, node_id)
            assert text.get("paint-order") == "stroke"
            assert text.get("stroke") == THEMES["course"].background


def test_words_without_a_free_place_are_left_to_the_tooltip(graphs, read_picture):
    graph = graphs["MyModuleStatic"]
    drawn = draw_graph(graph, overlay=overlay_of(graph, "x" * 300))
    assert words_of(drawn.svg, read_picture(drawn.svg)) == {}
    assert "x" * 300 in drawn.svg


# --- the legend, and what stays ----------------------------------------------------------------


@pytest.mark.parametrize("flag", [False, True])
def test_the_legend_stands_below_the_graph_on_the_paper(graphs, flag, read_picture):
    graph = graphs["SizeAsArgument"]
    overlay = overlay_of(graph, is_flagged=flag)
    drawn = draw_graph(graph, overlay=overlay)
    legend = groups(drawn.svg, "legend")[None]
    picture = read_picture(drawn.svg)
    lowest = max(node.box.bottom for node in picture.nodes)
    said = [text.text for text in legend.iter(f"{SVG}text")]
    assert said == ["time of each node", "0 %", "31 %", *(["NaN or Inf"] if flag else [])]
    for text in legend.iter(f"{SVG}text"):
        x, y, size = (float(text.get(name)) for name in ("x", "y", "font-size"))
        assert lowest < y - size
        assert y + 0.22 * size < picture.paper.bottom
        assert x + len(text.text) * size * 0.602 < picture.paper.right
    cells = [one for one in legend if one.get("class", "").startswith("cell")]
    fills = [one.get("fill") for one in cells]
    assert (fills[0], fills[-1]) == THEMES["course"].tints
    assert len(set(fills)) == len(fills)


def test_a_long_legend_widens_the_paper_and_moves_nothing(graphs):
    graph = graphs["ReturnedConstants"]
    plain = draw_graph(graph)
    wide = draw_graph(graph, overlay=Overlay("t" * 200, "0", "1", {}))
    assert wide.width > plain.width
    assert wide.places == plain.places


@pytest.mark.parametrize("direction", ["up", "down"])
def test_nothing_moves_under_an_overlay(graphs, direction, read_picture):
    for name, graph in graphs.items():
        openable = [str(graph.nodes[-1].id)]
        placed = place_graph(graph, direction)
        plain = draw_placed(placed, openable=openable)
        told = draw_placed(placed, openable=openable, overlay=overlay_of(graph))
        before, after = read_picture(plain.svg), read_picture(told.svg)
        assert [node.box for node in after.nodes] == [node.box for node in before.nodes], name
        assert (after.values, after.lines, after.frames) == (
            before.values,
            before.lines,
            before.frames,
        )
        assert told.places == plain.places
        assert told.dot == plain.dot
        assert told.height > plain.height
        root = after.root
        size = (float(root.get("width")), float(root.get("height")))
        assert size == pytest.approx((told.width, told.height), abs=0.01)


def test_the_same_overlay_gives_the_same_bytes(graphs):
    graph = graphs["EveryKind"]
    first, second = (draw_graph(graph, "dark", overlay=overlay_of(graph)).svg for _ in range(2))
    assert first == second != draw_graph(graph, "dark").svg


def test_words_can_be_anything(graphs, read_picture):
    graph = graphs["MyModuleStatic"]
    marks = {node.id: Mark(0.5, "\x00<&\"'>\ud800") for node in graph.nodes}
    drawn = draw_graph(graph, overlay=Overlay("<b>\x01", "<", "&", marks, "\ufffe"))
    drawn.svg.encode("utf-8")
    words = words_of(drawn.svg, read_picture(drawn.svg))
    assert {text.text for text, _ in words.values()} == {"\ufffd<&\"'>\ufffd"}


# --- what is pale ------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["course", "dark"])
def test_what_is_pale_can_be_read(graphs, theme):
    """The texts of what is unchanged in a comparison have a contrast of at least 4.5 to 1."""

    def seen(colour, share):
        paper = THEMES[theme].background
        pairs = [(int(colour[i : i + 2], 16), int(paper[i : i + 2], 16)) for i in (1, 3, 5)]
        return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in pairs)

    for graph in graphs.values():
        drawn = draw_graph(graph, theme=theme, dimmed=[node.id for node in graph.nodes])
        for group in ElementTree.fromstring(drawn.svg).iter(f"{SVG}g"):
            shape = next((one for one in group if "shape" in one.get("class", "").split()), None)
            texts = [one.get("fill") for one in group.iter(f"{SVG}text")]
            if not texts or not group.get("opacity"):
                continue
            share = float(group.get("opacity"))
            ground = THEMES[theme].background if shape is None else shape.get("fill")
            for text in texts:
                assert contrast(seen(text, share), seen(ground, share)) >= 4.5


def test_dimmed_nodes_are_pale_with_their_values_words_and_edges(graphs):
    graph = graphs["MyModuleStatic"]
    drawn = draw_graph(graph, overlay=overlay_of(graph), dimmed=["x", "lv0"])
    root = ElementTree.fromstring(drawn.svg)
    pale = [group for group in root.iter(f"{SVG}g") if group.get("opacity")]
    assert {float(group.get("opacity")) for group in pale} == {0.62}
    assert all("dimmed" in group.get("class").split() for group in pale)
    ends = {(one.get("data-source"), one.get("data-target")) for one in pale}
    assert ends - {(None, None)} == {("x", "lv0"), ("lv0", "lv1")}
    kinds = {(one.get("class").split()[0], one.get("data-node")) for one in pale}
    assert kinds - {("edge", None)} == set(
        itertools.product(("node", "value", "word"), ("x", "lv0"))
    )


def test_nothing_is_pale_of_itself(graphs):
    graph = graphs["EveryKind"]
    assert "opacity" in draw_graph(graph, overlay=overlay_of(graph), dimmed=["x"]).svg
    assert "opacity" not in draw_graph(graph, overlay=overlay_of(graph)).svg
