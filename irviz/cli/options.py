"""Options shared by several commands."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from irviz.errors import IrvizError

if TYPE_CHECKING:
    from irviz.session.session import Session

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The result of `add_subparsers`, to which each command adds its parser."""


def add_file(parser: argparse.ArgumentParser, *, is_optional: bool = False) -> None:
    """Add the options for the file to read and the module in it."""
    words = ".py, .ipynb, .json, .pt2, .onnx, .irviz" + (
        "; without it: a list to choose from" * is_optional
    )
    count = "?" if is_optional else None
    parser.add_argument("file", type=Path, nargs=count, metavar="FILE", help=words)
    parser.add_argument(
        "--module", default="", metavar="NAME", help="the module to read, if it defines several"
    )


def open_file(options: argparse.Namespace) -> Session:
    """Open the file of a command as a session, and print notes on that."""
    from irviz.session.open_session import load

    with warnings.catch_warnings(record=True) as notes:
        session = load(options.file, name=options.module, function=options.function)
    print_notes([str(note.message) for note in notes])
    return session


def add_function(parser: argparse.ArgumentParser) -> None:
    """Add the option for the function to show first."""
    parser.add_argument(
        "--function", default="", metavar="NAME", help='the function; default: "main", or the first'
    )


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the options for serving the explorer."""
    parser.add_argument("--port", type=_port, default=0, help="default: any free port")
    place = parser.add_mutually_exclusive_group()
    for option, name, words in _PLACES:
        place.add_argument(option, dest="place", action="store_const", const=name, help=words)
    parser.set_defaults(place="any")


_PLACES = (
    ("--window", "window", "in a desktop window; closing it ends irviz"),
    ("--browser", "browser", "in the browser, even if pywebview is installed"),
    ("--no-browser", "nowhere", "only print the address"),
)


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 2**16:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number from 0 to 65535")


def print_notes(notes: Sequence[str]) -> None:
    """Print each note on a line of standard error."""
    for note in notes:
        print(f"irviz: {note}", file=sys.stderr)  # noqa: T201


# --- The error messages of the command line ------------------------------------------------------


FAILURES = (IrvizError, OSError, ValueError, RuntimeError, ImportError, MemoryError)
"""The errors that a command may fail with; any other is a bug in irviz."""


def failure_words(failure: BaseException) -> str:
    """Describe a command's error in one sentence."""
    if isinstance(failure, ImportError):
        return f"{failure}: install what irviz needs with pip install irviz"
    if isinstance(failure, MemoryError):
        return "this takes more memory than there is: try a smaller file"
    return " ".join(str(failure).split())
