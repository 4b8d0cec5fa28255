"""The command line: `irviz demo` and the other commands, each as its options and what it runs."""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import importlib.util
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from irviz.errors import InputError, IrvizError, LoadError, SaveError
from irviz.gc_pause import gc_paused
from irviz.safe_files import atomic_write, target_path
from irviz.version import __version__

if TYPE_CHECKING:
    from tvm import ir

    from irviz.session.session import Session
    from irviz.view.module_diff import Diff


_PICTURES = (".svg", ".pdf", ".png", ".dot")
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""The result of `add_subparsers`, to which each command adds its parser."""


def add_file(parser: argparse.ArgumentParser, *, is_optional: bool = False) -> None:
    """Add the options for the file to read and the module in it."""
    words = ".py, .ipynb, .json, .pt2, .onnx, .tflite, .irviz" + (
        "; without it: a list to choose from" * is_optional
    )
    count = "?" if is_optional else None
    parser.add_argument("file", type=Path, nargs=count, metavar="FILE", help=words)
    _add_module(parser)


def _add_module(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--module", default="", metavar="NAME", help="the module to read, if a file has several"
    )
    parser.add_argument(
        "--missing",
        choices=("error", "opaque"),
        default="error",
        help="operators of a .pt2 or .onnx that TVM does not import: an error, or opaque nodes, "
        "which torch or ONNX computes if they are its own, and which else are only drawn",
    )


def open_file(options: argparse.Namespace) -> Session:
    """Open the file of a command as a session, and print notes on that."""
    from irviz.session.open_session import load

    with _warnings_as_notes():
        return load(
            options.file,
            name=options.module,
            function=options.function,
            missing=options.missing,
        )


@contextlib.contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Print the warnings of a block that ends without an error, each once."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        yield
    print_notes(dict.fromkeys(str(note.message) for note in notes))


def _load_tvm() -> None:
    """Load TVM once for this process and its workers: it takes most of a short command's time."""
    from irviz.worker.supervisor import fork_workers_from_here
    from irviz.worker.worker_main import load_tvm

    with gc_paused():
        load_tvm()
        importlib.import_module("irviz.session.open_session")
    gc.freeze()  # all that lasts: no collection, not even that at the exit, need look at it
    fork_workers_from_here()


def add_function(parser: argparse.ArgumentParser) -> None:
    """Add the option for the function to show first."""
    parser.add_argument(
        "--function", default="", metavar="NAME", help='the function; default: "main", or the first'
    )


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the options for serving the explorer."""
    parser.add_argument("--port", type=_port, default=0, help="default: any free port")
    parser.add_argument(
        "--new", action="store_true", help="load TVM anew, and use nothing of an irviz that runs"
    )
    place = parser.add_mutually_exclusive_group()
    for option, name, words in _PLACES:
        place.add_argument(option, dest="place", action="store_const", const=name, help=words)
    parser.set_defaults(place="any")


_PLACES = (
    ("--window", "window", "in a desktop window; closing it ends irviz"),
    ("--browser", "browser", "in the browser, even if pywebview is installed"),
    ("--no-browser", "nowhere", "only print the address"),
)


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 2**16:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number from 0 to 65535")


def print_notes(notes: Iterable[str]) -> None:
    """Print each note on a line of standard error."""
    for note in notes:
        print(f"irviz: {note}", file=sys.stderr)  # noqa: T201


# --- The error messages of the command line ------------------------------------------------------


FAILURES = (IrvizError, OSError, ValueError, RuntimeError, ImportError, MemoryError)
"""The errors that a command may fail with; any other is a bug in irviz."""


def failure_words(failure: BaseException) -> str:
    """Describe a command's error in one sentence."""
    if isinstance(failure, ImportError):
        return f"{failure}: install what irviz needs with pip install irviz"
    if isinstance(failure, MemoryError):
        return "this takes more memory than there is: try a smaller file"
    return " ".join(str(failure).split())


def _add_demo(commands: Commands) -> None:
    parser = commands.add_parser("demo", help="open the explorer on the course's MLP")
    parser.add_argument("--svg", type=Path, help="write a picture and print a report; no browser")
    add_page(parser)
    parser.set_defaults(run=_run_demo)


def _run_demo(options: argparse.Namespace) -> None:
    if options.svg is None:
        from irviz.cli.page_launcher import DEMO, PageRequest, serve

        serve(PageRequest(DEMO, port=options.port), options.place, is_new=options.new)
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


def _add_draw(commands: Commands) -> None:
    parser = commands.add_parser("draw", help="draw a function of a module to a file")
    add_file(parser)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help=f"a file: {', '.join(_PICTURES)}"
    )
    add_function(parser)
    _add_picture(parser)
    parser.set_defaults(run=_run_draw)


def _add_picture(parser: argparse.ArgumentParser, when: str = "") -> None:
    """Add the options for what of a graph is drawn, and how."""
    name: Any = {"default": "", "metavar": "NAME"}
    parser.add_argument("--theme", default="course", help=f"{when}course or dark")
    parser.add_argument("--direction", default="up", help=f"{when}where data flows, up or down")
    parser.add_argument("--around", **name, help=f"{when}only the neighbourhood of this node")
    parser.add_argument("--steps", type=int, default=1, help="its radius in uses; default: 1")
    parser.add_argument("--to", **name, help="with --around: only the paths between the two")


def _run_draw(options: argparse.Namespace) -> None:
    target_path(options.output, _PICTURES)  # before the time that the rest takes
    _load_tvm()
    from irviz.session.open_session import part
    from irviz.view.graph.graphviz_engine import ENGINE

    ENGINE.start()  # it takes as long as reading a small file
    view = part(options.around, options.steps, options.to)
    session = open_file(options)
    figure = session.draw(view=view, theme=options.theme, direction=options.direction)
    print(figure.save(options.output))  # noqa: T201
    print_notes([figure.note] if figure.note else [])


def _add_open(commands: Commands) -> None:
    parser = commands.add_parser("open", help="open the explorer on a file")
    add_file(parser, is_optional=True)
    add_function(parser)
    add_page(parser)
    parser.set_defaults(run=_run_open)


def _run_open(options: argparse.Namespace) -> None:
    from irviz.cli.page_launcher import START, PageRequest, serve
    from irviz.loaders.file_limits import file_size, named

    file: Path | None = options.file
    if file is not None and (file.exists() or "#" not in file.name):  # it may name a stage
        with named(str(file)):
            file_size(file)  # before a page is shown
    what = START if file is None else str(file.resolve())
    request = PageRequest(what, options.module, options.function, options.missing, options.port)
    serve(request, options.place, is_new=options.new)


def _add_diff(commands: Commands) -> None:
    parser = commands.add_parser(
        "diff",
        help="print what differs between two modules or recordings; exit code 1 if anything does",
    )
    for name, which in (("before", "the module before"), ("after", "the module after")):
        parser.add_argument(
            name, metavar=name.upper(), help=f"{which}: a file, or a stage as work.irviz#1"
        )
    _add_module(parser)
    parser.add_argument("--function", default="", metavar="NAME", help="only this function")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="draw to this .svg file")
    _add_picture(parser, "with -o: ")
    parser.add_argument(
        "--layout", default="beside", help="with -o: the module before is beside or above"
    )
    parser.add_argument("--overlay", action="store_true", help="with -o: draw both in one picture")
    parser.set_defaults(run=_run_diff)


def _run_diff(options: argparse.Namespace) -> int:
    if options.output:
        target_path(options.output, [".svg"])
    _load_tvm()
    from irviz.session.compare_pipelines import PipelineComparison, compare_pipelines
    from irviz.session.open_session import diff, recordings

    files = options.before, options.after
    found: Diff | PipelineComparison
    if not options.function and (both := recordings(*files)):
        found = compare_pipelines(*both, files)
    else:
        with _warnings_as_notes():
            found = diff(*files, options.function, module=options.module, missing=options.missing)
    drawn = found.diff if isinstance(found, PipelineComparison) else found
    if options.output:
        _draw_diff(options, drawn)
    elif options.json:
        print(json.dumps(found.to_dict(), indent=1))  # noqa: T201
    elif isinstance(found, PipelineComparison):
        print(found, *(["", drawn] if drawn else []), sep="\n")  # noqa: T201
    else:
        has_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        sys.stdout.write(found.text(colour=has_colour))
    return 1 if found else 0


def _draw_diff(options: argparse.Namespace, found: Diff | None) -> None:
    """Draw the differences, if any, to the output file."""
    if not found:
        print_notes([f"nothing differs: {options.output} is not written"])
        return
    file = found.save(
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
    print(file)  # noqa: T201


_CHECK, _CHECK_MODULE = "still_fails", "user_check"


def _add_reduce(commands: Commands) -> None:
    parser = commands.add_parser("reduce", help="reduce a module that fails to a smaller one")
    add_file(parser)
    parser.add_argument(
        "--check",
        type=Path,
        required=True,
        metavar="SCRIPT",
        help=f"your own .py file, which is run; its {_CHECK}(mod) tells whether a module fails",
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
    parser.set_defaults(run=_run_reduce)


def _run_reduce(options: argparse.Namespace) -> None:
    from irviz.session.reduce_module import reduce

    still_fails = _load_check(options.check)
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


def _load_check(path: Path) -> Callable[[ir.IRModule], Any]:
    """Run the user's script and return its function; raise InputError if it has none."""
    spec = importlib.util.spec_from_file_location(_CHECK_MODULE, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is not a .py file: give one that defines {_CHECK}(mod)")
    module = sys.modules[_CHECK_MODULE] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise
    except Exception as failure:  # it is the user's own code
        raise InputError(f"{path} failed: {type(failure).__name__}: {failure}") from failure
    found: Callable[[ir.IRModule], Any] | None = getattr(module, _CHECK, None)
    if found is None:
        raise InputError(
            f"{path} defines no {_CHECK}: write a function {_CHECK}(mod) that returns "
            "whether a module fails"
        )
    return found


def _add_export(commands: Commands) -> None:
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
    parser.set_defaults(run=_run_export)


def _run_export(options: argparse.Namespace) -> None:
    from irviz.view.pass_times import SUFFIXES

    target_path(options.output, SUFFIXES if options.times else [".html"])
    _load_tvm()
    session = open_file(options)
    saved = session.pass_times().save if options.times else session.save_html
    print(saved(options.output))  # noqa: T201


def _add_figures(commands: Commands) -> None:
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
    parser.set_defaults(run=_run_figures)


def _run_figures(options: argparse.Namespace) -> int:
    from irviz.figures.figure_declarations import read_declarations
    from irviz.figures.write_and_check_figures import check_figures, write_figures

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
    code = 0
    for name in options.names or [one.name for one in figures.declarations]:
        try:
            for file in write_figures(figures, [name]):
                print(file)  # noqa: T201
        except FAILURES as failure:  # noqa: PERF203 - the others are drawn all the same
            print_notes([failure_words(failure)])
            code = 2
    return code


MOST_BYTES: Final = 50_000_000


def _add_upgrade(commands: Commands) -> None:
    parser = commands.add_parser("upgrade", help="rewrite older TVM code for the installed TVM")
    parser.add_argument(
        "file", type=Path, metavar="FILE", help=".py, .ipynb, or .md, .rst, .txt with code"
    )
    parser.add_argument(
        "-w", "--write", action="store_true", help="write the changes to the file, too"
    )
    parser.add_argument(
        "--output", type=Path, metavar="OUT", help="write the result to this file instead"
    )
    parser.set_defaults(run=run_upgrade)


def run_upgrade(options: argparse.Namespace) -> None:
    """Print the changes as a diff, and notes on what is left to do; optionally write the file.

    Raises LoadError if the file is not text or not code.
    """
    from irviz.loaders.file_limits import named, read_in_worker
    from irviz.loaders.upgrade.upgrade import upgrade_with_diff

    if options.write and options.output is not None:
        raise SaveError("-w overwrites FILE and --output writes another file: give one of them")
    path: Path = options.file
    old = _text_to_upgrade(path)
    try:
        # a FileError continues a sentence
        with named(path.name):
            result, diff = read_in_worker(upgrade_with_diff, old, path.name)
    except ValueError as failure:
        raise LoadError(f"cannot upgrade {path}: {failure}") from failure
    target = path if options.write else options.output
    if target is not None and (target != path or result.text != old):
        with atomic_write(target) as partial:
            partial.write_bytes(result.text.encode("utf-8"))
    sys.stdout.write(diff)
    for note in result.notes:
        print(f"{path.name}, {note}", file=sys.stderr)  # noqa: T201


def _text_to_upgrade(path: Path) -> str:
    from irviz.loaders.file_limits import named, read_file

    with named(str(path)):
        content = read_file(path, MOST_BYTES)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise LoadError(f"{path} is not text in UTF-8: byte {failure.start} is not") from failure


# --- Run a command -------------------------------------------------------------------------------


COMMANDS = (
    *(_add_demo, _add_draw, _add_open, _add_diff),
    *(_add_reduce, _add_export, _add_figures, _add_upgrade),
)
"""Functions that add a command to the command line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code, which is 2 after an error message."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except FAILURES as failure:
        print_notes([failure_words(failure)])
        return 2
    except KeyboardInterrupt:
        return 130


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors on one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with code 2."""
        self.exit(2, f"irviz: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="irviz", description="See, transform and rerun Apache TVM's IRModules."
    )
    parser.add_argument("--version", action="version", version=f"irviz {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
