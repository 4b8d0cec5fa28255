"""Each command has a section with its options, and what its examples print is what it prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.option_tables import command_parsers, with_options
from irviz.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/command-line.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## irviz (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
_FILE = re.compile(r'^```\w+ title="([\w.]+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_TRANSCRIPT = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_VARIES = {r"[\d.]+ (?:ns|µs|ms|s)\b": "TIME", r"http://\S+": "ADDRESS", r" +": " "}


def transcripts() -> Iterator[tuple[str, str]]:
    """Return the commands of the page in order, each with what it prints."""
    for block in _TRANSCRIPT.findall(PAGE):
        for one in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = one.partition("\n")
            yield command, printed


def without_what_varies(text: str) -> str:
    for pattern, word in _VARIES.items():
        text = re.sub(pattern, word, text)
    return text.strip()


def run(command: str) -> str:
    """Run a command and return what it prints; the page of `irviz open` is ended by Ctrl-C."""
    program, *arguments = shlex.split(command)
    if "--no-browser" in arguments:
        return first_line(arguments)
    if program == "irviz":
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(arguments)
        return out.getvalue()
    return subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE, text=True).stdout


def first_line(arguments: list[str]) -> str:
    command = [sys.executable, "-m", "irviz.cli.main", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            return process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)


def test_each_command_has_a_section_with_its_options_and_an_example() -> None:
    assert SECTIONS.keys() == command_parsers().keys()
    for name, text in SECTIONS.items():
        assert f"<!-- options of {name} -->" in text
        assert f"$ irviz {name}" in text
        assert f"[`irviz {name}`](#irviz-{name})" in PAGE


def test_the_built_page_has_every_option_with_what_it_does() -> None:
    built = with_options(PAGE)
    assert "<!-- options" not in built
    for name, parser in command_parsers().items():
        for action in parser._actions[1:]:  # without --help
            assert action.help, f"irviz {name}: {action.dest} has no help"
            for option in action.option_strings:
                assert re.search(rf"^\| `[^`]*{option}\b", built, re.MULTILINE)


@pytest.mark.build
@pytest.mark.worker
def test_the_examples_print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in _FILE.findall(PAGE):
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command, expected in transcripts():
        assert without_what_varies(run(command)) == without_what_varies(expected), command
