"""The command line does its work or says in one sentence what is wrong, and leaves no litter."""

import json
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import tvm
from tvm import relax

import irviz
from irviz.cli import page_server
from irviz.cli.main import demo_stages, main
from irviz.cli.page_launcher import PageRequest
from irviz.course.mlp import MODULES, MyModuleStatic

pytestmark = pytest.mark.worker


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the path of a module in TVM's JSON."""
    path = tmp_path_factory.mktemp("saved") / "mlp.json"
    path.write_text(tvm.ir.save_json(MyModuleStatic), encoding="utf-8")
    return path


def irviz_process(*arguments, cwd):
    """Run the command line as a user does; return the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "irviz.cli.main", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
    )


def refused(capsys, directory, *arguments):
    """Run a command that must fail; return its one sentence."""
    before = sorted(directory.rglob("*"))
    assert main([str(argument) for argument in arguments]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert re.fullmatch(r"irviz: .+\n", written.err)
    assert "Traceback" not in written.err
    assert sorted(directory.rglob("*")) == before
    return written.err.removeprefix("irviz: ").strip()


# --- what it does ------------------------------------------------------------------------------


def test_the_version_is_told(tmp_path, capsys):
    done = irviz_process("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"irviz {irviz.__version__}\n", "")
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"irviz {irviz.__version__}\n"


def test_a_file_is_drawn_to_a_file(tmp_path, saved):
    done = irviz_process("draw", saved, "-o", "out.svg", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "out.svg\n", "")
    assert [p.name for p in tmp_path.iterdir()] == ["out.svg"]
    drawn = (tmp_path / "out.svg").read_text(encoding="utf-8")
    assert drawn == irviz.draw(MyModuleStatic).svg
    ElementTree.fromstring(drawn)


def test_one_of_the_modules_of_a_script_is_drawn(tmp_path, capsys):
    body = MyModuleStatic.script()
    path = tmp_path / "two.py"
    two = "\n".join(body.replace("Module", name) for name in ("First", "Last"))
    path.write_text(two, encoding="utf-8")
    assert main(["draw", str(path), "-o", str(tmp_path / "b.svg"), "--module", "Last"]) == 0
    assert (tmp_path / "b.svg").read_text(encoding="utf-8") == irviz.draw(MyModuleStatic).svg
    assert capsys.readouterr().out == f"{tmp_path / 'b.svg'}\n"
    said = refused(capsys, tmp_path, "draw", path, "-o", tmp_path / "a.svg")
    assert said == f"{str(path)!r} defines 2 modules: name one of 'First', 'Last'"


def test_a_notebook_is_drawn_to_a_file(tmp_path, capsys):
    body = MyModuleStatic.script()
    content = {"cells": [{"cell_type": "code", "source": body}], "metadata": {}, "nbformat": 4}
    path = tmp_path / "lecture.ipynb"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert main(["draw", str(path), "-o", str(tmp_path / "a.svg")]) == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == irviz.draw(MyModuleStatic).svg


@pytest.mark.parametrize("suffix", ["dot", "svg"])
def test_format_theme_direction_and_function_can_be_chosen(tmp_path, saved, suffix):
    target = tmp_path / f"out.{suffix}"
    options = ["--theme", "dark", "--direction", "down", "--function", "main"]
    figure = irviz.draw(MyModuleStatic, theme="dark", direction="down")
    expected = {"dot": figure.dot, "svg": figure.svg}[suffix]
    assert main(["draw", str(saved), "--output", str(target), *options]) == 0
    assert target.read_text(encoding="utf-8") == expected


def test_of_several_functions_the_first_or_the_chosen_one_is_drawn_and_opened(
    tmp_path, capsys, monkeypatch, modules
):
    path, target = tmp_path / "two.py", tmp_path / "out.svg"
    path.write_text(modules.TwoFunctions.script(), encoding="utf-8")
    for chosen, options in (("first", []), ("second", ["--function", "second"])):
        assert main(["draw", str(path), "-o", str(target), *options]) == 0
        assert target.read_text(encoding="utf-8") == irviz.draw(path, chosen).svg
    served = []
    monkeypatch.setattr("irviz.cli.page_launcher.serve", lambda *given, **_: served.append(given))
    assert main(["open", str(path), "--function", "second", "--missing", "opaque"]) == 0
    [(request, _)] = served
    assert (request.what, request.name) == (str(path), "")
    assert (request.function, request.missing) == ("second", "opaque")
    capsys.readouterr()
    monkeypatch.undo()
    assert main(["open", str(path), "--function", "third", "--no-browser"]) == 2
    assert capsys.readouterr().err == (
        "irviz: the module has no function 'third'; its Relax functions are 'first', 'second': "
        "give one of these\n"
    )


@pytest.mark.parametrize("command", ["draw", "export", "diff"])
def test_a_name_that_nothing_can_be_written_to_is_said_before_the_file_is_read(
    tmp_path, capsys, command
):
    files = [tmp_path / "nowhere.py"] * (2 if command == "diff" else 1)
    said = refused(capsys, tmp_path, command, *files, "-o", tmp_path / "out.exe")
    assert "give a name ending in" in said


def test_the_page_begins_with_the_module_and_the_function_that_it_is_started_for(monkeypatch):
    monkeypatch.setattr(
        "irviz.session.open_session.load", lambda *given, **options: (given, options)
    )
    request = PageRequest("a.py", "Last", "second", "opaque")
    options = {"name": "Last", "function": "second", "missing": "opaque"}
    assert page_server.session_of_page("a.py", request, "opaque") == (("a.py",), options)
    # another one that is chosen in its place has other names
    assert page_server.session_of_page("b.py", request, "opaque") == (
        ("b.py",),
        {"missing": "opaque"},
    )


def test_a_part_can_be_drawn_and_a_node_that_is_not_there_is_named(tmp_path, saved, capsys):
    target = tmp_path / "out.svg"
    part = ["--around", "lv1", "--steps", "1"]
    assert main(["draw", str(saved), "-o", str(target), *part]) == 0
    assert target.read_text(encoding="utf-8") == irviz.draw(MyModuleStatic, around="lv1").svg
    assert main(["draw", str(saved), "-o", str(target), "--around", "x", "--to", "out"]) == 0
    assert main(["draw", str(saved), "-o", str(target), "--around", "lv9"]) == 2
    assert "'lv9' is not a node of 'main'" in capsys.readouterr().err


def test_a_plainer_layout_is_said(tmp_path, capsys):
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([2], "float32"))
    with builder.function("main", [x]):
        values = [builder.emit(relax.op.add(x, x)) for _ in range(20)]
        for _ in range(20):
            values.append(builder.emit(relax.Tuple(values[:20])))
        builder.emit_func_output(values[-1])
    path = tmp_path / "thicket.json"
    path.write_text(tvm.ir.save_json(builder.get()), encoding="utf-8")
    assert main(["draw", str(path), "-o", str(tmp_path / "a.svg")]) == 0
    assert "would take too long for 440 edges: this is a plainer one" in capsys.readouterr().err


def test_a_module_drawn_with_its_constants_survives_the_file(tmp_path):
    bound = demo_stages().current.module
    path = tmp_path / "bound.json"
    path.write_text(tvm.ir.save_json(bound), encoding="utf-8")
    assert main(["draw", str(path), "-o", str(tmp_path / "bound.svg")]) == 0
    drawn = (tmp_path / "bound.svg").read_text(encoding="utf-8")
    assert drawn == irviz.draw(bound).svg
    assert drawn.count('class="node constant"') == 4


def test_the_demo_writes_a_picture_and_reports_a_line_a_stage(tmp_path, capsys):
    assert main(["demo", "--svg", str(tmp_path / "demo.svg")]) == 0
    written = capsys.readouterr()
    assert written.err == ""
    _, *rows = written.out.splitlines()
    number = r"\d+(?:\.\d+)?"
    line = re.compile(
        rf"(?P<id>\d)  +(?P<label>\S.*?\S)  +(?P<right>\d+) of (?P<all>\d+)  +"
        rf"(?P<difference>{number}e[+-]\d+)  +(?P<verdict>\S.*?\S)  +{number} (?:µs|ms|s)"
    )
    found = [line.fullmatch(row).groupdict() for row in rows]
    assert [(f["id"], f["label"]) for f in found] == [
        ("0", "initial module"),
        ("1", "BindParams w0, b0, w1, b1"),
        ("2", "swap relu0 → env.relu"),
    ]
    assert len({(f["right"], f["all"]) for f in found}) == 1
    assert int(found[0]["right"]) >= 0.97 * int(found[0]["all"])
    assert found[0]["verdict"] == "equal"
    assert all(float(f["difference"]) < 1e-4 for f in found)
    drawn = (tmp_path / "demo.svg").read_text(encoding="utf-8")
    assert drawn == demo_stages().draw().svg


# --- what is wrong -----------------------------------------------------------------------------


def test_a_missing_file_is_named(tmp_path, capsys):
    said = refused(capsys, tmp_path, "draw", tmp_path / "none.json", "-o", tmp_path / "a.svg")
    path = str(tmp_path / "none.json")
    reason = "cannot be read (No such file or directory): check its name and permissions"
    assert said == f"{path!r} {reason}"


def test_a_process_that_fails_ends_with_2_and_one_line(tmp_path):
    (tmp_path / "notes.json").write_text("hello")
    done = irviz_process("draw", "notes.json", "-o", "a.svg", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "irviz: 'notes.json' is not an IRModule in TVM's JSON: it is not JSON"
    )
    assert done.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["notes.json"]


def test_what_the_page_cannot_show_says_so(tmp_path, capsys):
    assert "is a directory" in refused(capsys, tmp_path, "open", tmp_path)
    assert "No such file" in refused(capsys, tmp_path, "open", tmp_path / "nowhere.py")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["-o", "a.gif"],
            "cannot save 'a.gif': give a name ending in .svg or .pdf or .png or .dot",
        ),
        (["-o", "nowhere/a.svg"], "there is no directory 'nowhere'"),
        (
            ["-o", "a.svg", "--theme", "neon"],
            "there is no theme 'neon'; choose one of course, dark",
        ),
        (
            ["-o", "a.svg", "--direction", "left"],
            "there is no direction 'left'; choose one of up, down",
        ),
        (
            ["-o", "a.svg", "--function", "relu7"],
            "the module has no function 'relu7'; its Relax functions are 'main'",
        ),
    ],
)
def test_wrong_options_say_what_would_be_right(
    tmp_path, capsys, monkeypatch, saved, options, words
):
    monkeypatch.chdir(tmp_path)
    assert words in refused(capsys, tmp_path, "draw", saved, *options)


def test_a_place_that_cannot_be_written_is_left_alone(tmp_path, capsys, saved):
    (tmp_path / "a.svg").mkdir()
    said = refused(capsys, tmp_path, "draw", saved, "-o", tmp_path / "a.svg")
    assert "it is not a regular file" in said


@pytest.mark.parametrize("target", ["demo.gif", "nowhere/demo.svg"])
def test_the_demo_refuses_a_wrong_place_too(tmp_path, capsys, target):
    assert "cannot save" in refused(capsys, tmp_path, "demo", "--svg", tmp_path / target)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["bogus"],
        ["draw"],
        ["draw", "a.json"],
        ["open", "--window", "--no-browser"],
        ["demo", "--port", "x"],
        ["--bogus"],
    ],
)
def test_a_wrong_command_ends_with_2_and_says_how_it_goes(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err.startswith("irviz: ")
    assert written.err.endswith(" --help\n")
    assert written.err.count("\n") == 1


@pytest.mark.parametrize("name", MODULES)
def test_every_module_of_the_course_has_one_function_to_draw(name):
    assert irviz.draw(MODULES[name]) == irviz.draw(MODULES[name], "main")
