"""Parameters are read from .npz files and pickles, and nothing in these is run."""

import contextlib
import copyreg
import io
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irviz.loaders import file_limits
from irviz.loaders.param_files import ParamsError, load_params

PARAMS = {
    "w0": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b0": np.array([-1.5, 0.0, 2.0], dtype=np.float32),
}
PROTOCOLS = range(6)


def same(left, right):
    assert list(left) == list(right)
    for name in left:
        assert type(left[name]) is np.ndarray
        assert left[name].dtype == np.asarray(right[name]).dtype.newbyteorder("=")
        assert np.array_equal(left[name], right[name])
        assert left[name].flags.writeable
        assert left[name].flags.c_contiguous
        assert left[name].dtype.isnative


def refusal(path, content):
    path.write_bytes(content)
    with pytest.raises(ParamsError) as caught:
        load_params(path)
    message = str(caught.value)
    assert message.startswith(repr(str(path)))
    assert len(message) < 600 + len(str(path))
    return message.removeprefix(repr(str(path)))


# --- what is read ------------------------------------------------------------------------------


def test_an_npz_gives_its_arrays_by_name(tmp_path):
    """What numpy.savez wrote comes back, packed or not."""
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "params.npz", **PARAMS)
        same(load_params(tmp_path / "params.npz"), PARAMS)
        same(load_params(str(tmp_path / "params.npz")), PARAMS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickled_dict_gives_its_arrays_by_name(tmp_path, protocol):
    """Every protocol of pickle is read, as the course's own file of weights needs."""
    path = tmp_path / "fasionmnist_mlp_params.pkl"
    path.write_bytes(pickle.dumps(PARAMS, protocol))
    same(load_params(path), PARAMS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "dtype", ["?", "i1", "<i2", "i4", ">i8", "u1", "u2", "u8", "f2", ">f4", "f8"]
)
def test_every_type_of_number_is_read(tmp_path, protocol, dtype):
    """Types survive, in whatever byte order they were written."""
    params = {"x": np.arange(6).astype(dtype).reshape(2, 3)}
    path = tmp_path / "params"
    path.write_bytes(pickle.dumps(params, protocol))
    same(load_params(path), params)
    np.savez(tmp_path / "params.npz", **params)
    same(load_params(tmp_path / "params.npz"), params)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_layout_of_memory_is_read(tmp_path, protocol):
    """Transposed, permuted, strided, empty and zero-dimensional arrays keep their elements."""
    cube = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    params = {
        "fortran": cube[0].T,
        "permuted": cube.transpose(1, 0, 2),
        "strided": cube[:, ::2],
        "empty": np.zeros((0, 3), np.float32),
        "zero-dimensional": np.array(3.0, np.float32),
        "read-only": np.frombuffer(b"\x01\x02", np.uint8),
    }
    path = tmp_path / "params.pkl"
    path.write_bytes(pickle.dumps(params, protocol))
    same(load_params(path), params)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_numpy_scalar_is_an_array_without_axes(tmp_path, protocol):
    """A single number that NumPy wrote is a parameter as well."""
    path = tmp_path / "params.pkl"
    path.write_bytes(pickle.dumps({"scale": np.float32(0.5)}, protocol))
    same(load_params(path), {"scale": np.array(0.5, np.float32)})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_weights_tied_under_two_names_stay_one_array(tmp_path, protocol):
    """One array in the file is one array in memory."""
    path = tmp_path / "params.pkl"
    weight = np.ones((100, 100), np.float32)
    path.write_bytes(pickle.dumps({"embed": weight, "project": weight}, protocol))
    loaded = load_params(path)
    assert loaded["embed"] is loaded["project"]


ONE_TWO = struct.pack("<2f", 1, 2)


def numpy_1_pickle(shape=b"K\x02", dtype=b"X\x02\x00\x00\x00f4", data=ONE_TWO):
    """Write {"b0": array([1, 2], float32)} as NumPy 1.x does by protocol 2."""
    text = data.decode("latin1").encode()
    return (
        b"\x80\x02}q\x00X\x02\x00\x00\x00b0q\x01"
        b"cnumpy.core.multiarray\n_reconstruct\nq\x02cnumpy\nndarray\nq\x03K\x00\x85q\x04"
        b"c_codecs\nencode\nq\x05X\x01\x00\x00\x00bq\x06X\x06\x00\x00\x00latin1q\x07\x86q\x08Rq\x09"
        b"\x87q\x0aRq\x0b(K\x01" + shape + b"\x85q\x0c"
        b"cnumpy\ndtype\nq\x0d" + dtype + b"q\x0e\x89\x88\x87q\x0fRq\x10"
        b"(K\x03X\x01\x00\x00\x00<q\x11NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x12b\x89"
        b"h\x05X" + struct.pack("<I", len(text)) + text + b"q\x13h\x07\x86q\x14Rq\x15tq\x16bs."
    )


def test_a_pickle_of_numpy_1_is_read(tmp_path):
    """The module names of NumPy 1 mean the same as those of NumPy 2."""
    path = tmp_path / "params.pkl"
    path.write_bytes(numpy_1_pickle())
    same(load_params(path), {"b0": np.array([1, 2], np.float32)})


def test_a_protocol_5_pickle_of_numpy_1_is_read(tmp_path):
    """So do those of protocol 5, which NumPy 1 writes without the order of the axes."""
    content = pickle.dumps({"w0": np.ones((2, 2), np.float32)}, 5)
    old = content.replace(b"\x8c\x13numpy._core.numeric", b"\x8c\x12numpy.core.numeric")
    assert old != content
    frame = struct.unpack("<Q", old[3:11])[0] - 1
    path = tmp_path / "params.pkl"
    path.write_bytes(old[:3] + struct.pack("<Q", frame) + old[11:])
    same(load_params(path), {"w0": np.ones((2, 2), np.float32)})


def test_a_binary_pickle_of_python_2_is_read(tmp_path):
    """Python 2 kept bytes and names in one type, and both come out right."""
    path = tmp_path / "params.pkl"
    path.write_bytes(
        b"\x80\x02}q\x01U\x02b0q\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\n"
        b"q\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x02\x85cnumpy\ndtype\nq\x06U\x02f4K\x00K\x01\x87R"
        b"q\x07(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x08"
        + struct.pack("<2f", -1.5, 2)
        + b"tbs."
    )
    same(load_params(path), {"b0": np.array([-1.5, 2], np.float32)})


def test_the_content_decides_not_the_name(tmp_path):
    """A pickle named .npz and an .npz named .pkl are read as what they are."""
    (tmp_path / "a.npz").write_bytes(pickle.dumps(PARAMS))
    same(load_params(tmp_path / "a.npz"), PARAMS)
    np.savez(tmp_path / "b.npz", **PARAMS)
    (tmp_path / "b.npz").rename(tmp_path / "b.pkl")
    same(load_params(tmp_path / "b.pkl"), PARAMS)


def test_a_model_of_many_layers_is_read(tmp_path):
    """The bound on a pickle's length leaves room for hundreds of arrays, by any protocol."""
    params = {f"layer{i}.weight": np.full((2, 2), i, np.float32) for i in range(400)}
    for protocol in PROTOCOLS:
        path = tmp_path / "params.pkl"
        path.write_bytes(pickle.dumps(params, protocol))
        same(load_params(path), params)


# --- what is refused: code ---------------------------------------------------------------------


class Call:
    """Pickle as a call of any function with any arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def part(value):
    """Pickle a value as a piece of a larger pickle."""
    return pickle.dumps(value, 2)[2:-1]


def calling(module, name, *arguments):
    """Write a pickle that calls a global by name, which protocol 4 lets be dotted."""
    return (
        b"\x80\x04" + part(module) + part(name) + b"\x93(" + b"".join(map(part, arguments)) + b"tR."
    )


def hostile(target):
    """Give pickles that create a file or folder at ``target``, each by another road."""
    touch = f"open({target!r}, 'w').close()"
    command = f'{sys.executable} -S -c "{touch}"'
    evil = b"c__builtin__\nexec\n(" + part(touch) + b"tR"
    objects = np.empty(1, dtype=object)
    objects[0] = Call(eval, touch)
    return {
        "os.system": pickle.dumps(Call(os.system, command)),
        "os.system by protocol 0": b"cos\nsystem\n(V" + command.encode() + b"\ntR.",
        "subprocess": pickle.dumps(Call(subprocess.call, [sys.executable, "-S", "-c", touch])),
        "os.mkdir": pickle.dumps(Call(os.mkdir, target)),
        "pathlib": pickle.dumps(Call(Path.touch, Path(target))),
        "eval": pickle.dumps(Call(eval, touch)),
        "eval by protocol 0": b"c__builtin__\neval\n(V" + touch.encode() + b"\ntR.",
        "eval by protocol 5": pickle.dumps({**PARAMS, "x": Call(eval, touch)}, 5),
        "exec after good arrays": pickle.dumps({**PARAMS, "x": Call(exec, touch)}),
        "exec in a list": pickle.dumps({"x": [PARAMS["w0"], [Call(exec, touch)]]}),
        "exec in an object array": pickle.dumps({"x": objects}),
        "exec for a key": pickle.dumps({Call(eval, touch): PARAMS["w0"]}),
        "exec for a dtype": numpy_1_pickle(dtype=evil),
        "exec for a size": numpy_1_pickle(shape=evil),
        "exec after the dict": pickle.dumps(PARAMS, 2)[:-1] + evil + b"0.",
        "getattr walk": b"c__builtin__\ngetattr\n(c__builtin__\n__import__\n(S'os'\ntRS'mkdir'\ntR("
        + part(target)
        + b"tR.",
        "dotted name": calling("shutil", "os.mkdir", target),
        "dotted name from an array": calling("numpy", "ndarray.tofile", PARAMS["b0"], target),
        "numpy.save": calling("numpy", "save", target, PARAMS["b0"]),
        "numpy.savetxt": calling("numpy", "savetxt", target, PARAMS["b0"]),
        "numpy.memmap": calling("numpy", "memmap", target, "uint8", "w+", 0, (4,)),
        "numpy.testing": calling("numpy.testing", "runstring", touch, {}),
        "pickle in a pickle": calling("_pickle", "loads", pickle.dumps(Call(eval, touch))),
        "instruction INST": b"(" + part(target) + b"ios\nmkdir\n.",
        "instruction OBJ": b"(cos\nmkdir\n" + part(target) + b"o.",
        "instruction NEWOBJ": b"\x80\x02cnumpy\nmemmap\n("
        + b"".join(map(part, (target, "uint8", "w+", 0, (4,))))
        + b"t\x81.",
        "instruction NEWOBJ_EX": b"\x80\x04cnumpy\nmemmap\n("
        + b"".join(map(part, (target, "uint8", "w+", 0, (4,))))
        + b"t}\x92.",
    }


@pytest.mark.parametrize("road", hostile("x"))
def test_a_pickle_that_runs_code_is_refused_and_has_no_effect(tmp_path, road):
    """Whatever a pickle asks to be called, nothing happens but an error."""
    content = hostile(str(tmp_path / "created"))[road]
    modules = set(sys.modules)
    message = refusal(tmp_path / "params.pkl", content)
    assert [path.name for path in tmp_path.iterdir()] == ["params.pkl"]
    assert set(sys.modules) == modules
    assert "numpy.savez" in message
    if road.startswith("instruction"):
        assert repr(road.split()[1]) in message


@pytest.mark.worker
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("road", hostile("x"))
def test_the_hostile_pickles_are_hostile(tmp_path, road):
    """Each of them has an effect where nobody refuses it, so refusing it shows something."""
    # Some of what they make is no array, which is only found out after the effect.
    with contextlib.suppress(TypeError, ValueError):
        pickle.loads(hostile(str(tmp_path / "created"))[road])
    assert [path.stem for path in tmp_path.iterdir()] == ["created"]


@pytest.mark.parametrize(
    "name",
    [
        "numpy.load",
        "numpy.fromfile",
        "numpy.loadtxt",
        "numpy.frombuffer",
        "numpy.array",
        "numpy.core.multiarray.fromfile",
        "numpy._core.multiarray._reconstruct.__globals__",
        "numpy._core._methods.os",
        "numpy.f2py.run_main",
        "numpy.testing.rundocs",
        "numpy.testing.measure",
        "numpy.distutils.exec_command.exec_command",
        "numpy.ctypeslib.load_library",
        "numpy.ma.core._mareconstruct",
        "numpy.dtype.__class__",
        "numpy.ndarray.__reduce__",
        "_codecs.decode",
        "_codecs.encode.__self__",
        "codecs.encode",
        "builtins.getattr",
        "builtins.bytearray",
        "copyreg._reconstructor",
        "copyreg.add_extension",
        "functools.partial",
        "operator.attrgetter",
        "types.FunctionType",
        "irviz.loaders.param_files._Array",
        "no_such_module.name",
    ],
)
@pytest.mark.parametrize("dots", [1, 2])
def test_any_other_name_is_refused_and_said(tmp_path, name, dots):
    """Only the names that arrays are written with are known, wherever the dots fall."""
    module, _, attribute = name.rpartition(".")
    if dots == 2 and "." in module:
        module, _, attribute = name.partition(".")
    modules = set(sys.modules)
    message = refusal(tmp_path / "params.pkl", calling(module, attribute))
    assert f"names the global {name!r}" in message
    assert "nothing in it was run" in message
    assert set(sys.modules) == modules


@pytest.mark.parametrize("codec", ["rot13", "zip", "utf-8", "idna", "no such codec"])
def test_text_is_encoded_as_latin1_alone(tmp_path, codec):
    """Other codecs run code of their own, and arrays use none."""
    message = refusal(tmp_path / "params.pkl", calling("_codecs", "encode", "x", codec))
    assert repr(codec) in message


@pytest.mark.parametrize("instruction", [b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00"])
def test_extension_codes_are_refused_though_they_are_cached(tmp_path, instruction):
    """copyreg's cache hands out functions past every check, so its codes are never followed."""
    target = tmp_path / "created"
    code = instruction[1]
    call = instruction + b"(X" + struct.pack("<I", len(str(target))) + str(target).encode() + b"tR."
    copyreg.add_extension("os", "mkdir", code)
    try:
        pickle.loads(b"\x80\x02" + instruction + b".")
        message = refusal(tmp_path / "params.pkl", b"\x80\x02" + call)
        assert not target.exists()
        assert "'EXT" in message
        assert "nothing in it was run" in message
    finally:
        copyreg.remove_extension("os", "mkdir", code)


@pytest.mark.parametrize("content", [b"(Pos.system\n.", b"\x80\x02" + part("os.system") + b"Q."])
def test_persistent_ids_are_refused(tmp_path, content):
    """A reference to something outside the file leads nowhere."""
    message = refusal(tmp_path / "params.pkl", content)
    assert "has the persistent id 'os.system'" in message
    assert "nothing in it was run" in message


ADMITTED = [
    b"cnumpy\ndtype\n",
    b"cnumpy\nndarray\n",
    b"c_codecs\nencode\n",
    b"c__builtin__\nbytes\n",
    b"cnumpy.core.multiarray\n_reconstruct\n",
    b"cnumpy._core.multiarray\nscalar\n",
    b"cnumpy.core.numeric\n_frombuffer\n",
]
STATES = {
    "attributes": b"}X\x04\x00\x00\x00makeK\x01s",
    "slots": b"N}X\x05\x00\x00\x00_makeK\x01s\x86",
    "defaults": b"N}X\x0c\x00\x00\x00__defaults__)s\x86",
    "class": b"N}X\x09\x00\x00\x00__class__K\x01s\x86",
    "state of an array": b"(K\x01)NNNt",
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("admitted", ADMITTED)
def test_nothing_that_makes_arrays_can_be_changed(tmp_path, admitted, state):
    """BUILD on what a pickle may name is refused, and the next file is read as ever."""
    message = refusal(tmp_path / "params.pkl", b"\x80\x02" + admitted + STATES[state] + b"b.")
    assert "changes the state of a stand-in" in message or "damaged" in message
    (tmp_path / "params.pkl").write_bytes(pickle.dumps(PARAMS))
    same(load_params(tmp_path / "params.pkl"), PARAMS)


@pytest.mark.parametrize(
    "made",
    [
        b"c_codecs\nencode\nX\x01\x00\x00\x00xX\x06\x00\x00\x00latin1\x86R",
        b"cnumpy\ndtype\nX\x02\x00\x00\x00f4\x85R",
        b"cnumpy.core.multiarray\n_reconstruct\n)R",
    ],
)
@pytest.mark.parametrize("state", STATES)
def test_what_was_made_can_only_be_filled_as_numpy_does(tmp_path, made, state):
    """BUILD on an array, a dtype or bytes sets no attribute of the file's choice."""
    refusal(tmp_path / "params.pkl", b"\x80\x02}X\x01\x00\x00\x00x" + made + STATES[state] + b"bs.")


@pytest.mark.parametrize("admitted", ADMITTED)
@pytest.mark.parametrize(
    "arguments", [b")", b"N\x85", b"(K\x01}]NNNNNt", b"(h\x00h\x00h\x00h\x00t"]
)
def test_wrong_arguments_are_refused(tmp_path, admitted, arguments):
    """Calling what a pickle may name with anything odd makes no parameter."""
    content = b"\x80\x02}X\x01\x00\x00\x00x" + admitted + b"q\x00" + arguments + b"Rs."
    refusal(tmp_path / "params.pkl", content)


# --- what is refused: too much -----------------------------------------------------------------


def test_the_same_bytes_do_not_become_many_arrays(tmp_path):
    """Arrays together hold no more than the file does."""
    size = struct.pack("<I", 100_000)
    first = b"B" + size + bytes(100_000) + b"q\x00"
    entries = b"".join(
        b"X\x02\x00\x00\x00%02dcnumpy.core.numeric\n_frombuffer\n(" % number
        + (b"h\x00" if number else first)
        + b"cnumpy\ndtype\nX\x02\x00\x00\x00u1\x85RJ"
        + size
        + b"\x85X\x01\x00\x00\x00CtR"
        for number in range(50)
    )
    message = refusal(tmp_path / "params.pkl", b"\x80\x03}(" + entries + b"u.")
    assert "many arrays of the same bytes" in message


@pytest.mark.parametrize("size", [2**31, 2**62, 10**30])
def test_a_shape_larger_than_its_bytes_is_refused(tmp_path, size):
    """No memory is taken for what a file only claims to hold."""
    number = pickle.dumps(size, 2)[2:-1]
    assert "do not fit" in refusal(tmp_path / "params.pkl", numpy_1_pickle(shape=number))


@pytest.mark.parametrize(
    "shape", [(-1,), (-1, -2), (True, 2), (2.0,), (None,), ("2",), (), 2, [2], "2", None]
)
def test_a_shape_of_anything_but_sizes_is_refused(tmp_path, shape):
    """Negative numbers, truths, text and no tuple at all are no sizes of axes."""
    content = b"\x80\x02}X\x01\x00\x00\x00x" + b"cnumpy.core.numeric\n_frombuffer\n("
    content += pickle.dumps(ONE_TWO, 3)[2:-1] + b"cnumpy\ndtype\nX\x02\x00\x00\x00f4\x85R"
    content += part(shape) + b"X\x01\x00\x00\x00CtRs."
    assert "do not fit" in refusal(tmp_path / "params.pkl", content)


def test_an_index_beyond_what_was_noted_is_refused(tmp_path):
    """The unpickler's table of notes grows one by one, not to a number out of the file."""
    for index in (b"r\xff\xff\xff\x07", b"p9999999\n", b"q\xff"):
        assert "odder" in refusal(tmp_path / "params.pkl", b"\x80\x02}" + index + b".")


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04}r\xff\xff\xff\x7f.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x0f.",
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x0f}.",
        b"\x80\x04\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
    ],
)
def test_lengths_beyond_the_file_are_refused(tmp_path, content):
    """A length or an index is believed only as far as there are bytes for it."""
    refusal(tmp_path / "params.pkl", content)


def test_tuples_that_double_are_refused(tmp_path):
    """A key that would take for ever to hash is not hashed."""
    for trick in (b"", b"(u", b"(e", b"Nb", b"\x95" + bytes(8)):
        doubling = b"".join(b"h%ch%c\x86%bq%c" % (i, i, trick, i + 1) for i in range(60))
        content = b"\x80\x02})%bq\x00" % trick + doubling + b"Ns."
        assert "odder" in refusal(tmp_path / "params.pkl", content)


def test_tuples_nested_without_end_are_refused(tmp_path):
    """A key that would overflow the stack is not hashed, and the process lives."""
    content = b"\x80\x02})" + b"\x85" * 300_000 + b"Ns."
    assert "longer" in refusal(tmp_path / "params.pkl", content)


def test_an_npz_that_unpacks_without_end_is_refused(tmp_path):
    """An archive that declares far more than it could be is not unpacked."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w0.npy", bytes(300 << 20))
    message = refusal(tmp_path / "params.npz", content.getvalue())
    assert "would become 314,572,800 bytes, and a file of 305,871 bytes may become 268" in message


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_npz_packed_as_numpy_never_does_is_refused(tmp_path, method):
    """Unpacking takes ten times as long for each byte."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        archive.writestr("w.npy", npy(PARAMS["w0"]))
    message = refusal(tmp_path / "params.npz", content.getvalue())
    assert "has 'w.npy' packed in another way than deflated" in message


def test_an_npz_of_a_great_many_arrays_is_refused_before_they_are_listed(tmp_path, monkeypatch):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number in range(20_001):
            archive.writestr(f"{number}.npy", b"")
    monkeypatch.setattr(zipfile, "ZipFile", None)
    message = refusal(tmp_path / "params.npz", content.getvalue())
    assert "has more than 20,000 entries" in message


def test_an_npz_gets_its_share_of_the_free_memory_and_no_more(tmp_path, monkeypatch):
    path = tmp_path / "params.npz"
    np.savez(path, w0=np.zeros(1000))
    assert load_params(path)
    packed = tmp_path / "packed.npz"
    np.savez_compressed(packed, w0=np.zeros(1000))
    monkeypatch.setattr(file_limits, "free_memory", lambda: 20_000)
    assert "has 8,258 bytes, and at most 5,000 are read" in refusal(path, path.read_bytes())
    assert "would become 8,128 bytes" in refusal(packed, packed.read_bytes())
    monkeypatch.setattr(file_limits, "free_memory", lambda: 2**40)
    monkeypatch.setattr(file_limits, "MIN_UNPACKED", 1000)
    np.savez(path, w0=np.zeros(10**4))
    assert load_params(path), "what is not packed becomes as large as it is"
    np.savez_compressed(path, w0=np.zeros(10**4))
    assert "save them unpacked, with numpy.savez" in refusal(path, path.read_bytes())


def test_a_file_with_holes_that_is_larger_than_the_free_memory_is_not_read(tmp_path):
    path = tmp_path / "params.npz"
    with path.open("wb") as file:
        file.truncate(1 << 42)
    with pytest.raises(ParamsError, match=r"has 4,398,046,511,104 bytes, and at most"):
        load_params(path)


# --- what is refused: the wrong thing ----------------------------------------------------------


@pytest.mark.parametrize("tenth", range(10))
@pytest.mark.parametrize("kind", ["npz", *PROTOCOLS])
def test_a_file_cut_short_is_refused(tmp_path, kind, tenth):
    """A download that broke off is told from a file of parameters, wherever it broke."""
    if kind == "npz":
        np.savez_compressed(tmp_path / "whole.npz", **PARAMS)
        content = (tmp_path / "whole.npz").read_bytes()
    else:
        content = pickle.dumps(PARAMS, kind)
    refusal(tmp_path / "params", content[: len(content) * tenth // 10])


def npy(array, **options):
    content = io.BytesIO()
    np.save(content, array, **options)
    return content.getvalue()


def zipped(**members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "."), data)
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"w0 = 1, 2, 3\n", "begins with b'w0 = 1, '"),
        (npy(PARAMS["w0"]), "none of an .npz, a .safetensors and a pickle"),
        (b"\x89PNG\r\n\x1a\n....", "none of an .npz, a .safetensors and a pickle"),
        (b"(this is text)\n", "is damaged or cut short"),
        (b"class Model:\n    pass\n", "is damaged or cut short"),
        (zipped(archive__data__pkl=b"x"), "not an .npz: it holds 'archive.data.pkl'"),
        (zipped(w0__npy=b"not an array"), "holds 'w0', which is damaged"),
        (zipped(w0__npy=npy(PARAMS["w0"])[:-4]), "holds 'w0', which is damaged"),
        (zipped(w0__npy=npy(np.array([None, {}]), allow_pickle=True)), "allow_pickle=False"),
        (zipped(w0__npy=npy(np.array(["a"]))), "of dtype '<U1'"),
        (zipped(w0__npy=npy(np.zeros(2, "M8[s]"))), "of dtype 'datetime64[s]'"),
        (zipped(w0__npy=npy(np.zeros(2, [("a", "f4")]))), "of dtype"),
        (zipped(w0__npy=npy(np.zeros(2, "c8"))), "of dtype 'complex64'"),
        (pickle.dumps([1, 2]), "holds [1, 2], where a dict of arrays is needed"),
        (pickle.dumps(None), "holds None"),
        (pickle.dumps("w0"), "holds 'w0'"),
        (pickle.dumps(PARAMS["w0"]), "holds <array>"),
        (pickle.dumps(PARAMS["w0"], 2), "holds <array>"),
        (pickle.dumps({1: PARAMS["w0"]}), "has the key 1, where a str"),
        (pickle.dumps({b"w0": PARAMS["w0"]}), "has the key b'w0'"),
        (pickle.dumps({b"w0": PARAMS["w0"]}, 2), "has the key <bytes>"),
        (pickle.dumps({("w", 0): PARAMS["w0"]}), "has the key ('w', 0)"),
        (pickle.dumps({"w0": 0.5}), "holds 0.5 under 'w0'"),
        (pickle.dumps({"w0": [1.0]}), "holds [1.0] under 'w0'"),
        (pickle.dumps({"layer": PARAMS}), "under 'layer'"),
        (pickle.dumps({"w0": np.array([None, 1])}), "an array of Python objects"),
        (pickle.dumps({"w0": np.array([None, 1])}, 2), "an array of Python objects"),
        (pickle.dumps({"w0": np.array(["a"])}), "dtype 'U1'"),
        (pickle.dumps({"w0": np.zeros(1, "c8")}), "dtype 'c8'"),
        (pickle.dumps({"w0": np.zeros(1, "M8[s]")}), "dtype 'M8'"),
        (pickle.dumps({"w0": np.zeros(1, [("a", "f4")])}), "dtype 'V4'"),
        (pickle.dumps(OrderedDict(PARAMS)), "names the global 'collections.OrderedDict'"),
        (pickle.dumps({"w0": np.ma.zeros(2)}), "names the global 'numpy.ma"),
        (pickle.dumps({"w0": {1, 2}}), "'EMPTY_SET'"),
        (numpy_1_pickle(data=b"abc"), "do not fit"),
        (b"\x80\x02}X\x01\x00\x00\x00xcnumpy.core.multiarray\n_reconstruct\n)Rs.", "do not fit"),
    ],
)
def test_the_wrong_thing_is_refused_with_a_sentence(tmp_path, content, says):
    """The message says what was found, what would have been right and what to do."""
    message = refusal(tmp_path / "params.npz", content)
    assert says in message
    assert "numpy.savez" in message


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    """The path is in the message, to be checked by its reader."""
    path = tmp_path / "absent.npz"
    with pytest.raises(ParamsError, match=r"absent\.npz.*No such file") as caught:
        load_params(path)
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_directory_is_said_to_be_one(tmp_path):
    """A folder is no file of parameters."""
    with pytest.raises(ParamsError, match="is a directory"):
        load_params(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path):
    """What may never end is not opened."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ParamsError, match="device"):
        load_params(tmp_path / "pipe")


def test_a_file_of_another_user_is_said_to_be_closed(tmp_path):
    """Permission is told from absence."""
    path = tmp_path / "params.npz"
    np.savez(path, **PARAMS)
    path.chmod(0)
    tmp_path.chmod(0o700)
    is_root = os.geteuid() == 0
    if is_root:
        # Root may read everything, so become nobody for one call.
        os.seteuid(65534)
    try:
        with pytest.raises(ParamsError, match="Permission denied"):
            load_params(path)
    finally:
        if is_root:
            os.seteuid(0)


def test_an_impossible_path_is_refused():
    """A path that no file can have is an error of the same kind."""
    with pytest.raises(ParamsError, match="cannot be read"):
        load_params("a\0b")


@given(
    kind=st.sampled_from(["npz", *PROTOCOLS]),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=5),
)
def test_a_damaged_file_is_read_or_refused_and_never_worse(tmp_path_factory, kind, changes):
    """Bytes changed at random give arrays or a ParamsError, and no other exception."""
    content = io.BytesIO()
    if kind == "npz":
        np.savez_compressed(content, **PARAMS)
    else:
        pickle.dump(PARAMS, content, kind)
    data = bytearray(content.getvalue())
    for place, byte in changes:
        data[int(place * (len(data) - 1))] = byte
    path = tmp_path_factory.mktemp("damaged") / "params"
    path.write_bytes(data)
    try:
        loaded = load_params(path)
    except ParamsError:
        return
    assert all(type(array) is np.ndarray for array in loaded.values())
