"""The options of the commands as Markdown, from the parser of `irviz` itself."""

from __future__ import annotations

import argparse
import re

from irviz.cli.main import COMMANDS

_MARK = re.compile(r"<!-- options of (\w+) -->")


def with_options(text: str) -> str:
    """Return a page with the options of a command in the place of each mark."""
    if not _MARK.search(text):
        return text
    parsers = command_parsers()
    return _MARK.sub(lambda mark: option_table(parsers[mark[1]]), text)


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command, by its name."""
    commands = argparse.ArgumentParser(prog="irviz").add_subparsers()
    for add in COMMANDS:
        add(commands)
    return dict(commands.choices)


def option_table(parser: argparse.ArgumentParser) -> str:
    """Return a table of the arguments and options of a command."""
    options = [one for one in parser._actions if not isinstance(one, argparse._HelpAction)]
    rows = [f"| `{_names(one)}` | {_words(one)} |" for one in options]
    return "\n".join(["| argument | what it does |", "| --- | --- |", *rows])


def _names(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else _value(action)
    return " ".join([", ".join(action.option_strings), value]).strip()


def _value(action: argparse.Action) -> str:
    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"
    name = str(action.metavar or action.dest.upper())
    return {"?": f"[{name}]", "*": f"[{name} …]"}.get(str(action.nargs), name)


def _words(action: argparse.Action) -> str:
    words = (action.help or "").replace("|", "\\|").replace("<", "&lt;")
    return f"required: {words}" if action.option_strings and action.required else words
