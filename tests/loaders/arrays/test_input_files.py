"""Inputs come from arrays, an image or a folder of images, and nothing in a file is run."""

import io
import os
import pickle
import struct
import zipfile
import zlib
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from irviz.course.digits import digits
from irviz.course.mlp import MyModuleStatic
from irviz.loaders import input_files
from irviz.loaders.file_limits import read_in_worker
from irviz.loaders.input_files import InputFileError, InputTensor, read_inputs
from irviz.runtime.call_inputs import plan_inputs

pytestmark = pytest.mark.worker
ROW = {"x": InputTensor((1, 784), "float32")}


def read(path, shape=None, dtype="float32"):
    return read_inputs(path, {"x": InputTensor(shape, dtype)})["x"]


def save(path, array, **options):
    Image.fromarray(np.asarray(array, "uint8")).save(path, **options)
    return path


def refusal(path, wanted=ROW):
    with pytest.raises(InputFileError) as caught:
        read_inputs(path, wanted)
    words = str(caught.value)
    assert words.startswith(repr(str(path)))
    assert "\n" not in words
    return words


# --- arrays ------------------------------------------------------------------------------------


def test_an_npy_is_the_only_input_that_is_wanted(tmp_path):
    array = np.arange(784, dtype="float32").reshape(1, 784)
    np.save(tmp_path / "x.npy", array)
    found = read_inputs(tmp_path / "x.npy", ROW)
    assert list(found) == ["x"]
    assert found["x"].tobytes() == array.tobytes()


def test_what_a_file_is_its_first_bytes_say(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1, 784), "float32"))
    (tmp_path / "x.npy").rename(tmp_path / "x.png")
    assert read_inputs(str(tmp_path / "x.png"), ROW)["x"].shape == (1, 784)


@pytest.mark.parametrize("layout", ["big endian", "columns"])
def test_arrays_come_in_native_order_with_the_same_numbers(tmp_path, layout):
    array = np.arange(6, dtype="float32").reshape(2, 3)
    np.save(
        tmp_path / "x.npy", array.astype(">f4") if layout[0] == "b" else np.asfortranarray(array)
    )
    found = read(tmp_path / "x.npy")
    assert found.dtype.isnative
    assert found.flags.c_contiguous
    assert found.tolist() == array.tolist()


def test_an_npz_has_arrays_by_name(tmp_path):
    np.savez(tmp_path / "all.npz", y=np.zeros(2), x=np.ones(3))
    found = read_inputs(tmp_path / "all.npz", {"x": InputTensor(), "y": InputTensor()})
    assert {name: array.shape for name, array in found.items()} == {"x": (3,), "y": (2,)}


def test_the_only_array_of_an_npz_needs_no_name(tmp_path):
    np.savez(tmp_path / "one.npz", np.ones((1, 784), "float32"))
    assert list(read_inputs(tmp_path / "one.npz", ROW)) == ["x"]


def test_names_that_do_not_fit_are_told(tmp_path):
    np.savez(tmp_path / "all.npz", a=np.zeros(2), b=np.ones(3))
    assert "holds 'a', 'b', and the inputs are 'x'" in refusal(tmp_path / "all.npz")
    both = {"x": InputTensor(), "y": InputTensor()}
    np.save(tmp_path / "x.npy", np.ones(3))
    assert "holds one array, and the inputs are 'x', 'y'" in refusal(tmp_path / "x.npy", both)
    save(tmp_path / "x.png", np.zeros((4, 4)))
    assert "holds an image, and the inputs are 'x', 'y'" in refusal(tmp_path / "x.png", both)
    assert "the inputs are none" in refusal(tmp_path / "x.png", {})


# --- images ------------------------------------------------------------------------------------


def test_images_of_digits_are_the_digits(tmp_path):
    images = digits().images[:12]
    for number, image in enumerate(images):
        save(tmp_path / f"{number:02}.png", np.rint(image.reshape(28, 28) * 255))
    found = read_inputs(tmp_path, ROW)
    assert found["x"].shape == (12, 1, 784)
    assert found["x"].dtype == "float32"
    assert (found["x"][:, 0] == images).all()
    weights = {
        name: np.zeros(shape, "float32")
        for name, shape in (("w0", (128, 784)), ("b0", 128), ("w1", (10, 128)), ("b1", 10))
    }
    cases = plan_inputs(MyModuleStatic["main"], found, weights).argument_lists()
    assert [case[0].shape for case in cases] == [(1, 784)] * 12


RED_AND_BLUE = np.array([[[255, 0, 0], [0, 0, 255]]] * 3, "uint8")  # 3 high, 2 wide


@pytest.mark.parametrize(
    ("shape", "case"),
    [
        ((1, 3, 3, 2), RED_AND_BLUE.transpose(2, 0, 1)[None]),
        ((3, 3, 2), RED_AND_BLUE.transpose(2, 0, 1)),
        ((1, 3, 2, 3), RED_AND_BLUE.transpose(2, 0, 1)[None].repeat(1, 0)),
        ((None, 3, None, None), RED_AND_BLUE.transpose(2, 0, 1)[None]),
        ((None, None, None, 3), RED_AND_BLUE[None]),
        ((None, None, 3), RED_AND_BLUE),
    ],
)
def test_colours_are_first_or_last_as_the_shape_says(tmp_path, shape, case):
    save(tmp_path / "a.png", RED_AND_BLUE)
    found = read(tmp_path / "a.png", shape, "uint8")
    if shape == (1, 3, 2, 3):  # colours are first where both could be; so it is resized
        assert found.shape == (1, 1, 3, 2, 3)
    else:
        assert found[0].tolist() == case.tolist()


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((1, 784), (1, 784)),
        ((784,), (784,)),
        ((1, 3072), (1, 3072)),
        ((28, 28), (28, 28)),
        ((1, 28, 28), (1, 28, 28)),
        ((None, 28, 28), (1, 28, 28)),
        ((28, 20, 1), (28, 20, 1)),
        ((1, 1, 28, 20), (1, 1, 28, 20)),
        ((1, 28, 20, 4), (1, 28, 20, 4)),
        ((1, None), (1, 35)),
        ((None, None), (1, 35)),
        ((5, None), (5, 7)),
        ((None, 1, None, None), (1, 1, 5, 7)),
    ],
)
@pytest.mark.parametrize("kind", ["grey", "colours", "palette", "see-through", "bits"])
def test_any_image_is_made_to_fit(tmp_path, shape, size, kind):
    mode = {"grey": "L", "colours": "RGB", "palette": "P", "see-through": "RGBA", "bits": "1"}[kind]
    Image.new(mode, (7, 5), 1).save(tmp_path / "a.png")
    found = read(tmp_path / "a.png", shape)
    assert found.shape == (1, *size)
    assert found.dtype == "float32"
    assert 0 <= found.min() <= found.max() <= 1


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("float32", [0, 128 / 255, 1]),
        ("float64", [0, 128 / 255, 1]),
        ("float16", [0, 128 / 255, 1]),
        (None, [0, 128 / 255, 1]),
        ("uint8", [0, 128, 255]),
        ("int32", [0, 128, 255]),
    ],
)
def test_floats_go_to_one_and_integers_to_255(tmp_path, dtype, values):
    save(tmp_path / "a.png", [[0, 128, 255]])
    found = read(tmp_path / "a.png", (None, None, None, 1), dtype)
    assert found.dtype == (dtype or "float32")
    assert found.reshape(-1).tolist() == pytest.approx(values, abs=1e-3)


def test_sixteen_bits_of_grey_are_scaled_and_not_cut_off(tmp_path):
    Image.fromarray(np.array([[0, 32768, 65535]], "uint16")).save(tmp_path / "a.png")
    found = read(tmp_path / "a.png", (1, None), "uint8")
    assert found.tolist() == [[[0, 128, 255]]]


def test_what_is_seen_through_is_put_on_white(tmp_path):
    Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(tmp_path / "a.png")
    assert (read(tmp_path / "a.png", (1, 4)) == 1).all()


def test_a_photograph_that_was_turned_is_upright(tmp_path):
    image = Image.fromarray(np.array([[0, 0, 255]] * 2, "uint8"))
    turned = Image.Exif()
    turned[0x0112] = 6  # to be turned by 90 degrees
    image.save(tmp_path / "a.png", exif=turned)
    assert read(tmp_path / "a.png", (None, 1, None, None)).shape == (1, 1, 1, 3, 2)


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "gif", "webp", "tiff", "ppm"])
def test_the_usual_formats_are_read(tmp_path, suffix):
    Image.new("RGB", (8, 8), "white").save(tmp_path / f"a.{suffix}")
    assert read(tmp_path / f"a.{suffix}", (1, 64)).min() > 0.99


def test_a_folder_is_read_in_the_order_of_names_and_the_rest_is_left(tmp_path):
    for name, level in (("c.PNG", 3), ("a.jpeg", 1), ("b.bmp", 2), (".hidden.png", 9)):
        Image.new("L", (2, 2), level * 20).save(tmp_path / name, name.rsplit(".", 1)[1].upper())
    (tmp_path / "labels.txt").write_text("1 2 3")
    (tmp_path / "more.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    found = read(tmp_path, (1, 4), "uint8")
    assert found[:, 0, 0].tolist() == pytest.approx([20, 40, 60], abs=1)


def test_a_link_out_of_a_folder_of_images_is_not_followed(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    Image.new("L", (2, 2), 20).save(folder / "a.png")
    (folder / "b.png").symlink_to(folder / "a.png")
    assert len(read(folder, (1, 4))) == 2, "a link inside the folder is read"
    Image.new("L", (2, 2), 40).save(tmp_path / "private.png")
    (folder / "b.png").unlink()
    (folder / "b.png").symlink_to(tmp_path / "private.png")
    assert "holds 'b.png', which is a link to a file outside of it" in refusal(folder)


def test_images_are_put_together_where_several_are_taken_at_once(tmp_path):
    for number in range(4):
        Image.new("L", (2, 2), number).save(tmp_path / f"{number}.png")
    assert read(tmp_path, (2, 1, 2, 2), "uint8")[:, :, 0, 0, 0].tolist() == [[0, 1], [2, 3]]
    words = refusal(tmp_path, {"x": InputTensor((3, 1, 2, 2))})
    assert "holds 4 images, and 'x' takes 3 at once" in words


def test_images_of_different_sizes_need_a_size_to_fit(tmp_path):
    for size in (2, 3):
        Image.new("L", (size, size)).save(tmp_path / f"{size}.png")
    assert read(tmp_path, (1, 1, 5, 5)).shape == (2, 1, 1, 5, 5)
    words = refusal(tmp_path, {"x": InputTensor((1, 1, None, None))})
    assert "images of different sizes" in words


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (InputTensor(None), "'x' takes any shape, which is not the shape"),
        (InputTensor(()), "'x' takes (), which is not the shape"),
        (InputTensor((1, 10)), "'x' takes (1, 10), which is not the shape"),
        (InputTensor((None, 5, 5, 5)), "'x' takes (?, 5, 5, 5), which is not the shape"),
        (InputTensor((1, 1, 0, 4)), "'x' takes (1, 1, 0, 4), which is not the shape"),
        (
            InputTensor((1, 1, 1, 2, 2)),
            "takes (1, 1, 1, 2, 2), which is not the shape of an image: give arrays as .npy",
        ),
        (InputTensor((1, 1, 1 << 20, 1 << 20)), "which are more than 67,108,864 pixels"),
        (InputTensor((1, 4), "int8"), "'x' takes int8, which cannot hold 0 to 255"),
        (InputTensor((1, 4), "bool"), "'x' takes bool, which cannot hold 0 to 255"),
        (InputTensor((1, 4), "float4_e2m1fnx9"), "'x' takes float4_e2m1fnx9, which cannot"),
    ],
)
def test_an_input_that_no_image_fits_says_so(tmp_path, wanted, words):
    save(tmp_path / "a.png", np.zeros((2, 2)))
    assert words in refusal(tmp_path / "a.png", {"x": wanted})


# --- refused -----------------------------------------------------------------------------------


def test_a_path_that_leads_nowhere_is_refused(tmp_path):
    assert "(No such file or directory)" in refusal(tmp_path / "none.png")
    assert "null" in refusal("a\0b.png")
    assert "is a folder without images" in refusal(tmp_path)
    (tmp_path / "empty.png").touch()
    assert "is empty" in refusal(tmp_path / "empty.png")
    os.mkfifo(tmp_path / "pipe.png")
    assert "is a device or a pipe" in refusal(tmp_path / "pipe.png")


def test_a_file_of_another_user_is_said_to_be_closed(tmp_path):
    path = save(tmp_path / "a.png", np.zeros((2, 2)))
    path.chmod(0)
    tmp_path.chmod(0o700)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)  # root may read everything, so become nobody for one call
    try:
        assert "Permission denied" in refusal(path)
    finally:
        if is_root:
            os.seteuid(0)


def npy(array):
    content = io.BytesIO()
    np.save(content, array, allow_pickle=True)
    return content.getvalue()


def zipped(**members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return content.getvalue()


def png(width, height):
    """Return a PNG that claims a size, with next to nothing in it."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(bytes(64)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + body + chunk(b"IEND", b"")


class Trap:
    """Leaves a file behind when it is unpickled."""

    path = ""

    def __reduce__(self):
        return open, (self.path, "w")


CLAIM = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,), }"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            b"not an image at all",
            "begins with b'not an i' and is neither an array nor a whole image",
        ),
        (
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
            "neither an array nor a whole image",
        ),
        (b"\x89PNG\r\n\x1a\n", "neither an array nor a whole image"),
        (png(8, 8)[:-13], "is an image that is damaged or cut short"),
        (png(1 << 13, 1 << 14), "has 8192 by 16384 pixels, and at most 67,108,864 are read"),
        (png(1 << 30, 1 << 30), "pixels, and at most 67,108,864 are read"),
        (npy(np.array([None, {}])), "is damaged or not an array of numbers (Object arrays"),
        (npy(np.array(["a"])), "of dtype '<U1'"),
        (npy(np.zeros(9, "c8")), "of dtype 'complex64'"),
        (npy(np.zeros(9, "f4"))[:-3], "is damaged or not an array"),
        (b"\x93NUMPY\x01\x00\x02", "is damaged or not an array"),
        (
            b"\x93NUMPY\x01\x00" + struct.pack("<H", len(CLAIM)) + CLAIM,
            "is damaged or not an array",
        ),
        (zipped(x=npy(np.array([None]))), "holds 'x', which is damaged or not an array of numbers"),
        (zipped(x=npy(np.zeros(9)))[:-40], "damaged or cut short"),
        (zipped(x=b"nothing"), "holds 'x', which is damaged"),
    ],
)
@pytest.mark.parametrize("name", ["a.png", "a.npz"])
def test_broken_and_hostile_files_are_refused_in_a_sentence(tmp_path, content, words, name):
    (tmp_path / name).write_bytes(content)
    assert words in refusal(tmp_path / name)


def test_a_pickle_is_no_input_and_nothing_in_it_runs(tmp_path):
    Trap.path = str(tmp_path / "sprung")
    for number, content in enumerate((pickle.dumps(Trap()), zipped(x=npy(np.array([Trap()]))))):
        (tmp_path / f"{number}.npy").write_bytes(content)
        refusal(tmp_path / f"{number}.npy")
    (tmp_path / "a.npy").write_bytes(npy(np.array([Trap()])))
    refusal(tmp_path / "a.npy")
    assert not (tmp_path / "sprung").exists()


def test_a_broken_image_in_a_folder_is_named(tmp_path):
    save(tmp_path / "a.png", np.random.default_rng(0).integers(0, 256, (40, 40)))
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes()[:-500])
    assert "holds 'b.png', which is an image that is damaged" in refusal(tmp_path)
    (tmp_path / "a.png").unlink()
    assert "holds 'b.png', which is an image that is damaged" in refusal(tmp_path)


def test_what_is_too_much_is_not_read(tmp_path, monkeypatch):
    save(tmp_path / "a.png", np.zeros((4, 4)))
    save(tmp_path / "b.png", np.zeros((4, 4)))
    monkeypatch.setattr(input_files, "MAX_BYTES", 5000)
    assert "would be 6,272 bytes of inputs, and at most 5,000" in refusal(tmp_path)
    monkeypatch.setattr(input_files, "MAX_BYTES", 100)
    assert "has images of" in refusal(tmp_path)
    np.save(tmp_path / "a.npy", np.zeros(90))
    assert "bytes, and at most 100 are read" in refusal(tmp_path / "a.npy")


def test_a_small_image_that_takes_hours_to_decode_is_stopped(tmp_path, monkeypatch):
    """A JPEG may repeat a scan of its pixels, in some hundred bytes, any number of times."""
    path = save(tmp_path / "a.jpg", np.zeros((4096, 4096)), progressive=True)
    content = path.read_bytes()
    path.write_bytes(
        content[:-2] + content[content.rindex(b"\xff\xda") : -2] * 20_000 + b"\xff\xd9"
    )
    monkeypatch.setattr(input_files, "read_in_worker", partial(read_in_worker, seconds=0.5))
    assert "takes longer than 0.5 s to open and was stopped" in refusal(path)


@given(
    kind=st.sampled_from(["PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM", "npy", "npz"]),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=5),
    cut=st.floats(0.2, 1),
)
def test_a_damaged_file_is_read_or_refused_and_never_worse(tmp_path_factory, kind, changes, cut):
    file, array = io.BytesIO(), np.arange(64, dtype="uint8").reshape(8, 8)
    if kind in ("npy", "npz"):
        {"npy": np.save, "npz": np.savez_compressed}[kind](file, array)
    else:
        Image.fromarray(array).save(file, kind)
    data = bytearray(file.getvalue())
    for place, byte in changes:
        data[int(place * (len(data) - 1))] = byte
    path = tmp_path_factory.mktemp("damaged") / "input"
    path.write_bytes(data[: int(len(data) * cut)])
    try:
        found = read_inputs(path, {"x": InputTensor((1, 64), "float32")})
    except InputFileError:
        return
    assert list(found) == ["x"]
