"""The JavaScript of the canvas is tested by Node's own test runner."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def test_the_canvas_keeps_its_promises_in_node() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node: install Node.js 20 or newer to run the JavaScript tests")
    tests = sorted(Path(__file__).parent.glob("*.test.mjs"))
    done = subprocess.run([node, "--test", *tests], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass" in done.stdout or "ℹ pass" in done.stdout
