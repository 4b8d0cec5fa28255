"""`irviz open FILE`: the explorer on a file, in the browser."""

from __future__ import annotations

import argparse

from irviz.cli.options import Commands, add_file, add_function, add_page


def add_open(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("open", help="open the explorer on a file")
    add_file(parser, is_optional=True)
    add_function(parser)
    add_page(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from irviz.cli.page_launcher import START, serve

    serve(
        START if options.file is None else str(options.file.resolve()),
        options.module,
        options.function,
        port=options.port,
        place=options.place,
    )
