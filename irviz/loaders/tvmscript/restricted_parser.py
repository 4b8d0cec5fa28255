"""Run TVM's TVMScript parser without Python's builtins and without starting programs.

It gets only texts that `admission` admits. If hostile Python slips through all the same, it finds
little here that it could use.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from threading import Lock
from types import SimpleNamespace
from typing import Any, TypeVar

import tvm
from tvm import tirx
from tvm.relax.script.parser import entry
from tvm.script import parser
from tvm.script.parser.core import evaluator
from tvm.tirx import layout
from tvm.tirx.script import tile

from irviz.gc_pause import gc_paused
from irviz.loaders.tvmscript.dialect import AXES, LAYOUT_FUNCTIONS

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
    """Return `eval` or `exec` without builtins."""

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
