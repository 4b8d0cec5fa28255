"""A session file is only data: a complete one is read back, and any other is one sentence."""

import contextlib
import hashlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import tvm
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st

from irviz.course.mlp import MyModuleStatic
from irviz.ir.module_functions import drawable_functions
from irviz.loaders import file_limits
from irviz.loaders.tvm_json import objects_to_json
from irviz.model.loop_nest import BlockAddress, LoopAddress
from irviz.runtime.run import CallInputs, RunConfig
from irviz.session.session_encoding import ObjectTable, decode, encode
from irviz.session.session_file import FORMAT, SessionFileError, load_session, save_session
from irviz.session.session_state import SessionState
from irviz.transforms.bind_params import BindParams
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.stage import Stage, StageTree

ARRAY = np.arange(12, dtype=np.float32).reshape(3, 4)
TENSOR = tvm.runtime.tensor(ARRAY)
STEP = ScheduleStep(
    "linear0", "compute_at", {"block": BlockAddress("Y"), "loop": LoopAddress("Z", 1)}
)


def state_of(*stages, count=8, function="main", params=None):
    """Return the state of a session of these stages, the second of which is current."""
    tree = StageTree(stages, stages[1 % len(stages)].id, count)
    return SessionState(tree, function, CallInputs(params=params or {}), RunConfig())


SESSION = state_of(
    Stage("0", MyModuleStatic),
    Stage(
        "1",
        MyModuleStatic,
        "</script><b>",
        "0",
        BindParams({"w": TENSOR}),
        constant_names={TENSOR: "w"},
    ),
    Stage("7", MyModuleStatic, "fails", "1", STEP, "it\nfails", stderr="said"),
    params={"w": ARRAY, "same": ARRAY.copy()},
)


@pytest.fixture
def path(tmp_path):
    return save_session(SESSION, tmp_path / "session.irviz")


def changed(path, index=None, entries=(), **options):
    """Write the file anew, with another index or other entries."""
    with zipfile.ZipFile(path) as there:
        content = {name: there.read(name) for name in there.namelist()}
    if index is not None:
        content["index.json"] = json.dumps(index(json.loads(content["index.json"]))).encode()
    content |= dict(entries)
    with zipfile.ZipFile(path, "w", **options) as written:
        for name, data in content.items():
            if data is not None:
                written.writestr(name, data)
    return path


def refusal(path):
    """Return the one sentence that a file is refused with; nothing on the disk has changed."""
    before = state(path)
    with pytest.raises(SessionFileError) as caught:
        load_session(path)
    assert state(path) == before
    message = str(caught.value)
    assert message.startswith(repr(os.fspath(path)))
    assert len(message.splitlines()) == 1
    assert "Traceback" not in message
    assert len(message) < 1000 + len(os.fspath(path))
    return message.removeprefix(repr(os.fspath(path)))


def state(path):
    """Tell of everything in the file's folder."""
    if "\0" in os.fspath(path):
        return None
    return {
        one: (one.lstat().st_mtime_ns, one.is_file() and one.stat().st_size)
        for one in sorted(path.parent.rglob("*"))
    }


# --- what comes back ---------------------------------------------------------------------------


@pytest.mark.worker
def test_what_was_saved_comes_back(path):
    loaded = load_session(path)
    assert (loaded.tree.current_id, loaded.tree.count, loaded.function) == ("1", 8, "main")
    for one, other in zip(loaded.tree.stages, SESSION.tree.stages, strict=True):
        tvm.ir.assert_structural_equal(one.module, other.module)
        assert one.module.same_as(loaded.tree.stages[0].module)
        for name in (
            "id",
            "label",
            "parent",
            "error",
            "stderr",
            "seconds",
            "enclosing_passes",
            "is_unchanged",
        ):
            assert getattr(one, name) == getattr(other, name)
    assert loaded.stage("7").transform == STEP
    bound = loaded.stage("1")
    ((tensor, name),) = bound.constant_names.items()
    assert name == "w"
    assert tensor.same_as(bound.transform.params["w"])
    assert np.array_equal(tensor.numpy(), ARRAY)
    np.testing.assert_equal(dict(loaded.call_inputs.params), {"w": ARRAY, "same": ARRAY})


def test_the_same_array_is_saved_once(path):
    with zipfile.ZipFile(path) as written:
        assert written.namelist() == ["index.json", "objects.json", "arrays/0.npy"]


@pytest.mark.worker
def test_every_construct_comes_back(construct, constructs, tmp_path):
    mod = constructs.construct(construct)
    names = [*drawable_functions(mod)]
    if not names:
        return
    path = tmp_path / "session.irviz"
    save_session(state_of(Stage("0", mod), function=names[0]), path)
    tvm.ir.assert_structural_equal(load_session(path).stage().module, mod, map_free_vars=True)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.builds(LoopAddress, st.text(), st.integers(0, 9))
    | st.builds(BlockAddress, st.text()),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@settings(max_examples=25)
@given(value=VALUES)
def test_every_plain_value_comes_back(value):
    table = ObjectTable()
    assert decode(json.loads(json.dumps(encode(value, table))), table) == value


# --- what a zip may do -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/tmp/evil",
        "arrays/../../evil",
        "arrays/0.npy\n",
        "arrays/00.npy",
        "arrays/",
        "é",
    ],
)
def test_an_entry_of_another_name_is_refused_and_written_nowhere(path, name):
    message = refusal(changed(path, entries={name: b"x"}))
    assert "which no session has" in message


@pytest.mark.worker
def test_a_bomb_is_not_unpacked(path, monkeypatch):
    zeros = np.zeros(1 << 20, "u1")
    changed(path, entries={"arrays/0.npy": _npy(zeros)}, compression=zipfile.ZIP_DEFLATED)
    assert load_session(path)  # as large as that it is none
    monkeypatch.setattr(file_limits, "MIN_UNPACKED", 1 << 10)
    monkeypatch.setattr(zipfile.ZipFile, "read", None)
    assert " would become 1,0" in refusal(path)


def test_an_entry_that_unpacks_to_more_than_it_declares_is_refused(path):
    changed(path, entries={"arrays/0.npy": _npy(np.zeros(1 << 20))}, compression=8)
    content = bytearray(path.read_bytes())
    # the size, in the archive's own list of what it holds
    at = content.rindex(b"arrays/0.npy") - 46 + 24
    content[at : at + 4] = (100).to_bytes(4, "little")
    path.write_bytes(content)
    assert "is damaged or cut short" in refusal(path)


def test_a_file_gets_its_share_of_the_free_memory_and_no_more(path, monkeypatch):
    monkeypatch.setattr(file_limits, "free_memory", lambda: 4000)
    assert "bytes, and at most 1,000 are read" in refusal(path)


def test_an_index_that_is_far_too_long_is_not_parsed(path):
    assert "its index has 16,777,217 bytes" in refusal(
        changed(path, entries={"index.json": b" " * ((1 << 24) + 1)})
    )


@pytest.mark.worker
def test_what_packs_well_is_saved_so_that_it_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(file_limits, "MIN_UNPACKED", 1 << 10)
    mod = MyModuleStatic.with_attr("zeros", "0" * (1 << 20))
    path = save_session(state_of(Stage("0", mod)), tmp_path / "session.irviz")
    tvm.ir.assert_structural_equal(load_session(path).stage().module, mod)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(path, method):
    assert "packed in another way than deflated" in refusal(changed(path, compression=method))


def test_a_file_of_a_great_many_entries_is_refused_before_they_are_listed(path, monkeypatch):
    changed(path, entries={f"arrays/{number}.npy": b"" for number in range(20_000)})
    monkeypatch.setattr(zipfile, "ZipFile", None)
    assert "has more than 20,000 entries" in refusal(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_that_is_there_twice_is_refused(path):
    with zipfile.ZipFile(path, "a") as written:
        written.writestr("objects.json", "{}")
    assert "it has 'objects.json' more than once" in refusal(path)


@pytest.mark.parametrize("name", ["objects.json", "arrays/0.npy"])
def test_an_entry_that_is_missing_is_named(path, name):
    message = refusal(changed(path, entries={name: None, "arrays/3.npy": _npy(ARRAY)}))
    assert name in message or "'arrays/1.npy'" in message


def _npy(array, **options):
    content = io.BytesIO()
    np.save(content, array, **options)
    return content.getvalue()


class _Telling:
    def __reduce__(self):
        return os.mkdir, ("ran",)


@pytest.mark.worker
def test_a_pickle_in_an_array_is_not_read(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hostile = _npy(np.array([_Telling()], object), allow_pickle=True)
    with pytest.raises(TypeError):  # it is hostile: the array is of what mkdir returned
        pickle.loads(pickle.dumps(_Telling())) + 1
    (tmp_path / "ran").rmdir()
    assert "an array cannot be read" in refusal(changed(path, entries={"arrays/0.npy": hostile}))
    assert not (tmp_path / "ran").exists()


# --- what an index may say ---------------------------------------------------------------------


def at(*keys, value):
    def change(index):
        inner = index
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        return index

    return change


def without(*keys):
    def change(index):
        inner = index
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]
        return index

    return change


@pytest.mark.worker
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (at("irviz session", value=FORMAT + 1), "was written by a newer irviz, "),
        (at("irviz session", value="1"), "is not a session: its index has no version"),
        (at("irviz session", value=0), "is not a session: its index has no version"),
        (at("irviz session", value=True), "is not a session: its index has no version"),
        (without("irviz session"), "is not a session: its index has no version"),
        (lambda _: [], "is not a session: its index has no version"),
        (at("stages", value=[]), "there is no stage '1' to show"),
        (at("stages", value=None), "its stages is None, not a list"),
        (at("stages", 0, value=3), "3 is not a stage"),
        (at("stages", 1, "id", value="0"), "there are two stages '0'"),
        (at("stages", 1, "id", value="../x"), "'../x' is not the id of a stage"),
        (at("stages", 1, "id", value=1), "its id is 1, not a string"),
        (at("stages", 1, "id", value="9" * 99), "is not the id of a stage"),
        (at("stages", 0, "parent", value="1"), "has only one of a parent and a transform"),
        (at("stages", 1, "parent", value="1"), "the parent of stage '1', '1', does not precede it"),
        (at("stages", 1, "parent", value="7"), "the parent of stage '1', '7', does not precede it"),
        (at("stages", 1, "parent", value=0), "has only one of a parent and a transform"),
        (at("stages", 1, "parent", value=None), "has only one of a parent and a transform"),
        (at("stages", 1, "made_by", value=None), "has only one of a parent and a transform"),
        (at("stages", 1, "made_by", value="x"), "the transform of stage '1' is 'x'"),
        (at("stages", 1, "made_by", value={"exec": 1}), "is not an encoded value"),
        (at("stages", 1, "made_by", value={"object": 0}), "the transform of stage '1' is"),
        (at("stages", 1, "module", value=1), "the module of stage '1' is a Tensor"),
        (at("stages", 1, "module", value=99), "there is no object 99"),
        (at("stages", 1, "module", value=-1), "there is no object -1"),
        (at("stages", 1, "module", value=True), "there is no object True"),
        (at("stages", 1, "constants", value=9), "has no names of constants 9"),
        (at("constants", 1, value=[[0, "w"]]), "the constant 'w' is a IRModule"),
        (at("constants", 1, value=[["w", 0]]), "is not the name of a constant"),
        (at("constants", 1, value={}), "is not the name of a constant"),
        (at("stages", 1, "label", value=None), "its label is None, not a string"),
        (at("stages", 1, "error", value=["x"]), "its error is ['x'], not a string"),
        (at("stages", 1, "seconds", value="1"), "has a wrong time or flag"),
        (at("stages", 1, "is_unchanged", value=1), "has a wrong time or flag"),
        (at("stages", 1, "seconds", value=float("inf")), "has a wrong time or flag"),
        (at("stages", 1, "seconds", value=float("nan")), "has a wrong time or flag"),
        (at("stages", 1, "seconds", value=-1), "has a wrong time or flag"),
        (at("stages", 1, "seconds", value=10**400), "has a wrong time or flag"),
        (at("stages", 1, "enclosing_passes", value="x"), "its enclosing_passes is 'x', not a list"),
        (at("stages", 1, "enclosing_passes", value=[1]), "has enclosing passes [1]"),
        (at("shown", value="5"), "there is no stage '5' to show"),
        (at("count", value=7), "7 is not a count of its stages"),
        (at("count", value=1e9), "is not a count of its stages"),
        (at("function", value=None), "its function is None, not a string"),
        (at("given", value=None), "None is not what stages are called with"),
        (at("given", value={"dict": [["a", 1], ["a", 2]]}), "is not a new key"),
        (at("given", value={"dict": 1}), "is not a list of values"),
        (at("given", value={"dict": [["a", {"array": 1}]]}), "there is no array 1"),
        (at("given", value={"dict": [["a", {"loop": ["Y", "0"]}]]}), "is not a loop of a block"),
        (at("given", value={"dict": [["a", {"loop": ["Y", True]}]]}), "is not a loop of a block"),
        (at("given", value={"dict": [["a", {"block": 0}]]}), "is not the name of a block"),
        (at("given", value={"dict": [["a", {"shape": [-1]}]]}), "is not a shape"),
        (at("given", value={"dict": [["a", {"small floats": ["x", 0]}]]}), "not an array of small"),
        (
            at("given", value={"dict": [["a", {"small floats": ["bfloat16", 0]}]]}),
            "not an array of s",
        ),
        (at("given", value={"list": [], "tuple": []}), "is not an encoded value"),
    ],
)
def test_an_index_that_does_not_hold_together_is_refused(path, change, words):
    assert words in refusal(changed(path, change))


def test_values_that_are_nested_without_end_are_refused(path):
    deep = b'{"irviz session": 1, "given": ' + b'{"list": [' * 100_000
    assert "its index is not JSON" in refusal(changed(path, entries={"index.json": deep}))


@pytest.mark.worker
def test_a_file_of_another_tvm_that_cannot_be_read_says_so(path):
    changed(path, at("tvm", value="0.99"))
    assert load_session(path)
    message = refusal(changed(path, entries={"objects.json": b"{}"}))
    assert message.split(";")[1] == f" it was written with TVM '0.99', this is {tvm.__version__}"


# --- what modules may say ----------------------------------------------------------------------

TEXT = objects_to_json([MyModuleStatic, TENSOR])


@pytest.mark.worker
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "its modules cannot be read: it is empty"),
        (b"\xff\xfe", "its modules are not text"),
        (b"[" * 100_000, "its modules cannot be read: it is not JSON"),
        (b"[]", "it is JSON without TVM's 'nodes'"),
        (b'{"nodes": [3], "root_index": 0}', "it has a node without a type"),
        (b'{"nodes": [{"type": ["x"]}], "root_index": 0}', "it has a node without a type"),
        (b'{"nodes": [], "root_index": 0}', "its modules cannot be read"),
        (TEXT[:-9].encode(), "its modules cannot be read: it is not JSON"),
        (TEXT.replace("ir.IRModule", "ir.NoSuch", 1).encode(), "its modules cannot be read"),
        (objects_to_json([MyModuleStatic])[:-1].encode() + b', "nodes": []}', "a key occurs twice"),
        (tvm.ir.save_json(MyModuleStatic).encode(), "it holds a IRModule, not a list of objects"),
        (tvm.ir.save_json(tvm_ffi.Array([])).encode(), "there is no object 1, only 0 of them"),
    ],
)
def test_modules_that_tvm_cannot_read_are_refused(path, text, words):
    assert words in refusal(changed(path, entries={"objects.json": text}))


@pytest.mark.worker
def test_modules_that_crash_tvm_do_so_elsewhere(path):
    content = json.loads(TEXT)
    arrays = [node for node in content["nodes"] if node["type"] == "ffi.Array" and node["data"]]
    arrays[0]["data"][-1] = content["nodes"].index(arrays[0])
    message = refusal(changed(path, entries={"objects.json": json.dumps(content)}))
    assert "it ended the process that tried it (SIGSEGV)" in message
    assert load_session(save_session(SESSION, path))  # and the worker is there again


@pytest.mark.worker
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("ffi.Module", ""),
        ("ffi.Function", {}),
        ("ffi.OpaquePyObject", {}),
        ("ir.EnvFunc", "runtime.disco.SocketSession"),
        ("runtime.disco.ProcessSession", {}),
        ("s_tir.meta_schedule.JSONDatabase", {}),
        ("s_tir.meta_schedule.PyRunner", {}),
        ("transform.ModulePass", {}),
        ("tirx.PrimFuncPass", {}),
        ("relax.vm.Closure", {}),
        ("relax.BlockBuilder", {}),
        ("testing.TestCxxClassBase", {}),
    ],
)
def test_what_is_no_part_of_a_module_is_not_made(path, kind, data):
    """TVM's reader would make compiled code, functions and parts of its runtime as well."""
    content = json.loads(TEXT)
    content["nodes"].append({"type": kind, "data": data})
    message = refusal(changed(path, entries={"objects.json": json.dumps(content)}))
    assert f"its modules cannot be read: it names {kind!r}, which no module contains" in message


# --- files that are none -----------------------------------------------------------------------


@pytest.mark.parametrize("tenth", range(10))
def test_a_file_that_is_cut_short_is_refused_wherever_that_was(path, tenth):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * tenth // 10])
    assert ("it is empty" if tenth == 0 else "is damaged or cut short") in refusal(path)


def test_what_is_no_session_says_what_it_is(tmp_path):
    path = tmp_path / "x.irviz"
    for content, words in [
        (b"", "it is empty"),
        (b"hello\n", r"it begins with b'hello\n'"),
        (b"\x80\x04\x95", r"it begins with b'\x80\x04\x95'"),
        (b"\xff\xfe\xfa", "it begins with"),
        (b"PK\x03\x04", "is damaged or cut short: File is not a zip file"),
        (bytes(range(256)) * 99, "it begins with"),
        (b"a" * 100_000_000, "it begins with b'aaaaaaaa'"),
    ]:
        path.write_bytes(content)
        message = refusal(path)
        assert words in message
        if "begins" in words:
            assert message.endswith("where a file that Session.save wrote was expected")
    np.savez(tmp_path / "x.npz", w=ARRAY)
    assert "it is a zip archive without 'index.json'" in refusal(tmp_path / "x.npz")


def test_what_is_no_file_says_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "is a device or a pipe" in refusal(tmp_path / "pipe")
    assert "is a directory: give the path of a file" in refusal(tmp_path)
    assert "cannot be read (No such file or directory)" in refusal(tmp_path / "none")
    with pytest.raises(SessionFileError, match=r"is damaged|cannot be read"):
        load_session("a\0b")


def test_a_file_of_another_user_is_said_to_be_closed(path):
    path.chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)  # root may read everything, so become nobody for one call
    try:
        with pytest.raises(SessionFileError, match=r"cannot be read \(Permission denied\)"):
            load_session(path)
    finally:
        if is_root:
            os.seteuid(0)


CHANGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4)


@pytest.mark.worker
@settings(max_examples=40)
@given(changes=CHANGES)
def test_a_damaged_file_is_read_or_refused_and_never_worse(changes, tmp_path_factory):
    path = save_session(SESSION, tmp_path_factory.mktemp("damaged") / "session.irviz")
    content = bytearray(path.read_bytes())
    for place, byte in changes:
        content[int(place * (len(content) - 1))] = byte
    path.write_bytes(content)
    with contextlib.suppress(SessionFileError):
        assert load_session(path).tree.stages


def test_saving_writes_one_file_and_nothing_beside_it(path):
    before = hashlib.sha256(path.read_bytes()).digest()
    save_session(SESSION, path)
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert list(path.parent.iterdir()) == [path]
