# ruff: noqa: N803, N805, N806, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""A schedule is made by clicks: choose loops and blocks, a primitive, apply; or edit the trace."""

import asyncio
import re
import threading

import numpy as np
import pytest
import tvm_ffi
from tvm import s_tir
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from irviz.course.mm_relu import lecture_schedule
from irviz.errors import CancelledRunError, RunError
from irviz.explorer.actions import Apply, Checkout, ChooseLoop, DoStep, SetField, SetSession
from irviz.explorer.effects import Effects
from irviz.explorer.panels.profile_panel import StepTiming
from irviz.explorer.panels.schedule_panel import SchedulePanel, TracePanel
from irviz.explorer.shown_schedule import (
    chosen_loops,
    loop_addresses,
    nest,
    refused_loops,
    schedule_data,
)
from irviz.model.loop_nest import Block, BlockAddress, Loop, LoopAddress, walk
from irviz.model.runs.run_result import RunResult
from irviz.runtime.run import RunConfig
from irviz.session import measure_schedule
from irviz.session.session import Session
from irviz.transforms.schedules.schedule_step import schedule_step

pytestmark = pytest.mark.worker


@I.ir_module
class Products:
    """A matrix product with relu, one of symbolic size, and one without blocks."""

    @T.prim_func(s_tir=True)
    def mm_relu(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        C: T.Buffer((128, 128), "float32"),
    ):
        Y = T.sblock_alloc_buffer((128, 128), "float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    @T.prim_func(s_tir=True)
    def add(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.sblock("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func
    def flat(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)

    @R.function
    def main(x: R.Tensor((128, 128), "float32"), w: R.Tensor((128, 128), "float32")):
        cls = Products
        with R.dataflow():
            y = R.call_tir(cls.mm_relu, (x, w), R.Tensor((128, 128), "float32"))
            R.output(y)
        return y


@pytest.fixture
def hosted(desk_class):  # noqa: C901 - a class
    """Returns the panels of a schedule, used as a reader does."""

    class Host(desk_class):
        def __init__(self, module=Products, function="mm_relu"):
            super().__init__(
                Session(module), SchedulePanel, StepTiming, TracePanel, effects=Effects
            )
            self.dispatch(SetField("runs_new_stages", False))
            self.dispatch(SetField("prim_func", function))
            self.automatic().value = False

        @property
        def marked(self):
            return refused_loops(self.state)

        @property
        def loops(self):
            """Return the variables of the loops, in the order of the text."""
            return [one.variable for one in walk(nest(self.state)) if isinstance(one, Loop)]

        def automatic(self):
            return self.button("measure each step")

        @property
        def steps(self):
            """Return the steps that are offered, by primitive."""
            return {one["primitive"]: one for one in schedule_data(self.state)["steps"]}

        def choose(self, *names):
            """Choose loops by variable and blocks by name, the first of each."""
            self.dispatch(ChooseLoop(""))
            for name in names:
                nodes = [
                    one.id
                    for one in walk(nest(self.state))
                    if (isinstance(one, Loop) and one.variable == name)
                    or (isinstance(one, Block) and one.name == name)
                ]
                self.dispatch(ChooseLoop(nodes[0], adds=True))

        def apply(self, primitive, *names, target="", **values):
            self.choose(*names)
            fields = self.steps[primitive]["fields"]
            texts = [values.get(one["name"], one["value"]) for one in fields]
            self.dispatch(DoStep(primitive, target, texts))

        def replay(self, text):
            self.find("irviz-trace").value = text
            self.find("irviz-schedule-replay").click()

        @property
        def shown(self):
            """Return the text of the panel's HTML."""
            return self.html()

        @property
        def rows(self):
            """Return the rows of the table of times, but its head."""
            return re.findall(r"<tr.*?</tr>", self.shown.partition("</thead>")[2])

        @property
        def trace(self):
            return self.find("irviz-trace").value

    return Host


@pytest.fixture
def host(hosted):
    return hosted()


def lecture(host):
    """Make the lecture's schedule by clicks."""
    host.apply("split", "j", factors="None, 4")
    host.apply("reorder", "j_0", "k", "j_1")
    host.apply("reverse_compute_at", "C", "j_0")
    host.apply("parallel", "i")
    host.apply("vectorize", "j_1")
    host.apply("decompose_reduction", "Y", "k")
    host.apply("unroll", "k")


def test_the_lectures_schedule_works_by_clicks(host):
    lecture(host)
    assert host.said == ""
    assert [stage.error for stage in host.session.stages] == [""] * 8
    sch = s_tir.Schedule(Products)
    sch.work_on("mm_relu")
    lecture_schedule(sch)
    assert tvm_ffi.structural_equal(host.session.current.module, sch.mod)
    assert host.trace.count("\n") == 7
    assert 'sch.split(sch.get_loops("Y")[1], factors=[None, 4])\n' in host.trace


def test_every_primitive_that_takes_what_is_chosen_is_offered_and_no_other(host):
    host.choose("k")
    assert {"split", "add_unit_loop", "annotate", "tensorize"} <= host.steps.keys()
    assert not {"cache_read", "set_scope", "annotate_buffer_access"} & host.steps.keys()
    host.choose("C", "j")
    assert {"compute_at", "reverse_compute_at", "read_at"} <= host.steps.keys()
    assert "split" not in host.steps


def test_an_illegal_step_is_told_in_tvms_words_marked_and_changes_nothing(host):
    before = host.session
    host.apply("parallel", "k")
    assert host.session is before
    (html,) = [one for one in host.shown.splitlines() if "all that TVM says" in one]
    assert 'role="alert"' in html
    assert (
        "some block iter whose block binding contains the loop var is not a data parallel" in html
    )
    assert "^^^^" in host.shown
    places = {node: str(at) for node, at in loop_addresses(host.state).items()}
    assert [places[one] for one in host.marked] == ["Y", "loop 2 of Y"]
    host.apply("parallel", "i")
    assert host.marked == []
    assert "all that TVM says" not in host.shown


def test_a_step_that_would_end_the_process_is_told_and_makes_no_stage(host):
    host.replay('sch.merge(sch.get_loops("Y")[2], sch.get_loops("Y")[2])')
    assert len(host.session.stages) == 1
    assert "ended the process" in host.shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "factors is empty: write a list of numbers, one of them may be None, such as None, 4"),
        ("  ", "factors is empty: write a list of numbers"),
        ("[]", "factors is empty: write a list of numbers"),
        ("a, 4", "it takes a list of numbers, one of them may be None, such as None, 4"),
        ("__import__('os')", "is neither a block nor a loop"),
        ("0, 4", "All the constant factors are required to be positive"),
        ("None, None", "Only one factor can be specified as -1 or none"),
    ],
)
def test_a_value_that_cannot_be_is_told_and_no_loop_is_marked(host, text, words):
    host.apply("split", "j", factors=text)
    assert words.replace("'", "&#39;") in host.shown
    assert len(host.session.stages) == 1
    assert host.marked == []


def test_what_is_wrong_with_a_value_is_said_until_it_is_right(host):
    host.apply("annotate", "i", ann_key=" ", ann_val="1")
    assert "ann_key is empty: write a text, such as a name" in host.shown
    assert host.shown.count('role="alert"') == 1
    assert host.marked == []
    host.apply("annotate", "i", ann_key="pragma_x", ann_val="1")
    assert len(host.session.stages) == 2
    assert 'role="alert"' not in host.shown


def test_a_refused_loop_is_no_longer_marked_when_a_field_is_wrong(host):
    host.apply("parallel", "k")
    assert host.marked
    host.apply("split", "j", factors="")
    assert host.marked == []


def test_a_trace_with_empty_factors_marks_no_loop(host):
    host.choose("j")
    host.replay('sch.split(sch.get_loops("Y")[1], factors=[])')
    assert "split: factors is empty" in host.shown
    assert host.marked == []
    assert len(host.session.stages) == 1


def test_a_step_has_a_field_for_each_value_and_offers_the_blocks_buffers(host):
    host.choose("Y")
    assert [one["name"] for one in host.steps["cache_read"]["fields"]] == [
        *("storage_scope", "consumer_blocks"),
    ]
    assert host.steps["cache_read"]["targets"] == ["A", "B"]
    host.apply("cache_read", "Y", target="B", storage_scope="local", consumer_blocks="Y")
    (_, stage) = host.session.stages
    assert stage.transform.arguments == {
        "block": BlockAddress("Y"),
        "read_buffer_index": 1,
        "storage_scope": "local",
        "consumer_blocks": [BlockAddress("Y")],
    }
    host.apply("transform_layout", "Y", target="writes Y", index_map="lambda i, j: (j, i)")
    assert "index_map=lambda i, j: (j, i)" in host.trace
    host.apply("annotate", "i", ann_key="pragma_x", ann_val="[1, 2]")
    assert "ann_val=[1, 2]" in host.trace


def test_a_trace_can_be_cut_and_its_stage_is_shown_again(host):
    lecture(host)
    host.replay("".join(host.trace.splitlines(keepends=True)[:3]))
    assert (host.session.current_id, len(host.session.stages)) == ("3", 8)
    assert host.trace.count("\n") == 3


def test_an_edited_trace_is_a_branch_behind_the_steps_that_stayed(host):
    lecture(host)
    host.replay(host.trace.replace("vectorize", "unroll"))
    assert host.session.stages[8].parent == "4"
    assert host.session.current_id == "10"
    assert "vectorize" not in host.trace
    host.replay("")
    assert host.session.current_id == "0"


def test_a_trace_is_replayed_whole_or_not_at_all(host):
    before = host.session
    host.replay('sch.unroll(sch.get_loops("Y")[2])\nsch.parallel(sch.get_loops("Y")[2])\n')
    assert host.session is before
    assert "step 2: sch.parallel(" in host.shown
    assert host.marked == []
    assert host.trace.count("\n") == 2
    host.replay("sch.unroll(x)")
    assert "line 1, column 12: &#39;x&#39; is not a literal" in host.shown


def test_a_trace_can_be_replayed_on_another_function(hosted):
    host = hosted(function="add")
    host.replay('sch.split(sch.get_loops("B")[0], factors=[None, 4])')
    assert host.session.current.transform.function == "add"
    assert host.loops == ["i_0", "i_1"]


def test_steps_of_another_function_are_no_part_of_the_trace(host):
    host.apply("unroll", "k")
    host.dispatch(SetField("prim_func", "add"))
    assert host.trace == ""
    host.apply("unroll", "i")
    assert host.trace == 'sch.unroll(sch.get_loops("B")[0])\n'
    host.dispatch(SetField("prim_func", "mm_relu"))
    assert host.trace == ""


def test_what_was_chosen_is_forgotten_with_the_loops_it_was(host):
    host.apply("split", "j", factors="None, 4")
    assert chosen_loops(host.state) == ()
    host.choose("k")
    host.dispatch(SetSession(host.session.rename(host.state.stage_id, "another name")))
    assert len(chosen_loops(host.state)) == 1


def test_a_function_without_blocks_is_shown_and_nothing_can_be_chosen(hosted):
    host = hosted(function="flat")
    assert host.loops == ["i"]
    host.choose("i")
    assert chosen_loops(host.state) == ()


def test_a_step_is_measured_against_the_one_before_and_the_first(host):
    host.automatic().value = True
    host.apply("split", "j", factors="None, 4")
    host.apply("reorder", "j_0", "k", "j_1")
    words = host.find("irviz-schedule-time").value
    number = r"[\d.]+ (?:ns|µs|ms|s)"
    assert re.search(
        rf"{number} → {number}, \d+\.\d\d× as fast[^;]*; "
        r"\d+\.\d\d× as fast as without a schedule[^;]*; results equal",
        words,
    )
    assert [row.count("×") for row in host.rows] == [0, 1, 1]


class Machines:
    """Runs and measures as it is told to: what `run` and `measure` are for the panel."""

    def __init__(self, monkeypatch):
        self.ran, self.measured, self.rounds = [], [], []
        self.values, self.once = {}, 1e-3
        """What is written, by the numbers of the runs; how long calls take there."""
        self.seconds = lambda number: 1e-3 / (number + 1)
        self.refuse = None
        monkeypatch.setattr(measure_schedule, "run", self.run)
        monkeypatch.setattr(measure_schedule, "measure", self.measure)

    def run(self, mod, function, given, *, config, on_progress):  # noqa: ARG002 - as it is called
        if self.refuse:
            raise self.refuse
        self.ran.append((function, dict(given.sizes), config))
        value = self.values.get(len(self.ran) - 1, 0.0)
        return RunResult((np.full((1, 2), value),), self.once)

    def measure(self, mods, function, given, *, names, rounds, seconds, config, on_progress):  # noqa: ARG002
        self.measured.append(names)
        self.rounds.append((rounds, seconds))
        return [(self.seconds(int(name.partition(" ")[0])),) * rounds for name in names]


@pytest.fixture
def machines(monkeypatch):
    return Machines(monkeypatch)


def test_times_are_told_with_their_ratios_and_whether_the_results_stay_equal(host, machines):
    machines.seconds = lambda number: [12.3e-3, 3.1e-3, 3.2e-3][number]
    machines.values[2] = 1.0
    host.automatic().value = True
    host.apply("split", "j", factors="None, 4")
    assert "12.3 ms → 3.1 ms, 3.97× as fast; results equal" in host.shown
    host.apply("unroll", "k")
    assert (
        "3.1 ms → 3.2 ms, 0.97× as fast; 3.84× as fast as without a schedule; results differ"
    ) in host.shown
    assert "<td>12.3 ms</td><td>12.3 to 12.3 ms</td><td></td>" in host.rows[0]
    assert '3.84× <b class="irviz-error">results differ</b>' in host.rows[2]


def test_a_difference_within_the_noise_is_said_to_be(host, machines):
    machines.seconds = lambda _: 1e-3
    host.automatic().value = True
    host.apply("split", "j", factors="None, 4")
    assert "1.00× as fast (within the noise); results equal" in host.shown
    assert "1.00× (within the noise)" in host.rows[1]


def test_numbers_of_different_moments_never_meet(host, machines):
    host.automatic().value = True
    host.apply("split", "j", factors="None, 4")
    machines.seconds = lambda number: 2e-3 / (number + 1)  # the machine is slower by now
    host.apply("unroll", "k")
    assert machines.measured == [
        ["0 as it was", "1 split"],
        ["0 as it was", "1 split", "2 unroll"],
    ]
    assert len(machines.ran) == 3
    assert ["2 ms" in row for row in host.rows] == [True, False, False]
    assert [re.findall(r"[\d.]+×", row) for row in host.rows] == [[], ["2.00×"], ["3.00×"]]


def test_where_calls_are_long_a_step_is_measured_with_fewer_and_in_fewer_rounds(host, machines):
    machines.once = 0.5
    host.automatic().value = True
    for step in ("unroll", "vectorize", "parallel"):
        host.apply(step, "i")
    assert machines.measured[-1] == ["0 as it was", "2 vectorize", "3 parallel"]
    assert [rounds for rounds, _ in machines.rounds] == [3, 2, 2]
    assert "as fast (too few calls to be sure)" in host.shown
    assert "not measured with the others" in host.rows[1]
    host.button("Measure all").click()
    assert len(machines.measured[-1]) == 4
    assert machines.rounds[-1] == (20, 1.0)
    assert "too few calls" not in host.shown


def test_at_most_twelve_stages_are_measured_for_a_click(host, machines):
    host.automatic().value = True
    for step in ("unroll", "vectorize") * 7:
        host.apply(step, "i")
    assert [name.split()[0] for name in machines.measured[-1]] == ["0", *map(str, range(4, 15))]
    assert {seconds for _, seconds in machines.rounds} == {0.2}


def test_the_limits_of_the_session_are_in_force(host, machines):
    host.dispatch(SetSession(host.session.with_run_config(seconds=3.0, isolate=False)))
    host.button("Measure all").click()
    assert machines.ran == [("mm_relu", {}, RunConfig(isolate=False, seconds=3.0))]
    host.dispatch(SetSession(host.session.with_run_config(device="nowhere")))
    assert host.rows == []


def test_a_device_that_is_none_is_told(host):
    host.dispatch(SetSession(host.session.with_run_config(device="nowhere")))
    host.button("Measure all").click()
    assert "&#39;nowhere&#39; is not a device" in host.find("irviz-schedule-time").value


def test_why_a_stage_cannot_be_measured_is_told_in_its_row_until_it_can(host, machines):
    machines.refuse = RunError("it <cannot> be run")
    host.button("Measure all").click()
    assert "it &lt;cannot&gt; be run" in host.rows[0]
    assert "<cannot>" not in host.shown
    machines.refuse = None
    host.button("Measure all").click()
    assert "cannot" not in host.shown
    assert "1 ms" in host.rows[0]


@pytest.mark.usefixtures("machines")
def test_what_fails_when_it_is_measured_is_told(host, monkeypatch):
    def refuse(*_, **__):
        raise RunError("0 as it was: it broke")

    monkeypatch.setattr(measure_schedule, "measure", refuse)
    host.button("Measure all").click()
    assert "0 as it was: it broke" in host.find("irviz-schedule-time").value


def test_what_is_cancelled_leaves_all_as_it_was(host, machines):
    host.button("Measure all").click()
    before = host.shown
    machines.refuse = CancelledRunError("cancelled")
    host.automatic().value = True
    host.apply("unroll", "i")
    machines.refuse = None
    assert "cancelled" not in host.shown
    host.dispatch(Checkout("0"))
    assert host.shown.split('class="irviz-step-times"')[1] == before.split('irviz-step-times"')[1]


def test_measuring_says_what_it_does_and_what_is_out_of_date_is_left_out(
    host, machines, monkeypatch
):
    there, go = threading.Event(), threading.Event()

    def waits(*arguments, on_progress, **named):
        on_progress("round 1 of 10")
        there.set()
        go.wait(20)
        return machines.measure(*arguments, on_progress=on_progress, **named)

    async def measuring():
        monkeypatch.setattr(measure_schedule, "measure", waits)
        host.automatic().value = True
        host.dispatch(Apply(schedule_step("mm_relu", "unroll", LoopAddress("Y", 0))))
        while not there.is_set() or "round" not in host.find("irviz-schedule-time").value:
            await asyncio.sleep(0.01)
        words = host.find("irviz-schedule-time").value
        assert "measuring mm_relu: round 1 of 10" in words
        assert host.button("Cancel") is not None
        host.dispatch(Apply(schedule_step("mm_relu", "vectorize", LoopAddress("Y", 0))))
        host.dispatch(Apply(schedule_step("mm_relu", "parallel", LoopAddress("Y", 0))))
        while len(host.session.stages) < 4:
            await asyncio.sleep(0.01)
        go.set()
        while host.button("Cancel") is not None:
            await asyncio.sleep(0.01)

    asyncio.run(measuring())
    assert [names[-1] for names in machines.measured] == ["1 unroll", "3 parallel"]
    assert "results equal" in host.find("irviz-schedule-time").value


def test_symbolic_sizes_can_be_chosen_for_the_measurement(hosted, machines):
    host = hosted(function="add")
    host.button("Measure all").click()
    sizes = host.button("sizes")
    assert len(host.rows) == 1
    sizes.value = "n=16"
    assert host.rows == []
    host.button("Measure all").click()
    asked = [(function, sizes) for function, sizes, _ in machines.ran]
    assert asked == [("add", {"n": 128}), ("add", {"n": 16})]
    sizes.value = "sixteen"
    assert "'sixteen' is not a size: write sizes such as n=128" in host.error_at("irviz-step-sizes")
    assert host.state.step_sizes == {"n": 16}


def test_the_loops_of_the_nest_can_be_chosen_by_address(host):
    addresses = set(loop_addresses(host.state).values())
    assert {BlockAddress("Y"), LoopAddress("Y", 2), LoopAddress("C", 1)} <= addresses
