"""A report sets every stage against the first, as text and as HTML."""

import re

import numpy as np

from irviz.model.result import Comparison, RunResult, Verdict
from irviz.view.report import Report, Row

RIGHT = RunResult((np.eye(2, 10, dtype="float32")[:, None],), 8.5e-05, np.array([0, 1]))
PLAIN = RunResult((np.zeros((2, 3), "float32"),), 0.0012)

REPORT = Report(
    (
        Row("0", "given", RIGHT, Comparison(Verdict.EQUAL, 0.0, 2, 2, 1.0)),
        Row("1", "swap", PLAIN, Comparison(Verdict.CLOSE, 9.5e-07, None, 2, 1.0)),
        Row("2", "<b>", None, None, "it <failed>\n  here"),
    )
)


def test_as_text_it_has_a_line_for_each_stage_in_columns():
    assert str(REPORT).splitlines() == [
        "stage  made by  classes right  max |Δ|  results                   time of one input",
        "0      given    2 of 2         0.0e+00  equal                     85 µs",
        "1      swap                    9.5e-07  within tolerance          1.20 ms",
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
    unlabelled = Report(REPORT.rows[1:])
    assert "classes right" not in str(unlabelled)
    assert str(unlabelled).splitlines()[1].startswith("1      swap     9.5e-07")
    assert unlabelled._repr_html_().count("<th>") == 5
    assert unlabelled._repr_html_().count("<td") == 10


def test_an_empty_report_is_its_heads():
    assert len(str(Report(())).splitlines()) == 1
