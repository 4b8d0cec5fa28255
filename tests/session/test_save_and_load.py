"""A session saves to one file and loads again: the same stages, made in the same ways."""

import os
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from tvm.relax.dpl import is_op, wildcard
from tvm_ffi import structural_equal

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES, MyModule, MyModuleHighLevel, MyModuleStatic
from irviz.course.mm_relu import MyModule as MmRelu
from irviz.errors import TransformError
from irviz.session.session import Session
from irviz.session.session_encoding import EncodingError, LabelOnly, describe, restore
from irviz.session.session_file import SessionFileError
from irviz.transforms.export_python import PythonScript, UnwritableError
from irviz.transforms.passes.catalog import register_pass
from irviz.transforms.passes.pass_transform import PassCall, named_pass
from irviz.transforms.passes.pattern_rewrite import Rewrite
from irviz.transforms.schedules.schedule_step import IndexMapText
from irviz.transforms.stage import Stage

pytestmark = pytest.mark.worker

PARAMS, DIGITS = mlp_params(), digits()


def session(mod=MyModuleStatic, **facts):
    return Session(
        mod,
        params=PARAMS,
        inputs=DIGITS.images[:5],
        labels=DIGITS.labels[:5],
        seed=3,
        **facts,
    )


def again(given, path, **options):
    """Return a session from the file that it was saved to, held against it."""
    assert given.save(path, **options) == path
    loaded = Session.load(path, trust=True)
    same(loaded, given)
    return loaded


def facts(stage):
    return (
        (stage.id, stage.parent, stage.label, stage.error, stage.stderr),
        (
            stage.seconds,
            stage.enclosing_passes,
            stage.is_unchanged,
            sorted(stage.constant_names.values()),
        ),
    )


def same(loaded, given):
    assert list(map(facts, loaded.stages)) == list(map(facts, given.stages))
    assert (loaded.current_id, loaded.function) == (given.current_id, given.function)
    assert loaded.tree.count == given.tree.count
    for one, other in zip(loaded.stages, given.stages, strict=True):
        # lowered functions speak of variables that nothing in them defines
        tvm.ir.assert_structural_equal(one.module, other.module, map_free_vars=True)
        if other.transform is not None:
            assert one.transform.label == other.transform.label
    assert list(shared(loaded)) == list(shared(given))


def shared(session):
    """Tell of each two stages that follow each other what they share, by the objects themselves."""
    for one, other in combinations(session.stages, 2):
        if other.parent == one.id or other.module.same_as(one.module):
            before = {gvar.name_hint: function for gvar, function in one.module.functions.items()}
            after = {gvar.name_hint: function for gvar, function in other.module.functions.items()}
            names = sorted(n for n in before.keys() & after if before[n].same_as(after[n]))
            yield one.id, other.id, other.module.same_as(one.module), names


@pytest.fixture
def path(tmp_path):
    return tmp_path / "work.irviz"


# --- what comes back ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_a_session_of_the_course_comes_back(name, path):
    given = session(MODULES[name])
    given = given.apply("LegalizeOps").bind().apply("FoldConstant").apply("FuseOps")
    loaded = again(given.checkout("2"), path)
    assert loaded.to_python("4") == given.to_python("4")


def test_branches_swaps_schedules_and_failures_come_back(path):
    @tvm.transform.module_pass(opt_level=0, name="Fails")
    def fails(*_):
        raise RuntimeError("it <b>fails</b>\nin two lines")

    given = session().bind().swap("relu0", "env.relu")
    given = given.checkout("1").schedule("linear0", _tiled).apply(fails)
    given = given.checkout("0").update_function("relu0", given.stage("0").module["relu0"])
    given = given.rename("1", "weights <i>in</i> \N{SNOWMAN}").checkout("1")
    loaded = again(given, path)
    failed = next(stage for stage in loaded.stages if stage.error)
    assert failed.error == "RuntimeError: it <b>fails</b>\nin two lines"
    assert failed.module.same_as(loaded.stage(failed.parent).module)
    leaves = {stage.id for stage in given.stages} - {stage.parent for stage in given.stages}
    for leaf in leaves:
        assert loaded.to_python(leaf) == given.to_python(leaf)


def _tiled(sch):
    i, _j, k = sch.get_loops("Y")
    sch.reorder(i, k, _j)
    sch.split(k, factors=[None, 8])
    sch.transform_layout("Y", ("write", 0), lambda i, j: (j, i), pad_value=0.0)


def test_a_recording_comes_back(path):
    with irviz.record() as recording:
        tvm.compile(session().bind().current.module, "llvm")
    given = recording.session()
    assert len(given.stages) > 50
    loaded = again(given, path)
    assert any(stage.enclosing_passes for stage in loaded.stages)
    assert any(stage.seconds for stage in loaded.stages)


def test_what_stages_share_is_saved_once(path):
    with irviz.record() as recording:
        tvm.compile(session().bind().current.module, "llvm")
    recording.session().save(path)
    weights = sum(array.nbytes for array in PARAMS.values())
    assert path.stat().st_size < 3 * weights


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("apply"),
            st.sampled_from(["LegalizeOps", "FoldConstant", "FuseOps", "s_tir.LowerInitBlock"]),
        ),
        st.tuples(st.just("checkout"), st.integers(0, 9)),
        st.tuples(st.just("drop"), st.integers(0, 9)),
        st.tuples(st.just("rename"), st.integers(0, 9), st.text(max_size=20)),
        st.tuples(st.just("bind"), st.sampled_from(sorted(PARAMS))),
        st.tuples(st.just("swap"), st.sampled_from(["relu0", "linear*"])),
        st.tuples(st.just("undo")),
    ),
    max_size=8,
)


@settings(max_examples=15)
@given(operations=OPERATIONS)
def test_any_tree_of_stages_comes_back(operations, tmp_path_factory):
    given = session(isolate=False)
    for name, *arguments in operations:
        match name, arguments:
            case "checkout" | "drop" | "rename", [number, *rest]:
                stage = given.stages[number % len(given.stages)].id
                arguments = [stage, *rest]
            case "bind", [param]:
                arguments = [{param: PARAMS[param]}]
            case "swap", [callee]:
                arguments = [callee, "env.relu" if callee == "relu0" else "env.linear"]
        try:
            given = getattr(given, name)(*arguments)
        except ValueError:  # what does not fit leaves the session as it was
            continue
    again(given, tmp_path_factory.mktemp("tree") / "tree.irviz")


def test_a_loaded_session_draws_runs_binds_and_goes_on(path):
    given = session().bind().apply("LegalizeOps")
    loaded = again(given, path)
    for stage in given.stages:
        assert loaded.graph(stage.id) == given.graph(stage.id)
        assert loaded.draw(stage.id).svg == given.draw(stage.id).svg
    for one, other in zip(loaded.run().outputs, given.run().outputs, strict=True):
        assert np.array_equal(one, other)
    assert [s.id for s in loaded.apply("FoldConstant").stages] == ["0", "1", "2", "3"]
    with pytest.raises(ValueError, match="nothing to undo"):
        loaded.undo()


def test_what_is_described_is_replayed_on_another_module(path):
    given = session().bind().apply("FuseOps", fuse_opt_level=1).swap("relu0", "env.relu")
    loaded = again(given, path)
    here, there = (one.replay(onto=MyModule) for one in (given, loaded))
    assert [facts(stage) for stage in there.stages] == [facts(stage) for stage in here.stages]
    assert structural_equal(there.current.module, here.current.module)


def test_params_inputs_and_labels_come_back(path):
    given = session()
    loaded = again(given, path)
    for name, array in PARAMS.items():
        assert np.array_equal(loaded.call_inputs.params[name], array)
    assert np.array_equal(loaded.call_inputs.inputs, given.call_inputs.inputs)
    assert np.array_equal(loaded.call_inputs.labels, given.call_inputs.labels)
    assert loaded.call_inputs.seed == 3


def test_params_may_stay_away_and_what_is_bound_stays_bound(path):
    given = session().bind({"w0": PARAMS["w0"]})
    with_params = again(given, path) and path.stat().st_size
    loaded = again(given, path, params=False)
    assert loaded.call_inputs.params == {}
    assert sorted(loaded.stage("1").constant_names.values()) == ["w0"]
    assert path.stat().st_size < with_params


@pytest.mark.parametrize(
    "inputs",
    [
        "zeros",
        None,
        {"x": np.ones((2, 784), ">f4")[:, ::-1], "n": 3, "f": 0.5, "pair": (1, [2, "random"])},
        {"x": np.asfortranarray(np.ones((3, 4), "f2")), "scalar": np.float32(0.1)},
        {"none": np.zeros((0, 3), "i8"), "flag": np.array(True), "z": np.array([1j])},
    ],
)
def test_inputs_of_every_form_come_back(path, inputs):
    given = Session(MyModuleStatic, inputs=inputs, sizes={"n": 3})
    loaded = again(given, path)
    assert loaded.call_inputs.sizes == {"n": 3}
    np.testing.assert_equal(loaded.call_inputs.inputs, inputs)


def test_small_floats_come_back(path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(8).astype(ml_dtypes.bfloat16)
    loaded = again(Session(MyModuleStatic, params={"w": array}), path)
    assert loaded.call_inputs.params["w"].dtype == array.dtype
    assert np.array_equal(loaded.call_inputs.params["w"], array)


def test_where_runs_take_place_is_not_saved(path):
    """A file from elsewhere must not send runs to another machine, or into this process."""
    session(device="localhost:9", target="llvm", isolate=False, seconds=5.0, memory=9).save(path)
    loaded, begun = Session.load(path, trust=True), Session(MyModuleStatic)
    assert loaded.run_config == begun.run_config
    assert loaded.run_config.isolate


def test_equal_sessions_are_equal_files(path):
    session().bind().save(path)
    first = path.read_bytes()
    session().bind().save(path)
    assert path.read_bytes() == first


# --- transforms --------------------------------------------------------------------------------


def test_what_only_its_label_is_left_of_refuses_to_be_applied(path):
    @tvm.transform.module_pass(opt_level=0, name="Mine")
    def mine(mod, _):
        return mod.with_attr("mine", 1)

    pattern = is_op("relax.nn.relu")(wildcard())
    rewrite = Rewrite("no relu", pattern, lambda call, _: call.args[0])
    given = Session(MyModuleHighLevel)
    given = given.apply(mine).apply(rewrite)
    loaded = again(given, path)
    for stage in loaded.stages[1:]:
        assert isinstance(stage.transform, LabelOnly)
        with pytest.raises(TransformError, match="saved by its label alone, and cannot be applied"):
            stage.transform(stage.module)
        with pytest.raises(UnwritableError, match="saved by its label alone"):
            stage.transform.write(PythonScript(), given.stages[0].module, stage.module)
    replayed = loaded.replay(onto=MmRelu)
    assert "saved by its label alone" in replayed.current.error
    assert again(loaded, path).to_python() == loaded.to_python()


def test_a_pass_object_that_does_what_the_catalogs_does_is_still_written_by_its_name(path):
    given = session(MyModuleHighLevel)
    given = given.apply(relax.transform.LegalizeOps())
    assert "LegalizeOps()" in given.to_python()
    assert again(given, path).to_python() == given.to_python()


def test_a_pass_of_the_readers_own_is_kept_by_its_label(path):
    @register_pass("own_pass_of_this_test")
    def own_pass_of_this_test():
        return relax.transform.FoldConstant()

    given = session().apply("own_pass_of_this_test")
    loaded = again(given, path)
    assert isinstance(loaded.current.transform, LabelOnly)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("FuseOps", {"fuse_opt_level": 2}),
        ("LiftTransformParams", {"shared_transform": ["main"]}),
        ("relax.BindParams", {"func_name": "main", "params": {"w0": PARAMS["w0"]}}),
        ("relax.BindSymbolicVars", {"binding_map": {"n": 3}}),
        ("relax.ConvertLayout", {"desired_layouts": {"relax.nn.conv2d": ["NHWC", "OHWI"]}}),
        ("relax.DeadCodeElimination", {"entry_functions": ["main"]}),
    ],
)
def test_arguments_of_passes_come_back(path, name, arguments):
    call = named_pass(name, **arguments)
    stages = [Stage("0", MyModuleStatic), Stage("1", MyModuleStatic, call.label, "0", call)]
    loaded = again(Session.from_stages(stages), path).stage("1").transform
    assert isinstance(loaded, PassCall)
    assert loaded.name == call.name
    np.testing.assert_equal(_plain(loaded.arguments), _plain(call.arguments))


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value.numpy() if isinstance(value, tvm.runtime.Tensor) else value


MAP = "index map"


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ({}, "None is not a kind of transform"),
        ({"kind": "exec"}, "'exec' is not a kind"),
        ({"kind": ["pass"]}, "is not a kind"),
        ({"kind": "pass", "name": "no.Such", "arguments": {}}, "no.Such"),
        ({"kind": "pass", "name": "os.system", "arguments": {}}, "os.system"),
        ({"kind": "pass", "name": 3, "arguments": {}}, "its name is 3, where a str was expected"),
        ({"kind": "pass", "name": "relax.FuseOps"}, "its arguments is None"),
        ({"kind": "pass", "name": "relax.FuseOps", "arguments": {"x": 1}}, "no parameter 'x'"),
        (
            {"kind": "pass", "name": "relax.FuseOps", "arguments": {"fuse_opt_level": "2"}},
            "fuse_opt_level of FuseOps is '2'",
        ),
        (
            {
                "kind": "pass",
                "name": "relax.UpdateVDevice",
                "arguments": {"new_vdevice": ("llvm", "__import__('os')", "global"), "index": 0},
            },
            "takes a virtual device",
        ),
        (
            {"kind": "pass", "name": "relax.FuseOpsByPattern", "arguments": {"patterns": [3]}},
            "takes the prefix of names",
        ),
        ({"kind": "bind", "function": "main", "params": {"w": 1}}, "not all tensors"),
        ({"kind": "bind", "params": {}}, "its function is None"),
        ({"kind": "swap", "callee": "a", "replacement": "b", "node": 1, "function": "main"}, "1"),
        ({"kind": "update", "name": "relu0", "prim_func": MyModuleStatic}, "PrimFunc was expected"),
        ({"kind": "rewrite", "name": "x", "pattern": "y", "function": ""}, "IRModule was expected"),
        ({"kind": "label", "label": "x", "is_pass": 1}, "bool was expected"),
        (
            {"kind": "schedule", "function": "f", "primitive": "__init__", "arguments": {}},
            "no primitive '__init__'",
        ),
        (
            {"kind": "schedule", "function": "f", "primitive": "split", "arguments": {"x": 1}},
            "takes other arguments",
        ),
        (
            {"kind": "schedule", "function": "f", "primitive": "split", "arguments": {}},
            "takes other arguments",
        ),
    ],
)
def test_a_description_of_no_transform_is_refused(description, words):
    with pytest.raises(EncodingError) as caught:
        restore(description)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "lambda i: __import__('os').system('true')",
        "lambda i: i # ",
        "lambda i: (i,\n)",
        "__import__('os')",
        "lambda i, j: (j, i",
    ],
)
def test_an_index_map_that_says_more_is_refused_as_scripts_would_say_it_too(text):
    (step,) = (
        stage.transform
        for stage in session().schedule("linear0", _tiled).stages
        if "index_map" in getattr(stage.transform, "arguments", {})
    )
    description = describe(step)
    assert isinstance(restore(description).arguments["index_map"], IndexMapText)
    arguments = {**description["arguments"], "index_map": {MAP: text}}
    with pytest.raises(EncodingError):
        restore({**description, "arguments": arguments})


# --- saving ------------------------------------------------------------------------------------


def test_what_cannot_be_saved_is_a_sentence_and_the_file_is_as_it_was(path):
    session().save(path)
    before = path.read_bytes()
    with pytest.raises(
        SessionFileError, match=r"the session cannot be saved: .* give params and i"
    ):
        Session(MyModuleStatic, inputs={"x": np.array([object()])}).save(path)
    executable = tvm.compile(MyModuleStatic, "llvm").mod
    mod = MyModuleStatic.with_attr("external_mods", [executable])
    stages = (Stage("0", MyModuleStatic), Stage("1", mod, "codegen", "0", LabelOnly("codegen")))
    with pytest.raises(
        SessionFileError, match="stage '1', 'codegen', cannot be saved: TVM cannot w"
    ):
        Session.from_stages(stages).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_place_that_cannot_be_written_to_is_a_sentence(tmp_path, path):
    for place in (tmp_path, tmp_path / "none" / "x.irviz", "a\0b"):
        with pytest.raises(irviz.SaveError, match=r"cannot be written \(.*\): give the path"):
            session().save(place)
    tmp_path.chmod(0o500)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)  # root may write everywhere, so become nobody for one call
    try:
        with pytest.raises(irviz.SaveError, match="Permission denied"):
            session().save(path)
    finally:
        if is_root:
            os.seteuid(0)
        tmp_path.chmod(0o700)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_is_a_sentence_and_leaves_every_file_as_it_was(tmp_path, full_disk):
    bound = session().bind()
    saved, arrays = tmp_path / "a.irviz", tmp_path / "a.npz"
    bound.save(saved)
    bound.to_python(arrays_file=arrays)
    before = {path: path.read_bytes() for path in (saved, arrays)}
    for write in (lambda: bound.save(saved), lambda: bound.to_python(arrays_file=arrays)):
        with (
            full_disk(),
            pytest.raises(irviz.SaveError, match=r"cannot be written \(File too large"),
        ):
            write()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "link to a device"])
def test_what_is_no_regular_file_is_left_as_it_is(tmp_path, kind):
    """As root, a rename would put a file in the place of a device."""
    path = tmp_path / "a.irviz"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/full")
    else:
        path.symlink_to("/dev/full")
    before = path.lstat()
    with pytest.raises(irviz.SaveError, match=r"cannot be written \(it is not a regular file"):
        session().save(path)
    after = path.lstat()
    assert (*after[:7], *after[8:]) == (*before[:7], *before[8:])  # but for when a link was read


KILLED = """
import os, pathlib, sys, zipfile
import numpy as np
from irviz.session.session import Session
from irviz.course.mlp import MyModuleStatic

folder, *moments = sys.argv[1:]
moment = ""
for each in moments:  # in a fork for each, as irviz takes long to load
    fork = os.fork()
    if not fork:
        moment, path = each, f"{folder}/{each}/work.irviz"
        break
    print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), flush=True)
if not moment:
    sys.exit()
opened = zipfile.ZipFile.open

def dying(archive, entry, mode="r", **options):
    if getattr(entry, "filename", "") == moment:
        archive.fp.flush()
        os.kill(os.getpid(), 9)
    return opened(archive, entry, mode, **options)

zipfile.ZipFile.open = dying
if moment == "replace":
    pathlib.Path.replace = lambda *_: os.kill(os.getpid(), 9)
params = {f"w{i}": np.full(100_000, i, "float32") for i in range(20)}
Session(MyModuleStatic, params=params).save(path)
"""
MOMENTS = ("arrays/19.npy", "replace")


def test_a_process_that_dies_while_it_saves_leaves_the_old_file(tmp_path):
    given = session().bind()
    for moment in MOMENTS:
        (tmp_path / moment).mkdir(parents=True)
        before = given.save(tmp_path / moment / "work.irviz").read_bytes()
    command = [sys.executable, "-c", KILLED, str(tmp_path), *MOMENTS]
    ended = subprocess.run(command, timeout=60, check=True, stdout=subprocess.PIPE, text=True)
    assert ended.stdout.split() == [str(-signal.SIGKILL)] * len(MOMENTS)
    for moment in MOMENTS:
        path = tmp_path / moment / "work.irviz"
        assert path.read_bytes() == before
        (partial,) = (one for one in path.parent.iterdir() if one != path)
        assert partial.name.startswith(".")
        if moment != "replace":
            with pytest.raises(SessionFileError, match=r"is not a session|is damaged or cut short"):
                Session.load(partial)
        same(Session.load(path), given)
        same(again(session(), path), session())  # what was left does not stand in the way
