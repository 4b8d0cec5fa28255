"""Runs and comparisons in a line of text, as badges, and as bars or numbers."""

import html
import re
from dataclasses import replace

import numpy as np
import pytest

from irviz.model.runs.run_result import Comparison, OriginVerdict, RunResult, Verdict
from irviz.units import format_duration
from irviz.view.run_result_html import (
    comparison_details,
    comparison_summary,
    outputs_html,
    run_answer,
    run_badge,
    run_summary,
)


def words(text):
    return html.unescape(re.sub("<[^>]*>", "", text)).strip()


def comparison(verdict, difference=0.0, reason=""):
    return Comparison(verdict, difference, None, 1, 1.0, reason)


def scores(chosen, count=10, label=None):
    row = np.zeros((1, 1, count), "float32")
    row[0, 0, chosen] = 1
    return RunResult((row,), 0.001, None if label is None else np.array([label]))


def of_torch(found):
    return replace(scores(3), origin=OriginVerdict("torch", found, "first at <lv1>"))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (8.5e-08, "85 ns"),
        (8.5e-05, "85 µs"),
        (0.9999e-3, "1 ms"),
        (0.0012, "1.2 ms"),
        (0.25, "250 ms"),
        (1, "1 s"),
        (2.5, "2.5 s"),
    ],
)
def test_a_time_has_a_fitting_unit(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (comparison(Verdict.EQUAL), "equal"),
        (comparison(Verdict.CLOSE, 9.5e-07), "within tolerance, max |Δ| 9.5e-07"),
        (comparison(Verdict.DIFFERENT, 12.0), "different, max |Δ| 12"),
        (comparison(Verdict.DIFFERENT, float("inf")), "different, max |Δ| inf"),
        (comparison(Verdict.INCOMPARABLE, float("nan"), "why"), "not comparable: why"),
    ],
)
def test_a_comparison_is_put_in_words(found, text):
    assert comparison_summary(found) == text


def test_a_run_says_how_many_were_right_where_that_is_known():
    assert run_summary(scores(3, label=3)) == "1 of 1 right, 1 ms an input"
    assert run_summary(scores(3)) == "1 ms an input"


@pytest.mark.parametrize(
    ("result", "found", "error", "text", "colour"),
    [
        (None, None, "", "not run", ""),
        (None, None, "it <failed>", "✕ failed", "bad"),
        (scores(3), None, "it failed", "✕ failed", "bad"),
        (scores(3), None, "", "● reference 1 ms an input", "good"),
        (
            of_torch(comparison(Verdict.CLOSE, 1e-6)),
            None,
            "",
            "≈ against torch: within tolerance, max |Δ| 1e-06 1 ms an input",
            "good",
        ),
        (
            of_torch(comparison(Verdict.DIFFERENT, 2)),
            None,
            "",
            "≠ against torch: different, max |Δ| 2 1 ms an input",
            "bad",
        ),
        (of_torch(None), None, "", "not compared with torch 1 ms an input", ""),
        (scores(3), comparison(Verdict.EQUAL), "", "= equal 1 ms an input", "good"),
        (
            scores(3),
            comparison(Verdict.CLOSE, 1e-6),
            "",
            "≈ within tolerance, max |Δ| 1e-06 1 ms an input",
            "good",
        ),
        (
            scores(3),
            comparison(Verdict.DIFFERENT, 2),
            "",
            "≠ different, max |Δ| 2 1 ms an input",
            "bad",
        ),
        (
            scores(3),
            comparison(Verdict.INCOMPARABLE, 0, "<shapes>"),
            "",
            "? not comparable: <shapes> 1 ms an input",
            "bad",
        ),
    ],
)
def test_a_badge_has_a_sign_words_and_a_colour(result, found, error, text, colour):
    badge = run_badge(result, found, error)
    assert f"{badge.words} {badge.run}".strip() == text
    assert badge.kind == colour


def test_the_tooltip_has_what_the_short_line_has_no_room_for():
    found = Comparison(
        Verdict.CLOSE,
        9.5e-07,
        None,
        360,
        1.0,
        "output 0 is float16, the reference's is float32: compared as numbers",
        max_relative=1.2e-05,
        max_ulp=12345,
        worst_case=17,
        past=0,
        numbers=3600,
    )
    assert comparison_details(found).splitlines() == [
        "max |Δ| 9.5e-07",
        "max |Δ| / |reference| 1.2e-05",
        "at most 12,345 ULP (units in the last place) apart",
        "the largest |Δ| is in case 17",
        "past the tolerance: 0 of 3,600 numbers",
        "output 0 is float16, the reference's is float32: compared as numbers",
    ]
    assert run_badge(scores(3), found, "").details == comparison_details(found)


def test_the_tooltip_leaves_out_what_there_is_not():
    assert comparison_details(comparison(Verdict.DIFFERENT, 2.0)) == "max |Δ| 2"
    unlike = comparison(Verdict.INCOMPARABLE, 0, "<shapes>")
    assert comparison_details(unlike) == "not comparable: <shapes>"
    assert run_badge(scores(3), unlike, "").details == "not comparable: <shapes>"


def test_scores_are_bars_with_the_prediction():
    shown = outputs_html(scores(3, label=3), 0)
    assert "predicted class 3 right" in words(shown)
    assert shown.count("<meter") == 10
    assert re.findall('class="chosen"><th>(.)', shown) == ["3"]
    assert "wrong, it is 7" in words(outputs_html(scores(3, label=7), 0))


def test_bars_do_without_finite_or_different_scores():
    for number in (np.nan, np.inf, 0.0):
        row = np.full((1, 1, 4), number, "float32")
        shown = outputs_html(RunResult((row,), 1.0), 0)
        assert re.findall('value="([^"]*)"', shown) == ["0.000"] * 4


@pytest.mark.parametrize("base", [-5.0, 0.0, 70.0])
def test_bars_lead_from_the_smallest_score_to_the_largest_in_proportion(base):
    row = np.array([[[base, base + 1, base + 4, np.nan, base + 3]]], "float32")
    shown = outputs_html(RunResult((row,), 1.0), 0)
    lengths = [float(one) for one in re.findall('value="([^"]*)"', shown)]
    assert lengths == [0, 0.25, 1, 0, 0.75]


def test_other_outputs_are_numbers_with_their_shape_and_dtype():
    arrays = (np.zeros((2, 3, 4), "float32"), np.ones(2, "int64"), np.zeros((2, 100), "float16"))
    shown = words(outputs_html(RunResult(arrays, 1.0), 1))
    assert "output 0: 3×4, float32" in shown
    assert "output 1: scalar, int64" in shown
    assert "output 2: 100, float16" in shown
    assert "..." in shown


def test_many_scores_are_numbers():
    shown = outputs_html(scores(3, count=1000), 0)
    assert "<meter" not in shown
    assert "predicted class 3" in words(shown)


def test_a_badge_says_where_a_model_first_differs_from_torch():
    details = run_badge(of_torch(comparison(Verdict.DIFFERENT, 2)), None, "").details
    assert details == "differs from torch, max |Δ| 2, 0 of 0 numbers; first at <lv1>"


# --- what a run gave ---------------------------------------------------------------------------


def answer(result, found=None, error="", trace=None):
    return run_answer(result, found, "0", error, trace)


@pytest.mark.parametrize(
    ("found", "text", "kind"),
    [
        (None, "✓ ran · 1 ms", "good"),
        (comparison(Verdict.EQUAL), "✓ equal to 0 · 1 ms", "good"),
        (
            comparison(Verdict.CLOSE, 9.5e-07),
            "✓ within tolerance of 0, max |Δ| 9.5e-07 · 1 ms",
            "good",
        ),
        (comparison(Verdict.DIFFERENT, 0.5), "≠ different from 0, max |Δ| 0.5 · 1 ms", "bad"),
        (
            comparison(Verdict.INCOMPARABLE, reason="<shapes>"),
            "? not comparable with 0: <shapes> · 1 ms",
            "bad",
        ),
    ],
)
def test_an_answer_says_how_the_results_compare_and_how_long_a_case_takes(found, text, kind):
    given = answer(scores(3), found)
    assert (given.words, given.kind) == (text, kind)


def test_an_answer_has_how_many_are_right_and_why_a_run_failed():
    assert answer(scores(3, label=3)).words == "✓ ran · 1 of 1 right · 1 ms"
    failed = answer(None, error="no such input\nat line 3")
    assert (failed.words, failed.kind) == ("✕ failed: no such input", "bad")
    assert answer(None).words == ""


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn"])
def test_nan_among_the_results_is_never_good(dtype):
    result = RunResult((np.full((2, 3, 4), np.nan, np.dtype(dtype)),), 0.001)
    for found in (None, comparison(Verdict.EQUAL)):
        badge = run_badge(result, found, "")
        assert badge.words.startswith("⚠")
        assert "24 NaN" in badge.words
        assert badge.kind == "warn"
    assert answer(result).words == "⚠ 24 NaN · 1 ms"
    assert answer(result, comparison(Verdict.EQUAL)).words == "⚠ 24 NaN · equal to 0 · 1 ms"
    assert answer(result, comparison(Verdict.DIFFERENT, 1.0)).kind == "bad"
