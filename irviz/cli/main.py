"""The command line: `irviz demo` and the other commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from irviz.cli.commands import (
    FAILURES,
    add_demo,
    add_diff,
    add_draw,
    add_export,
    add_figures,
    add_open,
    add_reduce,
    add_upgrade,
    failure_words,
)
from irviz.version import __version__

COMMANDS = (
    add_demo,
    add_draw,
    add_open,
    add_diff,
    add_reduce,
    add_export,
    add_figures,
    add_upgrade,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, which is 2 after an error message."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except FAILURES as failure:
        return _fail(failure_words(failure))
    except KeyboardInterrupt:
        return 130


def _fail(message: str) -> int:
    print(f"irviz: {message}", file=sys.stderr)  # noqa: T201
    return 2


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors on one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with code 2."""
        self.exit(2, f"irviz: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="irviz", description="See, transform and rerun Apache TVM's IRModules."
    )
    parser.add_argument("--version", action="version", version=f"irviz {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
