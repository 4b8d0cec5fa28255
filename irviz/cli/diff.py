"""`irviz diff A B`: what differs between two modules, as text."""

from __future__ import annotations

import argparse
import json
import os
import sys

from irviz.cli.options import Commands


def add_diff(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "diff", help="print what differs between two modules; exit code 1 where anything does"
    )
    for name, which in (("before", "the module before"), ("after", "the module after")):
        parser.add_argument(
            name, metavar=name.upper(), help=f"{which}: a file, or a stage as work.irviz#1"
        )
    parser.add_argument("--module", default="", metavar="NAME", help="where a file defines several")
    parser.add_argument("--function", default="", metavar="NAME", help="only this function")
    parser.add_argument("--json", action="store_true", help="print the data instead of text")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from irviz.session.open_diff import diff

    found = diff(options.before, options.after, options.function, module=options.module)
    if options.json:
        text = json.dumps(found.to_dict(), indent=1) + "\n"
    else:
        has_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        text = found.text(colour=has_colour)
    sys.stdout.write(text)
    return 1 if found else 0
