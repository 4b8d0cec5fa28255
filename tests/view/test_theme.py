"""Kinds of calls are told apart at a glance, also in grey and by those who see fewer colours."""

import itertools
import math
from xml.etree import ElementTree

import pytest

from irviz.model.graph.graph import Node, NodeId, NodeKind, Resolution
from irviz.view.graph.nodes_and_edges import add_shape
from irviz.view.loop_nest_figure import TINT
from irviz.view.mix_colours import mix_colours, oklab
from irviz.view.svg_primitives import Rect, Size
from irviz.view.theme import STYLES, THEMES, NodeShape, get_theme, node_style


def node(kind, resolution=None):
    return Node(NodeId("x"), kind, "x", "T", "f", resolution)


def test_what_the_reader_must_tell_apart_differs_in_shape():
    shapes = {
        "param": node_style(node(NodeKind.PARAM)).shape,
        "constant": node_style(node(NodeKind.CONSTANT)).shape,
        "PrimFunc": node_style(node(NodeKind.CALL_TIR, Resolution.PRIM_FUNC)).shape,
        "library": node_style(node(NodeKind.CALL_DPS_PACKED, Resolution.LIBRARY)).shape,
        "operator": node_style(node(NodeKind.OPERATOR)).shape,
    }
    assert len(set(shapes.values())) == len(shapes)


def test_a_name_that_leads_nowhere_looks_unlike_one_that_leads_to_a_library():
    library = node_style(node(NodeKind.CALL_DPS_PACKED, Resolution.LIBRARY))
    unknown = node_style(node(NodeKind.CALL_DPS_PACKED, Resolution.UNKNOWN))
    assert library.colour != unknown.colour


def test_a_prim_func_called_by_name_looks_like_one_called_by_reference():
    by_name = node_style(node(NodeKind.CALL_DPS_PACKED, Resolution.PRIM_FUNC))
    assert by_name == node_style(node(NodeKind.CALL_TIR, Resolution.PRIM_FUNC))


def test_every_theme_has_the_colours_of_every_style():
    used = {node_style(node(kind, r)).colour for kind in STYLES for r in (None, *Resolution)}
    used.add(node_style(node(NodeKind.GROUP)._replace(callee="")).colour)
    for theme in THEMES.values():
        assert set(theme.colours) == used


@pytest.mark.parametrize("name", THEMES)
def test_text_can_be_read_on_its_ground(name):
    """The contrast is at least 4.5, what WCAG asks of text."""
    theme = THEMES[name]
    for fill, _ in theme.colours.values():
        assert contrast(theme.text, fill) >= 4.5
        assert contrast(theme.quiet_text, fill) >= 4.5
    for ground in (theme.background, theme.block_fill):
        assert contrast(theme.text, ground) >= 4.5
        assert contrast(theme.quiet_text, ground) >= 4.5
        assert contrast(theme.line, ground) >= 3


@pytest.mark.parametrize("name", THEMES)
def test_words_in_the_colours_of_changes_can_be_read(name):
    theme = THEMES[name]
    assert set(theme.changes) == {"added", "removed", "changed", "fused", "moved"}
    for colour in theme.changes.values():
        assert contrast(colour, theme.background) >= 4.5
        assert contrast(colour, theme.block_fill) >= 4.5


@pytest.mark.parametrize("name", THEMES)
def test_words_can_be_read_on_the_ground_of_rows_that_changed(name):
    theme = THEMES[name]
    for colour in theme.changes.values():
        ground = mix_colours(theme.background, colour, TINT)
        assert contrast(colour, ground) >= 4.5
        assert contrast(theme.text, ground) >= 4.5


SEEN_BY = {
    "all three cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no long-wave cones": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no middle-wave cones": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no short-wave cones": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""What eyes see of linear red, green and blue (Machado, Oliveira and Fernandes, 2009)."""


def least_distance(colours, eyes):
    """Return the least distance of two colours in OKLab, where black and white are 1 apart."""
    places = [oklab(seen(each, eyes)) for each in colours]
    return min(math.dist(*pair) for pair in itertools.combinations(places, 2))


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("eyes", SEEN_BY)
def test_the_colours_of_changes_differ_for_eyes_that_see_fewer_colours(name, eyes):
    assert least_distance(THEMES[name].changes.values(), eyes) > 0.09


def test_the_red_and_green_of_many_charts_do_not_differ_for_such_eyes():
    assert least_distance(["#d62728", "#2ca02c"], "all three cones") > 0.3
    assert least_distance(["#d62728", "#2ca02c"], "no middle-wave cones") < 0.09


@pytest.mark.parametrize("name", THEMES)
def test_outlines_can_be_seen_on_their_ground(name):
    theme = THEMES[name]
    for _, stroke in theme.colours.values():
        assert contrast(stroke, theme.background) >= 3


def test_an_unknown_theme_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="no theme 'neon'; choose one of course, dark"):
        get_theme("neon")


def elements(shape, size):
    parent = ElementTree.Element("g")
    add_shape(parent, shape, Rect.around((50, 20), size))
    return list(parent)


def test_every_shape_is_drawn_unlike_every_other():
    drawn = {
        shape: [(e.tag, sorted(e.attrib.items())) for e in elements(shape, Size(80, 30))]
        for shape in NodeShape
    }
    for a, b in itertools.combinations(drawn, 2):
        assert drawn[a] != drawn[b]


def test_a_wide_circle_is_a_box_with_round_ends():
    (shape,) = elements(NodeShape.CIRCLE, Size(80, 30))
    assert (shape.tag, shape.get("rx"), shape.get("x"), shape.get("y")) == ("rect", "15", "10", "5")
    (circle,) = elements(NodeShape.CIRCLE, Size(30, 30))
    assert (circle.tag, circle.get("r"), circle.get("cx")) == ("circle", "15", "50")


def contrast(first, second):
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    """Return the relative luminance of `#rrggbb`, as WCAG 2 defines it."""
    return product(((0.2126, 0.7152, 0.0722),), linear(colour))[0]


def linear(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def product(matrix, vector):
    return [sum(w * c for w, c in zip(row, vector, strict=True)) for row in matrix]


def seen(colour, eyes):
    """Return the colour that looks to all eyes as this one does to some."""
    light = [min(max(each, 0), 1) for each in product(SEEN_BY[eyes], linear(colour))]
    curved = [12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in light]
    return "#" + "".join(f"{round(255 * c):02x}" for c in curved)
