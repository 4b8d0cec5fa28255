"""A worker sends what it does through the pipe of its answers."""

import io

import pytest

from irviz.worker import responses
from irviz.worker.responses import report_progress


@pytest.fixture
def sent():
    """Return what this very process sends, as a worker, last."""
    pipe = io.BytesIO()
    responses.set_pipe(pipe)

    def last():
        read = io.BytesIO(pipe.getvalue())
        found = b""
        while read.tell() < len(pipe.getvalue()):
            kind, found = responses.receive_frame(read)
            assert kind == responses.PROGRESS
        return found.decode()

    yield last
    responses.set_pipe(None)


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


def test_where_nobody_reads_it_may_be_sent_as_well():
    report_progress("to nobody")


def test_a_text_that_utf_8_does_not_have_is_sent_with_escapes(sent):
    report_progress("\ud800")
    assert sent() == "\\ud800"


@pytest.mark.parametrize(
    "frame", [b"x" + bytes(8), b"p" + b"\xff" * 8, b"a" + b"\xff" * 8, b"\x80\x04\x95" + bytes(8)]
)
def test_what_is_no_frame_is_refused_before_it_is_read(frame):
    with pytest.raises(ValueError, match="no frame of a worker"):
        responses.receive_frame(io.BytesIO(frame))
