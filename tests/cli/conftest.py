"""What the tests of the command line share."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from irviz.cli import page_launcher


@pytest.fixture
def quick_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that sleeps, in place of the page's server, which takes seconds to start."""

    @contextlib.contextmanager
    def sleeping(*_: object, **__: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
        program = "import time; print({}, flush=True); time.sleep(60)"
        sleep = [sys.executable, "-S", "-c", program]
        with subprocess.Popen(
            sleep, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                yield process, f"http://127.0.0.1:1/?token={'t' * 32}"
            finally:
                process.kill()

    monkeypatch.setattr(page_launcher, "started", sleeping)
