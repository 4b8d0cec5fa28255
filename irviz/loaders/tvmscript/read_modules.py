"""Read the IRModules that a TVMScript text defines.

The text is admitted first (`admission`). TVM's parser may still crash, hang or exhaust memory, so
untrusted texts are read in the worker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import tvm
from tvm import ir, relax, tirx

from irviz.errors import LoadError
from irviz.loaders.file_errors import FileError
from irviz.loaders.read_in_worker import check_written_size, draw_all
from irviz.loaders.tvmscript.admission import AdmittedText, admit
from irviz.loaders.tvmscript.restricted_parser import parse_admitted
from irviz.loaders.tvmscript.syntax_tree import Definition
from irviz.worker.captured_output import captured_stderr

_DIAGNOSTIC = re.compile(r"error: (?P<words>.*?)\n --> .*?:(?P<line>\d+):(?P<column>\d+)\n", re.S)


def modules_of(
    text: str, name: str = "<text>", imported: Mapping[str, str] | None = None
) -> dict[str, ir.IRModule]:
    """Return the modules that a text defines, by name.

    A PrimFunc or Relax function outside a module becomes a module of one function. `name` is the
    text's name in errors, and `imported` the names that imports outside of it bind.

    Raises:
        RefusedError: A part of the text is not TVMScript.
        LoadError: The text defines no module, or TVM cannot read it.
    """
    admitted = admit(text, name, imported)
    names = [one.name for one in admitted.definitions]
    if not names:
        raise LoadError(
            f"{name} defines no module: write `@I.ir_module` above a class of functions"
        )
    repeated = sorted({one for one in names if names.count(one) > 1})
    if repeated:
        raise LoadError(f"{name} defines {repeated[0]!r} twice: rename one of them")
    return {one.name: _module(admitted, one) for one in admitted.definitions}


def _module(admitted: AdmittedText, definition: Definition) -> ir.IRModule:
    text = admitted.only(definition)
    try:
        with captured_stderr():
            mod = _parse(text, definition, admitted.imported)
            check_written_size(json.loads(tvm.ir.save_json(mod)))
            draw_all(mod)
    except (MemoryError, FileError):
        raise
    except Exception as failure:  # TVM's parser raises errors of any class
        words = str(failure).strip() or type(failure).__name__
        raise LoadError(_explanation(words, admitted.name, definition.name)) from None
    return mod


def _explanation(failure: str, text: str, definition: str) -> str:
    """Return why TVM cannot read a definition, in one sentence."""
    if (found := _DIAGNOSTIC.search(failure)) is not None:
        words = " ".join(found["words"].split()).replace("Traceback: ", "")[:500]
        place = f"line {found['line']}, column {found['column']}"
        return f"{text}, {place}: TVM does not read this: {words}"
    return f"{text}: TVM does not read {definition!r}: {' '.join(failure.split())[:500]}"


def _parse(text: str, definition: Definition, imported: Mapping[str, str]) -> ir.IRModule:
    found = parse_admitted(text, imported, check_well_formed=definition.check_well_formed)
    if isinstance(found, ir.IRModule):
        return found
    if isinstance(found, tirx.PrimFunc | relax.Function):
        return ir.IRModule({ir.GlobalVar(definition.name): found})
    raise LoadError(f"it holds a {type(found).__name__}, not an IRModule")
