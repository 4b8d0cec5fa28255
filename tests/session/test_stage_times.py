"""Times of passes: as trace events, as a flame graph, and of a recording that was saved."""

import json
from xml.etree import ElementTree

import pytest
import tvm
from tvm import relax

import irviz
from irviz.course.mlp import MyModuleHighLevel
from irviz.explorer.state import State
from irviz.explorer.viewer_traits import viewer_data
from irviz.transforms.stage import Stage
from irviz.view.pass_times import PassTimes, TimedPass

NASTY = "<script>alert('&')</script>\u202e"


@pytest.fixture(scope="module")
def recording():
    inner = [relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern()]
    outer = [relax.transform.FoldConstant(), tvm.transform.Sequential(inner)]
    with irviz.record() as recorded:
        tvm.transform.Sequential(outer)(MyModuleHighLevel)
    return recorded


def test_trace_events_are_complete_events_that_nest_as_passes_do(recording, tmp_path):
    saved = json.loads(recording.pass_times().save(tmp_path / "times.json").read_text())
    assert saved["displayTimeUnit"] in ("ms", "ns")
    names, events = [], []
    for event in saved["traceEvents"]:
        assert event["ph"] in ("X", "M")
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        (events if event["ph"] == "X" else names).append(event)
    assert {one["name"] for one in names} == {"process_name", "thread_name"}
    assert [one["name"] for one in events[1:]] == [step.name for step in recording.walk()]
    assert not [one for one in events if "args" in one]  # speedscope adds them to the name
    open_until = []
    for event in events:  # of one thread: each is inside of another one, or after it
        begin, end = (round(1000 * at) for at in (event["ts"], event["ts"] + event["dur"]))
        assert 0 <= begin <= end
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        assert not open_until or end <= open_until[-1]
        open_until.append(end)
    begins = [event["ts"] for event in events]
    assert begins == sorted(begins)


@pytest.mark.worker
def test_a_saved_recording_has_the_times_of_its_passes(recording, tmp_path):
    file = recording.session().save(tmp_path / "work.irviz")
    times = irviz.load(file).pass_times()
    assert sum(row.own for row in times.by_name) == pytest.approx(times.root.seconds)
    known = {row.name: row for row in recording.pass_times().by_name}
    found = {row.name: row for row in times.by_name}
    for name in ("FoldConstant", "LegalizeOps", "AnnotateTIROpPattern"):
        assert found[name].own == pytest.approx(known[name].own, abs=1e-5)
    passes = [one.name for _, one in times.root.walk()]
    assert passes[1:4] == ["sequential", "FoldConstant", "sequential"]


def test_the_explorer_knows_the_stage_that_each_pass_made(recording):
    session = recording.session()
    shown = viewer_data(State(session))["times"]
    made = {one["stage"]: one["name"] for one in shown}  # the innermost pass comes last
    assert made == {stage.id: stage.label for stage in session.stages[1:]}
    outermost = shown[0]
    assert (outermost["name"], outermost["stage"]) == ("sequential", session.stages[-1].id)
    assert (outermost["left"], outermost["width"]) == (0, 1)
    assert viewer_data(State(irviz.Session(MyModuleHighLevel)))["times"] == []


def test_a_flame_graph_shows_any_name_as_it_is():
    deep = TimedPass(NASTY, 0.0, 2.0, (TimedPass("inner", 0.5, 1.0, is_changed=True),))
    root = TimedPass("recording", 0.0, 4.0, (deep, TimedPass("short", 2.0, 1e-9)))
    times = PassTimes(root)
    picture = ElementTree.fromstring(times.figure().svg)
    bars = picture.findall("{*}g[@class='pass']")
    widths = [float(bar.find("{*}rect").get("width")) for bar in bars]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.01)
    assert len(bars) == 2
    assert not picture.findall(".//{*}script")
    assert "\u202e" not in times.figure().svg + str(times)
    assert "1 too short to draw" in times.figure("dark").svg


def test_a_bar_has_as_much_of_its_name_and_time_as_fits():
    widths = (400, 80, 60, 20, 596)  # in the 1156 px of all bars
    passes = [TimedPass("LambdaLift", 0.0, width / 1000) for width in widths]
    picture = ElementTree.fromstring(
        PassTimes(TimedPass("all", 0.0, 1.156, tuple(passes))).figure().svg
    )
    texts = []
    for bar in picture.findall("{*}g[@class='pass']"):
        rect, text = bar.find("{*}rect"), bar.find("{*}text")
        texts.append("" if text is None else text.text)
        if text is not None:
            end = float(text.get("x")) + 0.602 * float(text.get("font-size")) * len(text.text)
            assert end <= float(rect.get("x")) + float(rect.get("width"))
    assert texts == ["LambdaLift 400 ms", "LambdaLift", "Lambda…", "", "LambdaLift 596 ms"]


def test_a_session_without_recorded_passes_says_how_to_record():
    with pytest.raises(irviz.StageError, match=r"irviz\.record"):
        irviz.Session(MyModuleHighLevel).pass_times()


def test_a_file_with_passes_inside_a_million_others_has_times():
    stages = [
        Stage("0", MyModuleHighLevel),
        Stage("1", MyModuleHighLevel, "a", "0", seconds=1.0, enclosing_passes=("x",) * 10**6),
    ]
    times = irviz.Session.from_stages(stages).pass_times()
    assert times.root.seconds == 1
    assert times.figure().svg
