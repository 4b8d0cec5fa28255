"""Pictures of values show what is in them, say what they leave out, and stand in any page."""

import base64
import io
import math
import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib as mpl
import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from irviz.course.digits import digits, mlp_params
from irviz.model.runs.array_diff import summarise
from irviz.units import format_number, format_numbers
from irviz.view.array_pictures import (
    NAN,
    colour_scale,
    heat_map,
    image_strip,
    select_cells,
    shares,
)
from irviz.view.mpl_svg import WIDTH
from irviz.view.value_charts import (
    HEAT_MAP,
    HISTOGRAM,
    IMAGES,
    draw_chart,
    fitting_charts,
    histogram,
)

LARGEST = float(np.finfo(np.float64).max)
SVG = "{http://www.w3.org/2000/svg}"
PINK = tuple(int(NAN[i : i + 2], 16) for i in (1, 3, 5))


def texts(drawing):
    root = ElementTree.fromstring(drawing.svg)
    return ["".join(one.itertext()).strip() for one in root.iter(f"{SVG}text")]


def bitmaps(drawing):
    """Return the pictures inside of the SVG, as (height, width, 4)."""
    found = re.findall(r"data:image/png;base64,\s*([A-Za-z0-9+/=]+)", drawing.svg)
    opened = (Image.open(io.BytesIO(base64.b64decode(one))) for one in found)
    return [np.array(one.convert("RGBA")) for one in opened]


def cell_colours(array, theme="course", **arguments):
    return bitmaps(heat_map(np.asarray(array), theme, **arguments))[0]


def brightness(pixel):
    return float(np.dot(pixel[:3], (0.299, 0.587, 0.114)))


# --- heat maps ---------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["course", "dark"])
def test_each_number_of_a_matrix_is_a_cell_and_a_larger_one_is_further_from_the_paper(theme):
    found = cell_colours(np.arange(40.0).reshape(4, 10), theme)
    assert found.shape == (4, 10, 4)
    shades = [brightness(pixel) for pixel in found.reshape(-1, 4)]
    assert shades == sorted(shades, reverse=theme == "course")
    assert abs(shades[0] - shades[-1]) > 150


@pytest.mark.parametrize("theme", ["course", "dark"])
def test_around_zero_both_signs_have_a_colour_and_zero_that_of_the_paper(theme):
    (below, zero, above) = cell_colours([[-2.0, 0.0, 1.0]] * 2, theme)[0].astype(int)
    assert below[2] > below[0]  # blue
    assert above[0] > above[2]  # orange
    assert max(zero[:3]) - min(zero[:3]) < 16
    assert (zero[:3] > 230).all() if theme == "course" else (zero[:3] < 50).all()


def test_equal_distances_from_zero_have_equal_strength():
    values = np.array([[-1.0, 1.0, 4.0]])
    scale = colour_scale(values, "course")
    assert (scale.low, scale.high) == (-1, 4)
    assert shares(np.zeros(()), -1, 4) == pytest.approx(0.2)
    weak, strong = (scale.pixels(np.array([one]))[0].astype(int) for one in (1.0, 4.0))
    assert brightness(weak) - brightness(strong) > 60


@pytest.mark.parametrize("theme", ["course", "dark"])
def test_what_is_no_number_has_a_colour_of_its_own_and_a_word(theme):
    array = np.arange(12.0).reshape(3, 4)
    array[0, 1], array[1, 2], array[2, 0] = np.nan, np.inf, -np.inf
    found = cell_colours(array, theme)
    assert tuple(found[0, 1, :3]) == PINK
    assert tuple(found[1, 2, :3]) == tuple(found[2, 0, :3])
    others = [tuple(pixel) for pixel in found.reshape(-1, 4)]
    assert others.count(tuple(found[0, 1])) == 1
    assert others.count(tuple(found[1, 2])) == 2
    assert {"1 NaN", "2 Inf (1 negative)"} <= set(texts(heat_map(array, theme)))


def test_all_nan_is_drawn_without_a_scale():
    drawing = heat_map(np.full((3, 40), np.nan))
    assert "120 NaN" in texts(drawing)
    assert len(bitmaps(drawing)) == 1
    assert (bitmaps(drawing)[0][..., :3] == PINK).all()


def test_small_matrices_have_their_numbers_in_the_cells():
    found = texts(heat_map(np.array([[1.0, -2.5], [np.nan, 1e-7]])))
    assert {"1", "−2.5", "NaN", "1e−7"} <= set(found)


def test_a_constant_says_so():
    assert "2.5 everywhere" in texts(heat_map(np.full((3, 40), 2.5)))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array(3.25), "3.25"),
        (np.array(-7, np.int8), "−7"),
        (np.array(True), "True"),
        (np.array(np.nan), "NaN"),
        (np.array(-np.inf, np.float16), "−Inf"),
        (np.array(1.5).astype(ml_dtypes.bfloat16), "1.5"),
    ],
)
def test_a_scalar_is_its_number(array, words):
    assert words in texts(heat_map(array))


def test_a_short_vector_is_one_row():
    assert cell_colours(np.arange(10.0)).shape[:2] == (1, 10)
    assert "folded" not in heat_map(np.arange(10.0)).svg


@pytest.mark.parametrize("shape", [(784,), (1, 784), (784, 1)])
def test_a_long_vector_is_folded_and_this_is_said(shape):
    drawing = heat_map(np.arange(784.0).reshape(shape))
    assert bitmaps(drawing)[0].shape[:2] == (28, 28)
    assert "folded: 28 numbers a row" in texts(drawing)


def test_the_room_behind_the_end_of_a_folded_vector_is_empty():
    found = cell_colours(np.arange(101.0))
    assert found.shape[:2] == (10, 11)
    assert (found.reshape(-1, 4)[:101, 3] == 255).all()
    assert (found.reshape(-1, 4)[101:, 3] == 0).all()


def test_a_cell_of_a_large_matrix_is_the_largest_of_its_block_and_this_is_said():
    array = np.zeros((600, 300))
    array[4, 7], array[599, 299] = -3.0, 2.0
    shown = select_cells(array)
    assert shown.values.shape == (200, 150)
    assert (shown.values[1, 3], shown.values[199, 149]) == (-3, 2)
    assert np.count_nonzero(shown.values) == 2
    assert "a cell is the largest |number| of 3 × 2, with its sign" in texts(heat_map(array))


def test_no_nan_is_lost_in_a_block_and_each_is_counted():
    array = np.zeros((512, 512), np.float32)
    array[7, 8:10] = np.nan
    array[7, 11] = -np.inf
    array[100, 100] = np.inf
    drawing = heat_map(array)
    assert {"2 NaN", "2 Inf (1 negative)"} <= set(texts(drawing))
    assert tuple(bitmaps(drawing)[0][3, 4, :3]) == PINK


def test_a_very_long_vector_keeps_its_largest_numbers():
    array = np.zeros(200_000, np.float32)
    array[123_456] = -9.0
    shown = select_cells(array)
    assert shown.values.size <= 256 * 256
    assert shown.values.reshape(-1)[123_456 // 4] == -9
    assert shown.values.min() == -9


def test_the_slice_of_a_tensor_is_the_one_that_was_chosen():
    array = np.arange(48.0).reshape(2, 1, 3, 2, 4)
    assert select_cells(array).values.reshape(-1)[0] == 0
    assert select_cells(array, (1, 0, 2)).values.tolist() == array[1, 0, 2].tolist()
    assert "the slice [1, 0, 2, :, :]" in texts(heat_map(array, index=(1, 0, 2)))


@pytest.mark.parametrize("shape", [(6, 4, 1, 1), (6, 1, 4, 1), (1, 6, 4)])
def test_sides_of_one_number_are_not_drawn(shape):
    array = np.arange(24.0).reshape(shape)
    assert select_cells(array).values.tolist() == np.arange(24.0).reshape(6, 4).tolist()


def test_the_slice_is_named_by_its_axes():
    array = np.arange(24.0).reshape(2, 3, 1, 4, 1)
    assert "the slice [1, :, 0, :, 0]" in texts(heat_map(array, index=(1, 0, 0)))


@pytest.mark.parametrize("index", [(1,), (2, 0), (-1, 0), (0, 3), (0, 0, 0)])
def test_an_index_that_does_not_fit_is_named_with_what_would(index):
    array = np.zeros((2, 3, 4, 5))
    with pytest.raises(ValueError, match=re.escape(repr(index)) + ".* give 0 to 1, 0 to 2"):
        heat_map(array, index=index)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 2)])
def test_an_empty_array_cannot_be_drawn(shape):
    with pytest.raises(ValueError, match="is empty: there is nothing to draw"):
        heat_map(np.zeros(shape))


# --- histograms --------------------------------------------------------------------------------


def test_a_histogram_needs_no_more_than_the_summary():
    array = mlp_params()["b0"]
    assert histogram(summarise(array)) == histogram(array)


def test_a_histogram_says_mean_deviation_and_what_it_leaves_out():
    found = texts(histogram(np.array([1, 3, np.nan, np.inf, np.inf])))
    assert "mean 2, standard deviation 1" in found
    assert "1 NaN and 2 Inf not counted" in found


def test_bars_that_could_not_be_seen_are_on_a_logarithmic_scale_and_this_is_said():
    array = np.concatenate([np.zeros(100_000), np.linspace(0.1, 1, 60)])
    words = "the counts are on a logarithmic scale"
    assert words in texts(histogram(array))
    assert words not in texts(histogram(np.linspace(0, 1, 60)))


def test_ticks_that_differ_have_words_that_differ():
    found = texts(histogram(np.array([1, 1 + 4e-12])))
    assert {"1", "1.000000000004"} <= set(found)


def test_nothing_finite_has_no_histogram():
    with pytest.raises(ValueError, match=r"shape \(3,\) is finite: there is no histogram"):
        histogram(np.full(3, np.nan))


# --- images ------------------------------------------------------------------------------------


def test_digits_are_grey_images_with_their_numbers():
    images = digits().images
    drawing = image_strip(images[:20])
    found = [one for one in bitmaps(drawing) if one.shape[:2] == (28, 28)]
    assert len(found) == 16
    wanted = np.rint(images[3].reshape(28, 28).astype(np.float64) * 255)
    assert np.abs(found[3][..., 0] - wanted).max() <= 1
    assert [str(i) for i in range(16)] == [t for t in texts(drawing) if t.isdigit()][:16]
    assert "images 0 to 15 of 20" in texts(drawing)


def test_weights_with_both_signs_are_in_two_colours():
    pixels = bitmaps(image_strip(mlp_params()["w0"][:1]))[0]
    assert (pixels[..., 0].astype(int) - pixels[..., 2]).max() > 50
    assert (pixels[..., 2].astype(int) - pixels[..., 0]).max() > 50


@pytest.mark.parametrize("is_last", [True, False])
def test_colours_are_those_of_the_channels(is_last):
    image = np.zeros((1, 10, 12, 3), np.uint8)
    image[0, 2, 3] = (255, 128, 7)
    array = image if is_last else image.transpose(0, 3, 1, 2)
    (found,) = bitmaps(image_strip(array))
    assert found.shape == (10, 12, 4)
    assert tuple(found[2, 3]) == (255, 128, 7, 255)
    assert tuple(found[0, 0]) == (0, 0, 0, 255)


def test_numbers_beyond_one_are_scaled_and_this_is_said():
    array = np.linspace(-2, 6, 8 * 8 * 3).reshape(1, 8, 8, 3)
    drawing = image_strip(array)
    assert "black is −2, full colour 6" in texts(drawing)
    (found,) = bitmaps(drawing)
    assert (found[0, 0, 0], found[-1, -1, 2]) == (0, 255)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("theme", ["course", "dark"])
def test_a_nan_in_an_image_is_pink_and_infinity_unlike_any_grey(channels, theme):
    array = np.linspace(0, 1, 2 * 64 * channels).reshape(2, 8, 8, channels)
    array[0, 1, 2, 0], array[0, 5, 5, 0] = np.nan, np.inf
    drawing = image_strip(array, theme)
    found = bitmaps(drawing)[0]
    assert tuple(found[1, 2]) == (*PINK, 255)
    assert max(found[5, 5, :3].astype(int)) - min(found[5, 5, :3].astype(int)) > 100
    assert tuple(found[5, 5]) != tuple(found[1, 2])
    assert {"1 NaN", "1 Inf"} <= set(texts(drawing))


def test_large_images_are_sampled_and_this_is_said():
    drawing = image_strip(np.random.default_rng(0).random((9, 300, 200)))
    assert all(max(one.shape[:2]) <= 200 for one in bitmaps(drawing))
    assert any(text.startswith("sampled: ") and "300 × 200" in text for text in texts(drawing))


def test_the_filters_of_a_convolution_are_one_grid_as_in_its_paper():
    weight = np.random.default_rng(0).standard_normal((64, 3, 7, 7)).astype("float32")
    drawing = image_strip(weight)
    tiles = bitmaps(drawing)
    assert [one.shape for one in tiles[:64]] == [(7, 7, 4)] * 64
    red = weight[5, 0]
    assert np.corrcoef(tiles[5][..., 0].ravel(), red.ravel())[0, 1] > 0.99
    assert 300 < drawing.height < 480


def test_the_scale_of_sampled_images_is_that_of_all_their_pixels():
    array = np.zeros((9, 300, 300))
    array[2, 1, 1], array[3, 1, 1], array[4, 1, 1] = -5, 7, np.nan
    found = texts(image_strip(array))
    assert {"−5", "7", "1 NaN"} <= set(found)


def test_later_images_are_asked_for_by_number():
    images = np.arange(20 * 64.0).reshape(20, 8, 8)
    assert "images 18 to 19 of 20" in texts(image_strip(images, first=18))
    for wrong in (-1, 20):
        with pytest.raises(ValueError, match=f"no image {wrong}: give 0 to 19"):
            image_strip(images, first=wrong)


@pytest.mark.parametrize("shape", [(3, 4), (2, 7, 7), (1, 128, 768), (0, 8, 8), (5,)])
def test_what_holds_no_images_is_told_what_does(shape):
    with pytest.raises(ValueError, match=r"holds no images: these are \(n, h, w\)"):
        image_strip(np.zeros(shape))


# --- which pictures fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        ((), (HEAT_MAP,)),
        ((1,), (HEAT_MAP,)),
        ((10,), (HEAT_MAP, HISTOGRAM)),
        ((128, 10), (HEAT_MAP, HISTOGRAM)),
        ((1, 784), (HEAT_MAP, HISTOGRAM, IMAGES)),
        ((12, 64, 64), (HEAT_MAP, HISTOGRAM, IMAGES)),
        ((2, 1, 28, 28), (IMAGES, HEAT_MAP, HISTOGRAM)),
        ((2, 28, 28, 3), (IMAGES, HEAT_MAP, HISTOGRAM)),
        ((2, 3, 28, 28), (IMAGES, HEAT_MAP, HISTOGRAM)),
        ((64, 64, 3, 3), (IMAGES, HEAT_MAP, HISTOGRAM)),
        ((64, 64, 1, 1), (HEAT_MAP, HISTOGRAM)),
        ((0, 4), ()),
    ],
)
def test_the_pictures_that_fit_are_known_by_the_shape(shape, kinds):
    assert fitting_charts(shape) == kinds


def test_every_picture_that_fits_can_be_drawn():
    for shape in [(), (1,), (5,), (1, 64), (3, 3), (2, 8, 8, 3), (2, 4, 9, 9), (2, 2, 2, 2, 2)]:
        array = np.ones(shape, np.float32)
        for kind in fitting_charts(shape):
            assert draw_chart(kind, array, summarise(array)).width == WIDTH


def test_only_the_histogram_needs_no_array():
    summary = summarise(np.arange(640.0).reshape(10, 64))
    assert draw_chart(HISTOGRAM, None, summary) == histogram(summary)
    for kind in (HEAT_MAP, IMAGES):
        with pytest.raises(ValueError, match=f"too large to keep: fetch it .* {kind!r}"):
            draw_chart(kind, None, summary)
    with pytest.raises(ValueError, match="no picture 'pie': choose one of heat map, histogram"):
        draw_chart("pie", None, summary)


@given(
    arrays.arrays(
        st.sampled_from([np.float16, np.float64, np.int8, np.uint64, np.bool_]),
        arrays.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=9),
    )
)
@example(np.array([[LARGEST, -LARGEST], [0.0, 1.0]]))
@example(np.array([LARGEST, LARGEST * 0.9]))
@example(np.full((2, 8, 8, 3), np.nan))
@example(np.array([-LARGEST, LARGEST] * 96).reshape(1, 8, 8, 3))
@example(np.array([5e-324, 0.0, -5e-324]))
@settings(max_examples=25)
def test_whatever_is_in_an_array_its_pictures_are_svg(array):
    summary = summarise(array)
    for kind in fitting_charts(array.shape):
        if kind != HISTOGRAM or summary.counts:
            drawing = draw_chart(kind, array, summary)
            root = ElementTree.fromstring(drawing.svg)
            assert "nan" not in re.sub(r"<image.*?>", "", drawing.svg, flags=re.DOTALL)
            assert (float(root.get("width")), float(root.get("height"))) == (
                pytest.approx(drawing.width),
                pytest.approx(drawing.height, abs=1e-2),
            )


# --- SVG ---------------------------------------------------------------------------------------


def test_the_same_value_has_the_same_bytes():
    array = np.random.default_rng(0).normal(size=(20, 64))
    for draw in (heat_map, histogram, image_strip):
        assert draw(array).svg == draw(array.copy()).svg


def test_settings_of_matplotlib_neither_show_nor_change():
    array = np.random.default_rng(0).normal(size=(20, 64))
    before = [draw(array).svg for draw in (heat_map, histogram, image_strip)]
    with mpl.rc_context({"axes.grid": True, "xtick.direction": "in", "svg.fonttype": "path"}):
        mine = dict(mpl.rcParams)
        assert [draw(array).svg for draw in (heat_map, histogram, image_strip)] == before
        assert dict(mpl.rcParams) == mine


@pytest.mark.parametrize("draw", [heat_map, histogram, image_strip])
def test_a_picture_leaves_the_page_that_it_stands_in_alone(draw):
    svg = draw(np.random.default_rng(0).normal(size=(20, 64))).svg
    assert svg.startswith("<svg ")
    assert "<style" not in svg
    assert "<metadata" not in svg
    assert not re.findall(r'id="(?:figure|axes|patch|text)_', svg)
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label")


@pytest.mark.parametrize("draw", [heat_map, histogram, image_strip])
def test_a_title_is_text_whatever_is_in_it(draw):
    title = "<b>$x$ & \x00 " + "long " * 20
    drawing = draw(np.random.default_rng(0).normal(size=(20, 64)), title=title)
    (written,) = [text for text in texts(drawing) if text.startswith("<b>$x$ & \ufffd long")]
    assert len(written) <= 44


@pytest.mark.parametrize("draw", [heat_map, histogram, image_strip])
@pytest.mark.parametrize(("theme", "paper"), [("course", "#ffffff"), ("dark", "#14171a")])
def test_the_paper_is_that_of_the_theme(draw, theme, paper):
    assert f"fill: {paper}" in draw(np.ones((20, 64)), theme).svg


@pytest.mark.parametrize("draw", [heat_map, histogram, image_strip])
def test_an_unknown_theme_is_named_with_those_there_are(draw):
    with pytest.raises(ValueError, match="no theme 'neon'; choose one of course, dark"):
        draw(np.ones((20, 64)), "neon")


def test_a_drawing_is_shown_by_notebooks_and_saved_whole(tmp_path):
    drawing = heat_map(np.ones((2, 2)))
    assert drawing.svg.endswith(drawing._repr_svg_()[-1000:])
    assert "bytes of SVG" in repr(drawing)
    path = drawing.save(tmp_path / "value.svg")
    assert path.read_text(encoding="utf-8") == drawing.svg
    assert [one.name for one in tmp_path.iterdir()] == ["value.svg"]
    with pytest.raises(ValueError, match=r"'.*value.gif': give a name ending in .svg"):
        drawing.save(tmp_path / "value.gif")
    with pytest.raises(ValueError, match="there is no directory"):
        drawing.save(tmp_path / "nowhere" / "value.svg")


def test_a_drawing_that_cannot_be_written_leaves_the_file_as_it_was(tmp_path):
    target = tmp_path / "value.svg"
    target.mkdir()
    with pytest.raises(ValueError, match=r"value\.svg' cannot be written"):
        heat_map(np.ones((2, 2))).save(target)
    assert [one.name for one in tmp_path.iterdir()] == ["value.svg"]


@pytest.mark.worker
def test_matplotlib_is_loaded_with_the_first_picture():
    code = "import irviz.view.value_charts, sys; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- words -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (3.0, "3"),
        (-0.125, "−0.125"),
        (1e-7, "1e−7"),
        (1.5e20, "1.5e20"),
        (65504.0, "65504"),
        (math.pi, "3.142"),
        (LARGEST, "1.798e308"),
        (math.nan, "NaN"),
        (-math.inf, "−Inf"),
    ],
)
def test_numbers_are_short_words(value, words):
    assert format_number(value) == words


def test_numbers_that_differ_have_words_that_differ():
    assert format_numbers([1.0, 1.0001, 1.0002]) == ["1", "1.0001", "1.0002"]
    assert format_numbers([0.1, 0.2]) == ["0.1", "0.2"]


def test_a_histogram_has_the_colours_of_the_page_it_is_in():
    drawn = histogram(np.arange(20.0), "page").svg
    colours = set(re.findall(r"(?:fill|stroke): ([^;\"]*)", drawn))
    assert "var(--irviz-picture-operator-line)" in colours
    assert all(one.startswith("var(") or one == "none" for one in colours)
