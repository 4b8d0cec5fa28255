"""`irviz demo`: the course's MLP, from its module to a library call, with checked results."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from irviz.cli.options import Commands, add_page

if TYPE_CHECKING:
    from irviz.session.session import Session


def add_demo(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("demo", help="open the explorer on the course's MLP")
    parser.add_argument("--svg", type=Path, help="write a picture and print a report; no browser")
    add_page(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if options.svg is None:
        from irviz.cli.page_launcher import DEMO, serve

        serve(DEMO, port=options.port, place=options.place)
        return
    session = demo_stages()
    session.draw().save(options.svg)
    print(session.report())  # noqa: T201


def demo_session(module: str = "MyModule", function: str = "") -> Session:
    """Return a session on a form of the course's MLP, with its weights and the held-out digits."""
    from irviz.course.digits import digits, mlp_params
    from irviz.course.mlp import MODULES
    from irviz.session.session import Session

    held_out = digits()
    return Session(
        MODULES[module],
        function=function,
        params=mlp_params(),
        inputs=held_out.images,
        labels=held_out.labels,
    )


def demo_stages() -> Session:
    """Return the session with bound weights, and then ReLU swapped for a library kernel."""
    return demo_session().bind().swap("relu0", "env.relu")
