"""`irviz reduce` makes the module of a file smaller, as a script of the user's tells."""

import runpy

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
