"""The command line: `irviz demo`, `irviz draw FILE`, `irviz open FILE`, `irviz upgrade FILE`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import irviz
from irviz.app.upgrade_command import add_upgrade


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 after one sentence on what is wrong."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (OSError, ValueError, RuntimeError) as failure:
        words = " ".join(str(failure).split())
        print(f"irviz: {words}", file=sys.stderr)  # noqa: T201
        return 2
    except MemoryError:
        print("irviz: this takes more memory than there is: try a smaller file", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all others of the command are."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end with exit code 2."""
        self.exit(2, f"irviz: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="irviz", description="See, transform and rerun Apache TVM's IRModules.")
    parser.add_argument("--version", action="version", version=f"irviz {irviz.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="open the explorer on the lecture's MLP")
    demo.add_argument("--svg", type=Path, help="no browser: write a picture, and report in text")
    _add_page_options(demo)
    demo.set_defaults(run=_demo)

    draw = commands.add_parser("draw", help="draw a function of a module to a file")
    _add_file(draw)
    draw.add_argument("-o", "--output", type=Path, required=True, help="a .svg or .dot file")
    draw.add_argument("--function", default="", help='default: "main", or the only one')
    draw.add_argument("--theme", default="course", help="course or dark")
    draw.add_argument("--direction", default="up", help="up or down")
    draw.add_argument("--around", default="", metavar="NAME", help="only what is near this node")
    draw.add_argument("--steps", type=int, default=1, help="how near, in uses; default: 1")
    draw.add_argument("--to", default="", metavar="NAME", help="only what lies between the two")
    draw.set_defaults(run=_draw)

    opened = commands.add_parser("open", help="open the explorer on a file")
    _add_file(opened)
    _add_page_options(opened)
    opened.set_defaults(run=_open)

    add_upgrade(commands)
    return parser


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help=".py, .ipynb, .json, .pt2, .onnx")
    parser.add_argument("--module", default="", metavar="NAME", help="where it defines several")


def _add_page_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=0, help="default: any free one")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def _demo(options: argparse.Namespace) -> None:
    if options.svg is None:
        from irviz.app.serve import DEMO, serve

        serve(DEMO, port=options.port, browser=not options.no_browser)
        return
    from irviz.app.demo import demo_stages

    session = demo_stages()
    session.draw().save(options.svg)
    print(session.report())  # noqa: T201


def _draw(options: argparse.Namespace) -> None:
    from irviz.app.draw import draw
    from irviz.loaders.load import load

    found = load(options.file, name=options.module)
    _tell(found.notes)
    figure = draw(
        found.module,
        options.function or found.function,
        around=options.around,
        steps=options.steps,
        to=options.to,
        theme=options.theme,
        direction=options.direction,
    )
    figure.save(options.output)
    _tell([figure.note] if figure.note else [])


def _open(options: argparse.Namespace) -> None:
    from irviz.app.load import load
    from irviz.app.serve import serve

    # what is wrong with it is said here, not on the page
    load(options.file, name=options.module)
    file = str(options.file.resolve())
    serve(file, options.module, port=options.port, browser=not options.no_browser)


def _tell(notes: Sequence[str]) -> None:
    for note in notes:
        print(f"irviz: {note}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
