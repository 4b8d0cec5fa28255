"""Read the IRModules that a TVMScript text defines.

The text is admitted first (`admission`). TVM's parser may still crash, hang or exhaust memory, so
untrusted texts are read in the worker.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from threading import Lock
from types import SimpleNamespace
from typing import Any, TypeVar

import tvm
from tvm import ir, relax, tirx
from tvm.relax.script.parser import entry
from tvm.script import parser
from tvm.script.parser.core import evaluator
from tvm.tirx import layout
from tvm.tirx.script import tile

from irviz.errors import LoadError
from irviz.gc_pause import gc_paused
from irviz.loaders.file_limits import FileError
from irviz.loaders.tvm_json import check_written_size, draw_all
from irviz.loaders.tvmscript.admission import AdmittedText, admit
from irviz.loaders.tvmscript.allowed_names import AXES, LAYOUT_FUNCTIONS
from irviz.loaders.tvmscript.syntax_tree import Definition
from irviz.worker.captured_output import captured_stderr

_DEFINED_TWICE = "already defined in current scope"
_SAVE_INSTEAD = (
    ". TVM prints some modules so that it cannot read them, those with a paged cache among them: "
    "save the module itself, with session.save or tvm.ir.save_json"
)
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
            found = parse_admitted(
                text, admitted.imported, check_well_formed=definition.check_well_formed
            )
            if isinstance(found, tirx.PrimFunc | relax.Function):
                found = ir.IRModule({ir.GlobalVar(definition.name): found})
            if not isinstance(found, ir.IRModule):
                raise LoadError(f"it holds a {type(found).__name__}, not an IRModule")
            check_written_size(json.loads(tvm.ir.save_json(found)))
            draw_all(found)
    except (MemoryError, FileError):
        raise
    except Exception as failure:  # TVM's parser raises errors of any class
        words = str(failure).strip() or type(failure).__name__
        raise LoadError(_explanation(words, admitted.name, definition.name)) from None
    return found


def _explanation(failure: str, text: str, definition: str) -> str:
    """Return why TVM cannot read a definition, in one sentence."""
    if (found := _DIAGNOSTIC.search(failure)) is not None:
        words = " ".join(found["words"].split()).replace("Traceback: ", "")[:500]
        place = f"line {found['line']}, column {found['column']}"
        advice = _SAVE_INSTEAD if _DEFINED_TWICE in words else ""
        return f"{text}, {place}: TVM does not read this: {words}{advice}"
    return f"{text}: TVM does not read {definition!r}: {' '.join(failure.split())[:500]}"


# --- Run TVM's TVMScript parser without Python's builtins and without starting programs ----------
#
# It gets only texts that `admission` admits. If hostile Python slips through all the same, it finds
# little here that it could use.


_ROCM_ARCH = "tvm_callback_rocm_get_arch"
_patching = Lock()
"""Held while TVM's parser is patched."""


def parse_admitted(
    text: str, imported: Mapping[str, str] | None = None, *, check_well_formed: bool = True
) -> object:
    """Return the module or function in an admitted text; raise what TVM's parser raises.

    `imported` are the names that it imports, with their full names.
    """
    names = _names()
    for name, meaning in (imported or {}).items():
        names[name] = attrgetter(meaning)(SimpleNamespace(**names))
    with _isolated(), gc_paused():  # it makes many small values, a sixth faster without collections
        return tvm.script.from_source(text, extra_vars=names, check_well_formed=check_well_formed)


@contextlib.contextmanager
def _isolated() -> Iterator[None]:
    """Patch TVM's parser: no builtins in `eval` and `exec`, and no programs started.

    The parser evaluates some sizes, and the targets of assignments, with all builtins, regardless
    of the names passed to it. For the target "rocm" it runs `which` and `rocminfo`.
    """
    with _patching:
        registered = tvm.get_global_func(_ROCM_ARCH, allow_missing=True)
        if registered is not None:
            tvm.register_global_func(_ROCM_ARCH, lambda *_: "gfx900", override=True)
        entry.eval, evaluator.exec = _without_builtins(eval), _without_builtins(exec)
        try:
            yield
        finally:
            del entry.eval, evaluator.exec
            if registered is not None:
                tvm.register_global_func(_ROCM_ARCH, registered, override=True)


def _without_builtins(run: Callable[..., Any]) -> Callable[..., Any]:

    def call(code: object, names: dict[str, Any], variables: Any = None) -> Any:
        return run(code, {**names, "__builtins__": {}}, variables)

    return call


def _names() -> dict[str, object]:
    """Return the names that a text can use; TVM's own list has all of TVM and Python."""
    hidden = dict.fromkeys(dir(builtins), None)
    own_tvm = SimpleNamespace(
        ir=SimpleNamespace(load_json=tvm.ir.load_json, Op=SimpleNamespace(get=tvm.ir.Op.get)),
        target=SimpleNamespace(Target=tvm.target.Target),
        tirx=SimpleNamespace(
            call_intrin=tirx.call_intrin,
            const=tirx.const,
            layout=SimpleNamespace(**{name: getattr(layout, name) for name in LAYOUT_FUNCTIONS}),
        ),
        cpu=tvm.cpu,
        cuda=tvm.cuda,
        device=tvm.device,
    )
    return {
        **hidden,
        "__builtins__": {},
        "float": float,
        "range": range,
        "I": parser.ir,
        "R": parser.relax,
        "T": parser.tirx,
        "Tx": SimpleNamespace(**{name: getattr(tile, name) for name in tile.__all__}),
        "Axis": SimpleNamespace(**{name: layout.Axis.get(name) for name in AXES}),
        "TypeVar": TypeVar,
        "tvm": own_tvm,
    }
