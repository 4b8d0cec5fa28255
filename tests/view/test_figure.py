"""A figure shows itself in a notebook and saves itself whole or not at all."""

import re
from xml.etree import ElementTree

import pytest

from irviz.ir.extract import extract
from irviz.model.graph import NodeId
from irviz.view.figure import Figure, figure
from irviz.view.overlay import Mark, Overlay

PICTURE = Figure("<svg/>\n", "digraph {}\n", width=10, height=10)


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


@pytest.mark.parametrize("name", ["a.png", "a", "a.svgz", ".svg", "a.svg.txt"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"give a name ending in \.svg or \.dot"):
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
    with pytest.raises(OSError, match="directory"):
        PICTURE.save(tmp_path / "a.svg")
    assert [p.name for p in tmp_path.iterdir()] == ["a.svg"]
    assert (tmp_path / "a.svg" / "kept").read_text() == "kept"


def test_a_notebook_shows_the_picture(modules):
    drawn = figure(extract(modules.SameTwice))
    assert drawn._repr_svg_() is drawn.svg
    assert drawn.svg.startswith("<svg ")
    assert drawn.dot.startswith("digraph")


def test_a_figure_knows_its_size_and_says_what_it_is(modules):
    drawn = figure(extract(modules.SameTwice))
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
        figure(extract(modules.SameTwice), **options)


def test_what_is_told_and_what_is_pale_are_saved_with_the_picture(modules, tmp_path):
    graph = extract(modules.SameTwice)
    overlay = Overlay("size of each value", "0 B", "8 B", {NodeId("y"): Mark(1.0, "8 B")})
    drawn = figure(graph, overlay=overlay, dimmed=["x"])
    text = drawn.save(tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text == drawn.svg
    assert text.count(">8 B</text>") == 2  # beside the node, and in the legend
    assert 'class="node param dimmed" data-node="x" opacity="0.35"' in text


def test_themes_differ_in_colours_and_in_nothing_else(modules):
    graph = extract(modules.EveryKind)
    light, dark = (figure(graph, theme).svg for theme in ("course", "dark"))
    assert light != dark
    assert re.sub("#[0-9a-f]{6}", "", light) == re.sub("#[0-9a-f]{6}", "", dark)
