"""TVMScript -> IRModules.

TVM evaluates the Python that it finds in a text. So a text is admitted first (`ir.admission`), then
read by another process, which may end, take its time or run out of memory, and only then here. In
both TVM knows no names but TVMScript's: where a builtin would be found stands nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tvm import ir, relax, tirx

from irviz.ir.admission import Admitted, Definition, admit
from irviz.ir.bare_parser import from_admitted
from irviz.ir.extract import extract
from irviz.ir.identity import relax_functions
from irviz.ir.text_limits import MAX_TEXT
from irviz.loaders.loaded import LoadError
from irviz.worker.memory import available
from irviz.worker.noise import caught_noise
from irviz.worker.pool import TRIES, CrashedError, TimedOutError, WorkerError

SECONDS = 120.0
"""How long another process may take to read a text."""

_DIAGNOSTIC = re.compile(r"error: (?P<words>.*?)\n --> .*?:(?P<line>\d+):(?P<column>\d+)\n", re.S)


def load_tvmscript(
    source: str | os.PathLike[str], which: str | None = None, *, seconds: float = SECONDS
) -> ir.IRModule:
    """Load an IRModule from TVMScript: a text of more than one line, or the path of a file.

    A lone PrimFunc or Relax function becomes a module of one function. Of several definitions
    `which` names one. `seconds` is how long reading it may take. Raises RefusedError for what is
    no TVMScript, and LoadError, in one sentence, for what is missing or TVM does not read.
    """
    text, name = _text(source)
    admitted = admit(text, name)
    return _module(admitted, _chosen(admitted, which), seconds)


def modules_of(
    text: str, name: str = "<text>", *, seconds: float = SECONDS
) -> dict[str, ir.IRModule]:
    """Return the modules that a text defines, by name; each lone function is one of its own.

    `name` is what errors call the text. Raises as `load_tvmscript` does.
    """
    admitted = admit(text, name)
    _chosen(admitted, None if len(admitted.definitions) == 1 else "")
    return {one.name: _module(admitted, one, seconds) for one in admitted.definitions}


def _chosen(admitted: Admitted, which: str | None) -> Definition:
    """Return the definition that is asked for; "" asks for any."""
    found = admitted.definitions
    if not found:
        raise LoadError(
            f"{admitted.name} defines no module: write `@I.ir_module` above a class of functions"
        )
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise LoadError(f"{admitted.name} defines {twice[0]!r} twice: call one of them otherwise")
    if which == "" or (which is None and len(found) == 1):
        return found[0]
    there = ", ".join(repr(one) for one in names)
    if which is None:
        raise LoadError(f"{admitted.name} defines {there}: say which of them, or use modules_of")
    if which not in names:
        raise LoadError(f"{admitted.name} defines no {which!r}: there is {there}")
    return found[names.index(which)]


def _text(source: str | os.PathLike[str]) -> tuple[str, str]:
    """Return a text and what errors call it."""
    if isinstance(source, str) and ("\n" in source or "\r" in source):
        return source, "<text>"
    file = Path(source)
    try:
        if file.is_dir():
            raise LoadError(f"{str(file)!r} is a directory: name a file in it")
        if file.exists() and not file.is_file():  # a pipe or a device may never end
            raise LoadError(f"{str(file)!r} is no regular file: name one")
        with file.open("rb") as opened:
            content = opened.read(
                4 * MAX_TEXT + 1
            )  # so many bytes are more characters than are read
        if len(content) > 4 * MAX_TEXT:
            raise LoadError(f"{str(file)!r} is too large: up to {MAX_TEXT:,} characters are read")
        return content.decode("utf-8-sig"), str(file)
    except FileNotFoundError:
        raise LoadError(f"there is no file {str(file)!r}: check the name") from None
    except UnicodeDecodeError:
        raise LoadError(f"{str(file)!r} is no TVMScript: it is no text in UTF-8") from None
    except (OSError, ValueError) as failure:
        if isinstance(failure, LoadError):
            raise
        why = getattr(failure, "strerror", None) or failure
        raise LoadError(
            f"{str(file)!r} may not be read ({why}): check its name and permissions"
        ) from None


def _module(admitted: Admitted, definition: Definition, seconds: float) -> ir.IRModule:
    text, name = admitted.only(definition), admitted.name
    try:
        error = TRIES.call(_try, text, definition.name, seconds=seconds, memory=available())
    except TimedOutError:
        raise LoadError(
            f"{name} was not read within {seconds:g} s: TVM takes longer for {definition.name!r}"
        ) from None
    except CrashedError:
        raise LoadError(f"{name} is refused: reading {definition.name!r} crashes TVM") from None
    except MemoryError:
        raise LoadError(f"{name} is refused: {definition.name!r} takes all memory") from None
    except WorkerError as failure:
        raise LoadError(f"{name} was not read: {failure}") from None
    if error:
        raise LoadError(_told(error, name))
    with caught_noise():
        return _read(text, definition.name)


def _told(error: str, name: str) -> str:
    """Return what TVM's parser says, as one sentence."""
    if (found := _DIAGNOSTIC.search(error)) is not None:
        words = " ".join(found["words"].split())
        place = f"line {found['line']}, column {found['column']}"
        return f"{name}, {place}: TVM does not read this: {words}"
    return f"{name} is not read by TVM: {' '.join(error.split())[:500]}"


def _try(text: str, name: str) -> str:
    """Read a text in every way that a picture of it will need; return what is wrong with it."""
    try:
        mod = _read(text, name)
        for function in relax_functions(mod):
            extract(mod, function)
        mod.script()
    except MemoryError:
        raise
    except Exception as failure:  # whatever TVM's parser throws, it is the text's fault
        return str(failure).strip() or type(failure).__name__
    return ""


def _read(text: str, name: str) -> ir.IRModule:
    found = from_admitted(text)
    if isinstance(found, ir.IRModule):
        return found
    if isinstance(found, tirx.PrimFunc | relax.Function):
        return ir.IRModule({ir.GlobalVar(name): found})
    raise LoadError(f"it holds a {type(found).__name__}, not an IRModule")
