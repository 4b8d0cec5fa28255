"""A picture is saved as what the suffix of its file says, with its size and its texts."""

from __future__ import annotations

import io
import re

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


def test_a_pdf_is_one_page_of_the_pictures_size_with_its_own_fonts(figure: Figure) -> None:
    content = figure.content(".pdf")
    assert content.startswith(b"%PDF")
    width, height = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", content)[0]
    assert float(width) == pytest.approx(0.75 * figure.width, abs=1)
    assert float(height) == pytest.approx(0.75 * figure.height, abs=1)
    assert b"/FontFile" in content


def test_what_is_saved_is_the_content_of_its_format(figure: Figure, tmp_path) -> None:
    for suffix in figure.formats:
        path = figure.save(tmp_path / f"mlp{suffix}")
        assert path.read_bytes()[:8] == figure.content(suffix)[:8]
