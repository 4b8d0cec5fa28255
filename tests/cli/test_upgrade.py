"""`irviz upgrade` shows a diff and notes, and writes only when it is asked to."""

import json
import os
from pathlib import Path

import pytest

from irviz.cli.main import main

pytestmark = pytest.mark.worker

OLD = "import tvm\nfrom tvm import relay\nx = tvm.nd.array(y)\n"
NEW = "import tvm\nfrom tvm import relay\nx = tvm.runtime.tensor(y)\n"


def _end(*_):
    os._exit(1)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "old.py"
    path.write_bytes(OLD.encode())
    return path


def test_a_diff_and_notes_are_shown_and_nothing_is_written(script, capsys):
    assert main(["upgrade", str(script)]) == 0
    shown = capsys.readouterr()
    assert "-x = tvm.nd.array(y)\n+x = tvm.runtime.tensor(y)\n" in shown.out
    assert shown.out.startswith("--- old.py\n+++ old.py (upgraded)\n")
    assert shown.err.startswith("old.py, line 2: tvm.relay: ")
    assert script.read_text() == OLD
    assert list(script.parent.iterdir()) == [script]


def test_the_file_is_written_when_that_is_asked_for(script, capsys):
    script.chmod(0o640)
    assert main(["upgrade", "-w", str(script)]) == 0
    assert script.read_text() == NEW
    assert script.stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().out
    assert main(["upgrade", "-w", str(script)]) == 0
    assert capsys.readouterr().out == ""


def test_another_file_is_written_and_the_first_one_stays(script, capsys):
    other = script.with_name("new.py")
    assert main(["upgrade", str(script), "--output", str(other)]) == 0
    assert (script.read_text(), other.read_text()) == (OLD, NEW)
    assert capsys.readouterr().out


def test_a_notebook_and_line_ends_are_written_as_they_were(tmp_path, capsys):
    path = tmp_path / "a.ipynb"
    cell = {"cell_type": "code", "source": ["tvm.nd.array(y)"], "outputs": [], "metadata": {}}
    path.write_text(json.dumps({"cells": [cell], "nbformat": 4}))
    assert main(["upgrade", "-w", str(path)]) == 0
    assert json.loads(path.read_text())["cells"][0]["source"] == ["tvm.runtime.tensor(y)"]
    windows = tmp_path / "a.py"
    windows.write_bytes(OLD.replace("\n", "\r\n").encode())
    assert main(["upgrade", "-w", str(windows)]) == 0
    assert windows.read_bytes() == NEW.replace("\n", "\r\n").encode()
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.py", b"x = (\n", "line 1: this is not Python"),
        ("a.py", b"\xff\xfe", "is not text in UTF-8: byte 0"),
        ("a.ipynb", b"{", "the notebook is not JSON"),
        ("a.bin", b"x", "is not a file with code"),
        ("gone.py", None, "No such file"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, capsys, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert main(["upgrade", "-w", str(path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("irviz: ")
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert content is None or path.read_bytes() == content


def test_a_byte_order_mark_is_kept(tmp_path, capsys):
    path = tmp_path / "old.py"
    path.write_bytes(b"\xef\xbb\xbf" + OLD.encode())
    assert main(["upgrade", "-w", str(path)]) == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + NEW.encode()
    assert "-x = tvm.nd.array(y)" in capsys.readouterr().out


def test_a_process_that_ends_while_it_upgrades_is_one_sentence(script, capsys, monkeypatch):
    monkeypatch.setattr("irviz.loaders.upgrade.upgrade.upgrade_with_diff", _end)
    assert main(["upgrade", "-w", str(script)]) == 2
    assert "cannot upgrade" in capsys.readouterr().err
    assert script.read_text() == OLD


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_not_waited_for(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.py")
    assert main(["upgrade", str(tmp_path / "pipe.py")]) == 2
    assert "is a device or a pipe: give the path of a regular" in capsys.readouterr().err


def test_too_little_memory_is_one_sentence(script, capsys, monkeypatch):
    def greedy(_):
        raise MemoryError

    monkeypatch.setattr(Path, "read_bytes", greedy)
    assert main(["upgrade", str(script)]) == 2
    assert capsys.readouterr().err.startswith("irviz: this takes more memory than there is")


def test_two_places_to_write_to_are_refused(script, capsys):
    assert main(["upgrade", "-w", str(script), "--output", "new.py"]) == 2
    assert "give one of them" in capsys.readouterr().err
    assert script.read_text() == OLD
