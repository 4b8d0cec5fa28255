"""Arrays are read from .safetensors files as they were written; any other file is refused."""

import json
import os
import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import save

from irviz.loaders import param_files as safetensors_file
from irviz.loaders.param_files import ParamsError, load_params

PARAMS = {
    "w0": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b0": np.array([-1.5, 0.0, 2.0], dtype=np.float32),
}


def written(path, header, data=b"", length=None):
    """Write a file with this header, and with this length before it."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    path.write_bytes(struct.pack("<Q", size) + text + data)
    return path


def entry(dtype="F32", shape=(2,), offsets=(0, 8), **rest):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **rest}


def refusal(path):
    """Return the sentence that a file is refused with; nothing on the disk has changed."""
    before = {one: one.stat().st_size for one in path.parent.iterdir()}
    with pytest.raises(ParamsError) as caught:
        load_params(path)
    assert {one: one.stat().st_size for one in path.parent.iterdir()} == before
    message = str(caught.value)
    assert message.startswith(repr(str(path)))
    assert len(message.splitlines()) == 1
    assert len(message) < 800 + len(str(path))
    return message.removeprefix(repr(str(path)))


# --- what is read ------------------------------------------------------------------------------


NAMES = ["?", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"]
DTYPES = st.sampled_from(NAMES)
# the package writes no file that it can read where there are metadata of no entries
METADATA = st.none() | st.dictionaries(st.text(max_size=4), st.text(), min_size=1, max_size=2)


@given(
    params=st.dictionaries(
        st.text(max_size=8).filter(lambda name: name != "__metadata__"),
        arrays.arrays(DTYPES, arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)),
        max_size=4,
    ),
    metadata=METADATA,
)
def test_arrays_come_back_as_they_were_written(params, metadata, tmp_path_factory):
    content = save(params, metadata)
    path = tmp_path_factory.mktemp("oracle") / "params.safetensors"
    path.write_bytes(content)
    loaded = load_params(path)
    assert loaded.keys() == params.keys()
    for name, array in loaded.items():
        assert array.dtype == params[name].dtype
        assert array.shape == params[name].shape
        assert array.tobytes() == params[name].tobytes()
        assert array.flags.writeable
        assert array.flags.c_contiguous


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats_have_the_dtypes_of_ml_dtypes(tmp_path, name):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="TVM brings it: pip install ml_dtypes")
    array = np.array([0.5, -2, 1.5], getattr(ml_dtypes, name))
    word = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}[name]
    header = {"x": entry(word, (3,), (0, array.nbytes))}
    loaded = load_params(written(tmp_path / "x.safetensors", header, array.tobytes()))
    assert loaded["x"].dtype == array.dtype
    assert np.array_equal(loaded["x"], array)
    assert loaded["x"].flags.writeable


def test_the_content_decides_and_the_name_only_where_that_is_open(tmp_path):
    (tmp_path / "x.npz").write_bytes(save(PARAMS))
    assert load_params(tmp_path / "x.npz").keys() == PARAMS.keys()
    np.savez(tmp_path / "y.npz", **PARAMS)
    (tmp_path / "y.npz").rename(tmp_path / "y.safetensors")
    assert load_params(tmp_path / "y.safetensors").keys() == PARAMS.keys()
    (tmp_path / "z.safetensors").write_bytes(b"nothing of the kind")
    assert "header too large" in refusal(tmp_path / "z.safetensors")


# --- what is refused ---------------------------------------------------------------------------

ONE_TWO = struct.pack("<2f", 1, 2)
ONE = json.dumps(entry())
TWICE = f'{{"x": {ONE}, "x": {ONE}}}'.encode()


@pytest.mark.parametrize(
    ("header", "data", "words"),
    [
        ({"x": entry()}, ONE_TWO[:-1], "file not fully covered"),
        ({"x": entry()}, ONE_TWO + b"x", "file not fully covered"),
        ({"x": entry(offsets=(8, 16))}, ONE_TWO * 2, "invalid offset for tensor `x`"),
        ({"x": entry(), "y": entry()}, ONE_TWO, "invalid offset for tensor"),
        ({"x": entry(), "y": entry(offsets=(4, 12))}, ONE_TWO * 2, "invalid offset for tensor"),
        ({"x": entry(offsets=(0, 4))}, ONE_TWO, "invalid shape, data type, or offset"),
        ({"x": entry(offsets=(8, 0))}, ONE_TWO, "invalid offset for tensor `x`"),
        ({"x": entry(offsets=(-8, 0))}, ONE_TWO, "integer `-8`, expected usize"),
        ({"x": entry(offsets=(0, 1 << 80))}, ONE_TWO, "expected usize"),
        ({"x": entry(offsets=(0.0, 8.0))}, ONE_TWO, "floating point `0.0`, expected usize"),
        ({"x": entry(offsets=(False, 8))}, ONE_TWO, "boolean `false`, expected usize"),
        ({"x": entry(shape=(-2,))}, ONE_TWO, "integer `-2`, expected usize"),
        ({"x": entry(shape=("2",))}, ONE_TWO, 'string "2", expected usize'),
        ({"x": entry(shape=(1 << 70,))}, ONE_TWO, "expected usize"),
        ({"x": entry(shape=(1 << 32, 1 << 32))}, ONE_TWO, "overflow computing buffer size"),
        ({"x": entry(shape=(0, 1 << 70), offsets=(0, 0))}, b"", "expected usize"),
        ({"x": entry(shape=(0,) * 99, offsets=(0, 0))}, b"", "maximum supported dimension"),
        ({"x": entry(more=1)}, ONE_TWO, "unknown field in 'x'"),
        ({"x": {"dtype": "F32"}}, ONE_TWO, "missing field `shape`"),
        ({"x": 3}, ONE_TWO, "invalid type: integer `3`"),
        ({"x": entry("C64", (1,))}, ONE_TWO, "'x' of dtype 'C64', where bool, int, uint or float"),
        ({"x": entry("O", (1,))}, ONE_TWO, "unknown variant `O`"),
        ({"x": entry(), "__metadata__": {"a": 1}}, ONE_TWO, "integer `1`, expected a string"),
        ({"x": entry(), "__metadata__": "a"}, ONE_TWO, 'string "a", expected a map'),
        (TWICE, ONE_TWO, "a key occurs twice"),
        (b'{"x": {"dtype": "F32", "dtype": "F32"}}', b"", "duplicate field `dtype`"),
        (b'{"x": ' + b"[" * 100_000, b"", "recursion limit exceeded"),
        (b"{nothing", b"", "invalid JSON in header"),
        (b'{"\xff": 1}', b"", "invalid UTF-8 in header"),
    ],
)
def test_a_wrong_header_is_refused_with_the_reason(tmp_path, header, data, words):
    message = refusal(written(tmp_path / "x.safetensors", header, data))
    assert words in message
    assert "safetensors.numpy.save_file" in message


@pytest.mark.parametrize("length", [1 << 30, 1 << 63, (1 << 64) - 1, 99])
def test_a_header_longer_than_the_file_is_refused(tmp_path, length):
    path = written(tmp_path / "x.safetensors", {"x": entry()}, ONE_TWO, length)
    assert re.search("header too large|invalid header length", refusal(path))


def test_a_header_of_a_great_many_arrays_is_refused_before_it_is_parsed(tmp_path, monkeypatch):
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    path = written(tmp_path / "x.safetensors", {f"{one}": empty for one in range(100_000)}, b"")
    monkeypatch.setattr(safetensors_file, "deserialize", None)
    assert "bytes, and at most 4,194,304 are read" in refusal(path)


@pytest.mark.parametrize("tenth", range(10))
def test_a_file_that_is_cut_short_is_refused_wherever_that_was(tmp_path, tenth):
    content = save(PARAMS)
    path = tmp_path / "x.safetensors"
    path.write_bytes(content[: len(content) * tenth // 10])
    assert refusal(path)


@given(changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=5))
def test_a_damaged_file_is_read_or_refused_and_never_worse(changes, tmp_path_factory):
    """Bytes changed at random give arrays of the file's own bytes, or a ParamsError."""
    content = bytearray(save(PARAMS))
    for place, byte in changes:
        content[int(place * (len(content) - 1))] = byte
    path = tmp_path_factory.mktemp("damaged") / "x.safetensors"
    path.write_bytes(content)
    try:
        loaded = load_params(path)
    except ParamsError:
        return
    assert all(array.tobytes() in content for array in loaded.values())


# --- bad files of every suffix -----------------------------------------------------------------

SUFFIXES = [".npz", ".safetensors", ".pkl"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"w0 = 1, 2, 3\n",
        b"\xff\xfew\x000\x00",
        b"\xc3\x28 not utf-8",
        bytes(range(256)) * 64,
        b"\0" * 4096,
        b"\x7fELF" + bytes(99),
        b'{"w0": [1, 2, 3]}',
        b"PK\x03\x04",
        b"\x80\x04",
        b"\x93NUMPY\x01\x00",
        struct.pack("<Q", 2) + b"{}x",
    ],
)
def test_a_bad_file_of_any_suffix_is_one_sentence(tmp_path, suffix, content):
    path = tmp_path / f"params{suffix}"
    path.write_bytes(content)
    assert refusal(path)


@pytest.fixture(scope="module")
def long_line(tmp_path_factory):
    path = tmp_path_factory.mktemp("long") / "line"
    path.write_bytes(b"a" * 100_000_000)
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_hundred_megabytes_of_one_line_are_one_sentence(tmp_path, long_line, suffix):
    path = tmp_path / f"params{suffix}"
    os.link(long_line, path)
    assert refusal(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_directory_and_a_missing_file_are_one_sentence(tmp_path, suffix):
    (tmp_path / f"folder{suffix}").mkdir()
    assert "is a directory" in refusal(tmp_path / f"folder{suffix}")
    assert "No such file" in refusal(tmp_path / f"none{suffix}")
