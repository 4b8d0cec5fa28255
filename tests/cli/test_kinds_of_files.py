"""Each command takes each kind of file that holds a module, or says truly why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tvm

import irviz
from irviz.cli.main import main
from irviz.course.mlp import MyModuleHighLevel
from irviz.session.session import Session

pytestmark = pytest.mark.worker

COMMANDS = {
    "draw": ["draw", "{file}", "-o", "out.svg"],
    "export": ["export", "{file}", "-o", "out.html"],
    "reduce": ["reduce", "{file}", "--check", "check.py", "--seconds", "20", "-o", "out.py"],
    "diff": ["diff", "{file}", "{file}"],
}


def _notebook(path: Path) -> str:
    import nbformat

    cell = nbformat.v4.new_code_cell(MyModuleHighLevel.script())
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path / "m.ipynb")
    return "m.ipynb"


def _text(name: str, make: Callable[[], str]) -> Callable[[Path], str]:
    def write(path: Path) -> str:
        (path / name).write_text(make(), "utf-8")
        return name

    return write


def _session(name: str, stage: str = "") -> Callable[[Path], str]:
    def write(path: Path) -> str:
        saved = Session(MyModuleHighLevel).apply("LegalizeOps").save(path / "saved.irviz")
        return f"{saved.rename(path / name).name}{stage}"

    return write


def _program(path: Path) -> str:
    torch = pytest.importorskip("torch", reason="this needs PyTorch: pip install 'irviz[torch]'")
    program = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    torch.export.save(program, str(path / "m.pt2"))
    return "m.pt2"


def _onnx(path: Path) -> str:
    onnx = pytest.importorskip("onnx", reason="this needs onnx: pip install 'irviz[onnx]'")
    values = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    relu = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([relu], "g", values[:1], values[1:])
    onnx.save(onnx.helper.make_model(graph), path / "m.onnx")
    return "m.onnx"


KINDS = {
    "script": _text("m.py", MyModuleHighLevel.script),
    "notebook": _notebook,
    "JSON": _text("m.json", lambda: tvm.ir.save_json(MyModuleHighLevel)),
    "session": _session("m.irviz"),
    "session of another name": _session("m.zip"),
    "stage of a session": _session("m.irviz", "#0"),
    "program": pytest.param(_program, marks=pytest.mark.torch),
    "ONNX": _onnx,
}


def _kinds() -> list[object]:
    return [
        pytest.param(*one.values, marks=one.marks, id=name)
        if hasattr(one, "marks")
        else pytest.param(one, id=name)
        for name, one in KINDS.items()
    ]


@pytest.fixture(params=_kinds())
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a file of a kind, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "check.py").write_text("def still_fails(mod):\n    return True\n", "utf-8")
    name: str = request.param(tmp_path)
    return name


def test_each_command_takes_the_file(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command, words in COMMANDS.items():
        assert main([one.format(file=file) for one in words]) == 0, command
        assert "irviz:" not in capsys.readouterr().err
    assert {one.name for one in Path().glob("out.*")} == {"out.svg", "out.html", "out.py"}


def test_upgrade_takes_code_and_says_what_else_a_file_is(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    is_code = file.endswith((".py", ".ipynb"))
    assert main(["upgrade", file.partition("#")[0]]) == (0 if is_code else 2)
    said = capsys.readouterr().err
    assert is_code or ("is not text" in said or "not a file with code" in said)
    assert "damaged" not in said


def test_what_is_drawn_of_a_session_is_its_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, session = _session("work.irviz")(tmp_path), Session(MyModuleHighLevel)
    assert irviz.load(f"{file}#0").current_id == "0"
    assert irviz.draw(f"{file}#0").svg == session.draw().svg
    assert irviz.draw(file).svg == session.apply("LegalizeOps").draw().svg
    with pytest.raises(irviz.NotFoundError, match="no function 'other'"):
        irviz.draw(file, "other")


def test_a_session_that_is_no_session_is_called_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "work.irviz"
    path.write_bytes(b"PK\x03\x04 and nothing else")
    assert main(["draw", str(path), "-o", str(tmp_path / "out.svg")]) == 2
    said = capsys.readouterr().err
    assert "work.irviz" in said
    assert "torch" not in said
