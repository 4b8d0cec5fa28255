"""`irviz draw FILE -o OUT`: a picture of a function."""

from __future__ import annotations

import argparse
from pathlib import Path

from irviz.cli.options import Commands, add_file, add_function, open_file, print_notes


def add_draw(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("draw", help="draw a function of a module to a file")
    add_file(parser)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="a .svg, .pdf, .png or .dot file"
    )
    add_function(parser)
    parser.add_argument("--theme", default="course", help="course or dark")
    parser.add_argument("--direction", default="up", help="up or down")
    parser.add_argument(
        "--around", default="", metavar="NAME", help="draw only the neighbourhood of this node"
    )
    parser.add_argument("--steps", type=int, default=1, help="its radius in uses; default: 1")
    parser.add_argument(
        "--to", default="", metavar="NAME", help="with --around: only the paths between the two"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from irviz.session.open_session import part

    view = part(options.around, options.steps, options.to)
    session = open_file(options)
    figure = session.draw(view=view, theme=options.theme, direction=options.direction)
    figure.save(options.output)
    print_notes([figure.note] if figure.note else [])
