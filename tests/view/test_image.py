"""A row of numbers that can be a square picture is one."""

import struct

import numpy as np
import pytest

from irviz.view.image import as_image, png


@pytest.mark.parametrize(
    ("shape", "side"), [((784,), 28), ((1, 784), 28), ((1, 1, 64), 8), ((64,), 8)]
)
def test_a_row_of_a_square_number_is_a_picture(shape, side):
    assert as_image(np.arange(np.prod(shape)).reshape(shape)).shape == (side, side)


@pytest.mark.parametrize("shape", [(), (10,), (49,), (2, 392), (28, 28), (65,), (784, 1)])
def test_what_is_no_such_row_is_none(shape):
    assert as_image(np.zeros(shape)) is None


def test_a_picture_is_read_line_by_line():
    assert as_image(np.arange(64.0))[0].tolist() == list(range(8))


@pytest.mark.parametrize("values", [np.arange(64.0), np.zeros(64), np.arange(64) % 2 == 0])
def test_a_png_has_the_size_of_the_picture(values):
    data = png(as_image(values))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (8, 8)
