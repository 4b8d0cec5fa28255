"""A worker sends what it does through the pipe of its answers."""

import io
import pickle

import pytest

from irviz.worker import progress
from irviz.worker.progress import report_progress


@pytest.fixture
def sent(monkeypatch):
    """Return what this very process sends, as a worker."""
    pipe = io.BytesIO()
    monkeypatch.setattr(progress, "_answers", pipe)
    return lambda: pickle.loads(pipe.getvalue()[pipe.getvalue().rindex(b"\x80") :])


def test_the_last_message_is_read(sent):
    report_progress("building")
    assert sent() == "building"
    report_progress("run")
    assert sent() == "run"


def test_a_message_is_one_line_and_cut_where_it_is_too_long(sent):
    report_progress("one\ntwo")
    assert sent() == "one two"
    report_progress("e" * 1_000)
    assert set(sent()) == {"e"}
    assert 100 < len(sent()) <= 256


def test_where_nobody_reads_it_may_be_sent_as_well(monkeypatch):
    monkeypatch.setattr(progress, "_answers", None)
    report_progress("to nobody")
