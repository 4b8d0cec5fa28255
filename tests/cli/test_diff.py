"""`irviz diff` prints what differs, and its exit code says whether anything does, as diff does."""

import json

import pytest
from tvm import relax

from irviz.cli.main import main
from irviz.course.mlp import MyModuleHighLevel
from irviz.session.session import Session

pytestmark = pytest.mark.worker


@pytest.fixture
def saved(tmp_path):
    session = Session(MyModuleHighLevel, isolate=False).apply("LegalizeOps")
    return session.save(tmp_path / "work.irviz")


def test_files_that_differ(tmp_path, capsys):
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text(MyModuleHighLevel.script())
    after.write_text(relax.transform.LegalizeOps()(MyModuleHighLevel).script())
    assert main(["diff", str(before), str(after)]) == 1
    text = capsys.readouterr().out
    assert text.startswith(f"--- {before}\n+++ {after}\n")
    assert "relax.nn.relu → relu" in text
    assert "\x1b" not in text
    assert main(["diff", str(before), str(before)]) == 0
    assert "do not differ" in capsys.readouterr().out


def test_stages_of_a_saved_session(saved, capsys):
    assert main(["diff", f"{saved}#0", f"{saved}#1"]) == 1
    assert "+++ 1 LegalizeOps" in capsys.readouterr().out
    assert main(["diff", f"{saved}#1", str(saved)]) == 0  # the current stage
    assert main(["diff", f"{saved}#0", f"{saved}#7"]) == 2
    assert "there is no stage '7'" in capsys.readouterr().err


def test_the_picture(saved, tmp_path, capsys):
    target = tmp_path / "lowered.svg"
    stages = [f"{saved}#0", f"{saved}#1"]
    assert main(["diff", *stages, "-o", str(target), "--theme", "dark", "--layout", "above"]) == 1
    assert target.read_text().startswith("<svg")
    assert capsys.readouterr().out == f"{target}\n"
    target.unlink()
    assert main(["diff", stages[0], stages[0], "-o", str(target)]) == 0
    assert not target.exists()
    assert "nothing differs" in capsys.readouterr().err
    assert main(["diff", *stages, "-o", str(target), "--layout", "behind"]) == 2
    assert "choose 'beside' or 'above'" in capsys.readouterr().err


def test_the_data_as_json(saved, capsys):
    assert main(["diff", "--json", f"{saved}#0", f"{saved}#1", "--function", "main"]) == 1
    found = json.loads(capsys.readouterr().out)
    (function,) = found["functions"]
    assert function["change"] == "changed"
    assert function["nodes"][0] == {
        "change": "same",
        "before": ["x"],
        "after": ["x"],
        "by": "variable or tensor",
        "differences": [],
        "callee": "",
        "parts": [],
    }


def test_what_is_no_module_is_an_error(tmp_path, saved, capsys):
    assert main(["diff", str(tmp_path / "missing.py"), str(saved)]) == 2
    assert main(["diff", str(saved), str(saved), "--function", "nowhere"]) == 2
    said = capsys.readouterr().err
    assert "neither module has a function 'nowhere'; they have " in said
    assert said.rstrip().endswith(" more")  # not all names
