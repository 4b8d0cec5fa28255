"""Tables of stages, as text and as HTML."""

import re

import numpy as np

from irviz.model.runs.run_result import Comparison, RunResult, Verdict
from irviz.model.runs.timing_statistics import Measurement, Timing
from irviz.view.run_result_html import StageTable, StageTableRow, TimingTable

RIGHT = RunResult((np.eye(2, 10, dtype="float32")[:, None],), 8.5e-05, np.array([0, 1]))
PLAIN = RunResult((np.zeros((2, 3), "float32"),), 0.0012)

REPORT = StageTable(
    (
        StageTableRow("0", "given", RIGHT, Comparison(Verdict.EQUAL, 0.0, 2, 2, 1.0)),
        StageTableRow("1", "swap", PLAIN, Comparison(Verdict.CLOSE, 9.5e-07, None, 2, 1.0)),
        StageTableRow("2", "<b>", None, None, "it <failed>\n  here"),
    )
)


def test_as_text_it_has_a_line_for_each_stage_in_columns():
    assert str(REPORT).splitlines() == [
        "stage  made by  classes right  max |Δ|  results                   time of one input",
        "0      given    2 of 2         0.0e+00  equal                     85 µs",
        "1      swap                    9.5e-07  within tolerance          1.2 ms",
        "2      <b>                              failed: it <failed> here",
    ]
    assert repr(REPORT) == str(REPORT)


def test_as_html_it_has_a_row_for_each_stage_with_its_words_escaped():
    shown = REPORT._repr_html_()
    rows = re.findall("<tr>(.*?)</tr>", shown)
    assert len(rows) == 4
    assert re.findall("<td>(.*?)</td>", rows[3]) == [
        "2",
        "&lt;b&gt;",
        "",
        "",
        "failed: it &lt;failed&gt; here",
        "",
    ]
    assert "<b>" not in shown


def test_the_results_tell_the_rest_of_a_comparison_as_a_tooltip():
    rows = re.findall("<tr>(.*?)</tr>", REPORT._repr_html_(), re.DOTALL)
    assert '<td title="max |Δ| 9.5e-07">within tolerance</td>' in rows[2]
    assert "title" not in rows[3]


def test_a_column_that_nobody_fills_is_left_out():
    """Classes are right where there are labels: most modules have none."""
    unlabelled = StageTable(REPORT.rows[1:])
    assert "classes right" not in str(unlabelled)
    assert str(unlabelled).splitlines()[1].startswith("1      swap     9.5e-07")
    assert unlabelled._repr_html_().count("<th>") == 5
    assert unlabelled._repr_html_().count("<td") == 10


def test_an_empty_report_is_its_heads():
    assert len(str(StageTable(())).splitlines()) == 1


FAST, SLOW = tuple(1e-4 + n * 1e-8 for n in range(10)), tuple(2e-4 + n * 1e-8 for n in range(10))
NOISY = tuple(1e-4 * (0.5 + (n * 7 % 10) / 10) for n in range(10))


def times(**of):
    timings = tuple(Timing(stage, f"made by <{stage}>", seconds) for stage, seconds in of.items())
    return TimingTable(Measurement(timings))


def lines(found):
    return str(found).splitlines()


def test_each_stage_has_a_row_with_its_median_and_its_interval():
    head, slow, fast = lines(times(slow=SLOW, fast=FAST))
    assert head.split("  ")[0] == "stage"
    assert "median of a call" in head
    assert slow.startswith("slow   made by <slow>  200 µs")
    assert "200 µs to 200 µs" in slow
    assert "100 µs" in fast


def test_ratios_are_to_the_first_and_say_how_many_times_as_fast():
    found = times(slow=SLOW, fast=FAST)
    assert "×" not in lines(found)[1]
    assert "2.00× (2.00 to 2.00)" in lines(found)[2]
    assert found.ratio("fast").median > 1.9
    assert found.is_clear("fast")
    assert "0.50×" in lines(times(fast=FAST, slow=SLOW))[2]


def test_a_difference_that_noise_hides_is_told_as_such():
    found = times(first=FAST, other=NOISY)
    assert not found.is_clear("other")
    assert lines(found)[2].endswith("within the noise")
    assert "within the noise" not in str(times(slow=SLOW, fast=FAST))


def test_columns_stand_below_each_other():
    head, *rows = lines(times(a=SLOW, longer_name=FAST))
    at = head.index("made by")
    assert all(row[at:].startswith("made by <") for row in rows)
    assert not any(line.endswith(" ") for line in (head, *rows))
    assert repr(times(a=SLOW)) == str(times(a=SLOW))


def test_the_table_says_the_same_and_labels_are_text():
    found = times(slow=SLOW, fast=FAST)
    html = found._repr_html_()
    assert "made by &lt;fast&gt;" in html
    assert "<fast>" not in html
    assert html.count("<tr>") == 3
    for cell in ("200 µs", "100 µs", "2.00× (2.00 to 2.00)"):
        assert f"<td>{cell}</td>" in html


def test_the_clock_of_another_machine_is_named_and_that_of_this_one_is_not():
    timings = (Timing("0", "given", FAST),)
    here, there = TimingTable(Measurement(timings)), TimingTable(Measurement(timings, "pi:9090"))
    assert "clock" not in str(here) + here._repr_html_()
    assert "by the clock of pi:9090" in str(there)
    assert "by the clock of pi:9090" in there._repr_html_()
