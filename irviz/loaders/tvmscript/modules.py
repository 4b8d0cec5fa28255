"""Read the IRModules that a TVMScript text defines.

The text is admitted first (`admission`). Then the worker reads each definition, within limits of
time and memory, and only if that succeeds does this process read it.
"""

from __future__ import annotations

import re

from tvm import ir, relax, tirx

from irviz.errors import LoadError
from irviz.loaders.reading import TVM_SECONDS
from irviz.loaders.trial import draw_all, trial_failure
from irviz.loaders.tvmscript.admission import AdmittedText, admit
from irviz.loaders.tvmscript.definitions import Definition
from irviz.loaders.tvmscript.isolated_parser import parse_admitted
from irviz.worker.memory_limit import default_memory_limit
from irviz.worker.stderr_capture import captured_stderr

_DIAGNOSTIC = re.compile(r"error: (?P<words>.*?)\n --> .*?:(?P<line>\d+):(?P<column>\d+)\n", re.S)


def modules_of(
    text: str, name: str = "<text>", *, seconds: float = TVM_SECONDS
) -> dict[str, ir.IRModule]:
    """Return the modules that a text defines, by name.

    A PrimFunc or Relax function outside a module becomes a module of one function. `name` is the
    text's name in errors, and `seconds` the time limit for one definition.

    Raises:
        RefusedError: If a part of the text is not TVMScript.
        LoadError: If the text defines no module, or TVM cannot read it.
    """
    admitted = admit(text, name)
    names = [one.name for one in admitted.definitions]
    if not names:
        raise LoadError(
            f"{name} defines no module: write `@I.ir_module` above a class of functions"
        )
    repeated = sorted({one for one in names if names.count(one) > 1})
    if repeated:
        raise LoadError(f"{name} defines {repeated[0]!r} twice: rename one of them")
    return {one.name: _module(admitted, one, seconds) for one in admitted.definitions}


def _module(admitted: AdmittedText, definition: Definition, seconds: float) -> ir.IRModule:
    text = admitted.only(definition)
    failure = trial_failure(
        _parse,
        text,
        definition.name,
        draw=draw_all,
        seconds=seconds,
        memory=default_memory_limit(),
    )
    if failure:
        raise LoadError(_explanation(failure, admitted.name, definition.name))
    with captured_stderr():
        return _parse(text, definition.name)


def _explanation(failure: str, text: str, definition: str) -> str:
    """Return the reason why TVM cannot read a definition, in one sentence."""
    if (found := _DIAGNOSTIC.search(failure)) is not None:
        words = " ".join(found["words"].split())
        place = f"line {found['line']}, column {found['column']}"
        return f"{text}, {place}: TVM does not read this: {words}"
    return f"{text}: TVM does not read {definition!r}: {' '.join(failure.split())[:500]}"


def _parse(text: str, name: str) -> ir.IRModule:
    found = parse_admitted(text)
    if isinstance(found, ir.IRModule):
        return found
    if isinstance(found, tirx.PrimFunc | relax.Function):
        return ir.IRModule({ir.GlobalVar(name): found})
    raise LoadError(f"it holds a {type(found).__name__}, not an IRModule")
