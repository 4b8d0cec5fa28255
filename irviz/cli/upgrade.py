"""`irviz upgrade FILE`: rewrite course code of any year for the installed TVM."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from irviz.atomic_write import atomic_write
from irviz.cli.options import Commands
from irviz.errors import LoadError, SaveError

MOST_BYTES: Final = 50_000_000


def add_upgrade(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("upgrade", help="rewrite older TVM code for the installed TVM")
    parser.add_argument(
        "file", type=Path, metavar="FILE", help=".py, .ipynb, or .md, .rst, .txt with code"
    )
    parser.add_argument(
        "-w", "--write", action="store_true", help="change the file instead of showing a diff"
    )
    parser.add_argument(
        "--output", type=Path, metavar="OUT", help="write the result to this file instead"
    )
    parser.set_defaults(run=run_upgrade)


def run_upgrade(options: argparse.Namespace) -> None:
    """Print the changes as a diff, and notes on what is left to do; optionally write the file.

    Raises LoadError if the file is not text or not code.
    """
    from irviz.loaders.file_errors import named
    from irviz.loaders.read_in_worker import read_in_worker
    from irviz.loaders.upgrade.code_files import upgrade_with_diff

    if options.write and options.output is not None:
        raise SaveError("-w overwrites FILE and --output writes another file: give one of them")
    path: Path = options.file
    old = _text(path)
    try:
        # a FileError continues a sentence
        with named(path.name):
            result, diff = read_in_worker(upgrade_with_diff, old, path.name)
    except ValueError as failure:
        raise LoadError(f"cannot upgrade {path}: {failure}") from failure
    target = path if options.write else options.output
    if target is not None and (target != path or result.text != old):
        with atomic_write(target) as partial:
            partial.write_bytes(result.text.encode("utf-8"))
    sys.stdout.write(diff)
    for note in result.notes:
        print(f"{path.name}, {note}", file=sys.stderr)  # noqa: T201


def _text(path: Path) -> str:
    if path.exists() and not path.is_file():  # a pipe or a device may never end
        raise LoadError(f"{path} is not a regular file: name one")
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise LoadError(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are read")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as failure:
        raise LoadError(f"{path} is not text in UTF-8: byte {failure.start} is not") from failure
