"""Arrays that look like images are known as such by their shape."""

import struct

import numpy as np
import pytest

from irviz.view.array_pictures import as_image, as_images, grey_png, images_shape


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
    data = grey_png(as_image(values))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (8, 8)


@pytest.mark.parametrize(
    ("shape", "images"),
    [
        ((5, 28, 20), (5, 28, 20, 1)),
        ((1, 28, 28), (1, 28, 28, 1)),
        ((5, 1, 28, 20), (5, 28, 20, 1)),
        ((5, 3, 28, 20), (5, 28, 20, 3)),
        ((5, 28, 20, 4), (5, 28, 20, 4)),
        ((64, 3, 7, 7), (64, 7, 7, 3)),
        ((8, 16, 3, 3), (128, 3, 3, 1)),
        ((5, 64), (5, 8, 8, 1)),
        ((784,), (1, 28, 28, 1)),
        ((8, 8, 32), (8, 8, 32, 1)),
    ],
)
def test_images_are_known_by_the_shape(shape, images):
    assert images_shape(shape) == images
    assert as_images(np.zeros(shape)).shape == images


@pytest.mark.parametrize(
    "shape",
    [
        *((), (10,), (49,), (2, 65), (0, 64), (0, 8, 8), (2, 7, 8), (8, 8, 33), (1, 128, 768)),
        *((2, 28, 28, 5), (64, 3, 1, 1), (2, 2, 64), (1, 2, 3, 64, 64)),
    ],
)
def test_what_looks_like_no_images_is_none(shape):
    assert images_shape(shape) is None
    assert as_images(np.zeros(shape)) is None


def test_channels_are_last_wherever_they_were():
    array = np.arange(2 * 3 * 8 * 9).reshape(2, 3, 8, 9)
    assert as_images(array)[1, 4, 5].tolist() == array[1, :, 4, 5].tolist()
    assert as_images(array.transpose(0, 2, 3, 1))[1, 4, 5].tolist() == array[1, :, 4, 5].tolist()
