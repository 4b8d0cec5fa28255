"""Recording hears every pass of a block, whoever runs it, however it ends, and leaves no trace."""

import contextlib
import sys
import threading

import pytest
import tvm
from tvm import relax
from tvm.ir.transform import Pass, PassContext
from tvm_ffi import structural_equal, structural_hash

from irviz.course.mlp import MODULES, MyModule, MyModuleHighLevel
from irviz.transforms.recording import Recording, record_passes

HOOKED = [
    (PassContext, "__enter__"),
    (PassContext, "__exit__"),
    (PassContext, "override_instruments"),
    (Pass, "__call__"),
]


@tvm.instrument.pass_instrument
class Witness:
    """Writes down by itself what passes are run, how deep, and the hash of what they get."""

    def __init__(self):
        self.seen, self.depth, self.entered, self.left = [], 0, 0, 0

    def enter_pass_ctx(self):
        self.entered += 1

    def exit_pass_ctx(self):
        self.left += 1

    def run_before_pass(self, mod, info):
        self.seen.append((self.depth, info.name, structural_hash(mod)))
        self.depth += 1

    def run_after_pass(self, mod, info):
        self.depth -= 1
        self.seen.append((self.depth, f"/{info.name}", structural_hash(mod)))


def module_pass(name):
    """Make a pass of a function of a module."""
    return lambda function: tvm.transform.module_pass(
        lambda mod, context: function(mod),  # noqa: ARG005 - as TVM calls it
        opt_level=0,
        name=name,
    )


@module_pass("Fails")
def fails(mod):  # noqa: ARG001 - as a pass is called
    raise KeyError("what it likes")


def seen(steps):
    """Return what a witness would have written down."""
    found = []
    for step in steps:
        found.append((step.depth, step.name, structural_hash(step.before)))
        found += seen(step.children)
        if step.after is not None:
            found.append((step.depth, f"/{step.name}", structural_hash(step.after)))
    return found


def names(steps):
    """Return the names of passes and of those inside of them."""
    return [(step.name, names(step.children)) if step.children else step.name for step in steps]


@pytest.fixture(autouse=True)
def no_trace():
    """Hold the hooked methods and the instruments of the thread against those from before."""
    methods = [getattr(owner, name) for owner, name in HOOKED]
    context = PassContext.current()
    instruments = context.instruments
    yield
    assert [getattr(owner, name) for owner, name in HOOKED] == methods
    assert PassContext.current().same_as(context)
    assert context.instruments.same_as(instruments)


@pytest.mark.build
@pytest.mark.parametrize("name", MODULES)
def test_a_build_is_recorded_as_an_instrument_of_its_own_sees_it(name):
    witness, mod = Witness(), MODULES[name]
    before = structural_hash(mod)
    with PassContext(instruments=[witness]), record_passes() as recording:
        tvm.compile(mod, "llvm")
    assert len(witness.seen) == 2 * 79
    # the hashes too: nothing that was recorded has been written to since
    assert seen(recording.steps) == witness.seen
    assert structural_hash(mod) == before


@pytest.mark.build
def test_pipelines_and_modules_of_others_are_recorded(modules):
    kernels = relax.transform.LegalizeOps()(modules.stack(2))
    matmul = kernels["matmul"].with_attr("global_symbol", "matmul")
    net = relax.frontend.nn.Linear(4, 8)
    spec = {"forward": {"x": relax.frontend.nn.spec.Tensor([2, 4], "float32")}}
    exported, _ = net.export_tvm(spec)
    for run in (
        lambda: relax.get_pipeline("zero")(modules.stack(3)),
        lambda: tvm.compile(modules.Symbolic, "llvm"),
        lambda: relax.get_pipeline("zero")(exported),
        lambda: tvm.tirx.build(matmul, "llvm"),
    ):
        witness = Witness()
        with PassContext(instruments=[witness]), record_passes() as recording:
            run()
        assert seen(recording.steps) == witness.seen != []


@pytest.mark.build
def test_a_pass_that_writes_into_the_module_it_is_given_changes_no_record(modules):
    mod = modules.SameTwice
    with record_passes() as recording:
        tvm.compile(mod, "llvm")
    (annotates,) = (step for step in recording.flat if step.name == "tirx.AnnotateEntryFunc")
    (before,) = annotates.before.functions.values()
    (after,) = annotates.after.functions.values()
    assert annotates.changed
    assert "tirx.is_entry_func" in after.attrs
    assert "tirx.is_entry_func" not in before.attrs


def test_contexts_that_the_block_enters_are_heard_and_stay_what_they_are():
    theirs, older = Witness(), Witness()
    made_before = PassContext(opt_level=1, instruments=[older])
    with record_passes() as recording:
        with PassContext(opt_level=3, instruments=[theirs]) as inner:
            assert PassContext.current().same_as(inner)
            assert inner.opt_level == 3
            relax.transform.LegalizeOps()(MyModule)
            with made_before:
                relax.transform.FoldConstant()(MyModule)
                with made_before:  # once more
                    relax.transform.ToNonDataflow()(MyModule)
                relax.transform.DeadCodeElimination()(MyModule)
                assert len(made_before.instruments) > 1
            assert [one.name for one in made_before.instruments] == ["Witness"]
            relax.transform.Normalize()(MyModule)
        assert [one.name for one in inner.instruments] == ["Witness"]
        relax.transform.FuseOps()(MyModule)
    assert names(recording.steps) == [
        "LegalizeOps",
        "FoldConstant",
        "ToNonDataflow",
        "DeadCodeElimination",
        "Normalize",
        "FuseOps",
    ]
    assert [name for _, name, _ in theirs.seen[::2]] == ["LegalizeOps", "Normalize"]
    assert (theirs.entered, theirs.left, older.entered, older.left) == (1, 1, 2, 2)


def test_passes_that_tvm_runs_by_itself_are_heard_in_contexts_of_the_block(modules):
    builder = relax.BlockBuilder(modules.SameTwice)
    with record_passes() as recording, PassContext():
        builder.finalize()
    assert names(recording.steps) == ["NormalizeGlobalVar"]


def test_the_context_around_goes_on_as_if_nothing_had_been_recorded():
    witness, config = Witness(), {"relax.FuseOps.max_depth": 3}
    with PassContext(opt_level=1, instruments=[witness], config=config) as around:
        instruments = around.instruments
        with record_passes():
            assert PassContext.current().same_as(around)
            assert dict(around.config) == config
            relax.transform.LegalizeOps()(MyModule)
        assert around.instruments.same_as(instruments)
        relax.transform.FoldConstant()(MyModule)
        assert (witness.entered, witness.left) == (1, 0)
    assert [name for _, name, _ in witness.seen[::2]] == ["LegalizeOps", "FoldConstant"]


def test_what_tvm_has_measured_itself_is_not_lost():
    timing = tvm.instrument.PassTimingInstrument()
    with PassContext(instruments=[timing]):
        relax.transform.LegalizeOps()(MyModule)
        with record_passes():
            relax.transform.FoldConstant()(MyModule)
        report = timing.render()
    assert "LegalizeOps" in report
    assert "FoldConstant" in report


def test_instruments_that_the_block_puts_in_stand_beside_the_recording_and_stay():
    first, second = Witness(), Witness()
    with PassContext(instruments=[first]) as around:
        with record_passes() as recording:
            relax.transform.LegalizeOps()(MyModule)
            around.override_instruments([second])
            relax.transform.FoldConstant()(MyModule)
            around.override_instruments([])
            relax.transform.ToNonDataflow()(MyModule)
            around.override_instruments([second])
        assert [one.name for one in around.instruments] == ["Witness"]
        assert around.instruments[0].same_as(second)
        relax.transform.FuseOps()(MyModule)
    assert names(recording.steps) == ["LegalizeOps", "FoldConstant", "ToNonDataflow"]
    assert [name for _, name, _ in first.seen[::2]] == ["LegalizeOps"]
    assert [name for _, name, _ in second.seen[::2]] == ["FoldConstant", "FuseOps"]


def test_a_context_that_takes_over_the_instruments_there_are_records_nothing_twice():
    with (
        record_passes() as recording,
        PassContext(instruments=PassContext.current().instruments) as copy,
    ):
        relax.transform.LegalizeOps()(MyModule)
    assert names(recording.steps) == ["LegalizeOps"]
    assert list(copy.instruments) == []


def test_a_context_that_is_left_early_leaves_the_one_around_it_to_be_heard():
    around = contextlib.ExitStack()
    around.enter_context(PassContext(opt_level=1))
    with record_passes() as recording:
        relax.transform.LegalizeOps()(MyModule)
        around.close()
        relax.transform.FoldConstant()(MyModule)
    assert names(recording.steps) == ["LegalizeOps", "FoldConstant"]


def test_passes_that_instruments_skip_are_not_recorded():
    @tvm.instrument.pass_instrument
    class Skips:
        def should_run(self, mod, info):  # noqa: ARG002 - as TVM calls it
            return info.name != "FoldConstant"

    with PassContext(instruments=[Skips()]), record_passes() as recording:
        tvm.transform.Sequential([relax.transform.FoldConstant(), relax.transform.FuseOps()])(
            MyModule
        )
    assert names(recording.steps) == [("sequential", ["FuseOps"])]


@pytest.mark.parametrize("when", ["run_before_pass", "run_after_pass", "enter_pass_ctx"])
def test_an_instrument_that_raises_does_so_as_it_would_otherwise(when):
    def raises(self, *arguments):  # noqa: ARG001 - as TVM calls it
        raise ValueError("from an instrument")

    bad = tvm.instrument.pass_instrument(type("Bad", (), {when: raises}))()
    with record_passes() as recording:
        with pytest.raises(ValueError, match="from an instrument"), PassContext(instruments=[bad]):
            tvm.transform.Sequential([relax.transform.FoldConstant()])(MyModule)
        relax.transform.FuseOps()(MyModule)
    assert names(recording.steps)[-1] == "FuseOps"
    if when == "run_after_pass":  # it is the instrument that failed behind FoldConstant
        (fold,) = recording.steps[0].children
        assert (fold.error, recording.steps[0].error) == ("", "ValueError: from an instrument")


def deep(*passes):
    """Return the passes, three levels down."""
    inner = tvm.transform.Sequential([relax.transform.ToNonDataflow(), *passes], name="inner")
    calls = module_pass("Calls")(lambda mod: inner(mod))
    return tvm.transform.Sequential([relax.transform.LegalizeOps(), calls], name="outer")


def test_an_exception_keeps_everything_up_to_the_pass_that_failed_and_marks_it():
    with pytest.raises(KeyError, match="what it likes") as raised, record_passes() as recording:
        deep(fails, relax.transform.FuseOps())(MyModule)
    assert names(recording.steps) == [
        ("outer", ["LegalizeOps", ("Calls", [("inner", ["ToNonDataflow", "Fails"])])])
    ]
    (failed,) = recording.failed
    assert failed.name == "Fails"
    assert failed.error.startswith("KeyError: ")
    assert "what it likes" in failed.error
    assert failed.after is None
    around = [step for step in recording.walk() if step.children]
    assert [(step.after, step.error) for step in around] == 3 * [(None, "")]
    assert [step.after is None for step in recording.flat] == [False, False, True]
    assert recording.error == f"{type(raised.value).__name__}: {raised.value}"


def test_an_exception_of_tvm_itself_is_as_it_is_without_recording():
    run = deep(relax.transform.MergeCompositeFunctions())
    with pytest.raises(tvm.error.InternalError) as without:
        run(MyModule)
    with pytest.raises(tvm.error.InternalError) as within, record_passes() as recording:
        run(MyModule)
    assert str(within.value) == str(without.value)
    assert [step.name for step in recording.failed] == ["MergeCompositeFunctions"]


def test_an_exception_that_is_caught_closes_what_it_has_left():
    @module_pass("Catches")
    def catches(mod):
        mod = relax.transform.LegalizeOps()(mod)
        with contextlib.suppress(KeyError):
            deep(fails)(mod)
        return relax.transform.FoldConstant()(mod)

    with record_passes() as recording:
        catches(MyModule)
        with contextlib.suppress(KeyError):
            fails(MyModule)
        relax.transform.FuseOps()(MyModule)
    inner = ("inner", ["ToNonDataflow", "Fails"])
    left = ("outer", ["LegalizeOps", ("Calls", [inner])])
    assert names(recording.steps) == [
        ("Catches", ["LegalizeOps", left, "FoldConstant"]),
        "Fails",
        "FuseOps",
    ]
    assert [step.name for step in recording.failed] == ["Fails", "Fails"]
    assert recording.steps[0].after is not None
    assert recording.error == ""


def test_a_pass_that_raises_its_own_exception_for_that_of_another_says_so():
    @module_pass("Wraps")
    def wraps(mod):
        try:
            return fails(mod)
        except KeyError as failure:
            raise RuntimeError("the pipeline ends here") from failure

    with pytest.raises(RuntimeError, match="ends here"), record_passes() as recording:
        tvm.transform.Sequential([wraps])(MyModule)
    first, second = recording.failed
    assert (first.name, second.name) == ("Fails", "Wraps")
    assert second.error == "RuntimeError: the pipeline ends here"
    assert recording.steps[0].error == ""


def test_an_interrupt_goes_on_its_way():
    interrupted = module_pass("Interrupted")(_interrupt)
    with pytest.raises(RuntimeError), record_passes() as recording:  # what TVM makes of it
        deep(interrupted)(MyModule)
    assert [step.name for step in recording.failed] == ["Interrupted"]
    with pytest.raises(KeyboardInterrupt), record_passes() as recording:
        _interrupt(relax.transform.LegalizeOps()(MyModule))
    assert names(recording.steps) == ["LegalizeOps"]
    assert (recording.failed, recording.error) == ((), "KeyboardInterrupt")


def _interrupt(mod):  # noqa: ARG001 - as a pass is called
    raise KeyboardInterrupt


def test_an_exception_outside_of_passes_is_the_blocks():
    failure = ZeroDivisionError("later")

    def run():
        relax.transform.LegalizeOps()(MyModule)
        raise failure

    with pytest.raises(ZeroDivisionError) as raised, record_passes() as recording:
        run()
    assert raised.value is failure
    assert recording.error == "ZeroDivisionError: later"
    assert recording.failed == ()


@pytest.mark.build
def test_a_build_inside_of_a_pass_is_inside_of_it():
    build = module_pass("Builds")(lambda mod: (tvm.compile(MyModuleHighLevel, "llvm"), mod)[1])
    with record_passes() as alone:
        tvm.compile(MyModuleHighLevel, "llvm")
    with record_passes() as recording:
        tvm.transform.Sequential([build, relax.transform.FuseOps()])(MyModule)
    (((name, inside), after),) = (children for _, children in names(recording.steps))
    assert (name, after) == ("Builds", "FuseOps")
    assert inside == names(alone.steps)
    assert {step.depth for step in recording.steps[0].children[0].children} == {2}


def test_what_folding_constants_builds_is_inside_of_it():
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        one = relax.const([1.0, 2.0], "float32")
        builder.emit_func_output(builder.emit(relax.op.add(one, one)))
    with record_passes() as recording:
        relax.transform.FoldConstant()(relax.transform.LegalizeOps()(builder.get()))
    _, fold = recording.steps
    assert fold.name == "FoldConstant"
    assert "tirx.MakePackedAPI" in [step.name for step in fold.walk()]


def test_recordings_inside_of_each_other_hear_the_same_passes():
    @module_pass("Records")
    def records(mod):
        with record_passes() as inner:
            mod = tvm.transform.Sequential([relax.transform.FoldConstant()])(mod)
        recordings.append(inner)
        return mod

    recordings = []
    with record_passes() as outer:
        with record_passes() as middle:
            relax.transform.LegalizeOps()(MyModule)
        records(MyModule)
        relax.transform.FuseOps()(MyModule)
    inside = ("sequential", ["FoldConstant"])
    assert names(middle.steps) == ["LegalizeOps"]
    assert names(recordings[0].steps) == [inside]
    assert recordings[0].steps[0].depth == 0
    assert names(outer.steps) == ["LegalizeOps", ("Records", [inside]), "FuseOps"]


def test_a_recording_inside_of_a_pass_hears_what_fails_there():
    recordings = []

    @module_pass("Records")
    def records(mod):
        with record_passes() as inner:
            with contextlib.suppress(KeyError):
                fails(mod)
            mod = relax.transform.FuseOps()(mod)
        recordings.append(inner)
        return mod

    with record_passes() as outer:
        records(MyModule)
    assert names(recordings[0].steps) == ["Fails", "FuseOps"]
    assert names(outer.steps) == [("Records", ["Fails", "FuseOps"])]
    assert [step.name for step in recordings[0].failed] == ["Fails"]


def test_recordings_that_overlap_end_in_any_order():
    first, second = contextlib.ExitStack(), contextlib.ExitStack()
    one = first.enter_context(record_passes())
    relax.transform.LegalizeOps()(MyModule)
    other = second.enter_context(record_passes())
    relax.transform.FoldConstant()(MyModule)
    first.close()
    relax.transform.FuseOps()(MyModule)
    second.close()
    relax.transform.ToNonDataflow()(MyModule)
    assert names(one.steps) == ["LegalizeOps", "FoldConstant"]
    assert names(other.steps) == ["FoldConstant", "FuseOps"]


def test_a_recording_hears_its_own_thread_and_no_other():
    together, shared = threading.Barrier(3), PassContext(opt_level=2)
    recordings, instruments = {}, {}

    def run(number, is_recorded):
        context = record_passes() if is_recorded else contextlib.nullcontext()
        together.wait(30)
        for _ in range(20):
            with context if is_recorded else contextlib.nullcontext() as recording, shared:
                relax.transform.LegalizeOps()(MyModule)
                for _ in range(number):
                    relax.transform.FoldConstant()(MyModule)
            if is_recorded:
                recordings.setdefault(number, []).append(names(recording.steps))
                context = record_passes()
        instruments[number] = list(PassContext.current().instruments)

    threads = [threading.Thread(target=run, args=(n, n != 3)) for n in (1, 2, 3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that they meet in each other's middle
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert recordings[1] == 20 * [["LegalizeOps", "FoldConstant"]]
    assert recordings[2] == 20 * [["LegalizeOps", "FoldConstant", "FoldConstant"]]
    assert instruments == {1: [], 2: [], 3: []}
    assert list(shared.instruments) == []


def test_methods_that_others_have_put_over_ours_stay_theirs():
    called = []
    recording = contextlib.ExitStack()
    kept = recording.enter_context(record_passes())
    ours = PassContext.__enter__
    original = ours.__wrapped__
    try:
        PassContext.__enter__ = theirs = lambda self: called.append(self) or ours(self)
        recording.close()
        assert PassContext.__enter__ is theirs
        with PassContext():
            relax.transform.LegalizeOps()(MyModule)
    finally:
        PassContext.__enter__ = original
    assert len(called) == 1
    assert kept.steps == ()


class Clock:
    """A clock that goes on by a millisecond when it is read, and by what is added."""

    seconds = 0.0

    def __call__(self):
        self.seconds += 0.001
        return self.seconds


def test_times_add_up_and_leave_the_recording_and_other_instruments_out(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("irviz.transforms.pass_log.perf_counter", clock)

    @tvm.instrument.pass_instrument
    class Slow:
        def run_before_pass(self, mod, info):  # noqa: ARG002 - as TVM calls it
            clock.seconds += 10

        def run_after_pass(self, mod, info):  # noqa: ARG002 - as TVM calls it
            clock.seconds += 10

    with PassContext(instruments=[Slow()]), record_passes() as recording:
        relax.transform.ToNonDataflow()(MyModule)
        tvm.transform.Sequential([relax.transform.ToNonDataflow()] * 4)(MyModule)
    alone, outer = recording.steps
    assert all(step.seconds < 1 for step in (alone, *outer.children))
    own_seconds = outer.seconds - sum(step.seconds for step in outer.children)
    assert 80 <= own_seconds < 81  # in which the instruments of its four passes were busy
    assert alone.end <= outer.start < outer.children[0].start
    assert 0 < recording.cost < recording.seconds < clock.seconds
    assert outer.end <= recording.seconds
    times = recording.pass_times()
    own_of_all = [one.own for _, one in times.root.walk()]
    assert sum(own_of_all) == pytest.approx(recording.seconds)
    assert sum(row.own for row in times.by_name) == pytest.approx(recording.seconds)
    assert all(seconds >= 0 for seconds in own_of_all)


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "", "x" * 10_000, "a\nb", "sequential"]
)
def test_passes_of_any_name_are_recorded_by_it(name):
    # TVM takes the name of the function where none is given
    info = tvm.transform.PassInfo(0, name, [])
    odd = tvm.ir.transform._ffi_transform_api.MakeModulePass(lambda mod, context: mod, info)  # noqa: ARG005
    with record_passes() as recording:
        tvm.transform.Sequential([odd])(MyModule)
    assert names(recording.steps) == [("sequential", [name])]
    assert str(recording).count("\n") == 2
    assert max(map(len, str(recording).splitlines())) < 120


def test_a_recording_can_be_of_another_kind():
    class Mine(Recording):
        pass

    with record_passes(Mine) as recording:
        relax.transform.LegalizeOps()(MyModule)
    assert isinstance(recording, Mine)
    assert names(recording.steps) == ["LegalizeOps"]


def test_a_recording_can_be_looked_at_while_it_runs():
    seen_inside = []

    @module_pass("Looks")
    def looks(mod):
        seen_inside.append((names(recording.steps), recording.steps[-1].after, str(recording)))
        return mod

    with record_passes() as recording:
        assert recording.steps == ()
        relax.transform.LegalizeOps()(MyModule)
        looks(MyModule)
    ((inside, after, text),) = seen_inside
    assert (inside, after) == (["LegalizeOps", "Looks"], None)
    assert "Looks: not finished" in text
    assert structural_equal(recording.steps[-1].after, MyModule)
