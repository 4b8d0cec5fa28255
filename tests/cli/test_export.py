"""`irviz export` writes a page, or says in one sentence why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from irviz.cli.main import demo_stages, main
from irviz.course.mlp import MyModule

pytestmark = pytest.mark.worker


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "mlp.py"
    path.write_text(MyModule.script(), "utf-8")
    return path


def test_a_file_and_a_saved_session_become_pages(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = demo_stages().save(tmp_path / "lecture.irviz")
    for file, name in ((script, "mlp.html"), (session, "lecture.html")):
        assert main(["export", str(file), "-o", str(tmp_path / name)]) == 0
        assert capsys.readouterr() == (f"{tmp_path / name}\n", "")
    assert "<title>mlp.py · irviz</title>" in (tmp_path / "mlp.html").read_text("utf-8")
    assert "<title>lecture.irviz · irviz</title>" in (tmp_path / "lecture.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mlp.py", "-o", "mlp.svg"], "give a name ending in .html"),
        (["mlp.py", "-o", "nowhere/mlp.html"], "there is no directory 'nowhere'"),
        (["other.py", "-o", "mlp.html"], "other.py"),
        (["mlp.py", "-o", "mlp.html", "--function", "no"], "'no'"),
    ],
)
def test_what_cannot_be_exported_is_said_in_a_sentence(
    script: Path,
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(script.parent)
    assert main(["export", *arguments]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.count("\n") == 1
    assert words in written.err
    assert [path.name for path in script.parent.iterdir()] == ["mlp.py"]
