"""`irviz export FILE -o OUT`: a page that needs no kernel or network, or times of passes."""

from __future__ import annotations

import argparse
from pathlib import Path

from irviz.atomic_write import target_path
from irviz.cli.options import Commands, add_file, add_function, open_file


def add_export(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "export", help="write a module or a session as one HTML page, or the times of a recording"
    )
    add_file(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, help="an .html file")
    parser.add_argument(
        "--times",
        action="store_true",
        help="write the times of recorded passes: -o OUT.json for Perfetto and speedscope, or a "
        "flame graph as .svg, .pdf or .png",
    )
    add_function(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from irviz.explorer.html_file import SUFFIX, save_html
    from irviz.view.pass_times import SUFFIXES

    suffixes = SUFFIXES if options.times else [SUFFIX]
    target_path(options.output, suffixes)  # before the time that the rest takes
    session = open_file(options)
    if options.times:
        session.pass_times().save(options.output)
    else:
        save_html(session, options.output)
