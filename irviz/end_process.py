"""End a child process, by force where it does not end by itself."""

from __future__ import annotations

import subprocess
from typing import Any

_SECONDS = 10.0


def end_process(process: subprocess.Popen[Any]) -> None:
    """Ask a process to end, kill it where it has not done so within ten seconds, and reap it."""
    process.terminate()
    try:
        process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
