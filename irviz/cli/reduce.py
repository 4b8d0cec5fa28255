"""`irviz reduce FILE --check SCRIPT`: the smallest module for which your function is true.

Ctrl-C ends the search, and the smallest module found so far is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irviz.atomic_write import atomic_write
from irviz.cli.options import Commands, add_file, add_function, open_file
from irviz.errors import InputError

if TYPE_CHECKING:
    from tvm import ir

_FUNCTION, _MODULE = "still_fails", "user_check"


def add_reduce(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("reduce", help="reduce a module that fails to a smaller one")
    add_file(parser)
    parser.add_argument(
        "--check",
        type=Path,
        required=True,
        metavar="SCRIPT",
        help=f"your own .py file, which is run; its {_FUNCTION}(mod) tells whether a module fails",
    )
    add_function(parser)
    parser.add_argument("--seconds", type=float, default=60.0, help="the time limit; default: 60")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        help="write a script that reproduces the failure",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from irviz.session.reduce import reduce

    still_fails = _check(options.check)
    session = open_file(options)
    with _cancelled_by_interrupt() as cancel:
        found = reduce(
            session.current.module,
            still_fails,
            function=session.function,
            seconds=options.seconds,
            progress=_tell if sys.stderr.isatty() else None,
            cancel=cancel,
        )
    print(found)  # noqa: T201
    if options.output:
        text = found.to_python()
        with atomic_write(options.output) as partial:
            partial.write_text(text, encoding="utf-8")


def _tell(done: int, total: int, words: str) -> None:
    print(f"\r{done} of {total} bindings removed, {words} ", end="", file=sys.stderr)  # noqa: T201


@contextlib.contextmanager
def _cancelled_by_interrupt() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets; the second one raises KeyboardInterrupt."""
    cancel = threading.Event()

    def interrupted(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        cancel.set()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield cancel
    finally:
        signal.signal(signal.SIGINT, before)


def _check(path: Path) -> Callable[[ir.IRModule], Any]:
    """Run the user's script and return its function; raise InputError if it has none."""
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a .py file: give one that defines {_FUNCTION}(mod)")
    module = sys.modules[_MODULE] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise
    except Exception as failure:  # it is the user's own code
        raise InputError(f"{path} failed: {type(failure).__name__}: {failure}") from failure
    found: Callable[[ir.IRModule], Any] | None = getattr(module, _FUNCTION, None)
    if found is None:
        raise InputError(
            f"{path} defines no {_FUNCTION}: write a function {_FUNCTION}(mod) that returns "
            "whether a module fails"
        )
    return found
