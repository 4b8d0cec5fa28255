"""Kinds of calls are told apart at a glance, also in grey and by those who see fewer colours."""

import itertools
from xml.etree import ElementTree

import pytest

from irviz.model.graph.graph import Node, NodeId, NodeKind, Resolution
from irviz.view.geometry import Rect, Size
from irviz.view.graph.node_shapes import add_shape
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
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
