"""`irviz diff A B`: the differences between two modules or recordings, as text or a picture."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from irviz.cli.options import Commands, print_notes

if TYPE_CHECKING:
    from irviz.session.session import Session
    from irviz.view.module_diff import Diff


def add_diff(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "diff",
        help="print what differs between two modules or recordings; exit code 1 if anything does",
    )
    for name, which in (("before", "the module before"), ("after", "the module after")):
        parser.add_argument(
            name, metavar=name.upper(), help=f"{which}: a file, or a stage as work.irviz#1"
        )
    parser.add_argument(
        "--module", default="", metavar="NAME", help="the module to read, if a file defines several"
    )
    parser.add_argument("--function", default="", metavar="NAME", help="only this function")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="draw to this .svg file")
    parser.add_argument("--around", default="", metavar="NAME", help="with -o: only near this node")
    parser.add_argument("--steps", type=int, default=1, help="its radius in uses; default: 1")
    parser.add_argument(
        "--to", default="", metavar="NAME", help="with --around: only the paths between the two"
    )
    parser.add_argument("--theme", default="course", help="with -o: course or dark")
    parser.add_argument("--direction", default="up", help="with -o: where data flows, up or down")
    parser.add_argument(
        "--layout", default="beside", help="with -o: the module before is beside or above"
    )
    parser.add_argument("--overlay", action="store_true", help="with -o: draw both in one picture")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from irviz.session.open_diff import diff, recordings

    both = recordings(options.before, options.after)
    if both is not None and not options.function:
        return _run_recordings(options, *both)
    found = diff(options.before, options.after, options.function, module=options.module)
    if options.output:
        _draw(options, found)
        return 1 if found else 0
    if options.json:
        text = json.dumps(found.to_dict(), indent=1) + "\n"
    else:
        has_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        text = found.text(colour=has_colour)
    sys.stdout.write(text)
    return 1 if found else 0


def _draw(options: argparse.Namespace, found: Diff | None) -> None:
    """Draw the differences, if any, to the output file."""
    if not found:
        print_notes([f"nothing differs: {options.output} is not written"])
        return
    found.save(
        options.output,
        options.function,
        around=options.around,
        steps=options.steps,
        to=options.to,
        theme=options.theme,
        direction=options.direction,
        layout=options.layout,
        overlay=options.overlay,
    )


def _run_recordings(options: argparse.Namespace, before: Session, after: Session) -> int:
    """Print or draw where two recordings diverge."""
    from irviz.session.pipeline_comparison import compare_pipelines

    found = compare_pipelines(before, after, (options.before, options.after))
    if options.output:
        _draw(options, found.diff)
    elif options.json:
        sys.stdout.write(json.dumps(found.to_dict(), indent=1) + "\n")
    else:
        sys.stdout.write(f"{found}\n")
        if found.diff:
            sys.stdout.write(f"\n{found.diff}\n")
    return 1 if found else 0
