"""Look up the names of a text in the installed TVM; TVM's modules are imported, nothing is called.

Only names that are certainly missing are reported. Attributes of objects of unknown type, and of
modules that cannot be imported here, are assumed to exist.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Collection, Iterable
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, Final

from irviz.loaders.upgrade.moved_names import SHORT

_PACKAGES: Final = ("tvm", "tvm_ffi")
_PROGRAMS: Final = "tvm.exec"
_HOMES: Final = {short: home for home, short in SHORT.items() if home.count(".") == 2}
_OPERATOR_PREFIX: Final = "relax."


class _Unknown:
    """Stands for a value that cannot be known without running code."""


def why_missing(name: str) -> str:
    """Return the reason why a dotted name is not in the installed TVM, or "" if it may be."""
    head, _, rest = name.partition(".")
    parts = [*_HOMES.get(head, head).split("."), *rest.split(".")] if rest else [head]
    if parts[0] not in _PACKAGES:
        return ""
    for length in range(2, len(parts) + 1):
        if _found(".".join(parts[:length])) is None:
            return (
                f"the installed TVM has no {parts[length - 1]} in {'.'.join(parts[: length - 1])}"
            )
    return ""


def unknown_keywords(name: str, keywords: Iterable[str]) -> list[str]:
    """Return the keywords that the function with a dotted name does not accept."""
    head, dot, rest = name.partition(".")
    accepted = _keywords(_HOMES.get(head, head) + dot + rest)
    return [] if accepted is None else [word for word in keywords if word not in accepted]


def why_no_operator(name: str) -> str:
    """Return the reason why a string names no operator, or "" if it may name something."""
    last = name.removeprefix(_OPERATOR_PREFIX)
    if last == name or not all(part.isidentifier() and part.islower() for part in last.split(".")):
        return ""
    if name in _operators() or not why_missing(f"tvm.{name}"):
        return ""
    return "the installed TVM has no operator of this name"


def why_no_program(name: str) -> str:
    """Return the reason why a function of TVM cannot run the program that it needs, or ""."""
    if name != "tvm.support.clang.create_llvm":
        return ""
    from tvm.support.clang import find_clang

    return "" if find_clang(required=False) else "it runs clang, which is not installed here"


@cache
def _operators() -> Collection[str]:
    """Return what a string like `relax.add` can name: operators, functions, and options."""
    import tvm
    from tvm_ffi.registry import list_global_func_names

    return frozenset(
        [
            *map(str, tvm.ir.Op.list_op_names()),
            *map(str, list_global_func_names()),
            *map(str, tvm.transform.PassContext.list_configs()),
        ]
    )


@lru_cache(10_000)  # a text may have any number of names
def _found(name: str) -> Any:
    """Return the object with a dotted name, _Unknown if that cannot be told, None if missing."""
    home, _, last = name.rpartition(".")
    owner: Any = _found(home) if home else None
    if home and not inspect.ismodule(owner):
        is_missing = inspect.isclass(owner) and owner is not _Unknown and not hasattr(owner, last)
        return None if is_missing else _Unknown
    if home and hasattr(owner, last):
        return getattr(owner, last)
    if home and last != "__main__" and not hasattr(owner, "__path__"):
        return None
    place = f"{owner.__name__}.{last}" if home else name  # modules have other names as well
    is_program = place.startswith(_PROGRAMS) or last == "__main__"
    if is_program or place.partition(".")[0] not in _PACKAGES:
        return _Unknown  # it may do something as it is imported
    try:
        return importlib.import_module(place) if find_spec(place) is not None else None
    except ModuleNotFoundError:
        return _Unknown if find_spec(place) is not None else None  # it wants another package
    except (Exception, SystemExit):
        return _Unknown  # it is there, and wants something that is not


@lru_cache(10_000)
def _keywords(name: str) -> Collection[str] | None:
    """Return the keywords that a function or a class of TVM takes, or None if any may be right."""
    function: Any = _found(name)
    if not (inspect.isfunction(function) or inspect.isclass(function)) or function is _Unknown:
        return None
    try:
        # a wrapper takes what it says itself
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return frozenset(each.name for each in parameters)
