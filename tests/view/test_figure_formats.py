"""A picture is saved as what the suffix of its file says, with its size and its texts."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image

import irviz
from irviz.course.mlp import MyModule
from irviz.view.figure import Figure, with_highlight, with_title


@pytest.fixture(scope="module")
def figure() -> Figure:
    return irviz.Session(MyModule).draw()


def test_a_png_has_two_pixels_for_each_of_the_picture(figure: Figure) -> None:
    image = Image.open(io.BytesIO(figure.content(".png")))
    assert image.width == pytest.approx(2 * figure.width, abs=2)
    assert image.height == pytest.approx(2 * figure.height, abs=2)
    assert len(image.convert("L").getcolors(256) or ()) > 10


def test_a_png_of_a_part_of_a_pixel_lacks_no_row() -> None:
    line = '<path d="M 5 0 L 55 100" stroke="black"/>'
    size = 'width="100.02" height="100.02" viewBox="0 0 100.02 100.02"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{line}</svg>'
    content = Figure(svg, 100.02, 100.02).content(".png")
    pixels = np.asarray(Image.open(io.BytesIO(content)).convert("L"), dtype=float)[5:190]
    middles = ((255 - pixels) * np.arange(pixels.shape[1])).sum(1) / (255 - pixels).sum(1)
    assert np.diff(middles).max() < 0.75  # half a pixel to the right with each row


def test_a_pdf_is_one_page_of_the_pictures_size_with_its_own_fonts(figure: Figure) -> None:
    content = figure.content(".pdf")
    assert content.startswith(b"%PDF")
    width, height = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", content)[0]
    assert float(width) == pytest.approx(0.75 * figure.width, abs=1)
    assert float(height) == pytest.approx(0.75 * figure.height, abs=1)
    assert b"/FontFile" in content


def test_letters_that_no_font_of_the_machine_has_are_told(monkeypatch) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>{}</text></svg>'
    monkeypatch.setattr("irviz.view.figure.WIDE_FONTS", ("A font that nobody has",))
    Figure(svg.format("lv0"), 9, 9).content(".png")
    with pytest.warns(UserWarning, match="none of the fonts A font that nobody has"):
        Figure(svg.format("线性"), 9, 9).content(".png")


def test_a_pdf_does_not_tell_when_it_was_made(figure: Figure) -> None:
    assert re.search(rb"Creat\w*Date", figure.content(".pdf")) is None


def test_what_is_saved_is_the_content_of_its_format(figure: Figure, tmp_path) -> None:
    for suffix in figure.formats:
        path = figure.save(tmp_path / f"mlp{suffix}")
        assert path.read_bytes()[:8] == figure.content(suffix)[:8]


# --- annotations -------------------------------------------------------------------------------


def drawn(parts: str, width: int, height: int) -> Figure:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    ground = f'<rect width="{width}" height="{height}" fill="white"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{ground}{parts}</svg>'
    return Figure(svg, width, height)


def pixels(figure: Figure) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(figure.content(".png"))).convert("L"), dtype=int)


def test_a_title_stands_in_a_strip_above_the_whole_picture() -> None:
    black = '<rect width="300" height="50"/>'
    found = pixels(with_title(drawn(black, 300, 50), "After FuseOps"))
    assert found.shape[1] == 600
    strip, picture = found[:-100], found[-100:]
    assert (picture == 0).all()
    assert 0 < (strip < 128).mean() < 0.5


def test_a_node_is_framed_along_its_own_outline_alone() -> None:
    nodes = "".join(
        f'<g class="node" data-node="{name}">'
        f'<rect class="shape" x="{x}" y="20" width="40" height="30" fill="white"/></g>'
        for name, x in (("a", 20), ("b", 100))
    )
    figure = drawn(nodes, 160, 70)
    before, after = pixels(figure), pixels(with_highlight(figure, ["b", "unknown"]))
    ys, xs = np.nonzero(before != after)
    x, y = (xs + 0.5) / 2, (ys + 0.5) / 2
    assert ((x - x.min() < 5) | (x.max() - x < 5) | (y - y.min() < 5) | (y.max() - y < 5)).all()
    ends = x.min(), x.max(), y.min(), y.max()
    assert ends == pytest.approx((100, 140, 20, 50), abs=3)
