"""irviz starts where nothing can be kept, and says once what it cannot keep."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from irviz.course.mlp import MyModule

pytestmark = pytest.mark.worker
HOMELESS = """
import os, pwd
del os.environ["HOME"]

def nobody(_):
    raise KeyError("this user is not known")

pwd.getpwuid = nobody
import irviz
from irviz.course.mlp import MyModule
print(irviz.draw(MyModule), os.environ["HOME"])
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has other homes")
def test_in_a_home_that_nobody_can_write_to_the_page_is_served(tmp_path: Path) -> None:
    home, file = "/dev/null", tmp_path / "model.py"
    file.write_text(MyModule.script())
    kept = ("IRVIZ_KERNELS", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in kept}
    with subprocess.Popen(
        [sys.executable, "-m", "irviz.cli.main", "open", str(file), "--no-browser"],
        env={**environment, "HOME": home, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().split()[3]
            opened = address.replace("/?", "/opened?")
            for each in (opened, address):
                with urllib.request.urlopen(each, timeout=60) as page:
                    text = page.read()
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
    assert b"<img" in text
    kernels, files = sorted(said.splitlines())
    assert kernels.startswith(f"irviz keeps no compiled kernels: '{home}")
    assert files.startswith(f"irviz keeps no list of opened files: '{home}")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pwd")
def test_a_user_without_a_home_and_without_a_name_gets_the_home_of_containers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOMELESS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("/\n")
