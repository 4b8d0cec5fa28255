"""What takes long shows its progress in a terminal, and leaves nothing behind there."""

import io
import sys
import time
from collections.abc import Generator

import pytest

from irviz.progress import with_progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _steps(seconds: float) -> Generator[str, None, int]:
    for number in range(3):
        yield f"stage {number}"
        time.sleep(seconds)
    return 42


@pytest.mark.parametrize(("seconds", "is_shown"), [(0.6, True), (0.01, False)])
def test_what_takes_longer_than_a_second_shows_its_steps(
    monkeypatch: pytest.MonkeyPatch, seconds: float, is_shown: bool
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    assert with_progress(_steps(seconds), "session.html") == 42
    assert ("session.html: 3 steps" in terminal.getvalue()) == is_shown
    assert ("stage 2" in terminal.getvalue()) == is_shown
    assert terminal.getvalue().rpartition("\r")[2] == ""


def test_a_file_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)

    with_progress(_steps(0.6), "session.html")

    assert file.getvalue() == ""
