"""Options that several commands have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What `add_subparsers` returns: a command adds its parser to it."""


def add_file(parser: argparse.ArgumentParser, *, is_optional: bool = False) -> None:
    """Add the file to read a module from, and the module's name."""
    words = ".py, .ipynb, .json, .pt2, .onnx" + (
        "; without it: a list to choose from" * is_optional
    )
    count = "?" if is_optional else None
    parser.add_argument("file", type=Path, nargs=count, metavar="FILE", help=words)
    parser.add_argument("--module", default="", metavar="NAME", help="where it defines several")


def add_function(parser: argparse.ArgumentParser) -> None:
    """Add the function to begin with."""
    parser.add_argument(
        "--function", default="", metavar="NAME", help='default: "main", or the first by its name'
    )


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add how the explorer is served."""
    parser.add_argument("--port", type=_port, default=0, help="default: any free one")
    place = parser.add_mutually_exclusive_group()
    for option, name, words in _PLACES:
        place.add_argument(option, dest="place", action="store_const", const=name, help=words)
    parser.set_defaults(place="any")


_PLACES = (
    ("--window", "window", "in a window of its own, which ends irviz when it is closed"),
    ("--browser", "browser", "in the browser, also where pywebview is installed"),
    ("--no-browser", "nowhere", "only print the address"),
)


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 2**16:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 0 to 65535")


def print_notes(notes: Sequence[str]) -> None:
    """Print each note as a line of standard error."""
    for note in notes:
        print(f"irviz: {note}", file=sys.stderr)  # noqa: T201
