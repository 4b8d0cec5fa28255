"""TVM's parser of TVMScript, with nothing of Python or of this machine within its reach.

It is given texts that were admitted (`admission`). Should one of them say more than it seems to,
there is little here that it could do that with.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Iterator
from threading import Lock
from types import SimpleNamespace
from typing import Any, TypeVar

import tvm
from tvm.relax.script.parser import entry
from tvm.script import parser
from tvm.script.parser.core import evaluator

_ASKS = "tvm_callback_rocm_get_arch"
_reading = Lock()
"""Held while TVM's parser is without."""


def from_admitted(text: str) -> object:
    """Return what an admitted text defines; raise what TVM's parser raises."""
    with _alone():
        return tvm.script.from_source(text, extra_vars=_names())


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let TVM's parser have neither Python's builtins nor this machine's programs meanwhile.

    It evaluates some sizes, and what stands before a `=`, with all builtins, whatever names it is
    given; and asks `which` and `rocminfo` what the target "rocm" is.
    """
    with _reading:
        asked = tvm.get_global_func(_ASKS, allow_missing=True)
        if asked is not None:
            tvm.register_global_func(_ASKS, lambda *_: "gfx900", override=True)
        entry.eval, evaluator.exec = _bare(eval), _bare(exec)
        try:
            yield
        finally:
            del entry.eval, evaluator.exec
            if asked is not None:
                tvm.register_global_func(_ASKS, asked, override=True)


def _bare(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return `eval` or `exec` without builtins."""

    def bare(code: object, names: dict[str, Any], variables: Any = None) -> Any:
        return run(code, {**names, "__builtins__": {}}, variables)

    return bare


def _names() -> dict[str, object]:
    """Return what the names of a text can lead to; TVM's own list has all of TVM and Python."""
    hidden = dict.fromkeys(dir(builtins), None)
    json = SimpleNamespace(load_json=tvm.ir.load_json)
    return {
        **hidden,
        "__builtins__": {},
        "range": range,
        "I": parser.ir,
        "R": parser.relax,
        "T": parser.tirx,
        "TypeVar": TypeVar,
        "tvm": SimpleNamespace(ir=json),
    }
