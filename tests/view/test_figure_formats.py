"""A picture is saved as what the suffix of its file says, with its size and its texts."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image

import irviz
from irviz.course.mlp import MyModule
from irviz.view.figure import Figure


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
