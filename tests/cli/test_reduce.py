"""`irviz reduce` makes the module of a file smaller, as a script of the user's tells."""

import runpy
import signal
import subprocess
import sys
import time

import pytest

from irviz.cli.main import main
from irviz.course.mlp import MyModuleHighLevel

pytestmark = pytest.mark.worker


def test_the_module_and_a_script_of_it_are_written(tmp_path, capsys):
    file, check, out = tmp_path / "model.py", tmp_path / "check_it.py", tmp_path / "bug.py"
    file.write_text(MyModuleHighLevel.script())
    check.write_text("def still_fails(mod):\n    return 'nn.relu' in mod.script()\n")
    assert not main(["reduce", str(file), "--check", str(check), "-o", str(out)])
    assert "7 bindings became 1" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="the module fails"):
        runpy.run_path(out)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pass", "defines no still_fails: write a function"),
        ("1 / 0", "ZeroDivisionError"),
        ("def still_fails(mod): pass", "the module does not fail"),
    ],
)
def test_a_script_that_does_not_tell_is_refused(tmp_path, capsys, text, words):
    file, check = tmp_path / "model.py", tmp_path / "check_it.py"
    file.write_text(MyModuleHighLevel.script())
    check.write_text(text)
    assert main(["reduce", str(file), "--check", str(check)]) == 2
    assert words in capsys.readouterr().err


def test_the_first_interrupt_ends_the_search_and_the_smallest_module_is_printed(tmp_path):
    file, check, tried = (tmp_path / name for name in ("model.py", "check_it.py", "tried"))
    file.write_text(MyModuleHighLevel.script())
    check.write_text(
        "import time\n"
        "def still_fails(mod):\n"
        f"    with open({str(tried)!r}, 'a') as file:\n"
        "        file.write('.')\n"
        "    time.sleep(0.3)\n"
        "    return 'nn.relu' in mod.script()\n"
    )
    command = [sys.executable, "-m", "irviz.cli.main", "reduce", str(file), "--check", str(check)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (tried.exists() and len(tried.read_text()) > 2):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "stopped early" in printed
    assert "R.nn.relu" in printed
