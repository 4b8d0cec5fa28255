"""A process tells what it does in a page of memory, which another one reads."""

import subprocess
import sys
from pathlib import Path

import pytest

from irviz.worker import progress
from irviz.worker.progress import Progress, attach, tell


@pytest.fixture
def page(monkeypatch):
    """Return a page that this very process writes into."""
    monkeypatch.setattr(progress, "_page", None)
    made = Progress()
    attach(made.path)
    return made


def test_the_last_words_are_read(page):
    assert page.words() == ""
    tell("building")
    assert page.words() == "building"
    tell("run")
    assert page.words() == "run"


def test_words_are_one_line_and_cut_where_they_are_too_long(page):
    tell("one\ntwo")
    assert page.words() == "one two"
    tell("é" * 1_000)
    assert set(page.words()) <= {"é", "\ufffd"}
    assert 100 < len(page.words()) <= 256


def test_it_is_read_after_the_end_of_the_process_that_wrote():
    made = Progress()
    program = f"""
import os
from irviz.worker.progress import attach, tell
attach({made.path!r})
tell("the last words")
os.abort()
"""
    subprocess.run([sys.executable, "-c", program])
    assert not Path(made.path).exists()
    assert made.words() == "the last words"
    made.close()
    assert made.words() == "the last words"


def test_where_nobody_reads_it_may_be_told_as_well(monkeypatch):
    monkeypatch.setattr(progress, "_page", None)
    tell("to nobody")
