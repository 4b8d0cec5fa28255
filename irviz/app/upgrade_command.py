"""`irviz upgrade FILE`: course code of any year, in the dialect of the installed TVM."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import Final, TypeVar

from irviz.model.whole_file import whole_file

MOST_BYTES: Final = 50_000_000
_Parser = TypeVar("_Parser", bound=argparse.ArgumentParser)


def add_upgrade(commands: argparse._SubParsersAction[_Parser]) -> None:
    """Add the command to those of the command line."""
    parser = commands.add_parser("upgrade", help="rewrite older TVM code to the installed TVM's")
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a .py, .ipynb, or .md, .rst, .txt with code in it"
    )
    parser.add_argument("-w", "--write", action="store_true", help="write the file; else only show")
    parser.add_argument("--output", type=Path, metavar="OUT", help="write here and leave the file")
    parser.set_defaults(run=run_upgrade)


def run_upgrade(options: argparse.Namespace) -> None:
    """Print what changes as a diff and what is left as notes; write it when that is asked for.

    Raises ValueError for what cannot be read as text or as code, OSError for files.
    """
    from irviz.loaders.upgrade.document import upgraded_document

    if options.write and options.output is not None:
        raise ValueError("-w writes FILE and --output another one: give one of them")
    path: Path = options.file
    old = _text(path)
    try:
        result = upgraded_document(old, path.name)
    except ValueError as failure:
        raise ValueError(f"cannot upgrade {path}: {failure}") from failure
    target = path if options.write else options.output
    if target is not None and (target != path or result.text != old):
        with whole_file(target) as partial:
            partial.write_bytes(result.text.encode("utf-8"))
            if target == path:
                partial.chmod(path.stat().st_mode)
    sys.stdout.write(difference(old, result.text, path.name))
    for note in result.notes:
        print(f"{path.name}, {note}", file=sys.stderr)  # noqa: T201


def difference(old: str, new: str, name: str) -> str:
    """Return the unified diff of two texts, or nothing when they are one."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (upgraded)"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _text(path: Path) -> str:
    if path.exists() and not path.is_file():  # a pipe or a device may never end
        raise ValueError(f"{path} is no regular file: name one")
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise ValueError(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are read")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as failure:
        raise ValueError(f"{path} is not text in UTF-8: byte {failure.start} is not") from failure
