"""`irviz figures`: draw the figures of a lecture from their programs, or check them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from irviz.cli.options import Commands


def add_figures(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("figures", help="draw the figures that a figures.toml declares")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these figures")
    parser.add_argument(
        "--file", type=Path, default=Path("figures.toml"), help="default: figures.toml"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit code 1 if a file no longer matches its program",
    )
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="write to this folder")
    parser.add_argument(
        "--format",
        action="append",
        choices=("svg", "pdf", "png"),
        help="can be repeated; default: as in the figures.toml",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from irviz.figures import check_figures, read_declarations, write_figures

    figures = read_declarations(options.file)
    figures = replace(
        figures,
        folder=options.to or figures.folder,
        formats=tuple(options.format or figures.formats),
    )
    if options.check:
        wrong = check_figures(figures, options.names)
        for each in wrong:
            print(each, file=sys.stderr)  # noqa: T201
        return 1 if wrong else 0
    for file in write_figures(figures, options.names):
        print(file)  # noqa: T201
    return 0
