"""A recording is a tree of passes with their times, and becomes stages that say what changed."""

import contextlib
import itertools

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm_ffi import structural_equal

from irviz.course.mlp import MyModule, MyModuleHighLevel, MyModuleStatic
from irviz.errors import TransformError
from irviz.transforms.apply_transform import apply_transform, replay
from irviz.transforms.bind_params import bind_params
from irviz.transforms.export_python import PythonScript, UnwritableError
from irviz.transforms.recording import OUTSIDE, RecordedPass, record_passes
from irviz.transforms.stage import Stage, StageTree, Transform, to_script
from irviz.units import format_duration


def module_pass(name):
    """Make a pass of a function of a module."""
    return lambda function: tvm.transform.module_pass(
        lambda mod, context: function(mod),  # noqa: ARG005 - as TVM calls it
        opt_level=0,
        name=name,
    )


def with_mark(mod, value):
    """Return a module with another attribute in one of its functions."""
    new = mod.clone()
    new.update_func(mod.get_global_var("relu0"), mod["relu0"].with_attr("mark", value))
    return new


def sequential(*passes, name="sequential"):
    return tvm.transform.Sequential(list(passes), name=name)


def rows(stages):
    """Return what is told of stages, without their modules and times."""
    return [(stage.parent, stage.label, stage.enclosing_passes) for stage in stages]


def recorded(run):
    with record_passes() as recording, contextlib.suppress(KeyError):
        run()
    return recording


def ran(script):
    """Return the module that a script leaves in `mod`."""
    names = {}
    exec(script, names)
    return names["mod"]


MARKS = module_pass("Marks")(lambda mod: with_mark(mod, 1))
KEEPS = module_pass("Keeps")(lambda mod: mod)
FAILS = module_pass("Fails")(lambda mod: {}[str(mod.attrs)])


def test_the_passes_are_a_tree_and_its_leaves_are_in_order():
    recording = recorded(lambda: sequential(KEEPS, sequential(MARKS, KEEPS), name="all")(MyModule))
    (step,) = recording.steps
    assert [one.name for one in recording.walk()] == [
        "all",
        "Keeps",
        "sequential",
        "Marks",
        "Keeps",
    ]
    assert [one.depth for one in recording.walk()] == [0, 1, 1, 2, 2]
    assert [one.name for one in recording.flat] == ["Keeps", "Marks", "Keeps"]
    assert [one.changed for one in recording.flat] == [False, True, False]
    assert step.changed
    assert structural_equal(recording.given, MyModule)
    assert step.after.same_as(recording.flat[-1].after)
    assert all(b.before.same_as(a.after) for a, b in itertools.pairwise(recording.flat))


@pytest.mark.build
def test_what_changed_is_what_is_structurally_different():
    with record_passes() as recording:
        tvm.compile(MyModule, "llvm")
    for step in recording.walk():
        assert step.changed == (not structural_equal(step.before, step.after)), step.name
    assert 10 < sum(step.changed for step in recording.walk()) < 40


def test_a_new_module_that_says_the_same_is_no_change():
    again = module_pass("Again")(lambda mod: tvm.ir.load_json(tvm.ir.save_json(mod)))
    (step,) = recorded(lambda: again(MyModule)).steps
    assert not step.after.same_as(step.before)
    assert not step.changed


@pytest.mark.build
def test_nothing_is_compared_while_passes_run(monkeypatch):
    monkeypatch.setattr("irviz.transforms.pass_log.structural_equal", lambda *_: pytest.fail("now"))
    monkeypatch.setattr("irviz.transforms.recording.structural_equal", lambda *_: 1 / 0)
    with record_passes() as recording:
        tvm.compile(MyModule, "llvm")
    assert len(list(recording.walk())) == 79
    assert len(recording.flat) == 69
    monkeypatch.undo()
    assert sum(step.changed for step in recording.walk()) > 0


def test_a_recording_of_nothing_is_empty():
    recording = recorded(lambda: None)
    assert (recording.steps, recording.flat, recording.given, recording.stages()) == (
        (),
        (),
        None,
        (),
    )
    assert repr(recording).startswith("<Recording: 0 passes, ")
    assert recording.failed == ()


def test_a_recording_says_itself_in_a_line():
    recording = recorded(lambda: sequential(KEEPS, MARKS)(MyModule))
    assert repr(recording).startswith("<Recording: 3 passes, ")
    assert repr(recording).endswith("s, 2 changed something>")
    (step,) = recording.steps
    taken = format_duration(step.seconds)
    assert repr(step) == f"<PassRun sequential: 2 passes inside, {taken}, changed>"
    assert repr(step.children[0]).endswith("s, unchanged>")
    failed = recorded(lambda: sequential(FAILS)(MyModule))
    assert repr(failed).endswith("0 changed something, Fails failed>")
    assert "not finished" in repr(failed.steps[0])
    assert "failed with KeyError" in repr(failed.failed[0])
    with pytest.raises(OSError, match="full"), record_passes() as ended:
        raise OSError("the disk is full")
    assert repr(ended).endswith("ended by OSError: the disk is full>")


def test_the_outline_has_a_line_a_pass_with_its_time_and_what_came_of_it():
    with contextlib.suppress(KeyError), record_passes() as recording:
        sequential(KEEPS, sequential(MARKS, FAILS, name="inner"))(MyModule)
    head, *lines = str(recording).splitlines()
    assert head == repr(recording)[len("<Recording: ") : -1]
    times = [f"{format_duration(step.seconds):>8}" for step in recording.walk()]
    assert [line[:8] for line in lines] == times
    failed = recording.failed[0].error
    assert [line[10:] for line in lines] == [
        "… sequential: not finished",
        "  · Keeps",
        "  … inner: not finished",
        "      Marks",
        f"    ✗ Fails: {failed}",
    ]


def test_a_stage_is_a_pass_that_has_none_inside_and_says_what_it_was_run_in():
    inner = sequential(MARKS, KEEPS)
    recording = recorded(lambda: sequential(KEEPS, inner, inner, name="all")(MyModule))
    stages = recording.stages()
    assert [stage.id for stage in stages] == list("012345")
    assert rows(stages) == [
        (None, "initial module", ()),
        ("0", "Keeps", ("all",)),
        ("1", "Marks", ("all", "sequential")),
        ("2", "Keeps", ("all", "sequential")),
        ("3", "Marks", ("all", "sequential#2")),
        ("4", "Keeps", ("all", "sequential#2")),
    ]
    assert [stage.is_unchanged for stage in stages[1:]] == [True, False, True, True, True]
    assert stages[0].seconds is None
    assert [stage.seconds for stage in stages[1:]] == [step.seconds for step in recording.flat]
    assert all(isinstance(stage.transform, Transform) for stage in stages[1:])
    assert structural_equal(stages[0].module, MyModule)
    assert structural_equal(stages[-1].module, recording.steps[0].after)


def test_the_number_of_a_pass_is_no_other_passes_name():
    nested = sequential(sequential(KEEPS, name="a"), sequential(KEEPS, name="a#2"), name="all")
    more = sequential(KEEPS, name="a")
    stages = recorded(lambda: more(nested(MyModule))).stages()
    assert [stage.enclosing_passes for stage in stages[1:]] == [
        ("all", "a"),
        ("all", "a#2"),
        ("a#3",),
    ]


@pytest.mark.build
def test_the_stages_of_a_build_are_each_made_of_the_one_before(modules):
    for mod in (MyModule, modules.stack(3)):
        with record_passes() as recording:
            tvm.compile(mod, "llvm")
        stages = recording.stages()
        by_id = {stage.id: stage for stage in stages}
        assert [stage.id for stage in stages if stage.parent is None] == ["0"]
        for stage in stages[1:]:
            parent = by_id[stage.parent]
            assert int(parent.id) < int(stage.id)
            assert stage.is_unchanged == structural_equal(parent.module, stage.module), stage.label
        # codegen takes the PrimFuncs out of the lowered module, then sets host and device apart
        assert [stage.label for stage in stages].count(OUTSIDE) == 1
        host, device = (stage for stage in stages if stage.label == "tirx.Filter")
        assert host.parent == device.parent
        assert len(host.module.functions) > len(device.module.functions) == 0
        assert [s.label for s in stages if s.parent == host.id] == ["tirx.LowerTVMBuiltin"]


def test_what_a_pass_does_besides_those_inside_of_it_is_a_stage_too():
    def works(mod):
        mod = KEEPS(with_mark(mod, 1))
        return with_mark(MARKS(with_mark(mod, 2)), 3)

    works = module_pass("Works")(works)
    recording = recorded(lambda: sequential(works)(MyModule))
    stages = recording.stages()
    assert rows(stages) == [
        (None, "initial module", ()),
        ("0", "Works", ("sequential",)),
        ("1", "Keeps", ("sequential", "Works")),
        ("2", "Works", ("sequential",)),
        ("3", "Marks", ("sequential", "Works")),
        ("4", "Works", ("sequential",)),
    ]
    marks = [stage.module["relu0"].attrs.get("mark") for stage in stages]
    assert marks == [None, 1, 1, 2, 1, 3]
    (step,) = recording.steps[0].children
    assert sum(stage.seconds for stage in stages[1:]) == pytest.approx(step.seconds)


@pytest.mark.build
def test_what_a_pass_builds_on_the_side_is_no_stage():
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        one = relax.const([1.0, 2.0], "float32")
        builder.emit_func_output(builder.emit(relax.op.add(one, one)))
    mod = relax.transform.LegalizeOps()(builder.get())
    recording = recorded(lambda: sequential(relax.transform.FoldConstant(), KEEPS)(mod))
    assert len(recording.flat) > 50
    stages = recording.stages()
    assert rows(stages) == [
        (None, "initial module", ()),
        ("0", "FoldConstant", ("sequential",)),
        ("1", "Keeps", ("sequential",)),
    ]
    assert stages[1].seconds == recording.steps[0].children[0].seconds

    def takes_out(mod):
        KEEPS(tvm.IRModule({tvm.ir.GlobalVar("alone"): mod["relu0"]}))
        return mod

    taken = recorded(lambda: module_pass("TakesOut")(takes_out)(MyModule)).stages()
    assert [stage.label for stage in taken] == ["initial module", "TakesOut"]
    builds = module_pass("Builds")(lambda mod: (tvm.compile(MyModuleHighLevel, "llvm"), mod)[1])
    assert [stage.label for stage in recorded(lambda: builds(MyModule)).stages()] == [
        "initial module",
        "Builds",
    ]


def test_a_pass_that_tries_others_and_takes_one_of_them_has_a_branch_for_each():
    def tries(mod):
        MARKS(mod)
        return KEEPS(mod)

    stages = recorded(lambda: MARKS(module_pass("Tries")(tries)(MyModule))).stages()
    assert rows(stages) == [
        (None, "initial module", ()),
        ("0", "Marks", ("Tries",)),
        ("0", "Keeps", ("Tries",)),
        ("2", "Marks", ()),
    ]


def test_two_builds_in_a_block_begin_at_their_own_modules():
    def run():
        KEEPS(MyModule)
        relax.transform.LegalizeOps()(MyModuleHighLevel)
        MARKS(MyModule)

    stages = recorded(run).stages()
    assert rows(stages) == [
        (None, "initial module", ()),
        ("0", "Keeps", ()),
        (None, "initial module", ()),
        ("2", "LegalizeOps", ()),
        ("0", "Marks", ()),
    ]
    assert structural_equal(stages[2].module, MyModuleHighLevel)


@pytest.mark.build
def test_a_pass_that_failed_is_a_stage_with_its_error_and_the_module_as_before():
    def catches(mod):
        with contextlib.suppress(KeyError):
            sequential(MARKS, FAILS)(mod)
        return KEEPS(mod)

    recording = recorded(lambda: module_pass("Catches")(catches)(MyModule))
    stages = recording.stages()
    assert rows(stages) == [
        (None, "initial module", ()),
        ("0", "Marks", ("Catches", "sequential")),
        ("1", "Fails", ("Catches", "sequential")),
        ("0", "Keeps", ("Catches",)),
    ]
    failed = stages[2]
    assert failed.error == recording.failed[0].error
    assert failed.error.startswith("KeyError: ")
    assert failed.module is stages[1].module
    assert not failed.is_unchanged
    assert [stage.error for stage in stages if stage is not failed] == ["", "", ""]


def test_names_of_constants_are_handed_on():
    bound = apply_transform(
        Stage("0", MyModuleStatic), bind_params({"b1": np.ones(10, "float32")}), "1"
    )
    recording = recorded(lambda: relax.get_pipeline("zero")(bound.module))
    for stage in recording.stages(bound.constant_names):
        assert list(stage.constant_names.values()) == ["b1"]
    assert recording.stages()[-1].constant_names == {}


def test_recorded_stages_write_themselves_as_python():
    passes = sequential(
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
    )
    stages = recorded(lambda: passes(MyModuleHighLevel)).stages()
    script = to_script(StageTree(stages).lineage(stages[-1].id)).text()
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps"):
        assert f"mod = relax.transform.{name}()(mod)" in script
    assert "# stage 3: FoldConstant: changed nothing" in script
    assert structural_equal(ran(script), passes(MyModuleHighLevel))


def test_recorded_stages_that_the_catalog_cannot_make_again_are_embedded():
    recording = recorded(lambda: sequential(MARKS, relax.transform.FoldConstant())(MyModule))
    stages = recording.stages()
    script = to_script(StageTree(stages).lineage("2")).text()
    assert "Marks was recorded, and no pass of the catalog is called that" in script
    assert structural_equal(ran(script), stages[-1].module)


def test_a_recorded_pass_with_arguments_of_its_own_is_not_written_as_one_without():
    legal = relax.transform.AnnotateTIROpPattern()(relax.transform.LegalizeOps()(MyModuleHighLevel))
    shallow = relax.transform.FuseOps(fuse_opt_level=0)
    with tvm.transform.PassContext(config={"relax.FuseOps.max_depth": 1}):
        (given, fused) = recorded(lambda: shallow(legal)).stages()
    after = relax.transform.FuseOps()(legal)
    assert not structural_equal(fused.module, after)
    with pytest.raises(UnwritableError, match="FuseOps was recorded, with arguments of its own"):
        fused.transform.write(PythonScript(), given.module, fused.module)
    fused.transform.write(PythonScript(), given.module, after)


def test_recorded_stages_are_replayed_on_another_module():
    stages = recorded(lambda: relax.transform.LegalizeOps()(MARKS(MyModule))).stages()
    mark, legal = replay(stages, Stage("0", MyModuleHighLevel), 1, isolate=False)
    assert "'Marks' was recorded by its name alone, and cannot be run again" in mark.error
    assert (legal.label, legal.error) == ("LegalizeOps", "")
    assert structural_equal(legal.module, relax.transform.LegalizeOps()(MyModuleHighLevel))


@pytest.mark.parametrize("name", ["<script>", "", "x" * 10_000, "a\nb", "__import__('os')"])
def test_a_name_that_is_no_name_is_a_line_of_its_own_and_no_statement(name):
    transform = RecordedPass(name)
    assert transform.tried_as is None
    assert 0 < len(transform.label) <= 80
    assert "\n" not in transform.label
    with pytest.raises(TransformError, match="was recorded by its name alone"):
        transform(MyModule)
    marks = module_pass(name)(lambda mod: with_mark(mod, 1))
    stages = recorded(lambda: marks(MyModule)).stages()
    script = to_script(StageTree(stages).lineage("1")).text()
    assert all(line.startswith("#") for line in script.splitlines() if "script" in line)
