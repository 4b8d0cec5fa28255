"""A process tells what it does in a page of memory, which another one reads."""

import subprocess
import sys
from pathlib import Path

import pytest

from irviz.worker import progress
from irviz.worker.progress import ProgressReader, attach_progress, report_progress


@pytest.fixture
def page(monkeypatch):
    """Return a page that this very process writes into."""
    monkeypatch.setattr(progress, "_page", None)
    made = ProgressReader()
    attach_progress(made.path)
    return made


def test_the_last_words_are_read(page):
    assert page.message() == ""
    report_progress("building")
    assert page.message() == "building"
    report_progress("run")
    assert page.message() == "run"


def test_words_are_one_line_and_cut_where_they_are_too_long(page):
    report_progress("one\ntwo")
    assert page.message() == "one two"
    report_progress("é" * 1_000)
    assert set(page.message()) <= {"é", "\ufffd"}
    assert 100 < len(page.message()) <= 256


@pytest.mark.worker
def test_it_is_read_after_the_end_of_the_process_that_wrote():
    made = ProgressReader()
    program = f"""
import os
from irviz.worker.progress import attach_progress, report_progress
attach_progress({made.path!r})
report_progress("the last words")
os.abort()
"""
    subprocess.run([sys.executable, "-c", program])
    assert not Path(made.path).exists()
    assert made.message() == "the last words"
    made.close()
    assert made.message() == "the last words"


def test_where_nobody_reads_it_may_be_told_as_well(monkeypatch):
    monkeypatch.setattr(progress, "_page", None)
    report_progress("to nobody")
